//! What is wanted of jobs, read from their definitions once for each version of them.
//!
//! Invariant: what a job says now counts, and that is asked once for each batch; a job that is
//! gone says nothing, and that is asked every time.

use std::collections::{HashMap, HashSet};
use store::ids::JobId;
use store::tables::jobs::{self, Job};
use store::{Db, Result};

/// Jobs that are remembered.
const JOBS_MAX: usize = 1_000;

/// What was read, of each job with the version it was read from.
pub struct PerJob<T> {
    cached: HashMap<JobId, (i64, T)>,
    /// Jobs that were asked in this batch.
    checked: HashSet<JobId>,
}

/// A job as it is defined now.
#[allow(missing_docs)]
pub struct DefinedJob<'a> {
    pub job: &'a Job,
    /// Whether it says what it said when it was made.
    pub is_first: bool,
}

impl<T> Default for PerJob<T> {
    fn default() -> PerJob<T> {
        PerJob { cached: HashMap::new(), checked: HashSet::new() }
    }
}

impl<T: Copy> PerJob<T> {
    /// A batch begins: jobs may have changed.
    pub fn begin(&mut self) {
        self.checked.clear();
    }

    /// What is wanted of a job; `read` finds it in its definition, if there is one.
    pub fn of(
        &mut self,
        db: &Db,
        job: JobId,
        read: impl FnOnce(Option<DefinedJob<'_>>) -> Result<T>,
    ) -> Result<T> {
        if let Some((_, wanted)) = self.cached.get(&job).filter(|_| self.checked.contains(&job)) {
            return Ok(*wanted);
        }
        let version = db.read(move |tx| jobs::version(tx, job))?;
        let cached = self.cached.get(&job).filter(|(cached, _)| version == Some(*cached));
        if let Some((_, wanted)) = cached {
            self.checked.insert(job);
            return Ok(*wanted);
        }
        let found = db.read(move |tx| jobs::load(tx, job))?;
        let is_first = version == Some(1);
        let wanted = read(found.as_ref().map(|job| DefinedJob { job, is_first }))?;
        if self.cached.len() >= JOBS_MAX {
            self.cached.clear();
        }
        if let Some(version) = version {
            self.cached.insert(job, (version, wanted));
            self.checked.insert(job);
        }
        Ok(wanted)
    }
}
