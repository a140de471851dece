//! Which document of which bin comes next, and when: politeness and fairness in
//! memory, over the queue in the database.
//!
//! The frontier knows only bins that may have work and the few documents claimed
//! from them; how long the queue is does not matter to it. It does no I/O and has no
//! clock: the worker asks which bins want documents ([`Frontier::wants`]), claims
//! them, hands them over ([`Frontier::claimed`]), and takes them out one by one
//! ([`Frontier::next`]) as their bins allow.
//!
//! Invariants: requests to a bin never start closer than its delay, counted from the
//! end of the one before; a bin with a delay has one request at a time; bins take
//! turns, so the k-th document of every bin is equal; what is claimed never exceeds
//! the limit, so a crash repeats at most that much.

use std::collections::{BTreeSet, HashMap, VecDeque};
use store::ids::BinId;
use store::tables::queue::{Entry, Place};

/// A bin of a job in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BinKey {
    /// The job and the part.
    pub place: Place,
    /// The bin.
    pub bin: BinId,
}

/// What is at work at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests under way.
    pub in_flight_max: usize,
    /// Documents claimed, under way or waiting for their bins.
    pub claimed_max: usize,
    /// How far ahead documents are claimed for a bin with a delay.
    pub ahead_ms: i64,
}

/// How a bin wants to be treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Politeness {
    /// From the end of one request to the start of the next; 0 lets them overlap.
    pub delay_ms: i64,
    /// Not before this time.
    pub next_ms: i64,
}

/// A bin that could use documents, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// The bin.
    pub key: BinKey,
    /// How many.
    pub documents: usize,
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Ask for this document now.
    Fetch(BinKey, Entry),
    /// Nothing until this time, unless something ends before; then documents can be
    /// claimed or asked for. A time that has passed means: claim now.
    WaitUntil(i64),
    /// Nothing until something ends or is claimed.
    Wait,
}

struct Bin {
    politeness: Politeness,
    waiting: VecDeque<Entry>,
    in_flight: usize,
    /// The database had nothing more when it was last asked.
    exhausted: bool,
    /// Its place among bins that may go at the same time.
    turn: u64,
}

/// Bins with work, in the order they may be asked.
pub struct Frontier {
    limits: Limits,
    bins: HashMap<BinKey, Bin>,
    /// Bins with a document waiting whose time has not come, by time.
    later: BTreeSet<(i64, Order)>,
    /// Bins with a document waiting whose time has come, by turn: the one that was
    /// served longest ago first, so that a bin without delay starves nobody.
    ready: BTreeSet<(u64, Order)>,
    /// Bins that the database may have more for, by time.
    hungry: BTreeSet<(i64, Order)>,
    claimed: usize,
    in_flight: usize,
    turns: u64,
}

/// `BinKey` in an order, for sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order(i64, i64, i64);

fn order(key: BinKey) -> Order {
    Order(key.place.part.0, key.place.job.0, key.bin.0)
}

impl Frontier {
    /// A frontier that knows no bins.
    pub fn new(limits: Limits) -> Frontier {
        Frontier {
            limits,
            bins: HashMap::new(),
            later: BTreeSet::new(),
            ready: BTreeSet::new(),
            hungry: BTreeSet::new(),
            claimed: 0,
            in_flight: 0,
            turns: 0,
        }
    }

    /// A bin may have something ready. For a bin that is known, only that is new.
    pub fn has_work(&mut self, key: BinKey, politeness: Politeness) {
        self.turns += 1;
        let turn = self.turns;
        let bin = self.bins.entry(key).or_insert_with(|| Bin {
            politeness,
            waiting: VecDeque::new(),
            in_flight: 0,
            exhausted: false,
            turn,
        });
        bin.exhausted = false;
        self.settle(key);
    }

    /// Bins that could use documents now, soonest first, within the limit on what
    /// is claimed.
    pub fn wants(&self, now_ms: i64) -> Vec<Want> {
        let mut room = self.limits.claimed_max.saturating_sub(self.claimed);
        let soon = self.hungry.iter().take_while(|(ms, _)| *ms <= now_ms + self.limits.ahead_ms);
        let asking: Vec<BinKey> = soon.take(room).map(|(_, at)| key_of(*at)).collect();
        // Everybody gets a share before anybody gets all.
        let share = (room / asking.len().max(1)).max(1);
        let mut wants = Vec::with_capacity(asking.len());
        for key in asking {
            let bin = &self.bins[&key];
            let documents = (self.enough(bin) - bin.waiting.len()).min(share).min(room);
            room -= documents;
            wants.push(Want { key, documents });
        }
        wants
    }

    /// How many documents a bin should have waiting.
    fn enough(&self, bin: &Bin) -> usize {
        match bin.politeness.delay_ms {
            0 => self.limits.in_flight_max * 2,
            delay => usize::try_from(self.limits.ahead_ms / delay).unwrap_or(0) + 1,
        }
    }

    /// Documents were claimed for a bin; `exhausted` if there were fewer than wanted.
    pub fn claimed(&mut self, key: BinKey, entries: Vec<Entry>, exhausted: bool) {
        let Some(bin) = self.bins.get_mut(&key) else {
            debug_assert!(entries.is_empty(), "documents of a bin that nobody announced");
            return;
        };
        self.claimed += entries.len();
        bin.waiting.extend(entries);
        bin.exhausted = exhausted;
        self.settle(key);
    }

    /// What to do now.
    pub fn next(&mut self, now_ms: i64) -> Next {
        if self.in_flight >= self.limits.in_flight_max {
            return Next::Wait;
        }
        while let Some(&(due_ms, at)) = self.later.first() {
            if due_ms > now_ms {
                break;
            }
            self.later.pop_first();
            self.ready.insert((self.bins[&key_of(at)].turn, at));
        }
        let Some((_, at)) = self.ready.pop_first() else { return self.until() };
        let key = key_of(at);
        let bin = self.bins.get_mut(&key).expect("a bin that is due is known");
        let entry = bin.waiting.pop_front().expect("a bin that is due has a document");
        bin.in_flight += 1;
        self.in_flight += 1;
        self.turns += 1;
        let turn = self.turns;
        self.leave(key);
        if let Some(bin) = self.bins.get_mut(&key) {
            bin.turn = turn;
        }
        self.settle(key);
        Next::Fetch(key, entry)
    }

    /// When something can be started or claimed at the earliest.
    fn until(&self) -> Next {
        let start = self.later.first().map(|(ms, _)| *ms);
        let claim = self.hungry.first().map(|(ms, _)| *ms - self.limits.ahead_ms);
        // With no room to claim, only an end can help.
        let claim = claim.filter(|_| self.claimed < self.limits.claimed_max);
        match start.into_iter().chain(claim).min() {
            Some(ms) => Next::WaitUntil(ms),
            None => Next::Wait,
        }
    }

    /// A request has ended; the bin may be asked again after its delay, or after
    /// `not_before_ms` if that is later.
    pub fn finished(&mut self, key: BinKey, now_ms: i64, delay_ms: i64, not_before_ms: i64) {
        self.in_flight -= 1;
        self.claimed -= 1;
        let Some(bin) = self.bins.get_mut(&key) else { return };
        bin.in_flight -= 1;
        bin.politeness.delay_ms = delay_ms;
        let due_ms = if delay_ms == 0 { not_before_ms } else { now_ms + delay_ms };
        // With overlapping requests an earlier end must not shorten a longer wait.
        let next_ms = bin.politeness.next_ms.max(due_ms).max(not_before_ms);
        self.leave(key);
        if let Some(bin) = self.bins.get_mut(&key) {
            bin.politeness.next_ms = next_ms;
        }
        self.settle(key);
    }

    /// Takes a bin out of all orders, before what they go by changes.
    fn leave(&mut self, key: BinKey) {
        let Some(bin) = self.bins.get(&key) else { return };
        let (at, next_ms) = (order(key), bin.politeness.next_ms);
        self.later.remove(&(next_ms, at));
        self.hungry.remove(&(next_ms, at));
        self.ready.remove(&(bin.turn, at));
    }

    /// Puts a bin where its state says it belongs, or forgets it.
    fn settle(&mut self, key: BinKey) {
        self.leave(key);
        let Some(bin) = self.bins.get(&key) else { return };
        let (at, next_ms) = (order(key), bin.politeness.next_ms);
        let may_start = bin.in_flight == 0 || bin.politeness.delay_ms == 0;
        if !bin.waiting.is_empty() && may_start {
            self.later.insert((next_ms, at));
        }
        if !bin.exhausted && bin.waiting.len() < self.enough(bin) {
            self.hungry.insert((next_ms, at));
        }
        if bin.waiting.is_empty() && bin.in_flight == 0 && bin.exhausted {
            self.bins.remove(&key);
        }
    }

    /// Documents claimed and not finished.
    pub fn claimed_count(&self) -> usize {
        self.claimed
    }

    /// Whether no bin is known: there is nothing to do until work is announced.
    pub fn is_idle(&self) -> bool {
        self.bins.is_empty()
    }
}

fn key_of(Order(part, job, bin): Order) -> BinKey {
    let place = Place { part: store::ids::Part(part), job: store::ids::JobId(job) };
    BinKey { place, bin: BinId(bin) }
}

#[cfg(test)]
mod tests;
