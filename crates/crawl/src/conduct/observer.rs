//! Whoever reacts to what a crawl does: outputs and notifications, which it does not know.

use crate::lifecycle::JobEvent;
use store::Result;
use store::ids::JobId;
use store::tables::job_states::{JobState, Phase};
use store::tables::notifications::Occasion;

/// Reacts to what happens in a crawl.
pub trait Observer: Send + Sync {
    /// Something was committed: a chunk for whoever consumes chunks.
    fn on_commit(&self);

    /// A commit has decided what outputs must hear.
    fn on_decisions(&self);

    /// A run of a job is over. An error says that somebody could not be told; if it passes,
    /// they are told again.
    fn on_run_end(&self, job: JobId) -> Result<()>;

    /// Something has happened to a job that people may want to know. This takes no time
    /// and cannot fail: no job waits for it.
    fn on_event(&self, _job: JobId, _occasion: Occasion, _state: &JobState) {}
}

/// What people may want to know of an event that led to a state: that a job has come to
/// rest, and why.
pub(super) fn occasion(event: &JobEvent, now: &JobState) -> Option<Occasion> {
    match (event, now.phase) {
        (JobEvent::CleanedUp, _) => Some(Occasion::End),
        (JobEvent::RemovalsHeld, _) => Some(Occasion::RemovalsHeld),
        (JobEvent::Quiet, Phase::ReadyForStartup) => Some(Occasion::Restart),
        (JobEvent::Quiet, Phase::ReadyForNotify) if now.error.is_some() => {
            Some(Occasion::ErrorAbort)
        }
        (JobEvent::Quiet, Phase::ReadyForNotify) => Some(Occasion::ManualAbort),
        (JobEvent::Quiet, Phase::Active) if now.paused => Some(Occasion::ManualPause),
        (JobEvent::Quiet, Phase::Active) if now.waiting => Some(Occasion::SchedulePause),
        _ => None,
    }
}

/// Nobody is told: there are no outputs.
pub struct NoObserver;

impl Observer for NoObserver {
    fn on_commit(&self) {}

    fn on_decisions(&self) {}

    fn on_run_end(&self, _job: JobId) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::after;
    use store::ids::NodeId;
    use store::tables::job_states::RunKind;

    /// What is told along a job's way.
    fn occasions(events: &[JobEvent]) -> Vec<&'static str> {
        let (mut state, mut occasions) = (JobState::default(), Vec::new());
        for event in events {
            state =
                after(&state, event, 5).unwrap_or_else(|refused| panic!("{event:?}: {refused}"));
            occasions.extend(occasion(event, &state).map(Occasion::name));
        }
        occasions
    }

    #[test]
    fn each_of_the_seven_occasions_is_told_once() {
        let node = NodeId(1);
        let start = [
            JobEvent::Start { minimal: false },
            JobEvent::StartupBegins { node, kind: RunKind::Full },
            JobEvent::StartupDone { seeding_version: None, reseed_ms: None },
        ];
        let then = |more: &[JobEvent]| occasions(&[&start[..], more].concat());
        assert_eq!(then(&[JobEvent::QueueDone, JobEvent::CleanedUp]), ["end"]);
        let held = [JobEvent::QueueDone, JobEvent::RemovalsHeld, JobEvent::CleanedUp];
        assert_eq!(then(&held), ["removals-held", "end"]);
        assert_eq!(then(&[JobEvent::Abort, JobEvent::Quiet]), ["manual abort"]);
        assert_eq!(then(&[JobEvent::Fail("x".into()), JobEvent::Quiet]), ["error abort"]);
        assert_eq!(then(&[JobEvent::Restart { minimal: false }, JobEvent::Quiet]), ["restart"]);
        let paused = [JobEvent::Pause, JobEvent::Quiet, JobEvent::Resume, JobEvent::Resumed];
        assert_eq!(then(&paused), ["manual pause"]);
        let window = [
            JobEvent::WindowCloses,
            JobEvent::Quiet,
            JobEvent::WindowOpens { window_end_ms: None },
        ];
        assert_eq!(then(&window), ["schedule pause"]);
        // One that has stopped already has nothing new to tell.
        let both = [JobEvent::WindowCloses, JobEvent::Quiet, JobEvent::Pause];
        assert_eq!(then(&both), ["schedule pause"]);
    }
}
