//! The verbs that look, beside a crawl that runs and after one that was killed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::in_use::Killed;
use super::{PROGRAM, Place, assert_trouble};
use crate::site::Site;

/// How long a crawl may take to get going on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// Asks for the status until it is as wanted.
fn wait(place: &Place, wanted: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let output = place.run(&["status", "--json"]);
        if output.status.success() {
            let status = serde_json::from_slice(&output.stdout).unwrap();
            if wanted(&status) {
                return status;
            }
        }
        assert!(started.elapsed() < PATIENCE, "{}", String::from_utf8_lossy(&output.stdout));
        std::thread::yield_now();
    }
}

#[test]
fn every_verb_that_looks_answers_while_a_crawl_runs_and_after_it_was_killed() {
    let place = Place::new();
    let served = Site::with_pages(500).serve();
    let mut crawl = Command::new(PROGRAM);
    crawl.args(["crawl", &served.seed(), "--job", "site", "--allow-private", "--delay", "0.2"]);
    crawl.arg("--data").arg(&place.data).stdout(Stdio::null()).stderr(Stdio::null());
    let mut crawl = Killed(crawl.spawn().unwrap());
    let process = crawl.0.id();

    let done =
        |status: &Value| status["overview"]["jobs"][0]["counters"]["done"].as_i64() > Some(0);
    let status = wait(&place, done);
    assert_eq!(status["holder"]["process"], process);
    assert_eq!(status["holder"]["doing"], "crawl");
    assert_eq!(status["overview"]["jobs"][0]["standing"], "running");

    let urls = place.succeeds(&["documents", "--state", "done", "--limit", "1"]);
    assert!(urls.starts_with("done     200  ok"), "{urls}");
    let why = place.succeeds(&["why", &served.seed()]);
    assert!(why.contains("It is stored; it was last fetched"), "{why}");
    let ready = place.succeeds(&["documents", "--state", "ready", "--json", "--limit", "1"]);
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let next = ready["urls"][0]["url"].as_str().expect("the crawl has hardly begun");
    let codes = ["ready", "host-delay", "active", "stored"];
    let why: Value = serde_json::from_str(&place.succeeds(&["why", next, "--json"])).unwrap();
    let code = why["answers"][0]["code"].as_str().unwrap();
    assert!(codes.contains(&code), "{why}");
    assert!(place.succeeds(&["hosts"]).contains("127.0.0.1"));
    let doctor = place.succeeds(&["doctor"]);
    assert!(doctor.contains("ok    integrity") && doctor.contains("0 failed"), "{doctor}");
    let gc = place.run(&["gc"]);
    assert_trouble(&gc, &[&format!("in use by process {process}"), "stop it first"]);

    crawl.0.kill().unwrap();
    crawl.0.wait().unwrap();
    let status = wait(&place, |status| status["holder"].is_null());
    assert_eq!(status["overview"]["jobs"][0]["standing"], "interrupted");
    let told = place.succeeds(&["status"]);
    assert!(told.contains("the next crawl continues it"), "{told}");
    let active = place.succeeds(&["documents", "--state", "active", "--json"]);
    let active: Value = serde_json::from_str(&active).unwrap();
    for url in active["urls"].as_array().unwrap().iter().take(1) {
        let why = place.succeeds(&["why", url["url"].as_str().unwrap()]);
        assert!(why.contains("was fetching it and has ended"), "{why}");
    }
}
