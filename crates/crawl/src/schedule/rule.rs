//! One schedule, made ready to be matched against time.
//!
//! The values of each field are bits of a number, so the next time that matches is found
//! field by field, not minute by minute: a schedule for one day in 28 years costs no more
//! than one for every minute. Invariant: a local time stands for the first instant at
//! which the clocks of its zone show it or a later one. That is one instant also where
//! clocks jump ahead (the jump) and where they are set back (the first time), and later
//! local times never stand for earlier instants.

use super::{BadSchedule, Schedule, TimeField, WINDOW_MS_MAX};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use std::ops::RangeInclusive;

/// Years that can be listed.
pub(super) const YEARS: RangeInclusive<i64> = 1970..=9999;
/// The calendar repeats itself, days of the week included: what has not matched in so
/// many years never will.
const CALENDAR_YEARS: i16 = 400;
/// Minutes that a zone's clocks show twice in a row: at most a day, when a country moves
/// across the date line, and as much again to be safe.
const REPEATED_MINUTES_MAX: usize = 2 * 24 * 60;

/// The name of a field, its values in the table, and what people call the least of them.
pub(super) struct FieldSpec {
    pub name: &'static str,
    pub values: RangeInclusive<i64>,
    pub first: i64,
}

const fn kind(name: &'static str, values: RangeInclusive<i64>, first: i64) -> FieldSpec {
    FieldSpec { name, values, first }
}

pub(super) const YEAR: FieldSpec = kind("years", YEARS, *YEARS.start());
pub(super) const MONTH: FieldSpec = kind("months", 0..=11, 1);
pub(super) const DATE: FieldSpec = kind("dates", 0..=30, 1);
pub(super) const DAY: FieldSpec = kind("days", 0..=6, 0);
pub(super) const HOUR: FieldSpec = kind("hours", 0..=23, 0);
pub(super) const MINUTE: FieldSpec = kind("minutes", 0..=59, 0);

impl FieldSpec {
    /// The values of a list, each in its range; `None` for anything but a list.
    fn listed(&self, field: &TimeField) -> Result<Option<Vec<i64>>, BadSchedule> {
        let TimeField::Of(values) = field else { return Ok(None) };
        if values.is_empty() {
            return Err(BadSchedule::Empty(self.name));
        }
        let counted = |value: i64| value.saturating_add(self.first - self.values.start());
        let (least, most) = (counted(*self.values.start()), counted(*self.values.end()));
        match values.iter().find(|value| !self.values.contains(value)) {
            None => Ok(Some(values.iter().copied().collect())),
            Some(value) => {
                let (field, value) = (self.name, counted(*value));
                Err(BadSchedule::Range { field, value, least, most })
            }
        }
    }

    /// The values as bits. A field that is unset is `unset`.
    fn bits(&self, field: &TimeField, unset: u64) -> Result<u64, BadSchedule> {
        Ok(match self.listed(field)? {
            Some(values) => values.iter().fold(0, |bits, value| bits | 1 << value),
            None if *field == TimeField::Any => self.all(),
            None => unset,
        })
    }

    fn all(&self) -> u64 {
        u64::MAX >> (63 - self.values.end())
    }
}

/// A schedule that has been checked.
pub(super) struct ScheduleRule {
    years: Option<Vec<i16>>,
    months: u64,
    dates: u64,
    days: u64,
    hours: u64,
    minutes: u64,
    zone: TimeZone,
    pub window_ms: Option<i64>,
    pub repeat_ms: Option<i64>,
    pub minimal: bool,
}

/// The bit of each field's least value.
const LEAST: u64 = 1;

impl ScheduleRule {
    /// Checks a schedule and makes it ready.
    pub fn new(it: &Schedule) -> Result<ScheduleRule, BadSchedule> {
        // Whether some smaller field is said decides what an unset one means. Days of the
        // week and of the month are of one size.
        let minute = it.minutes.is_set();
        let hour = minute || it.hours.is_set();
        let day = hour || it.days.is_set();
        let date = day || it.dates.is_set();
        let unset = |kind: &FieldSpec, smaller: bool| if smaller { kind.all() } else { LEAST };
        let years = YEAR.listed(&it.years)?.map(|years| {
            let years = years.into_iter().map(i16::try_from);
            years.filter_map(Result::ok).collect()
        });
        let rule = ScheduleRule {
            years,
            months: MONTH.bits(&it.months, unset(&MONTH, date))?,
            dates: DATE.bits(&it.dates, unset(&DATE, day))?,
            days: DAY.bits(&it.days, DAY.all())?,
            hours: HOUR.bits(&it.hours, unset(&HOUR, minute))?,
            minutes: MINUTE.bits(&it.minutes, LEAST)?,
            zone: zone(it.timezone.as_deref())?,
            window_ms: it.window_ms,
            repeat_ms: it.repeat_ms,
            minimal: it.minimal,
        };
        if let Some(window_ms) = it.window_ms
            && !(1..=WINDOW_MS_MAX).contains(&window_ms)
        {
            return Err(BadSchedule::Window(window_ms));
        }
        if it.repeat_ms.is_some_and(|repeat_ms| repeat_ms < 1 || it.window_ms.is_none()) {
            return Err(BadSchedule::Repeat);
        }
        rule.next_date(Date::constant(1970, 1, 1)).ok_or(BadSchedule::Never)?;
        Ok(rule)
    }

    /// The first instant after a time that matches. Nothing matches before 1970.
    pub fn next_match(&self, after_ms: i64) -> Option<i64> {
        let after = Timestamp::from_millisecond(after_ms.max(-1)).ok()?;
        let local = self.zone.to_datetime(after);
        let shown = DateTime::from_parts(local.date(), minute_of(local.time())?);
        let mut from = shown.checked_add(1.minute()).ok()?;
        // Clocks that have been set back show local times that stand for an earlier
        // instant; they are passed over.
        for _ in 0..REPEATED_MINUTES_MAX {
            let found = self.next_local(from)?;
            let at = self.instant(found)?;
            if at > after {
                return Some(at.as_millisecond());
            }
            from = found.checked_add(1.minute()).ok()?;
        }
        None
    }

    /// The first instant at which the clocks show a local time or a later one.
    fn instant(&self, local: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset: before }
            | AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { after, .. } => {
                // By the clock after the jump, the time would have been before it.
                let earlier = after.to_timestamp(local).ok()?;
                Some(self.zone.following(earlier).next()?.timestamp())
            }
        }
    }

    /// The first local time that matches, from one on.
    fn next_local(&self, from: DateTime) -> Option<DateTime> {
        let date = self.next_date(from.date())?;
        if date > from.date() {
            return Some(date.to_datetime(self.next_time(Time::midnight())?));
        }
        if let Some(time) = self.next_time(from.time()) {
            return Some(date.to_datetime(time));
        }
        let date = self.next_date(date.tomorrow().ok()?)?;
        Some(date.to_datetime(self.next_time(Time::midnight())?))
    }

    /// The first time of a day that matches, from one on.
    fn next_time(&self, from: Time) -> Option<Time> {
        let mut hour = next_bit(self.hours, from.hour())?;
        let least = if hour == from.hour() { from.minute() } else { 0 };
        let mut minute = next_bit(self.minutes, least);
        if minute.is_none() {
            hour = next_bit(self.hours, hour + 1)?;
            minute = next_bit(self.minutes, 0);
        }
        Time::new(hour, minute?, 0, 0).ok()
    }

    /// The first day that matches, from one on.
    fn next_date(&self, from: Date) -> Option<Date> {
        for year in self.years_from(from.year()) {
            let first = Date::new(year, 1, 1).ok()?.max(from);
            let mut month = next_bit(self.months, first.month() - 1);
            while let Some(index) = month {
                let month_begins = Date::new(year, index + 1, 1).ok()?;
                let least = month_begins.max(from).day() - 1;
                if let Some(date) = next_bit(self.dates_of(month_begins), least) {
                    return Date::new(year, index + 1, date + 1).ok();
                }
                month = next_bit(self.months, index + 1);
            }
        }
        None
    }

    /// The days of a month that match.
    fn dates_of(&self, month_begins: Date) -> u64 {
        // Two weeks' worth of days of the week, so that any day can come first.
        let weekday = month_begins.weekday().to_sunday_zero_offset();
        let week = (self.days | self.days << 7) >> weekday & DAY.all();
        let weeks = (0..5).fold(0, |bits, number| bits | week << (7 * number));
        let length = month_begins.days_in_month();
        self.dates & weeks & (u64::MAX >> (64 - length))
    }

    fn years_from(&self, first: i16) -> impl Iterator<Item = i16> {
        let any = self.years.is_none().then(|| first..=first.saturating_add(CALENDAR_YEARS));
        let listed = self.years.iter().flatten().copied().filter(move |year| *year >= first);
        any.into_iter().flatten().chain(listed)
    }
}

/// The minute that a time of day lies in.
fn minute_of(time: Time) -> Option<Time> {
    Time::new(time.hour(), time.minute(), 0, 0).ok()
}

/// The lowest bit that is set, from one on.
fn next_bit(bits: u64, from: i8) -> Option<i8> {
    let rest = bits & u64::MAX.checked_shl(u32::try_from(from).ok()?)?;
    if rest == 0 { None } else { i8::try_from(rest.trailing_zeros()).ok() }
}

/// A zone by its name, from the data in the program; nothing of the machine is asked.
pub(super) fn zone(name: Option<&str>) -> Result<TimeZone, BadSchedule> {
    let Some(name) = name else { return Ok(TimeZone::UTC) };
    match TimeZoneDatabase::bundled().get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        _ => Err(BadSchedule::Zone(name.to_owned())),
    }
}
