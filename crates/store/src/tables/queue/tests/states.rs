//! The states of table 11.25, as the view `jobqueue` derives them: each is reached by
//! what the queue and the life cycle really do.

use super::*;
use crate::tables::job_states::{self, JobState, Phase, RunKind};
use crate::tables::jobs::{self, Job};
use crate::tables::queue::sweep::{self, Sweep};
use std::collections::BTreeSet;

const PLACE: Place = Place { part: Part(1), job: JOB };

fn stands(db: &Db, phase: Phase, run: i64, kind: RunKind) -> Result<()> {
    db.write(move |tx| {
        let before = job_states::state(tx, JOB)?;
        let now = JobState { phase, run: Run(run), run_kind: kind, ..before.clone() };
        job_states::save(tx, JOB, &before, &now, run)
    })
}

/// The name of each document's state, by the number of its row.
fn names(db: &Db) -> Result<BTreeMap<i64, String>> {
    let rows = db.read(|tx| {
        tx.query("SELECT id, status FROM jobqueue ORDER BY id LIMIT 100", &[], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    })?;
    Ok(rows.into_iter().collect())
}

fn name(db: &Db, id: i64) -> Result<String> {
    Ok(names(db)?.remove(&id).unwrap_or_default())
}

fn named(db: &Db, run: i64, documents: std::ops::Range<u8>) -> Result<()> {
    let candidates: Vec<Candidate> =
        documents.map(|it| candidate(i64::from(it) + 1, it, 0, None)).collect();
    db.write(move |tx| add(tx, at(PLACE, Run(run), 0), &candidates).map(|_| ()))
}

fn claimed(db: &Db, chunk: i64, ids: &[i64]) -> Result<()> {
    let ids: Vec<QueueId> = ids.iter().copied().map(QueueId).collect();
    let held = lease(db, PLACE.part, chunk)?;
    db.write(move |tx| {
        chunks::open(tx, &held, ChunkId(chunk), JOB, Run(1), 0)?;
        assert_eq!(claim_ids(tx, PLACE, ChunkId(chunk), &ids)?.len(), ids.len());
        Ok(())
    })
}

fn done(db: &Db, (chunk, run): (i64, i64), ids: &[i64]) -> Result<()> {
    let settled: Vec<SettledDocument> = ids
        .iter()
        .map(|id| SettledDocument { id: QueueId(*id), generation: 0, to: Settlement::Done })
        .collect();
    db.write(move |tx| settle(tx, PLACE, ChunkId(chunk), Run(run), &settled))
}

fn rescan(db: &Db, id: i64) -> Result<()> {
    db.write(move |tx| {
        tx.execute("UPDATE queue SET rescan = 1 WHERE part = 1 AND id = $1", &[id.into()])
    })?;
    Ok(())
}

#[test]
fn every_state_of_the_chapter_is_reached_and_shown_by_its_name() {
    both_databases(|db| {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut is = |id: i64, expected: &str| -> Result<()> {
            assert_eq!(name(db, id)?, expected);
            seen.insert(expected.to_owned());
            Ok(())
        };
        db.write(|tx| jobs::save(tx, &Job::new(JOB, "a", crate::ids::ConnectionId(1)), 0))?;
        stands(db, Phase::Active, 1, RunKind::Full)?;
        named(db, 1, 0..6)?;
        db.write(|tx| {
            let far = candidate(90, 50, 9, Some(ReasonCode::Hops));
            add(tx, at(PLACE, Run(1), 0), &[far]).map(|_| ())
        })?;
        is(1, "PENDING")?;
        is(90, "HOPCOUNTREMOVED")?;
        claimed(db, 1, &[1, 2, 3, 4, 5, 6])?;
        is(1, "ACTIVE")?;
        rescan(db, 1)?;
        is(1, "ACTIVENEEDRESCAN")?;
        done(db, (1, 1), &[1, 2, 3, 4, 5, 6])?;
        is(1, "PENDINGPURGATORY")?;
        is(2, "COMPLETE")?;

        // A partial run has not found document 2 yet, a full one neither.
        stands(db, Phase::Active, 2, RunKind::Partial)?;
        is(2, "UNCHANGED")?;
        stands(db, Phase::Active, 2, RunKind::Full)?;
        is(2, "PURGATORY")?;
        named(db, 2, 0..3)?;
        is(2, "PENDINGPURGATORY")?;
        claimed(db, 2, &[2, 3])?;
        is(2, "ACTIVEPURGATORY")?;
        rescan(db, 3)?;
        is(3, "ACTIVENEEDRESCANPURGATORY")?;
        done(db, (2, 2), &[2, 3])?;
        is(2, "COMPLETE")?;

        stands(db, Phase::ShuttingDown, 2, RunKind::Full)?;
        is(4, "PURGATORY")?;
        let clean = Sweep::Clean(Run(2));
        db.write(move |tx| {
            let peeked = sweep::peek(tx, PLACE, clean, 100)?;
            sweep::claim(tx, PLACE, ChunkId(3), clean, peeked).map(|_| ())
        })?;
        is(4, "BEINGCLEANED")?;
        stands(db, Phase::Deleting, 2, RunKind::Full)?;
        is(2, "ELIGIBLEFORDELETE")?;
        db.write(|tx| {
            let peeked = sweep::peek(tx, PLACE, Sweep::Delete, 1)?;
            sweep::claim(tx, PLACE, ChunkId(4), Sweep::Delete, peeked).map(|_| ())
        })?;
        let deleted = names(db)?.into_values().filter(|name| name == "BEINGDELETED").count();
        assert!(deleted > 0);
        seen.insert("BEINGDELETED".into());
        assert_eq!(seen.len(), 13, "all of table 11.25: {seen:?}");
        Ok(())
    });
}
