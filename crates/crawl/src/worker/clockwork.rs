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
        if let Some(jump_ms) = self.schedule.follow(at) {
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
        self.control.shift(jump_ms);
        self.known_since_ms = moved(self.known_since_ms);
        self.lags.look_now();
    }
}
