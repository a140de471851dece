//! What continuous jobs may spend, as far as this process does it: kept in memory while
//! documents are looked at, and in the jobs' rows for whoever goes on with them.
//!
//! Invariants: a job that looks at nothing writes nothing; what a crash loses is what was
//! learned in the last moments, never a document.

use crate::job::JobWork;
use crate::refetch::{Allowance, Refetch};
use std::cell::RefCell;
use std::collections::BTreeMap;
use store::ids::JobId;

/// What was learned is kept, and documents are counted, this often.
const KEEP_MS: i64 = 10_000;

/// The allowances of all jobs that have one.
#[derive(Default)]
pub struct Allowances {
    jobs: BTreeMap<JobId, SavedAllowance>,
}

struct SavedAllowance {
    allowance: RefCell<Allowance>,
    /// As it was when it was last kept, and when.
    saved: String,
    saved_ms: i64,
    fetches_per_day: i64,
}

/// Documents of a job, and those of them in the parts that are held here.
#[derive(Debug, Clone, Copy)]
pub struct DocumentCounts {
    pub all: i64,
    pub here: i64,
}

/// What a look at the allowance of a job leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum AllowanceStep {
    Nothing,
    /// What was learned before is read, and its documents are counted.
    Restore {
        fetches_per_day: i64,
    },
    /// This was learned: it is kept, and documents are counted again.
    Save {
        learned: String,
        fetches_per_day: i64,
    },
}

impl Allowances {
    pub fn of(&self, job: JobId) -> Option<&RefCell<Allowance>> {
        self.jobs.get(&job).map(|kept| &kept.allowance)
    }

    /// Forgets the allowances of jobs that nobody works on any more.
    pub fn retain(&mut self, is_attended: impl Fn(JobId) -> bool) {
        self.jobs.retain(|job, _| is_attended(*job));
    }

    /// Looks at a job's allowance; one that says nothing of its fetches has none.
    pub fn look(&mut self, work: &JobWork, now_ms: i64) -> AllowanceStep {
        let definition = &work.definition;
        let spends = definition.continuous && definition.refetch == Refetch::Estimate;
        let Some(fetches_per_day) = definition.fetches_per_day.filter(|_| spends) else {
            self.jobs.remove(&work.id);
            return AllowanceStep::Nothing;
        };
        let Some(kept) = self.jobs.get(&work.id) else {
            return AllowanceStep::Restore { fetches_per_day };
        };
        let learned = kept.allowance.borrow().save();
        let is_news = learned != kept.saved || kept.fetches_per_day != fetches_per_day;
        if !is_news || now_ms - kept.saved_ms < KEEP_MS {
            return AllowanceStep::Nothing;
        }
        AllowanceStep::Save { learned, fetches_per_day }
    }

    /// This is what was learned before.
    pub fn on_restored(
        &mut self,
        job: JobId,
        saved: String,
        fetches_per_day: i64,
        documents: DocumentCounts,
    ) {
        let mut allowance = Allowance::restore(&saved, fetches_per_day, documents.all);
        allowance.resize(fetches_per_day, documents.all, documents.here);
        let allowance = RefCell::new(allowance);
        self.jobs.insert(job, SavedAllowance { allowance, saved, saved_ms: 0, fetches_per_day });
    }

    /// What was learned until now is kept.
    pub fn on_saved(
        &mut self,
        job: JobId,
        learned: String,
        fetches_per_day: i64,
        documents: DocumentCounts,
        now_ms: i64,
    ) {
        let Some(kept) = self.jobs.get_mut(&job) else { return };
        kept.allowance.get_mut().resize(fetches_per_day, documents.all, documents.here);
        (kept.saved, kept.saved_ms, kept.fetches_per_day) = (learned, now_ms, fetches_per_day);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixture::{JOB, work};

    const DOCUMENTS: DocumentCounts = DocumentCounts { all: 100, here: 50 };

    fn spending(fetches_per_day: Option<i64>) -> JobWork {
        let mut work = work(1);
        work.definition.continuous = true;
        work.definition.refetch = Refetch::Estimate;
        work.definition.fetches_per_day = fetches_per_day;
        work
    }

    #[test]
    fn an_allowance_is_read_once_and_kept_now_and_then_when_there_is_news() {
        let mut allowances = Allowances::default();
        let job = spending(Some(1_000));
        let restore = AllowanceStep::Restore { fetches_per_day: 1_000 };
        assert_eq!(allowances.look(&job, 0), restore);
        assert!(allowances.of(JOB).is_none());
        allowances.on_restored(JOB, String::new(), 1_000, DOCUMENTS);
        assert!(allowances.of(JOB).is_some());
        let more = spending(Some(2_000));
        let step = allowances.look(&more, KEEP_MS);
        let AllowanceStep::Save { learned, fetches_per_day: 2_000 } = step else {
            panic!("{step:?}");
        };
        allowances.on_saved(JOB, learned, 2_000, DOCUMENTS, KEEP_MS);
        assert_eq!(
            allowances.look(&spending(Some(3_000)), 2 * KEEP_MS - 1),
            AllowanceStep::Nothing
        );
        assert_ne!(allowances.look(&spending(Some(3_000)), 2 * KEEP_MS), AllowanceStep::Nothing);
    }

    #[test]
    fn a_job_that_says_nothing_of_its_fetches_has_no_allowance() {
        let mut allowances = Allowances::default();
        allowances.on_restored(JOB, String::new(), 1_000, DOCUMENTS);
        assert_eq!(allowances.look(&spending(None), 0), AllowanceStep::Nothing);
        assert!(allowances.of(JOB).is_none());
        allowances.on_restored(JOB, String::new(), 1_000, DOCUMENTS);
        allowances.retain(|_| false);
        assert!(allowances.of(JOB).is_none());
    }
}
