//! How long to leave a host alone.
//!
//! Pure arithmetic on what the caller remembers. Invariant: a wait is never shorter
//! than what the server asked for, up to a day, and never longer than a day.

use jiff::fmt::rfc2822::DateTimeParser;

const MINUTE_MS: u64 = 60 * 1_000;
/// No server can send us away for longer, and no host rests longer.
pub const WAIT_MS_MAX: u64 = 24 * 60 * MINUTE_MS;
/// The first rest after a failure.
pub const WAIT_MS_MIN: u64 = MINUTE_MS;

/// The wait after the given number of failures in a row: one minute, doubled with
/// each further failure, up to a day. `asked_ms` is what Retry-After said.
pub fn wait_ms(failures_in_a_row: u32, asked_ms: Option<u64>) -> u64 {
    let own = match failures_in_a_row {
        0 => 0,
        n => WAIT_MS_MIN.saturating_mul(1_u64.checked_shl(n - 1).unwrap_or(u64::MAX)),
    };
    own.max(asked_ms.unwrap_or(0)).min(WAIT_MS_MAX)
}

/// The wait that a Retry-After header asks for, at most a day. A date counts from
/// the answer's own Date, so that neither clock need be right; without one it is
/// not understood.
pub fn retry_after_ms(retry_after: &str, date: Option<&str>) -> Option<u64> {
    let text = retry_after.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let seconds = text.parse::<u64>().unwrap_or(u64::MAX);
        return Some(seconds.saturating_mul(1_000).min(WAIT_MS_MAX));
    }
    let until = http_date_ms(text)?;
    let now = http_date_ms(date?.trim())?;
    Some(u64::try_from(until.saturating_sub(now)).unwrap_or(0).min(WAIT_MS_MAX))
}

/// Milliseconds of the one date form that servers must send (RFC 9110, IMF-fixdate).
fn http_date_ms(text: &str) -> Option<i64> {
    const PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    PARSER.parse_timestamp(text).ok().map(|at| at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_a_minute_to_a_day() {
        let minutes: Vec<u64> = (0..13).map(|n| wait_ms(n, None) / MINUTE_MS).collect();
        assert_eq!(minutes, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 1_440]);
        assert_eq!(wait_ms(64, None), WAIT_MS_MAX);
        assert_eq!(wait_ms(65, None), WAIT_MS_MAX);
        assert_eq!(wait_ms(u32::MAX, None), WAIT_MS_MAX);
    }

    #[test]
    fn what_the_server_asks_for_counts_up_to_a_day() {
        assert_eq!(wait_ms(1, Some(5 * MINUTE_MS)), 5 * MINUTE_MS);
        assert_eq!(wait_ms(4, Some(MINUTE_MS)), 8 * MINUTE_MS);
        assert_eq!(wait_ms(1, Some(u64::MAX)), WAIT_MS_MAX);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date_beside_the_answers_own() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(retry_after_ms("120", None), Some(120_000));
        assert_eq!(retry_after_ms(" 0 ", None), Some(0));
        assert_eq!(retry_after_ms("99999999999999999999999", None), Some(WAIT_MS_MAX));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:50:37 GMT", date), Some(60_000));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:00:00 GMT", date), Some(0));
        assert_eq!(retry_after_ms("Sun, 06 Nov 2094 08:00:00 GMT", date), Some(WAIT_MS_MAX));
        for odd in ["", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:50:37 GMT"] {
            assert_eq!(retry_after_ms(odd, None), None, "{odd}");
        }
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:50:37 GMT", Some("never")), None);
    }
}
