//! `driftline load` as its users meet it: archives into an index, cut off and gone on with.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use store::chunkfile::ChunkKey;
use store::chunkfile::warc::{self, Capture, RecordId};
use store::ids::{NodeId, Part};
use store::tables::leases::{self, LeaseRequest};
use store::testing::{FreshDatabase, skipped};
use store::{Db, clock};

use super::{PROGRAM, Place, assert_trouble, run, said, text};

/// How long a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(50);
/// Between two looks.
const GLANCE: Duration = Duration::from_millis(20);
/// Pages of the long file: some batches, the last of which is not full.
const PAGES: u64 = 24_000;

fn archive(place: &Place, name: &str, urls: &[&str]) -> PathBuf {
    let id = RecordId::of([7; 16], ChunkKey { part: 0, id: 0 }, 0);
    let mut bytes = Vec::new();
    for url in urls {
        let capture = Capture {
            target_uri: url,
            date_ms: 1_769_860_800_000,
            ip: None,
            status: 200,
            headers: &[("content-type", b"text/html")],
            body: b"<a href=https://b.example/>b</a>",
            truncated: false,
        };
        warc::response(&id, &capture).write_to(&mut bytes);
    }
    let path = place.path(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn parsed(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told.matches('\n').count(), 1, "one line: {told}");
    serde_json::from_str(&told).unwrap()
}

#[test]
fn archives_are_loaded_once_and_answer_questions() {
    let place = Place::new();
    let first = archive(&place, "1.warc", &["https://a.example/1", "https://a.example/2"]);
    let second = archive(&place, "2.warc", &["https://c.example/"]);
    let told = place.succeeds(&["load", text(&first), text(&second), text(&first)]);
    let lines: Vec<&str> = told.lines().collect();
    let expected = format!("{}: 2 records, 2 pages with 2 links, 0 gone", text(&first));
    assert_eq!(lines[0], expected, "{told}");
    assert_eq!(lines[1], "    2 pages changed; 2 links new, 0 altered, 0 lost");
    assert_eq!(lines.len(), 4, "a file that is named twice is loaded once: {told}");
    let links = place.succeeds(&["links", "https://b.example/"]);
    assert!(links.contains("3 in-links, not crawled"), "{links}");
    let status = place.succeeds(&["status"]);
    assert!(status.contains("loaded into the link index: 2 files, 3 pages, the last"), "{status}");
    let again = place.succeeds(&["load", text(&second)]);
    assert!(again.contains("already loaded; use --again"), "{again}");
    let json = parsed(&place.run(&["load", text(&second), "--again", "--json"]));
    assert_eq!(json["files"][0]["ended"], "loaded");
    assert_eq!((&json["files"][0]["records"], &json["stopped"]), (&1.into(), &false.into()));
    let external = ["load", text(&first), "--link-policy", "webindex", "--json"];
    assert_eq!(parsed(&place.run(&external))["files"][0]["records"], 2, "another policy");
}

#[test]
fn what_cannot_be_loaded_is_told_before_anything_is_made() {
    let place = Place::new();
    let good = archive(&place, "1.warc", &["https://a.example/1"]);
    let notes = place.path("notes.txt");
    std::fs::write(&notes, "hello").unwrap();
    let missing = place.path("missing.warc");
    assert_trouble(&place.run(&["load", text(&good), text(&missing)]), &["missing.warc"]);
    assert_trouble(&place.run(&["load", text(&good), text(&notes)]), &["notes.txt", "WARC/"]);
    assert_trouble(&place.run(&["load"]), &["<FILE>..."]);
    assert_trouble(&place.run(&["load", text(&good), "--link-policy", "some"]), &["webindex"]);
    assert!(!place.data.exists());
}

#[test]
fn a_damaged_file_is_told_and_the_others_are_loaded() {
    let place = Place::new();
    let damaged = archive(&place, "1.warc", &["https://a.example/1", "https://a.example/2"]);
    let bytes = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, &bytes[..bytes.len() - 20]).unwrap();
    let whole = archive(&place, "2.warc", &["https://c.example/"]);
    let output = place.run(&["load", text(&damaged), text(&whole)]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    for word in [text(&damaged), "record 2, at byte ", "get an intact copy"] {
        assert!(errors.contains(word), "{word}: {errors}");
    }
    let links = place.succeeds(&["links", "https://b.example/"]);
    assert!(links.contains("2 in-links"), "what is before the damage, and the other: {links}");
    let json = place.run(&["load", text(&damaged), text(&whole), "--json"]);
    assert_eq!(json.status.code(), Some(1));
    let json = parsed(&json);
    assert_eq!(json["files"][0]["ended"], "failed");
    assert!(json["files"][0]["error"].as_str().unwrap().contains("record 2"), "{json}");
    assert_eq!(json["files"][1]["ended"], "already loaded");
}

/// Page JSON of many pages, each with links of its own and one that all have.
fn long_file(place: &Place) -> PathBuf {
    let mut lines = String::new();
    for number in 0..PAGES {
        let (site, target) = (number % 300, number % 5_000);
        writeln!(
            lines,
            r#"{{"url":"http://s{site}.com/{number}","crawlDate":"2015-07-28T03:06:17Z","outboundLinks":[
            {{"url":"http://t.org/{target}","anchorText":"t"}},{{"url":"http://all.org/"}}]}}"#
        )
        .unwrap();
    }
    // A page is one line.
    let path = place.path("pages.txt");
    std::fs::write(&path, lines.replace("[\n", "[")).unwrap();
    path
}

/// A load that is killed when the test is over.
struct Loading(Child);

impl Loading {
    fn start(file: &Path, data: &Path) -> Loading {
        Loading::of(&["load", text(file), "--link-policy", "webindex", "--data", text(data)])
    }

    fn of(args: &[&str]) -> Loading {
        let mut command = Command::new(PROGRAM);
        command.args(args).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        Loading(command.spawn().unwrap())
    }

    /// Waits until it has loaded more than so many pages, and asks it itself.
    fn has_loaded(&mut self, data: &Path, pages: u64) {
        let started = Instant::now();
        while loaded_pages(data) <= pages {
            assert!(started.elapsed() < PATIENCE, "nothing is loaded");
            assert_eq!(self.0.try_wait().unwrap(), None, "it has ended");
            std::thread::park_timeout(GLANCE);
        }
    }

    fn ended(mut self) -> Output {
        let stderr = self.0.stderr.take().unwrap();
        let status = self.0.wait().unwrap();
        let stdout = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        let stderr = std::io::read_to_string(stderr).unwrap();
        Output { status, stdout: stdout.into_bytes(), stderr: stderr.into_bytes() }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many pages link to the one that all link to.
fn loaded_pages(data: &Path) -> u64 {
    // It may not listen yet, and then nobody answers.
    let told = run(&["top", "--limit", "1", "--json"], data);
    let json: Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
    json["items"][0]["incount"].as_u64().unwrap_or(0)
}

fn all(data: &Path) -> [String; 2] {
    [&["top", "--csv"], &["domains", "--csv"]].map(|args| said(&run(args, data)))
}

/// Whatever ends a load, the next one goes on behind the last batch and comes to the same.
#[test]
fn a_load_that_is_interrupted_and_killed_comes_to_the_same() {
    let place = Place::new();
    let file = long_file(&place);
    let mut loading = Loading::start(&file, &place.data);
    loading.has_loaded(&place.data, 0);
    loading.0.kill().unwrap();
    drop(loading);
    let at = loaded_pages(&place.data);
    assert!(at > 0 && at < PAGES && at.is_multiple_of(10_000), "whole batches and not all: {at}");

    // From the start, so that there is enough to do until the signal arrives.
    let again = ["load", text(&file), "--link-policy", "webindex", "--again", "--data"];
    let loading = Loading::of(&[&again[..], &[text(&place.data)]].concat());
    let number = loading.0.id().to_string();
    let started = Instant::now();
    while !said(&run(&["status"], &place.data)).contains("(load)") {
        assert!(started.elapsed() < PATIENCE, "it does not begin");
        std::thread::park_timeout(GLANCE);
    }
    assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
    let ended = loading.ended();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    assert!(errors.contains("again to stop at once"), "{errors}");
    assert_eq!(parsed(&ended)["stopped"], true);

    let last = parsed(&Loading::start(&file, &place.data).ended());
    let file_told = &last["files"][0];
    assert_eq!(file_told["ended"], "loaded", "{last}");
    let before = file_told["records_before"].as_u64().unwrap();
    assert!(before > 0 && before.is_multiple_of(10_000), "{last}");
    assert_eq!(file_told["records"], PAGES - before, "{last}");

    let clean = place.path("clean");
    assert_eq!(parsed(&Loading::start(&file, &clean).ended())["files"][0]["records"], PAGES);
    assert_eq!(all(&place.data), all(&clean));
    assert_eq!(loaded_pages(&clean), PAGES);
}

/// Others may work on a database, too: a part that somebody has is waited for, and all are
/// given back.
#[test]
fn a_load_into_a_database_waits_for_whoever_has_a_part() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let place = Place::new();
    let file = archive(&place, "1.warc", &["https://a.example/1", "https://c.example/"]);
    let objects = place.path("objects");
    let to = ["--database", &database.url, "--objects", text(&objects)];
    said(&super::bare(&[&["init", "--parts", "4"], &to[..]].concat()));
    let db = Db::open_postgres(&database.url).unwrap();
    let lease = db
        .write(|tx| {
            let (node_name, now_ms) = ("other".to_owned(), clock::now_ms());
            let asking =
                LeaseRequest { node: NodeId(999), node_name, now_ms, lease_ms: 60_000, skew_ms: 0 };
            leases::take(tx, Part(2), "links", &asking)
        })
        .unwrap()
        .unwrap();
    let mut loading = Loading::of(&[&["load", text(&file)], &to[..]].concat());
    let mut line = String::new();
    BufReader::new(loading.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for it to end"), "{line}");
    db.write(move |tx| leases::release(tx, &lease, true)).unwrap();
    let ended = loading.ended();
    assert_eq!(parsed(&ended)["files"][0]["links_new"], 2, "{ended:?}");
    let count = |sql: &'static str| -> i64 {
        db.read(move |tx| tx.query_one(sql, &[], |row| row.get(0))).unwrap()
    };
    assert_eq!(count("SELECT COUNT(*) FROM leases WHERE deadline_ms <> 0"), 0);
    assert_eq!(count("SELECT COUNT(*) FROM nodes WHERE state <> 'stopped'"), 0);
    let links = said(&super::bare(&[&["links", "https://b.example/"], &to[..2]].concat()));
    assert!(links.contains("2 in-links"), "{links}");
    let again = said(&super::bare(&[&["load", text(&file)], &to[..]].concat()));
    assert!(again.contains("already loaded"), "{again}");
}
