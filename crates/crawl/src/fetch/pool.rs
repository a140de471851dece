//! Connections kept for the next request, and how many there may be.
//!
//! A request holds a slot of its origin while it runs, and every connection holds
//! one of the whole. Idle connections are tried first and given up first: when all
//! slots of the whole are taken, the one that idles longest is closed. Nothing runs
//! in the background; what is too old is closed when the pool is next used.
//!
//! Invariant: never more than `connections_max` connections are open, nor more than
//! `connections_per_origin_max` to one origin, because a new one is opened only by
//! the holder of a slot that found none idle. What comes out of the pool is
//! checked against the guard of the request that takes it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::guard::Guard;
use super::limits::Limits;
use super::wire::Wire;

/// All connections of a fetcher.
pub(super) struct Pool {
    shelf: Mutex<Shelf>,
    total: Arc<Semaphore>,
    per_origin_max: usize,
    keep_idle: Duration,
}

#[derive(Default)]
struct Shelf {
    origins: HashMap<Arc<str>, Origin>,
    /// Idle connections by age: the number each got when it was put back.
    order: BTreeMap<u64, Arc<str>>,
    next_number: u64,
    /// Requests that wait for a slot of the whole.
    waiting: usize,
}

struct Origin {
    slots: Arc<Semaphore>,
    /// Requests that run or wait for a slot.
    users: usize,
    /// The oldest first.
    idle: Vec<Idle>,
}

struct Idle {
    number: u64,
    since: Instant,
    held: PooledConnection,
}

/// A connection with its slot of the whole.
pub(super) struct PooledConnection {
    pub wire: Wire,
    _slot: OwnedSemaphorePermit,
}

/// The right to one connection to an origin.
pub(super) struct Lease<'a> {
    pool: &'a Pool,
    origin: Arc<str>,
    slot: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub fn new(limits: &Limits) -> Pool {
        Pool {
            shelf: Mutex::default(),
            total: Arc::new(Semaphore::new(limits.connections_max)),
            per_origin_max: limits.connections_per_origin_max,
            keep_idle: limits.keep_idle,
        }
    }

    /// Waits for a slot of the origin.
    pub async fn lease(&self, origin: &str) -> Lease<'_> {
        let (mut lease, slots) = {
            let mut shelf = self.lock();
            let key = match shelf.origins.get_key_value(origin) {
                Some((key, _)) => key.clone(),
                None => Arc::from(origin),
            };
            let entry = shelf.origins.entry(key.clone()).or_insert_with(|| Origin {
                slots: Arc::new(Semaphore::new(self.per_origin_max)),
                users: 0,
                idle: Vec::new(),
            });
            entry.users += 1;
            (Lease { pool: self, origin: key, slot: None }, entry.slots.clone())
        };
        // It fails only when the semaphore is closed, which nobody does.
        lease.slot = slots.acquire_owned().await.ok();
        lease
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn idle(&self) -> usize {
        self.lock().order.len()
    }

    /// Origins that are remembered.
    #[cfg(test)]
    pub fn origins(&self) -> usize {
        self.lock().origins.len()
    }
}

impl Lease<'_> {
    /// An idle connection that this guard allows. Those it does not allow and those
    /// that idled too long are closed on the way.
    pub fn take(&self, guard: &Guard) -> Option<PooledConnection> {
        let now = Instant::now();
        let mut shelf = self.pool.lock();
        shelf.close_older_than(now, self.pool.keep_idle);
        loop {
            let idle = shelf.origins.get_mut(&self.origin)?.idle.pop()?;
            shelf.order.remove(&idle.number);
            if guard.address(idle.held.wire.peer).is_ok() {
                return Some(idle.held);
            }
        }
    }

    /// Waits for a slot of the whole, for a new connection.
    pub async fn slot(&self) -> PoolSlot {
        loop {
            if let Ok(permit) = self.pool.total.clone().try_acquire_owned() {
                return PoolSlot(permit);
            }
            let waiting = {
                let mut shelf = self.pool.lock();
                if shelf.close_oldest() {
                    continue;
                }
                WaitingRequest::begin(self.pool, &mut shelf)
            };
            let permit = self.pool.total.clone().acquire_owned().await;
            drop(waiting);
            if let Ok(permit) = permit {
                return PoolSlot(permit);
            }
        }
    }

    /// Puts a connection back for the next request. It is closed instead if some
    /// request waits for a slot.
    pub fn put(&self, held: PooledConnection) {
        let now = Instant::now();
        let mut shelf = self.pool.lock();
        shelf.close_older_than(now, self.pool.keep_idle);
        if shelf.waiting > 0 {
            return;
        }
        let number = shelf.next_number;
        shelf.next_number += 1;
        if let Some(origin) = shelf.origins.get_mut(&self.origin) {
            origin.idle.push(Idle { number, since: now, held });
            shelf.order.insert(number, self.origin.clone());
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut shelf = self.pool.lock();
        if let Some(origin) = shelf.origins.get_mut(&self.origin) {
            origin.users -= 1;
            if origin.users == 0 && origin.idle.is_empty() {
                shelf.origins.remove(&self.origin);
            }
        }
    }
}

/// A slot of the whole, not yet used.
pub(super) struct PoolSlot(OwnedSemaphorePermit);

impl PoolSlot {
    pub fn hold(self, wire: Wire) -> PooledConnection {
        PooledConnection { wire, _slot: self.0 }
    }
}

/// Counts a request that waits, even if it is given up.
struct WaitingRequest<'a>(&'a Pool);

impl<'a> WaitingRequest<'a> {
    fn begin(pool: &'a Pool, shelf: &mut Shelf) -> WaitingRequest<'a> {
        shelf.waiting += 1;
        WaitingRequest(pool)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Shelf {
    fn close_older_than(&mut self, now: Instant, keep_idle: Duration) {
        while self.oldest_since().is_some_and(|since| since + keep_idle <= now) {
            self.close_oldest();
        }
    }

    fn oldest_since(&self) -> Option<Instant> {
        let (_, origin) = self.order.first_key_value()?;
        self.origins.get(origin)?.idle.first().map(|idle| idle.since)
    }

    /// Closes the connection that idles longest; false if there is none.
    fn close_oldest(&mut self) -> bool {
        let Some((number, key)) = self.order.pop_first() else { return false };
        if let Some(origin) = self.origins.get_mut(&key) {
            origin.idle.retain(|idle| idle.number != number);
            if origin.users == 0 && origin.idle.is_empty() {
                self.origins.remove(&key);
            }
        }
        true
    }
}
