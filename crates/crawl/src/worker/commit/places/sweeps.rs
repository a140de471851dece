//! What is swept of a job in a part: what is to leave it, and what is given up for a run.
//!
//! Invariant: that nothing is to be swept is known only of the job as it is now.

use super::{OlderWalk, PlaceWork, Places};
use crate::job::{JobMode, JobWork};
use store::ids::{JobId, QueueId};
use store::tables::queue::Place;
use store::tables::queue::sweep::Sweep;

/// What is known of documents that are to leave.
#[derive(Debug, Default)]
pub(super) struct SweepState {
    /// There was nothing to sweep when it was last asked.
    is_done: bool,
    /// What can only be looked at after this time is given up for this run.
    pub(super) gives_up_ms: Option<i64>,
    /// Counts how often the job has changed: what was asked before is out of date.
    version: u64,
}

/// A question whether there is something to sweep, of a job as it was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepQuestion(u64);

impl SweepState {
    pub(super) fn question(&self) -> SweepQuestion {
        SweepQuestion(self.version)
    }
}

impl PlaceWork {
    /// The job is not what it was: what is swept of it is asked anew.
    fn ask_sweep_anew(&mut self) {
        self.sweep.is_done = false;
        self.sweep.version += 1;
    }
}

impl Places {
    /// What of a job in a part is to be swept, as far as anybody knows.
    pub fn sweep(&self, place: Place, work: &JobWork) -> Option<Sweep> {
        let state = &self.get(place)?.sweep;
        if state.is_done {
            return None;
        }
        match work.mode {
            JobMode::Sweep(sweep) => Some(sweep),
            JobMode::Crawl => {
                let left = state.gives_up_ms.map(|horizon_ms| Sweep::Left { horizon_ms });
                left.or_else(|| work.released_removals())
            }
        }
    }

    /// A turn has claimed what it found to be swept.
    pub fn on_swept(&mut self, place: Place, question: SweepQuestion, found: &[QueueId]) {
        let work = self.place(place);
        // A turn from before the job changed has not seen what is to be swept since then.
        let is_current = question == work.sweep.question();
        work.sweep.is_done = found.is_empty() && is_current;
        if work.sweep.is_done {
            work.sweep.gives_up_ms = None;
        }
        work.active.extend(found);
    }

    /// Gives up what can only be looked at after a time.
    pub fn give_up(&mut self, place: Place, horizon_ms: i64) {
        let work = self.place(place);
        work.sweep.gives_up_ms = Some(horizon_ms);
        work.ask_sweep_anew();
    }

    /// A job is defined anew.
    pub fn on_job_changed(&mut self, job: JobId) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.1 == job) {
            place.sweep.version += 1;
        }
    }

    /// More removals of a job are released.
    pub fn on_released(&mut self, job: JobId) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.1 == job) {
            place.ask_sweep_anew();
        }
    }

    /// Another run of a job has its own documents to look at again, and to sweep.
    pub fn on_run(&mut self, job: JobId) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.1 == job) {
            (place.older, place.is_unscheduled) = (OlderWalk::Unknown, false);
            place.sweep.gives_up_ms = None;
            place.ask_sweep_anew();
        }
    }
}
