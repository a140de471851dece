//! Moments as people write them: so long ago, or by the calendar.

use crate::catalog::typed;
use crate::refusal::{OrRefuse, OrRefused};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// A moment in milliseconds: a span back from now such as `2h`, a time with its zone such
/// as `2026-01-31T12:00Z`, or one without, which is in UTC.
pub fn moment(text: &str, now_ms: i64) -> anyhow::Result<i64> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.as_millisecond());
    }
    let by_day = text.parse::<Date>().ok().map(|day| day.at(0, 0, 0, 0));
    if let Some(moment) = text.parse::<DateTime>().ok().or(by_day) {
        return Ok(TimeZone::UTC.to_timestamp(moment).or_refused()?.as_millisecond());
    }
    let span_ms = typed::milliseconds(text).or_refuse(|| {
        "a time is a duration before now such as 2h, or like 2026-01-31, 2026-01-31T12:00 or \
         2026-01-31T12:00+01:00"
    })?;
    Ok(now_ms.saturating_sub(span_ms))
}

/// A moment as a spreadsheet reads it, in UTC.
pub fn calendar(moment_ms: i64) -> String {
    match Timestamp::from_millisecond(moment_ms) {
        Ok(moment) => moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => moment_ms.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_said_in_many_ways() {
        let noon = 1_769_860_800_000;
        for text in [
            "2026-01-31T12:00Z",
            "2026-01-31T13:00+01:00",
            "2026-01-31T12:00",
            "2026-01-31 12:00:00",
            "1h 30min",
        ] {
            assert_eq!(moment(text, noon + 5_400_000).unwrap(), noon, "{text}");
        }
        assert_eq!(moment("2026-01-31", 0).unwrap(), noon - 12 * 3_600_000);
        for text in ["", "yesterday", "2026-13-01", "-5h"] {
            assert!(moment(text, noon).is_err(), "{text}");
        }
        assert_eq!(calendar(noon + 7), "2026-01-31T12:00:00.007Z");
        assert_eq!(calendar(i64::MAX), i64::MAX.to_string());
    }
}
