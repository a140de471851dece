//! `driftline demo`, the real binary: its crawls must find what is worked out from the
//! sample web without a crawler, and its story must be told to the end.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::screens::{Varying, hold_redacted};
use driftline::demo_site::{ExpectedSite, FAILING, Fate, MOVED_LINK, Manners, expected};

const PROGRAM: &str = env!("CARGO_BIN_EXE_driftline");
/// Columns of a terminal that everybody has.
const COLUMNS: usize = 80;

/// Runs the program with its temporary files in a directory.
fn run(temporary: &Path, args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).env("TMPDIR", temporary).output().unwrap()
}

fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// What the demo says of each URL in one crawl.
fn fates(crawl: &Value) -> BTreeMap<String, String> {
    let urls = crawl["urls"].as_object().unwrap();
    urls.iter().map(|(url, it)| (url.clone(), it["fate"].as_str().unwrap().to_owned())).collect()
}

fn named(crawl: &BTreeMap<String, Fate>) -> BTreeMap<String, String> {
    crawl.iter().map(|(url, fate)| (url.clone(), fate.name().to_owned())).collect()
}

/// Every URL with its two fates where they are not the same.
fn differences(found: &Value, expected: &BTreeMap<String, Fate>) -> Vec<String> {
    let (found, expected) = (fates(found), named(expected));
    let urls: std::collections::BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differing = urls.into_iter().filter(|url| found.get(*url) != expected.get(*url));
    differing
        .map(|url| format!("{url}: found {:?}, foretold {:?}", found.get(url), expected.get(url)))
        .collect()
}

#[test]
fn both_crawls_find_what_was_foretold_and_a_kept_directory_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let text = said(&run(&temporary, &["demo", "--json", "--keep", data]));
    let answer: Value = serde_json::from_str(&text).unwrap();

    let port = u16::try_from(answer["port"].as_u64().unwrap()).unwrap();
    let foretold = expected(port, Manners { sitemaps: true, ..Manners::default() });
    let [first, second] = answer["crawls"].as_array().unwrap().as_slice() else {
        panic!("two crawls: {text}")
    };
    // What is foretold as removed is found so only if the run waits for its second look.
    let none: Vec<String> = Vec::new();
    assert_eq!(differences(first, &foretold.first), none);
    assert_eq!(differences(second, &foretold.second), none);

    assert_eq!(first["conditional"], 0);
    let kept = ExpectedSite::count(&foretold.second, Fate::Kept);
    let conditional = second["conditional"].as_u64().unwrap();
    assert!(conditional > kept as u64, "{conditional} of at least {kept}");
    assert_eq!(second["summary"]["did"]["not_modified"], kept);
    let url = |(host, path): (&str, &str)| format!("http://{host}:{port}{path}");
    let [from, to, target] = MOVED_LINK.map(url);
    let moved = serde_json::json!([{"from": from, "to": to, "target": target}]);
    assert_eq!(answer["moved_links"], moved);

    assert!(is_empty(&temporary), "all is in the directory that is kept");
    let status = said(&run(&temporary, &["status", "--data", data]));
    assert!(status.contains("not in use") && status.contains("demo: run 2 ended"), "{status}");
    let verified = said(&run(&temporary, &["verify", "--data", data]));
    assert!(verified.contains("no errors"), "{verified}");
    let again = run(&temporary, &["demo", "--keep", data]);
    assert_eq!(again.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&again.stderr);
    assert!(errors.contains("there already") && errors.contains("--keep"), "{errors}");
}

/// What depends on how quick the machine is: sizes, and which pages of the host in trouble were
/// asked for.
const VARYING: Varying = Varying {
    texts: &[
        (r":\d{4,5}\b", ":PORT"),
        (r"\d+ requests \(\d+ conditional\), .* received, .* s\n", "[n] requests\n"),
        (r"    kept      (/\S*) +.*\n", "    kept      $1 [reason]\n"),
    ],
    fields: &[],
};

/// The story without the answers of `why`, whose lines are broken where their times end; screens of
/// their own hold them.
fn settled(story: &str) -> String {
    let (before, asked) =
        story.split_once("\n`driftline why` explains the state of any URL\n").unwrap();
    let (asked, after) = asked.split_once("\n\n").unwrap();
    let questions: Vec<&str> = asked.lines().filter(|line| line.starts_with("  $ ")).collect();
    format!(
        "{before}\n`driftline why` explains the state of any URL\n{}\n\n{after}",
        questions.join("\n")
    )
}

#[test]
fn the_story_is_told_to_the_end_and_nothing_is_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let story = said(&run(temporary.path(), &["demo"]));
    assert!(is_empty(temporary.path()));
    hold_redacted("demo", &settled(&story), temporary.path(), VARYING);
    let of_failing = story.split(&format!("  {FAILING}\n")).nth(1).unwrap();
    assert!(of_failing.contains("kept      /timetable"), "{of_failing}");
    let wide: Vec<&str> = story.lines().filter(|line| line.chars().count() > COLUMNS).collect();
    assert!(wide.is_empty(), "lines of more than {COLUMNS} columns: {wide:#?}");
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = Command::new(PROGRAM)
        .arg("demo")
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "The first crawl"));
    assert!(!is_empty(temporary.path()), "it is at work");
    let sent = Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert!(!lines.any(|line| line.starts_with("The second crawl")));
    assert_eq!(demo.wait().unwrap().code(), Some(1));
    assert!(is_empty(temporary.path()));
}
