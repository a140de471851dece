//! What is decided about removals that are marked, and what that makes of a job.
//!
//! Pure. Invariants: every decision ends a round, so that it never covers marks that come
//! after it; marks that were held are swept only when a person has approved them.

use super::{EventRefusal, JobEvent, refuse};
use store::tables::job_states::{JobState, Phase};

/// Takes a decision in.
pub(super) fn decide(
    next: &mut JobState,
    event: &JobEvent,
    now_ms: i64,
) -> Result<(), EventRefusal> {
    let runs = matches!(next.phase, Phase::Active | Phase::ShuttingDown);
    match event {
        JobEvent::RemovalsReleased if runs => {
            next.removals.released = next.removals.current;
            next.removals.current += 1;
            (next.removals.held, next.removals.held_ms) = (0, None);
        }
        JobEvent::RemovalsHeld if runs => {
            next.removals.held = next.removals.current;
            next.removals.current += 1;
            next.removals.held_ms.get_or_insert(now_ms);
        }
        JobEvent::ApproveRemovals => approve(next)?,
        JobEvent::RemovalsRejected if next.removals.held_ms.is_some() => {
            (next.removals.held, next.removals.held_ms) = (0, None);
        }
        JobEvent::RemovalsRejected => return refuse(next, "none of its removals are held"),
        _ => return refuse(next, "that does not concern it now"),
    }
    Ok(())
}

fn approve(next: &mut JobState) -> Result<(), EventRefusal> {
    if next.removals.held_ms.is_none() {
        return refuse(next, "none of its removals are held");
    }
    match next.phase {
        // Nothing runs that could sweep them: the job does, and nothing else.
        Phase::Inactive => {
            next.phase = Phase::ShuttingDown;
            next.removals.only = true;
        }
        Phase::ReadyForDelete
        | Phase::DeleteStartingUp
        | Phase::Deleting
        | Phase::ReadyForDeleteNotify
        | Phase::NotifyingOfDeletion => return refuse(next, "it is being deleted"),
        // The run that is under way sweeps them at its end, if it does not find them again.
        _ => {}
    }
    (next.removals.released, next.removals.approved) = (next.removals.held, next.removals.held);
    (next.removals.held, next.removals.held_ms) = (0, None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::after;
    use super::*;
    use store::ids::NodeId;
    use store::tables::job_states::{RemovalRounds, RunKind};

    /// Where a job stands after these events, each of which must be possible.
    fn told(mut state: JobState, events: &[JobEvent]) -> JobState {
        for event in events {
            state = after(&state, event, 5).unwrap_or_else(|it| panic!("{event:?}: {it}"));
        }
        state
    }

    fn ending() -> JobState {
        let begins = JobEvent::StartupBegins { node: NodeId(1), kind: RunKind::Full };
        let done = JobEvent::StartupDone { seeding_version: None, reseed_ms: None };
        let start = JobEvent::Start { minimal: false };
        told(JobState::default(), &[start, begins, done, JobEvent::QueueDone])
    }

    fn rests(state: JobState) -> JobState {
        let node = NodeId(1);
        told(state, &[JobEvent::NotifyBegins { node }, JobEvent::NotifyDone { error: None }])
    }

    #[test]
    fn every_decision_ends_a_round() {
        let released = told(ending(), &[JobEvent::RemovalsReleased]).removals;
        assert_eq!((released.released, released.current), (1, 2));
        let held = told(ending(), &[JobEvent::RemovalsHeld]).removals;
        assert_eq!((held.held, held.held_ms, held.current), (1, Some(5), 2));
        let more = told(ending(), &[JobEvent::RemovalsHeld, JobEvent::RemovalsHeld]).removals;
        assert_eq!((more.held, more.current, more.released), (2, 3, 0));
    }

    #[test]
    fn an_approval_sweeps_what_is_held_and_nothing_else() {
        let held = rests(told(ending(), &[JobEvent::RemovalsHeld, JobEvent::CleanedUp]));
        assert_eq!(held.name(), "INACTIVE");
        let approved = told(held.clone(), &[JobEvent::ApproveRemovals]);
        assert_eq!(approved.name(), "SHUTTINGDOWN");
        let RemovalRounds { released, approved: by_person, only, held_ms, .. } = approved.removals;
        assert_eq!((released, by_person, only, held_ms), (1, 1, true, None));
        let over = told(approved.clone(), &[JobEvent::CleanedUp]);
        assert!(!over.removals.only, "{over:?}");
        // Another run may begin before, and sweeps it at its end.
        let begins = JobEvent::StartupBegins { node: NodeId(1), kind: RunKind::Full };
        let next = told(approved, &[JobEvent::Start { minimal: false }, begins]);
        assert_eq!((next.removals.released, next.removals.only), (1, false));
        assert!(after(&over, &JobEvent::ApproveRemovals, 6).is_err(), "nothing is held");
        let deleted = told(held, &[JobEvent::Delete]);
        assert!(after(&deleted, &JobEvent::ApproveRemovals, 6).is_err(), "all of it goes");
    }

    #[test]
    fn a_release_that_was_not_carried_out_is_judged_again_by_the_next_run() {
        let aborted =
            told(ending(), &[JobEvent::RemovalsReleased, JobEvent::Abort, JobEvent::Quiet]);
        let begins = JobEvent::StartupBegins { node: NodeId(1), kind: RunKind::Full };
        let next = told(rests(aborted), &[JobEvent::Start { minimal: false }, begins]);
        assert_eq!((next.removals.released, next.removals.current), (0, 2));
    }

    #[test]
    fn a_rejection_ends_the_wait() {
        let held = rests(told(ending(), &[JobEvent::RemovalsHeld, JobEvent::CleanedUp]));
        let rejected = told(held, &[JobEvent::RemovalsRejected]);
        assert_eq!((rejected.removals.held, rejected.removals.held_ms), (0, None));
        let refused = after(&rejected, &JobEvent::RemovalsRejected, 6).unwrap_err().to_string();
        assert!(refused.contains("none of its removals are held"), "{refused}");
    }
}
