//! Sweeping: what is found to be swept, and what a crash in between leaves.

use super::*;
use crate::tables::queue::sweep::{self, Sweep};

/// Documents 1 to 12 of run 1: every third is done, failed or cut.
fn settled(db: &Db, place: Place) -> Result<()> {
    let held = lease(db, place.part, 1)?;
    let named: Vec<Candidate> =
        (0..12u8).map(|document| candidate(i64::from(document) + 1, document, 0, None)).collect();
    db.write(move |tx| {
        add(tx, at(place, Run(1), 0), &named)?;
        chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0)?;
        let ids: Vec<QueueId> = (1..=12).map(QueueId).collect();
        claim_ids(tx, place, ChunkId(1), &ids)?;
        let to = |id: i64| match id % 3 {
            0 => Settlement::Done,
            1 => Settlement::Failed(Reason::new("gone", None)),
            _ => Settlement::Cut(Reason::new("robots", None)),
        };
        let settled: Vec<SettledDocument> = (1..=12)
            .map(|id| SettledDocument { id: QueueId(id), generation: 0, to: to(id) })
            .collect();
        settle(tx, place, ChunkId(1), Run(1), &settled)
    })
}

fn swept(db: &Db, place: Place, sweep: Sweep) -> Result<Vec<i64>> {
    let mut ids: Vec<i64> = db
        .read(move |tx| sweep::peek(tx, place, sweep, 100))?
        .into_iter()
        .map(|entry| entry.id.0)
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

#[test]
fn what_a_run_has_not_found_again_can_be_swept_and_a_crash_undoes_it() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        settled(db, place)?;
        let found: Vec<Candidate> =
            (0..3u8).map(|document| candidate(50, document, 0, None)).collect();
        db.write(move |tx| add(tx, at(place, Run(2), 0), &found).map(|_| ()))?;
        let clean = Sweep::Clean(Run(2));
        assert_eq!(swept(db, place, clean)?, (4..=12).collect::<Vec<i64>>());
        let peeked = db.read(move |tx| sweep::peek(tx, place, clean, 100))?;
        let held = lease(db, place.part, 2)?;
        let states = move |tx: &mut Tx<'_>| count_rows(tx, place);
        let before = db.read(states)?;
        db.write(move |tx| {
            chunks::open(tx, &held, ChunkId(2), JOB, Run(2), 0)?;
            let claimed = sweep::claim(tx, place, ChunkId(2), clean, peeked.clone())?;
            assert_eq!(claimed.len(), 9);
            Ok(())
        })?;
        assert_eq!(swept(db, place, clean)?, Vec::<i64>::new(), "it is being swept");
        db.write(move |tx| unclaim(tx, place, ChunkId(2)))?;
        assert_eq!(swept(db, place, clean)?, (4..=12).collect::<Vec<i64>>());
        let count = |rows: &[(String, i64)], state: &str| {
            rows.iter().find(|row| row.0 == state).map_or(0, |row| row.1)
        };
        let after = db.read(states)?;
        assert_eq!(count(&after, "ready"), count(&before, "ready"), "nothing is fetched for it");
        assert_eq!(after.iter().map(|row| row.1).sum::<i64>(), 12);
        Ok(())
    });
}

/// All that a sweep could change of each document.
fn rows(db: &Db, place: Place) -> Result<Vec<String>> {
    db.read(move |tx| {
        let columns = ["id", "checktime", "done_run", "chunk"];
        let columns = columns.map(|it| format!("COALESCE({it}, -1)")).join(", ");
        let sql = format!(
            "SELECT {columns}, state, action, COALESCE(reason, '') FROM queue
             WHERE part = $1 AND jobid = $2 ORDER BY id LIMIT 100"
        );
        tx.query(&sql, &[place.part.into(), place.job.into()], |row| {
            let numbers: [i64; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            let words: [String; 3] = [row.get(4)?, row.get(5)?, row.get(6)?];
            Ok(format!("{numbers:?} {words:?}"))
        })
    })
}

#[test]
fn a_sweep_that_is_cut_off_leaves_failed_cut_and_waiting_documents_as_they_were() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        settled(db, place)?;
        // Of a continuous job: two wait for their next look and for their end; and one that
        // nobody has looked at is too far from the seeds.
        let held = lease(db, place.part, 2)?;
        let more = vec![
            candidate(20, 20, 0, None),
            candidate(21, 21, 0, None),
            candidate(22, 22, 9, Some(ReasonCode::Hops)),
        ];
        db.write(move |tx| {
            add(tx, at(place, Run(1), 0), &more)?;
            chunks::open(tx, &held, ChunkId(2), JOB, Run(1), 0)?;
            claim_ids(tx, place, ChunkId(2), &[QueueId(20), QueueId(21)])?;
            let again = |id, action| {
                let to = Settlement::Again { check_ms: 500 + id, action };
                SettledDocument { id: QueueId(id), generation: 0, to }
            };
            settle(
                tx,
                place,
                ChunkId(2),
                Run(1),
                &[again(20, Action::Fetch), again(21, Action::Expire)],
            )
        })?;
        let before = rows(db, place)?;
        let counted = move |tx: &mut Tx<'_>| {
            let mut counted = counters::in_part(tx, place.part, place.job)?;
            counted.retain(|it| it.1 != 0 && State::parse(&it.0).is_some());
            Ok((counted, count_rows(tx, place)?))
        };
        for (number, sweep) in [(3, Sweep::Clean(Run(2))), (4, Sweep::Delete)] {
            let mut claimed = 0;
            while let Some(peeked) = Some(db.read(move |tx| sweep::peek(tx, place, sweep, 100))?)
                .filter(|it| !it.is_empty())
            {
                claimed += peeked.len();
                let chunk = ChunkId(number);
                db.write(move |tx| sweep::claim(tx, place, chunk, sweep, peeked.clone()))?;
            }
            assert!(claimed >= 14, "{sweep:?} has claimed {claimed}");
            assert_ne!(rows(db, place)?, before);
            db.write(move |tx| unclaim(tx, place, ChunkId(number)))?;
            assert_eq!(rows(db, place)?, before, "{sweep:?}");
            let (counters, rows) = db.read(counted)?;
            assert_eq!(counters, rows, "{sweep:?}");
        }
        Ok(())
    });
}

#[test]
fn everything_of_a_job_can_be_swept_and_what_others_hold_is_known() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        settled(db, place)?;
        let more = vec![candidate(70, 20, 0, None), candidate(71, 21, 9, Some(ReasonCode::Hops))];
        db.write(move |tx| add(tx, at(place, Run(1), 0), &more).map(|_| ()))?;
        let mut all = Vec::new();
        while let Some(peeked) = Some(db.read(move |tx| sweep::peek(tx, place, Sweep::Delete, 5))?)
            .filter(|it| !it.is_empty())
        {
            all.extend(peeked.iter().map(|entry| entry.id.0));
            let keys: Vec<QueueId> = peeked.iter().map(|entry| entry.id).collect();
            db.write(move |tx| {
                let keys: Vec<Value<'_>> = keys.iter().map(|id| (*id).into()).collect();
                tx.query_in(
                    "DELETE FROM queue WHERE part = $1 AND id IN ($keys) RETURNING id",
                    &[place.part.into()],
                    &keys,
                    |_| Ok(()),
                )?;
                Ok(())
            })?;
        }
        all.sort_unstable();
        assert_eq!(all, (1..=12).chain([70, 71]).collect::<Vec<i64>>());
        Ok(())
    });
}

#[test]
fn only_what_waits_beyond_the_horizon_is_left() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let named: Vec<Candidate> = (0..6u8)
            .map(|document| candidate(i64::from(document) + 1, document, 0, None))
            .collect();
        db.write(move |tx| {
            add(tx, at(place, Run(1), 0), &named)?;
            // Documents 2 and 5 are in bin 1, which is left alone.
            tx.execute("UPDATE bins SET blocked_ms = 500 WHERE part = 1 AND bin = 1", &[])
        })?;
        let left = |horizon_ms| swept(db, place, Sweep::Left { horizon_ms });
        assert_eq!(left(499)?, [2, 5]);
        assert_eq!(left(500)?, Vec::<i64>::new());
        Ok(())
    });
}
