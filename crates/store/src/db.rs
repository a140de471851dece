//! The database as the rest of the program sees it: `read` and `write`.
//!
//! Connections live on threads of their own, fed by bounded queues: SQLite has one
//! writer and a few readers, PostgreSQL a few of both. A full queue makes the
//! caller wait; that is the back-pressure of everything that writes.
//!
//! Invariants: `write` returns only after a durable commit. A closure may run more
//! than once (after a conflict), never concurrently with itself, and only its last
//! run counts. A panic inside a closure rolls back and goes on in the caller.

mod postgres;
mod sqlite;

pub(crate) use sqlite::WAL_BYTES_MAX;

use crate::dialect::Dialect;
use crate::sealing::Keys;
use crate::tx::Own;
use crate::{Error, Result, Tx};
use std::any::Any;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Requests that may wait for a connection before callers have to.
const QUEUE_MAX: usize = 64;
/// How often a transaction is tried again after a conflict before giving up.
pub const ATTEMPTS_MAX: u32 = 12;

/// A handle on the database; clones share it.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
    own: Own,
}

struct Inner {
    dialect: Dialect,
    place: String,
    /// `None` only while dropping: closing the queues is what ends the threads.
    queues: Option<Queues>,
    threads: Threads,
}

/// The threads of a database, each with a connection.
#[derive(Default)]
struct Threads {
    writers: Vec<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
}

struct Queues {
    writes: SyncSender<Box<dyn Work>>,
    reads: SyncSender<Box<dyn Work>>,
}

/// The threads' side of the two queues, shared by all threads of a kind.
type RequestQueues = Arc<Mutex<Receiver<Box<dyn Work>>>>;

impl Db {
    /// Opens or makes a SQLite database file. The caller holds the data directory.
    pub fn open_sqlite(path: &Path) -> Result<Db> {
        Db::start(Dialect::Sqlite, path.display().to_string(), |writes, reads| {
            sqlite::start(path, writes, reads)
        })
    }

    /// Connects to PostgreSQL with a connection string or URL.
    pub fn open_postgres(url: &str) -> Result<Db> {
        let config = postgres::config(url)?;
        let place = format!("PostgreSQL database {}", config.get_dbname().unwrap_or("(default)"));
        Db::start(Dialect::Postgres, place, |writes, reads| postgres::start(config, writes, reads))
    }

    /// Where a PostgreSQL URL leads over the network: no crawl may go there.
    pub fn postgres_addresses(url: &str) -> Result<Vec<SocketAddr>> {
        Ok(postgres::addresses(&postgres::config(url)?))
    }

    fn start(
        dialect: Dialect,
        place: String,
        start: impl FnOnce(RequestQueues, RequestQueues) -> Result<Threads>,
    ) -> Result<Db> {
        let (writes, incoming_writes) = sync_channel(QUEUE_MAX);
        let (reads, incoming_reads) = sync_channel(QUEUE_MAX);
        let threads =
            start(Arc::new(Mutex::new(incoming_writes)), Arc::new(Mutex::new(incoming_reads)))?;
        let queues = Some(Queues { writes, reads });
        Ok(Db { inner: Arc::new(Inner { dialect, place, queues, threads }), own: Own::default() })
    }

    /// The same database, for who seals secrets with these keys.
    pub fn with_keys(self, keys: Keys) -> Db {
        Db { own: Own { keys, ..self.own }, inner: self.inner }
    }

    /// What secrets are sealed with.
    pub fn keys(&self) -> &Keys {
        &self.own.keys
    }

    /// Runs `run` in a transaction and commits it durably.
    ///
    /// `run` must be safe to run again: after a conflict it starts over.
    pub fn write<T, F>(&self, run: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.request(|queues| &queues.writes, run)
    }

    /// Runs `run` on a consistent snapshot that cannot be written to.
    pub fn read<T, F>(&self, run: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.request(|queues| &queues.reads, run)
    }

    fn request<T, F>(
        &self,
        queue: impl FnOnce(&Queues) -> &SyncSender<Box<dyn Work>>,
        run: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = sync_channel(1);
        let own = self.own.clone();
        let request = Box::new(DbRequest { run, own, value: None, panic: None, reply });
        let queues = self.inner.queues.as_ref().expect("the queues close only on drop");
        let gone = || Error::Unavailable {
            what: self.inner.place.clone(),
            reason: "its thread has ended".into(),
        };
        queue(queues).send(request).map_err(|_| gone())?;
        match answer.recv().map_err(|_| gone())? {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    /// A name for messages: the file, or the database.
    pub fn place(&self) -> &str {
        &self.inner.place
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let own = std::thread::current().id();
        let join = |threads: Vec<JoinHandle<()>>| {
            for thread in threads {
                // The last handle may be dropped by a closure on one of these threads.
                if thread.thread().id() != own {
                    let _ = thread.join();
                }
            }
        };
        let Threads { writers, readers } = std::mem::take(&mut self.threads);
        let Some(Queues { writes, reads }) = self.queues.take() else { return };
        // One after the other: of connections that close at the same moment none is the
        // last, and SQLite leaves its log as it is.
        drop(reads);
        join(readers);
        drop(writes);
        join(writers);
    }
}

/// A request as a connection's thread sees it.
trait Work: Send {
    /// Runs it once; may be called again after a rollback.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()>;
    /// Tells the caller; nothing happens after this.
    fn finish(self: Box<Self>, outcome: Result<()>);
}

struct DbRequest<T, F> {
    run: F,
    own: Own,
    value: Option<T>,
    panic: Option<Box<dyn Any + Send>>,
    reply: SyncSender<std::thread::Result<Result<T>>>,
}

impl<T, F> Work for DbRequest<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        tx.give(&self.own);
        // The closure's own state may be broken after a panic; it is never run again.
        match std::panic::catch_unwind(AssertUnwindSafe(|| (self.run)(tx))) {
            Ok(result) => result.map(|value| self.value = Some(value)),
            Err(panic) => {
                self.panic = Some(panic);
                Err(Error::Statement { reason: "the transaction's code panicked".into() })
            }
        }
    }

    fn finish(mut self: Box<Self>, outcome: Result<()>) {
        let answer =
            match self.panic.take() {
                Some(panic) => Err(panic),
                None => Ok(outcome
                    .map(|()| self.value.take().expect("a run that succeeded left its value"))),
            };
        // The caller may have been killed by a panic elsewhere; then nobody listens.
        let _ = self.reply.send(answer);
    }
}

/// What a write came to. One in which a statement failed is refused, whatever its
/// caller thought of that: on PostgreSQL nothing of it is left to commit.
fn committable(tx: &Tx<'_>, outcome: Result<()>) -> Result<()> {
    outcome?;
    match tx.failure() {
        Some(reason) => Err(Error::Statement {
            reason: format!("a statement failed and the caller went on: {reason}"),
        }),
        None => Ok(()),
    }
}

/// Takes the next request, or `None` when the last handle is gone.
fn next(incoming: &RequestQueues) -> Option<Box<dyn Work>> {
    incoming.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// What came of waiting for a request.
enum WaitOutcome {
    Request(Box<dyn Work>),
    /// None came in time.
    Quiet,
    Ended,
}

/// Takes the next request, if it comes in time.
fn next_within(incoming: &RequestQueues, time: Duration) -> WaitOutcome {
    match incoming.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time) {
        Ok(work) => WaitOutcome::Request(work),
        Err(RecvTimeoutError::Timeout) => WaitOutcome::Quiet,
        Err(RecvTimeoutError::Disconnected) => WaitOutcome::Ended,
    }
}

/// Takes a request that is already there.
fn next_now(incoming: &RequestQueues) -> Option<Box<dyn Work>> {
    incoming.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
}

#[cfg(test)]
mod tests;
