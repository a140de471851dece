//! When a job starts, goes on or waits: each rule as a row of a table.
//!
//! Times without a day are of Monday, 6 May 2024, in UTC.

use super::{at, schedule, shown, since};
use crate::schedule::StartMethod::{Manual, WindowBegin, WindowInside};
use crate::schedule::*;

/// A question (the time of the last look, now) and its answer: when the window began and
/// ends, and whether the run is minimal.
type Row<'a> = (&'a str, StartMethod, &'a [&'a str], [&'a str; 2], Answer<'a>);
type Answer<'a> = Option<(&'a str, Option<&'a str>, bool)>;

fn may(time: &str) -> i64 {
    at(&format!("2024-05-{}Z", if time.contains('T') { time.into() } else { format!("06T{time}") }))
}

/// Holds [`decide`] against rows.
fn hold(rows: &[Row<'_>]) {
    for (what, method, records, [last, now], expected) in rows {
        let schedules: Vec<Schedule> = records.iter().map(|text| schedule(text)).collect();
        let expected = expected.map(|(at, end, minimal)| Start {
            at_ms: may(at),
            window_end_ms: end.map(may),
            minimal,
        });
        assert_eq!(decide(*method, &schedules, since(may(last)), may(now)), expected, "{what}");
    }
}

/// The answer that a window is open.
fn open<'a>(at: &'a str, end: &'a str) -> Answer<'a> {
    Some((at, Some(end), false))
}

#[test]
fn a_record_without_a_window_starts_what_was_not_looked_for() {
    let (begin, inside) = (WindowBegin, WindowInside);
    let three: &[&str] = &["hours=3"];
    hold(&[
        ("manual never", Manual, three, ["00:00", "10:00"], None),
        ("no record", begin, &[], ["00:00", "10:00"], None),
        ("not yet", begin, three, ["00:00", "02:59:59.999"], None),
        ("at that very instant", begin, three, ["00:00", "03:00"], Some(("03:00", None, false))),
        ("later", begin, three, ["00:00", "10:00"], Some(("03:00", None, false))),
        ("the first of many", begin, three, ["01T00:00", "10:00"], Some(("01T03:00", None, false))),
        ("looked for already", begin, three, ["03:00", "10:00"], None),
        ("nor inside", inside, three, ["03:00", "10:00"], None),
        ("the same inside", inside, three, ["00:00", "10:00"], Some(("03:00", None, false))),
        ("minimal", begin, &["hours=3 minimal"], ["00:00", "10:00"], Some(("03:00", None, true))),
    ]);
}

#[test]
fn a_window_counts_while_it_is_open() {
    let (begin, inside) = (WindowBegin, WindowInside);
    let window: &[&str] = &["hours=3 window=2h"];
    let hourly: &[&str] = &["hours=* window=3h"];
    let is_open = open("03:00", "05:00");
    hold(&[
        ("it begins", begin, window, ["00:00", "03:00"], is_open),
        ("time is left", begin, window, ["00:00", "04:59:59.999"], is_open),
        ("it is over", begin, window, ["00:00", "05:00"], None),
        ("also inside", inside, window, ["00:00", "05:00"], None),
        ("windows that are over are skipped", begin, window, ["01T00:00", "04:00"], is_open),
        ("it began during a run", begin, window, ["03:30", "04:00"], None),
        ("inside starts at once if time remains", inside, window, ["03:30", "04:00"], is_open),
        ("inside, looked for long ago", inside, window, ["01T00:00", "04:00"], is_open),
        ("inside, to its last moment", inside, window, ["04:00", "04:59:59.999"], is_open),
        ("the first still open", begin, hourly, ["00:00", "12:30"], open("10:00", "13:00")),
        ("the first not looked for", begin, hourly, ["11:00", "12:30"], open("12:00", "15:00")),
    ]);
}

#[test]
fn a_job_that_may_start_inside_a_window_runs_once_in_it_unless_it_is_to_be_repeated() {
    let once = [schedule("hours=3 window=2h")];
    let again = [schedule("hours=3 window=2h repeat=30min")];
    // When the last run ended, and now: the instant whose window it starts in.
    let started = |records: &[Schedule], ran, now| {
        let since = Since { last_ms: may(ran), ran_ms: Some(may(ran)) };
        decide(WindowInside, records, since, may(now)).map(|it| shown(it.at_ms))
    };
    let three = Some(shown(may("03:00")));
    assert_eq!(started(&once, "02:59", "03:00"), three, "it ended before");
    assert_eq!(started(&once, "03:00:01", "03:00:02"), None, "it has run in this window");
    assert_eq!(started(&once, "03:00:01", "07T03:00"), Some(shown(may("07T03:00"))));
    assert_eq!(started(&again, "03:10", "03:39:59"), None, "not so soon");
    assert_eq!(started(&again, "03:10", "03:40"), three);
    assert_eq!(started(&again, "04:40", "05:10"), None, "the window is over");
    let event = |records: &[Schedule], ran, now| {
        let since = Since { last_ms: may(ran), ran_ms: Some(may(ran)) };
        next_event(WindowInside, records, since, may(now)).map(shown)
    };
    assert_eq!(event(&once, "03:10", "03:10"), Some(shown(may("07T03:00"))));
    assert_eq!(event(&again, "03:10", "03:10"), Some(shown(may("03:40"))));
    assert_eq!(event(&again, "04:40", "04:40"), Some(shown(may("07T03:00"))));
}

#[test]
fn of_several_records_the_one_with_most_time_wins() {
    let asked = ["00:00", "04:00"];
    let three: &[&str] =
        &["hours=3 window=2h minimal", "hours=1 window=8h", "hours=2 window=4h minimal"];
    let even: &[&str] = &["hours=3 window=2h minimal", "hours=2 window=3h"];
    let without_first: &[&str] = &["hours=2 minimal", "hours=3 window=20h"];
    let without_last: &[&str] = &["hours=3 window=20h", "hours=2 minimal"];
    let both_without: &[&str] = &["hours=2 minimal", "hours=1"];
    let one_matches: &[&str] = &["hours=5", "hours=3 window=2h"];
    let end = Some("05:00");
    hold(&[
        ("the window that ends last", WindowBegin, three, asked, open("01:00", "09:00")),
        ("ends are even: the first", WindowBegin, even, asked, Some(("03:00", end, true))),
        (
            "none wins over a later one",
            WindowBegin,
            without_first,
            asked,
            Some(("02:00", None, true)),
        ),
        ("and over an earlier one", WindowBegin, without_last, asked, Some(("02:00", None, true))),
        ("two without: the later", WindowBegin, both_without, asked, Some(("01:00", None, false))),
        ("no match takes no part", WindowBegin, one_matches, asked, open("03:00", "05:00")),
    ]);
}

#[test]
fn past_its_window_a_job_waits_for_the_next_one() {
    let records = [schedule("hours=3 window=2h")];
    for method in [WindowBegin, WindowInside] {
        let event = |last, now| next_event(method, &records, since(may(last)), may(now)).map(shown);
        assert_eq!(event("00:00", "01:00"), Some(shown(may("03:00"))), "the window opens");
        assert_eq!(event("00:00", "03:00"), Some(shown(may("05:00"))), "the window closes");
        assert_eq!(event("00:00", "05:00"), Some(shown(may("07T03:00"))), "the next one");
        let resumed = decide(method, &records, since(may("00:00")), may("07T03:00"));
        assert_eq!(resumed.and_then(|it| it.window_end_ms), Some(may("07T05:00")));
    }
    assert_eq!(next_event(Manual, &records, since(0), 0), None);
    let ever = [schedule("hours=3")];
    let event = |last| next_event(WindowBegin, &ever, since(may(last)), may("04:00"));
    assert_eq!(event("00:00"), None, "it is due");
    assert_eq!(event("04:00"), Some(may("07T03:00")));
}

#[test]
fn a_start_at_the_instant_of_the_last_look_is_not_lost() {
    let records = [schedule("hours=3")];
    let mut last_ms = may("02:00");
    let mut starts = Vec::new();
    // Whoever looks in between moves `last`; one look falls on the very instant.
    for now in ["02:30", "03:00", "03:00", "03:00:00.001", "07T02:59:59.999", "07T03:00"] {
        starts.extend(decide(WindowBegin, &records, since(last_ms), may(now)).map(|it| it.at_ms));
        last_ms = may(now);
    }
    assert_eq!(starts, [may("03:00"), may("07T03:00")]);
}

#[test]
fn the_next_runs_are_foretold() {
    let records =
        [schedule("hours=3,15"), schedule("days=tue hours=3 window=1h"), schedule("years=2020")];
    let runs = |method, last, now, count| -> Vec<String> {
        let found = next_runs(method, &records, since(may(last)), may(now), count);
        found.into_iter().map(shown).collect()
    };
    let expected =
        |times: &[&str]| -> Vec<String> { times.iter().map(|it| shown(may(it))).collect() };
    let five = ["15:00", "07T03:00", "07T15:00", "08T03:00", "08T15:00"];
    assert_eq!(runs(WindowBegin, "10:00", "10:00", 5), expected(&five));
    let due = ["10:00", "15:00", "07T03:00"];
    assert_eq!(runs(WindowBegin, "01:00", "10:00", 3), expected(&due), "one is due already");
    let window_open = ["07T03:20", "07T15:00"];
    assert_eq!(runs(WindowInside, "07T03:10", "07T03:20", 2), expected(&window_open));
    assert_eq!(runs(WindowBegin, "07T03:10", "07T03:20", 1), expected(&["07T15:00"]));
    assert_eq!(runs(Manual, "01:00", "10:00", 5), expected(&[]));
    assert_eq!(runs(WindowBegin, "01:00", "10:00", 0), expected(&[]));
    let once = [schedule("years=2030")];
    assert_eq!(next_runs(WindowBegin, &once, since(0), may("00:00"), 5), [at("2030-01-01T00:00Z")]);
    let often = [schedule("minutes=*")];
    assert_eq!(next_runs(WindowBegin, &often, since(0), 0, usize::MAX).len(), RUNS_MAX);
}
