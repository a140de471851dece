//! What holds for every schedule, also beside a slow search that shares no code with the
//! fast one: it walks through time minute by minute and reads the zone's clocks.

use super::{shown, since};
use crate::schedule::*;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// 1 January 2024.
const BEGIN_MS: i64 = 1_704_067_200_000;

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Pacific/Chatham",
];

/// When clocks change in 2024, and whose.
const CHANGES: [(&str, i64); 8] = [
    ("Europe/Berlin", 1_711_846_800_000),       // 31 March
    ("Europe/Berlin", 1_729_990_800_000),       // 27 October
    ("America/New_York", 1_710_054_000_000),    // 10 March
    ("America/New_York", 1_730_613_600_000),    // 3 November
    ("Australia/Lord_Howe", 1_712_415_600_000), // 6 April
    ("Australia/Lord_Howe", 1_728_142_200_000), // 5 October
    ("Asia/Beirut", 1_711_836_000_000),         // 31 March, at midnight
    ("UTC", 1_709_208_000_000),                 // 29 February: they do not
];

/// Instants near which something is special, and others.
fn instants() -> impl Strategy<Value = i64> {
    let near = (proptest::sample::select(&CHANGES[..]), -36 * HOUR_MS..36 * HOUR_MS)
        .prop_map(|((_, change_ms), apart_ms)| change_ms + apart_ms);
    prop_oneof![3 => near, 1 => BEGIN_MS..BEGIN_MS + 730 * DAY_MS]
}

/// Schedules for small hours, and an instant near a change of their zone's clocks.
fn small_hours() -> impl Strategy<Value = (Schedule, i64)> {
    let change = proptest::sample::select(&CHANGES[..]);
    let times = (field(0..=4, 3), field(0..=59, 8), field(0..=6, 7));
    (change, times, -4 * HOUR_MS..4 * HOUR_MS).prop_map(
        |((zone, change_ms), (hours, minutes, days), apart_ms)| {
            let timezone = Some(zone.to_owned());
            let schedule = Schedule { hours, minutes, days, timezone, ..Schedule::default() };
            // Many of them are whole minutes, some the change itself.
            let apart_ms =
                if apart_ms % 3 == 0 { apart_ms } else { apart_ms / HOUR_MS * HOUR_MS / 2 };
            (schedule, change_ms + apart_ms)
        },
    )
}

fn field(values: std::ops::RangeInclusive<i64>, most: usize) -> impl Strategy<Value = TimeField> {
    prop_oneof![
        3 => Just(TimeField::Unset),
        1 => Just(TimeField::Any),
        3 => proptest::collection::btree_set(values, 1..=most).prop_map(TimeField::Of),
    ]
}

/// Schedules that can be used, with and without windows.
pub(in crate::schedule) fn schedules() -> impl Strategy<Value = Schedule> {
    let years = prop_oneof![5 => Just(TimeField::Unset), 1 => field(2023..=2026, 3)];
    let times = (years, field(0..=11, 12), field(0..=30, 31), field(0..=6, 7));
    let zone = proptest::option::weighted(0.9, proptest::sample::select(&ZONES[..]));
    let window =
        proptest::option::of(prop_oneof![1..3 * DAY_MS, (1..50_i64).prop_map(|it| it * HOUR_MS)]);
    (times, (field(0..=23, 24), field(0..=59, 60)), zone, window, any::<[bool; 2]>())
        .prop_map(|((years, months, dates, days), (hours, minutes), zone, window_ms, is)| {
            let (timezone, [minimal, repeats]) = (zone.map(str::to_owned), is);
            let repeat_ms = window_ms.filter(|_| repeats).map(|window_ms| window_ms / 3 + 1);
            Schedule {
                years,
                months,
                dates,
                days,
                hours,
                minutes,
                timezone,
                window_ms,
                repeat_ms,
                minimal,
            }
        })
        .prop_filter("a day that no year has", |schedule| check(schedule).is_ok())
}

/// Whether a local time matches, word for word as the rule about unset fields has it.
fn matches(it: &Schedule, local: DateTime) -> bool {
    let mut smaller = false;
    let mut is = |field: &TimeField, value: i64, least: Option<i64>| {
        let fits = match field {
            TimeField::Unset => smaller || least.is_none_or(|least| value == least),
            TimeField::Any => true,
            TimeField::Of(values) => values.contains(&value),
        };
        smaller |= field.is_set();
        fits
    };
    is(&it.minutes, local.minute().into(), Some(0))
        & is(&it.hours, local.hour().into(), Some(0))
        & is(&it.days, local.weekday().to_sunday_zero_offset().into(), None)
        & is(&it.dates, i64::from(local.day()) - 1, Some(0))
        & is(&it.months, i64::from(local.month()) - 1, Some(0))
        & is(&it.years, local.year().into(), None)
}

/// The first match after an instant, up to another: whenever the clock shows a time that
/// it has not shown before, that time and all that it has skipped are looked at.
fn slow(it: &Schedule, after_ms: i64, until_ms: i64) -> Option<i64> {
    let zone = TimeZone::get(it.timezone.as_deref().unwrap_or("UTC")).unwrap();
    let clock = |ms| zone.to_datetime(Timestamp::from_millisecond(ms).unwrap());
    // What was shown before is known when one begins more than a change of clocks earlier.
    let mut now_ms = (after_ms - 2 * HOUR_MS) / MINUTE_MS * MINUTE_MS;
    let mut shown = clock(now_ms);
    while now_ms < until_ms {
        now_ms += MINUTE_MS;
        let (shows, mut found) = (clock(now_ms), false);
        while shown < shows {
            shown += 1.minute();
            found |= matches(it, shown);
        }
        if found && now_ms > after_ms {
            return Some(now_ms);
        }
    }
    None
}

/// A job: its method, its records, when it was last looked at, and now.
const METHODS: [StartMethod; 3] =
    [StartMethod::Manual, StartMethod::WindowBegin, StartMethod::WindowInside];

fn jobs() -> impl Strategy<Value = (StartMethod, Vec<Schedule>, i64, i64)> {
    let method = proptest::sample::select(&METHODS[..]);
    let records = proptest::collection::vec(schedules(), 0..4);
    (method, records, instants(), 0..4 * DAY_MS)
        .prop_map(|(method, records, now_ms, ago_ms)| (method, records, now_ms - ago_ms, now_ms))
}

/// Holds the fast search against the slow one, over some days.
fn agree(it: &Schedule, after_ms: i64, days: i64) -> Result<(), TestCaseError> {
    let until_ms = (after_ms + days * DAY_MS) / MINUTE_MS * MINUTE_MS;
    let fast = next_match(it, after_ms).filter(|at_ms| *at_ms <= until_ms);
    let found = slow(it, after_ms, until_ms);
    prop_assert_eq!(fast.map(shown), found.map(shown), "{} after {}", print(it), shown(after_ms));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_next_match_is_the_one_that_a_slow_search_finds(
        it in schedules(), after_ms in instants(),
    ) {
        agree(&it, after_ms, 14)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn so_it_is_where_clocks_change((it, after_ms) in small_hours()) {
        agree(&it, after_ms, 1)?;
    }
}

proptest! {
    #[test]
    fn a_window_that_is_answered_is_open((method, records, last_ms, now_ms) in jobs()) {
        let Some(start) = decide(method, &records, since(last_ms), now_ms) else { return Ok(()) };
        prop_assert!(method != StartMethod::Manual);
        prop_assert!(start.at_ms <= now_ms);
        match start.window_end_ms {
            Some(end_ms) => prop_assert!(end_ms > now_ms),
            None => prop_assert!(start.at_ms > last_ms),
        }
        if method == StartMethod::WindowBegin {
            prop_assert!(start.at_ms > last_ms, "nothing is started twice");
        }
    }

    #[test]
    fn nothing_changes_before_the_next_event(
        (method, records, last_ms, now_ms) in jobs(), share in 0.0..1.0,
    ) {
        let answer = decide(method, &records, since(last_ms), now_ms);
        let event_ms = next_event(method, &records, since(last_ms), now_ms);
        let until_ms = event_ms.unwrap_or(now_ms + 500 * DAY_MS);
        prop_assert!(until_ms > now_ms);
        let between_ms = now_ms + ((until_ms - 1 - now_ms) as f64 * share) as i64;
        for later_ms in [now_ms + 1, between_ms, until_ms - 1] {
            if later_ms < until_ms {
                prop_assert_eq!(decide(method, &records, since(last_ms), later_ms), answer);
            }
        }
        if let (None, Some(event_ms)) = (answer, event_ms) {
            let started = decide(method, &records, since(last_ms), event_ms);
            prop_assert_eq!(started.map(|it| it.at_ms), Some(event_ms), "it starts on the dot");
        }
    }

    #[test]
    fn the_next_runs_increase_and_each_starts_on_the_dot(
        (method, records, last_ms, now_ms) in jobs(), count in 0..8_usize,
    ) {
        let runs = next_runs(method, &records, since(last_ms), now_ms, count);
        prop_assert!(runs.len() <= count);
        prop_assert!(runs.is_sorted_by(|run, next| run < next));
        for run_ms in &runs {
            let before_ms = if *run_ms == now_ms { last_ms } else { run_ms - 1 };
            prop_assert!(decide(method, &records, since(before_ms), *run_ms).is_some());
        }
        let fewer = next_runs(method, &records, since(last_ms), now_ms, count / 2);
        prop_assert_eq!(&runs[..fewer.len()], &fewer[..]);
    }

    #[test]
    fn no_schedule_and_no_time_is_too_odd(
        values in proptest::collection::btree_set(any::<i64>(), 0..4),
        zone in ".{0,20}", window_ms: i64, last_ms: i64, now_ms: i64,
    ) {
        let odd = Schedule {
            hours: TimeField::Of(values.clone()),
            years: TimeField::Of(values),
            timezone: Some(zone),
            window_ms: Some(window_ms),
            ..Schedule::default()
        };
        let sound = Schedule { window_ms: Some(WINDOW_MS_MAX), hours: TimeField::Any, ..Schedule::default() };
        for method in METHODS {
            let records = [odd.clone(), sound.clone()];
            let _ = decide(method, &records, since(last_ms), now_ms);
            let _ = next_event(method, &records, since(last_ms), now_ms);
            let _ = next_runs(method, &records, since(last_ms), now_ms, 3);
        }
        prop_assert!(!print(&odd).is_empty());
    }
}
