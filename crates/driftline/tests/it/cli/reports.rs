//! Reports, as a person, a script and a spreadsheet meet them.

use serde_json::Value;
use store::ids::{ConnectionId, JobId, Part};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::history::{self, Activity};
use store::tables::jobs::{self, Job};

use super::{Place, assert_trouble, said};

const HOUR_MS: i64 = 3_600_000;

fn parsed(text: &str) -> Value {
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    serde_json::from_str(text).unwrap()
}

fn activity(number: i64, start_ms: i64) -> Activity {
    let result = if number % 10 == 0 { "404" } else { "200" };
    Activity {
        id: number,
        connection: ConnectionId(1),
        job: Some(JobId(1)),
        kind: "fetch".into(),
        entity: format!("http://h{}.example/{number}", number % 3),
        bytes: Some(1_000),
        result: Some(result.into()),
        description: Some("=cmd()".into()),
        start_ms,
        end_ms: start_ms + 25,
    }
}

/// A directory with so many activities, one a second up to two hours ago.
fn with_history(count: i64) -> Place {
    let place = Place::empty();
    let held = place.hold();
    held.db()
        .write(move |tx| {
            let web = Connection::new(ConnectionId(1), "web", "web");
            connections::save(tx, ConnectionKind::Repository, &web, 1)?;
            jobs::save(tx, &Job::new(JobId(1), "site", ConnectionId(1)), 1)?;
            let last_ms = store::clock::now_ms() - 2 * HOUR_MS;
            let start_of = |number: i64| last_ms - (count - number) * 1_000;
            let rows: Vec<Activity> = (1..=count).map(|it| activity(it, start_of(it))).collect();
            history::append(tx, Part(0), &rows)
        })
        .unwrap();
    drop(held);
    place
}

#[test]
fn every_report_answers_with_its_numbers() {
    let place = with_history(50);
    let answer = |args: &[&str]| {
        let answer = parsed(&place.succeeds(&[&["report"], args, &["--json"]].concat()));
        assert_eq!(answer["report"], args[0]);
        answer
    };
    let history = answer(&["history"]);
    assert_eq!((history["rows"].as_array().unwrap().len(), &history["walked"]), (20, &20.into()));
    assert_eq!(history["rows"][0]["identifier"], "http://h2.example/50", "the newest");
    let activity = answer(&["activity", "--window", "10s"]);
    assert_eq!(activity["rows"][0]["activities"], 10);
    assert_eq!(activity["rows"][0]["per_minute"], 60.0);
    let bandwidth = answer(&["bandwidth", "--window", "10s"]);
    assert_eq!(bandwidth["rows"][0]["bytes_per_s"], 1_000.0);
    let results = answer(&["results"]);
    let counts: Vec<&Value> =
        results["rows"].as_array().unwrap().iter().map(|row| &row["activities"]).collect();
    assert_eq!((counts, &results["walked"]), (vec![&45.into(), &5.into()], &0.into()));
    assert_eq!(answer(&["documents"])["rows"], Value::Array(vec![]));
    assert_eq!(answer(&["queue"])["rows"], Value::Array(vec![]));
}

#[test]
fn the_commands_that_go_on_and_back_work() {
    let place = with_history(50);
    let first = place.succeeds(&["report", "history", "--limit", "2", "--match", "h1"]);
    let follow = |said: &str, word: &str| {
        let (_, command) = said.split_once(&format!("{word}: driftline ")).unwrap();
        let command = command.lines().next().unwrap();
        super::said(
            &std::process::Command::new("sh")
                .args(["-c", &format!("{} {command}", super::PROGRAM)])
                .output()
                .unwrap(),
        )
    };
    let urls = |said: &str| -> Vec<String> {
        let is_row = |line: &&str| line.contains("http://");
        let url = |line: &str| {
            line.split("http://").nth(1).unwrap().split(' ').next().unwrap().to_owned()
        };
        said.lines().filter(is_row).map(url).collect()
    };
    assert_eq!(urls(&first), ["h1.example/49", "h1.example/46"]);
    assert!(!first.contains("previous page"), "{first}");
    let second = follow(&first, "next page");
    assert_eq!(urls(&second), ["h1.example/43", "h1.example/40"]);
    assert_eq!(urls(&follow(&second, "previous page")), urls(&first));
}

#[test]
fn a_spreadsheet_gets_all_rows_and_no_formula() {
    let place = with_history(1_500);
    let path = place.path("history.csv");
    let path = path.to_str().unwrap();
    assert_eq!(place.succeeds(&["report", "history", "--csv", path]), "1500 rows written\n");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.matches("\r\n").count(), 1_501);
    let head = "start_ms,activity,result,bytes,time_ms,job,identifier,description\r\n";
    assert!(text.starts_with(head), "{}", &text[..200]);
    assert_eq!(text.matches(",'=cmd()\r\n").count(), 1_500, "T21");
    let some = place.succeeds(&["report", "results", "--csv", "-", "--limit", "1"]);
    assert_eq!(some, "class,result,activities\r\n,200,1350\r\n");
    let both = place.run(&["report", "results", "--csv", "-", "--json"]);
    assert_trouble(&both, &["--json", "--csv"]);
}

#[test]
fn what_cannot_be_asked_is_said_with_what_can() {
    let place = with_history(3);
    let trouble = |args: &[&str], words: &[&str]| {
        assert_trouble(&place.run(&[&["report"], args].concat()), words);
    };
    trouble(&["history", "--sort", "size"], &["\"size\"", "start_ms, activity"]);
    trouble(&["history", "--since", "lately"], &["--since", "2026-01-31"]);
    trouble(&["history", "--match", "("], &["--match", "expression"]);
    trouble(&["history", "--connection", "gone"], &["gone", "connection list"]);
    trouble(&["history", "--job", "gone"], &["gone", "job list"]);
    trouble(&["history", "--cursor", "x"], &["cursor", "--cursor"]);
    trouble(&["documents", "--status", "lost"], &["waiting-forever"]);
    trouble(&["activity", "--window", "0"], &["--window"]);
    place.execute(
        "INSERT INTO connections (id, kind, connectionname, classname, config, maxcount, reindexed,
             version, changed_ms) VALUES (2, 'repository', 'disk', 'files', '{}', 1, 0, 1, 0)",
    );
    trouble(&["history"], &["more than one", "--connection", "disk, web"]);
}

#[test]
fn a_history_is_cleared_and_nothing_else() {
    let place = with_history(2_500);
    let cleared = place.succeeds(&["connection", "clear-history", "web"]);
    assert_eq!(cleared, "repository connection web: 2500 activities deleted\n");
    let left = "SELECT 'x' FROM history UNION ALL SELECT 'y' FROM history_counts";
    assert_eq!(place.texts(left), Vec::<String>::new());
    assert_eq!(place.texts("SELECT name FROM job_definitions"), ["site"]);
    let again = place.succeeds(&["connection", "clear-history", "web"]);
    assert_eq!(again, "nothing changed: it has no history\n");
    let refused = place.run(&["connection", "clear-history", "nowhere"]);
    assert_trouble(&refused, &["no repository connection named nowhere"]);
    assert!(place.succeeds(&["connection", "show", "web"]).contains("history is kept for 90 days"));
}

#[test]
fn a_count_of_the_history_that_lies_is_named() {
    let place = with_history(5);
    assert!(place.run(&["verify"]).status.success());
    place.execute("UPDATE history_counts SET activities = 6 WHERE resultcode = '200'");
    let verified = place.run(&["verify"]);
    let told = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(told.contains("it says 6 activities and 5000 bytes, there are 5 and 5000"), "{told}");
}

#[test]
fn every_command_of_the_guide_to_reports_runs() {
    let told = said(&super::definitions::follow(&Place::new(), "reports.md", 20));
    for words in [
        "job start",
        "document ingest (copy)",
        "previously processed",
        "(all)",
        "history is kept for 30 days",
        "activities deleted",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}
