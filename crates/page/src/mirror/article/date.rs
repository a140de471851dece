//! The date in a line such as `发布时间：2012-07-20 10:30`.

use crate::feed::datetime;

/// Bytes that are looked at; a date stands at the beginning of its line.
const LINE_BYTES_MAX: usize = 256;

/// The first date in a text, with the time behind it, in milliseconds. Days come last, as in
/// ISO 8601 and in East Asia: the order of days and months elsewhere cannot be told.
pub fn date_in(text: &str) -> Option<i64> {
    if let Some(ms) = datetime::parse(text) {
        return Some(ms);
    }
    let line = &text[..text.floor_char_boundary(LINE_BYTES_MAX)];
    let mut rest = line;
    loop {
        let at = rest.find(|ch: char| ch.is_ascii_digit())?;
        rest = &rest[at..];
        if let Some(ms) = date_here(rest) {
            return Some(ms);
        }
        rest = rest.trim_start_matches(|ch: char| ch.is_ascii_digit());
    }
}

fn date_here(text: &str) -> Option<i64> {
    let (year, rest) = number(text, 4..=4)?;
    let rest = rest.trim_start().strip_prefix(['-', '/', '.', '年'])?;
    let (month, rest) = number(rest.trim_start(), 1..=2)?;
    let rest = rest.trim_start().strip_prefix(['-', '/', '.', '月'])?;
    let (day, rest) = number(rest.trim_start(), 1..=2)?;
    let date = format!("{year:04}-{month:02}-{day:02}");
    let time = time_here(rest.trim_start_matches(['日', 'T', ' ', '\u{a0}', '\u{3000}']));
    time.and_then(|time| datetime::parse(&format!("{date}T{time}")))
        .or_else(|| datetime::parse(&date))
}

fn time_here(text: &str) -> Option<String> {
    let (hour, rest) = number(text, 1..=2)?;
    let (minute, rest) = number(rest.strip_prefix([':', '：', '时'])?, 2..=2)?;
    let second = rest.strip_prefix([':', '：', '分']).and_then(|rest| number(rest, 2..=2));
    Some(format!("{hour:02}:{minute:02}:{:02}", second.map_or(0, |(second, _)| second)))
}

/// A number of so many digits, and what is behind it.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(u32, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    if !digits.contains(&count) {
        return None;
    }
    Some((text[..count].parse().ok()?, &text[count..]))
}
