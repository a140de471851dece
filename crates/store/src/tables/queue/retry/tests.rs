//! Retrying what has failed, on both databases: who becomes ready, in which steps, and
//! what counters and marks say then.

use super::*;
use crate::Db;
use crate::ids::{ChunkId, JobId, NodeId, Part};
use crate::tables::leases::{self, LeaseRequest};
use crate::tables::queue::{
    AddContext, Candidate, Entry, Reason, SettledDocument, Settlement, count_rows, load,
    peek_ready, settle,
};
use crate::tables::{bins, chunks, counters};
use crate::testing::{both_databases, candidate};
use crate::tx::with_keys;

const PLACE: Place = Place { part: Part(1), job: JobId(1) };
/// Documents of the job; an even one has failed by `dns`, every fourth other by
/// `http-503`, and the rest is done.
const DOCUMENTS: i64 = 20;

fn key(id: i64) -> DocHash {
    DocHash::of(&format!("http://host{}/{id}", id % 3))
}

fn fate(id: i64) -> Settlement {
    match id % 4 {
        0 | 2 => Settlement::Failed(Reason::new("dns", Some("the name has no address"))),
        1 => Settlement::Failed(Reason::new("http-503", None)),
        _ => Settlement::Done,
    }
}

/// What run 1 leaves, with no bin marked.
fn settled(db: &Db) -> Result<()> {
    let asking =
        LeaseRequest { node: NodeId(1), node_name: "n".into(), now_ms: 0, lease_ms: 9, skew_ms: 0 };
    let lease = db.write(move |tx| leases::take(tx, PLACE.part, "crawl", &asking))?;
    let lease = lease.expect("nobody else has it");
    let candidates: Vec<Candidate> = (0..DOCUMENTS)
        .map(|id| {
            let host = format!("host{}", id % 3);
            let document = candidate(id, format!("http://{host}/{id}"), &host);
            Candidate { dochash: key(id), bin: BinId(id % 3), seed: true, ..document }
        })
        .collect();
    db.write(move |tx| {
        let adding = AddContext {
            place: PLACE,
            run: Run(1),
            now_ms: 0,
            room: None,
            requisites: Default::default(),
        };
        super::super::add(tx, adding, &candidates)?;
        chunks::open(tx, &lease, ChunkId(9), PLACE.job, Run(1), 0)?;
        let ids: Vec<QueueId> = (0..DOCUMENTS).map(QueueId).collect();
        let peeked = load(tx, PLACE, &ids)?;
        super::super::claim(tx, PLACE, ChunkId(9), peeked)?;
        let settled: Vec<SettledDocument> = (0..DOCUMENTS)
            .map(|id| SettledDocument { id: QueueId(id), generation: 1, to: fate(id) })
            .collect();
        settle(tx, PLACE, ChunkId(9), Run(1), &settled)?;
        for mark in bins::marked(tx, PLACE.part, JobId(0), BinId(-1), 10)? {
            bins::unmark(tx, PLACE.part, mark)?;
        }
        Ok(())
    })
}

fn ready(db: &Db) -> Result<Vec<Entry>> {
    db.read(|tx| {
        let mut found = Vec::new();
        for bin in 0..3 {
            found.extend(peek_ready(tx, PLACE, BinId(bin), 100)?);
        }
        found.sort_by_key(|entry| entry.id);
        Ok(found)
    })
}

/// Counters equal the rows, and these bins are marked.
#[track_caller]
fn assert_booked(db: &Db, marked: &[i64]) -> Result<()> {
    let (rows, counted, marks) = db.read(|tx| {
        let counted: Vec<(String, i64)> = counters::in_part(tx, PLACE.part, PLACE.job)?;
        let marks = bins::marked(tx, PLACE.part, JobId(0), BinId(-1), 10)?;
        Ok((count_rows(tx, PLACE)?, counted, marks))
    })?;
    let counted: Vec<(String, i64)> = counted.into_iter().filter(|it| it.1 != 0).collect();
    assert_eq!(rows, counted);
    let marks: Vec<i64> = marks.into_iter().map(|mark| mark.bin.0).collect();
    assert_eq!(marks, marked);
    Ok(())
}

#[test]
fn what_has_failed_is_ready_again_in_bounded_steps() {
    both_databases(|db| {
        settled(db)?;
        assert_booked(db, &[])?;
        let (mut steps, mut count, mut after) = (0, 0, Some(QueueId(i64::MIN)));
        while let Some(at) = after {
            let done = db.write(move |tx| retry(tx, PLACE, Run(1), None, at, 4))?;
            assert!(done.count <= 4);
            (steps, count, after) = (steps + 1, count + done.count, done.next);
        }
        assert_eq!((steps, count), (4, 15));
        assert_booked(db, &[0, 1, 2])?;
        let ready = ready(db)?;
        assert_eq!(ready.len(), 15);
        let fresh = |it: &Entry| it.failcount.is_none() && it.done_run == Some(Run(1));
        assert!(ready.iter().all(fresh), "{ready:?}");
        let again = db.write(|tx| retry(tx, PLACE, Run(1), None, QueueId(i64::MIN), 4))?;
        assert_eq!(again, RetryScan { count: 0, next: None });
        Ok(())
    });
}

#[test]
fn only_what_failed_for_a_reason_is_retried() {
    both_databases(|db| {
        settled(db)?;
        let (reason, first) = (Some("http-503"), QueueId(i64::MIN));
        let done = db.write(move |tx| retry(tx, PLACE, Run(1), reason, first, 100))?;
        assert_eq!(done, RetryScan { count: 5, next: None });
        let ids: Vec<i64> = ready(db)?.iter().map(|entry| entry.id.0).collect();
        assert_eq!(ids, [1, 5, 9, 13, 17]);
        let reasons: Vec<Option<String>> = db.read(|tx| {
            tx.query("SELECT reason FROM queue WHERE state = 'ready'", &[], |row| row.get(0))
        })?;
        assert_eq!(reasons, vec![None; 5]);
        // A step whose rows all failed for something else says where to go on.
        let (done, rest) = db.write(|tx| {
            let done = retry(tx, PLACE, Run(1), Some("never"), QueueId(i64::MIN), 3)?;
            let rest = retry(tx, PLACE, Run(1), Some("never"), QueueId(4), 100)?;
            Ok((done, rest))
        })?;
        assert_eq!(done, RetryScan { count: 0, next: Some(QueueId(4)) });
        assert_eq!(rest.next, None);
        assert_booked(db, &[0, 1, 2])
    });
}

#[test]
fn documents_are_retried_by_name_and_what_has_not_failed_stays() {
    both_databases(|db| {
        settled(db)?;
        let keys = [key(2), key(3), key(4), DocHash::of("http://nobody/")];
        let mut found = db.read(move |tx| failed(tx, PLACE, &keys))?;
        found.sort();
        let mut expected = vec![key(2), key(4)];
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(db.write(move |tx| retry_these(tx, PLACE, Run(1), &keys))?, 2);
        let ids: Vec<i64> = ready(db)?.iter().map(|entry| entry.id.0).collect();
        assert_eq!(ids, [2, 4]);
        assert_booked(db, &[1, 2])
    });
}

#[test]
fn a_later_run_does_not_take_what_is_retried_for_forgotten() {
    both_databases(|db| {
        settled(db)?;
        db.write(|tx| retry_these(tx, PLACE, Run(3), &[key(2)]))?;
        let entry = &ready(db)?[0];
        assert_eq!((entry.seen_run, entry.done_run), (Run(3), Some(Run(1))));
        db.write(|tx| {
            tx.execute("UPDATE queue SET seen_run = 7 WHERE id = 4", &[])?;
            retry_these(tx, PLACE, Run(3), &[key(4)])
        })?;
        assert_eq!(ready(db)?[1].seen_run, Run(7), "a run takes nothing back");
        Ok(())
    });
}

#[test]
fn the_walk_goes_along_its_index_and_rows_are_found_by_their_keys() {
    crate::testing::on_sqlite(|db| {
        for (text, words) in [
            (FAILED.to_owned(), "queue_failed (part=? AND jobid=? AND id>?)"),
            (with_keys(&ready_text("id"), "= $4"), "(part=? AND id=?)"),
            (with_keys(&ready_text("dochash"), "= $4"), "(part=? AND dochash=?)"),
        ] {
            let sql = format!("EXPLAIN QUERY PLAN {text}");
            let plan: Vec<String> =
                db.read(move |tx| tx.query(&sql, &[Value::Int(1); 4], |row| row.get(3)))?;
            let whole = plan.join("; ");
            assert!(whole.contains(words) && !whole.contains("TEMP"), "{text}: {whole}");
        }
        Ok(())
    });
}

#[test]
fn only_what_failed_for_one_of_some_reasons_is_ready_again() {
    both_databases(|db| {
        settled(db)?;
        let reasons = ["dns".to_owned(), "address".to_owned()];
        let first = (reasons, QueueId(i64::MIN));
        let done = db.write(move |tx| retry_any_of(tx, PLACE, Run(1), &first.0, first.1, 100))?;
        assert_eq!(done, RetryScan { count: 10, next: None });
        assert!(ready(db)?.iter().all(|it| it.id.0 % 2 == 0));
        assert_booked(db, &[0, 1, 2])
    });
}
