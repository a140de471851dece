//! Budgets of sitemaps and indexes of them, beside those of pages: their depth, their
//! number and their bytes.
//!
//! Lists are counted when an index names them, since a queue of millions is harm enough, and again
//! when they are read, since others may name them too. Invariants: what is closed here closes
//! lists alone; a list that is queued is fetched only while its host's lists are open.

use super::rules::{BudgetRule, INDEX_DEPTH_MAX, LISTS, Level, NESTED_LISTS, READ_LISTS};
use super::seen::{CandidateLink, ListIndex, LookKind, ReadList};
use super::tallies::TallyKey;
use super::tally::{Tally, TallyPlace};
use super::{Budgets, ClosedPattern, closed_by};
use page::ids::bin_of;
use page::url::host_of;
use store::ids::{BinId, JobId};

/// Whether so many lists lead to a list that it is not followed: one of robots.txt, and indexes
/// below it.
fn is_too_deep(list_depth: u8) -> bool {
    list_depth > 1 + INDEX_DEPTH_MAX
}

/// The names under which the lists of a URL's host are counted that may close a list at such a
/// depth, with the bin of each.
pub fn counted_lists(url: &str, list_depth: u8) -> Vec<(BinId, String)> {
    let host = host_of(url);
    let ends: &[&str] =
        if is_too_deep(list_depth) { &[NESTED_LISTS] } else { &[READ_LISTS, LISTS] };
    ends.iter().map(|end| (BinId(bin_of(host)), format!("{host}{end}"))).collect()
}

/// Lists of a host that are counted together.
struct ListCount {
    name: String,
    level: Level,
    place: TallyPlace,
}

impl Budgets {
    /// Counts a sitemap or an index of them that was read.
    pub fn read_list(&mut self, list: ReadList<'_>) {
        let ReadList { part, job, bin, url, look, bytes } = list;
        if look != LookKind::First {
            return;
        }
        let name = format!("{}{READ_LISTS}", host_of(url));
        let counted =
            ListCount { name, level: Level::ReadLists, place: TallyPlace { part, job, bin } };
        self.count_lists(&counted, |tally| tally.bytes = tally.bytes.saturating_add(bytes));
    }

    /// Whether a sitemap that an index names is not to be followed. If it is, it is counted, unless
    /// the index was read before: what it names every day anew is not more.
    pub fn judge_list(&mut self, index: ListIndex<'_>) -> Option<ClosedPattern> {
        let ListIndex { part, job, bin, url, look, .. } = index;
        let place = TallyPlace { part, job, bin };
        let host = host_of(url);
        let is_new = look == LookKind::First;
        if is_too_deep(index.depth_below()) {
            let name = format!("{host}{NESTED_LISTS}");
            let counted = ListCount { name, level: Level::NestedLists, place };
            if is_new {
                self.count_lists(&counted, |_| ());
            }
            return Some(self.closed_lists(job, bin, &counted.name).unwrap_or(ClosedPattern {
                pattern: counted.name,
                rule: BudgetRule::ListDepth,
                documents: 0,
                outside: 0,
                bytes: 0,
            }));
        }
        let counted = ListCount { name: format!("{host}{LISTS}"), level: Level::Lists, place };
        let read = format!("{host}{READ_LISTS}");
        let closed = self.closed_lists(job, bin, &read);
        let closed = closed.or_else(|| self.closed_lists(job, bin, &counted.name));
        if closed.is_none() && is_new {
            self.count_lists(&counted, |_| ());
        }
        closed
    }

    /// Whether a list that waits is not to be fetched any more. Lists are known by how they came
    /// into the queue; the others are pages until they are read.
    pub(super) fn judge_queued_list(&self, link: &CandidateLink<'_>) -> Option<ClosedPattern> {
        let CandidateLink { job, bin, url, list_depth, .. } = *link;
        if list_depth == 0 {
            return None;
        }
        let host = host_of(url);
        if is_too_deep(list_depth) {
            let pattern = format!("{host}{NESTED_LISTS}");
            let rule = BudgetRule::ListDepth;
            return Some(ClosedPattern { pattern, rule, documents: 1, outside: 0, bytes: 0 });
        }
        self.closed_lists(job, bin, &format!("{host}{READ_LISTS}"))
    }

    fn closed_lists(&self, job: JobId, bin: BinId, name: &str) -> Option<ClosedPattern> {
        let tally = self.tallies.get(&TallyKey::Name(job, bin, self.tallies.hash(name)))?;
        tally.closed.map(|rule| closed_by(tally, rule))
    }

    /// Counts one more, and what else is to be counted of it.
    fn count_lists(&mut self, counted: &ListCount, change: impl FnOnce(&mut Tally)) {
        let ListCount { name, level, place } = counted;
        let key = TallyKey::Name(place.job, place.bin, self.tallies.hash(name));
        let make = || Tally::new(*place, *level, name);
        self.tallies.count(key, make, |tally| {
            tally.documents += 1;
            change(tally);
        });
    }
}
