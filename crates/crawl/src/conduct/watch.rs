//! Hears what other processes tell jobs, between two looks at all of them.
//!
//! Processes that share a database share no socket: what one of them writes is noticed by
//! a number that grows with every change of a job's state, which costs next to nothing to
//! read. Invariant: a change that was made before a look began is not taken for news.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use store::Db;
use store::tables::job_states;

/// How often it listens: with what follows, whatever a job is told is under way within
/// a second.
const LISTEN: Duration = Duration::from_millis(200);

/// What was heard of last.
pub(super) struct Watch {
    db: Db,
    stamp: Option<i64>,
}

impl Watch {
    pub(super) fn new(db: Db) -> Watch {
        Watch { db, stamp: None }
    }

    /// Takes note of what is so, before a look at it.
    pub(super) fn note(&mut self) {
        // A database that is away says nothing; the look that follows meets it, too.
        self.stamp = self.db.read(job_states::stamp).ok();
    }

    /// Waits until the time is over, somebody wakes it, or there is news; whether there is.
    pub(super) fn wait(&self, woken: &Receiver<()>, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match woken.recv_timeout(left.min(LISTEN)) {
                Err(RecvTimeoutError::Timeout) if left > LISTEN => {}
                _ => return false,
            }
            let stamp = self.db.read(job_states::stamp).ok();
            if stamp.is_some() && stamp != self.stamp {
                return true;
            }
        }
    }
}
