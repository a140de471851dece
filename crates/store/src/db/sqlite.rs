//! SQLite connections: one writer that commits in groups, and readers beside it.
//!
//! Invariant: a request is answered only after the commit that holds it is synced
//! (`synchronous=FULL`). Requests that wait at the same moment share one commit,
//! each in its own savepoint, so that one fsync serves many and one failure hurts
//! nobody else. A request that is alone has no savepoint, which would make SQLite
//! keep a copy of every page it touches.

use super::{Incoming, Threads, Work, committable, next, next_now};
use crate::tx::{Own, Texts};
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
/// Pages in the write-ahead log before they are carried into the file. A page that many
/// commits change is carried over once: with a sixteenth of this, a commit into a large
/// queue costs a third more (bench/queue). A small crawl never comes so far.
const WAL_PAGES_MAX: u32 = 64_000;
/// What is kept of the log's file afterwards: all of it, so that it need not grow again.
pub(crate) const WAL_BYTES_MAX: u64 = WAL_PAGES_MAX as u64 * (4_096 + 24) + (4 << 20);
/// Page cache of a reader, in KiB.
const READER_CACHE_KIB: i64 = 16 << 10;
/// Another process may hold the file for a moment while it ends.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn start(path: &Path, writes: Incoming, reads: Incoming) -> Result<Threads> {
    // The writer comes first: it makes the file and switches it to WAL.
    let writer = open(path, WRITER_CACHE_KIB)?;
    writer.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {WAL_PAGES_MAX};"
    ))?;
    let writers = vec![thread("sqlite-writer", move || serve_writes(&writer, &writes))?];
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let reader = open(path, READER_CACHE_KIB)?;
        reader.execute_batch("PRAGMA query_only = ON;")?;
        let reads = reads.clone();
        readers.push(thread("sqlite-reader", move || serve_reads(&reader, &reads))?);
    }
    Ok(Threads { writers, readers })
}

#[allow(clippy::disallowed_methods, reason = "this is the home that the lint points to")]
fn open(path: &Path, cache_kib: i64) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| {
        Error::Refused(format!(
            "{} cannot be opened: {error}; check that the path exists, is not too long, and may be \
             written by this user",
            path.display()
        ))
    })?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Plans depend on the statement alone. Otherwise SQLite prepares a statement
    // again whenever an argument changes that a partial index might care about.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA journal_size_limit = {WAL_BYTES_MAX};
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
        let outcome = control(connection, "BEGIN DEFERRED").and_then(|()| {
            work.run(&mut Tx::Sqlite {
                connection,
                texts: &mut texts,
                failed: None,
                own: Own::default(),
            })
        });
        // Nothing was written, so there is nothing a failing ROLLBACK could lose.
        let _ = control(connection, "ROLLBACK");
        work.finish(outcome);
    }
}

fn serve_writes(connection: &Connection, incoming: &Incoming) {
    let mut texts = Texts::new();
    while let Some(first) = next(incoming) {
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            let Some(waiting) = next_now(incoming) else { break };
            group.push(waiting);
        }
        if let Err(error) = control(connection, "BEGIN IMMEDIATE") {
            fail_all(group, &error);
            continue;
        }
        let outcomes = match group.as_mut_slice() {
            [alone] => {
                vec![run_write(connection, &mut texts, alone.as_mut())]
            }
            several => several
                .iter_mut()
                .map(|work| run_in_savepoint(connection, &mut texts, work.as_mut()))
                .collect(),
        };
        finish_group(connection, group, outcomes);
    }
}

fn run_write(connection: &Connection, texts: &mut Texts, work: &mut dyn Work) -> Result<()> {
    let mut tx = Tx::Sqlite { connection, texts, failed: None, own: Own::default() };
    let outcome = work.run(&mut tx);
    committable(&tx, outcome)
}

fn run_in_savepoint(connection: &Connection, texts: &mut Texts, work: &mut dyn Work) -> Result<()> {
    // A serious failure of an earlier request (a full disk, say) made SQLite roll
    // back everything; its error is told to everybody.
    if connection.is_autocommit() {
        return Err(rolled_back());
    }
    control(connection, "SAVEPOINT request")?;
    let outcome = run_write(connection, texts, work);
    if outcome.is_err() && !connection.is_autocommit() {
        control(connection, "ROLLBACK TO request")?;
    }
    if !connection.is_autocommit() {
        control(connection, "RELEASE request")?;
    }
    outcome
}

/// Commits, then tells everybody. If the commit fails, everybody failed.
fn finish_group(connection: &Connection, group: Vec<Box<dyn Work>>, outcomes: Vec<Result<()>>) {
    let alone_failed = matches!(outcomes.as_slice(), [Err(_)]);
    let committed = if connection.is_autocommit() {
        Err(outcomes.iter().find_map(|it| it.as_ref().err()).map_or_else(rolled_back, same))
    } else if alone_failed {
        control(connection, "ROLLBACK")
    } else {
        control(connection, "COMMIT")
    };
    if committed.is_err() && !connection.is_autocommit() {
        let _ = control(connection, "ROLLBACK");
    }
    for (work, outcome) in group.into_iter().zip(outcomes) {
        work.finish(match (&committed, outcome) {
            (_, Err(error)) => Err(error),
            (Ok(()), Ok(())) => Ok(()),
            (Err(error), Ok(())) => Err(same(error)),
        });
    }
}

fn rolled_back() -> Error {
    Error::Conflict { reason: "a request in the same commit failed and took it along".into() }
}

fn fail_all(group: Vec<Box<dyn Work>>, error: &Error) {
    for work in group {
        work.finish(Err(same(error)));
    }
}

/// One error for several requests: what callers act on is kept.
fn same(error: &Error) -> Error {
    match error {
        Error::Full { what } => Error::Full { what: what.clone() },
        Error::Conflict { reason } => Error::Conflict { reason: reason.clone() },
        other => Error::Statement { reason: other.to_string() },
    }
}

/// Runs a statement that begins or ends something.
fn control(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
