//! A job through random lives on both databases: whatever its source does, it loses no more
//! than its limit unless a person has approved it.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use super::*;
use crate::definitions::{CONNECTOR as WEB, WebSpec};
use crate::job::JobWork;
use crate::worker::finish::removal_gate::RemovalGate;
use crate::worker::leases::check::LeaseKey;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::chunkfile::document::RemoveReason;
use store::ids::{ChunkId, ConnectionId, NodeId, QueueId, Run};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::job_states::{AttendedJob, RunKind};
use store::tables::leases::{self, LeaseRequest};
use store::tables::queue::sweep::{self, Sweep};
use store::tables::queue::{self, AddContext, Candidate, Presences, SettledDocument, Settlement};
use store::tables::removals::Presence;
use store::tables::{chunks, counters, settings};
use store::testing::{both_databases, candidate};
use store::{Db, Error};

const JOB: JobId = JobId(1);
const PARTS: u32 = 2;
/// Documents that the job has at first, of each part.
const DOCUMENTS: [i64; 2] = [40, 20];

#[derive(Debug, Clone)]
enum Step {
    /// Documents of a part answer that they are gone.
    Gone(u8, u8),
    /// Documents of a part are not found again.
    Unreachable(u8, u8),
    /// Documents that are marked are found again.
    Back(u8),
    /// The run ends, and another begins.
    End,
    Approve,
    Reject,
    /// Hours pass.
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..2u8, 1..15u8).prop_map(|(part, count)| Step::Gone(part, count)),
        3 => (0..2u8, 1..15u8).prop_map(|(part, count)| Step::Unreachable(part, count)),
        1 => (1..10u8).prop_map(Step::Back),
        3 => Just(Step::End),
        1 => Just(Step::Approve),
        1 => Just(Step::Reject),
        1 => (1..30u8).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..16)
}

struct Life<'a> {
    db: &'a Db,
    gate: RemovalGate,
    is_continuous: bool,
    now_ms: i64,
    chunk: i64,
    /// What the job has, by part; those that are marked are among them.
    has: BTreeMap<i64, BTreeSet<i64>>,
    /// What was lost without an approval: when, in which run.
    lost: Vec<(i64, Run)>,
}

impl Life<'_> {
    fn begin(db: &Db, is_continuous: bool) -> Life<'_> {
        let job = Job {
            continuous: is_continuous,
            removal_limit: Some("20% or 6".into()),
            proven_removal_limit: Some("5% or 2".into()),
            docspec: WebSpec { seeds: vec!["http://a.example/".into()], ..WebSpec::default() }
                .to_json(),
            ..Job::new(JOB, "a", ConnectionId(1))
        };
        db.write(move |tx| {
            settings::freeze(tx, PARTS)?;
            let web = Connection::new(ConnectionId(1), "web", WEB);
            connections::save(tx, ConnectionKind::Repository, &web, 0)?;
            jobs::save(tx, &job, 0)
        })
        .unwrap();
        let (gate, now_ms) = (RemovalGate::new(db.clone()), 1_000 * 3_600_000);
        let (chunk, has, lost) = (0, BTreeMap::new(), Vec::new());
        let mut life = Life { db, gate, is_continuous, now_ms, chunk, has, lost };
        for (part, count) in (0..).zip(DOCUMENTS) {
            life.add(part, count);
        }
        life.start();
        life
    }

    fn add(&mut self, part: i64, count: i64) {
        let place = Place { part: Part(part), job: JOB };
        let ids: Vec<i64> = (1..=count).map(|id| part * 1_000 + id).collect();
        let document = |id: &i64| candidate(*id, format!("http://a.example/{id}"), "a.example");
        let candidates: Vec<Candidate> = ids.iter().map(document).collect();
        self.db
            .write(move |tx| {
                let adding = AddContext {
                    place,
                    run: Run(1),
                    now_ms: 0,
                    room: None,
                    requisites: Default::default(),
                };
                queue::add(tx, adding, &candidates).map(|_| ())
            })
            .unwrap();
        self.settle(part, ids.iter().map(|id| (*id, Presence::Present)).collect());
        self.has.insert(part, ids.into_iter().collect());
    }

    fn state(&self) -> JobState {
        self.db.read(|tx| job_states::state(tx, JOB)).unwrap()
    }

    fn tell(&self, event: JobEvent) -> bool {
        let now_ms = self.now_ms;
        match self.db.write(move |tx| change(tx, JOB, &event, now_ms)) {
            Ok(_) => true,
            Err(Error::Refused(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn start(&self) {
        let now_ms = self.now_ms;
        self.tell(JobEvent::Start { minimal: false });
        self.tell(JobEvent::StartupBegins { node: NodeId(1), kind: RunKind::Full });
        self.db.write(move |tx| removals::note_base(tx, JOB, now_ms)).unwrap();
        self.tell(JobEvent::StartupDone { seeding_version: None, reseed_ms: None });
    }

    fn work(&self) -> JobWork {
        let attended = self
            .db
            .read(|tx| {
                let state = job_states::state(tx, JOB)?;
                let job = jobs::load(tx, JOB)?.unwrap();
                AttendedJob::new(tx, job, state)
            })
            .unwrap();
        JobWork::new(&attended, &crate::begin::shared(self.db, Vec::new()).unwrap()).unwrap()
    }

    /// Settles documents of a part with what was found.
    fn settle(&mut self, part: i64, found: Vec<(i64, Presence)>) {
        if found.is_empty() {
            return;
        }
        self.chunk += 1;
        let (place, chunk) = (Place { part: Part(part), job: JOB }, ChunkId(self.chunk));
        let asking = LeaseRequest {
            node: NodeId(self.chunk),
            node_name: "n".into(),
            now_ms: 0,
            lease_ms: 1_000,
            skew_ms: 0,
        };
        self.db
            .write(move |tx| {
                let lease = leases::take(tx, place.part, "crawl", &asking)?.unwrap();
                chunks::open(tx, &lease, chunk, JOB, Run(1), 0)?;
                let ids: Vec<QueueId> = found.iter().map(|it| QueueId(it.0)).collect();
                let peeked = queue::load(tx, place, &ids)?;
                queue::claim(tx, place, chunk, peeked)?;
                let by_id: HashMap<QueueId, Presence> =
                    found.iter().map(|it| (QueueId(it.0), it.1)).collect();
                let settled: Vec<SettledDocument> = ids
                    .iter()
                    .map(|id| SettledDocument { id: *id, generation: 1, to: Settlement::Done })
                    .collect();
                let round = removals::lock_round(tx, JOB)?;
                let roles = HashMap::new();
                let presences = Presences { by_id: &by_id, round, roles: &roles };
                queue::settle_with(tx, place, chunk, Run(1), &settled, presences)
            })
            .unwrap();
    }

    /// The job loses documents of a part, without an approval or with one.
    fn lose(&mut self, part: i64, ids: Vec<i64>, cause: RemoveReason, is_approved: bool) {
        let work = self.work();
        let (place, period) = (work.place(Part(part)), work.removal_period(self.now_ms));
        let lost = [(cause, ids.len() as i64)].into();
        if !is_approved && !ids.is_empty() {
            self.lost.extend(ids.iter().map(|_| (self.now_ms, work.run)));
            let run = work.run;
            self.db.write(move |tx| removals::record(tx, place, run, period, &lost)).unwrap();
        }
        for id in &ids {
            self.has.get_mut(&part).unwrap().remove(id);
        }
        self.settle(part, ids.into_iter().map(|id| (id, Presence::Absent)).collect());
    }

    fn some(&self, part: i64, count: usize) -> Vec<i64> {
        self.has[&part].iter().rev().take(count).copied().collect()
    }

    fn gone(&mut self, part: i64, count: usize) {
        let (work, reason) = (self.work(), RemoveReason::Gone);
        let (mut now, mut later) = (Vec::new(), Vec::new());
        for id in self.some(part, count) {
            match self.gate.let_go(
                &work,
                LeaseKey { part: Part(part), token: 7 },
                reason,
                self.now_ms,
            ) {
                true => now.push(id),
                false => later.push((id, Presence::Leaving(reason))),
            }
        }
        self.lose(part, now, reason, false);
        self.settle(part, later);
    }

    fn marked(&self, part: i64) -> BTreeSet<i64> {
        let place = Place { part: Part(part), job: JOB };
        let first = QueueId(i64::MIN);
        let list = move |tx: &mut Tx<'_>| removals::list(tx, place, i64::MIN, first, 1_000);
        let rows = self.db.read(list).unwrap();
        rows.into_iter().map(|it| it.id.0).collect()
    }

    /// Carries out what was released.
    fn sweep(&mut self) {
        let decided = self.state().removals;
        for part in 0..i64::from(PARTS) {
            let place = Place { part: Part(part), job: JOB };
            let (ids, marks) = self
                .db
                .read(move |tx| {
                    let sweep = Sweep::Leaving(decided.released);
                    let found = sweep::peek(tx, place, sweep, 1_000)?;
                    let ids: Vec<QueueId> = found.into_iter().map(|it| it.id).collect();
                    let marks = removals::marks(tx, place, &ids)?;
                    Ok((ids, marks))
                })
                .unwrap();
            for id in ids {
                let mark = &marks[&id];
                let is_approved = mark.round <= decided.approved;
                self.lose(part, vec![id.0], mark.cause, is_approved);
            }
        }
    }

    fn end(&mut self) {
        let now_ms = self.now_ms;
        if self.is_continuous {
            self.db.write(move |tx| judge_active(tx, JOB, PARTS, true, now_ms)).unwrap();
            self.sweep();
            return;
        }
        self.tell(JobEvent::QueueDone);
        while self.state().phase == Phase::ShuttingDown {
            self.sweep();
            self.db.write(move |tx| judge_ending(tx, JOB, PARTS, now_ms)).unwrap();
        }
        self.tell(JobEvent::NotifyBegins { node: NodeId(1) });
        self.tell(JobEvent::NotifyDone { error: None });
        self.start();
    }

    fn reject(&mut self) {
        let round = self.state().removals.held;
        for part in (0..i64::from(PARTS)).map(Part) {
            let place = Place { part, job: JOB };
            self.db.write(move |tx| removals::unmark(tx, place, round, 1_000)).unwrap();
        }
        self.tell(JobEvent::RemovalsRejected);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Gone(part, count) => self.gone(part.into(), count.into()),
            Step::Unreachable(part, count) => {
                let leaving = Presence::Leaving(RemoveReason::Unreachable);
                let found = self.some(part.into(), count.into());
                self.settle(part.into(), found.into_iter().map(|id| (id, leaving)).collect());
            }
            Step::Back(count) => {
                for part in 0..i64::from(PARTS) {
                    let found = self.marked(part).into_iter().take(count.into());
                    let found = found.map(|id| (id, Presence::Present)).collect();
                    self.settle(part, found);
                }
            }
            Step::End => self.end(),
            Step::Approve => {
                self.tell(JobEvent::ApproveRemovals);
            }
            Step::Reject => self.reject(),
            Step::Wait(hours) => self.now_ms += i64::from(hours) * 3_600_000,
        }
        self.check(step);
    }

    #[track_caller]
    fn check(&self, step: &Step) {
        let base = self.db.read(|tx| removals::base(tx, JOB)).unwrap().documents();
        let run = self.state().run;
        let counts = |it: &&(i64, Run)| match self.is_continuous {
            true => it.0 > self.now_ms - WINDOW_MS,
            false => it.1 == run,
        };
        let lost = self.lost.iter().filter(counts).count() as i64;
        // A day's limit is that of what the job had at some moment of the day.
        let base = if self.is_continuous { DOCUMENTS.iter().sum() } else { base };
        assert!(lost <= (base / 5).max(6), "{lost} of {base} are lost after {step:?}");
        for part in (0..i64::from(PARTS)).map(Part) {
            let place = Place { part, job: JOB };
            let (kept, counted) = self
                .db
                .read(move |tx| {
                    let kept = counters::in_part(tx, part, JOB)?;
                    Ok((kept, removals::count_rows(tx, place)?))
                })
                .unwrap();
            let kept: BTreeMap<String, i64> = kept.into_iter().collect();
            let counted: BTreeMap<String, i64> = counted.into_iter().collect();
            for name in removals::counter_names() {
                let of = |from: &BTreeMap<String, i64>| from.get(&name).copied().unwrap_or(0);
                assert_eq!(of(&kept), of(&counted), "{name} after {step:?}");
            }
            let has = counted.get(removals::DOCUMENTS).copied().unwrap_or(0);
            assert_eq!(has, self.has[&part.0].len() as i64, "after {step:?}");
        }
    }
}

#[test]
fn no_life_of_a_job_loses_more_than_its_limit_without_an_approval() {
    let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
    let lived = runner.run(&(steps(), any::<bool>()), |(steps, is_continuous)| {
        both_databases(|db| {
            let mut life = Life::begin(db, is_continuous);
            steps.iter().for_each(|step| life.step(step));
            Ok(())
        });
        Ok(())
    });
    lived.unwrap();
}

#[test]
fn what_is_held_waits_for_a_person_and_is_never_released_by_growth() {
    both_databases(|db| {
        let mut life = Life::begin(db, false);
        life.step(&Step::Unreachable(0, 14));
        life.step(&Step::End);
        assert_eq!((life.state().removals.held_ms, life.lost.len()), (Some(life.now_ms), 0));
        life.add(1, 400);
        life.end();
        assert_eq!(life.marked(0).len(), 14, "they are few now, and held all the same");
        life.step(&Step::Approve);
        life.end();
        assert_eq!(
            (life.marked(0).len(), life.lost.len()),
            (0, 0),
            "and approved ones do not count"
        );
        Ok(())
    });
}

#[test]
fn a_continuous_job_is_measured_by_the_day() {
    both_databases(|db| {
        let mut life = Life::begin(db, true);
        life.step(&Step::Unreachable(0, 8));
        life.step(&Step::End);
        assert_eq!(life.lost.len(), 8);
        life.step(&Step::Unreachable(0, 8));
        life.step(&Step::End);
        assert_eq!(life.lost.len(), 8, "16 of 60 are more than a fifth in a day");
        life.step(&Step::Reject);
        life.step(&Step::Wait(30));
        life.step(&Step::Unreachable(0, 8));
        life.step(&Step::End);
        assert_eq!(life.lost.len(), 16, "another day");
        Ok(())
    });
}
