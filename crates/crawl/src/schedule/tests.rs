//! What ManifoldCF says of schedules, sentence by sentence, each as a row of a table,
//! with zones whose clocks change. Instants are written with their offset, so each row
//! can be checked against a calendar.
//!
//! Here is which instants a schedule names and what is refused; [`starts`] has what
//! follows for a job, and [`properties`] what holds for every schedule.

mod properties;
mod starts;

use super::*;
use jiff::Timestamp;
pub(super) use properties::schedules;

/// An instant such as `2024-05-06T03:00+02:00`.
fn at(text: &str) -> i64 {
    let instant: Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    instant.as_millisecond()
}

fn shown(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |it| it.to_string())
}

fn schedule(text: &str) -> Schedule {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A job that has had no run, and was looked at last at a time.
fn since(last_ms: i64) -> Since {
    Since { last_ms, ran_ms: None }
}

/// Holds what a schedule names after an instant against the next instants expected.
fn names(text: &str, after: &str, expected: &[&str]) {
    let schedule = schedule(text);
    let mut after_ms = at(after);
    for instant in expected {
        let found = next_match(&schedule, after_ms).map(shown);
        assert_eq!(found, Some(shown(at(instant))), "{text} after {}", shown(after_ms));
        after_ms = at(instant);
    }
}

#[test]
fn an_unset_field_is_any_if_a_smaller_one_is_set_and_else_the_least() {
    let after = "2024-05-06T10:07Z"; // a Monday
    let rows: [(&str, [&str; 3]); 16] = [
        // Only the hour: every day.
        ("hours=3", ["2024-05-07T03:00Z", "2024-05-08T03:00Z", "2024-05-09T03:00Z"]),
        // Only the day of the week: at midnight.
        ("days=sun", ["2024-05-12T00:00Z", "2024-05-19T00:00Z", "2024-05-26T00:00Z"]),
        // Only the month: its first day, at midnight.
        ("months=jun", ["2024-06-01T00:00Z", "2025-06-01T00:00Z", "2026-06-01T00:00Z"]),
        // Nothing: once a year.
        ("zone=UTC", ["2025-01-01T00:00Z", "2026-01-01T00:00Z", "2027-01-01T00:00Z"]),
        ("years=2030,2032,2040", ["2030-01-01T00:00Z", "2032-01-01T00:00Z", "2040-01-01T00:00Z"]),
        ("dates=15", ["2024-05-15T00:00Z", "2024-06-15T00:00Z", "2024-07-15T00:00Z"]),
        ("minutes=5,40", ["2024-05-06T10:40Z", "2024-05-06T11:05Z", "2024-05-06T11:40Z"]),
        ("hours=3 minutes=7", ["2024-05-07T03:07Z", "2024-05-08T03:07Z", "2024-05-09T03:07Z"]),
        ("months=jun hours=3", ["2024-06-01T03:00Z", "2024-06-02T03:00Z", "2024-06-03T03:00Z"]),
        ("months=jun days=mon", ["2024-06-03T00:00Z", "2024-06-10T00:00Z", "2024-06-17T00:00Z"]),
        // A `*` is any value, and counts as set for what is larger.
        ("minutes=*", ["2024-05-06T10:08Z", "2024-05-06T10:09Z", "2024-05-06T10:10Z"]),
        ("hours=*", ["2024-05-06T11:00Z", "2024-05-06T12:00Z", "2024-05-06T13:00Z"]),
        ("days=*", ["2024-05-07T00:00Z", "2024-05-08T00:00Z", "2024-05-09T00:00Z"]),
        ("dates=*", ["2024-05-07T00:00Z", "2024-05-08T00:00Z", "2024-05-09T00:00Z"]),
        ("months=*", ["2024-06-01T00:00Z", "2024-07-01T00:00Z", "2024-08-01T00:00Z"]),
        ("years=*", ["2025-01-01T00:00Z", "2026-01-01T00:00Z", "2027-01-01T00:00Z"]),
    ];
    for (text, expected) in rows {
        names(text, after, &expected);
    }
    names("years=2025 months=feb", after, &["2025-02-01T00:00Z"]);
    assert_eq!(next_match(&schedule("years=2025 months=feb"), at("2025-02-01T00:00Z")), None);
}

#[test]
fn a_list_must_contain_the_value_and_both_kinds_of_days_must_match() {
    // Friday the 13th.
    let friday = ["2024-09-13T00:00Z", "2024-12-13T00:00Z", "2025-06-13T00:00Z"];
    names("days=fri dates=13", "2024-05-06T00:00Z", &friday);
    // Numbers count from zero in the table: the first day, January, Sunday.
    let first = Schedule {
        dates: TimeField::of([0]),
        months: TimeField::of([0]),
        days: TimeField::of([0]),
        ..Schedule::default()
    };
    assert_eq!(next_match(&first, at("2018-01-01T00:00Z")), Some(at("2023-01-01T00:00Z")));
    // Months without the day are left out.
    let thirty_first = ["2024-05-31T00:00Z", "2024-07-31T00:00Z", "2024-08-31T00:00Z"];
    names("dates=31", "2024-05-06T00:00Z", &thirty_first);
    // A matching instant itself is not after itself; one millisecond earlier it is.
    let three = at("2024-05-07T03:00Z");
    assert_eq!(next_match(&schedule("hours=3"), three - 1), Some(three));
    assert_eq!(next_match(&schedule("hours=3"), three), Some(at("2024-05-08T03:00Z")));
}

#[test]
fn far_days_are_found_and_the_search_ends() {
    let leap_monday = "dates=29 months=feb days=mon";
    names(leap_monday, "2024-05-06T00:00Z", &["2044-02-29T00:00Z", "2072-02-29T00:00Z"]);
    // 2100 is no leap year, so the longest wait is longer than 28 years.
    names("dates=29 months=feb days=thu", "2080-03-01T00:00Z", &["2120-02-29T00:00Z"]);
    names("years=9998 hours=3", "1970-01-01T00:00Z", &["9998-01-01T03:00Z"]);
    assert_eq!(next_match(&schedule("years=2020"), at("2024-01-01T00:00Z")), None);
    assert_eq!(next_match(&schedule("years=9999"), at("9999-02-01T00:00Z")), None);
    let never =
        Schedule { dates: TimeField::of([29]), months: TimeField::of([1]), ..Schedule::default() };
    assert_eq!((check(&never), next_match(&never, 0)), (Err(BadSchedule::Never), None));
    for extreme_ms in [i64::MIN, -1, i64::MAX] {
        let found = next_match(&schedule("hours=*"), extreme_ms);
        assert_eq!(found, (extreme_ms < 0).then_some(0), "after {extreme_ms}");
    }
}

#[test]
fn clocks_that_change_neither_lose_a_run_nor_double_it() {
    let rows: [(&str, &str, &[&str]); 12] = [
        // Spring: 02:00 to 03:00 does not exist on 31 March.
        (
            "hours=2 minutes=30 zone=Europe/Berlin",
            "2024-03-30T02:30+01:00",
            &["2024-03-31T03:00+02:00", "2024-04-01T02:30+02:00"],
        ),
        // All that is skipped comes at one instant, together with what is due then anyway.
        (
            "hours=1-3 minutes=0,20,40 zone=Europe/Berlin",
            "2024-03-31T01:20+01:00",
            &["2024-03-31T01:40+01:00", "2024-03-31T03:00+02:00", "2024-03-31T03:20+02:00"],
        ),
        // Autumn: 02:00 to 03:00 comes twice on 27 October, and counts once.
        (
            "hours=2 minutes=30 zone=Europe/Berlin",
            "2024-10-26T02:30+02:00",
            &["2024-10-27T02:30+02:00", "2024-10-28T02:30+01:00"],
        ),
        // Asked in the repeated hour, what it repeats is over.
        (
            "minutes=0,30 zone=Europe/Berlin",
            "2024-10-27T02:10+01:00",
            &["2024-10-27T03:00+01:00", "2024-10-27T03:30+01:00"],
        ),
        (
            "hours=2 minutes=30 zone=America/New_York",
            "2024-03-09T12:00-05:00",
            &["2024-03-10T03:00-04:00", "2024-03-11T02:30-04:00"],
        ),
        (
            "hours=1 minutes=30 zone=America/New_York",
            "2024-11-02T12:00-04:00",
            &["2024-11-03T01:30-04:00", "2024-11-04T01:30-05:00"],
        ),
        // Half an hour: 02:00 to 02:30 does not exist on 6 October.
        (
            "hours=2 minutes=10,40 zone=Australia/Lord_Howe",
            "2024-10-05T12:00+10:30",
            &["2024-10-06T02:30+11:00", "2024-10-06T02:40+11:00", "2024-10-07T02:10+11:00"],
        ),
        // 01:30 to 02:00 comes twice on 7 April.
        (
            "hours=1 minutes=20,45 zone=Australia/Lord_Howe",
            "2024-04-06T12:00+11:00",
            &["2024-04-07T01:20+11:00", "2024-04-07T01:45+11:00", "2024-04-08T01:20+10:30"],
        ),
        // Samoa had no 30 December 2011.
        (
            "hours=12 zone=Pacific/Apia",
            "2011-12-29T12:00-10:00",
            &["2011-12-31T00:00+14:00", "2011-12-31T12:00+14:00"],
        ),
        // Midnight itself is skipped in Beirut.
        (
            "days=sun zone=Asia/Beirut",
            "2024-03-30T12:00+02:00",
            &["2024-03-31T01:00+03:00", "2024-04-07T00:00+03:00"],
        ),
        // The same local time all year, by a zone without half or whole hours.
        (
            "hours=3 zone=Asia/Kathmandu",
            "2024-05-06T10:00+05:45",
            &["2024-05-07T03:00+05:45", "2024-05-08T03:00+05:45"],
        ),
        ("hours=2 minutes=30 zone=UTC", "2024-03-30T12:00Z", &["2024-03-31T02:30Z"]),
    ];
    for (text, after, expected) in rows {
        names(text, after, expected);
    }
}

#[test]
fn a_record_without_a_zone_is_read_in_utc_and_an_unknown_zone_is_refused() {
    let in_zone = |zone: Option<&str>| Schedule {
        hours: TimeField::of([3]),
        timezone: zone.map(str::to_owned),
        ..Schedule::default()
    };
    assert_eq!(next_match(&in_zone(None), at("2024-05-06T00:00Z")), Some(at("2024-05-06T03:00Z")));
    for zone in ["Europe/Atlantis", "", "Etc/Unknown", "UTC+2", "../../etc/passwd", "CEST"] {
        let refused = check(&in_zone(Some(zone)));
        assert_eq!(refused, Err(BadSchedule::Zone(zone.into())));
        assert!(refused.unwrap_err().to_string().contains(zone));
        assert_eq!(next_match(&in_zone(Some(zone)), 0), None, "{zone} is not taken for GMT");
    }
    for zone in ["UTC", "GMT", "europe/berlin", "Etc/GMT+2", "US/Eastern"] {
        assert_eq!(check(&in_zone(Some(zone))), Ok(()), "{zone}");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    type Put = fn(&mut Schedule, TimeField);
    let rows: [(&str, Put, [i64; 2]); 6] = [
        ("minutes", |it, field| it.minutes = field, [0, 59]),
        ("hours", |it, field| it.hours = field, [0, 23]),
        ("days", |it, field| it.days = field, [0, 6]),
        ("dates", |it, field| it.dates = field, [0, 30]),
        ("months", |it, field| it.months = field, [0, 11]),
        ("years", |it, field| it.years = field, [1970, 9999]),
    ];
    for (name, put, [least, most]) in rows {
        let checked = |field: TimeField| {
            let mut it = Schedule::default();
            put(&mut it, field);
            check(&it).map_err(|error| error.to_string())
        };
        assert_eq!(checked(TimeField::of([least, most])), Ok(()), "{name}");
        for value in [least - 1, most + 1, i64::MIN, i64::MAX] {
            let refused = checked(TimeField::of([least, value])).unwrap_err();
            assert!(refused.starts_with(&format!("{name} has ")), "{name} {value}: {refused}");
        }
        assert!(checked(TimeField::of([])).is_err(), "{name} without values");
    }
    for (window_ms, ok) in
        [(1, true), (WINDOW_MS_MAX, true), (0, false), (-1, false), (WINDOW_MS_MAX + 1, false)]
    {
        let it = Schedule { window_ms: Some(window_ms), ..Schedule::default() };
        assert_eq!(check(&it).is_ok(), ok, "{window_ms}");
    }
}
