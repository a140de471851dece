//! SQLite connections: one writer that commits in groups, and readers beside it.
//!
//! Invariant: a request is answered only after the commit that holds it is synced
//! (`synchronous=FULL`). Requests that wait at the same moment share one commit,
//! each in its own savepoint, so that one fsync serves many and one failure hurts
//! nobody else. A request that is alone has no savepoint, which would make SQLite
//! keep a copy of every page it touches.

use super::{RequestQueues, Threads, WaitOutcome, Work, committable, next, next_now, next_within};
use crate::tx::{Own, Texts};
use crate::{Error, Result, Tx, disk, memory};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

/// Requests that share one commit.
const GROUP_MAX: usize = 16;
/// Prepared statements kept with each connection.
const STATEMENTS_MAX: usize = 512;
/// Bytes of a page of a new file. A commit touches few rows of many pages, and each page goes
/// into the log whole: with pages of 4 KB, an unchanged document costs 5.2 KB written instead of 3.1,
/// and no less processor time (bench/growth). Files keep the size that they were made with.
const PAGE_BYTES: u32 = 1_024;
/// Bytes of pages in the write-ahead log before they are carried into the file. A page that many
/// commits change is carried over once: with a sixteenth of this, a commit into a large
/// queue costs a third more (bench/queue). A small crawl never comes so far.
const WAL_PAGES_BYTES: u32 = 256 << 20;
/// What is kept of the log's file afterwards: all of it, so that it need not grow again while
/// there is work. (A page has a head of 24 bytes in the log.)
pub(crate) const WAL_BYTES_MAX: u64 = WAL_PAGES_BYTES as u64 / 40 * 41 + (4 << 20);
/// When nothing was written for this long, a log that is larger than [`WAL_QUIET_BYTES`] is
/// carried over, and its file is emptied.
const QUIET: Duration = Duration::from_secs(1);
/// What stays of it in quiet moments: enough for the heartbeats of many hours.
pub(super) const WAL_QUIET_BYTES: u64 = 4 << 20;
/// Another process may hold the file for a moment while it ends.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn start(path: &Path, writes: RequestQueues, reads: RequestQueues) -> Result<Threads> {
    begin(path, writes, reads).map_err(|error| with_disk_trouble(path, error))
}

fn begin(path: &Path, writes: RequestQueues, reads: RequestQueues) -> Result<Threads> {
    // The writer comes first: it makes the file and switches it to WAL.
    let writer = open(path, memory::SQLITE_WRITER_BYTES)?;
    let page_bytes: u32 = writer.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    writer.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {};",
        WAL_PAGES_BYTES / page_bytes
    ))?;
    let writers = vec![thread("sqlite-writer", {
        let path = path.to_owned();
        move || serve_writes(&writer, &writes, &path)
    })?];
    let mut readers = Vec::new();
    for _ in 0..memory::SQLITE_READERS {
        let reader = open(path, memory::SQLITE_READER_BYTES)?;
        reader.execute_batch("PRAGMA query_only = ON;")?;
        let (reads, path) = (reads.clone(), path.to_owned());
        readers.push(thread("sqlite-reader", move || serve_reads(&reader, &reads, &path))?);
    }
    Ok(Threads { writers, readers })
}

#[allow(clippy::disallowed_methods, reason = "this is the home that the lint points to")]
fn open(path: &Path, cache_bytes: usize) -> Result<Connection> {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    if path.is_file() && disk::is_read_only(directory.unwrap_or(Path::new("."))) {
        return open_read_only(path, cache_bytes);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure) {
            return Error::from(error);
        }
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
        "PRAGMA page_size = {PAGE_BYTES};
         PRAGMA journal_mode = WAL;
         PRAGMA journal_size_limit = {WAL_BYTES_MAX};
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{};",
        cache_bytes / 1_024
    ))?;
    Ok(connection)
}

/// Opens a file where nothing can be written: on a file system that is mounted read-only, or of
/// another user. Without a log nobody else has the file open, and it can be read as it is; with
/// one, SQLite reads both, if the log's index lies beside them. Writes fail.
#[allow(clippy::disallowed_methods, reason = "this is the home that the lint points to")]
fn open_read_only(path: &Path, cache_bytes: usize) -> Result<Connection> {
    let log = log_of(path);
    let has_log = log.metadata().is_ok_and(|it| it.len() > 0);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let unchanging = if has_log { "" } else { "?immutable=1" };
    let opened = Connection::open_with_flags(format!("file:{}{unchanging}", escaped(path)), flags)
        .and_then(|connection| {
            connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.execute_batch(&format!(
                "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{};
                 SELECT COUNT(*) FROM sqlite_master;",
                cache_bytes / 1_024
            ))?;
            Ok(connection)
        });
    opened.map_err(|error| match has_log {
        true => Error::Refused(format!(
            "{} cannot be opened: {error}; its log {} must be carried over first, and nothing can \
             be written here: mount it writable once, or copy the directory to where it can",
            path.display(),
            log.display()
        )),
        false => error.into(),
    })
}

/// A path as it stands in a URI of SQLite.
fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    text.replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

/// SQLite calls a file malformed that it could not read or write, and does not tell what the
/// system said. The disk is asked before anybody is told that stored data is broken.
fn with_disk_trouble(path: &Path, error: Error) -> Error {
    let may_be_the_disk = match &error {
        Error::Corrupt { .. } => true,
        Error::Io { error, .. } => error.kind() == std::io::ErrorKind::Other,
        _ => false,
    };
    if may_be_the_disk { disk::trouble(path).unwrap_or(error) } else { error }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(run).map_err(|error| Error::io(name, error))
}

fn serve_reads(connection: &Connection, incoming: &RequestQueues, path: &Path) {
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
        work.finish(outcome.map_err(|error| with_disk_trouble(path, error)));
    }
}

fn serve_writes(connection: &Connection, incoming: &RequestQueues, path: &Path) {
    let mut texts = Texts::new();
    let mut has_written = false;
    loop {
        let waited = match has_written {
            true => next_within(incoming, QUIET),
            false => next(incoming).map_or(WaitOutcome::Ended, WaitOutcome::Request),
        };
        let first = match waited {
            WaitOutcome::Request(first) => first,
            WaitOutcome::Quiet => {
                has_written = false;
                empty_log(connection, path);
                continue;
            }
            WaitOutcome::Ended => return,
        };
        has_written = true;
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            let Some(waiting) = next_now(incoming) else { break };
            group.push(waiting);
        }
        if let Err(error) = control(connection, "BEGIN IMMEDIATE") {
            fail_all(group, &with_disk_trouble(path, error));
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
        let outcomes = outcomes
            .into_iter()
            .map(|it| it.map_err(|error| with_disk_trouble(path, error)))
            .collect();
        finish_group(connection, group, outcomes);
    }
}

/// Carries the log over and empties its file, if that is large and nobody is reading. It is
/// tried again in the next quiet moment.
fn empty_log(connection: &Connection, path: &Path) {
    let is_large = log_of(path).metadata().is_ok_and(|it| it.len() > WAL_QUIET_BYTES);
    if is_large && connection.busy_timeout(Duration::ZERO).is_ok() {
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = connection.busy_timeout(BUSY_TIMEOUT);
    }
}

/// Where the log of a database is.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
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
        Err(outcomes
            .iter()
            .find_map(|it| it.as_ref().err())
            .map_or_else(rolled_back, Error::copied))
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
            (Err(error), Ok(())) => Err(error.copied()),
        });
    }
}

fn rolled_back() -> Error {
    Error::Conflict { reason: "a request in the same commit failed and took it along".into() }
}

fn fail_all(group: Vec<Box<dyn Work>>, error: &Error) {
    for work in group {
        work.finish(Err(error.copied()));
    }
}

/// Runs a statement that begins or ends something.
fn control(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
