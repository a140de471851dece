//! What start-ups and seedings mean for a job: its run begins, its seeds are queued.
//!
//! Invariant: a seeding that is over is over wherever the job has got to meanwhile.

use super::{EventRefusal, JobEvent, refuse};
use store::ids::Run;
use store::tables::job_states::{AbortedFrom, JobState, Phase};

pub(super) fn startup(
    next: &mut JobState,
    event: &JobEvent,
    now_ms: i64,
) -> Result<(), EventRefusal> {
    let is_aborted = next.aborted_from == Some(AbortedFrom::StartingUp);
    match (event, next.phase) {
        (JobEvent::StartupBegins { node, kind }, Phase::ReadyForStartup) => {
            next.phase = Phase::StartingUp;
            next.node = Some(*node);
            next.run = Run(next.run.0 + 1);
            next.run_kind = *kind;
            next.start_ms = Some(now_ms);
            // What another run has not swept is judged again with what this one marks, unless
            // a person has approved it.
            next.removals.released = next.removals.approved;
        }
        (JobEvent::StartupDone { .. } | JobEvent::StartupReturns, Phase::Aborting)
            if is_aborted =>
        {
            next.aborted_from = None;
        }
        (JobEvent::StartupDone { seeding_version, reseed_ms }, Phase::StartingUp) => {
            next.phase = Phase::Active;
            next.seeding_version.clone_from(seeding_version);
            next.last_check_ms = now_ms;
            next.reseed_ms = *reseed_ms;
            (next.fail_ms, next.failcount) = (None, None);
        }
        (JobEvent::StartupReturns, Phase::StartingUp) => next.phase = Phase::ReadyForStartup,
        _ => return refuse(next, "no start-up is under way"),
    }
    Ok(())
}

pub(super) fn seeding(
    next: &mut JobState,
    event: &JobEvent,
    now_ms: i64,
) -> Result<(), EventRefusal> {
    match event {
        JobEvent::SeedingBegins { node } => {
            let runs = next.phase == Phase::Active && !next.paused && !next.waiting;
            if !runs || next.resuming || next.seeding {
                return refuse(next, "only one that runs can be seeded again");
            }
            next.seeding = true;
            next.node = Some(*node);
        }
        _ if !next.seeding => return refuse(next, "no seeding is under way"),
        // Wherever the job has got to meanwhile, the seeding is over.
        JobEvent::SeedingDone { seeding_version, reseed_ms } => {
            next.seeding = false;
            next.seeding_version.clone_from(seeding_version);
            next.last_check_ms = now_ms;
            next.reseed_ms = *reseed_ms;
            (next.fail_ms, next.failcount) = (None, None);
        }
        _ => next.seeding = false,
    }
    Ok(())
}
