//! What is wanted of jobs, read from their definitions once for each version of them.
//!
//! Invariant: what a job says now counts; a job that is gone says nothing, and that is asked
//! every time.

use std::collections::HashMap;
use store::ids::JobId;
use store::tables::jobs::{self, Job};
use store::{Db, Result};

/// Jobs that are remembered.
const JOBS_MAX: usize = 1_000;

/// What was read, of each job with the version it was read from.
pub struct PerJob<T> {
    known: HashMap<JobId, (i64, T)>,
}

impl<T> Default for PerJob<T> {
    fn default() -> PerJob<T> {
        PerJob { known: HashMap::new() }
    }
}

impl<T: Copy> PerJob<T> {
    /// What is wanted of a job; `read` finds it in its definition, if there is one.
    pub fn of(
        &mut self,
        db: &Db,
        job: JobId,
        read: impl FnOnce(Option<&Job>) -> Result<T>,
    ) -> Result<T> {
        let version = db.read(move |tx| jobs::version(tx, job))?;
        let known = self.known.get(&job).filter(|(known, _)| version == Some(*known));
        if let Some((_, wanted)) = known {
            return Ok(*wanted);
        }
        let found = db.read(move |tx| jobs::load(tx, job))?;
        let wanted = read(found.as_ref())?;
        if self.known.len() >= JOBS_MAX {
            self.known.clear();
        }
        if let Some(version) = version {
            self.known.insert(job, (version, wanted));
        }
        Ok(wanted)
    }
}
