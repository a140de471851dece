//! How fast and how wide a bin may be asked for the documents of one connection.
//!
//! A gate belongs to a connection and a bin, whatever parts and jobs the documents are
//! of. Invariants: starts at a gate are spaced by its interval, also when its host has
//! been forgotten in between; never more are under way than it allows. Times are in
//! microseconds here, so that a fast rate is not rounded to whole milliseconds.

use super::HostKey;
use std::collections::{BTreeSet, HashMap};
use store::ids::{BinId, ConnectionId, JobId};

/// Gates above which those that hold nothing back are forgotten.
const GATES_MAX: usize = 20_000;
const US: i64 = 1_000;

/// What a bin is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// From one start to the next; 0 is as fast as can be.
    pub interval_us: i64,
    /// Requests at once; `None` is not limited.
    pub requests_max: Option<usize>,
    /// Of a bin that has had no pace, nothing starts before then: something has started
    /// before, or may have.
    pub not_before_ms: i64,
}

impl Pace {
    /// Whether it holds anything back.
    pub fn is_free(self) -> bool {
        self.interval_us == 0 && self.requests_max.is_none()
    }
}

#[derive(Default)]
pub(super) struct ThrottleGate {
    pace: Pace,
    next_us: i64,
    in_flight: usize,
    /// What waits for a place.
    parked: BTreeSet<(HostKey, JobId)>,
}

impl ThrottleGate {
    fn is_full(&self) -> bool {
        self.pace.requests_max.is_some_and(|most| self.in_flight >= most)
    }
}

/// All gates. A bin without one is free.
#[derive(Default)]
pub(super) struct Gates {
    gates: HashMap<(ConnectionId, BinId), ThrottleGate>,
}

type Key = (ConnectionId, BinId);

impl Gates {
    /// Gives a bin a pace; so many requests to it are under way.
    pub fn set(&mut self, key: Key, pace: Pace, in_flight: usize, now_ms: i64) {
        if pace.is_free() && !self.gates.contains_key(&key) {
            return;
        }
        if self.gates.len() >= GATES_MAX {
            self.gates.retain(|_, gate| {
                let is_used = gate.in_flight > 0 || !gate.parked.is_empty();
                is_used || gate.next_us > now_ms * US
            });
        }
        let next_us = pace.not_before_ms.saturating_mul(US);
        let gate = self.gates.entry(key).or_insert(ThrottleGate {
            in_flight,
            next_us,
            ..ThrottleGate::default()
        });
        // A shorter interval counts at once, not after the longer one.
        let wait_us = (gate.next_us - now_ms * US).min(pace.interval_us);
        if gate.pace.interval_us > pace.interval_us {
            gate.next_us = now_ms * US + wait_us.max(0);
        }
        gate.pace = pace;
        if pace.is_free() && gate.in_flight == 0 {
            self.gates.remove(&key);
        }
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        for gate in self.gates.values_mut() {
            gate.next_us = gate.next_us.saturating_add(jump_ms.saturating_mul(US));
        }
    }

    /// From one start to the next, in whole milliseconds.
    pub fn interval_ms(&self, key: Key) -> i64 {
        self.gates.get(&key).map_or(0, |gate| gate.pace.interval_us / US)
    }

    /// Whether starts at a bin are few, so that those who want them take turns.
    pub fn is_narrow(&self, key: Key) -> bool {
        self.gates.get(&key).is_some_and(|gate| !gate.pace.is_free())
    }

    /// When the next start may be; `None` if something must end before.
    pub fn due_ms(&self, key: Key) -> Option<i64> {
        match self.gates.get(&key) {
            None => Some(i64::MIN),
            Some(gate) if gate.is_full() => None,
            // A fraction early, and later on the average, which is what a rate is about.
            Some(gate) => Some(gate.next_us.div_euclid(US)),
        }
    }

    /// Something waits until a gate has a place again.
    pub fn park(&mut self, key: Key, host: HostKey, job: JobId) {
        if let Some(gate) = self.gates.get_mut(&key) {
            gate.parked.insert((host, job));
        }
    }

    pub fn started(&mut self, key: Key, now_ms: i64) {
        if let Some(gate) = self.gates.get_mut(&key) {
            gate.in_flight += 1;
            if gate.pace.interval_us > 0 {
                gate.next_us = gate.next_us.max(now_ms * US) + gate.pace.interval_us;
            }
        }
    }

    /// What has started was no document after all: the next one need not wait for it.
    pub fn take_back(&mut self, key: Key) {
        if let Some(gate) = self.gates.get_mut(&key) {
            gate.next_us -= gate.pace.interval_us;
        }
    }

    /// Something has ended. Returns what waited for that.
    pub fn ended(&mut self, key: Key) -> Vec<(HostKey, JobId)> {
        let Some(gate) = self.gates.get_mut(&key) else { return Vec::new() };
        gate.in_flight = gate.in_flight.saturating_sub(1);
        self.unpark(key)
    }

    /// What waits for a place at a gate, which is to be looked at again.
    pub fn unpark(&mut self, key: Key) -> Vec<(HostKey, JobId)> {
        let parked = self.gates.get_mut(&key).map(|gate| std::mem::take(&mut gate.parked));
        parked.unwrap_or_default().into_iter().collect()
    }
}
