//! The time of day as the worker and its threads see it: the wall clock.
//!
//! A schedule, a lease or a due time that is written here means the same to every other
//! process, also after this machine has slept or its clock was set. What must not be rushed
//! by a clock that is set (delays of hosts) the worker moves along with it (`clockwork`).

use std::time::Duration;
use store::clock;

/// Tells the time in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now;

impl Now {
    /// The time.
    pub fn ms(self) -> i64 {
        clock::now_ms()
    }

    /// How long it is until a time.
    pub fn until(self, ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(ms.saturating_sub(self.ms())).unwrap_or(0))
    }
}
