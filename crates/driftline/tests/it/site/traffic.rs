//! What a log of visits says about a crawler's manners: who was asked for how often,
//! what overlapped, how long the pauses were.
//!
//! A visit lies within the time the client spent on it (see `web::log`), so an overlap
//! here was one there, and a pause was no longer there than here: what these functions
//! hold against a crawler, it did. Invariant: visits are in the order they began.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use driftline::loopback_web::Visit;

/// Visits, in the order they began.
#[derive(Debug, Clone)]
pub struct Traffic {
    visits: Vec<Visit>,
}

impl Traffic {
    /// Puts visits in order.
    pub fn new(mut visits: Vec<Visit>) -> Traffic {
        visits.sort_by_key(|visit| (visit.began, visit.id));
        Traffic { visits }
    }

    /// Reads a log file of one server. A visit whose end is not there was given nothing.
    pub fn read(path: &Path) -> Traffic {
        let mut visits: BTreeMap<u64, Visit> = BTreeMap::new();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let id = words[1].parse().unwrap();
            let at = Duration::from_micros(words[2].parse().unwrap());
            match (words[0], &words[3..]) {
                ("begin", [host, path, mark]) => {
                    let (host, path) = ((*host).to_owned(), (*path).to_owned());
                    let is_conditional = *mark == "c";
                    let (status, began, ended) = (0, at, at);
                    let visit = Visit { id, host, path, status, is_conditional, began, ended };
                    visits.insert(id, visit);
                }
                ("end", [status]) => {
                    let visit = visits.get_mut(&id).unwrap();
                    visit.status = status.parse().unwrap();
                    visit.ended = at;
                }
                _ => panic!("this is no line of a log: {line}"),
            }
        }
        Traffic::new(visits.into_values().collect())
    }

    /// The visits, in the order they began.
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// How often each document was asked for, by host and path; robots.txt is none.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.counts_where(|_| true)
    }

    /// The same, of some visits.
    pub fn counts_where(&self, is_meant: impl Fn(&Visit) -> bool) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for visit in self.documents().filter(|visit| is_meant(visit)) {
            *counts.entry(place(visit)).or_default() += 1;
        }
        counts
    }

    /// Documents that were asked for more than once, and how often too often.
    pub fn repeats(&self) -> BTreeMap<String, usize> {
        let more = self.counts().into_iter().map(|(place, count)| (place, count - 1));
        more.filter(|(_, count)| *count > 0).collect()
    }

    /// How many requests were repeats, over all documents.
    pub fn repeats_count(&self) -> usize {
        self.repeats().values().sum()
    }

    /// How many documents were asked for by the first step of their path: `p`, `r`,
    /// `gone`, or the name of a trap.
    pub fn by_first_step(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for visit in self.documents() {
            let step = visit.path.split(['/', '?']).nth(1).unwrap_or_default();
            *counts.entry(step.to_owned()).or_default() += 1;
        }
        counts
    }

    /// How many documents were asked for without a validator.
    pub fn unconditional_count(&self) -> usize {
        self.documents().filter(|visit| !visit.is_conditional).count()
    }

    /// How many visits ended with a status; 0 is without an answer.
    pub fn with_status(&self, status: u16) -> usize {
        self.visits.iter().filter(|visit| visit.status == status).count()
    }

    /// Visits of one host that were under way at the same time, in pairs.
    pub fn host_overlaps(&self) -> Vec<(&Visit, &Visit)> {
        self.overlaps(|visit| visit.host.clone())
    }

    /// Visits of one document that were under way at the same time, in pairs.
    pub fn document_overlaps(&self) -> Vec<(&Visit, &Visit)> {
        self.overlaps(place)
    }

    fn overlaps(&self, group: impl Fn(&Visit) -> String) -> Vec<(&Visit, &Visit)> {
        let mut latest: BTreeMap<String, &Visit> = BTreeMap::new();
        let mut found = Vec::new();
        for visit in &self.visits {
            let before = latest.entry(group(visit)).or_insert(visit);
            if before.id != visit.id && visit.began < before.ended {
                found.push((*before, visit));
            }
            if visit.ended >= before.ended {
                *before = visit;
            }
        }
        found
    }

    /// The shortest pause between the end of a visit and the begin of the next, for
    /// every host that was visited twice. Overlapping visits had none.
    pub fn smallest_gaps(&self) -> BTreeMap<&str, Duration> {
        let mut ended: BTreeMap<&str, Duration> = BTreeMap::new();
        let mut gaps: BTreeMap<&str, Duration> = BTreeMap::new();
        for visit in &self.visits {
            let host = visit.host.as_str();
            if let Some(ended) = ended.get(host) {
                let gap = visit.began.saturating_sub(*ended);
                gaps.entry(host).and_modify(|least| *least = gap.min(*least)).or_insert(gap);
            }
            let latest = ended.entry(host).or_default();
            *latest = visit.ended.max(*latest);
        }
        gaps
    }

    /// The shortest pause of any host.
    pub fn smallest_gap(&self) -> Option<Duration> {
        self.smallest_gaps().into_values().min()
    }

    fn documents(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(|visit| visit.path != "/robots.txt")
    }
}

fn place(visit: &Visit) -> String {
    format!("{}{}", visit.host, visit.path)
}
