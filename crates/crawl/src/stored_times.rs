//! Judges times that come from storage, for the case that the clock was wrong when they were
//! written, or is now.
//!
//! A time that lies ahead was written as "now plus a wait". Whatever the clock said then, the
//! wait is known: no time is believed that lies further ahead than its wait from now. The
//! price is at most one wait too many, never hours of standing still. Pure. Times that have
//! passed are as good as any.

use crate::fetch::backoff;
use store::patience::Patience;

/// When a host may be asked again after a request, by its delay.
pub fn next_request_ms(stored_ms: i64, delay_ms: i64, now_ms: i64) -> i64 {
    stored_ms.min(now_ms.saturating_add(delay_ms))
}

/// Until when a host in trouble is left alone: nobody is for longer than a day.
pub fn blocked_until_ms(stored_ms: i64, now_ms: i64) -> i64 {
    let most_ms = i64::try_from(backoff::WAIT_MS_MAX).unwrap_or(i64::MAX);
    stored_ms.min(now_ms.saturating_add(most_ms))
}

/// A document may wait for its origin's robots.txt, whatever its job's own waits are.
const RETRY_MS_MIN: i64 = 3_600_000;

/// When a document that failed is tried again, at the latest. What its host has asked for
/// beyond that is kept by the host.
pub fn retry_max_ms(patience: Patience, now_ms: i64) -> i64 {
    now_ms.saturating_add(patience.wait_max_ms().max(RETRY_MS_MIN))
}

/// From when on a schedule counts its instants: one that was looked at in the future is
/// looked at from now on.
pub fn looked_at_ms(stored_ms: i64, now_ms: i64) -> i64 {
    stored_ms.min(now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const NOW_MS: i64 = 1_700_000_000_000;

    #[test]
    fn a_time_written_by_a_clock_that_was_two_hours_ahead_costs_one_wait() {
        let stored_ms = NOW_MS + 2 * HOUR_MS;
        assert_eq!(next_request_ms(stored_ms, 1_000, NOW_MS), NOW_MS + 1_000);
        assert_eq!(looked_at_ms(stored_ms, NOW_MS), NOW_MS);
        let patience = Patience { retries: 3, retry_ms: 60_000, most_ms: HOUR_MS };
        assert_eq!(retry_max_ms(patience, NOW_MS), NOW_MS + HOUR_MS);
        let slow = Patience { retry_ms: HOUR_MS * 3 / 2, ..patience };
        assert_eq!(retry_max_ms(slow, NOW_MS), NOW_MS + HOUR_MS * 3 / 2);
        let day_ms = 24 * HOUR_MS;
        assert_eq!(blocked_until_ms(NOW_MS + 9 * day_ms, NOW_MS), NOW_MS + day_ms);
    }

    #[test]
    fn a_time_that_can_be_right_is_left_as_it_is() {
        assert_eq!(next_request_ms(NOW_MS + 400, 1_000, NOW_MS), NOW_MS + 400);
        assert_eq!(next_request_ms(NOW_MS - HOUR_MS, 1_000, NOW_MS), NOW_MS - HOUR_MS);
        assert_eq!(blocked_until_ms(NOW_MS + HOUR_MS, NOW_MS), NOW_MS + HOUR_MS);
        assert_eq!(looked_at_ms(NOW_MS - 1, NOW_MS), NOW_MS - 1);
    }
}
