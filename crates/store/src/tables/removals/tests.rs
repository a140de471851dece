//! Marks, their counters and what was lost, on both databases.

use super::*;
use crate::Db;
use crate::ids::{ChunkId, ConnectionId, DocumentId, NodeId};
use crate::tables::documents::{self, Document};
use crate::tables::job_states;
use crate::tables::jobs::{self, Job};
use crate::tables::leases::{self, LeaseRequest};
use crate::tables::queue::sweep::{self, Sweep};
use crate::tables::queue::{self, AddContext, Candidate, Presences, SettledDocument, Settlement};
use crate::tables::{chunks, counters};
use crate::testing::{both_databases, candidate};
use page::ids::DocHash;

const PLACE: Place = Place { part: Part(1), job: JobId(1) };

/// Documents of a job in a part, each with an id; they have been added and not looked at.
fn named(db: &Db, count: i64) -> Result<()> {
    db.write(move |tx| {
        jobs::save(tx, &Job::new(PLACE.job, "a", ConnectionId(1)), 0)?;
        let candidates: Vec<Candidate> = (1..=count)
            .map(|id| candidate(id, format!("http://a.example/{id}"), "a.example"))
            .collect();
        let adding = AddContext {
            place: PLACE,
            run: Run(1),
            now_ms: 0,
            room: None,
            requisites: Default::default(),
        };
        queue::add(tx, adding, &candidates).map(|_| ())
    })
}

/// Claims documents and settles them with what was found.
fn settled(db: &Db, chunk: i64, found: Vec<(i64, Settlement, Presence)>) -> Result<()> {
    let asking = LeaseRequest {
        node: NodeId(chunk),
        node_name: "n".into(),
        now_ms: 0,
        lease_ms: 1_000,
        skew_ms: 0,
    };
    let lease = db.write(move |tx| leases::take(tx, PLACE.part, "crawl", &asking))?;
    let lease = lease.expect("its own lease is granted");
    db.write(move |tx| {
        let (chunk, ids) = (ChunkId(chunk), found.iter().map(|it| QueueId(it.0)));
        chunks::open(tx, &lease, chunk, PLACE.job, Run(1), 0)?;
        let peeked = queue::load(tx, PLACE, &ids.collect::<Vec<_>>())?;
        queue::claim(tx, PLACE, chunk, peeked)?;
        let by_id = found.iter().map(|it| (QueueId(it.0), it.2)).collect();
        let settled: Vec<SettledDocument> = found
            .iter()
            .map(|(id, to, _)| SettledDocument { id: QueueId(*id), generation: 1, to: to.clone() })
            .collect();
        let round = lock_round(tx, PLACE.job)?;
        let roles = HashMap::new();
        let presences = Presences { by_id: &by_id, round, roles: &roles };
        queue::settle_with(tx, PLACE, chunk, Run(1), &settled, presences)
    })
}

/// The counters of marks and documents, which must be what the rows say.
#[track_caller]
fn counted(db: &Db) -> Result<Vec<(String, i64)>> {
    let (kept, mut counted) = db.read(|tx| {
        let kept = counters::in_part(tx, PLACE.part, PLACE.job)?;
        Ok((kept, count_rows(tx, PLACE)?))
    })?;
    let names: Vec<String> = counter_names().collect();
    let mut kept: Vec<(String, i64)> =
        kept.into_iter().filter(|it| it.1 != 0 && names.contains(&it.0)).collect();
    kept.sort();
    counted.sort();
    assert_eq!(kept, counted);
    Ok(kept)
}

fn pairs(list: &[(&str, i64)]) -> Vec<(String, i64)> {
    list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

const GONE: Presence = Presence::Leaving(RemoveReason::Gone);

#[test]
fn marks_and_documents_are_counted_with_the_rows_that_settle() {
    both_databases(|db| {
        named(db, 4)?;
        let all = |to: Settlement, presence| (1..=4).map(|id| (id, to.clone(), presence)).collect();
        settled(db, 1, all(Settlement::Done, Presence::Present))?;
        assert_eq!(counted(db)?, pairs(&[("documents", 4)]));
        settled(db, 2, all(Settlement::Done, GONE))?;
        assert_eq!(counted(db)?, pairs(&[("documents", 4), ("leaving gone", 4)]));
        assert_eq!(db.read(|tx| marked(tx, PLACE.job))?, [("gone".to_owned(), 4)].into());
        // Found again; trouble; not there any more; its row goes.
        let again = vec![
            (1, Settlement::Done, Presence::Present),
            (2, Settlement::Done, Presence::Unchanged),
            (3, Settlement::Done, Presence::Absent),
            (4, Settlement::Deleted, Presence::Unchanged),
        ];
        settled(db, 3, again)?;
        assert_eq!(counted(db)?, pairs(&[("documents", 2), ("leaving gone", 1)]));
        let marks = db.read(|tx| super::marks(tx, PLACE, &[QueueId(1), QueueId(2)]))?;
        let only = Mark { cause: RemoveReason::Gone, round: 1, reason: None };
        assert_eq!(marks, [(QueueId(2), only)].into());
        Ok(())
    });
}

#[test]
fn a_mark_keeps_its_round_and_is_swept_or_taken_off_by_it() {
    both_databases(|db| {
        named(db, 3)?;
        let mark = |chunk, id| settled(db, chunk, vec![(id, Settlement::Done, GONE)]);
        mark(1, 1)?;
        db.write(|tx| {
            let before = job_states::state(tx, PLACE.job)?;
            let mut now = before.clone();
            now.removals.current = 2;
            job_states::save(tx, PLACE.job, &before, &now, 1)
        })?;
        mark(2, 2)?;
        mark(3, 1)?;
        let swept = |round| {
            let found = db.read(move |tx| sweep::peek(tx, PLACE, Sweep::Leaving(round), 9))?;
            Ok::<_, Error>(found.into_iter().map(|it| it.id.0).collect::<Vec<_>>())
        };
        assert_eq!((swept(0)?, swept(1)?, swept(2)?), (vec![], vec![1], vec![1, 2]));
        let any = |round| db.read(move |tx| is_any(tx, PLACE, round));
        assert_eq!((any(0)?, any(1)?), (false, true));
        let listed = db.read(|tx| list(tx, PLACE, 0, QueueId(0), 1))?;
        assert_eq!((listed.len(), &*listed[0].docid), (1, "http://a.example/1"));
        assert_eq!(db.write(|tx| unmark(tx, PLACE, 1, 9))?, 1);
        assert_eq!(db.write(|tx| unmark(tx, PLACE, 1, 9))?, 0);
        assert_eq!(swept(2)?, [2]);
        assert_eq!(counted(db)?, pairs(&[("leaving gone", 1)]));
        Ok(())
    });
}

#[test]
fn what_was_lost_is_added_up_over_a_run_or_a_day() {
    both_databases(|db| {
        named(db, 1)?;
        let lose = |run: i64, period: Period, count: i64| {
            db.write(move |tx| {
                let lost = [(RemoveReason::Gone, count)].into();
                record(tx, PLACE, Run(run), period, &lost)
            })
        };
        let sum = |part: Option<Part>, period| {
            let lost = db.read(move |tx| lost(tx, PLACE.job, part, period))?;
            Ok::<_, Error>(lost.values().sum::<i64>())
        };
        lose(1, Period::Run(Run(1)), 3)?;
        lose(1, Period::Run(Run(1)), 4)?;
        assert_eq!(sum(None, Period::Run(Run(1)))?, 7);
        lose(2, Period::Run(Run(2)), 5)?;
        assert_eq!((sum(None, Period::Run(Run(1)))?, sum(None, Period::Run(Run(2)))?), (0, 5));
        let day = |hours: i64| Period::DayBefore((1_000 + hours) * HOUR_MS);
        lose(2, day(0), 10)?;
        lose(3, day(20), 1)?;
        assert_eq!((sum(None, day(23))?, sum(None, day(25))?), (16 - 5, 1));
        assert_eq!((sum(Some(Part(1)), day(23))?, sum(Some(Part(2)), day(23))?), (11, 0));
        Ok(())
    });
}

#[test]
fn the_shares_of_all_parts_add_up_to_the_whole() {
    both_databases(|db| {
        named(db, 1)?;
        for (part, count) in [(0, 7), (1, 1), (2, 0), (3, 92), (5, 3)] {
            db.write(move |tx| counters::add(tx, Part(part), PLACE.job, &[(DOCUMENTS, count)]))?;
        }
        db.write(|tx| note_base(tx, PLACE.job, 77))?;
        let base = db.read(|tx| base(tx, PLACE.job))?;
        assert_eq!((base.documents(), base.noted_ms, base.by_part.len()), (103, 77, 4));
        for number in [0, 1, 19, 20, 1_000_003] {
            let shares: Vec<i64> = (0..7).map(|part| base.share(Part(part), number)).collect();
            assert_eq!(shares.iter().sum::<i64>(), number, "{shares:?}");
        }
        assert_eq!(Base::default().share(Part(0), 20), 0, "what has nothing has no share");
        Ok(())
    });
}

/// What the migration says of rows that are there already.
#[test]
fn documents_of_an_older_schema_are_counted_when_it_is_upgraded() {
    both_databases(|db| {
        named(db, 3)?;
        let done = |id| (id, Settlement::Done, Presence::Unchanged);
        settled(db, 1, vec![done(1), done(2)])?;
        let saved = |id: i64, chunk: Option<i64>, removed_ms: Option<i64>| {
            let docid = format!("http://a.example/{id}");
            let mut it = Document::new(DocumentId(id), DocHash::of(&docid), docid, 0);
            (it.chunk, it.removed_ms) = (chunk.map(ChunkId), removed_ms);
            it
        };
        let rows = [saved(1, Some(1), None), saved(2, Some(1), Some(5)), saved(3, None, None)];
        db.write(move |tx| documents::save(tx, PLACE.part, ConnectionId(1), &rows))?;
        db.write(|tx| {
            let text = include_str!("../../../migrations/removals.sql");
            let lines = text.lines().filter(|line| !line.starts_with("--"));
            let text: String = lines.flat_map(|line| [line, "\n"]).collect();
            for statement in text.split(';').map(str::trim) {
                if statement.starts_with("UPDATE") || statement.starts_with("INSERT") {
                    tx.execute(statement, &[])?;
                }
            }
            Ok(())
        })?;
        assert_eq!(counted(db)?, pairs(&[("documents", 1)]));
        Ok(())
    });
}
