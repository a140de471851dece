//! Which document of which host comes next, and when: politeness and fairness in
//! memory, over the queue in the database.
//!
//! The frontier knows only hosts that may have work and the few documents claimed
//! from them; how long the queue is does not matter to it. It does no I/O and has no
//! clock: the worker asks which hosts want documents ([`Frontier::wants`]), claims
//! them, hands them over ([`Frontier::claimed`]), and takes them out one by one
//! ([`Frontier::next`]) as their hosts allow. What a document is, is the worker's
//! business. Jobs that visit the same host share its clock and take turns.
//!
//! Invariants: requests to a host never start closer than its delay, counted from the
//! end of the one before; a host with a delay has one request at a time; hosts take
//! turns, so the k-th document of every host is equal; what is claimed and not yet
//! committed never exceeds the limit, so a crash repeats at most that much.

use std::collections::{BTreeSet, HashMap, VecDeque};
use store::ids::{BinId, JobId, Part};

/// A bin in its part: what politeness counts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct HostKey {
    pub part: Part,
    pub bin: BinId,
}

/// What is at work at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests under way.
    pub in_flight_max: usize,
    /// Documents claimed and not yet committed.
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

/// A host that could use documents of a job, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Want {
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

/// What one job has at a host.
struct Line<T> {
    job: JobId,
    waiting: VecDeque<T>,
    /// The database had nothing more when it was last asked.
    exhausted: bool,
    /// It is being asked.
    asked: bool,
}

struct Host<T> {
    politeness: Politeness,
    lines: Vec<Line<T>>,
    in_flight: usize,
    /// Nothing may start until something else was asked: robots.txt.
    held: bool,
    /// Its place among hosts that may go at the same time.
    turn: u64,
    /// The key it stands under in `later` or `ready`, and in `hungry`.
    due_at: Option<i64>,
    ready_at: Option<u64>,
    hungry_at: Option<(i64, usize)>,
}

impl<T> Host<T> {
    fn is_waiting(&self) -> bool {
        self.lines.iter().any(|line| !line.waiting.is_empty())
    }
}

/// Hosts with work, in the order they may be asked.
pub struct Frontier<T> {
    limits: Limits,
    hosts: HashMap<HostKey, Host<T>>,
    /// Hosts with a document waiting whose time has not come, by time.
    later: BTreeSet<(i64, HostKey)>,
    /// Hosts with a document waiting whose time has come, by turn: the one that was
    /// served longest ago first, so that a host without delay starves nobody.
    ready: BTreeSet<(u64, HostKey)>,
    /// Hosts that the database may have more for, by time, and those with the fewest
    /// documents waiting first.
    hungry: BTreeSet<((i64, usize), HostKey)>,
    claimed: usize,
    in_flight: usize,
    turns: u64,
}

impl<T> Frontier<T> {
    /// A frontier that knows no hosts.
    pub fn new(limits: Limits) -> Frontier<T> {
        Frontier {
            limits,
            hosts: HashMap::new(),
            later: BTreeSet::new(),
            ready: BTreeSet::new(),
            hungry: BTreeSet::new(),
            claimed: 0,
            in_flight: 0,
            turns: 0,
        }
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
    pub fn has_work(&mut self, host: HostKey, job: JobId, politeness: Politeness) {
        self.turns += 1;
        let turn = self.turns;
        let known = self.hosts.entry(host).or_insert_with(|| Host {
            politeness,
            lines: Vec::new(),
            in_flight: 0,
            held: false,
            turn,
            due_at: None,
            ready_at: None,
            hungry_at: None,
        });
        known.politeness.delay_ms = known.politeness.delay_ms.max(politeness.delay_ms);
        match known.lines.iter_mut().find(|line| line.job == job) {
            Some(line) => line.exhausted = false,
            None => {
                let (waiting, exhausted, asked) = (VecDeque::new(), false, false);
                known.lines.push(Line { job, waiting, exhausted, asked });
            }
        }
        self.settle(host);
    }

    /// Hosts of the given parts that could use documents now, soonest first; only
    /// those that are running out, unless everybody may fill up. What is wanted
    /// counts as claimed until [`Frontier::claimed`] tells what came.
    pub fn wants(&mut self, now_ms: i64, fill: bool, of: impl Fn(Part) -> bool) -> Vec<Want> {
        let mut room = self.limits.claimed_max.saturating_sub(self.claimed);
        let asking: Vec<HostKey> = self
            .hungry
            .iter()
            .take_while(|((ms, _), _)| *ms <= now_ms + self.limits.ahead_ms)
            .map(|(_, host)| *host)
            .filter(|host| of(host.part) && (fill || self.is_running_out(&self.hosts[host])))
            .take(room)
            .collect();
        // Everybody gets a share before anybody gets all.
        let share = (room / asking.len().max(1)).max(1);
        let mut wants = Vec::with_capacity(asking.len());
        for key in asking {
            let enough = self.enough(&self.hosts[&key]);
            let host = self.hosts.get_mut(&key).expect("a hungry host is known");
            let mut left = share.min(room);
            for line in host.lines.iter_mut().filter(|line| !line.exhausted && !line.asked) {
                let documents = enough.saturating_sub(line.waiting.len()).min(left);
                if documents > 0 {
                    line.asked = true;
                    left -= documents;
                    room -= documents;
                    self.claimed += documents;
                    wants.push(Want { host: key, job: line.job, documents });
                }
            }
            self.settle(key);
        }
        wants
    }

    /// Whether a host will soon have nothing waiting.
    fn is_running_out(&self, host: &Host<T>) -> bool {
        let waiting: usize = host.lines.iter().map(|line| line.waiting.len()).sum();
        waiting * 4 < self.enough(host)
    }

    /// How many documents a line should have waiting.
    fn enough(&self, host: &Host<T>) -> usize {
        match host.politeness.delay_ms {
            0 => (self.limits.claimed_max / 2).max(1),
            delay => usize::try_from(self.limits.ahead_ms / delay).unwrap_or(0) + 1,
        }
    }

    /// Documents were claimed as wanted; `exhausted` if there are no more.
    pub fn claimed(&mut self, want: Want, documents: Vec<T>, exhausted: bool) {
        self.claimed -= want.documents.saturating_sub(documents.len());
        let Some(host) = self.hosts.get_mut(&want.host) else {
            debug_assert!(documents.is_empty(), "documents of a host that nobody announced");
            return;
        };
        if let Some(line) = host.lines.iter_mut().find(|line| line.job == want.job) {
            line.waiting.extend(documents);
            line.exhausted = exhausted;
            line.asked = false;
        }
        self.settle(want.host);
    }

    /// What to do now.
    pub fn next(&mut self, now_ms: i64) -> Next<T> {
        if self.in_flight >= self.limits.in_flight_max {
            return Next::Wait;
        }
        while let Some(&(due_ms, key)) = self.later.first() {
            if due_ms > now_ms {
                break;
            }
            self.later.pop_first();
            let host = self.hosts.get_mut(&key).expect("a host that is due is known");
            host.due_at = None;
            host.ready_at = Some(host.turn);
            self.ready.insert((host.turn, key));
        }
        let Some((_, key)) = self.ready.pop_first() else { return self.until() };
        self.turns += 1;
        let host = self.hosts.get_mut(&key).expect("a host that is ready is known");
        host.ready_at = None;
        host.turn = self.turns;
        let line = host
            .lines
            .iter_mut()
            .find(|line| !line.waiting.is_empty())
            .expect("a host that is ready has a document");
        let document = line.waiting.pop_front().expect("the line was found for having one");
        // The next job's turn.
        host.lines.rotate_left(1);
        host.in_flight += 1;
        self.in_flight += 1;
        self.settle(key);
        Next::Fetch(key, document)
    }

    /// When something can be started or claimed at the earliest.
    fn until(&self) -> Next<T> {
        let start = self.later.first().map(|(ms, _)| *ms);
        let claim = self.hungry.first().map(|((ms, _), _)| *ms - self.limits.ahead_ms);
        // With no room to claim, only an end can help.
        let claim = claim.filter(|_| self.claimed < self.limits.claimed_max);
        match start.into_iter().chain(claim).min() {
            Some(ms) => Next::WaitUntil(ms),
            None => Next::Wait,
        }
    }

    /// The document just taken cannot be asked for before something else is: it goes
    /// back, and nothing of the host starts until [`Frontier::finished`]. The request
    /// that comes first takes the document's place among those under way.
    pub fn hold(&mut self, host: HostKey, job: JobId, document: T) {
        if let Some(held) = self.hosts.get_mut(&host) {
            held.held = true;
            if let Some(line) = held.lines.iter_mut().find(|line| line.job == job) {
                line.waiting.push_front(document);
            }
        }
        self.settle(host);
    }

    /// A request has ended; the host may be asked again after its delay, or after
    /// `not_before_ms` if that is later. Its document stays claimed until
    /// [`Frontier::committed`].
    pub fn finished(&mut self, key: HostKey, now_ms: i64, delay_ms: i64, not_before_ms: i64) {
        self.in_flight -= 1;
        let Some(host) = self.hosts.get_mut(&key) else { return };
        host.in_flight -= 1;
        host.held = false;
        host.politeness.delay_ms = delay_ms;
        let due_ms = if delay_ms == 0 { not_before_ms } else { now_ms + delay_ms };
        // With overlapping requests an earlier end must not shorten a longer wait.
        host.politeness.next_ms = host.politeness.next_ms.max(due_ms).max(not_before_ms);
        self.settle(key);
    }

    /// Takes back what waits at a host, which will be left alone for a while.
    pub fn give_back(&mut self, key: HostKey) -> Vec<T> {
        let Some(host) = self.hosts.get_mut(&key) else { return Vec::new() };
        let waiting = host.lines.iter_mut().flat_map(|line| line.waiting.drain(..)).collect();
        self.settle(key);
        waiting
    }

    /// A document that needed no request: its host is as free as before.
    pub fn skipped(&mut self, key: HostKey) {
        self.in_flight -= 1;
        if let Some(host) = self.hosts.get_mut(&key) {
            host.in_flight -= 1;
        }
        self.settle(key);
    }

    /// Documents have been committed, or given up: they are claimed no longer.
    pub fn committed(&mut self, documents: usize) {
        self.claimed -= documents;
    }

    /// Forgets what waits of a job in a part, or of all jobs. What is under way ends as
    /// usual. Returns what was waiting; it is claimed until it is given up.
    pub fn forget(&mut self, part: Part, job: Option<JobId>) -> Vec<T> {
        let keys: Vec<HostKey> = self.hosts.keys().copied().filter(|it| it.part == part).collect();
        let mut dropped = Vec::new();
        for key in keys {
            let host = self.hosts.get_mut(&key).expect("its key was just listed");
            for line in host.lines.iter_mut().filter(|line| job.is_none_or(|job| line.job == job)) {
                dropped.extend(line.waiting.drain(..));
                line.exhausted = true;
            }
            self.settle(key);
        }
        dropped
    }

    /// Puts a host where its state says it belongs, or forgets it.
    fn settle(&mut self, key: HostKey) {
        let Some(host) = self.hosts.get_mut(&key) else { return };
        let next_ms = host.politeness.next_ms;
        let may_start = !host.held && (host.in_flight == 0 || host.politeness.delay_ms == 0);
        let starts = host.is_waiting() && may_start;
        // A host that is ready stays so: its turn has come.
        let due_at = (starts && host.ready_at.is_none()).then_some(next_ms);
        if let Some(turn) = host.ready_at.filter(|_| !starts) {
            self.ready.remove(&(turn, key));
            host.ready_at = None;
        }
        if host.due_at != due_at {
            if let Some(ms) = host.due_at {
                self.later.remove(&(ms, key));
            }
            if let Some(ms) = due_at {
                self.later.insert((ms, key));
            }
            host.due_at = due_at;
        }
        let asked = host.lines.iter().any(|line| line.asked);
        let exhausted = host.lines.iter().all(|line| line.exhausted);
        let is_over = exhausted && !asked && !host.is_waiting() && host.in_flight == 0;
        let enough = self.enough(&self.hosts[&key]);
        let host = self.hosts.get_mut(&key).expect("it was there a moment ago");
        let hungry = host
            .lines
            .iter()
            .any(|line| !line.exhausted && !line.asked && line.waiting.len() < enough);
        let waiting = host.lines.iter().map(|line| line.waiting.len()).sum();
        let hungry_at = hungry.then_some((next_ms, waiting));
        if host.hungry_at != hungry_at {
            if let Some(at) = host.hungry_at {
                self.hungry.remove(&(at, key));
            }
            if let Some(at) = hungry_at {
                self.hungry.insert((at, key));
            }
            host.hungry_at = hungry_at;
        }
        if is_over {
            self.hosts.remove(&key);
        }
    }

    /// When the first document that waits may be asked for.
    pub fn next_start(&self) -> Option<i64> {
        self.later.first().map(|(ms, _)| *ms).filter(|_| self.in_flight < self.limits.in_flight_max)
    }

    /// When the first host that has or may have work of a job may be asked; `None` if
    /// there is none.
    pub fn next_host(&self, job: JobId) -> Option<(i64, HostKey)> {
        let has = |host: &Host<T>| {
            host.lines.iter().any(|line| {
                line.job == job && (!line.waiting.is_empty() || !line.exhausted || line.asked)
            })
        };
        let hosts = self.hosts.iter().filter(|(_, host)| has(host));
        hosts.map(|(key, host)| (host.politeness.next_ms, *key)).min()
    }

    /// Documents claimed and not committed.
    pub fn claimed_count(&self) -> usize {
        self.claimed
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight
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
