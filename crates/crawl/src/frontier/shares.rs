//! Whose turn it is among jobs: shares by priority, within what connections allow.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, 1996): each start moves a job on by
//! the inverse of its weight, and the job that is furthest behind comes next; one that
//! had nothing to do joins where the others are. Invariants: a job that is ready is
//! served, whatever the others have: with one other job after at most [`STRIDE_MAX`] + 1
//! turns; a connection never has more under way than it may; choosing costs the
//! logarithm of the number of jobs and connections.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::ids::{ConnectionId, JobId};

/// The priority of a job that nobody said anything of.
const PRIORITY: i64 = 5;
/// How far a job of the lowest priority, 10, moves on with each start; one of the
/// highest, 1, moves on by 1.
pub const STRIDE_MAX: u64 = 1 << 9;

/// How far a job moves on with each start: a step of priority halves its share.
pub fn stride_of(priority: i64) -> u64 {
    1 << (priority.clamp(1, 10) - 1)
}

/// Where a job stands among the others.
pub(super) struct Share {
    pub connection: ConnectionId,
    pub stride: u64,
    /// What it has had.
    pass: u64,
    is_ready: bool,
    /// Documents of it that wait, or are being claimed.
    pub held: usize,
}

/// What a connection allows.
struct ConnectionShares {
    requests_max: usize,
    in_flight: usize,
    /// Its jobs that could start something, the one furthest behind first.
    ready: BTreeSet<(u64, JobId)>,
    /// The key it stands under in `open`.
    open_at: Option<u64>,
}

/// All jobs and connections.
#[derive(Default)]
pub(super) struct Shares {
    jobs: BTreeMap<JobId, Share>,
    connections: HashMap<ConnectionId, ConnectionShares>,
    /// Connections with room and a job that is ready, the one furthest behind first.
    open: BTreeSet<(u64, ConnectionId)>,
    /// Where the job stood that was served last.
    clock: u64,
    /// Documents of all jobs that wait, or are being claimed.
    held: usize,
}

impl Shares {
    /// Says what a job is. What it has had stays.
    pub fn set(&mut self, job: JobId, connection: ConnectionId, priority: i64) {
        let was_ready = self.jobs.get(&job).is_some_and(|share| share.is_ready);
        // The place it stands in is its connection's.
        self.ready(job, false);
        let share = self.share(job);
        (share.connection, share.stride) = (connection, stride_of(priority));
        self.ready(job, was_ready);
    }

    /// How many requests of a connection may be under way at once.
    pub fn limit(&mut self, connection: ConnectionId, requests_max: usize) {
        self.allowed(connection).requests_max = requests_max.max(1);
        self.reopen(connection);
    }

    /// A job; one that nobody told of has the usual priority.
    pub fn share(&mut self, job: JobId) -> &mut Share {
        self.jobs.entry(job).or_insert(Share {
            connection: ConnectionId(0),
            stride: stride_of(PRIORITY),
            pass: 0,
            is_ready: false,
            held: 0,
        })
    }

    /// Documents of a job wait, or are being claimed.
    pub fn hold(&mut self, job: JobId, documents: usize) {
        if let Some(share) = self.jobs.get_mut(&job) {
            share.held += documents;
            self.held += documents;
        }
    }

    /// And they do not any more.
    pub fn release(&mut self, job: JobId, documents: usize) {
        if let Some(share) = self.jobs.get_mut(&job) {
            let released = documents.min(share.held);
            share.held -= released;
            self.held -= released;
        }
    }

    /// Documents of all jobs that wait, or are being claimed.
    pub fn held(&self) -> usize {
        self.held
    }

    pub fn connection(&self, job: JobId) -> ConnectionId {
        self.jobs.get(&job).map_or(ConnectionId(0), |share| share.connection)
    }

    /// Forgets a job that has nothing waiting.
    pub fn forget(&mut self, job: JobId) {
        self.ready(job, false);
        self.held -= self.jobs.remove(&job).map_or(0, |share| share.held);
    }

    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    fn allowed(&mut self, connection: ConnectionId) -> &mut ConnectionShares {
        self.connections.entry(connection).or_insert(ConnectionShares {
            requests_max: usize::MAX,
            in_flight: 0,
            ready: BTreeSet::new(),
            open_at: None,
        })
    }

    /// A job has something to start, or has not.
    pub fn ready(&mut self, job: JobId, is_ready: bool) {
        let clock = self.clock;
        let Some(share) = self.jobs.get_mut(&job).filter(|share| share.is_ready != is_ready) else {
            return;
        };
        share.is_ready = is_ready;
        let (connection, before) = (share.connection, share.pass);
        if is_ready {
            share.pass = share.pass.max(clock);
            let pass = share.pass;
            self.allowed(connection).ready.insert((pass, job));
        } else {
            self.allowed(connection).ready.remove(&(before, job));
        }
        self.reopen(connection);
    }

    /// Whose turn it is.
    pub fn next(&self) -> Option<JobId> {
        let (_, connection) = self.open.first()?;
        self.connections[connection].ready.first().map(|(_, job)| *job)
    }

    /// Whether a job's connection allows another request.
    pub fn has_room(&self, job: JobId) -> bool {
        let allowed = self.connections.get(&self.connection(job));
        allowed.is_none_or(|allowed| allowed.in_flight < allowed.requests_max)
    }

    /// A job has started something.
    pub fn started(&mut self, job: JobId) {
        let clock = self.clock;
        let share = self.share(job);
        let (before, connection) = (share.pass, share.connection);
        // Whoever was held up by its connection does not make up for all of it.
        let at = before.max(clock.saturating_sub(STRIDE_MAX));
        share.pass = at.saturating_add(share.stride);
        let (pass, is_ready) = (share.pass, share.is_ready);
        self.clock = self.clock.max(before);
        let allowed = self.allowed(connection);
        allowed.in_flight += 1;
        if is_ready {
            allowed.ready.remove(&(before, job));
            allowed.ready.insert((pass, job));
        }
        self.reopen(connection);
    }

    /// Something of a connection has ended.
    pub fn ended(&mut self, connection: ConnectionId) {
        let allowed = self.allowed(connection);
        allowed.in_flight = allowed.in_flight.saturating_sub(1);
        self.reopen(connection);
    }

    /// Puts a connection where its state says it belongs.
    fn reopen(&mut self, connection: ConnectionId) {
        let allowed = self.allowed(connection);
        let first = allowed.ready.first().map(|(pass, _)| *pass);
        let open_at = first.filter(|_| allowed.in_flight < allowed.requests_max);
        let before = std::mem::replace(&mut allowed.open_at, open_at);
        let is_unused = allowed.in_flight == 0 && allowed.ready.is_empty();
        let is_unlimited = allowed.requests_max == usize::MAX;
        if before != open_at {
            if let Some(pass) = before {
                self.open.remove(&(pass, connection));
            }
            if let Some(pass) = open_at {
                self.open.insert((pass, connection));
            }
        }
        if is_unused && is_unlimited {
            self.connections.remove(&connection);
        }
    }
}
