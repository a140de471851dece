//! How many connections of one definition this process has open at once.
//!
//! A pool counts, and nothing else: whoever takes a place makes the connection. It is for
//! outputs and everything else that works on threads; the crawl counts in its frontier.
//! Invariants: never more places are taken than there are, but for those that were taken
//! when there were more; a place comes back however its holder ends; who waits is woken,
//! and waits no longer than it said.

use crate::ids::ConnectionId;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pools of a process, by connection.
#[derive(Clone, Default)]
pub struct Pools {
    pools: Arc<Mutex<BTreeMap<ConnectionId, Arc<Pool>>>>,
}

impl Pools {
    /// The pool of a connection that allows so many, which may be news.
    pub fn of(&self, connection: ConnectionId, maxcount: i64) -> Arc<Pool> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry(connection).or_default().clone();
        pool.set_max(maxcount);
        pool
    }

    /// Forgets the pools of connections that are not used any more. Places that are
    /// taken stay taken for those who hold them.
    pub fn retain(&self, is_used: impl Fn(ConnectionId) -> bool) {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|connection, pool| is_used(*connection) || pool.taken() > 0);
    }
}

#[derive(Default)]
struct Count {
    max: usize,
    taken: usize,
}

/// Places for connections.
#[derive(Default)]
pub struct Pool {
    count: Mutex<Count>,
    freed: Condvar,
}

impl Pool {
    /// A pool with so many places; at least one.
    pub fn new(maxcount: i64) -> Arc<Pool> {
        let pool = Arc::new(Pool::default());
        pool.set_max(maxcount);
        pool
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_max(&self, maxcount: i64) {
        self.lock().max = usize::try_from(maxcount).unwrap_or(0).max(1);
        self.freed.notify_all();
    }

    /// Takes a place, when there is one; `None` if there is none for that long.
    pub fn take(self: &Arc<Pool>, wait_max: Duration) -> Option<Place> {
        let until = Instant::now() + wait_max;
        let mut count = self.lock();
        while count.taken >= count.max {
            let wait = until.checked_duration_since(Instant::now())?;
            let woken = self.freed.wait_timeout(count, wait);
            count = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        count.taken += 1;
        Some(Place { pool: self.clone() })
    }

    /// Places that are taken.
    pub fn taken(&self) -> usize {
        self.lock().taken
    }
}

/// A place in a pool, given back when it is dropped.
pub struct Place {
    pool: Arc<Pool>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pool.lock().taken -= 1;
        self.pool.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn no_more_are_out_than_there_are_and_everybody_gets_one() {
        let pool = Pool::new(3);
        let (out, most, served) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let place = pool.take(LONG).unwrap();
                        most.fetch_max(out.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        out.fetch_sub(1, Ordering::SeqCst);
                        drop(place);
                        served.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!((served.into_inner(), pool.taken()), (600, 0));
    }

    #[test]
    fn a_wait_has_an_end_and_a_holder_that_panics_gives_back() {
        let pool = Pool::new(1);
        let held = pool.take(Duration::ZERO).unwrap();
        assert!(pool.take(Duration::from_millis(5)).is_none());
        let panics = std::thread::spawn(move || {
            let _held = held;
            panic!("as connectors may");
        });
        assert!(panics.join().is_err());
        assert!(pool.take(Duration::ZERO).is_some());
    }

    #[test]
    fn another_number_counts_at_once_for_those_who_wait_too() {
        let pools = Pools::default();
        let pool = pools.of(ConnectionId(1), 1);
        let first = pool.take(Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pool.take(LONG).is_some());
            pools.of(ConnectionId(1), 2);
            assert!(waits.join().unwrap());
        });
        let second = pools.of(ConnectionId(1), 1).take(Duration::ZERO);
        assert!(second.is_none(), "one is out, and one is all there may be");
        pools.retain(|_| false);
        drop(first);
        assert_eq!(pools.of(ConnectionId(1), 1).taken(), 0);
    }
}
