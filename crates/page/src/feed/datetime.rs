//! W3C date and time (the profile of ISO 8601 that sitemaps and feeds use) to
//! milliseconds since 1970.
//!
//! Pure arithmetic on the proleptic Gregorian calendar. Invariant: what comes
//! out is the instant that was written; what is no date gives none. A time
//! without a zone is taken as UTC, because many sites leave it out.

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const MINUTE_MS: i64 = 60 * 1_000;
/// No form of a date is longer, fractions of a second apart.
const LENGTH_MAX: usize = 64;

/// `2024`, `2024-05`, `2024-05-01`, `2024-05-01T10:20[:30[.5]][Z|+02:00]`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() > LENGTH_MAX || !text.is_ascii() {
        return None;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(text[at + 1..].trim())),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = parts.next().map_or(Some(1), |part| digits(part, 2))?;
    let day = parts.next().map_or(Some(1), |part| digits(part, 2))?;
    let is_date = parts.next().is_none()
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day);
    if !is_date {
        return None;
    }
    let time_ms = time.map_or(Some(0), time_of_day)?;
    Some(days_since_1970(year, month, day) * DAY_MS + time_ms)
}

/// Milliseconds since midnight UTC; negative or above a day where the zone says so.
fn time_of_day(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone_at);
    let mut parts = clock.trim_end().split(':');
    let hour = digits(parts.next()?, 2).filter(|hour| *hour <= 24)?;
    let minute = digits(parts.next()?, 2).filter(|minute| *minute < 60)?;
    let second_ms = parts.next().map_or(Some(0), seconds_ms)?;
    // The hour 24 is the end of a day and nothing after it.
    let is_too_late = hour == 24 && (minute, second_ms) != (0, 0);
    if parts.next().is_some() || is_too_late {
        return None;
    }
    Some((hour * 60 + minute - zone_minutes(zone)?) * MINUTE_MS + second_ms)
}

fn seconds_ms(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    // 60 is a leap second.
    let seconds = digits(whole, 2).filter(|seconds| *seconds <= 60)?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(3)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(seconds * 1_000 + thousandths)
}

fn zone_minutes(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (text.len() == 1).then_some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let offset = &text[1..];
    let (hours, minutes) = match (offset.split_once(':'), offset.len()) {
        (Some(pair), _) => pair,
        (None, 4) => offset.split_at(2),
        (None, _) => (offset, "00"),
    };
    let hours = digits(hours, 2).filter(|hours| *hours <= 23)?;
    let minutes = digits(minutes, 2).filter(|minutes| *minutes < 60)?;
    Some(sign * (hours * 60 + minutes))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let right = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| text.parse().ok()).flatten()
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts years from March, so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    /// Days from 0000-03-01 to 1970-01-01.
    const EPOCH: i64 = 719_468;
    era * 146_097 + day_of_era - EPOCH
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn dates_in_every_form_become_instants() {
        for (text, expected) in [
            ("1970", 0),
            ("1970-01", 0),
            ("1970-01-02", 86_400_000),
            ("1969-12-31T23:59:59Z", -1_000),
            ("2004-12-23T18:00:15+00:00", 1_103_824_815_000),
            ("2005-01-01", 1_104_537_600_000),
            ("2015-05-03T18:51:50+01:00", 1_430_675_510_000),
            ("2015-05-03t18:51:50+0100", 1_430_675_510_000),
            ("2015-05-03 17:51:50", 1_430_675_510_000),
            ("2015-05-03T17:51:50.25Z", 1_430_675_510_250),
            ("2025-06-05T21:00Z", 1_749_157_200_000),
            ("2000-02-29", 951_782_400_000),
            ("  2005-01-01\n", 1_104_537_600_000),
            ("0000-03-01", -62_162_035_200_000),
            ("9999-12-31", 253_402_214_400_000),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_gives_none() {
        for text in [
            "",
            "-",
            "yesterday",
            "20050101",
            "2005-13-01",
            "2005-00-01",
            "2005-02-29",
            "2005-1-1",
            "2005-01-01T",
            "2005-01-01T25:00",
            "2005-01-01T24:00:01Z",
            "9999-12-31T24:59:59.999-23:59",
            "2005-01-01T10:60Z",
            "2005-01-01T10:00:61Z",
            "2005-01-01T10:00Zx",
            "2005-01-01T10:00+25:00",
            "2005-01-01T10:00+é",
            "99999",
            "2005-01-01-01",
            "2005-01-01T10",
            "Tue, 15 Nov 2022 20:15:04 GMT",
            "２００５",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"9".repeat(1 << 20)), None);
    }
}
