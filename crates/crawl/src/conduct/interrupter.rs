//! Ends a seeding early, when its job is aborted or paused or the process ends.
//!
//! Invariant: a repository is interrupted whether it is asked before or after the interrupt.

use crate::job::JobWork;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::tables::job_states::{JobState, Phase};

/// Shared by whoever seeds a job and whoever may have to end that.
#[derive(Clone, Default)]
pub struct Interrupter(Arc<Mutex<SeedingRun>>);

#[derive(Default)]
struct SeedingRun {
    is_interrupted: bool,
    /// The job whose repository is asked.
    work: Option<Arc<JobWork>>,
}

impl Interrupter {
    fn lock(&self) -> MutexGuard<'_, SeedingRun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job's repository is about to be asked.
    pub fn watch(&self, work: &Arc<JobWork>) {
        let mut seeding = self.lock();
        if seeding.is_interrupted {
            work.interrupt();
        }
        seeding.work = Some(work.clone());
    }

    /// Ends what is under way.
    pub fn interrupt(&self) {
        let mut seeding = self.lock();
        seeding.is_interrupted = true;
        if let Some(work) = &seeding.work {
            work.interrupt();
        }
    }

    /// Whether that has happened.
    pub fn is_interrupted(&self) -> bool {
        self.lock().is_interrupted
    }
}

/// Whether a job is not to be seeded any more, or not now.
pub fn is_to_end(state: &JobState) -> bool {
    match state.phase {
        Phase::Aborting => true,
        Phase::Active => state.paused || state.waiting,
        _ => false,
    }
}
