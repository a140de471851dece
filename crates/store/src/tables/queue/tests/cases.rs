//! The queue's rules one by one: what is settled, marked, looked up, let in, rechecked.

use super::*;
use crate::ids::NodeId;
use crate::tables::queue::ready::{ALL, LISTS, ready_text};

#[test]
fn settling_what_is_not_in_the_chunk_changes_nothing() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let one = candidate(5, 1, 0, None);
        db.write(move |tx| add(tx, at(place, Run(1), 0), std::slice::from_ref(&one)))?;
        let outcome = db.write(move |tx| {
            let done = SettledDocument { id: QueueId(5), generation: 0, to: Settlement::Done };
            settle(tx, place, ChunkId(1), Run(1), &[done])
        });
        assert!(matches!(outcome, Err(Error::Invariant { .. })), "{outcome:?}");
        assert_eq!(db.read(move |tx| count_rows(tx, place))?, [("ready".to_owned(), 1)]);
        Ok(())
    });
}

#[test]
fn a_mark_is_lowered_only_if_nothing_was_queued_since() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let queue = move |id: i64, document: u8| {
            db.write(move |tx| add(tx, at(place, Run(1), 0), &[candidate(id, document, 0, None)]))
        };
        queue(1, 0)?;
        let seen = db.read(|tx| bins::marked(tx, Part(1), JobId(0), BinId(-1), 10))?[0];
        queue(2, 3)?;
        assert!(!db.write(move |tx| bins::unmark(tx, Part(1), seen))?, "bin 0 got one more");
        let seen = db.read(|tx| bins::marked(tx, Part(1), JobId(0), BinId(-1), 10))?[0];
        assert!(db.write(move |tx| bins::unmark(tx, Part(1), seen))?);
        assert_eq!(db.read(|tx| bins::marked(tx, Part(1), JobId(0), BinId(-1), 10))?, []);
        Ok(())
    });
}

#[test]
fn a_document_that_depends_on_an_event_waits_while_it_is_in_play() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let event = events::EventScope::Job(JOB).event("login");
        let one = Candidate { events: vec![event.clone()], ..candidate(5, 0, 0, None) };
        let other = Candidate { bin: BinId(0), ..candidate(6, 1, 0, None) };
        let (begun, ended) = (event.clone(), event);
        db.write(move |tx| {
            add(tx, at(place, Run(1), 0), &[one.clone(), other.clone()])?;
            events::begin(tx, &begun, NodeId(1), 0)
        })?;
        let ready = || {
            let found = db.read(move |tx| peek_ready(tx, place, BinId(0), 9))?;
            Ok::<Vec<i64>, Error>(found.iter().map(|entry| entry.id.0).collect())
        };
        assert_eq!(ready()?, [6], "what does not depend on it does not wait");
        assert!(db.read(move |tx| is_held_back(tx, place, BinId(0)))?);
        assert!(db.write(move |tx| events::complete(tx, &ended, NodeId(1)))?);
        assert_eq!(ready()?, [5, 6]);
        assert!(!db.read(move |tx| is_held_back(tx, place, BinId(0)))?);
        // What it depended on goes with it.
        let rows = || {
            db.read(|tx| tx.query("SELECT owner FROM prereqevents", &[], |row| row.get::<i64>(0)))
        };
        db.write(move |tx| {
            events::depend(tx, place.part, &[(QueueId(6), "x"), (QueueId(6), "x")])
        })?;
        assert_eq!(rows()?.len(), 2);
        let deleted =
            |id| SettledDocument { id: QueueId(id), generation: 1, to: Settlement::Deleted };
        db.write(move |tx| {
            claim_ids(tx, place, ChunkId(3), &[QueueId(5), QueueId(6)])?;
            settle(tx, place, ChunkId(3), Run(1), &[deleted(5), deleted(6)])
        })?;
        assert_eq!(rows()?, [0; 0]);
        Ok(())
    });
}

#[test]
fn a_document_active_in_one_job_is_not_claimed_in_another() {
    both_databases(|db| {
        let mine = Place { part: Part(1), job: JOB };
        let theirs = Place { part: Part(1), job: JobId(2) };
        for (place, id) in [(mine, 1), (theirs, 2)] {
            db.write(move |tx| add(tx, at(place, Run(1), 0), &[candidate(id, 0, 0, None)]))?;
        }
        let claim_one = move |place, id, chunk| {
            db.write(move |tx| claim_ids(tx, place, ChunkId(chunk), &[QueueId(id)]))
        };
        assert_eq!(claim_one(mine, 1, 10)?.len(), 1);
        assert_eq!(claim_one(theirs, 2, 11)?.len(), 0);
        let done = SettledDocument { id: QueueId(1), generation: 1, to: Settlement::Done };
        db.write(move |tx| settle(tx, mine, ChunkId(10), Run(1), std::slice::from_ref(&done)))?;
        assert_eq!(claim_one(theirs, 2, 11)?.len(), 1);
        Ok(())
    });
}

#[test]
fn a_claim_looks_up_its_ids_however_long_the_queue_is() {
    crate::testing::on_sqlite(|db| {
        let claim = CLAIM.replace("v.column1", "$6");
        let sql = format!("EXPLAIN QUERY PLAN UPDATE queue SET chunk = $3 {claim}");
        let plan: Vec<String> =
            db.read(move |tx| tx.query(&sql, &[Value::Int(1); 7], |row| row.get(3)))?;
        assert!(plan[0].contains("(part=? AND id=?)"), "{plan:?}");
        let place = Place { part: Part(0), job: JOB };
        for sql in [ready_text(ALL), ready_text(LISTS), older_bin_text(), older_text()] {
            let sql = format!("EXPLAIN QUERY PLAN {sql}");
            let values = [place.part.into(), place.job.into(), 1.into(), 1.into(), 1.into()];
            let count = sql.matches('$').count();
            let plan: Vec<String> =
                db.read(move |tx| tx.query(&sql, &values[..count], |row| row.get(3)))?;
            let whole = plan.join("; ");
            assert!(whole.contains("USING INDEX queue_"), "{whole}");
            assert!(!whole.contains("TEMP B-TREE"), "{whole}");
        }
        Ok(())
    });
}

/// However many bins there are, and whatever they hold of this run.
#[test]
fn whether_anything_is_left_of_older_runs_is_one_look_into_indexes() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let rows = move |run: i64, ids: std::ops::Range<i64>, state: &'static str| {
            db.write(move |tx| {
                for id in ids.clone() {
                    let dochash = DocHash::of(&id.to_string());
                    tx.execute(
                        "INSERT INTO queue (part, id, jobid, bin, dochash, docid, state, action,
                             docpriority, hops, redirects, seen_run, done_run, rescan, generation,
                             added_ms)
                         VALUES (1, $1, $2, $1, $3, '', $4, 'fetch', 0, 0, 0, $5, $5, 0, 0, 0)",
                        &[id.into(), JOB.into(), (&dochash).into(), state.into(), run.into()],
                    )?;
                }
                Ok(())
            })
        };
        for (first, state) in [(0, "done"), (400, "failed"), (800, "cut"), (1_200, "waiting")] {
            rows(5, first..first + 400, state)?;
        }
        let has = |run| db.read(move |tx| has_older(tx, place, Run(run)));
        assert!(!has(5)? && has(6)?, "1,600 bins have documents of this run");
        let plan = plan_of_has_older(db)?;
        for words in ["queue_done", "queue_settled_apart"] {
            assert!(plan.contains(words), "{words}: {plan}");
        }
        match db.dialect() {
            Dialect::Sqlite => {
                assert_eq!(plan.matches("done_run<?)").count(), 2, "{plan}");
                assert!(!plan.contains("SCAN queue") && !plan.contains("SCAN q"), "{plan}");
            }
            Dialect::Postgres => {
                assert!(plan.matches("(done_run < 5)").count() >= 2, "{plan}");
                let reads_more = plan.contains("Seq Scan") || plan.contains("Rows Removed");
                assert!(!reads_more, "it looks at rows of this run: {plan}");
            }
        }
        for (id, state) in [(2_000, "done"), (2_001, "failed"), (2_002, "cut"), (2_003, "waiting")]
        {
            rows(4, id..id + 1, state)?;
            assert!(has(5)?, "{state}");
            db.write(move |tx| {
                tx.execute("DELETE FROM queue WHERE part = 1 AND id = $1", &[id.into()]).map(|_| ())
            })?;
            assert!(!has(5)?);
        }
        // What waits for another try after trouble is not settled.
        rows(4, 3_000..3_001, "waiting")?;
        db.write(|tx| {
            tx.execute("UPDATE queue SET reason = 'dns' WHERE id = 3000", &[]).map(|_| ())
        })?;
        assert!(!has(5)?);
        Ok(())
    });
}

/// How the database finds it, with as many rows as there are.
fn plan_of_has_older(db: &Db) -> Result<String> {
    let text = has_older_text();
    let text = text.replace("$1", "1").replace("$2", "1").replace("$3", "5");
    let (sql, at) = match db.dialect() {
        Dialect::Sqlite => (format!("EXPLAIN QUERY PLAN {text}"), 3),
        Dialect::Postgres => {
            db.write(|tx| tx.execute("ANALYZE queue", &[]).map(|_| ()))?;
            (format!("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) {text}"), 0)
        }
    };
    let lines: Vec<String> = db.read(move |tx| tx.query(&sql, &[], |row| row.get(at)))?;
    Ok(lines.join("\n"))
}

#[test]
fn an_older_run_takes_nothing_back() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        for run in [5, 3] {
            db.write(move |tx| add(tx, at(place, Run(run), 0), &[candidate(run, 0, 0, None)]))?;
        }
        let runs: (i64, i64) = db.read(|tx| {
            tx.query_one("SELECT seen_run, seed_run FROM queue WHERE part = 1", &[], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        })?;
        assert_eq!(runs, (5, 5));
        Ok(())
    });
}

/// Defect 4: ManifoldCF makes seeds of what are seeds already, and of nothing else.
#[test]
fn what_was_found_by_a_link_is_a_seed_when_it_is_named_as_one_and_stays_it() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let named = |run: i64, seed: bool| -> Result<Option<i64>> {
            let it = Candidate { seed, ..candidate(run, 0, 0, None) };
            db.write(move |tx| {
                add(tx, at(place, Run(run), 0), std::slice::from_ref(&it))?;
                tx.query_one("SELECT seed_run FROM queue WHERE part = 1", &[], |row| row.get(0))
            })
        };
        assert_eq!(named(1, false)?, None, "a link leads to it");
        assert_eq!(named(1, true)?, Some(1), "it is named in the same run");
        assert_eq!(named(1, false)?, Some(1), "and a link leads to it again");
        assert_eq!(named(2, true)?, Some(2), "it is a seed of the next run");
        assert_eq!(named(3, false)?, Some(2), "and of none that does not name it");
        Ok(())
    });
}

#[test]
fn a_reason_of_any_length_can_be_kept() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        db.write(move |tx| {
            add(tx, at(place, Run(1), 0), &[candidate(1, 0, 0, None)])?;
            claim_ids(tx, place, ChunkId(9), &[QueueId(1)])
        })?;
        let long = "ü".repeat(20_000);
        let to = Settlement::Cut(Reason::new(&long, Some(&long)));
        let cut = SettledDocument { id: QueueId(1), generation: 0, to };
        db.write(move |tx| settle(tx, place, ChunkId(9), Run(1), std::slice::from_ref(&cut)))?;
        let kept: String = db.read(|tx| {
            tx.query_one("SELECT reason FROM queue WHERE part = 1", &[], |row| row.get(0))
        })?;
        assert_eq!(kept, "ü".repeat(REASON_BYTES_MAX / 2));
        Ok(())
    });
}

#[test]
fn waking_at_the_same_moment_counts_once() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        db.write(move |tx| {
            let all: Vec<Candidate> = (0..9).map(|id| candidate(id, id as u8, 0, None)).collect();
            add(tx, at(place, Run(1), 0), &all)?;
            let ids: Vec<QueueId> = all.iter().map(|it| it.id).collect();
            claim_ids(tx, place, ChunkId(9), &ids)?;
            let again = |id| SettledDocument {
                id,
                generation: 0,
                to: Settlement::Again { check_ms: 5, action: Action::Fetch },
            };
            let settled: Vec<SettledDocument> = ids.into_iter().map(again).collect();
            settle(tx, place, ChunkId(9), Run(1), &settled)
        })?;
        let wakers: Vec<_> = (0..4)
            .map(|_| {
                let db = db.clone();
                std::thread::spawn(move || db.write(move |tx| wake(tx, place, 10, 100)))
            })
            .collect();
        let mut woken = 0;
        for waker in wakers {
            woken += waker.join().expect("a waker ends")?;
        }
        assert_eq!(woken, 9);
        assert_eq!(db.read(move |tx| counters::total(tx, JOB, "ready"))?, 9);
        assert_eq!(db.read(move |tx| counters::total(tx, JOB, "waiting"))?, 0);
        Ok(())
    });
}

#[test]
fn adding_the_same_links_at_the_same_moment_counts_each_once() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let adders: Vec<_> = (0..4i64)
            .map(|adder| {
                let db = db.clone();
                std::thread::spawn(move || -> Result<u64> {
                    let mut new = 0;
                    for run in 1..=6 {
                        // Each names them in another order, as pages do.
                        let turned = |n: i64| ((n * 7 + adder * 13) % 60) as u8;
                        let links: Vec<Candidate> = (0..60)
                            .map(|n| {
                                let id = adder * 10_000 + run * 100 + n;
                                candidate(
                                    id,
                                    turned(n),
                                    adder,
                                    (adder > 2).then_some(ReasonCode::Hops),
                                )
                            })
                            .collect();
                        let added = db.write(move |tx| add(tx, at(place, Run(run), 0), &links))?;
                        new += added.new;
                    }
                    Ok(new)
                })
            })
            .collect();
        let mut new = 0;
        for adder in adders {
            new += adder.join().expect("an adder ends")?;
        }
        assert_eq!(new, 60, "each document is new once");
        assert_eq!(db.read(move |tx| count_rows(tx, place))?, [("ready".to_owned(), 60)]);
        assert_eq!(db.read(move |tx| counters::total(tx, JOB, "ready"))?, 60);
        assert_eq!(db.read(move |tx| counters::total(tx, JOB, "cut"))?, 0);
        let known = db.read(|tx| bins::list(tx, Part(1), BinId(-1), 9))?;
        assert_eq!(known.iter().map(|bin| bin.documents).sum::<i64>(), 60);
        Ok(())
    });
}

#[test]
fn the_nearest_are_let_in_while_there_is_room() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let named: Vec<Candidate> = [(0u8, 2), (1, 1), (2, 2), (3, 1)]
            .iter()
            .zip(1..)
            .map(|((document, hops), id)| candidate(id, *document, *hops, None))
            .collect();
        let adding = move |room| AddContext { room, ..at(place, Run(1), 0) };
        let again = named.clone();
        let first = db.write(move |tx| add(tx, adding(Some(3)), &named))?;
        assert_eq!((first.new, first.crowded_out), (4, 1));
        let ready = |db: &Db| -> Result<Vec<i64>> {
            db.read(|tx| {
                let sql = "SELECT id FROM queue WHERE state = 'ready' ORDER BY id LIMIT 9";
                tx.query(sql, &[], |row| row.get(0))
            })
        };
        assert_eq!(ready(db)?, [1, 2, 4], "the farthest that was found last stays out");
        let second = db.write(move |tx| add(tx, adding(None), &again))?;
        assert_eq!((second.revived, second.crowded_out), (1, 0), "a raised limit revives it");
        assert_eq!(ready(db)?, [1, 2, 3, 4]);
        Ok(())
    });
}

#[test]
fn a_new_run_walks_from_bin_to_bin_and_finds_what_older_ones_settled() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let held = lease(db, place.part, 1)?;
        let named: Vec<Candidate> = (0..12u8)
            .map(|document| candidate(i64::from(document) + 1, document, 0, None))
            .collect();
        db.write(move |tx| {
            add(tx, at(place, Run(1), 0), &named)?;
            chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0)?;
            let ids: Vec<QueueId> = (1..=12).map(QueueId).collect();
            claim_ids(tx, place, ChunkId(1), &ids)?;
            let gone = || Reason::new("gone", None);
            let to = |id: i64| match id % 3 {
                0 => Settlement::Done,
                1 => Settlement::Failed(gone()),
                _ => Settlement::Cut(gone()),
            };
            let settled: Vec<SettledDocument> = (1..=12)
                .map(|id| SettledDocument { id: QueueId(id), generation: 0, to: to(id) })
                .collect();
            settle(tx, place, ChunkId(1), Run(1), &settled)
        })?;
        let walk = |run| -> Result<Vec<BinId>> {
            let mut bins = Vec::new();
            let mut at = BinId(-1);
            while let Some(bin) = db.read(move |tx| next_older_bin(tx, place, run, at))? {
                bins.push(bin);
                at = bin;
            }
            Ok(bins)
        };
        assert_eq!(walk(Run(1))?, [], "the same run is done with them");
        assert_eq!(walk(Run(2))?.len() as i64, BINS);
        let bin = BinId(0);
        let older = db.read(move |tx| peek_older(tx, place, bin, Run(2), 100))?;
        let moved = db.write(move |tx| {
            let claimed = claim(tx, place, ChunkId(2), older.clone())?;
            assert_eq!(claimed.len(), older.len(), "done, failed and cut alike");
            Ok(claimed.len())
        })?;
        assert_eq!(moved, 12 / usize::try_from(BINS).unwrap());
        let first = db.read(move |tx| next_older_bin(tx, place, Run(2), BinId(-1)))?;
        assert_eq!(first, Some(BinId(1)), "a bin without older documents is passed over");
        Ok(())
    });
}

#[test]
fn what_is_done_or_at_work_is_looked_at_again_and_what_was_too_far_let_in() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let held = lease(db, place.part, 1)?;
        db.write(move |tx| {
            let named = [candidate(1, 0, 3, None), candidate(2, 1, 3, None)];
            add(tx, at(place, Run(1), 0), &named)?;
            chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0)?;
            claim_ids(tx, place, ChunkId(1), &[QueueId(1), QueueId(2)])?;
            let done = SettledDocument { id: QueueId(1), generation: 0, to: Settlement::Done };
            settle(tx, place, ChunkId(1), Run(1), &[done])
        })?;
        let keys = [hash(0), hash(1)];
        let woken = db.write(move |tx| look_again(tx, place, &keys))?;
        assert_eq!(woken.len(), 1);
        let rows = || -> Result<Vec<(String, bool)>> {
            db.read(|tx| {
                let sql = "SELECT state, rescan FROM queue ORDER BY id LIMIT 9";
                tx.query(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))
            })
        };
        assert_eq!(rows()?, [("ready".to_owned(), false), ("active".to_owned(), true)]);
        assert!(db.write(move |tx| look_again(tx, place, &keys))?.is_empty(), "it is already");
        let gone = SettledDocument { id: QueueId(2), generation: 0, to: Settlement::Deleted };
        db.write(move |tx| settle(tx, place, ChunkId(1), Run(1), std::slice::from_ref(&gone)))?;
        assert_eq!(rows()?[1], ("ready".to_owned(), false), "it stays, to be looked at again");
        let far: Vec<Candidate> =
            (3..6).map(|it| candidate(i64::from(it), it, 9, Some(ReasonCode::Hops))).collect();
        let keys: Vec<DocHash> = far.iter().map(|it| it.dochash).collect();
        let adding = AddContext { room: Some(2), ..at(place, Run(1), 0) };
        db.write(move |tx| add(tx, adding, &far))?;
        assert_eq!(db.write(move |tx| let_in(tx, adding, &keys))?.len(), 2);
        let reasons: Vec<Option<String>> = db.read(|tx| {
            let sql = "SELECT reason FROM queue WHERE id > 2 ORDER BY id LIMIT 9";
            tx.query(sql, &[], |row| row.get(0))
        })?;
        assert_eq!(reasons, [None, None, Some("limit".to_owned())], "there is room for two");
        Ok(())
    });
}
