//! What jobs may do: how often they look at documents again, and how many of them may go at once.
//!
//! Invariant: no more documents leave at once, and no more are fetched in a day, than the job
//! allows.

use crate::job::JobWork;
use crate::refetch::Allowance;
use crate::worker::Worker;
use crate::worker::finish::allowances::{AllowanceStep, Allowances, DocumentCounts};
use crate::worker::finish::removal_gate::RemovalGate;
use std::cell::RefCell;
use std::sync::Arc;
use store::ids::{JobId, Part};
use store::tables::job_states::refetch as learned;
use store::tables::{counters, queue};
use store::{Db, Result, Tx};

pub struct JobLimits {
    allowances: Allowances,
    gate: RemovalGate,
}

impl JobLimits {
    pub fn new(db: Db) -> JobLimits {
        JobLimits { allowances: Allowances::default(), gate: RemovalGate::new(db) }
    }

    /// The fetches that a job may spend, if it has said how many.
    pub fn allowance(&self, job: JobId) -> Option<&RefCell<Allowance>> {
        self.allowances.of(job)
    }

    /// Decides which removals take effect at once.
    pub fn gate(&self) -> &RemovalGate {
        &self.gate
    }
}

impl Worker {
    /// Takes up the allowances of jobs, and keeps what was learned.
    pub(crate) fn look_at_allowances(&mut self, now_ms: i64) -> Result<()> {
        let jobs = &self.jobs;
        self.limits.allowances.retain(|job| jobs.is_attended(job));
        let works: Vec<Arc<JobWork>> = self.jobs.attended().cloned().collect();
        for work in works {
            match self.look_at_allowance(&work, now_ms) {
                Err(error) if error.passes() => {}
                looked => looked?,
            }
        }
        Ok(())
    }

    fn look_at_allowance(&mut self, work: &JobWork, now_ms: i64) -> Result<()> {
        let (job, parts) = (work.id, self.parts.parts().collect::<Vec<Part>>());
        match self.limits.allowances.look(work, now_ms) {
            AllowanceStep::Nothing => {}
            AllowanceStep::Restore { fetches_per_day } => {
                let (saved, documents) = self.deps.db.read(move |tx| {
                    Ok((learned::load(tx, job)?.unwrap_or_default(), count(tx, job, &parts)?))
                })?;
                self.limits.allowances.on_restored(job, saved, fetches_per_day, documents);
            }
            AllowanceStep::Save { learned: text, fetches_per_day } => {
                let saved = text.clone();
                let documents = self.deps.db.write(move |tx| {
                    learned::save(tx, job, &text)?;
                    count(tx, job, &parts)
                })?;
                let allowances = &mut self.limits.allowances;
                allowances.on_saved(job, saved, fetches_per_day, documents, now_ms);
            }
        }
        Ok(())
    }
}

/// Counts the documents that are let in.
fn count(tx: &mut Tx<'_>, job: JobId, parts: &[Part]) -> Result<DocumentCounts> {
    let let_in = |name: &str| {
        use queue::State::{Active, Done, Ready, Waiting};
        [Ready, Waiting, Active, Done].iter().any(|state| state.name() == name)
    };
    let sum = |counted: Vec<(String, i64)>| -> i64 {
        counted.into_iter().filter(|it| let_in(&it.0)).map(|it| it.1).sum()
    };
    let all = sum(counters::of_job(tx, job)?);
    let mut here = 0;
    for part in parts {
        here += sum(counters::in_part(tx, *part, job)?);
    }
    Ok(DocumentCounts { all, here })
}
