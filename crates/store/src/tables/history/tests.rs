//! Activities are walked by time, counted, and forgotten in steps; the counts never lie.

use super::*;
use crate::Db;
use crate::tables::connections::{self, Connection, ConnectionKind};
use crate::tables::jobs::{self, Job};
use crate::testing::{both_databases, on_sqlite};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const WEB: ConnectionId = ConnectionId(1);

fn activity(id: i64, start_ms: i64) -> Activity {
    Activity {
        id,
        connection: WEB,
        job: None,
        kind: "fetch".into(),
        entity: format!("http://example.com/{id}"),
        bytes: Some(id),
        result: Some("OK".into()),
        description: None,
        start_ms,
        end_ms: start_ms + 1,
    }
}

/// All activities of a walk, page by page.
fn walked(db: &Db, walk: ActivityQuery, limit: u32) -> Result<Vec<Activity>> {
    let (mut read, mut after) = (Vec::new(), walk.start());
    loop {
        let found = db.read(move |tx| page(tx, &walk, after, limit))?;
        let Some(last) = found.last() else { return Ok(read) };
        after = (last.start_ms, last.id);
        read.extend(found);
    }
}

#[test]
fn a_walk_sees_all_parts_by_time_in_either_direction() {
    both_databases(|db| {
        let all: Vec<Activity> = (-2..8).map(|id| activity(id, 100 + (id + 2) / 3)).collect();
        let (first, second): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|it| it.id % 2 == 0);
        db.write(move |tx| append(tx, Part(0), &first))?;
        db.write(move |tx| append(tx, Part(3), &second))?;
        db.write(|tx| {
            append(tx, Part(0), &[Activity { connection: ConnectionId(2), ..activity(99, 101) }])
        })?;
        assert_eq!(walked(db, ActivityQuery::all(WEB), 4)?, all);
        let newest = ActivityQuery { newest_first: true, ..ActivityQuery::all(WEB) };
        let mut back = walked(db, newest, 3)?;
        back.reverse();
        assert_eq!(back, all);
        let some = ActivityQuery { since_ms: 101, until_ms: 102, ..ActivityQuery::all(WEB) };
        assert_eq!(walked(db, some, 2)?, all[3..6]);
        assert_eq!(walked(db, ActivityQuery { newest_first: true, ..some }, 2)?.len(), 3);
        let reach = |count| db.read(move |tx| super::reach(tx, WEB, i64::MAX, count));
        assert_eq!(reach(10)?, None);
        assert_eq!(reach(9)?, Some(101), "what began in the same moment is left out together");
        assert_eq!((reach(4)?, reach(3)?), (Some(102), Some(103)));
        Ok(())
    });
}

/// A page costs the rows it returns.
#[test]
fn a_walk_goes_along_the_index_of_time() {
    on_sqlite(|db| {
        for order in ["ASC", "DESC"] {
            let sql = format!(
                "EXPLAIN QUERY PLAN SELECT entityid FROM history
                 WHERE connectionid = 1 AND (starttime, id) > (5, 5) AND starttime < 9
                 ORDER BY starttime {order}, id {order} LIMIT 5"
            );
            let plan: Vec<String> = db.read(move |tx| tx.query(&sql, &[], |row| row.get(3)))?;
            assert!(plan[0].contains("USING PRIMARY KEY (connectionid=?"), "{plan:?}");
            assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{plan:?}");
        }
        Ok(())
    });
}

/// What the rows of a connection add up to, in the order of the counts.
fn naive(rows: &[Activity], (since_ms, until_ms): (i64, i64)) -> Vec<counts::Count> {
    let mut sums = std::collections::BTreeMap::new();
    for it in rows.iter().filter(|it| (since_ms..until_ms).contains(&it.start_ms)) {
        let key = (it.job, it.kind.clone(), it.result.clone().unwrap_or_default());
        let sum: &mut (i64, i64) = sums.entry(key).or_default();
        *sum = (sum.0 + 1, sum.1 + it.bytes.unwrap_or(0));
    }
    let count = |((job, kind, result), (activities, bytes))| counts::Count {
        job,
        kind,
        result,
        activities,
        bytes,
    };
    sums.into_iter().map(count).collect()
}

fn some_activity() -> impl Strategy<Value = Activity> {
    let hours = 0..4 * counts::HOUR_MS;
    let bytes = prop::option::of(0..1_000_i64);
    let result = prop::option::of(prop::sample::select(vec!["OK", "404", "dns"]));
    let kind = prop::sample::select(vec!["fetch", "job start"]);
    (hours, bytes, result, kind, 0..3_i64).prop_map(|(start_ms, bytes, result, kind, job)| {
        Activity {
            job: Some(JobId(job)).filter(|job| job.0 > 0),
            kind: kind.to_owned(),
            bytes,
            result: result.map(str::to_owned),
            ..activity(0, start_ms)
        }
    })
}

#[test]
fn counts_equal_the_rows_whatever_is_written_and_forgotten() {
    let steps = prop::collection::vec(prop::collection::vec(some_activity(), 0..20), 1..6);
    let trims = prop::collection::vec((0..4 * counts::HOUR_MS, 1..15_u32), 0..5);
    both_databases(|db| {
        let next = std::sync::atomic::AtomicI64::new(0);
        let mut runner =
            TestRunner::new(Config { cases: 20, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&(&steps, &trims), |(batches, trims)| {
            while step(db, WEB, i64::MAX, 1_000).unwrap() > 0 {}
            for (number, mut batch) in batches.into_iter().enumerate() {
                for it in &mut batch {
                    it.id = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                db.write(move |tx| append(tx, Part(number as i64 % 2), &batch)).unwrap();
            }
            for (before_ms, limit) in trims {
                step(db, WEB, before_ms, limit).unwrap();
                let rows = walked(db, ActivityQuery::all(WEB), 1_000).unwrap();
                for range in [(0, i64::MAX), (counts::HOUR_MS, 3 * counts::HOUR_MS)] {
                    let between =
                        move |tx: &mut Tx<'_>| counts::between(tx, WEB, range.0, range.1, 1_000);
                    let kept = db.read(between).unwrap();
                    prop_assert_eq!(kept, naive(&rows, range));
                }
            }
            prop_assert_eq!(db.read(counts::differences).unwrap(), []);
            Ok(())
        });
        outcome.map_err(|error| crate::Error::Refused(error.to_string()))
    });
}

#[test]
fn the_oldest_go_first_and_those_of_a_connection_that_is_gone_go_all() {
    both_databases(|db| {
        let rows: Vec<Activity> = (0..10).map(|id| activity(id, 100 + id)).collect();
        db.write(move |tx| append(tx, Part(1), &rows))?;
        assert_eq!(step(db, WEB, 105, 3)?, 3);
        assert_eq!(step(db, WEB, 105, 3)?, 2);
        assert_eq!(step(db, WEB, 105, 3)?, 0);
        let left = walked(db, ActivityQuery::all(WEB), 100)?;
        assert_eq!(left.iter().map(|it| it.id).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
        let kept = |after: i64| db.read(move |tx| super::retention_after(tx, ConnectionId(after)));
        assert_eq!(kept(0)?, Some((WEB, Some(0))), "nobody keeps it");
        assert_eq!(kept(1)?, None);
        let usual = Connection::new(WEB, "web", "web");
        let again = Connection { history_ms: None, ..usual.clone() };
        db.write(move |tx| connections::save(tx, ConnectionKind::Repository, &usual, 1))?;
        assert_eq!(kept(0)?, Some((WEB, Some(connections::HISTORY_MS))));
        db.write(move |tx| connections::save(tx, ConnectionKind::Repository, &again, 1))?;
        assert_eq!(kept(0)?, Some((WEB, None)), "for ever");
        Ok(())
    });
}

#[test]
fn what_a_job_does_is_told_by_its_connections_history() {
    both_databases(|db| {
        db.write(|tx| {
            connections::save(
                tx,
                ConnectionKind::Repository,
                &Connection::new(WEB, "web", "web"),
                1,
            )?;
            jobs::save(tx, &Job::new(JobId(7), "site", WEB), 1)?;
            let it =
                JobActivity { job: JobId(7), kind: "job start", result: "OK", description: None };
            append_job(tx, it, 5)?;
            tx.execute("UPDATE job_states SET changed_ms = changed_ms + 1", &[])?;
            append_job(tx, JobActivity { kind: "job end", ..it }, 5)?;
            append_job(tx, JobActivity { job: JobId(8), ..it }, 5)
        })?;
        let mut told: Vec<(String, String)> = walked(db, ActivityQuery::all(WEB), 9)?
            .into_iter()
            .map(|it| (it.kind, it.entity))
            .collect();
        told.sort();
        let site = || "site".to_owned();
        assert_eq!(told, [("job end".to_owned(), site()), ("job start".to_owned(), site())]);
        Ok(())
    });
}

#[test]
fn a_result_that_is_too_long_is_cut_in_row_and_count_alike() {
    both_databases(|db| {
        let long = Activity { result: Some("é".repeat(400)), ..activity(1, 1) };
        db.write(move |tx| append(tx, Part(0), std::slice::from_ref(&long)))?;
        let stored = walked(db, ActivityQuery::all(WEB), 9)?.remove(0).result.unwrap_or_default();
        assert_eq!(stored.len(), 254, "no character is cut in two");
        assert_eq!(db.read(counts::differences)?, []);
        Ok(())
    });
}
