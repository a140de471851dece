//! What is active over several commits.

use super::*;
use crate::tables::chunks::{ChunkOpening, ChunkSummary};

#[test]
fn what_a_commit_leaves_active_is_not_rewritten_and_goes_back_with_the_chunk_that_goes_on() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let (held, run) = (lease(db, place.part, 1)?, Run(1));
        let claimed = db.write({
            let held = held.clone();
            move |tx| {
                let named: Vec<Candidate> =
                    [0, 3, 6].map(|it| candidate(i64::from(it) + 1, it, 0, None)).to_vec();
                add(tx, at(place, run, 0), &named)?;
                chunks::open(tx, &held, ChunkId(1), JOB, run, 0)?;
                let peeked = peek_ready(tx, place, BinId(0), 10)?;
                claim(tx, place, ChunkId(1), peeked)
            }
        })?;
        let commit = |(chunk, seq): (ChunkId, CommitNumber), settled: QueueId, next: ChunkId| {
            let held = held.clone();
            db.write(move |tx| {
                let done = SettledDocument { id: settled, generation: 0, to: Settlement::Done };
                settle(tx, place, ChunkId(1), run, &[done])?;
                chunks::commit(tx, &held, chunk, seq, &ChunkSummary::default(), 0)?;
                let opening = ChunkOpening { chunk: next, claim: ChunkId(1), job: JOB, run };
                chunks::open_for(tx, &held, opening, 0)
            })
        };
        commit((ChunkId(1), CommitNumber(1)), claimed[0].id, ChunkId(2))?;
        commit((ChunkId(2), CommitNumber(2)), claimed[1].id, ChunkId(3))?;
        let found = db.read(move |tx| active_in(tx, place, ChunkId(1), 10))?;
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), [claimed[2].id]);
        let holder = db.read(move |tx| chunks::holder(tx, place.part, ChunkId(1), 0))?;
        assert!(holder.is_some_and(|it| it.alive), "the open chunk goes on with it");

        let other = lease(db, place.part, 2)?;
        let freed = db.write(move |tx| chunks::abandon_stale(tx, &other, 0, 10))?;
        assert_eq!(freed, 1, "the third goes back with the chunk that was open");
        let id = claimed[2].id;
        let found = db.read(move |tx| load(tx, place, &[id]))?;
        assert_eq!(found[0].state, State::Ready);
        Ok(())
    });
}

/// Documents and lists of a host, of which lists came first.
fn queue_lists_and_documents(db: &Db, place: Place, lists: u8, documents: u8) -> Result<()> {
    let named: Vec<Candidate> = (0..lists + documents)
        .map(|number| {
            let priority = if number < lists { f64::from(1 + number % 2) } else { 0.0 };
            Candidate { priority, ..candidate(i64::from(number) + 1, number * 3, 1, None) }
        })
        .collect();
    db.write(move |tx| add(tx, at(place, Run(1), 0), &named))?;
    Ok(())
}

#[test]
fn a_host_with_sitemaps_without_end_still_has_every_second_page_claimed() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        queue_lists_and_documents(db, place, 40, 12)?;
        let depths = |limit: u32| -> Result<Vec<u8>> {
            let found = db.read(move |tx| peek_ready(tx, place, BinId(0), limit))?;
            Ok(found.into_iter().map(|it| it.list_depth).collect())
        };
        assert_eq!(depths(6)?, [0, 1, 0, 1, 0, 1], "they take turns");
        assert_eq!(depths(5)?, [0, 1, 0, 1, 0]);
        assert_eq!(depths(12)?.iter().filter(|depth| **depth == 0).count(), 6);
        let all = depths(100)?;
        assert_eq!((all.len(), &all[..14]), (52, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1][..]));
        assert_eq!(all[51], 2, "deeper lists are later");
        assert!(depths(0)?.is_empty());
        Ok(())
    });
}

#[test]
fn neither_lists_nor_documents_starve_where_one_is_claimed_at_a_time() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        queue_lists_and_documents(db, place, 30, 30)?;
        let held = lease(db, place.part, 1)?;
        db.write(move |tx| chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0))?;
        let mut was_list = Vec::new();
        for _ in 0..30 {
            let claimed = db.write(move |tx| {
                let peeked = peek_ready(tx, place, BinId(0), 1)?;
                claim(tx, place, ChunkId(1), peeked)
            })?;
            was_list.push(claimed[0].list_depth > 0);
        }
        let lists = was_list.iter().filter(|it| **it).count();
        assert!((8..=22).contains(&lists), "{lists} of 30 were lists");
        let in_a_row = was_list.chunk_by(|a, b| a == b).map(<[bool]>::len).max();
        assert!(in_a_row < Some(8), "{was_list:?}");
        Ok(())
    });
}
