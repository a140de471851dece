//! Statements that are under way in a foreign database, and how they are ended early.
//!
//! SQLite looks at a flag between steps of its machine. A PostgreSQL server is told over a
//! connection of its own, by a thread, until the statement has ended: a message that comes
//! before the statement has begun has no effect. Invariant: after an interrupt nothing is
//! asked any more.

use crate::{Error, Result};
use postgres::{CancelToken, NoTls};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a server has to end a statement before it is told again.
const TOLD_AGAIN: Duration = Duration::from_millis(200);

/// What is under way, shared with the thread that ends it.
#[derive(Default)]
pub(super) struct RunningStatements {
    interrupted: Arc<AtomicBool>,
    statements: Mutex<Statements>,
    ended: Condvar,
}

#[derive(Default)]
struct Statements {
    number: u64,
    /// What ends those that are asked of a server.
    tokens: BTreeMap<u64, CancelToken>,
}

impl RunningStatements {
    /// What is set when everything is to end.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    /// Fails after an interrupt.
    pub(super) fn check(&self) -> Result<()> {
        match self.is_interrupted() {
            true => Err(interrupted()),
            false => Ok(()),
        }
    }

    /// Does something that an interrupt ends, by its token if a server does it.
    pub(super) fn during<T>(
        &self,
        token: Option<CancelToken>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let under_way = self.enter(token)?;
        let outcome = work();
        drop(under_way);
        match outcome {
            Err(_) if self.is_interrupted() => Err(interrupted()),
            outcome => outcome,
        }
    }

    fn enter(&self, token: Option<CancelToken>) -> Result<RunningStatement<'_>> {
        let mut statements = self.lock();
        // Under the lock: whoever interrupts sees it, or it is not begun.
        self.check()?;
        statements.number += 1;
        let number = statements.number;
        if let Some(token) = token {
            statements.tokens.insert(number, token);
        }
        Ok(RunningStatement { running: self, number })
    }

    fn lock(&self) -> MutexGuard<'_, Statements> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is under way. Returns at once.
    pub(super) fn interrupt(self: &Arc<RunningStatements>) {
        let statements = self.lock();
        let was_interrupted = self.interrupted.swap(true, Ordering::SeqCst);
        if was_interrupted || statements.tokens.is_empty() {
            return;
        }
        let running = self.clone();
        // If there is no thread to be had, they end by their own limit.
        let _ = std::thread::Builder::new()
            .name("postgres".into())
            .spawn(move || running.cancel_until_ended());
    }

    /// Tells servers to end statements until these have ended, which they do by their own
    /// limit at the latest.
    fn cancel_until_ended(&self) {
        let mut statements = self.lock();
        while !statements.tokens.is_empty() {
            let tokens: Vec<CancelToken> = statements.tokens.values().cloned().collect();
            drop(statements);
            for token in tokens {
                // A server that cannot be reached is told again.
                let _ = token.cancel_query(NoTls);
            }
            let waited =
                self.ended.wait_timeout_while(self.lock(), TOLD_AGAIN, |it| !it.tokens.is_empty());
            statements = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A statement that is under way until this is dropped.
struct RunningStatement<'a> {
    running: &'a RunningStatements,
    number: u64,
}

impl Drop for RunningStatement<'_> {
    fn drop(&mut self) {
        self.running.lock().tokens.remove(&self.number);
        self.running.ended.notify_all();
    }
}

fn interrupted() -> Error {
    Error::Conflict { reason: "the query was interrupted".to_owned() }
}
