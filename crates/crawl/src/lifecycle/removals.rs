//! What is decided about removals that are marked, and what that makes of a job.
//!
//! Pure. Invariants: every decision ends a round, so that it never covers marks that come
//! after it; marks that were held are swept only when a person has approved them.

use super::{Event, Refused, refuse};
use store::tables::job_states::{Phase, State};

/// Takes a decision in.
pub(super) fn decide(next: &mut State, event: &Event, now_ms: i64) -> Result<(), Refused> {
    let runs = matches!(next.phase, Phase::Active | Phase::ShuttingDown);
    match event {
        Event::RemovalsReleased if runs => {
            next.removals.released = next.removals.current;
            next.removals.current += 1;
            (next.removals.held, next.removals.held_ms) = (0, None);
        }
        Event::RemovalsHeld if runs => {
            next.removals.held = next.removals.current;
            next.removals.current += 1;
            next.removals.held_ms.get_or_insert(now_ms);
        }
        Event::ApproveRemovals => approve(next)?,
        Event::RemovalsRejected if next.removals.held_ms.is_some() => {
            (next.removals.held, next.removals.held_ms) = (0, None);
        }
        Event::RemovalsRejected => return refuse(next, "none of its removals are held"),
        _ => return refuse(next, "that does not concern it now"),
    }
    Ok(())
}

fn approve(next: &mut State) -> Result<(), Refused> {
    if next.removals.held_ms.is_none() {
        return refuse(next, "none of its removals are held");
    }
    match next.phase {
        // Nothing runs that could sweep them: the job does, and nothing else.
        Phase::Inactive => {
            next.phase = Phase::ShuttingDown;
            next.removals.only = true;
        }
        Phase::Active | Phase::ShuttingDown => {}
        _ => return refuse(next, "its removals can be approved in a moment"),
    }
    (next.removals.released, next.removals.approved) = (next.removals.held, next.removals.held);
    (next.removals.held, next.removals.held_ms) = (0, None);
    Ok(())
}
