//! Which document of which host comes next, and when: politeness and fairness in
//! memory, over the queue in the database.
//!
//! The frontier knows only hosts that may have work and the few documents claimed
//! from them; how long the queue is does not matter to it. It does no I/O and has no
//! clock: the worker asks which hosts want documents ([`Frontier::wants`]), claims
//! them, hands them over ([`Frontier::claimed`]), and takes them out one by one
//! ([`Frontier::next`]) as their hosts allow. What a document is, is the worker's
//! business. Jobs that visit the same host share its clock. `shares` says whose turn it
//! is among jobs, `slots` how many requests may be under way, `gates` how fast and how wide
//! a bin may be asked, `claims` what is claimed for whom, `request_end` what follows a request,
//! `host` keeps the lines of jobs at a host (a line is what one job has there), `lines` where
//! each line stands. Whatever the reason for a wait is, it ends in `Frontier::due_ms`: when a
//! line may start its next document.
//!
//! Invariants: requests to a host never start closer than its delay, counted from the
//! end of the one before; a host with a delay has one request at a time; hosts take
//! turns, so the k-th document of every host is equal, and hosts that are held back
//! come in proportion; jobs share by their weights, and none waits for ever; what is
//! claimed and not yet committed never exceeds the limit, so a crash repeats at most
//! that much.

mod claims;
mod gates;
mod host;
mod lines;
mod request_end;
mod shares;
mod slots;

pub use gates::Pace;
pub use shares::{STRIDE_MAX, stride_of};

use gates::Gates;
use host::{FrontierHost, Hunger, LineKey};
use shares::Shares;
use slots::{OpenRequest, SLOW_MS, Slots};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::ids::{BinId, ConnectionId, JobId, Part};

/// A bin in its part: what politeness counts by. Called a host here, although the bins of
/// other connectors than the web come this way, too, with a delay of 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct HostKey {
    pub part: Part,
    pub bin: BinId,
}

/// Who has something at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Spot {
    pub host: HostKey,
    pub job: JobId,
    pub connection: ConnectionId,
}

/// What is at work at once.
#[derive(Debug, Clone, Copy)]
pub struct FrontierLimits {
    /// Requests under way that are not slow.
    pub in_flight_max: usize,
    /// Slow requests that are under way beside them.
    pub slow_max: usize,
    /// Documents asked for and not yet committed.
    pub uncommitted_max: usize,
    /// Documents claimed and not yet committed: those, and the ones that wait.
    pub claimed_max: usize,
    /// How far ahead documents are claimed for a host with a delay.
    pub ahead_ms: i64,
}

/// How a host wants to be treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Politeness {
    /// From the end of one request to the start of the next; 0 lets them overlap.
    pub delay_ms: i64,
    /// Not before this time.
    pub next_ms: i64,
}

/// How a host is left after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// When the request ended.
    pub ended_ms: i64,
    /// The host may be asked again after this.
    pub delay_ms: i64,
    /// And not before this time.
    pub not_before_ms: i64,
}

/// When something of a job may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NextHost {
    /// When its host may be asked.
    pub next_ms: i64,
    /// When the throttles let it be asked, which is no trouble of the host.
    pub due_ms: i64,
    pub host: HostKey,
}

/// A host that could use documents of a job, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DocumentDemand {
    pub host: HostKey,
    pub job: JobId,
    pub documents: usize,
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub enum Next<T> {
    /// Ask for this document now.
    Fetch(HostKey, T),
    /// Nothing until this time, unless something ends before; then documents can be
    /// claimed or asked for. A time that has passed means: claim now.
    WaitUntil(i64),
    /// Nothing until something ends or is claimed.
    Wait,
}

/// Hosts with work, in the order they may be asked.
pub struct Frontier<T> {
    limits: FrontierLimits,
    hosts: HashMap<HostKey, FrontierHost<T>>,
    shares: Shares,
    gates: Gates,
    /// Lines with a document waiting whose time has not come, by time.
    later: BTreeSet<(i64, LineKey)>,
    /// Lines with a document waiting whose time has come, by job and turn: the one that
    /// was served longest ago first, so that a host without delay starves nobody.
    ready: HashMap<JobId, BTreeSet<(u64, HostKey)>>,
    /// Lines that the database may have more for, by job; those that have nothing first,
    /// so that many that could use more do not keep them from it.
    hungry: BTreeMap<JobId, BTreeSet<(Hunger, HostKey)>>,
    /// Lines that would be ready if slots were free for hosts that have not answered promptly.
    untried: BTreeSet<(u64, LineKey)>,
    claimed: usize,
    slots: Slots,
    turns: u64,
    /// When it was last asked what to do.
    now_ms: i64,
}

impl<T> Frontier<T> {
    /// A frontier that knows no hosts.
    pub fn new(limits: FrontierLimits) -> Frontier<T> {
        Frontier {
            limits,
            hosts: HashMap::new(),
            shares: Shares::default(),
            gates: Gates::default(),
            later: BTreeSet::new(),
            ready: HashMap::new(),
            hungry: BTreeMap::new(),
            untried: BTreeSet::new(),
            claimed: 0,
            slots: Slots::new(limits.in_flight_max, limits.slow_max),
            turns: 0,
            now_ms: 0,
        }
    }

    /// What a job is: whose connection it uses, and its priority.
    pub fn set_job(&mut self, job: JobId, connection: ConnectionId, priority: i64) {
        self.shares.set(job, connection, priority);
    }

    /// How many requests of a connection may be under way at once.
    pub fn set_connection(&mut self, connection: ConnectionId, requests_max: usize) {
        self.shares.limit(connection, requests_max);
    }

    /// A job at a host, as it counts now.
    pub fn spot(&self, host: HostKey, job: JobId) -> Spot {
        Spot { host, job, connection: self.shares.connection(job) }
    }

    /// Whether a host is known.
    pub fn knows(&self, host: HostKey) -> bool {
        self.hosts.contains_key(&host)
    }

    /// How many hosts are known.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A host may have something ready for a job. Of a host that is known, only that
    /// is new, and a delay that is longer.
    pub fn add_work(&mut self, host: HostKey, job: JobId, politeness: Politeness, pace: Pace) {
        self.turns += 1;
        // A job that nobody told of is known from here on.
        let connection = self.shares.share(job).connection;
        let known = self.hosts.entry(host).or_insert_with(|| FrontierHost::new(politeness));
        known.politeness.delay_ms = known.politeness.delay_ms.max(politeness.delay_ms);
        known.line_or_new(job, self.turns).exhausted = false;
        self.set_pace(host, connection, pace);
        self.settle(host);
    }

    fn set_pace(&mut self, key: HostKey, connection: ConnectionId, pace: Pace) {
        let Some(host) = self.hosts.get(&key) else { return };
        let mine = host.lines.iter().filter(|it| self.shares.connection(it.job) == connection);
        let in_flight = mine.map(|line| line.in_flight).sum();
        self.gates.set((connection, key.bin), pace, in_flight, self.now_ms);
    }

    /// The throttles of a connection have changed. `pace` says what a bin is allowed now;
    /// `None` stops it. Returns what waits at bins that are stopped.
    pub fn repace(
        &mut self,
        connection: ConnectionId,
        mut pace: impl FnMut(HostKey) -> Option<Pace>,
    ) -> Vec<(HostKey, T)> {
        let keys: Vec<HostKey> = self.hosts.keys().copied().collect();
        let mut dropped = Vec::new();
        for key in keys {
            let Some(host) = self.hosts.get_mut(&key) else { continue };
            let shares = &self.shares;
            let of = |job: JobId| shares.connection(job) == connection;
            if !host.lines.iter().any(|line| of(line.job)) {
                continue;
            }
            match pace(key) {
                Some(pace) => {
                    self.set_pace(key, connection, pace);
                    for parked in self.gates.unpark((connection, key.bin)) {
                        self.settle(parked.0);
                    }
                }
                None => {
                    let jobs: Vec<JobId> =
                        host.lines.iter().map(|line| line.job).filter(|job| of(*job)).collect();
                    for job in jobs {
                        let drained = self.drain(key, Some(job), true);
                        dropped.extend(drained.into_iter().map(|item| (key, item)));
                    }
                }
            }
            self.settle(key);
        }
        dropped
    }

    /// What to do now.
    pub fn next(&mut self, now_ms: i64) -> Next<T> {
        // A clock that goes back is no reason to look at anything twice.
        self.now_ms = self.now_ms.max(now_ms);
        let now_ms = self.now_ms;
        if !self.may_start() {
            return self.next_slot().map_or(Next::Wait, Next::WaitUntil);
        }
        self.take_in(now_ms);
        self.promote(now_ms);
        while let Some(job) = self.shares.next() {
            let first = self.ready.get(&job).and_then(|lines| lines.first());
            let Some(&(_, key)) = first else {
                debug_assert!(false, "a job that is ready has a line that is");
                self.shares.ready(job, false);
                continue;
            };
            // Its gate may have moved on since it became ready.
            if self.due_ms(key, job).is_none_or(|due_ms| due_ms > now_ms) {
                self.settle(key);
                continue;
            }
            if !self.hosts[&key].is_prompt && self.slots.free_untried(now_ms) == 0 {
                self.leave_out(key, job);
                continue;
            }
            return self.start(key, job, now_ms);
        }
        self.until()
    }

    /// Whether anything may start before something ends or is committed.
    fn may_start(&self) -> bool {
        self.slots.is_free(self.now_ms) && !self.is_full()
    }

    /// Whether nothing may start before something is committed.
    pub fn is_full(&self) -> bool {
        self.claimed.saturating_sub(self.shares.held()) >= self.limits.uncommitted_max
    }

    /// When a request gives up a slot that somebody waits for.
    fn next_slot(&self) -> Option<i64> {
        let is_wanted = !self.untried.is_empty() || !self.slots.is_free(self.now_ms);
        self.slots.next_free_ms(self.now_ms).filter(|_| is_wanted && !self.is_full())
    }

    /// When a line may start its next document; `None` if something must end before.
    fn due_ms(&self, key: HostKey, job: JobId) -> Option<i64> {
        let host = self.hosts.get(&key).filter(|host| host.is_free())?;
        let gate_ms = self.gates.due_ms((self.shares.connection(job), key.bin))?;
        Some(host.politeness.next_ms.max(gate_ms))
    }

    /// Starts a document at a host whose turn it is: the job's own, or, where starts are
    /// few, one of the job that is furthest behind at this host.
    fn start(&mut self, key: HostKey, job: JobId, now_ms: i64) -> Next<T> {
        let host = &self.hosts[&key];
        let gate = |job: JobId| (self.shares.connection(job), key.bin);
        let is_narrow = host.politeness.delay_ms > 0 || self.gates.is_narrow(gate(job));
        let may = |job: JobId| {
            self.shares.has_room(job) && self.due_ms(key, job).is_some_and(|ms| ms <= now_ms)
        };
        let chosen = match is_narrow && host.lines.len() > 1 {
            true => host
                .lines
                .iter()
                .filter(|line| !line.waiting.is_empty() && may(line.job))
                .min_by_key(|line| (line.pass, line.job))
                .map_or(job, |line| line.job),
            false => job,
        };
        let (gate, stride) = (gate(chosen), self.shares.share(chosen).stride);
        self.turns += 1;
        let host = self.hosts.get_mut(&key).expect("it was there a moment ago");
        let (document, request) = host
            .take(chosen, stride, self.turns, now_ms)
            .expect("a line that is ready has a document");
        self.slots.take(request);
        self.shares.started(chosen);
        self.shares.release(chosen, 1);
        self.gates.started(gate, now_ms);
        self.settle(key);
        Next::Fetch(key, document)
    }

    /// When something can be started or claimed at the earliest.
    fn until(&self) -> Next<T> {
        let start = self.later.first().map(|(ms, _)| *ms);
        let firsts =
            self.hungry.values().flat_map(|lines| [lines.first(), lines.range(host::FED..).next()]);
        let claim = firsts.flatten().map(|((_, ms, _), _)| *ms - self.limits.ahead_ms).min();
        // With no room to claim, only an end can help.
        let claim = claim.filter(|_| self.claimed < self.limits.claimed_max);
        match start.into_iter().chain(claim).chain(self.next_slot()).min() {
            Some(ms) => Next::WaitUntil(ms),
            None => Next::Wait,
        }
    }

    /// Takes back what waits at a host, which will be left alone for a while.
    pub fn give_back(&mut self, key: HostKey) -> Vec<T> {
        self.drain(key, None, false)
    }

    /// The clock was set: what was to wait for some seconds waits for as many.
    pub fn shift(&mut self, jump_ms: i64) {
        self.now_ms = self.now_ms.saturating_add(jump_ms);
        self.gates.shift(jump_ms);
        self.slots.shift(jump_ms);
        let keys: Vec<HostKey> = self.hosts.keys().copied().collect();
        for key in keys {
            if let Some(host) = self.hosts.get_mut(&key) {
                host.shift(jump_ms);
            }
            self.settle(key);
        }
    }

    /// Documents have been committed, or given up: they are claimed no longer.
    pub fn committed(&mut self, documents: usize) {
        self.claimed -= documents;
    }

    /// Forgets what waits of a job in a part, or of all jobs. What is under way ends as
    /// usual. Returns what was waiting; it is claimed until it is given up.
    pub fn forget(&mut self, part: Part, job: Option<JobId>) -> Vec<T> {
        let keys: Vec<HostKey> = self.hosts.keys().copied().filter(|it| it.part == part).collect();
        keys.into_iter().flat_map(|key| self.drain(key, job, true)).collect()
    }

    /// Forgets a job, of which nothing waits any more.
    pub fn forget_job(&mut self, job: JobId) {
        if self.ready.get(&job).is_none_or(BTreeSet::is_empty) {
            self.shares.forget(job);
        }
    }

    /// When the first document that waits may be asked for.
    pub fn next_start(&self) -> Option<i64> {
        let start = self.later.first().map(|(ms, _)| *ms).filter(|_| self.may_start());
        start.into_iter().chain(self.next_slot()).min()
    }

    /// Whether a request is under way, or one that waits for its host alone begins by `until_ms`.
    pub fn is_busy(&self, until_ms: i64) -> bool {
        self.in_flight() > 0 || self.next_start().is_some_and(|start_ms| start_ms <= until_ms)
    }

    /// When the first host that has or may have work of a job may be asked; `None` if
    /// there is none.
    pub fn next_host(&self, job: JobId) -> Option<NextHost> {
        let has = |host: &FrontierHost<T>| {
            host.lines.iter().any(|line| {
                line.job == job
                    && (!line.waiting.is_empty() || !line.exhausted || line.requested > 0)
            })
        };
        let hosts = self.hosts.iter().filter(|(_, host)| has(host));
        let connection = self.shares.connection(job);
        let next = hosts.map(|(key, host)| {
            let next_ms = host.politeness.next_ms;
            let gate_ms = self.gates.due_ms((connection, key.bin)).unwrap_or(i64::MIN);
            NextHost { next_ms, due_ms: next_ms.max(gate_ms), host: *key }
        });
        next.min_by_key(|it| (it.next_ms, it.due_ms, it.host))
    }

    /// Documents claimed and not committed.
    pub fn claimed_count(&self) -> usize {
        self.claimed
    }

    /// Requests under way, slow or not.
    pub fn in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// Requests under way that are not slow.
    pub fn in_slots(&self) -> usize {
        self.slots.taken(self.now_ms)
    }

    /// Requests under way to hosts of a part.
    pub fn in_flight_in(&self, part: Part) -> usize {
        self.hosts.iter().filter(|(key, _)| key.part == part).map(|(_, host)| host.in_flight).sum()
    }

    /// Whether no host is known: there is nothing to do until work is announced.
    pub fn is_idle(&self) -> bool {
        self.hosts.is_empty()
    }
}

#[cfg(test)]
mod tests;
