//! The form of a schedule for people and for the command line, such as
//! `hours=3 minutes=0,30 days=mon-fri zone=Europe/Berlin window=2h minimal`.
//!
//! People count months and days of the month from one and name months and days of the
//! week; the table counts from zero. A field that is left out is unset, `*` is any value.
//! Invariant: what is printed is read as the same schedule, its zone in full: one without
//! a zone is printed with `zone=UTC`, which is what it means.

use super::rule::{DATE, DAY, FieldSpec, HOUR, MINUTE, MONTH, YEAR, zone};
use super::{BadSchedule, Schedule, TimeField, check};
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// Bytes of the text of one schedule; every second year from 1970 to 9999 has room.
pub const TEXT_BYTES_MAX: usize = 32 * 1_024;

/// Values that the spans of one list may add up to: all years twice, and then some.
const VALUES_MAX: usize = 20_000;

/// What messages show.
pub(super) const EXAMPLE: &str = "hours=3 days=mon-fri zone=Europe/Berlin window=2h";

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
/// Letters that tell months and days apart.
const NAME_LETTERS: usize = 3;
/// Neighbours in a list from which on it is shown as from-to.
const RANGE_VALUES: usize = 3;

/// Units of a span of time, the largest first, by all names that are read. The first name
/// is printed.
const UNITS: [(&[&str], i64); 6] = [
    (&["w", "week", "weeks"], 7 * 24 * 3_600_000),
    (&["d", "day", "days"], 24 * 3_600_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["min", "m", "mins", "minute", "minutes"], 60_000),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["ms", "millisecond", "milliseconds"], 1),
];

const ZONE: &str = "zone";
const WINDOW: &str = "window";
const REPEAT: &str = "repeat";
const MINIMAL: &str = "minimal";

/// The fields in the order in which they are printed.
const KINDS: [FieldSpec; 6] = [HOUR, MINUTE, DAY, DATE, MONTH, YEAR];

fn fields(it: &Schedule) -> [&TimeField; 6] {
    [&it.hours, &it.minutes, &it.days, &it.dates, &it.months, &it.years]
}

fn fields_mut(it: &mut Schedule) -> [&mut TimeField; 6] {
    [&mut it.hours, &mut it.minutes, &mut it.days, &mut it.dates, &mut it.months, &mut it.years]
}

/// Reads a schedule, and refuses one that cannot be used.
pub fn parse(text: &str) -> Result<Schedule, BadSchedule> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(BadSchedule::TooLong(text.len()));
    }
    let mut schedule = Schedule::default();
    for word in text.split_ascii_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            ZONE => put(&mut schedule.timezone, full_zone(value)?, ZONE)?,
            WINDOW => put(&mut schedule.window_ms, span_ms(WINDOW, value)?, WINDOW)?,
            REPEAT => put(&mut schedule.repeat_ms, span_ms(REPEAT, value)?, REPEAT)?,
            _ if word == MINIMAL => schedule.minimal = true,
            _ => {
                let index = KINDS.iter().position(|kind| kind.name == name && word != name);
                let index = index.ok_or_else(|| BadSchedule::Word(shortened(word)))?;
                let (kind, fields) = (&KINDS[index], fields_mut(&mut schedule));
                if fields[index].is_set() {
                    return Err(BadSchedule::Twice(kind.name));
                }
                *fields[index] = list(kind, value)?;
            }
        }
    }
    if schedule == Schedule::default() {
        return Err(BadSchedule::Nothing);
    }
    check(&schedule)?;
    Ok(schedule)
}

/// Writes a schedule as [`parse`] reads it.
pub fn print(schedule: &Schedule) -> String {
    let mut words = Vec::new();
    for (kind, field) in KINDS.iter().zip(fields(schedule)) {
        match field {
            TimeField::Unset => {}
            TimeField::Any => words.push(format!("{}=*", kind.name)),
            TimeField::Of(values) => words.push(format!("{}={}", kind.name, printed(kind, values))),
        }
    }
    words.push(format!("{ZONE}={}", schedule.timezone.as_deref().unwrap_or("UTC")));
    for (name, span_ms) in [(WINDOW, schedule.window_ms), (REPEAT, schedule.repeat_ms)] {
        words.extend(span_ms.map(|span_ms| format!("{name}={}", printed_span(span_ms))));
    }
    if schedule.minimal {
        words.push(MINIMAL.to_owned());
    }
    words.join(" ")
}

fn put<T>(place: &mut Option<T>, value: T, name: &'static str) -> Result<(), BadSchedule> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(BadSchedule::Twice(name)),
    }
}

/// The beginning of a word, for a message.
fn shortened(word: &str) -> String {
    word.chars().take(60).collect()
}

/// A zone's name as the list of zones spells it.
fn full_zone(name: &str) -> Result<String, BadSchedule> {
    let zone = zone(Some(name)).map_err(|_| BadSchedule::Zone(shortened(name)))?;
    Ok(zone.iana_name().unwrap_or(name).to_owned())
}

/// A list such as `0,30`, `mon-fri` or `nov-feb`; the last begins again after December.
fn list(kind: &FieldSpec, text: &str) -> Result<TimeField, BadSchedule> {
    if text == "*" {
        return Ok(TimeField::Any);
    }
    if text.is_empty() {
        return Err(BadSchedule::Empty(kind.name));
    }
    let mut values = BTreeSet::new();
    let mut count = 0;
    for item in text.split(',') {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        let (from, to) = (value(kind, from)?, value(kind, to)?);
        let wrong = |expected| {
            let value = shortened(item);
            Err(BadSchedule::Value { field: kind.name, value, expected })
        };
        count += usize::try_from(to.abs_diff(from)).unwrap_or(VALUES_MAX) + 1;
        if count > VALUES_MAX {
            return wrong("needed: spans overlap too often");
        }
        if from <= to {
            values.extend(from..=to);
        } else if kind.name == YEAR.name {
            return wrong("a span of years, the earlier first");
        } else {
            values.extend((from..=*kind.values.end()).chain(*kind.values.start()..=to));
        }
    }
    Ok(TimeField::Of(values))
}

/// One value, as the table counts it. It is in its range.
fn value(kind: &FieldSpec, text: &str) -> Result<i64, BadSchedule> {
    let names = names(kind);
    let is_name = |name: &&str| {
        text.len() >= NAME_LETTERS
            && name.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    if let Some((number, _)) = (0..).zip(names).find(|(_, name)| is_name(name)) {
        return Ok(number);
    }
    let wrong = || BadSchedule::Value {
        field: kind.name,
        value: shortened(text),
        expected: expected(kind),
    };
    // People disagree on which day of the week is the first, so they name it.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || kind.name == DAY.name {
        return Err(wrong());
    }
    let counted: i64 = text.parse().map_err(|_| wrong())?;
    let number = counted - kind.first + kind.values.start();
    if !kind.values.contains(&number) {
        let most = kind.values.end() - kind.values.start() + kind.first;
        let (field, least) = (kind.name, kind.first);
        return Err(BadSchedule::Range { field, value: counted, least, most });
    }
    Ok(number)
}

fn names(kind: &FieldSpec) -> &'static [&'static str] {
    match kind.name {
        name if name == MONTH.name => &MONTHS,
        name if name == DAY.name => &DAYS,
        _ => &[],
    }
}

fn expected(kind: &FieldSpec) -> &'static str {
    match kind.name {
        name if name == MONTH.name => "a month, such as feb or 2",
        name if name == DAY.name => "a day of the week, such as mon; dates=15 is the 15th",
        _ => "a number",
    }
}

fn printed(kind: &FieldSpec, values: &BTreeSet<i64>) -> String {
    let values: Vec<i64> = values.iter().copied().collect();
    let name = |value: i64| match usize::try_from(value).ok().and_then(|it| names(kind).get(it)) {
        Some(name) => name[..NAME_LETTERS].to_owned(),
        None => value.saturating_add(kind.first - kind.values.start()).to_string(),
    };
    let mut items = Vec::new();
    for run in values.chunk_by(|value, next| value.checked_add(1) == Some(*next)) {
        match run {
            [first, .., last] if run.len() >= RANGE_VALUES => {
                items.push(format!("{}-{}", name(*first), name(*last)));
            }
            _ => items.extend(run.iter().map(|value| name(*value))),
        }
    }
    items.join(",")
}

/// A span of time such as `2h` or `1h30min`.
fn span_ms(field: &'static str, text: &str) -> Result<i64, BadSchedule> {
    let wrong = || BadSchedule::Value {
        field,
        value: shortened(text),
        expected: "a length of time, such as 2h, 1h30min or 3d",
    };
    let mut span_ms: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let unit_ms = UNITS.iter().find(|it| it.0.contains(&unit)).ok_or_else(wrong)?.1;
        let number: i64 = number.parse().map_err(|_| wrong())?;
        let part_ms = number.checked_mul(unit_ms).ok_or_else(wrong)?;
        span_ms = span_ms.checked_add(part_ms).ok_or_else(wrong)?;
        rest = after;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(span_ms) }
}

fn printed_span(span_ms: i64) -> String {
    let mut rest = span_ms;
    let mut text = String::new();
    // People count days, not weeks.
    for (names, unit_ms) in &UNITS[1..] {
        let number = rest / unit_ms;
        rest %= unit_ms;
        if number != 0 {
            text.push_str(&format!("{number}{}", names[0]));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}
