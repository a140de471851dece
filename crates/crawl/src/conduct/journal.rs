//! What the history tells of a job as a whole: that it started, stopped, went on, waits
//! for its window, ended. The names are the original's.
//!
//! Invariant: what is told is written in the transaction in which it happened, so the
//! history tells neither more nor less than what happened.

use crate::lifecycle::Event;
use store::ids::JobId;
use store::tables::history::{self, JobActivity};
use store::tables::job_states::{Phase, State};
use store::{Result, Tx};

/// What is told of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JournalEntry {
    kind: &'static str,
    result: &'static str,
    description: Option<String>,
}

/// Writes what an event meant for a job, if that is worth telling.
pub(super) fn note(
    tx: &mut Tx<'_>,
    job: JobId,
    event: &Event,
    before: &State,
    next: &State,
    now_ms: i64,
) -> Result<()> {
    let Some(JournalEntry { kind, result, description }) = entry_of(event, before, next) else {
        return Ok(());
    };
    let description = description.as_deref();
    history::append_job(tx, JobActivity { job, kind, result, description }, now_ms)
}

fn entry_of(event: &Event, before: &State, next: &State) -> Option<JournalEntry> {
    let tell = |kind, result, description| Some(JournalEntry { kind, result, description });
    match event {
        Event::StartupBegins { kind, .. } => {
            tell("job start", "OK", Some(format!("run {}, {}", next.run, kind.name())))
        }
        Event::CleanedUp => tell("job end", "OK", None),
        Event::RemovalsHeld if before.removals.held_ms.is_none() => {
            tell("removals", "HELD", Some("more than the job may lose unasked".to_owned()))
        }
        Event::ApproveRemovals => tell("removals", "APPROVED", None),
        Event::RemovalsRejected => tell("removals", "REJECTED", None),
        Event::WindowCloses => tell("job wait", "OK", None),
        Event::WindowOpens { .. } => tell("job unwait", "OK", None),
        Event::Resumed => tell("job continue", "OK", None),
        Event::Quiet if before.phase == Phase::Aborting => match &next.error {
            _ if next.phase == Phase::ReadyForStartup => tell("job stop", "RESTART", None),
            Some(error) => tell("job stop", "ERROR", Some(error.clone())),
            None => tell("job stop", "ABORTED", None),
        },
        Event::Quiet if before.paused => tell("job stop", "PAUSED", None),
        Event::Quiet => tell("job stop", "SCHEDULE", Some("its window is over".to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::change;
    use store::Db;
    use store::ids::{ConnectionId, NodeId};
    use store::tables::connections::{self, Connection, Kind};
    use store::tables::history::Walk;
    use store::tables::job_states::RunKind;
    use store::tables::jobs::{self, Job};
    use store::testing::both_databases;

    const JOB: JobId = JobId(3);
    const WEB: ConnectionId = ConnectionId(1);

    /// What the history tells after these events, each a moment after the one before.
    fn after(db: &Db, events: Vec<Event>) -> Result<Vec<String>> {
        db.write(|tx| {
            connections::save(tx, Kind::Repository, &Connection::new(WEB, "web", "web"), 1)?;
            jobs::save(tx, &Job::new(JOB, "site", WEB), 1)
        })?;
        let first_ms = db.read(store::tables::job_states::stamp)? + 10;
        for (event, now_ms) in events.into_iter().zip(first_ms..) {
            db.write(move |tx| change(tx, JOB, &event, now_ms))?;
        }
        let walk = Walk { since_ms: first_ms, ..Walk::all(WEB) };
        let told = db.read(move |tx| history::page(tx, &walk, walk.start(), 100))?;
        assert!(told.iter().all(|it| it.entity == "site" && it.job == Some(JOB)));
        let line = |it: history::Activity| {
            let words = [Some(it.kind), it.result, it.description];
            words.into_iter().flatten().collect::<Vec<_>>().join(": ")
        };
        Ok(told.into_iter().map(line).collect())
    }

    fn starts() -> Vec<Event> {
        vec![
            Event::Start { minimal: false },
            Event::StartupBegins { node: NodeId(1), kind: RunKind::Full },
            Event::StartupDone { seeding_version: None, reseed_ms: None },
        ]
    }

    fn ends() -> Vec<Event> {
        let error = None;
        vec![Event::NotifyBegins { node: NodeId(1) }, Event::NotifyDone { error }]
    }

    #[test]
    fn the_history_tells_what_became_of_a_job() {
        both_databases(|db| {
            let mut all = starts();
            all.extend([Event::Pause, Event::Quiet, Event::Resume, Event::Resumed]);
            all.extend([Event::WindowCloses, Event::Quiet]);
            all.extend([Event::WindowOpens { window_end_ms: None }, Event::Resumed]);
            all.extend([Event::QueueDone, Event::CleanedUp]);
            all.extend(ends());
            let expected = [
                "job start: OK: run 1, full",
                "job stop: PAUSED",
                "job continue: OK",
                "job wait: OK",
                "job stop: SCHEDULE: its window is over",
                "job unwait: OK",
                "job continue: OK",
                "job end: OK",
            ];
            assert_eq!(after(db, all)?, expected);
            let mut aborted = starts();
            aborted.extend([Event::Restart { minimal: false }, Event::Quiet]);
            aborted.extend(starts().split_off(1));
            aborted.extend([Event::Abort, Event::Quiet]);
            aborted.extend(ends());
            let expected = [
                "job start: OK: run 2, full",
                "job stop: RESTART",
                "job start: OK: run 3, full",
                "job stop: ABORTED",
            ];
            assert_eq!(after(db, aborted)?, expected);
            let mut failed = starts();
            failed.extend([Event::Fail("the disk is full".into()), Event::Quiet]);
            let expected = ["job start: OK: run 4, full", "job stop: ERROR: the disk is full"];
            assert_eq!(after(db, failed)?, expected);
            Ok(())
        });
    }
}
