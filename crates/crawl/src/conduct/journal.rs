//! What the history tells of a job as a whole: that it started, stopped, went on, waits
//! for its window, ended. The names are ManifoldCF's.
//!
//! Invariant: what is told is written in the transaction in which it happened, so the
//! history tells neither more nor less than what happened.

use crate::lifecycle::JobEvent;
use store::ids::JobId;
use store::tables::history::{self, JobActivity};
use store::tables::job_states::{JobState, Phase};
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
    event: &JobEvent,
    before: &JobState,
    next: &JobState,
    now_ms: i64,
) -> Result<()> {
    let Some(JournalEntry { kind, result, description }) = entry_of(event, before, next) else {
        return Ok(());
    };
    let description = description.as_deref();
    history::append_job(tx, JobActivity { job, kind, result, description }, now_ms)
}

fn entry_of(event: &JobEvent, before: &JobState, next: &JobState) -> Option<JournalEntry> {
    let entry = |kind, result, description| Some(JournalEntry { kind, result, description });
    match event {
        JobEvent::StartupBegins { kind, .. } => {
            entry("job start", "OK", Some(format!("run {}, {}", next.run, kind.name())))
        }
        JobEvent::CleanedUp => entry("job end", "OK", None),
        JobEvent::RemovalsHeld if before.removals.held_ms.is_none() => {
            entry("removals", "HELD", Some("more than the job may lose unasked".to_owned()))
        }
        JobEvent::ApproveRemovals => entry("removals", "APPROVED", None),
        JobEvent::RemovalsRejected => entry("removals", "REJECTED", None),
        JobEvent::WindowCloses => entry("job wait", "OK", None),
        JobEvent::WindowOpens { .. } => entry("job unwait", "OK", None),
        JobEvent::Resumed => entry("job continue", "OK", None),
        JobEvent::Quiet if before.phase == Phase::Aborting => match &next.error {
            _ if next.phase == Phase::ReadyForStartup => entry("job stop", "RESTART", None),
            Some(error) => entry("job stop", "ERROR", Some(error.clone())),
            None => entry("job stop", "ABORTED", None),
        },
        JobEvent::Quiet if before.paused => entry("job stop", "PAUSED", None),
        JobEvent::Quiet => entry("job stop", "SCHEDULE", Some("its window is over".to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::change;
    use store::Db;
    use store::ids::{ConnectionId, NodeId};
    use store::tables::connections::{self, Connection, ConnectionKind};
    use store::tables::history::ActivityQuery;
    use store::tables::job_states::RunKind;
    use store::tables::jobs::{self, Job};
    use store::testing::both_databases;

    const JOB: JobId = JobId(3);
    const WEB: ConnectionId = ConnectionId(1);

    /// What the history tells after these events, each a moment after the one before.
    fn after(db: &Db, events: Vec<JobEvent>) -> Result<Vec<String>> {
        db.write(|tx| {
            connections::save(
                tx,
                ConnectionKind::Repository,
                &Connection::new(WEB, "web", "web"),
                1,
            )?;
            jobs::save(tx, &Job::new(JOB, "site", WEB), 1)
        })?;
        let first_ms = db.read(store::tables::job_states::stamp)? + 10;
        for (event, now_ms) in events.into_iter().zip(first_ms..) {
            db.write(move |tx| change(tx, JOB, &event, now_ms))?;
        }
        let walk = ActivityQuery { since_ms: first_ms, ..ActivityQuery::all(WEB) };
        let told = db.read(move |tx| history::page(tx, &walk, walk.start(), 100))?;
        assert!(told.iter().all(|it| it.entity == "site" && it.job == Some(JOB)));
        let line = |it: history::Activity| {
            let words = [Some(it.kind), it.result, it.description];
            words.into_iter().flatten().collect::<Vec<_>>().join(": ")
        };
        Ok(told.into_iter().map(line).collect())
    }

    fn starts() -> Vec<JobEvent> {
        vec![
            JobEvent::Start { minimal: false },
            JobEvent::StartupBegins { node: NodeId(1), kind: RunKind::Full },
            JobEvent::StartupDone { seeding_version: None, reseed_ms: None },
        ]
    }

    fn ends() -> Vec<JobEvent> {
        let error = None;
        vec![JobEvent::NotifyBegins { node: NodeId(1) }, JobEvent::NotifyDone { error }]
    }

    #[test]
    fn the_history_tells_what_became_of_a_job() {
        both_databases(|db| {
            let mut all = starts();
            all.extend([JobEvent::Pause, JobEvent::Quiet, JobEvent::Resume, JobEvent::Resumed]);
            all.extend([JobEvent::WindowCloses, JobEvent::Quiet]);
            all.extend([JobEvent::WindowOpens { window_end_ms: None }, JobEvent::Resumed]);
            all.extend([JobEvent::QueueDone, JobEvent::CleanedUp]);
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
            aborted.extend([JobEvent::Restart { minimal: false }, JobEvent::Quiet]);
            aborted.extend(starts().split_off(1));
            aborted.extend([JobEvent::Abort, JobEvent::Quiet]);
            aborted.extend(ends());
            let expected = [
                "job start: OK: run 2, full",
                "job stop: RESTART",
                "job start: OK: run 3, full",
                "job stop: ABORTED",
            ];
            assert_eq!(after(db, aborted)?, expected);
            let mut failed = starts();
            failed.extend([JobEvent::Fail("the disk is full".into()), JobEvent::Quiet]);
            let expected = ["job start: OK: run 4, full", "job stop: ERROR: the disk is full"];
            assert_eq!(after(db, failed)?, expected);
            Ok(())
        });
    }
}
