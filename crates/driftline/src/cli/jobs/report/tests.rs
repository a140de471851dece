//! Each report is what a plain computation over the same rows is, on both databases.

use super::*;
use crate::verbs::Verb;
use crate::verbs::jobs::report::columns::Report;
use crate::verbs::jobs::report::selection::Row;
use crate::verbs::jobs::report::{ROWS_MAX, RowOrder};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use store::Db;
use store::ids::{ConnectionId, JobId, Part};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::history::{self as table, Activity};
use store::tables::jobs::{self, Job};
use store::tables::settings;
use store::testing::both_databases;

const WEB: ConnectionId = ConnectionId(1);
const HOUR_MS: i64 = 3_600_000;
/// Long ago, so that all of it is before now.
const BEGIN_MS: i64 = 400_000 * HOUR_MS;

fn prepare(db: &Db) -> store::Result<()> {
    db.write(|tx| {
        settings::freeze(tx, 2)?;
        connections::save(tx, ConnectionKind::Repository, &Connection::new(WEB, "web", "web"), 1)?;
        jobs::save(tx, &Job::new(JobId(1), "one", WEB), 1)?;
        jobs::save(tx, &Job::new(JobId(2), "two", WEB), 1)
    })
}

fn some_activity() -> impl Strategy<Value = Activity> {
    let start = prop_oneof![BEGIN_MS..BEGIN_MS + 3 * HOUR_MS, BEGIN_MS..BEGIN_MS + 60_000];
    let bytes = prop::option::of(0..5_000_i64);
    let result = prop::option::of(prop::sample::select(vec!["200", "404", "503", "dns"]));
    let kind = prop::sample::select(vec!["fetch", "read document", "job start"]);
    (start, bytes, result, kind, 0..3_i64, 0..4_i64).prop_map(
        |(start_ms, bytes, result, kind, job, host)| Activity {
            id: 0,
            connection: WEB,
            job: Some(JobId(job)).filter(|job| job.0 > 0),
            kind: kind.to_owned(),
            entity: format!("http://h{host}.example/{}", start_ms % 10),
            bytes,
            result: result.map(str::to_owned),
            description: bytes.map(|bytes| format!("{bytes} bytes")),
            start_ms,
            end_ms: start_ms + 7,
        },
    )
}

/// What is asked of each set of rows.
fn some_ask() -> impl Strategy<Value = ReportRequest> {
    let kinds = prop::sample::subsequence(vec!["fetch", "job start"], 0..=1);
    let moment = || prop::option::of(BEGIN_MS..BEGIN_MS + 3 * HOUR_MS);
    let result = prop::option::of(prop::sample::select(vec!["^[45]", "^$", "0"]));
    let matching = prop::option::of(prop::sample::select(vec!["h[12]", "/3$"]));
    let class = prop::option::of(prop::sample::select(vec!["//([^/]+)", "h1", "(/[1-4])$"]));
    let jobs = prop::sample::subsequence(vec!["one", "two"], 0..=2);
    let window = prop::sample::select(vec![1, 1_000, 300_000, HOUR_MS]);
    (kinds, moment(), moment(), result, matching, class, jobs, window).prop_map(
        |(kinds, since_ms, until_ms, result, matching, class, jobs, window_ms)| ReportRequest {
            activity: kinds.into_iter().map(str::to_owned).collect(),
            since_ms,
            until_ms,
            result: result.map(str::to_owned),
            matching: matching.map(str::to_owned),
            class: class.map(str::to_owned),
            job: jobs.into_iter().map(str::to_owned).collect(),
            window_ms,
            ..ReportRequest::default()
        },
    )
}

/// The rows that a question is about, by time.
fn plain<'r>(ask: &ReportRequest, rows: &'r [Activity]) -> Vec<&'r Activity> {
    let matches = |expression: &Option<String>, text: &str| {
        expression.as_ref().is_none_or(|it| regex::Regex::new(it).unwrap().is_match(text))
    };
    let job = |it: &Activity| match it.job {
        Some(JobId(1)) => "one",
        Some(JobId(2)) => "two",
        _ => "",
    };
    let mut found: Vec<&Activity> = rows
        .iter()
        .filter(|it| it.start_ms >= ask.since_ms.unwrap_or(i64::MIN))
        .filter(|it| it.start_ms < ask.until_ms.unwrap_or(i64::MAX))
        .filter(|it| ask.activity.is_empty() || ask.activity.contains(&it.kind))
        .filter(|it| ask.job.is_empty() || ask.job.iter().any(|name| name == job(it)))
        .filter(|it| matches(&ask.result, it.result.as_deref().unwrap_or_default()))
        .filter(|it| matches(&ask.matching, &it.entity))
        .collect();
    found.sort_by_key(|it| (it.start_ms, it.id));
    found
}

fn class_of(ask: &ReportRequest, text: &str) -> String {
    let Some(expression) = &ask.class else { return String::new() };
    let expression = regex::Regex::new(expression).unwrap();
    let Some(found) = expression.captures(text) else { return String::new() };
    let group = if expression.captures_len() > 1 { 1 } else { 0 };
    found.get(group).map_or(String::new(), |it| it.as_str().to_owned())
}

/// All rows of a report, page after page; and back again.
fn all(db: &Db, ask: &ReportRequest) -> Vec<Row> {
    let context = VerbContext::of_rows(db.clone());
    let page = |cursor: Option<String>| {
        Reports::answer(&context, ReportRequest { cursor, limit: Some(7), ..ask.clone() }).unwrap()
    };
    let (mut found, mut last) = (Vec::new(), page(None));
    assert_eq!(last.previous, None);
    loop {
        found.extend(last.rows.clone());
        match last.next.clone() {
            Some(next) => last = page(Some(next)),
            None => break,
        }
    }
    let mut back: Vec<Row> = last.rows.into_iter().rev().collect();
    let mut previous = last.previous;
    while let Some(cursor) = previous {
        let page = page(Some(cursor));
        back.extend(page.rows.into_iter().rev());
        previous = page.previous;
    }
    back.reverse();
    assert_eq!(back, found, "the way back has the same rows");
    found
}

/// Pairs of names and numbers, for comparing.
fn pairs(rows: &[Row], names: &[&str], number: &str) -> BTreeMap<Vec<String>, i64> {
    let text = |row: &Row, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.iter()
        .map(|row| {
            let key = names.iter().map(|name| text(row, name)).collect();
            (key, row[number].as_i64().unwrap())
        })
        .collect()
}

fn check(db: &Db, ask: &ReportRequest, rows: &[Activity]) -> Result<(), TestCaseError> {
    let found = plain(ask, rows);
    // One by one, by time and by another column.
    let sorts = ["identifier", "bytes", "result", "job", "activity", "description", "time_ms"];
    for sort in sorts.map(Some).into_iter().chain([None]) {
        let ask = ReportRequest {
            report: Report::History,
            sort: sort.map(str::to_owned),
            order: Some(RowOrder::Asc),
            ..ask.clone()
        };
        let listed = all(db, &ask);
        let mut expected: Vec<&Activity> = found.clone();
        match sort {
            Some("identifier") => expected.sort_by_key(|it| (&it.entity, it.start_ms, it.id)),
            Some("bytes") => expected.sort_by_key(|it| (it.bytes, it.start_ms, it.id)),
            Some("result") => expected.sort_by_key(|it| (&it.result, it.start_ms, it.id)),
            Some("job") => expected.sort_by_key(|it| (it.job, it.start_ms, it.id)),
            Some("activity") => expected.sort_by_key(|it| (&it.kind, it.start_ms, it.id)),
            Some("description") => {
                expected.sort_by_key(|it| (&it.description, it.start_ms, it.id));
            }
            // All took equally long.
            _ => {}
        }
        let starts: Vec<i64> = listed.iter().map(|row| row["start_ms"].as_i64().unwrap()).collect();
        prop_assert_eq!(starts, expected.iter().map(|it| it.start_ms).collect::<Vec<_>>());
        let entities: Vec<&Json> = listed.iter().map(|row| &row["identifier"]).collect();
        let expected: Vec<Json> = expected.iter().map(|it| json!(it.entity)).collect();
        prop_assert_eq!(entities, expected.iter().collect::<Vec<_>>());
    }
    // Counted by result.
    let mut counts: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for it in &found {
        let key = vec![class_of(ask, &it.entity), it.result.clone().unwrap_or_default()];
        *counts.entry(key).or_default() += 1;
    }
    let listed = all(db, &ReportRequest { report: Report::Results, ..ask.clone() });
    prop_assert_eq!(pairs(&listed, &["class", "result"], "activities"), counts);
    // The best window of each class begins at one of its activities.
    for (report, amount) in [(Report::Activity, "activities"), (Report::Bandwidth, "bytes")] {
        let mut best: BTreeMap<Vec<String>, i64> = BTreeMap::new();
        for first in &found {
            let class = class_of(ask, &first.entity);
            let end_ms = first.start_ms + ask.window_ms;
            let inside = found.iter().filter(|it| class_of(ask, &it.entity) == class);
            let inside = inside.filter(|it| (first.start_ms..end_ms).contains(&it.start_ms));
            let sum: i64 = match report {
                Report::Activity => inside.count() as i64,
                _ => inside.map(|it| it.bytes.unwrap_or(0)).sum(),
            };
            let entry = best.entry(vec![class]).or_insert(sum);
            *entry = sum.max(*entry);
        }
        let listed = all(db, &ReportRequest { report, ..ask.clone() });
        prop_assert_eq!(pairs(&listed, &["class"], amount), best);
    }
    Ok(())
}

#[test]
fn each_report_of_the_history_is_what_a_plain_computation_says() {
    let rows = prop::collection::vec(some_activity(), 0..40);
    let asks = prop::collection::vec(some_ask(), 1..4);
    both_databases(|db| {
        prepare(db)?;
        let next = AtomicI64::new(1);
        let config = Config { cases: 12, failure_persistence: None, ..Config::default() };
        let outcome = TestRunner::new(config).run(&(&rows, &asks), |(mut rows, asks)| {
            while table::step(db, WEB, i64::MAX, 1_000).unwrap() > 0 {}
            for it in &mut rows {
                it.id = next.fetch_add(1, Ordering::Relaxed);
            }
            for part in [0, 1] {
                let of_part: Vec<Activity> =
                    rows.iter().filter(|it| it.id % 2 == part).cloned().collect();
                db.write(move |tx| table::append(tx, Part(part), &of_part)).unwrap();
            }
            asks.iter().try_for_each(|ask| check(db, ask, &rows))
        });
        outcome.map_err(|error| store::Error::Refused(error.to_string()))
    });
}

/// A tenth of what is measured: nothing is looked at that need not be.
#[test]
fn a_long_history_is_looked_at_within_bounds() {
    const ROWS: i64 = 100_000;
    both_databases(|db| {
        prepare(db)?;
        for first in (0..ROWS).step_by(5_000) {
            let rows: Vec<Activity> = (first..first + 5_000)
                .map(|number| Activity {
                    id: number,
                    connection: WEB,
                    job: Some(JobId(1)),
                    kind: "fetch".to_owned(),
                    entity: format!("http://h{}.example/{number}", number % 50),
                    bytes: Some(number % 100),
                    result: Some(if number % 4 == 0 { "404" } else { "200" }.to_owned()),
                    description: None,
                    start_ms: BEGIN_MS + number * 100,
                    end_ms: BEGIN_MS + number * 100,
                })
                .collect();
            db.write(move |tx| table::append(tx, Part(first / 5_000 % 2), &rows))?;
        }
        let context = VerbContext::of_rows(db.clone());
        let ask = |ask: &ReportRequest| Reports::answer(&context, ask.clone());
        let of = |report| ReportRequest { report, window_ms: 60_000, ..ReportRequest::default() };
        let page = ask(&of(Report::History)).unwrap();
        assert_eq!((page.walked, page.rows.len()), (20, 20));
        let results = ask(&of(Report::Results)).unwrap();
        assert_eq!(results.walked, 0, "they are counted already");
        assert_eq!(results.rows[0]["activities"], ROWS / 4 * 3);
        // What has to be read is read as far back as is allowed.
        let hosts = ReportRequest { class: Some("//([^/]+)".into()), ..of(Report::Activity) };
        let newest = ask(&hosts).unwrap();
        let reach_ms = BEGIN_MS + (ROWS - ROWS_MAX as i64 - 1) * 100 + 1;
        assert_eq!((newest.walked, newest.since_ms), (ROWS_MAX, Some(reach_ms)));
        assert_eq!(newest.rows[0]["activities"], 12);
        // A time that was asked for is answered for as a whole, or not at all.
        let long = ReportRequest { since_ms: Some(BEGIN_MS), ..hosts };
        let refused = ask(&long).unwrap_err().to_string();
        assert!(refused.contains("25000") && refused.contains("--whole"), "{refused}");
        let whole = ask(&ReportRequest { whole: true, ..long.clone() }).unwrap();
        assert_eq!((whole.walked, whole.rows.len()), (ROWS as u64, 20));
        let short = ReportRequest { since_ms: Some(BEGIN_MS + 9_000_000), ..long };
        assert_eq!(ask(&short).unwrap().walked, 10_000);
        // A search that finds nothing ends, and says where it goes on.
        let mut search = ReportRequest { matching: Some("never".into()), ..of(Report::History) };
        let mut walked = 0;
        loop {
            let page = ask(&search).unwrap();
            assert!(page.walked <= ROWS_MAX + 2_000 && page.rows.is_empty());
            walked += page.walked;
            match page.next {
                Some(next) => search.cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(walked, ROWS as u64);
        Ok(())
    });
}

/// Documents of two jobs, in both parts.
fn fill_queue(db: &Db) -> store::Result<()> {
    use store::ids::{BinId, Run};
    use store::tables::queue::{self, AddContext, Candidate, Place, ReasonCode};
    use store::testing::candidate;
    db.write(|tx| {
        for number in 0..90_i64 {
            let host = format!("h{}.example", number % 4);
            let candidate = Candidate {
                bin: BinId(number % 4),
                priority: 0.5,
                hops: 1,
                cut: [None, Some(ReasonCode::Hops), Some(ReasonCode::Robots)][number as usize % 3],
                ..candidate(number, format!("http://{host}/{number}"), &host)
            };
            let place = Place { part: Part(number % 2), job: JobId(1 + number % 5 / 4) };
            let adding = AddContext {
                place,
                run: Run(1),
                now_ms: 1,
                room: None,
                requisites: Default::default(),
            };
            queue::add(tx, adding, &[candidate])?;
        }
        Ok(())
    })
}

#[test]
fn documents_are_listed_and_counted_alike_by_every_filter() {
    both_databases(|db| {
        prepare(db)?;
        fill_queue(db)?;
        let listed = |ask: &ReportRequest| {
            all(db, &ReportRequest { report: Report::Documents, ..ask.clone() })
        };
        assert_eq!(listed(&ReportRequest::default()).len(), 90);
        let words = |list: &[&str]| -> Vec<String> { list.iter().map(|it| (*it).into()).collect() };
        let asks = [
            ReportRequest::default(),
            ReportRequest { job: words(&["two"]), ..ReportRequest::default() },
            ReportRequest { status: words(&["hopcount exceeded"]), ..ReportRequest::default() },
            ReportRequest {
                state: words(&["out of scope"]),
                status: words(&["inactive"]),
                ..ReportRequest::default()
            },
            ReportRequest { matching: Some("h[13]".into()), ..ReportRequest::default() },
            ReportRequest {
                class: Some("//([^/]+)".into()),
                job: words(&["one", "two"]),
                ..ReportRequest::default()
            },
        ];
        for ask in asks {
            let mut counts: BTreeMap<(String, String), i64> = BTreeMap::new();
            for row in listed(&ask) {
                let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                let class = class_of(&ask, &text("identifier"));
                *counts.entry((class, text("status").replace(' ', "_"))).or_default() += 1;
            }
            let mut counted = BTreeMap::new();
            for row in all(db, &ReportRequest { report: Report::Queue, ..ask.clone() }) {
                let class = row["class"].as_str().unwrap_or_default().to_owned();
                let numbers =
                    row.iter().filter(|(name, _)| !["class", "documents"].contains(&name.as_str()));
                for (status, count) in numbers.filter(|(_, count)| **count != 0) {
                    counted.insert((class.clone(), status.clone()), count.as_i64().unwrap());
                }
            }
            assert_eq!(counted, counts, "{ask:?}");
            // Any order has the same documents.
            let mut sorted =
                listed(&ReportRequest { sort: Some("identifier".into()), ..ask.clone() });
            let names: Vec<String> =
                sorted.iter().map(|row| row["identifier"].to_string()).collect();
            assert!(names.is_sorted());
            let mut plain = listed(&ask);
            plain.sort_by_key(|row| row["identifier"].to_string());
            sorted.sort_by_key(|row| row["identifier"].to_string());
            assert_eq!(sorted, plain);
        }
        Ok(())
    });
}
