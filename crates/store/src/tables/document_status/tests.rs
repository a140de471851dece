//! The states and statuses of ManifoldCF, by every way a document can stand.

use super::counts::{DONE_BEFORE, READY_APART, WAITING_ENDS, waiting_apart};
use super::*;
use crate::ids::{ConnectionId, Run};
use crate::tables::connections::{self, Connection, ConnectionKind};
use crate::tables::counters;
use crate::tables::jobs::{self, Job};
use crate::testing::both_databases;
use crate::{Db, Value};
use std::collections::BTreeMap;

const NOW_MS: i64 = 1_000;

fn shape(state: queue::State) -> Shape {
    Shape { seen: true, ..Shape::plain(state) }
}

#[test]
fn every_way_to_stand_has_a_state_and_a_status() {
    let active = JobConditions { phase: Phase::Active, run_kind: RunKind::Full };
    let incremental = JobConditions { run_kind: RunKind::Incremental, ..active };
    let idle = JobConditions { phase: Phase::Inactive, ..incremental };
    let deleting = JobConditions { phase: Phase::Deleting, ..active };
    let named = |name: &str| queue::Action::parse(name).unwrap();
    let action = |state, name: &str| Shape { action: named(name), ..shape(state) };
    let due = |due, act: &str| Shape { due, ..action(queue::State::Waiting, act) };
    let done = Shape { processed: true, ..shape(queue::State::Done) };
    let older = Shape { older: true, seen: false, ..done.clone() };
    let cases = [
        (shape(queue::State::Ready), active, Status::ReadyForProcessing),
        (action(queue::State::Ready, "expire"), active, Status::ReadyForExpiration),
        (shape(queue::State::Active), active, Status::Processing),
        (action(queue::State::Active, "expire"), active, Status::Expiring),
        (action(queue::State::Active, "clean"), active, Status::Deleting),
        (due(Due::Never, "fetch"), active, Status::WaitingForever),
        (due(Due::Now, "fetch"), active, Status::ReadyForProcessing),
        (due(Due::Now, "expire"), active, Status::ReadyForExpiration),
        (due(Due::Later, "fetch"), active, Status::WaitingForProcessing),
        (due(Due::Later, "expire"), active, Status::WaitingForExpiration),
        (shape(queue::State::Cut), active, Status::Inactive),
        (Shape { too_far: true, ..shape(queue::State::Cut) }, active, Status::HopcountExceeded),
        (shape(queue::State::Failed), active, Status::Inactive),
        (done.clone(), active, Status::Inactive),
        (older.clone(), active, Status::Inactive),
        (Shape { seen: true, ..older.clone() }, active, Status::ReadyForProcessing),
        (older.clone(), incremental, Status::ReadyForProcessing),
        (older, idle, Status::Inactive),
        (done.clone(), deleting, Status::Deleting),
    ];
    for (shape, conditions, expected) in cases {
        assert_eq!(shape.status(conditions), expected, "{shape:?} {conditions:?}");
    }
    assert_eq!(done.state(), State::PreviouslyProcessed);
    assert_eq!(shape(queue::State::Ready).state(), State::NeverProcessed);
    assert_eq!(shape(queue::State::Cut).state(), State::OutOfScope);
    assert_eq!(Status::named("waiting forever"), Some(Status::WaitingForever));
    assert_eq!((Status::ALL.len(), State::ALL.len()), (10, 3));
}

/// Documents of two jobs that stand in many ways.
fn fill(db: &Db) -> Result<()> {
    db.write(|tx| {
        let web = ConnectionId(1);
        connections::save(tx, ConnectionKind::Repository, &Connection::new(web, "web", "web"), 1)?;
        jobs::save(tx, &Job::new(JobId(1), "one", web), 1)?;
        jobs::save(tx, &Job::new(JobId(2), "two", web), 1)?;
        tx.execute("UPDATE job_states SET run = 2", &[])?;
        crate::testing::sum_rows(tx)?;
        let states = ["ready", "waiting", "done", "cut", "failed"];
        for number in 0..60_i64 {
            let state = states[number as usize % 5];
            let has_time = state == "waiting" && number % 8 != 1;
            let check = has_time.then_some(NOW_MS + (number % 7 - 3) * 100);
            let reason = (state == "cut").then_some(if number % 2 == 0 { "hops" } else { "scope" });
            let done = (state == "done" || number % 4 == 0).then_some(1 + number % 2);
            let action = if number % 3 == 0 { "expire" } else { "fetch" };
            tx.execute(
                "INSERT INTO queue (part, id, jobid, bin, dochash, docid, state, action, reason,
                     docpriority, hops, redirects, seen_run, done_run, rescan, generation,
                     checktime, added_ms)
                 VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, 0, 0, 0, $9, $10, 0, 0, $11, 0)",
                &[
                    (number % 2).into(),
                    number.into(),
                    (1 + number % 3 / 2).into(),
                    (&number.to_be_bytes()[..]).into(),
                    format!("http://a.example/{number}").as_str().into(),
                    state.into(),
                    action.into(),
                    reason.into(),
                    (1 + number / 30).into(),
                    done.into(),
                    check.into(),
                ],
            )?;
            let place = (Part(number % 2), JobId(1 + number % 3 / 2));
            counters::add(tx, place.0, place.1, &[(state, 1)])?;
        }
        Ok(())
    })
}

/// Documents by state and status.
type Counts = BTreeMap<(JobId, State, Status), i64>;

#[test]
fn counts_are_those_of_the_list() {
    both_databases(|db| {
        fill(db)?;
        let grounds = [
            (Phase::Inactive, RunKind::Full),
            (Phase::Active, RunKind::Full),
            (Phase::Active, RunKind::Incremental),
            (Phase::Active, RunKind::ChangesOnly),
            (Phase::Deleting, RunKind::Full),
        ];
        for (phase, run_kind) in grounds {
            let conditions = JobConditions { phase, run_kind };
            for part in [Part(0), Part(1)] {
                let (mut listed, mut seen) = (Counts::new(), Vec::new());
                let mut after = QueueId(i64::MIN);
                loop {
                    let page = db.read(move |tx| page(tx, part, after, NOW_MS, false, 7))?;
                    let Some(last) = page.last() else { break };
                    after = last.id;
                    for it in page {
                        seen.push(it.id);
                        let key = (it.job, it.shape.state(), it.shape.status(conditions));
                        *listed.entry(key).or_default() += 1;
                    }
                }
                assert_eq!(seen.len(), 30);
                let mut counted = Counts::new();
                for job in [JobId(1), JobId(2)] {
                    let place = queue::Place { part, job };
                    let found = db.read(move |tx| counts(tx, place, conditions, Run(2), NOW_MS))?;
                    for (shape, count) in found {
                        let key = (job, shape.state(), shape.status(conditions));
                        *counted.entry(key).or_default() += count;
                    }
                }
                assert_eq!(counted, listed, "{conditions:?}");
                let top = QueueId(i64::MAX);
                let mut back = db.read(move |tx| page(tx, part, top, NOW_MS, true, 100))?;
                back.reverse();
                assert_eq!(back.iter().map(|it| it.id).collect::<Vec<_>>(), seen);
            }
        }
        Ok(())
    });
}

#[test]
fn what_is_ready_waits_or_is_done_is_counted_in_indexes_alone() {
    crate::testing::on_sqlite(|db| {
        let [never, now] = WAITING_ENDS.map(str::to_owned);
        for (text, words) in [
            // Only of these the rows are looked at: which run has seen them is in no index.
            (DONE_BEFORE.to_owned(), "USING INDEX queue_done (part=? AND jobid=? AND done_run<?"),
            (READY_APART.to_owned(), "COVERING INDEX queue_ready_apart (part=? AND jobid=?"),
            (waiting_apart(), "COVERING INDEX queue_waiting_apart (part=? AND jobid=?"),
            (never, "COVERING INDEX queue_waiting (part=? AND jobid=? AND checktime=?"),
            (now, "COVERING INDEX queue_waiting (part=? AND jobid=? AND checktime<?"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {text}");
            let count = (1..9).filter(|it| text.contains(&format!("${it}"))).count();
            let values = vec![Value::Int(1); count];
            let plan: Vec<String> = db.read(move |tx| tx.query(&sql, &values, |row| row.get(3)))?;
            let whole = plan.join("; ");
            assert!(whole.contains(words), "{text}: {whole}");
        }
        Ok(())
    });
}
