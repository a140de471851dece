//! SQLite connections: one writer that commits in groups, and readers beside it.
//!
//! Invariant: a request is answered only after the commit that holds it is synced
//! (`synchronous=FULL`). Requests that wait at the same moment share one commit,
//! each in its own savepoint, so that one fsync serves many and one failure hurts
//! nobody else.

use super::{Incoming, Work, next, next_now};
use crate::tx::Texts;
use crate::{Error, Result, Tx};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// Readers beside the writer.
const READERS: usize = 2;
/// Requests that share one commit.
const GROUP_MAX: usize = 16;
/// Prepared statements kept with each connection.
const STATEMENTS_MAX: usize = 512;
/// Page cache of the writer, in KiB.
const WRITER_CACHE_KIB: i64 = 64 << 10;
/// Page cache of a reader, in KiB.
const READER_CACHE_KIB: i64 = 16 << 10;
/// Another process may hold the file for a moment while it ends.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn start(path: &Path, writes: Incoming, reads: Incoming) -> Result<Vec<JoinHandle<()>>> {
    // The writer comes first: it makes the file and switches it to WAL.
    let writer = open(path, WRITER_CACHE_KIB)?;
    writer.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;")?;
    let mut threads = vec![thread("sqlite-writer", move || serve_writes(&writer, &writes))?];
    for _ in 0..READERS {
        let reader = open(path, READER_CACHE_KIB)?;
        reader.execute_batch("PRAGMA query_only = ON;")?;
        let reads = reads.clone();
        threads.push(thread("sqlite-reader", move || serve_reads(&reader, &reads))?);
    }
    Ok(threads)
}

#[allow(clippy::disallowed_methods, reason = "this is the home that the lint points to")]
fn open(path: &Path, cache_kib: i64) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{cache_kib};"
    ))?;
    Ok(connection)
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(run).map_err(|error| Error::io(name, error))
}

fn serve_reads(connection: &Connection, incoming: &Incoming) {
    let mut texts = Texts::new();
    while let Some(mut work) = next(incoming) {
        let outcome = connection
            .execute_batch("BEGIN DEFERRED")
            .map_err(Error::from)
            .and_then(|()| work.run(&mut Tx::Sqlite { connection, texts: &mut texts }));
        // Nothing was written, so there is nothing a failing ROLLBACK could lose.
        let _ = connection.execute_batch("ROLLBACK");
        work.finish(outcome);
    }
}

fn serve_writes(connection: &Connection, incoming: &Incoming) {
    let mut texts = Texts::new();
    while let Some(first) = next(incoming) {
        if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
            first.finish(Err(error.into()));
            continue;
        }
        let mut group = vec![first];
        let mut outcomes = Vec::new();
        while outcomes.len() < group.len() {
            let work = &mut group[outcomes.len()];
            outcomes.push(run_in_savepoint(connection, &mut texts, work.as_mut()));
            // A full disk may have rolled back everything; then nothing more fits in.
            if group.len() < GROUP_MAX && !connection.is_autocommit() {
                group.extend(next_now(incoming));
            }
        }
        finish_group(connection, group, outcomes);
    }
}

fn run_in_savepoint(connection: &Connection, texts: &mut Texts, work: &mut dyn Work) -> Result<()> {
    connection.execute_batch("SAVEPOINT request")?;
    let outcome = work.run(&mut Tx::Sqlite { connection, texts });
    if outcome.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK TO request")?;
    }
    if !connection.is_autocommit() {
        connection.execute_batch("RELEASE request")?;
    }
    outcome
}

/// Commits, then tells everybody. If the commit fails, everybody failed.
fn finish_group(connection: &Connection, group: Vec<Box<dyn Work>>, outcomes: Vec<Result<()>>) {
    let committed = if connection.is_autocommit() {
        Err(Error::Full { what: "the database".into() })
    } else {
        connection.execute_batch("COMMIT").map_err(Error::from)
    };
    if committed.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    for (work, outcome) in group.into_iter().zip(outcomes) {
        work.finish(match (&committed, outcome) {
            (_, Err(error)) => Err(error),
            (Ok(()), Ok(())) => Ok(()),
            (Err(Error::Full { what }), Ok(())) => Err(Error::Full { what: what.clone() }),
            (Err(error), Ok(())) => Err(Error::Statement { reason: error.to_string() }),
        });
    }
}
