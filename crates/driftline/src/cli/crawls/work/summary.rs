//! What came of working on all jobs: the runs that ended meanwhile, and what the process did.
//!
//! Invariant: whether something has failed is read from the rows of runs, not from what this
//! process has seen: others may have worked on them, before it or beside it.

use super::WorkOutcome;
use crate::text::{count, shown};
use ::crawl::worker::CrawlEnd;
use ::crawl::worker::progress::ProgressCounts;
use serde::Serialize;
use std::collections::BTreeMap;
use store::ids::{JobId, Run};
use store::tables::job_states::runs::{self, RunRow};
use store::tables::jobs::{self, Job};
use store::tables::{counters, ingests, overview};
use store::{Db, Result};

/// Jobs read at once.
const JOBS_STEP: u32 = 1_000;
/// Runs of a job that are looked at: those that ended with an error first.
const RUNS_MAX: u32 = 100;
/// Runs that failed and jobs with troubled outputs that are named to people.
const NAMED_MAX: usize = 20;

/// The last run of each job that had ended before.
pub struct RunsBefore(BTreeMap<JobId, Run>);

impl RunsBefore {
    /// Looks at all jobs.
    pub fn read(db: &Db) -> Result<RunsBefore> {
        let mut before = BTreeMap::new();
        for_each_job(db, |job| {
            let id = job.id;
            let last = db.read(move |tx| runs::last(tx, id, Run(i64::MAX), 1))?;
            if let Some(last) = last.first() {
                let is_over = last.ended_ms.is_some();
                before.insert(id, Run(if is_over { last.run } else { last.run - 1 }));
            }
            Ok(())
        })?;
        Ok(RunsBefore(before))
    }
}

fn for_each_job(db: &Db, mut take: impl FnMut(Job) -> Result<()>) -> Result<()> {
    let mut after = String::new();
    loop {
        let name = after.clone();
        let found = db.read(move |tx| jobs::list(tx, &name, JOBS_STEP))?;
        let Some(last) = found.last() else { return Ok(()) };
        after.clone_from(&last.name);
        found.into_iter().try_for_each(&mut take)?;
    }
}

/// What came of it.
#[derive(Serialize)]
pub struct WorkSummary {
    /// `idle` when nothing was left to do, `stopped` when somebody stopped it.
    ended: &'static str,
    /// Runs that ended meanwhile.
    runs: Vec<EndedRun>,
    /// How many of them failed.
    failed_runs: usize,
    /// What this process did.
    did: ProgressCounts,
    /// Documents that this process has given up.
    failed: u64,
    /// Jobs whose outputs have not taken everything.
    outputs: Vec<TroubledOutputs>,
    /// What was waited for at the end.
    waiting_for: Option<String>,
}

/// A run that ended.
#[derive(Debug, Serialize)]
struct EndedRun {
    job: String,
    run: i64,
    outcome: Option<String>,
    error: Option<String>,
    /// Whether an error aborted it, or nothing of what it tried could be had.
    failed: bool,
}

/// Documents that the outputs of a job have not taken.
#[derive(Debug, Serialize)]
struct TroubledOutputs {
    job: String,
    /// To be delivered still.
    undelivered: i64,
    /// Given up; `job retry` has them tried again.
    given_up: i64,
}

impl WorkSummary {
    /// Reads what there is to say.
    pub fn read(db: &Db, before: &RunsBefore, worked: WorkOutcome) -> Result<WorkSummary> {
        let (mut runs, mut outputs) = (Vec::new(), Vec::new());
        for_each_job(db, |job| {
            let after = before.0.get(&job.id).copied().unwrap_or(Run(0));
            let (found, troubled) = db.read(move |tx| {
                let mut found = Vec::new();
                for row in runs::ended_after(tx, job.id, after, RUNS_MAX)? {
                    let totals = overview::run_totals(tx, job.id, Run(row.run))?;
                    found.push(ended_run(&job.name, row, totals.is_in_vain()));
                }
                let undelivered = counters::total(tx, job.id, ingests::UNDELIVERED)?;
                let given_up = counters::total(tx, job.id, ingests::UNDELIVERABLE)?;
                let job = job.name.clone();
                Ok((found, TroubledOutputs { job, undelivered, given_up }))
            })?;
            runs.extend(found);
            outputs.extend(Some(troubled).filter(|it| it.undelivered + it.given_up > 0));
            Ok(())
        })?;
        let WorkOutcome { ended, did } = worked;
        Ok(WorkSummary {
            ended: if matches!(ended, CrawlEnd::Finished { .. }) { "idle" } else { "stopped" },
            failed_runs: runs.iter().filter(|run| run.failed).count(),
            runs,
            failed: did.failed(),
            waiting_for: did.waiting_for.clone(),
            did,
            outputs,
        })
    }

    /// Whether a run that ended meanwhile has failed.
    pub fn has_failed(&self) -> bool {
        self.failed_runs > 0
    }

    pub fn lines(&self) -> Vec<String> {
        let of = |number: usize, one| count(i64::try_from(number).unwrap_or(i64::MAX), one);
        let mut lines = vec![match self.failed_runs {
            0 => format!("{} ended", of(self.runs.len(), "run")),
            failed => format!("{} ended, {failed} of them failed", of(self.runs.len(), "run")),
        }];
        for run in self.runs.iter().filter(|run| run.failed).take(NAMED_MAX) {
            let why = run.error.as_deref().map_or("nothing could be fetched".to_owned(), shown);
            lines.push(format!("  job {}, run {} failed: {why}", shown(&run.job), run.run));
        }
        lines.push(format!(
            "documents: {} added, {} updated, {} removed, {} failed",
            self.did.added,
            self.did.updated,
            self.did.removed.values().sum::<u64>(),
            self.failed
        ));
        for it in self.outputs.iter().take(NAMED_MAX) {
            lines.push(format!(
                "  outputs of job {}: {} still to be delivered, {} given up",
                shown(&it.job),
                count(it.undelivered, "document"),
                it.given_up
            ));
        }
        if let Some(why) = &self.waiting_for {
            lines.push(format!("  waiting at the end: {}", shown(why)));
        }
        lines
    }
}

fn ended_run(job: &str, row: RunRow, is_in_vain: bool) -> EndedRun {
    let is_done = row.outcome.as_deref() == Some("done");
    // A run that is done may have an error, too: somebody could not be told of its end.
    let failed = (row.error.is_some() && !is_done) || (is_done && is_in_vain);
    EndedRun { job: job.to_owned(), run: row.run, outcome: row.outcome, error: row.error, failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcome: &str, error: Option<&str>, is_in_vain: bool) -> EndedRun {
        let row = RunRow {
            run: 3,
            kind: "full".into(),
            started_ms: 1,
            ended_ms: Some(2),
            outcome: Some(outcome.into()),
            error: error.map(str::to_owned),
        };
        ended_run("a\u{1b}[2J", row, is_in_vain)
    }

    #[test]
    fn an_error_or_a_run_in_vain_is_a_failure_and_what_somebody_aborted_is_none() {
        for (ended, failed) in [
            (run("done", None, false), false),
            (run("done", None, true), true),
            (run("done", Some("a mail could not be sent"), false), false),
            (run("aborted", Some("no disk"), false), true),
            (run("aborted", None, true), false),
        ] {
            assert_eq!(ended.failed, failed, "{ended:?}");
        }
    }

    #[test]
    fn a_summary_names_what_failed_and_which_outputs_are_in_trouble() {
        let runs = vec![run("aborted", Some("no disk"), false), run("done", None, false)];
        let trouble = TroubledOutputs { job: "docs".into(), undelivered: 1, given_up: 2 };
        let did = ProgressCounts { added: 5, updated: 1, ..ProgressCounts::default() };
        let (failed_runs, outputs) = (1, vec![trouble]);
        let waiting_for = Some("output copy".to_owned());
        let summary = WorkSummary {
            ended: "stopped",
            runs,
            failed_runs,
            did,
            failed: 0,
            outputs,
            waiting_for,
        };
        assert!(summary.has_failed());
        assert_eq!(
            summary.lines(),
            [
                "2 runs ended, 1 of them failed",
                "  job a\\u{1b}[2J, run 3 failed: no disk",
                "documents: 5 added, 1 updated, 0 removed, 0 failed",
                "  outputs of job docs: 1 document still to be delivered, 2 given up",
                "  waiting at the end: output copy",
            ]
        );
    }
}
