//! The clocks. Times are milliseconds since 1970 and come in as arguments everywhere else, so
//! that a test can say what time it is.
//!
//! The wall clock can be set back and forth; the steady one only goes forward, also while the
//! machine is suspended, and counts from an arbitrary moment. What is stored is wall time;
//! durations that must not be shortened by a clock that was set are measured by both
//! ([`Jumps`]).

use rustix::time::{ClockId, clock_gettime};

/// A difference between the two clocks that is taken for a jump of the wall clock. Below it,
/// it may be the time between looking at one and at the other.
const JUMP_MS_MIN: i64 = 50;
/// Looks at both clocks that are tried to be close together.
const LOOKS_MAX: usize = 5;

/// Wall time in milliseconds since 1970, UTC.
#[allow(clippy::disallowed_methods, reason = "this is the one clock that the lint points to")]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the machine's clock is after 1970");
    i64::try_from(since.as_millis()).expect("milliseconds fit 63 bits for 292 million years")
}

/// Milliseconds of a clock that nobody can set and that goes on while the machine sleeps.
pub fn steady_ms() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Moment {
    pub wall_ms: i64,
    pub steady_ms: i64,
}

impl Moment {
    /// Reads both clocks.
    pub fn now() -> Moment {
        let mut looks = 0;
        loop {
            let moment = Moment { steady_ms: steady_ms(), wall_ms: now_ms() };
            looks += 1;
            if steady_ms() - moment.steady_ms < JUMP_MS_MIN / 2 || looks == LOOKS_MAX {
                return moment;
            }
        }
    }
}

/// Notices when the wall clock is set.
#[derive(Debug, Clone, Copy)]
pub struct Jumps {
    last: Moment,
}

impl Jumps {
    /// From a moment on.
    pub fn since(moment: Moment) -> Jumps {
        Jumps { last: moment }
    }

    /// Since when, by the wall clock of now, it has not been set.
    pub fn since_ms(&self) -> i64 {
        self.last.wall_ms
    }

    /// By how much the wall clock was set since the last jump, if it was.
    pub fn look(&mut self, at: Moment) -> Option<i64> {
        let passed_ms = at.steady_ms - self.last.steady_ms;
        let jump_ms = at.wall_ms - self.last.wall_ms - passed_ms;
        if jump_ms.abs() < JUMP_MS_MIN {
            return None;
        }
        self.last = at;
        Some(jump_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn at(wall_ms: i64, steady_ms: i64) -> Moment {
        Moment { wall_ms, steady_ms }
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_once_and_a_machine_that_slept_is_no_jump() {
        let mut jumps = Jumps::since(at(1_000_000, 0));
        assert_eq!(jumps.look(at(1_005_000, 5_000)), None);
        assert_eq!(jumps.look(at(1_005_000 + 8 * HOUR_MS, 5_000 + 8 * HOUR_MS)), None, "it slept");
        assert_eq!(
            jumps.look(at(1_005_000 + 6 * HOUR_MS, 5_000 + 8 * HOUR_MS)),
            Some(-2 * HOUR_MS)
        );
        assert_eq!(jumps.look(at(1_006_000 + 6 * HOUR_MS, 6_000 + 8 * HOUR_MS)), None);
        assert_eq!(jumps.look(at(1_006_100 + 6 * HOUR_MS, 6_000 + 8 * HOUR_MS)), Some(100));
    }

    #[test]
    fn the_steady_clock_goes_forward_and_both_agree_on_what_passes() {
        let first = Moment::now();
        let mut jumps = Jumps::since(first);
        let second = Moment::now();
        assert!(second.steady_ms >= first.steady_ms);
        assert_eq!(jumps.look(second), None);
    }
}
