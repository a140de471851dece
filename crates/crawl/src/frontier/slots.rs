//! Slots: how many requests may be under way at once.
//!
//! A request that has been under way for long gives its slot up: it needs a connection and a
//! claim, and hardly anything else. A part of the slots is kept for hosts that have answered
//! promptly, so that many new hosts that do not answer keep nobody waiting who does. Pure
//! bookkeeping of the frontier.
//!
//! Invariants: when a request starts, at most `in_flight_max` others have a slot, and never more
//! than `in_flight_max` and `slow_max` are under way together.

use std::collections::BTreeMap;

/// A request that takes longer is slow: most pages of the web are here by then.
pub(super) const SLOW_MS: i64 = 1_000;
/// The same of a host that has not answered promptly before: it may never answer.
const UNTRIED_SLOW_MS: i64 = 500;
/// One slot in so many is for hosts that have answered promptly.
const PROMPT_SHARE: usize = 4;

/// A request under way, as far as slots are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenRequest {
    pub begun_ms: i64,
    /// Whether its host had answered promptly before.
    pub is_prompt: bool,
}

/// Requests under way, by when they began.
struct Begun {
    /// They are slow when they have taken so long.
    slow_ms: i64,
    count: usize,
    at: BTreeMap<i64, usize>,
}

impl Begun {
    fn new(slow_ms: i64) -> Begun {
        Begun { slow_ms, count: 0, at: BTreeMap::new() }
    }

    fn add(&mut self, begun_ms: i64) {
        self.count += 1;
        *self.at.entry(begun_ms).or_default() += 1;
    }

    fn remove(&mut self, begun_ms: i64) {
        if let Some(count) = self.at.get_mut(&begun_ms) {
            self.count -= 1;
            *count -= 1;
            if *count == 0 {
                self.at.remove(&begun_ms);
            }
        }
    }

    fn slow(&self, now_ms: i64) -> usize {
        self.at.range(..=now_ms - self.slow_ms).map(|(_, count)| count).sum()
    }

    /// When the next one becomes slow.
    fn next_slow_ms(&self, now_ms: i64) -> Option<i64> {
        let next = self.at.range(now_ms - self.slow_ms + 1..).next();
        next.map(|(begun_ms, _)| begun_ms + self.slow_ms)
    }

    fn shift(&mut self, jump_ms: i64) {
        let at = std::mem::take(&mut self.at);
        self.at = at.into_iter().map(|(ms, count)| (ms.saturating_add(jump_ms), count)).collect();
    }
}

/// All requests under way.
pub(super) struct Slots {
    in_flight_max: usize,
    slow_max: usize,
    prompt: Begun,
    untried: Begun,
}

impl Slots {
    pub fn new(in_flight_max: usize, slow_max: usize) -> Slots {
        let (prompt, untried) = (Begun::new(SLOW_MS), Begun::new(UNTRIED_SLOW_MS));
        Slots { in_flight_max, slow_max, prompt, untried }
    }

    pub fn in_flight(&self) -> usize {
        self.prompt.count + self.untried.count
    }

    /// Requests that have a slot.
    pub fn taken(&self, now_ms: i64) -> usize {
        let slow = self.prompt.slow(now_ms) + self.untried.slow(now_ms);
        self.in_flight() - slow.min(self.slow_max)
    }

    /// Whether a host that has answered promptly may be asked.
    pub fn is_free(&self, now_ms: i64) -> bool {
        self.taken(now_ms) < self.in_flight_max
    }

    /// How many hosts may be asked of which nobody knows whether they answer.
    pub fn free_untried(&self, now_ms: i64) -> usize {
        let slow = self.untried.slow(now_ms).min(self.slow_max);
        let most = self.in_flight_max - self.in_flight_max / PROMPT_SHARE;
        let free = self.in_flight_max.saturating_sub(self.taken(now_ms));
        most.saturating_sub(self.untried.count - slow).min(free)
    }

    /// When the next request gives its slot up, unless one ends before.
    pub fn next_free_ms(&self, now_ms: i64) -> Option<i64> {
        let slow = self.prompt.slow(now_ms) + self.untried.slow(now_ms);
        let next = [self.prompt.next_slow_ms(now_ms), self.untried.next_slow_ms(now_ms)];
        next.into_iter().flatten().min().filter(|_| slow < self.slow_max)
    }

    pub fn take(&mut self, request: OpenRequest) {
        self.begun(request.is_prompt).add(request.begun_ms);
    }

    pub fn release(&mut self, request: OpenRequest) {
        self.begun(request.is_prompt).remove(request.begun_ms);
    }

    fn begun(&mut self, is_prompt: bool) -> &mut Begun {
        if is_prompt { &mut self.prompt } else { &mut self.untried }
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        self.prompt.shift(jump_ms);
        self.untried.shift(jump_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begun_ms: i64, is_prompt: bool) -> OpenRequest {
        OpenRequest { begun_ms, is_prompt }
    }

    #[test]
    fn a_slow_request_gives_its_slot_up_until_too_many_are_slow() {
        let mut slots = Slots::new(2, 1);
        slots.take(at(10, true));
        slots.take(at(20, true));
        assert!(!slots.is_free(1_009));
        assert_eq!(slots.next_free_ms(1_009), Some(1_010));
        assert!(slots.is_free(1_010));
        slots.take(at(1_010, true));
        assert_eq!((slots.is_free(9_000), slots.next_free_ms(9_000)), (false, None));
        slots.release(at(10, true));
        assert!(slots.is_free(9_000));
        slots.shift(60_000);
        assert_eq!((slots.taken(61_020), slots.in_flight()), (1, 2));
    }

    #[test]
    fn hosts_that_never_answered_leave_slots_for_those_that_did() {
        let mut slots = Slots::new(8, 2);
        for _ in 0..6 {
            assert!(slots.free_untried(0) > 0);
            slots.take(at(0, false));
        }
        assert_eq!((slots.free_untried(0), slots.is_free(0)), (0, true));
        assert_eq!(slots.free_untried(UNTRIED_SLOW_MS), 2, "two are slow, and more must not be");
        slots.take(at(0, true));
        slots.take(at(0, true));
        assert_eq!((slots.free_untried(0), slots.is_free(0)), (0, false), "all are taken");
    }
}
