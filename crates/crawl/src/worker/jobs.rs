//! The jobs that a worker attends to, and those that it attended to and still has work of.
//!
//! Also what was left of a run when it was last asked whether it is over: a run is given up only
//! if another look finds as much left as the one before.
//! Invariants: a job is attended or former, never both; a former job stays until nothing of it is
//! uncommitted.

use crate::conduct::Attends;
use crate::job::JobWork;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::ids::JobId;
use store::tables::job_states::AttendedJob;

/// The jobs of a worker.
pub(super) struct JobSet {
    attends: Attends,
    /// When the worker began.
    began_ms: i64,
    attended: BTreeMap<JobId, Arc<JobWork>>,
    /// Jobs that nobody attends to any more; something of them may be uncommitted.
    former: BTreeMap<JobId, Arc<JobWork>>,
    /// Documents that the last look for an end found to be left, of each job.
    left: BTreeMap<JobId, i64>,
    /// Documents that were left when the last of them were given up, of each job.
    given_up: BTreeMap<JobId, i64>,
}

/// What is done about documents that are left, and that nobody can do anything for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// Others may have added some of them since: another look tells.
    LookAgain,
    /// They are given up, as far as the tables know them to be out of reach.
    GiveUp,
    /// The first attempt has changed nothing: all of them are given up.
    GiveUpAll,
}

impl JobSet {
    /// A worker that begins has no job yet.
    pub fn new(attends: Attends, began_ms: i64) -> JobSet {
        let (attended, former) = (BTreeMap::new(), BTreeMap::new());
        let (left, given_up) = (BTreeMap::new(), BTreeMap::new());
        JobSet { attends, began_ms, attended, former, left, given_up }
    }

    /// Which jobs it attends to.
    pub fn attends(&self) -> Attends {
        self.attends
    }

    /// What nobody answered before this time is asked again: a run begins by itself, and
    /// one that somebody goes on with begins with that.
    pub fn asks_again_before_ms(&self, job: &JobWork) -> i64 {
        match self.attends {
            Attends::One(one) if one == job.id => job.began_ms.max(self.began_ms),
            _ => job.began_ms,
        }
    }

    /// Whether a job goes on for ever, and so its documents leave the queue now and then.
    pub fn has_continuous(&self) -> bool {
        self.attended().any(|work| work.definition.continuous)
    }

    /// A job that is attended to.
    pub fn get(&self, job: JobId) -> Option<&Arc<JobWork>> {
        self.attended.get(&job)
    }

    /// A job, whether it is attended to or was.
    pub fn get_any(&self, job: JobId) -> Option<&Arc<JobWork>> {
        self.get(job).or_else(|| self.former.get(&job))
    }

    pub fn is_attended(&self, job: JobId) -> bool {
        self.attended.contains_key(&job)
    }

    pub fn is_former(&self, job: JobId) -> bool {
        self.former.contains_key(&job)
    }

    /// Those that are attended to.
    pub fn attended(&self) -> impl Iterator<Item = &Arc<JobWork>> {
        self.attended.values()
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<JobWork>> {
        self.attended.values().chain(self.former.values())
    }

    pub fn is_empty(&self) -> bool {
        self.attended.is_empty() && self.former.is_empty()
    }

    /// Jobs that are not among those to be attended to are former ones from here on, and are told
    /// to stop. Returns them.
    pub fn retire_missing(&mut self, attended: &[AttendedJob]) -> Vec<JobId> {
        let is_missing = |work: &Arc<JobWork>| !attended.iter().any(|it| work.is(it));
        let missing: Vec<JobId> =
            self.attended.values().filter(|work| is_missing(work)).map(|work| work.id).collect();
        for job in &missing {
            if let Some(work) = self.attended.remove(job) {
                work.interrupt();
                self.former.insert(*job, work);
            }
        }
        missing
    }

    /// A job is attended to as it is defined now.
    pub fn attend(&mut self, work: JobWork) {
        self.former.remove(&work.id);
        let before = self.attended.insert(work.id, Arc::new(work));
        // What it is told now is not what is under way.
        before.iter().for_each(|it| it.interrupt());
    }

    /// Forgets former jobs of which nothing is left.
    pub fn forget_former(&mut self, has_work: impl Fn(JobId) -> bool) {
        self.former.retain(|job, _| has_work(*job));
    }

    /// What was left of a job at the last look, which is forgotten with that.
    pub fn take_left(&mut self, job: JobId) -> Option<i64> {
        self.left.remove(&job)
    }

    /// So many documents of a job are left, and there were `before` at the last look.
    pub fn on_idle(&mut self, job: JobId, before: Option<i64>, left: i64) -> Idle {
        if before != Some(left) {
            self.left.insert(job, left);
            return Idle::LookAgain;
        }
        match self.given_up.insert(job, left) == Some(left) {
            true => Idle::GiveUpAll,
            false => Idle::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixture::{JOB, attended, work};

    #[test]
    fn a_job_that_nobody_attends_to_stays_until_nothing_of_it_is_left() {
        let mut jobs = JobSet::new(Attends::All, 0);
        jobs.attend(work(1));
        assert_eq!(jobs.retire_missing(&[attended(1)]), []);
        assert_eq!(jobs.retire_missing(&[attended(2)]), [JOB], "that is another run of it");
        assert!(jobs.is_former(JOB) && !jobs.is_attended(JOB));
        assert!(jobs.get(JOB).is_none() && jobs.get_any(JOB).is_some());
        jobs.forget_former(|_| true);
        assert!(!jobs.is_empty());
        jobs.attend(work(2));
        assert!(jobs.is_attended(JOB) && !jobs.is_former(JOB), "never both");
        jobs.retire_missing(&[]);
        jobs.forget_former(|_| false);
        assert!(jobs.is_empty());
    }

    #[test]
    fn what_nobody_answered_is_asked_again_by_a_run_that_begins_or_goes_on() {
        let mut job = work(1);
        job.began_ms = 500;
        for (attends, expected) in [(Attends::All, 500), (Attends::One(JOB), 900)] {
            assert_eq!(JobSet::new(attends, 900).asks_again_before_ms(&job), expected);
        }
    }

    #[test]
    fn documents_are_given_up_only_when_two_looks_find_as_many() {
        let mut jobs = JobSet::new(Attends::All, 0);
        let mut look = |left: i64| {
            let before = jobs.take_left(JOB);
            jobs.on_idle(JOB, before, left)
        };
        assert_eq!([look(3), look(2)], [Idle::LookAgain; 2], "somebody has done one of them");
        assert_eq!(look(2), Idle::GiveUp);
        assert_eq!([look(2), look(2)], [Idle::LookAgain, Idle::GiveUpAll]);
        assert_eq!(look(2), Idle::LookAgain);
        // An attempt that ends before it looks forgets what was left.
        assert_eq!(jobs.take_left(JOB), Some(2));
        assert_eq!(jobs.take_left(JOB), None);
    }
}
