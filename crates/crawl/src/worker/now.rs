//! The worker's clock: the time of day when it started, and a clock that only goes
//! forward since. A machine whose time is set back or forth neither rushes a host nor
//! leaves it alone for an hour.

use std::time::{Duration, Instant};
use store::clock;

/// Tells the time in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    started_ms: i64,
    since: Instant,
}

impl Now {
    /// A clock that starts now.
    pub fn start() -> Now {
        Now { started_ms: clock::now_ms(), since: Instant::now() }
    }

    /// The time.
    pub fn ms(self) -> i64 {
        let passed = i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.started_ms.saturating_add(passed)
    }

    /// How long it is until a time.
    pub fn until(self, ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(ms.saturating_sub(self.ms())).unwrap_or(0))
    }
}
