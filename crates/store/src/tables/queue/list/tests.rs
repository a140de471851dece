//! Every walk sees all that it must, once, along an index.

use super::*;
use crate::ids::{DocumentId, NodeId};
use crate::tables::chunks;
use crate::tables::documents::{self, Document};
use crate::tables::leases::{self, LeaseRequest};
use crate::tables::queue::{
    AddContext, Candidate, Reason, SettledDocument, Settlement, add, claim, load, settle,
};
use crate::testing::{self, both_databases, on_sqlite};
use crate::{Db, Error};
use std::collections::BTreeSet;

const PLACE: Place = Place { part: Part(0), job: JobId(1) };
const RUN: Run = Run(1);

fn candidate(number: i64, cut: Option<ReasonCode>) -> Candidate {
    let host = format!("h{}.example", number % 3);
    Candidate {
        bin: BinId(number % 3),
        priority: (number % 5) as f64 / 7.0,
        hops: 1,
        parent: Some((Part(0), DocHash::of("http://parent.example/"))),
        cut,
        ..testing::candidate(number, format!("http://{host}/{number}"), &host)
    }
}

fn adding(place: Place, now_ms: i64) -> AddContext {
    AddContext { place, run: RUN, now_ms, room: None, requisites: Default::default() }
}

/// Ten documents in each state.
fn fill(db: &Db) -> Result<()> {
    let mut all: Vec<Candidate> = (0..50).map(|number| candidate(number, None)).collect();
    all.extend((50..55).map(|number| candidate(number, Some(ReasonCode::Scope))));
    all.extend((55..60).map(|number| candidate(number, Some(ReasonCode::Hops))));
    let asking = LeaseRequest {
        node: NodeId(1),
        node_name: "n".into(),
        now_ms: 0,
        lease_ms: 1_000,
        skew_ms: 0,
    };
    let lease = db
        .write(move |tx| leases::take(tx, PLACE.part, "crawl", &asking))?
        .ok_or_else(|| Error::Refused("the lease is free".into()))?;
    db.write(move |tx| {
        add(tx, adding(PLACE, 7), &all)?;
        for (chunk, first) in [(ChunkId(900), 10), (ChunkId(901), 40)] {
            chunks::open(tx, &lease, chunk, PLACE.job, RUN, 0)?;
            let last = if first == 10 { 40 } else { 50 };
            let ids: Vec<QueueId> = (first..last).map(QueueId).collect();
            let peeked = load(tx, PLACE, &ids)?;
            claim(tx, PLACE, chunk, peeked)?;
        }
        let trouble = || Reason::new("http-503", Some("the server answered with status 503"));
        let to = |number: i64| match number {
            10..20 => Settlement::Done,
            20..30 => Settlement::Failed(trouble()),
            _ => Settlement::Retry {
                check_ms: 1_000 - number % 4,
                failcount: Some(2),
                failtime: None,
                reason: trouble(),
            },
        };
        let settled: Vec<SettledDocument> = (10..40)
            .map(|number| SettledDocument { id: QueueId(number), generation: 1, to: to(number) })
            .collect();
        settle(tx, PLACE, ChunkId(900), RUN, &settled)
    })
}

/// Walks to the end in pages of three; leaves out what was not asked for.
fn walked(db: &Db, walk: &QueueQuery) -> Result<Vec<i64>> {
    let (mut after, mut found) = (QueuePosition::first(), Vec::new());
    loop {
        let (step, key) = (walk.clone(), after.clone());
        let page = db.read(move |tx| list(tx, &step, &key, 3))?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.key(walk.state);
        let asked = |row: &&ListedDocument| {
            walk.state.is_none_or(|state| state == row.state)
                && walk.bin.is_none_or(|bin| bin == row.bin)
                && (walk.reason.is_none() || walk.reason == row.reason)
        };
        found.extend(page.iter().filter(asked).map(|row| row.id.0));
    }
}

fn walk(state: Option<State>) -> QueueQuery {
    QueueQuery { place: PLACE, connection: ConnectionId(1), state, bin: None, reason: None }
}

#[test]
fn every_state_is_walked_to_its_end_and_nothing_comes_twice() {
    both_databases(|db| {
        fill(db)?;
        assert_eq!(walked(db, &walk(None))?, (0..60).collect::<Vec<i64>>());
        let mut seen = BTreeSet::new();
        for &state in State::ALL {
            let found = walked(db, &walk(Some(state)))?;
            assert_eq!(found.len(), 10, "{state:?}");
            seen.extend(found);
        }
        assert_eq!(seen.len(), 60);
        let other = QueueQuery { place: Place { job: JobId(2), ..PLACE }, ..walk(None) };
        assert_eq!(walked(db, &other)?, [] as [i64; 0]);
        Ok(())
    });
}

#[test]
fn a_walk_can_be_narrowed_to_a_bin_or_a_reason() {
    both_databases(|db| {
        fill(db)?;
        let of_bin = QueueQuery { bin: Some(BinId(1)), ..walk(Some(State::Done)) };
        assert_eq!(walked(db, &of_bin)?, [10, 13, 16, 19]);
        let hops = QueueQuery { reason: Some("hops".into()), ..walk(Some(State::Cut)) };
        assert_eq!(walked(db, &hops)?, [55, 56, 57, 58, 59]);
        let both =
            QueueQuery { bin: Some(BinId(0)), reason: Some("http-503".into()), ..walk(None) };
        assert_eq!(walked(db, &both)?, [21, 24, 27, 30, 33, 36, 39]);
        Ok(())
    });
}

#[test]
fn every_walk_follows_an_index_and_sorts_nothing() {
    on_sqlite(|db| {
        let states = State::ALL.iter().copied().map(Some).chain([None]);
        for (state, narrow) in states.flat_map(|state| [(state, false), (state, true)]) {
            let (bin, reason) = (narrow.then_some(BinId(1)), narrow.then(|| "x".to_owned()));
            let walk = QueueQuery { bin, reason, ..walk(state) };
            let plan: Vec<String> = db.read(move |tx| {
                let key = QueuePosition::first();
                let (condition, order, position) = position(&walk, &key);
                let text = format!("EXPLAIN QUERY PLAN {}", page_text(condition, order));
                let mut values: Vec<Value<'_>> = vec![1.into(), 1.into(), 1.into(), 9.into()];
                values.extend(position);
                tx.query(&text, &values, |row| row.get(3))
            })?;
            let indexed = plan.iter().all(|step| step.starts_with("SEARCH"));
            assert!(indexed, "{state:?} narrow: {narrow}: {plan:?}");
        }
        Ok(())
    });
}

#[test]
fn a_document_is_shown_in_every_job_with_what_came_of_it() {
    both_databases(|db| {
        fill(db)?;
        let docid = candidate(20, None).docid;
        let hash = DocHash::of(&docid);
        let mut document = Document::new(DocumentId(1), hash, docid.clone(), 5);
        document.http_status = Some(503);
        db.write(move |tx| {
            documents::save(tx, PLACE.part, ConnectionId(1), std::slice::from_ref(&document))?;
            let again = Candidate { id: QueueId(1_000), ..candidate(20, None) };
            let place = Place { job: JobId(2), ..PLACE };
            add(tx, adding(place, 8), &[again]).map(|_| ())
        })?;
        let found = db.read(move |tx| in_jobs(tx, PLACE.part, hash))?;
        let states: Vec<_> = found.iter().map(|it| (it.job.0, it.state.name())).collect();
        assert_eq!(states, [(1, "failed"), (2, "ready")]);
        assert_eq!(found[0].reason.as_deref(), Some("http-503"));
        assert_eq!(found[0].added_ms, 7);
        let listed =
            db.read(|tx| list(tx, &walk(Some(State::Failed)), &QueuePosition::first(), 1))?;
        assert_eq!((listed[0].status, listed[0].checked_ms), (Some(503), Some(5)));
        let name = db.read(move |tx| docid_of(tx, PLACE.part, hash))?;
        assert_eq!(name, Some(docid));
        assert_eq!(db.read(|tx| docid_of(tx, Part(1), DocHash::of("x")))?, None);
        Ok(())
    });
}
