//! What is said between a `crawl` and the process that holds its data directory and works on
//! all jobs there.
//!
//! `crawl` hands its request over and gets a ticket; then it asks for the progress of that
//! ticket until the run is over. Invariant: an answer is small and costs no look at the rows.

use ::crawl::begin::Begun;
use ::crawl::worker::progress::{HostTime, ProgressCounts};
use serde::{Deserialize, Serialize};
use store::ids::{JobId, Run};

/// The crawl was taken over.
#[derive(Clone, Serialize, Deserialize)]
pub struct HandoverAccepted {
    pub ticket: Ticket,
    /// The job's last run until now.
    pub run_before: i64,
    pub is_new_job: bool,
    /// What is different in the definitions now.
    pub changes: Vec<String>,
}

/// A crawl that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    pub job: i64,
    /// Counts the requests for the job.
    pub number: u64,
}

/// How far a crawl is.
#[derive(Serialize, Deserialize)]
pub struct HandedProgress {
    pub begin: RunStart,
    /// What the process did for the run.
    pub did: ProgressCounts,
    /// The hosts with the longest mean time of an answer.
    pub slowest: Vec<(String, HostTime)>,
}

/// How far the begin of its run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStart {
    /// The job is on its way.
    UnderWay,
    /// The run is under way, or over.
    Begun(BegunRun),
    /// It cannot be begun.
    Failed(String),
    /// The process knows nothing of this crawl: it is another one than before.
    Unknown,
}

/// A run that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunRun {
    pub run: i64,
    pub is_new: bool,
    pub was_paused: bool,
    pub let_in: u64,
}

impl BegunRun {
    /// What is told of a run that was begun.
    pub fn of(begun: &Begun) -> BegunRun {
        let Begun { run, is_new, was_paused, let_in, .. } = begun;
        BegunRun { run: run.0, is_new: *is_new, was_paused: *was_paused, let_in: *let_in }
    }

    /// The same for the process that asked.
    pub fn begun(&self, accepted: &HandoverAccepted) -> Begun {
        Begun {
            job: JobId(accepted.ticket.job),
            run: Run(self.run),
            is_new: self.is_new,
            is_new_job: accepted.is_new_job,
            was_paused: self.was_paused,
            let_in: self.let_in,
        }
    }
}
