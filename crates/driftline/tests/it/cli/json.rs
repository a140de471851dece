//! What scripts rely on: every verb answers in JSON, and the numbers in it are right. The keys are
//! held by the screens.

use serde_json::Value;

use super::{CHUNKS, PROGRAM, Place, RECORDS, assert_trouble, run, said, text};

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
fn verbs_about_a_directory_answer_with_their_numbers() {
    let place = Place::filled();
    let (copy, back, archive) = (place.path("copy"), place.path("back"), place.path("a.warc.gz"));
    let answer = |args: &[&str]| parsed(&place.succeeds(&[args, &["--json"]].concat()));

    let init = answer(&["init"]);
    assert_eq!(init["made"], false);

    let status = answer(&["status"]);
    assert_eq!((&status["holder"], &status["overview"]["commits"]), (&Value::Null, &CHUNKS.into()));

    let verify = answer(&["verify"]);
    assert_eq!((&verify["chunks"], &verify["findings"]), (&CHUNKS.into(), &Value::Array(vec![])));

    let backup = answer(&["backup", text(&copy)]);
    let restore = parsed(&said(&run(&["restore", text(&copy), "--json"], &back)));
    assert_eq!(restore["files"], backup["files"]);

    let export = answer(&["export", "warc", text(&archive)]);
    assert_eq!((&export["chunks"], &export["records"]), (&CHUNKS.into(), &RECORDS.into()));
    assert_eq!(export["bytes"], archive.metadata().unwrap().len());
}

#[test]
fn gc_answers_with_its_numbers() {
    let place = Place::filled();
    let gc = parsed(&place.succeeds(&["gc", "--json"]));
    assert_eq!((&gc["parts"], &gc["facts_dropped"]), (&4.into(), &CHUNKS.into()));
}

#[test]
fn robots_answers_with_stable_keys() {
    let place = Place::new();
    let file = place.path("robots.txt");
    std::fs::write(&file, "User-agent: *\nDisallow: /private\n").unwrap();
    let ask = |url: &str| {
        let args = ["robots", "--json", "--agent", "x", "--file", text(&file), url];
        std::process::Command::new(PROGRAM).args(args).output().unwrap()
    };
    let blocked = ask("/private/a");
    assert_eq!(blocked.status.code(), Some(1));
    let blocked = parsed(std::str::from_utf8(&blocked.stdout).unwrap());
    assert_keys(&blocked, &["allowed", "rule"]);
    assert_keys(&blocked["rule"], &["agent", "kind", "line", "text"]);
    assert_eq!(parsed(&said(&ask("/b"))), serde_json::json!({"allowed": true, "rule": null}));
}

#[test]
fn trouble_is_told_as_json_to_those_who_asked_for_it() {
    let place = Place::new();
    let output = place.run(&["status", "--json"]);
    assert_trouble(&output, &["there is no data directory"]);
    let told = parsed(&String::from_utf8_lossy(&output.stderr));
    assert_keys(&told, &["error"]);
    assert!(told["error"].as_str().unwrap().contains("driftline init"), "{told}");
}
