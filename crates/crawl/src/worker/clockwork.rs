//! What the worker does when the machine's clock is set.
//!
//! Stored times are wall time, and are judged anew. Waits that are under way in memory (delays
//! of hosts, paces of throttles, the time since a batch was begun) are moved along, so that
//! they last as long as they should. Invariant: no request comes sooner after another one
//! because a clock was set, and nothing waits for a time that the old clock meant.

use super::Worker;
use store::clock::Moment;

impl Worker {
    /// Looks whether the clock was set, and follows it. Returns the time.
    pub(super) fn follow_clock(&mut self, at: Moment) -> i64 {
        if let Some(jump_ms) = self.jumps.look(at) {
            self.on_clock_set(jump_ms);
        }
        at.wall_ms
    }

    fn on_clock_set(&mut self, jump_ms: i64) {
        let moved = |ms: i64| ms.saturating_add(jump_ms);
        self.frontier.shift(jump_ms);
        self.hosts.shift(jump_ms);
        for held in self.parts.values_mut().filter(|held| held.since_ms > 0) {
            held.since_ms = moved(held.since_ms);
        }
        for place in self.places.values_mut() {
            place.batch.first_ms = place.batch.first_ms.map(moved);
            place.gives_up_ms = place.gives_up_ms.filter(|ms| *ms == i64::MIN);
        }
        self.stop_since_ms = self.stop_since_ms.map(moved);
        self.known_since_ms = moved(self.known_since_ms);
        // Due times of documents are wall time: the next look finds what they mean now.
        self.looked_ms = i64::MIN;
        self.lags.look_now();
    }
}

/// When a request ended, by the clock of now: one that ended before the clock was set, which
/// was at `set_ms`, ended just now.
pub(super) fn ended_ms(told_ms: i64, set_ms: i64, now_ms: i64) -> i64 {
    if told_ms > now_ms || told_ms < set_ms { now_ms } else { told_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_by_the_old_clock_is_an_end_now() {
        let set_ms = 9_000;
        assert_eq!(ended_ms(9_000, set_ms, 40_000), 9_000, "what it said took long to read");
        assert_eq!(ended_ms(10_000 + 7_200_000, set_ms, 10_000), 10_000, "the clock went back");
        assert_eq!(ended_ms(10_000 - 7_200_000, set_ms, 10_000), 10_000, "it went forward");
    }
}
