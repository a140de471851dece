//! What is active over several commits.

use super::*;
use crate::tables::chunks::{Opening, Summary};

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
                chunks::open(tx, &held, (ChunkId(1), JOB, run), 0)?;
                let peeked = peek_ready(tx, place, BinId(0), 10)?;
                claim(tx, place, ChunkId(1), peeked)
            }
        })?;
        let commit = |(chunk, seq): (ChunkId, i64), settled: QueueId, next: ChunkId| {
            let held = held.clone();
            db.write(move |tx| {
                let done = Settled { id: settled, generation: 0, to: Settlement::Done };
                settle(tx, place, (ChunkId(1), run), &[done])?;
                chunks::commit(tx, &held, (chunk, seq), &Summary::default(), 0)?;
                let opening = Opening { chunk: next, claim: ChunkId(1), job: JOB, run };
                chunks::open_for(tx, &held, opening, 0)
            })
        };
        commit((ChunkId(1), 1), claimed[0].id, ChunkId(2))?;
        commit((ChunkId(2), 2), claimed[1].id, ChunkId(3))?;
        let found = db.read(move |tx| active_in(tx, place, ChunkId(1), 10))?;
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), [claimed[2].id]);

        let other = lease(db, place.part, 2)?;
        let freed = db.write(move |tx| chunks::abandon_stale(tx, &other, 0, 10))?;
        assert_eq!(freed, 1, "the third goes back with the chunk that was open");
        let id = claimed[2].id;
        let found = db.read(move |tx| load(tx, place, &[id]))?;
        assert_eq!(found[0].state, State::Ready);
        Ok(())
    });
}
