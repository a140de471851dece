//! What the worker does when the machine's clock is set.
//!
//! Stored times are wall time, and are judged anew. Waits that are under way in memory (delays
//! of hosts, paces of throttles, the time since a batch was begun) are moved along, so that
//! they last as long as they should. Invariant: no request comes sooner after another one
//! because a clock was set, and nothing waits for a time that the old clock meant.

use crate::worker::Worker;
use store::clock::Moment;

impl Worker {
    /// Looks whether the clock was set, and follows it. Returns the time.
    pub(super) fn follow_clock(&mut self, at: Moment) -> i64 {
        if let Some(jump_ms) = self.schedule.follow(at) {
            self.frontier.shift(jump_ms);
            self.hosts.shift(jump_ms);
            self.parts.shift(jump_ms);
            self.places.shift(jump_ms);
            self.control.shift(jump_ms);
            self.links.shift(jump_ms);
        }
        at.wall_ms
    }
}
