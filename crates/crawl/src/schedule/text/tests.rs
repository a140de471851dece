//! The text form of schedules: what is read, what is refused and why, and that what is
//! printed is read as the same.

use super::super::tests::schedules;
use super::*;
use proptest::prelude::*;

#[test]
fn a_schedule_is_read_as_people_write_it() {
    let read = parse("hours=3 minutes=0,30 days=mon-fri zone=Europe/Berlin window=2h minimal");
    let expected = Schedule {
        hours: TimeField::of([3]),
        minutes: TimeField::of([0, 30]),
        days: TimeField::of(1..=5),
        timezone: Some("Europe/Berlin".into()),
        window_ms: Some(2 * 3_600_000),
        minimal: true,
        ..Schedule::default()
    };
    assert_eq!(read, Ok(expected));
    let read = parse("  months=Jan,december,3\tdates=1,15-17 years=2030 minutes=* ").unwrap();
    let expected = Schedule {
        months: TimeField::of([0, 2, 11]),
        dates: TimeField::of([0, 14, 15, 16]),
        years: TimeField::of([2030]),
        minutes: TimeField::Any,
        ..Schedule::default()
    };
    assert_eq!(read, expected);
}

#[test]
fn one_schedule_has_one_printed_form() {
    let rows = [
        ("hours=3", "hours=3 zone=UTC"),
        ("zone=utc", "zone=UTC"),
        ("minimal window=90m zone=europe/berlin", "zone=Europe/Berlin window=1h30min minimal"),
        ("hours=3 window=10min", "hours=3 zone=UTC window=10min"),
        ("window=1week2days3hours repeat=90secs", "zone=UTC window=9d3h repeat=1min30s"),
        ("days=sunday,sat,sun", "days=sun,sat zone=UTC"),
        ("days=fri-mon", "days=sun,mon,fri,sat zone=UTC"),
        ("days=*", "days=* zone=UTC"),
        ("months=nov-feb hours=22-1", "hours=0,1,22,23 months=jan,feb,nov,dec zone=UTC"),
        ("dates=30,31,29 minutes=0-59", "minutes=0-59 dates=29-31 zone=UTC"),
        ("years=2030,2028-2029,2040", "years=2028-2030,2040 zone=UTC"),
        ("window=1d1ms hours=00,07", "hours=0,7 zone=UTC window=1d1ms"),
    ];
    for (text, printed) in rows {
        let read = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(print(&read), printed, "{text}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    let long = format!("hours={}", "1,".repeat(TEXT_BYTES_MAX));
    let overlapping = format!("years={}", ["1970-9999"; 3].join(","));
    let rows = [
        ("", "must say when"),
        ("  ", "must say when"),
        ("daily", "\"daily\" is not understood"),
        ("hour=3", "\"hour=3\" is not understood"),
        ("hours", "\"hours\" is not understood"),
        ("minimal=yes", "\"minimal=yes\" is not understood"),
        ("hours=3 hours=4", "hours is given twice"),
        ("zone=UTC zone=UTC", "zone is given twice"),
        ("window=1h window=1h", "window is given twice"),
        ("hours=", "hours has no value"),
        ("hours=24", "hours has 24, but must be from 0 to 23"),
        ("minutes=60", "minutes has 60"),
        ("dates=0", "dates has 0, but must be from 1 to 31"),
        ("months=13", "months has 13, but must be from 1 to 12"),
        ("years=1969", "years has 1969, but must be from 1970 to 9999"),
        ("hours=-3", "hours has \"\""),
        ("hours=3,,4", "hours has \"\""),
        ("hours=+3", "hours has \"+3\""),
        ("hours=99999999999999999999", "hours has \"99999999999999999999\""),
        ("days=15", "dates=15 is the 15th"),
        ("days=mo", "days has \"mo\""),
        ("days=mondays", "days has \"mondays\""),
        ("days=mön", "days has \"mön\""),
        ("months=ju", "a month, such as feb"),
        ("years=2031-2030", "the earlier first"),
        ("zone=Europe/Atlantis", "\"Europe/Atlantis\""),
        ("zone", "there is no time zone"),
        ("window=2", "window has \"2\""),
        ("window=", "window has \"\""),
        ("window=2 h", "window has \"2\""),
        ("window=h", "window has \"h\""),
        ("window=2x", "window has \"2x\""),
        ("window=0h", "longer than zero"),
        ("hours=3 repeat=10min", "give window too"),
        ("hours=3 window=1h repeat=0s", "the time after a run"),
        ("window=3661d", "at most 3660d"),
        ("window=99999999999999999d", "window has"),
        ("dates=30 months=feb", "a day that does not exist"),
        (long.as_str(), "longer than"),
        (overlapping.as_str(), "overlap"),
    ];
    for (text, reason) in rows {
        let refused = parse(text).expect_err(text).to_string();
        assert!(refused.contains(reason), "{text}: {refused}");
        assert!(refused.len() < 250, "{refused}");
    }
}

#[test]
fn the_example_that_messages_show_is_read() {
    assert_eq!(print(&parse(EXAMPLE).unwrap()), EXAMPLE);
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(it in schedules()) {
        let text = print(&it);
        let zone = it.timezone.clone().unwrap_or_else(|| "UTC".into());
        let read = parse(&text);
        prop_assert_eq!(&read, &Ok(Schedule { timezone: Some(zone), ..it }), "{}", &text);
        prop_assert_eq!(print(&read.unwrap()), text);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "((hours|minutes|days|dates|months|years|zone|window|minimal)=?[-,*0-9a-z]{0,9} ?){0,4}|.{0,40}",
    ) {
        if let Ok(read) = parse(&text) {
            prop_assert_eq!(check(&read), Ok(()));
            prop_assert_eq!(print(&parse(&print(&read)).unwrap()), print(&read));
        }
    }
}
