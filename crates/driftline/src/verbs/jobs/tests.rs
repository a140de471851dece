//! Every action in every state, on both databases: what is legal leads on, what is not
//! is refused with its reason and a way out, and changes nothing.

use super::actions::{ActOnJob, ActRequest, ActionResult, JobAction};
use super::*;
use crate::verbs::access::Asker;
use crate::verbs::carry_out;
use crate::verbs::changes::ChangeContext;
use store::ids::{ConnectionId, JobId, NodeId, Run};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::job_states::{self, AbortedFrom, JobState, Phase, Restart};
use store::tables::settings;
use store::testing::both_databases;
use store::{Db, Result};

const JOB: JobId = JobId(1);

fn made(test: impl Fn(&Db) -> Result<()>) {
    both_databases(|db| {
        db.write(|tx| {
            settings::freeze(tx, 4)?;
            let web = Connection::new(ConnectionId(1), "web", "web");
            connections::save(tx, ConnectionKind::Repository, &web, 0)?;
            jobs::save(tx, &Job::new(JOB, "docs", ConnectionId(1)), 0)
        })?;
        test(db)
    });
}

/// Puts the job into a state, whatever it was in.
fn put(db: &Db, state: &JobState) -> Result<()> {
    let state = state.clone();
    db.write(move |tx| {
        let before = job_states::state(tx, JOB)?;
        job_states::save(tx, JOB, &before, &state, 5)
    })
}

fn act(db: &Db, action: JobAction) -> std::result::Result<ActionResult, String> {
    let context = ChangeContext::of_rows(db.clone());
    let request = ActRequest { name: "docs".into(), action };
    let acted = carry_out::<ActOnJob>(&context, Asker::CommandLine, request);
    acted.map_err(|error| format!("{error:#}"))
}

fn state(phase: Phase, change: impl Fn(&mut JobState)) -> JobState {
    let mut state = JobState {
        phase,
        run: Run(1),
        node: Some(NodeId(1)),
        start_ms: Some(1),
        ..JobState::default()
    };
    change(&mut state);
    state
}

/// States, and which actions are legal there: S start, P pause, R resume, A abort,
/// T restart, D delete.
fn states() -> Vec<(JobState, &'static str)> {
    use Phase::*;
    let active = |paused, waiting, stopping| {
        move |it: &mut JobState| (it.paused, it.waiting, it.stopping) = (paused, waiting, stopping)
    };
    let mut all = vec![
        (state(Inactive, |_| {}), "SD"),
        (state(ReadyForStartup, |_| {}), "AT"),
        (state(ReadyForStartup, |it| it.minimal = true), "AT"),
        (state(StartingUp, |_| {}), "AT"),
        (state(StartingUp, |it| it.minimal = true), "AT"),
        (state(Aborting, |it| it.aborted_from = Some(AbortedFrom::StartingUp)), ""),
        (state(Aborting, |it| it.aborted_from = Some(AbortedFrom::ShuttingDown)), ""),
        (state(ShuttingDown, |_| {}), "A"),
        (state(ReadyForNotify, |_| {}), ""),
        (state(Notifying, |_| {}), ""),
        (state(ReadyForDelete, |_| {}), ""),
        (state(ReadyForDelete, |it| it.outputs_present = false), ""),
        (state(DeleteStartingUp, |_| {}), ""),
        (state(Deleting, |_| {}), ""),
        (state(Deleting, |it| it.outputs_present = false), ""),
        (state(ReadyForDeleteNotify, |_| {}), ""),
        (state(NotifyingOfDeletion, |_| {}), ""),
        (state(Active, |it| it.repository_present = false), "PAT"),
        (state(Active, |it| it.outputs_present = false), "PAT"),
    ];
    for seeding in [false, true] {
        let mut more = vec![
            (state(Active, active(false, false, false)), "PAT"),
            (state(Active, active(true, false, true)), "AT"),
            (state(Active, active(true, false, false)), "RAT"),
            (state(Active, active(false, true, true)), "PAT"),
            (state(Active, active(false, true, false)), "PAT"),
            (state(Active, active(true, true, true)), "AT"),
            (state(Active, active(true, true, false)), "RAT"),
            (state(Active, |it| it.resuming = true), ""),
            (state(Aborting, |_| {}), ""),
            (state(Aborting, |it| it.restart = Restart::Full), "A"),
            (state(Aborting, |it| it.restart = Restart::Minimal), "A"),
        ];
        more.iter_mut().for_each(|(it, _)| it.seeding = seeding);
        all.extend(more);
    }
    all
}

fn letter(action: JobAction) -> char {
    match action {
        JobAction::Start | JobAction::StartMinimal => 'S',
        JobAction::Pause => 'P',
        JobAction::Resume => 'R',
        JobAction::Abort => 'A',
        JobAction::Restart | JobAction::RestartMinimal => 'T',
        JobAction::Delete => 'D',
    }
}

#[test]
fn an_action_is_legal_or_refused_with_its_reason_and_a_way_out() {
    made(|db| {
        let mut refused = 0;
        for (state, legal) in states() {
            for action in JobAction::ALL {
                put(db, &state)?;
                let name = state.name();
                let acted = act(db, action);
                let now = db.read(|tx| job_states::state(tx, JOB))?;
                match (acted, legal.contains(letter(action))) {
                    (Ok(acted), true) => {
                        assert_eq!((acted.before, &acted.state), (name, &now.name()));
                        assert_ne!(now, state, "{action:?}");
                    }
                    (Err(reason), false) => {
                        assert_eq!(now, state, "{action:?} in {name} changes nothing");
                        let says = |words: &str| reason.contains(words);
                        assert!(says("job docs cannot be "), "{action:?} in {name}: {reason}");
                        assert!(says(&format!("the job is {name}; ")), "{action:?}: {reason}");
                        assert!(says("driftline job "), "{action:?} in {name}: {reason}");
                        refused += 1;
                    }
                    (acted, legal) => panic!("{action:?} in {name} is legal: {legal}, {acted:?}"),
                }
            }
        }
        assert_eq!(refused, 248);
        Ok(())
    });
}

#[test]
fn every_state_has_a_word() {
    let word = |state: &JobState| job_status::word(state);
    let mut seen = std::collections::BTreeSet::new();
    for (state, _) in states() {
        seen.insert(word(&state));
    }
    let ended = state(Phase::Inactive, |it| it.end_ms = Some(9));
    let failed = state(Phase::Inactive, |it| it.error = Some("x".into()));
    seen.extend([word(&ended), word(&failed), word(&JobState::default())]);
    let expected = [
        "aborted",
        "aborting",
        "cleaning up",
        "done",
        "end notification",
        "error",
        "not yet run",
        "paused",
        "restarting",
        "resuming",
        "running",
        "running no connector",
        "starting up",
        "stopping",
        "terminating",
        "waiting",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_way_out_fits_the_state() {
    made(|db| {
        let paused = state(Phase::Active, |it| it.paused = true);
        let stopping = state(Phase::Active, |it| (it.paused, it.stopping) = (true, true));
        let cleaning = state(Phase::ShuttingDown, |_| {});
        for (state, action, words) in [
            (JobState::default(), JobAction::Pause, "next: driftline job start docs"),
            (state(Phase::Active, |_| {}), JobAction::Start, "next: driftline job restart docs"),
            (paused.clone(), JobAction::Start, "next: driftline job resume docs"),
            (paused.clone(), JobAction::Pause, "next: driftline job resume docs"),
            (stopping, JobAction::Resume, "driftline job wait docs --for paused"),
            (paused, JobAction::Delete, "driftline job abort docs && driftline job wait docs"),
            (cleaning, JobAction::Restart, "driftline job abort docs && driftline job wait docs"),
            (state(Phase::Aborting, |_| {}), JobAction::Delete, "next: driftline job wait docs"),
            (
                state(Phase::Deleting, |_| {}),
                JobAction::Start,
                "driftline job wait docs --for gone",
            ),
        ] {
            put(db, &state)?;
            let reason = act(db, action).unwrap_err();
            assert!(reason.contains(words), "{action:?}: {words:?} is not in {reason}");
        }
        Ok(())
    });
}

#[test]
fn seeding_is_forgotten_but_not_while_it_is_under_way() {
    made(|db| {
        let reset = || define::reset_seeding(db, "docs".into()).map_err(|it| it.to_string());
        let version = || db.read(|tx| job_states::state(tx, JOB)).map(|it| it.seeding_version);
        let so_far = |it: &mut JobState| it.seeding_version = Some("so far".into());
        put(db, &state(Phase::Active, so_far))?;
        let told = reset().unwrap();
        assert!(told.changes[0].contains("the next run checks every document"), "{told:?}");
        assert_eq!(version()?, None);
        for phase in [Phase::StartingUp, Phase::Active] {
            put(
                db,
                &state(phase, |it| {
                    so_far(it);
                    it.seeding = phase == Phase::Active;
                }),
            )?;
            let refused = reset().unwrap_err();
            assert!(refused.contains("try again in a moment"), "{refused}");
            assert_eq!(version()?.as_deref(), Some("so far"));
        }
        Ok(())
    });
}
