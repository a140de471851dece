//! What `doctor` asks of the rows: is the database itself in order, and did a process
//! leave something behind.
//!
//! Invariant: every question is cheap, because it is asked of small tables, of
//! partial indexes, or of a bounded sample.

use crate::ids::{JobId, Part};
use crate::tables::counters;
use crate::tables::queue::{self, Place};
use crate::{Result, Tx};

/// Things left behind that are counted.
const LEFT_MAX: i64 = 1_000;
/// Queues whose counters are compared.
const SAMPLE: i64 = 16;
/// Documents of a queue that is compared: more take too long to count.
const SAMPLE_DOCUMENTS_MAX: i64 = 20_000;
/// Problems of a file that are told.
const PROBLEMS_MAX: u32 = 5;

/// The database program and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseServer {
    /// The version as a number, such as 150004; 0 for SQLite.
    pub version: i64,
    /// The version as text.
    pub version_text: String,
    /// The encoding of text.
    pub encoding: String,
    /// Whether a commit waits for the disk: `on` or another word.
    pub synchronous: String,
    /// Whether the database syncs at all: `on` or `off`.
    pub fsync: String,
    /// The time by its clock.
    pub now_ms: i64,
    /// The size of the database.
    pub bytes: i64,
}

/// Asks the database about itself.
pub fn server(tx: &mut Tx<'_>) -> Result<DatabaseServer> {
    let sql = tx.dialect().pick(
        "SELECT 0, sqlite_version(), 'UTF8', 'on', 'on',
                CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
                (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)",
        "SELECT CAST(current_setting('server_version_num') AS BIGINT),
                current_setting('server_version'), current_setting('server_encoding'),
                current_setting('synchronous_commit'), current_setting('fsync'),
                CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT),
                pg_database_size(current_database())",
    );
    tx.query_one(sql, &[], |row| {
        Ok(DatabaseServer {
            version: row.get(0)?,
            version_text: row.get(1)?,
            encoding: row.get(2)?,
            synchronous: row.get(3)?,
            fsync: row.get(4)?,
            now_ms: row.get(5)?,
            bytes: row.get(6)?,
        })
    })
}

/// What SQLite finds wrong with its own file. Reads all of it; empty for PostgreSQL,
/// which checks its pages as it reads them.
pub fn problems(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    if tx.dialect() == crate::dialect::Dialect::Postgres {
        return Ok(Vec::new());
    }
    let text = format!("PRAGMA quick_check({PROBLEMS_MAX})");
    let found: Vec<String> = tx.query(&text, &[], |row| row.get(0))?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}

/// Processes that have not said that they ended, and have not been heard of since a
/// time.
pub fn silent_nodes(tx: &mut Tx<'_>, heard_before_ms: i64) -> Result<Vec<String>> {
    tx.query(
        "SELECT name FROM nodes
         WHERE state IN ('joining', 'ready', 'draining') AND heartbeat_ms < $1
         ORDER BY id DESC LIMIT $2",
        &[heard_before_ms.into(), LEFT_MAX.into()],
        |row| row.get(0),
    )
}

/// Leases that nobody gave back, and that are over.
pub fn left_leases(tx: &mut Tx<'_>, now_ms: i64) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM leases WHERE deadline_ms > 0 AND deadline_ms <= $1",
        &[now_ms.into()],
        |row| row.get(0),
    )
}

/// Open chunks that nobody can commit any more.
pub fn stuck_chunks(tx: &mut Tx<'_>, now_ms: i64) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM (
             SELECT c.id FROM chunks c
             WHERE c.state = 'crawling'
               AND NOT EXISTS (SELECT 1 FROM leases l
                               WHERE l.part = c.part AND l.role = 'crawl' AND l.token = c.token
                                 AND l.deadline_ms > $1)
             LIMIT $2) t",
        &[now_ms.into(), LEFT_MAX.into()],
        |row| row.get(0),
    )
}

/// Objects that were announced before a time and never published.
pub fn left_objects(tx: &mut Tx<'_>, staged_before_ms: i64) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM (
             SELECT id FROM objects WHERE state = 'staged' AND staged_ms < $1 LIMIT $2) t",
        &[staged_before_ms.into(), LEFT_MAX.into()],
        |row| row.get(0),
    )
}

/// A sample of the counters against the rows they count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterSample {
    /// Queues that were counted.
    pub queues: usize,
    /// Counters that are wrong, in words.
    pub wrong: Vec<String>,
}

/// Compares the counters of a few small queues with their rows.
pub fn sample_counters(tx: &mut Tx<'_>) -> Result<CounterSample> {
    let queues: Vec<(Part, JobId)> = tx.query(
        "SELECT part, jobid FROM counters WHERE jobid > 0
         GROUP BY part, jobid HAVING CAST(SUM(value) AS BIGINT) <= $1 ORDER BY part, jobid LIMIT $2",
        &[SAMPLE_DOCUMENTS_MAX.into(), SAMPLE.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut sampled = CounterSample { queues: queues.len(), wrong: Vec::new() };
    for (part, job) in queues {
        let kept = counters::in_part(tx, part, job)?;
        let counted = queue::count_rows(tx, Place { part, job })?;
        for &state in queue::State::ALL {
            let value = |list: &[(String, i64)]| {
                list.iter().find(|(name, _)| name == state.name()).map_or(0, |(_, value)| *value)
            };
            let (kept, counted) = (value(&kept), value(&counted));
            if kept != counted {
                sampled.wrong.push(format!(
                    "counter {} of job {job} in part {part} says {kept}, there are {counted}",
                    state.name()
                ));
            }
        }
    }
    Ok(sampled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::ids::{ChunkId, ObjectId, Run};
    use crate::objects::{Location, Objects};
    use crate::tables::leases::{self, LeaseRequest};
    use crate::tables::nodes::{self, NewNode};
    use crate::tables::{chunks, objects};
    use crate::testing::{both_databases, commit_sample};

    #[test]
    fn a_database_tells_its_version_clock_and_size() {
        both_databases(|db| {
            let before = clock::now_ms();
            let server = db.read(server)?;
            assert!((server.now_ms - before).abs() < 60_000, "{server:?}");
            assert!(server.bytes > 0 && !server.version_text.is_empty(), "{server:?}");
            assert_eq!((server.encoding.as_str(), server.synchronous.as_str()), ("UTF8", "on"));
            assert_eq!(db.read(problems)?, [] as [String; 0]);
            Ok(())
        });
    }

    #[test]
    fn what_a_dead_process_left_is_counted() {
        both_databases(|db| {
            let new = NewNode {
                name: "n".into(),
                roles: "crawl".into(),
                address: None,
                version: "0".into(),
            };
            let node = db.write(move |tx| nodes::register(tx, &new, 10))?;
            let asking =
                LeaseRequest { node, node_name: "n".into(), now_ms: 10, lease_ms: 90, skew_ms: 0 };
            let lease = db
                .write(move |tx| leases::take(tx, Part(1), "crawl", &asking))?
                .expect("the lease is free");
            db.write(move |tx| {
                chunks::open(tx, &lease, ChunkId(5), JobId(1), Run(1), 10)?;
                objects::stage(
                    tx,
                    Part(1),
                    ObjectId(6),
                    objects::ObjectKind::Bodies,
                    "chunks/1/6",
                    10,
                )
            })?;
            let left = |now_ms: i64| {
                db.read(move |tx| {
                    Ok((
                        silent_nodes(tx, now_ms)?.len(),
                        left_leases(tx, now_ms)?,
                        stuck_chunks(tx, now_ms)?,
                        left_objects(tx, now_ms)?,
                    ))
                })
            };
            assert_eq!(left(10)?, (0, 0, 0, 0), "all is alive");
            assert_eq!(left(100)?, (1, 1, 1, 1));
            db.write(move |tx| nodes::stop(tx, node, 50))?;
            assert_eq!(left(100)?.0, 0, "a node that said goodbye is not silent");
            Ok(())
        });
    }

    #[test]
    fn a_counter_that_is_wrong_is_found() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            commit_sample(db, &store, Part(0), 0)?;
            assert_eq!(db.read(sample_counters)?, CounterSample { queues: 1, wrong: Vec::new() });
            db.write(|tx| counters::add(tx, Part(0), JobId(1), &[("done", 5)]))?;
            let wrong = db.read(sample_counters)?.wrong;
            assert_eq!(wrong, ["counter done of job 1 in part 0 says 7, there are 2"]);
            Ok(())
        });
    }
}
