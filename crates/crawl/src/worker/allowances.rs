//! What continuous jobs may spend, as far as this process does it: kept in memory while
//! documents are looked at, and in the jobs' rows for whoever goes on with them.
//!
//! Invariants: a job that looks at nothing writes nothing; what a crash loses is what was
//! learned in the last moments, never a document.

use super::Worker;
use super::job::JobWork;
use crate::refetch::{Allowance, Refetch};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::ids::{JobId, Part};
use store::tables::job_states::refetch as learned;
use store::tables::{counters, queue};
use store::{Result, Tx};

/// What was learned is kept, and documents are counted, this often.
const KEEP_MS: i64 = 10_000;

/// The allowances of all jobs that have one.
#[derive(Default)]
pub struct Allowances {
    jobs: BTreeMap<JobId, Kept>,
}

struct Kept {
    allowance: RefCell<Allowance>,
    /// As it was when it was last kept, and when.
    saved: String,
    saved_ms: i64,
    fetches_per_day: i64,
}

/// Documents of a job, and those of them in the parts that are held here.
#[derive(Clone, Copy)]
struct Documents {
    all: i64,
    here: i64,
}

impl Allowances {
    /// A job's, if it has one.
    pub fn of(&self, job: JobId) -> Option<&RefCell<Allowance>> {
        self.jobs.get(&job).map(|kept| &kept.allowance)
    }
}

impl Worker {
    /// Takes up the allowances of jobs, and keeps what was learned.
    pub(super) fn look_at_allowances(&mut self, now_ms: i64) -> Result<()> {
        let works: Vec<Arc<JobWork>> = self.jobs.attended().cloned().collect();
        self.allowances.jobs.retain(|job, _| works.iter().any(|work| work.id == *job));
        for work in works {
            match self.look_at_allowance(&work, now_ms) {
                Err(error) if error.passes() => {}
                looked => looked?,
            }
        }
        Ok(())
    }

    fn look_at_allowance(&mut self, work: &JobWork, now_ms: i64) -> Result<()> {
        let (job, definition) = (work.id, &work.definition);
        let spends = definition.continuous && definition.refetch == Refetch::Estimate;
        let Some(fetches_per_day) = definition.fetches_per_day.filter(|_| spends) else {
            self.allowances.jobs.remove(&job);
            return Ok(());
        };
        let parts: Vec<Part> = self.parts.keys().copied().collect();
        let Some(kept) = self.allowances.jobs.get_mut(&job) else {
            let (saved, documents) = self.db.read(move |tx| {
                Ok((learned::load(tx, job)?.unwrap_or_default(), count(tx, job, &parts)?))
            })?;
            let mut allowance = Allowance::restore(&saved, fetches_per_day, documents.all);
            allowance.resize(fetches_per_day, documents.all, documents.here);
            let allowance = RefCell::new(allowance);
            let kept = Kept { allowance, saved, saved_ms: 0, fetches_per_day };
            self.allowances.jobs.insert(job, kept);
            return Ok(());
        };
        let text = kept.allowance.borrow().save();
        let is_news = text != kept.saved || kept.fetches_per_day != fetches_per_day;
        if !is_news || now_ms - kept.saved_ms < KEEP_MS {
            return Ok(());
        }
        let saved = text.clone();
        let documents = self.db.write(move |tx| {
            learned::save(tx, job, &text)?;
            count(tx, job, &parts)
        })?;
        kept.allowance.get_mut().resize(fetches_per_day, documents.all, documents.here);
        (kept.saved, kept.saved_ms, kept.fetches_per_day) = (saved, now_ms, fetches_per_day);
        Ok(())
    }
}

/// Counts the documents that are let in.
fn count(tx: &mut Tx<'_>, job: JobId, parts: &[Part]) -> Result<Documents> {
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
    Ok(Documents { all, here })
}
