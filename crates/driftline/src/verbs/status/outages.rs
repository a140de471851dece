//! Outputs and repositories that cannot be reached, for the verbs, the log and the metrics
//! that name them.
//!
//! Relies on the rows that the processes keep who try. Invariant: where surely nobody
//! works, nothing is waited for and nothing is named.

use crate::text::{count, date, shown, span};
use std::collections::BTreeMap;
use store::dialect::Dialect;
use store::tables::outages::{self, Outage, OutageKind};
use store::{Result, Tx};

/// Everything that cannot be reached now. `doing` is what the process that holds the rows
/// says that it does, if one does.
pub fn current(tx: &mut Tx<'_>, doing: Option<&str>, now_ms: i64) -> Result<Vec<Outage>> {
    // Rows outlive a process that was killed, the lock on a directory does not.
    if tx.dialect() == Dialect::Sqlite && doing.is_none() {
        return Ok(Vec::new());
    }
    outages::list(tx, now_ms)
}

/// Those that a job waits for.
pub fn of_job(all: &[Outage], job: &str) -> Vec<Outage> {
    all.iter().filter(|it| it.jobs.iter().any(|name| name == job)).cloned().collect()
}

/// What is away, as the subject of a sentence.
fn subject(outage: &Outage) -> String {
    let job = || outage.jobs.first().map_or(String::new(), |it| shown(it));
    match outage.kind {
        OutageKind::Output => format!("output {}", shown(&outage.connection)),
        OutageKind::Repository => {
            format!("repository {} of job {}", shown(&outage.connection), job())
        }
        OutageKind::RunEnd => format!("the notifications of job {}", job()),
    }
}

/// An outage in a sentence: what, since when, why, and how much waits.
pub fn line(outage: &Outage, now_ms: i64) -> String {
    let since = date(outage.since_ms);
    let away = span(now_ms.saturating_sub(outage.since_ms).max(0));
    let tried = count(outage.attempts, "attempt");
    let least = if outage.waiting_more { "at least " } else { "" };
    let waiting = match outage.kind {
        OutageKind::Output => format!("{least}{} waiting", count(outage.waiting, "document")),
        OutageKind::Repository => {
            format!("its run waits, {} outstanding", count(outage.waiting, "document"))
        }
        OutageKind::RunEnd => "its run waits".to_owned(),
    };
    format!(
        "{} cannot be reached since {since} ({away}, {tried}): {}; {waiting}",
        subject(outage),
        shown(&outage.why)
    )
}

/// What is new since outages were last looked at.
#[derive(Default)]
pub struct News {
    /// What was said of each, by what is away.
    told: BTreeMap<String, Outage>,
}

impl News {
    /// The lines that tell of outages that began, changed or ended.
    pub fn lines(&mut self, found: Vec<Outage>, now_ms: i64) -> Vec<String> {
        let now: BTreeMap<String, Outage> =
            found.into_iter().map(|it| (subject(&it), it)).collect();
        let mut lines = Vec::new();
        for (subject, outage) in &now {
            let is_known = self.told.get(subject).is_some_and(|it| it.why == outage.why);
            if !is_known {
                lines.push(line(outage, now_ms));
            }
        }
        let over = self.told.keys().filter(|subject| !now.contains_key(*subject));
        lines.extend(over.map(|subject| format!("{subject} is not waited for any more")));
        self.told = now;
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(kind: OutageKind, why: &str) -> Outage {
        Outage {
            kind,
            connection: "copy".into(),
            jobs: vec!["docs".into()],
            since_ms: 1_000,
            tried_ms: 170_000,
            attempts: 5,
            why: why.into(),
            waiting: 12,
            waiting_more: false,
        }
    }

    #[test]
    fn an_outage_says_what_since_when_why_and_how_much_waits() {
        let said = line(&outage(OutageKind::Output, "connection refused"), 181_000);
        assert_eq!(
            said,
            "output copy cannot be reached since 1970-01-01 00:00 UTC (3 min, 5 attempts): \
             connection refused; 12 documents waiting"
        );
        let said = line(&outage(OutageKind::Repository, "not mounted\u{1b}"), 181_000);
        assert!(said.starts_with("repository copy of job docs cannot be reached"), "{said}");
        assert!(said.contains("not mounted\\u{1b}; its run waits"), "{said}");
    }

    #[test]
    fn the_log_tells_when_an_outage_begins_changes_and_ends() {
        let mut news = News::default();
        let away = |why: &str| vec![outage(OutageKind::Output, why)];
        let begins = news.lines(away("refused"), 2_000);
        assert!(begins.len() == 1 && begins[0].contains("refused"), "{begins:?}");
        assert_eq!(news.lines(away("refused"), 3_000), [] as [String; 0], "it was told");
        assert!(news.lines(away("no route"), 4_000)[0].contains("no route"));
        assert_eq!(news.lines(Vec::new(), 5_000), ["output copy is not waited for any more"]);
        assert_eq!(news.lines(Vec::new(), 6_000), [] as [String; 0]);
    }
}
