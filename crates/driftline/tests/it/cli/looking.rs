//! The verbs that look at a crawl, as a person and as a script meets them: on a
//! directory that nobody holds, that somebody holds, and on one that is not well.

use std::sync::Arc;

use page::domain::SuffixList;
use page::ids::part_of;
use serde_json::Value;
use store::ids::{BinId, ConnectionId, Part};
use store::objects::{Location, Objects};
use store::socket;
use store::tables::bins::{self, Visit};
use store::tables::jobs::{self, Job};
use store::testing::{SAMPLE_JOB, commit_sample};

use super::{Place, assert_trouble, said};

/// The site; its first two documents are done, the third is ready.
const SITE: &str = "http://example.com/";

/// A document of the site, as `commit_sample` names it.
fn document(number: i64) -> String {
    format!("{SITE}{}", (part().0 + 1) * 1_000_000 + number)
}

fn part() -> Part {
    let domain = SuffixList::bundled().grouping_domain("example.com");
    Part(part_of(Some(domain), SITE, 4).into())
}

/// A directory with a job that a crawl has worked on.
fn site() -> Place {
    let place = Place::empty();
    let held = place.hold();
    let objects = Objects::open(&Location::Directory(held.layout().objects())).unwrap();
    commit_sample(held.db(), &objects, part(), 0).unwrap();
    let job = Job {
        docspec: format!("{{\"seeds\": [\"{SITE}\"]}}"),
        ..Job::new(SAMPLE_JOB, "example", ConnectionId(1))
    };
    let visit = Visit {
        bin: BinId(page::ids::bin_of("example.com")),
        next_ms: 5,
        delay_ms: Some(1_000),
        failures: 0,
        blocked_ms: None,
        blocked_by: None,
        fetches: 4,
        errors: 1,
        bytes: 2_500,
        busy_ms: 80,
    };
    held.db()
        .write(move |tx| {
            jobs::save(tx, &job, 1)?;
            bins::visited(tx, part(), std::slice::from_ref(&visit))
        })
        .unwrap();
    drop(held);
    place
}

fn parsed(text: &str) -> Value {
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn assert_keys(value: &Value, expected: &[&str]) {
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_person_reads_what_a_crawl_has_done() {
    let place = site();
    let status = place.succeeds(&["status"]);
    assert!(status.contains("example: not yet run\n    3 documents: 1 ready, 2 done"), "{status}");

    let urls = place.succeeds(&["documents"]);
    let states: Vec<&str> = urls.lines().filter_map(|it| it.split_whitespace().next()).collect();
    assert_eq!(states, ["done", "done", "ready"], "{urls}");
    assert_eq!(
        place.succeeds(&["documents", "--state", "failed"]),
        "no matching document in job example\n"
    );

    let host = place.succeeds(&["hosts", "example.com"]);
    assert!(host.contains("3 documents, 4 fetches, 1 error"), "{host}");
    assert!(host.contains("can be requested now"), "{host}");

    let why = place.succeeds(&["why", &document(2)]);
    assert!(
        why.contains("(job example)\n    It is ready to be fetched, but no process is crawling"),
        "{why}"
    );
    let command = format!("driftline crawl --job example --data {}", place.data.display());
    assert!(why.contains(&command), "{command:?} is not in {why}");
}

#[test]
fn a_list_goes_on_where_it_ended() {
    let place = site();
    let (mut urls, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["documents", "--limit", "1", "--json"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let page = parsed(&place.succeeds(&args));
        urls.extend(page["urls"].as_array().unwrap().iter().map(|it| it["url"].clone()));
        match page["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(urls, [0, 1, 2].map(document));
    // The command that is printed to go on is one that works.
    let shown = place.succeeds(&["documents", "--limit", "2"]);
    let (_, command) = shown.split_once("next page: driftline ").unwrap();
    let args: Vec<&str> = command.split_whitespace().collect();
    let rest = said(&super::bare(&args));
    assert!(rest.starts_with("ready") && rest.lines().count() == 1, "{rest}");
}

#[test]
fn scripts_rely_on_these_keys() {
    let place = site();
    let answer = |args: &[&str]| parsed(&place.succeeds(&[args, &["--json"]].concat()));

    let why = answer(&["why", &document(0)]);
    assert_eq!(why["answers"][0]["code"], "done");
    let doctor = answer(&["doctor"]);
    assert_keys(&doctor, &["checks", "failed", "readers"]);
    assert_keys(&doctor["readers"], &["attempts", "walls"]);
    assert_keys(&doctor["checks"][0], &["name", "next", "verdict", "what", "why"]);
    assert!(doctor["checks"].as_array().unwrap().len() >= 15);
}

#[test]
fn the_process_that_holds_the_directory_answers() {
    let place = site();
    let held = place.hold();
    let answering = |question: socket::SocketRequest| match question.verb.as_str() {
        "documents" => {
            Ok(serde_json::json!({"job": "x", "urls": [], "walked": 7, "cursor": "next\u{1b}"}))
        }
        "why" => Err("it is busy".to_owned()),
        verb => Err(format!("there is no verb {verb:?}")),
    };
    let listening = socket::listen(held.layout(), Arc::new(answering)).unwrap();
    let urls = place.succeeds(&["documents", "--state", "cut"]);
    assert!(urls.contains("7 documents checked"), "{urls}");
    assert!(urls.contains("--job x --state cut"), "{urls}");
    assert!(!urls.contains('\u{1b}'), "{urls}");
    assert_trouble(&place.run(&["why", SITE]), &["it is busy"]);
    drop(listening);
    // Held, but nobody listens: what is stored can still be read.
    assert_eq!(place.succeeds(&["documents"]).lines().count(), 3);
    place.succeeds(&["hosts"]);
    place.succeeds(&["doctor"]);
}

#[test]
fn what_cannot_be_answered_says_what_to_do() {
    let place = Place::empty();
    assert_trouble(&place.run(&["documents"]), &["no job yet", "driftline crawl URL"]);
    assert!(place.succeeds(&["why", "a.example"]).contains("Crawl it: driftline crawl"));
    assert_eq!(place.succeeds(&["hosts"]), "no job has visited a host yet\n");
    let unknown = place.run(&["hosts", "nobody.example"]);
    assert_eq!(unknown.status.code(), Some(1), "it is a no, not a failure");
    let site = site();
    assert_trouble(
        &site.run(&["documents", "--job", "x"]),
        &["no job named x", "driftline status"],
    );
    assert_trouble(&site.run(&["documents", "--cursor", "!"]), &["cursor", "without --cursor"]);
    assert_trouble(&site.run(&["documents", "--state", "lost"]), &["lost", "ready, waiting"]);
    assert_trouble(&site.run(&["documents", "--limit", "0"]), &["0", "--limit"]);
    assert_trouble(&site.run(&["hosts", "--by", "name"]), &["documents", "errors", "slowest"]);
}

#[test]
fn a_doctor_finds_what_is_broken_and_says_so_with_its_exit_code() {
    let place = site();
    let well = place.succeeds(&["doctor"]);
    assert!(well.contains("0 failed"), "{well}");
    place.execute("UPDATE counters SET value = value + 5 WHERE name = 'done'");
    let ill = place.run(&["doctor"]);
    assert_eq!(ill.status.code(), Some(1));
    let told = String::from_utf8(ill.stdout).unwrap();
    assert!(told.contains("FAIL  counters") && told.contains("says 7, there are 2"), "{told}");
    assert!(told.contains("driftline verify") && told.contains("1 failed"), "{told}");

    place.execute("INSERT INTO schema_versions (version, name, applied_ms) VALUES (99, 'x', 0)");
    let newer = place.run(&["doctor"]);
    assert_eq!(newer.status.code(), Some(1));
    let told = String::from_utf8(newer.stdout).unwrap();
    assert!(told.contains("FAIL  database") && told.contains("newer driftline"), "{told}");

    let nowhere = Place::new();
    let told = nowhere.succeeds(&["doctor"]);
    assert!(told.contains("does not exist yet"), "{told}");
    assert_eq!(std::fs::read_dir(nowhere.folder.path()).unwrap().count(), 0, "nothing was made");
}
