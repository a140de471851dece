//! Patterns of pages that look endless and are followed no further, for the
//! verbs that tell of them.
//!
//! Invariant: what is told comes from the rows that the crawl itself goes by.

use crate::text::shown;
use ::crawl::budget::ClosedPattern;
use page::domain::SuffixList;
use page::ids::bin_of;
use serde::{Deserialize, Serialize};
use store::ids::{BinId, JobId, Part};
use store::tables::jobs;
use store::tables::traps::{self, TrapRow};
use store::{Result, Tx};

/// Patterns of one job, or of one host in one job, that are told of.
const PATTERNS_MAX: u32 = 10;
/// Jobs that are looked at for a host.
const JOBS_MAX: u32 = 100;

/// A pattern that is followed no further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Endless {
    pub job: String,
    pub pattern: String,
    /// The code of the rule.
    pub rule: String,
    /// Documents of it that were fetched.
    pub documents: i64,
    /// The rule in words.
    pub because: String,
}

impl Endless {
    fn of(job: &str, row: &TrapRow) -> Option<Endless> {
        let closed = ClosedPattern::of(row)?;
        Some(Endless {
            job: job.to_owned(),
            because: closed.explain(),
            pattern: closed.pattern,
            rule: closed.rule.code().to_owned(),
            documents: closed.documents,
        })
    }

    pub fn line(&self) -> String {
        format!("no longer followed: {}", shown(&self.because))
    }
}

/// The largest of a job.
pub fn of_job(tx: &mut Tx<'_>, job: JobId, name: &str) -> Result<Vec<Endless>> {
    let rows = traps::closed(tx, job, PATTERNS_MAX)?;
    Ok(rows.iter().filter_map(|(row, _)| Endless::of(name, row)).collect())
}

/// Those of a host and of its domain, in all jobs.
pub fn of_host(
    tx: &mut Tx<'_>,
    part: Part,
    host: &str,
    suffixes: &SuffixList,
) -> Result<Vec<Endless>> {
    let mut names = vec![host, suffixes.grouping_domain(host)];
    names.dedup();
    let mut found = Vec::new();
    for job in jobs::list(tx, "", JOBS_MAX)? {
        for name in &names {
            let bin = BinId(bin_of(name));
            let rows = traps::closed_in(tx, part, job.id, bin, PATTERNS_MAX)?;
            found.extend(rows.iter().filter_map(|row| Endless::of(&job.name, row)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::ConnectionId;
    use store::tables::jobs::Job;
    use store::testing::both_databases;

    fn row(name: &str, pattern: &str, rule: Option<&str>) -> TrapRow {
        TrapRow {
            job: JobId(1),
            bin: BinId(bin_of(name)),
            pattern: pattern.into(),
            documents: 512,
            stale: 500,
            deep: 0,
            suspects: 0,
            recent_stale: 990_000,
            recent_alike: 990_000,
            rule: rule.map(str::to_owned),
            outside: 0,
            bytes: 0,
        }
    }

    #[test]
    fn a_job_and_a_host_tell_what_is_closed_and_why() {
        both_databases(|db| {
            let job = Job::new(JobId(1), "site", ConnectionId(1));
            db.write(move |tx| jobs::save(tx, &job, 1))?;
            let rows = [
                row("www.a.example", "www.a.example/cal/#", Some("stale")),
                row("www.a.example", "www.a.example/open/#", None),
                row("www.a.example", "www.a.example/odd/#", Some("of a newer program")),
                row("a.example", "*.a.example", Some("hosts")),
                row("b.example", "b.example/x/#", Some("alike")),
            ];
            db.write(move |tx| traps::save(tx, Part(0), &rows, 9))?;
            let told = |found: Vec<Endless>| -> Vec<(String, String)> {
                found.into_iter().map(|it| (it.pattern, it.rule)).collect()
            };
            let suffixes = SuffixList::bundled();
            let host = db.read(move |tx| of_host(tx, Part(0), "www.a.example", suffixes))?;
            assert!(host[0].line().contains("512 pages like www.a.example/cal/#"));
            assert_eq!(
                told(host),
                [
                    ("www.a.example/cal/#".into(), "stale".into()),
                    ("*.a.example".into(), "hosts".into())
                ]
            );
            let whole = told(db.read(|tx| of_job(tx, JobId(1), "site"))?);
            assert_eq!(whole.len(), 3, "{whole:?}");
            Ok(())
        });
    }
}
