//! What the clock does to jobs: each test looks at it once, whatever time it is.

use super::super::trouble::tests::{TERMS, context};
use super::super::{NoObserver, change};
use super::*;
use crate::schedule::parse;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use store::Db;
use store::ids::{ConnectionId, NodeId};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::job_states::RunKind;
use store::tables::jobs::{self, Job};
use store::tables::settings;
use store::testing::both_databases;

const JOB: JobId = JobId(3);
const DAY_MS: i64 = 24 * 3_600_000;

/// A job that may start by a schedule, and has none.
fn defined(db: &Db, method: StartMethod) -> Result<()> {
    db.write(move |tx| {
        settings::freeze(tx, 2)?;
        let web = Connection::new(ConnectionId(1), "web", "web");
        connections::save(tx, ConnectionKind::Repository, &web, 1)?;
        let job = Job { start: method, ..Job::new(JOB, "site", ConnectionId(1)) };
        jobs::save(tx, &job, 1)
    })
}

fn schedule(db: &Db, text: &str) -> Result<()> {
    let (schedule, now_ms) = (parse(text).expect("it can be read"), store::clock::now_ms());
    db.write(move |tx| schedules::replace(tx, JOB, std::slice::from_ref(&schedule), now_ms))
}

/// Puts a job where a test wants it.
fn put(db: &Db, to: impl Fn(&mut JobState) + Send + Clone + 'static) -> Result<()> {
    db.write(move |tx| {
        let before = job_states::state(tx, JOB)?;
        let mut now = before.clone();
        to(&mut now);
        job_states::save(tx, JOB, &before, &now, store::clock::now_ms())
    })
}

/// The job's state after one look at the clock, or two if the first only takes note.
fn looked(db: &Db) -> Result<JobState> {
    let (again, _woken) = sync_channel(1);
    let mut conductor = ConductorState::new(context(db, Arc::new(NoObserver))?, TERMS, again);
    conductor.look_at_clock()?;
    conductor.look_at_clock()?;
    db.read(|tx| job_states::state(tx, JOB))
}

#[test]
fn a_short_job_that_may_start_inside_a_window_runs_once_in_it() {
    both_databases(|db| {
        defined(db, StartMethod::WindowInside)?;
        // Ten years from every New Year: whatever time it is, it is inside a window.
        schedule(db, "zone=UTC window=3660d")?;
        assert_eq!(looked(db)?.name(), "READYFORSTARTUP", "it was defined inside the window");
        let node = NodeId(1);
        for event in [
            JobEvent::StartupBegins { node, kind: RunKind::Full },
            JobEvent::StartupDone { seeding_version: None, reseed_ms: None },
            JobEvent::QueueDone,
            JobEvent::CleanedUp,
            JobEvent::NotifyBegins { node },
            JobEvent::NotifyDone { error: None },
        ] {
            let now_ms = store::clock::now_ms();
            db.write(move |tx| change(tx, JOB, &event, now_ms))?;
        }
        let state = looked(db)?;
        assert_eq!((state.name().as_str(), state.run.0), ("INACTIVE", 1));
        Ok(())
    });
}

#[test]
fn a_schedule_that_is_defined_does_not_start_a_job_for_a_time_that_had_passed() {
    both_databases(|db| {
        defined(db, StartMethod::WindowBegin)?;
        let long_ago_ms = store::clock::now_ms() - 800 * DAY_MS;
        put(db, move |it| it.last_ms = Some(long_ago_ms))?;
        schedule(db, "months=jan")?;
        assert_eq!(looked(db)?.name(), "INACTIVE", "two New Years ago is long ago");
        // What it names after it was defined is not lost, although nobody looked then.
        put(db, move |it| it.last_ms = Some(long_ago_ms))?;
        assert_eq!(looked(db)?.name(), "READYFORSTARTUP");
        Ok(())
    });
}

#[test]
fn a_job_that_is_to_start_by_its_schedule_from_now_on_does_not_start_for_a_time_that_had_passed() {
    both_databases(|db| {
        defined(db, StartMethod::Manual)?;
        schedule(db, "months=jan")?;
        let long_ago_ms = store::clock::now_ms() - 800 * DAY_MS;
        put(db, move |it| it.last_ms = Some(long_ago_ms))?;
        let now_ms = store::clock::now_ms();
        db.write(move |tx| {
            let job = jobs::load(tx, JOB)?.expect("it is defined");
            jobs::save(tx, &Job { start: StartMethod::WindowBegin, ..job }, now_ms)
        })?;
        assert_eq!(looked(db)?.name(), "INACTIVE");
        Ok(())
    });
}

#[test]
fn a_job_whose_schedule_was_taken_away_while_it_waited_goes_on() {
    for method in [StartMethod::Manual, StartMethod::WindowBegin] {
        both_databases(|db| {
            defined(db, method)?;
            put(db, |it| {
                (it.phase, it.waiting, it.window_end_ms) = (Phase::Active, true, Some(1));
            })?;
            let state = looked(db)?;
            assert_eq!((state.name().as_str(), state.window_end_ms), ("RESUMING", None));
            Ok(())
        });
    }
}
