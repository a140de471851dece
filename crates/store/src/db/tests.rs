//! What both databases must do alike, whatever the tables.

use super::*;
use crate::Value;
use crate::testing::{both_databases, on_postgres, on_sqlite};
use std::sync::mpsc::sync_channel;

fn table(db: &Db) -> Result<()> {
    db.write(|tx| {
        tx.run_schema("CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, name TEXT, data BLOB, size DOUBLE PRECISION)")
    })
}

fn insert(db: &Db, id: i64, name: &str) -> Result<u64> {
    let name = name.to_owned();
    db.write(move |tx| {
        tx.execute("INSERT INTO t (id, name) VALUES ($1, $2)", &[id.into(), (&name).into()])
    })
}

fn count(db: &Db) -> Result<i64> {
    db.read(|tx| tx.query_one("SELECT COUNT(*) FROM t", &[], |row| row.get(0)))
}

#[test]
fn arguments_keep_their_numbers() {
    both_databases(|db| {
        let swapped: (i64, i64) = db.read(|tx| {
            tx.query_one(
                "SELECT CAST($2 AS BIGINT), CAST($1 AS BIGINT)",
                &[1.into(), 2.into()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
        })?;
        assert_eq!(swapped, (2, 1));
        Ok(())
    });
}

#[test]
fn every_kind_of_value_comes_back_as_it_went_in() {
    both_databases(|db| {
        table(db)?;
        db.write(|tx| {
            let rows = [
                vec![Value::Int(i64::MIN), "Ωμ'\"$1".into(), Value::Blob(&[0, 255]), 0.1.into()],
                vec![Value::Int(i64::MAX), Value::Null, Value::Null, Value::Null],
            ];
            tx.insert_rows("INSERT INTO t (id, name, data, size)", &rows, "")
        })?;
        type Back = (i64, Option<String>, Option<Vec<u8>>, Option<f64>);
        let back: Vec<Back> = db.read(|tx| {
            tx.query("SELECT id, name, data, size FROM t ORDER BY id LIMIT 9", &[], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
        })?;
        let first = (i64::MIN, Some("Ωμ'\"$1".into()), Some(vec![0, 255]), Some(0.1));
        assert_eq!(back, [first, (i64::MAX, None, None, None)]);
        Ok(())
    });
}

#[test]
fn text_sorts_bytewise_and_nul_is_refused() {
    both_databases(|db| {
        table(db)?;
        let names = ["b", "B", "a", "_", "é", "Z", "~", "", "aa"];
        for (id, name) in (0..).zip(names) {
            insert(db, id, name)?;
        }
        let sorted: Vec<String> = db.read(|tx| {
            tx.query("SELECT name FROM t ORDER BY name LIMIT 99", &[], |row| row.get(0))
        })?;
        let mut bytewise = names.to_vec();
        bytewise.sort_unstable();
        assert_eq!(sorted, bytewise);
        assert!(matches!(insert(db, 99, "a\0b"), Err(Error::Nul { .. })));
        Ok(())
    });
}

#[test]
fn a_failed_write_leaves_nothing_and_a_duplicate_is_told_apart() {
    both_databases(|db| {
        table(db)?;
        insert(db, 1, "one")?;
        let outcome = db.write(|tx| {
            tx.execute("INSERT INTO t (id) VALUES (2)", &[])?;
            tx.execute("INSERT INTO t (id) VALUES (1)", &[])
        });
        assert!(matches!(outcome, Err(Error::Duplicate { .. })), "{outcome:?}");
        let outcome = db.write(|tx| tx.execute("INSERT INTO nowhere VALUES (1)", &[]));
        assert!(matches!(outcome, Err(Error::Statement { .. })), "{outcome:?}");
        assert_eq!(count(db)?, 1);
        Ok(())
    });
}

#[test]
fn a_panic_rolls_back_and_reaches_the_caller() {
    both_databases(|db| {
        table(db)?;
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            db.write(|tx| -> Result<()> {
                tx.execute("INSERT INTO t (id) VALUES (1)", &[])?;
                panic!("told to the caller")
            })
        }));
        let message = panic.expect_err("the panic goes on here");
        assert_eq!(message.downcast_ref(), Some(&"told to the caller"));
        assert_eq!(count(db)?, 0);
        insert(db, 1, "the connection still works")?;
        Ok(())
    });
}

#[test]
fn readers_cannot_write_and_see_one_snapshot() {
    both_databases(|db| {
        table(db)?;
        let outcome = db.read(|tx| tx.execute("INSERT INTO t (id) VALUES (1)", &[]));
        assert!(outcome.is_err(), "a reader wrote");

        let (started, on_start) = sync_channel::<()>(0);
        let (written, on_written) = sync_channel::<()>(0);
        let reader = std::thread::spawn({
            let db = db.clone();
            move || {
                let read = move |tx: &mut crate::Tx<'_>| {
                    let before: i64 =
                        tx.query_one("SELECT COUNT(*) FROM t", &[], |row| row.get(0))?;
                    started.send(()).expect("the test waits for this");
                    on_written.recv().expect("the test sends this");
                    let after: i64 =
                        tx.query_one("SELECT COUNT(*) FROM t", &[], |row| row.get(0))?;
                    Ok((before, after))
                };
                db.read(read)
            }
        });
        on_start.recv().expect("the reader starts");
        insert(db, 1, "meanwhile")?;
        written.send(()).expect("the reader waits for this");
        assert_eq!(reader.join().expect("the reader ends")?, (0, 0));
        assert_eq!(count(db)?, 1);
        Ok(())
    });
}

#[test]
fn batches_of_any_size_arrive_whole() {
    both_databases(|db| {
        table(db)?;
        let mut expected = 0;
        for size in [0i64, 1, 2, 3, 511, 512, 513, 1_500] {
            let first = expected;
            db.write(move |tx| {
                let rows: Vec<Vec<Value<'_>>> =
                    (first..first + size).map(|id| vec![id.into(), "x".into()]).collect();
                assert_eq!(tx.insert_rows("INSERT INTO t (id, name)", &rows, "")?, size as u64);
                let rows: Vec<Vec<Value<'_>>> = (first..first + size)
                    .map(|id| vec![id.into(), "y".into(), Value::Null])
                    .collect();
                let kinds = [
                    crate::dialect::ValueKind::Int,
                    crate::dialect::ValueKind::Text,
                    crate::dialect::ValueKind::Blob,
                ];
                let updated = tx.update_rows(
                    "UPDATE t SET name = v.column2 || $1, data = v.column3",
                    &["!".into()],
                    &kinds,
                    &rows,
                    "WHERE t.id = v.column1",
                )?;
                assert_eq!(updated, size as u64);
                let keys: Vec<Value<'_>> = (first..first + size).map(Value::Int).collect();
                let found: Vec<i64> = tx.query_in(
                    "SELECT id FROM t WHERE name = $1 AND id IN ($keys) ORDER BY id",
                    &["y!".into()],
                    &keys,
                    |row| row.get(0),
                )?;
                assert_eq!(found, (first..first + size).collect::<Vec<_>>());
                Ok(())
            })?;
            expected += size;
            assert_eq!(count(db)?, expected);
        }
        Ok(())
    });
}

#[test]
fn many_writers_at_once_all_get_through() {
    both_databases(|db| {
        table(db)?;
        insert(db, 0, "0")?;
        let writers: Vec<_> = (1..=8)
            .map(|writer| {
                let db = db.clone();
                std::thread::spawn(move || -> Result<()> {
                    for step in 0..25 {
                        insert(&db, writer * 100 + step, "x")?;
                        db.write(|tx| {
                            tx.execute(
                                "UPDATE t SET size = COALESCE(size, 0) + 1 WHERE id = 0",
                                &[],
                            )
                        })?;
                    }
                    Ok(())
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("a writer ends")?;
        }
        assert_eq!(count(db)?, 201);
        let sum: f64 =
            db.read(|tx| tx.query_one("SELECT size FROM t WHERE id = 0", &[], |row| row.get(0)))?;
        assert_eq!(sum, 200.0, "no addition was lost");
        Ok(())
    });
}

#[test]
fn a_group_commit_keeps_the_good_and_drops_the_bad() {
    on_sqlite(|db| {
        table(db)?;
        // While the writer is held, requests pile up and will share one commit.
        let (hold, held) = sync_channel::<()>(0);
        let (entered, on_entered) = sync_channel::<()>(0);
        let holder = std::thread::spawn({
            let db = db.clone();
            move || {
                db.write(move |_| {
                    entered.send(()).expect("the test waits for this");
                    held.recv().expect("the test lets go");
                    Ok(())
                })
            }
        });
        on_entered.recv().expect("the writer is held");
        let writers: Vec<_> = (0..6)
            .map(|id| {
                let db = db.clone();
                std::thread::spawn(move || insert(&db, id / 2, "x").is_ok())
            })
            .collect();
        hold.send(()).expect("the writer waits for this");
        holder.join().expect("the holder ends")?;
        let succeeded =
            writers.into_iter().filter_map(|writer| writer.join().ok()).filter(|ok| *ok).count();
        assert_eq!(succeeded, 3, "of each pair of equal keys one gets in");
        assert_eq!(count(db)?, 3);
        Ok(())
    });
}

#[test]
fn a_deadlock_is_retried_until_both_get_through() {
    on_postgres(|db| {
        table(db)?;
        insert(db, 1, "a")?;
        insert(db, 2, "b")?;
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(2));
        let writers: Vec<_> = [(1i64, 2i64), (2, 1)]
            .into_iter()
            .map(|(first, second)| {
                let (db, barrier) = (db.clone(), barrier.clone());
                let mut tries = 0;
                std::thread::spawn(move || {
                    db.write(move |tx| {
                        tries += 1;
                        let raise = "UPDATE t SET size = COALESCE(size, 0) + 1 WHERE id = $1";
                        tx.execute(raise, &[first.into()])?;
                        if tries == 1 {
                            barrier.wait();
                        }
                        tx.execute(raise, &[second.into()])?;
                        Ok(tries)
                    })
                })
            })
            .collect();
        let mut tries = 0;
        for writer in writers {
            tries += writer.join().expect("a writer ends")?;
        }
        assert!(tries > 2, "there was a deadlock to retry");
        let sizes: Vec<f64> = db
            .read(|tx| tx.query("SELECT size FROM t ORDER BY id LIMIT 9", &[], |row| row.get(0)))?;
        assert_eq!(sizes, [2.0, 2.0]);
        Ok(())
    });
}

#[test]
fn a_connection_that_was_cut_between_requests_is_replaced() {
    on_postgres(|db| {
        table(db)?;
        db.read(|tx| tx.query_one("SELECT 1", &[], |row| row.get::<i64>(0)))?;
        db.write(|tx| {
            tx.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() LIMIT 99",
                &[],
                |_| Ok(()),
            )
        })?;
        for id in 0..12 {
            insert(db, id, "after the cut")?;
            assert_eq!(count(db)?, id + 1);
        }
        Ok(())
    });
}

#[test]
fn a_failure_that_the_caller_ignores_commits_nothing() {
    both_databases(|db| {
        table(db)?;
        let outcome = db.write(|tx| {
            tx.execute("INSERT INTO t (id) VALUES (1)", &[])?;
            // The caller thinks the duplicate harmless and goes on.
            let _ = tx.execute("INSERT INTO t (id) VALUES (1)", &[]);
            Ok(())
        });
        assert!(matches!(outcome, Err(Error::Statement { .. })), "{outcome:?}");
        assert_eq!(count(db)?, 0);
        let not_a_number = db
            .write(|tx| tx.execute("INSERT INTO t (id, size) VALUES (2, $1)", &[f64::NAN.into()]));
        assert!(not_a_number.is_err());
        Ok(())
    });
}

#[test]
fn a_transaction_that_stands_still_loses_its_locks() {
    on_postgres(|db| {
        let limits: Vec<String> = db.write(|tx| {
            let show = |name: &str| format!("SHOW {name}");
            ["idle_in_transaction_session_timeout", "lock_timeout", "synchronous_commit"]
                .iter()
                .map(|name| tx.query_one(&show(name), &[], |row| row.get(0)))
                .collect()
        })?;
        assert_eq!(limits, ["5s", "20s", "on"]);
        Ok(())
    });
}

#[test]
fn a_log_that_has_grown_is_given_back_when_nobody_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quiet.sqlite");
    let db = Db::open_sqlite(&path).unwrap();
    db.write(|tx| tx.run_schema("CREATE TABLE blobs (id BIGINT NOT NULL, value BLOB NOT NULL)"))
        .unwrap();
    let value = vec![7; 2 * sqlite::WAL_QUIET_BYTES as usize];
    db.write(move |tx| {
        tx.execute("INSERT INTO blobs VALUES ($1, $2)", &[1.into(), Value::Blob(&value)])
    })
    .unwrap();
    let bytes = || sqlite::log_of(&path).metadata().unwrap().len();
    assert!(bytes() > sqlite::WAL_QUIET_BYTES);
    let give_up = std::time::Instant::now() + Duration::from_secs(60);
    while bytes() > 0 {
        assert!(std::time::Instant::now() < give_up, "{} bytes are left", bytes());
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let count = |tx: &mut Tx<'_>| tx.query_one("SELECT COUNT(*) FROM blobs", &[], |row| row.get(0));
    let found: i64 = db.read(count).unwrap();
    assert_eq!(found, 1);
}
