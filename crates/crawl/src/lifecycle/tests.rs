//! The life cycle against the transition table: every state that can be reached, every
//! event, and random lives on both databases, where the view must say the same name.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

#[path = "table.rs"]
mod table;

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use store::ids::{ConnectionId, JobId, Run};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::job_states;
use store::tables::jobs::{self, Job};
use store::testing::both_databases;

type Table = BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>;

fn table() -> Table {
    let mut found = Table::new();
    let mut state = "";
    for line in table::TRANSITIONS.lines().filter(|line| !line.is_empty()) {
        match line.trim().split_once(" = ") {
            None => state = line.trim(),
            Some((trigger, target)) => {
                found.entry(state).or_default().insert(trigger, target);
            }
        }
    }
    found
}

const NODE: NodeId = NodeId(7);

pub(super) fn events() -> Vec<(&'static str, JobEvent)> {
    let version = || Some("v".to_owned());
    vec![
        ("start", JobEvent::Start { minimal: false }),
        ("start minimal", JobEvent::Start { minimal: true }),
        ("schedule", JobEvent::ScheduledStart { minimal: false, window_end_ms: Some(9) }),
        ("schedule minimal", JobEvent::ScheduledStart { minimal: true, window_end_ms: None }),
        ("pause", JobEvent::Pause),
        ("resume", JobEvent::Resume),
        ("abort", JobEvent::Abort),
        ("restart", JobEvent::Restart { minimal: false }),
        ("restart minimal", JobEvent::Restart { minimal: true }),
        ("delete", JobEvent::Delete),
        ("fail", JobEvent::Fail("trouble".into())),
        ("window closes", JobEvent::WindowCloses),
        ("window opens", JobEvent::WindowOpens { window_end_ms: None }),
        ("startup begins", JobEvent::StartupBegins { node: NODE, kind: RunKind::Full }),
        ("startup done", JobEvent::StartupDone { seeding_version: version(), reseed_ms: None }),
        ("startup returns", JobEvent::StartupReturns),
        ("seeding begins", JobEvent::SeedingBegins { node: NODE }),
        ("seeding done", JobEvent::SeedingDone { seeding_version: version(), reseed_ms: None }),
        ("seeding returns", JobEvent::SeedingReturns),
        ("quiet", JobEvent::Quiet),
        ("resumed", JobEvent::Resumed),
        ("queue done", JobEvent::QueueDone),
        ("cleaned up", JobEvent::CleanedUp),
        ("more found", JobEvent::MoreFound),
        ("notify begins", JobEvent::NotifyBegins { node: NODE }),
        ("notify done", JobEvent::NotifyDone { error: None }),
        ("notify returns", JobEvent::NotifyReturns),
        ("delete begins", JobEvent::DeleteBegins { node: NODE }),
        ("delete prepared", JobEvent::DeletePrepared),
        ("delete returns", JobEvent::DeleteReturns),
        ("deleted", JobEvent::Deleted),
    ]
}

fn connectors() -> Vec<JobEvent> {
    [(true, true), (false, true), (true, false), (false, false)]
        .map(|(repository, outputs)| JobEvent::Connectors { repository, outputs })
        .into()
}

/// A name without what it says of connectors.
fn base(name: &str) -> &str {
    name.split('_').next().unwrap()
}

/// Checks one event against the table. Returns where it leads, if it is not refused.
fn check(table: &Table, state: &JobState, (trigger, event): &(&str, JobEvent)) -> Option<JobState> {
    let name = state.name();
    let expected = table.get(base(&name)).and_then(|row| row.get(trigger)).copied();
    // Without its outputs nothing is deleted.
    let waits = matches!(*trigger, "delete begins" | "deleted") && !state.outputs_present;
    let expected = expected.filter(|_| !waits);
    let next = after(state, event, 50);
    let found = next.as_ref().ok().map(JobState::name);
    assert_eq!(found.as_deref().map(base), expected, "{trigger} in {name}: {next:?}");
    next.ok()
}

/// Without what only grows, so that there are finitely many.
pub(super) fn plain(state: JobState) -> JobState {
    JobState { run: Run(1), ..state }
}

#[test]
fn every_event_in_every_state_does_what_the_table_says_and_every_state_is_reached() {
    let table = table();
    let mut seen: HashSet<String> = HashSet::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut left = VecDeque::from([JobState::default()]);
    while let Some(state) = left.pop_front() {
        if !seen.insert(format!("{state:?}")) {
            continue;
        }
        names.insert(state.name());
        for event in events() {
            left.extend(check(&table, &state, &event).map(plain));
        }
        left.extend(connectors().iter().map(|event| plain(after(&state, event, 50).unwrap())));
    }
    let expected: BTreeSet<String> = table::STATES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(names, expected);
}

#[test]
fn what_is_refused_says_where_the_job_is_and_what_it_would_take() {
    let job = JobState::default();
    let refused = after(&job, &JobEvent::Resume, 0).unwrap_err().to_string();
    assert_eq!(refused, "the job is INACTIVE; only one that is paused can be resumed");
    let active = JobState { phase: Phase::Active, ..JobState::default() };
    let refused = after(&active, &JobEvent::Delete, 0).unwrap_err().to_string();
    assert!(refused.contains("abort it first"), "{refused}");
}

/// The table of what preparing a run does (spec 1.1), row by row.
#[test]
fn a_run_is_what_the_connector_and_the_request_make_of_it() {
    use Model::*;
    use RunKind::*;
    let all = [
        All,
        Add,
        AddChange,
        AddChangeDelete,
        Model::Partial,
        ChainedAdd,
        ChainedAddChange,
        ChainedAddChangeDelete,
    ];
    for model in all {
        for bits in 0..8 {
            let (continuous, from_beginning, minimal) =
                (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            let deletes = matches!(model, AddChangeDelete | ChainedAddChangeDelete);
            let chained = matches!(model, ChainedAdd | ChainedAddChange | ChainedAddChangeDelete);
            let quick = minimal && !from_beginning && model != All;
            let expected = match () {
                () if deletes && from_beginning => Incremental,
                () if deletes || quick => match chained {
                    true => RunKind::Partial,
                    false => ChangesOnly,
                },
                () if !continuous
                    && model != Model::Partial
                    && (model == All || from_beginning) =>
                {
                    Full
                }
                () => Incremental,
            };
            let asked = RunOptions { continuous, from_beginning, minimal };
            assert_eq!(run_kind(model, asked), expected, "{model:?} {asked:?}");
        }
    }
}

#[test]
fn the_first_error_is_the_one_that_is_kept() {
    let active = JobState { phase: Phase::Active, run: Run(1), ..JobState::default() };
    let first = after(&active, &JobEvent::Fail("disk".into()), 5).unwrap();
    let second = after(&first, &JobEvent::Fail("network".into()), 6).unwrap();
    assert_eq!(second.error.as_deref(), Some("disk"));
    let ended = after(&second, &JobEvent::Quiet, 7).unwrap();
    assert_eq!((ended.end_ms, ended.last_ms), (None, Some(7)), "it did not end well");
    let started = after(&JobState { phase: Phase::Inactive, ..ended }, &events()[0].1, 8).unwrap();
    assert_eq!(started.error, None);
}

/// Lives of a job, step by step on a database: what the tables hold is what the events
/// say, and the view has the same name for it.
#[test]
fn random_lives_of_a_job_on_both_databases() {
    let (table, events) = (table(), events());
    both_databases(|db| {
        db.write(|tx| connections::save(tx, ConnectionKind::Repository, &web(), 0))?;
        let step = prop_oneof![
            // Mostly what leads on, or lives would end in refusals.
            8 => (0..events.len()).prop_map(|number| (number, None)),
            1 => (0..4_usize).prop_map(|number| (0, Some(number))),
        ];
        let lives = prop::collection::vec(step, 1..120);
        let job = std::sync::atomic::AtomicI64::new(1);
        let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
        let lived = runner.run(&lives, |steps| {
            let id = JobId(job.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
            let definition = Job::new(id, &format!("job {id}"), ConnectionId(1));
            db.write(move |tx| jobs::save(tx, &definition, 1)).unwrap();
            let mut model = JobState::default();
            for (number, connector) in steps {
                let allowed: Vec<_> =
                    events.iter().filter(|it| after(&model, &it.1, 50).is_ok()).collect();
                let event = match connector {
                    Some(which) => connectors()[which].clone(),
                    None if allowed.is_empty() => continue,
                    None => {
                        let chosen = allowed[number % allowed.len()];
                        check(&table, &model, chosen);
                        chosen.1.clone()
                    }
                };
                model = after(&model, &event, 50).unwrap();
                let written = db.write(move |tx| {
                    let before = job_states::lock(tx, id)?.unwrap();
                    let next = after(&before, &event, 50).unwrap();
                    job_states::save(tx, id, &before, &next, 50)?;
                    let name = tx.query_one(
                        "SELECT status FROM jobs WHERE id = $1",
                        &[id.into()],
                        |row| row.get::<String>(0),
                    )?;
                    Ok((job_states::state(tx, id)?, name))
                });
                let (state, name) = written.unwrap();
                assert_eq!(state, model);
                assert_eq!(name, model.name());
            }
            Ok(())
        });
        lived.unwrap();
        Ok(())
    });
}

fn web() -> Connection {
    Connection {
        id: ConnectionId(1),
        name: "web".into(),
        description: None,
        classname: "web".into(),
        config: "{}".into(),
        maxcount: 1,
        groupname: None,
        authdomainname: None,
        prerequisite: None,
        history_ms: None,
    }
}

#[test]
fn a_restart_of_a_job_that_waits_for_its_window_has_no_window_to_wait_for() {
    let waits = JobState {
        phase: Phase::Active,
        waiting: true,
        window_end_ms: Some(1),
        failcount: Some(2),
        fail_ms: Some(9),
        ..JobState::default()
    };
    let aborting = after(&waits, &JobEvent::Restart { minimal: false }, 5).unwrap();
    let next = after(&aborting, &JobEvent::Quiet, 6).unwrap();
    assert_eq!(next.phase, Phase::ReadyForStartup);
    assert_eq!((next.window_end_ms, next.failcount, next.fail_ms), (None, None, None));
}
