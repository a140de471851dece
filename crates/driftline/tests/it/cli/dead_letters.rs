//! The dead letters of jobs at the command line: listed, and tried again.

use std::time::Instant;

use serde_json::{Value, json};
use store::ids::Part;
use store::objects::{Location, Objects};
use store::testing::commit_sample;

use super::definitions::{crawling, made, parsed};
use super::jobs::{PATIENCE, assert_says, keys, with_job};
use super::{Place, assert_trouble, bare, said};
use crate::site::Site;
use driftline::loopback_web::Answer;

/// A directory with a job that has six documents: two are ready, four are done, of which
/// three have failed; two of these for lack of an address.
fn with_failures() -> Place {
    let place = made();
    with_job(&|args| place.run(args));
    let held = place.hold();
    let objects = Objects::open(&Location::Directory(held.layout().objects())).unwrap();
    for part in [0, 3] {
        commit_sample(held.db(), &objects, Part(part), 0).unwrap();
    }
    drop(held);
    for sql in [
        "UPDATE queue SET jobid = (SELECT id FROM job_definitions)",
        "UPDATE counters SET jobid = (SELECT id FROM job_definitions) WHERE jobid = 1",
        "UPDATE bin_work SET jobid = (SELECT id FROM job_definitions)",
        "UPDATE chunks SET jobid = (SELECT id FROM job_definitions)",
        "UPDATE queue SET state = 'failed', reason = 'dns', detail = 'no address'
         WHERE state = 'done' AND part = 0",
        "UPDATE queue SET state = 'failed', reason = 'http-503'
         WHERE part = 3 AND id = (SELECT MAX(id) FROM queue WHERE part = 3 AND state = 'done')",
        "UPDATE counters SET name = 'failed' WHERE name = 'done' AND part = 0",
        "UPDATE counters SET value = 1 WHERE name = 'done' AND part = 3",
        "INSERT INTO counters (part, jobid, name, value)
         SELECT 3, id, 'failed', 1 FROM job_definitions",
        "UPDATE job_states SET run = 1, starttime = 0",
    ] {
        place.execute(sql);
    }
    assert_says(&place.succeeds(&["verify"]), &["no errors"]);
    place
}

#[test]
fn what_has_failed_is_listed_with_its_reason_and_tried_again() {
    let place = with_failures();
    let listed = place.succeeds(&["job", "failed", "docs"]);
    assert_says(&listed, &["dns", "http-503", "\n    no address\n", "http://example.com/1000000"]);
    let page = |cursor: Option<&str>| {
        let mut args = vec!["job", "failed", "docs", "--limit", "2", "--json"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        parsed(&place.succeeds(&args))
    };
    let first = page(None);
    assert_eq!(keys(&first), ["cursor", "documents", "failed", "job", "undeliverable"]);
    assert_eq!(
        keys(&first["documents"][0]),
        ["checked_ms", "detail", "document", "reason", "run", "status", "tries"]
    );
    let rest = page(first["cursor"].as_str());
    assert_eq!((rest["documents"].as_array().unwrap().len(), &rest["cursor"]), (1, &Value::Null));
    let shown = place.succeeds(&["job", "failed", "docs", "--limit", "1"]);
    let (_, command) = shown.split_once("next page: driftline ").unwrap();
    let args: Vec<&str> = command.split_whitespace().collect();
    assert_says(&said(&bare(&args)), &["http://example.com/1000001"]);
    let none = place.succeeds(&["job", "failed", "docs", "--reason", "tea"]);
    assert_eq!(none, "no such document of job docs has failed\n");
    assert_says(
        &place.succeeds(&["job", "show", "docs"]),
        &["6 documents: 1 processed, 2 outstanding, 3 failed"],
    );

    let retry = |args: &[&str]| place.run(&[&["job", "retry", "docs"], args].concat());
    assert_trouble(&retry(&[]), &["cannot retry", "INACTIVE", "driftline job start docs"]);
    place.execute("UPDATE job_states SET phase = 'shutting down'");
    assert_trouble(&retry(&[]), &["SHUTTINGDOWN", "its run is ending"]);
    place.execute("UPDATE job_states SET phase = 'active'");
    assert_eq!(said(&retry(&["--reason", "tea"])), "job docs: 0 documents are ready again\n");
    assert_eq!(said(&retry(&["--reason", "http-503"])), "job docs: 1 document is ready again\n");
    let named = retry(&["HTTP://EXAMPLE.com/1000000", "http://nobody.example/", "--json"]);
    assert_eq!(named.status.code(), Some(1), "one of them has not failed");
    let named = parsed(&String::from_utf8(named.stdout).unwrap());
    let expected = json!({"job": "docs", "retried": 1, "unknown": ["http://nobody.example/"]});
    assert_eq!(named, expected);
    assert_eq!(said(&retry(&[])), "job docs: 1 document is ready again\n");
    assert_eq!(place.succeeds(&["job", "failed", "docs"]), "no document of job docs has failed\n");
    assert_trouble(
        &retry(&["--reason", "dns", "http://a.example/"]),
        &["--reason", "cannot be used"],
    );
    assert_says(&place.succeeds(&["verify"]), &["no errors"]);
}

#[test]
fn scripts_rely_on_these_keys() {
    let place = with_failures();
    let list = parsed(&place.succeeds(&["job", "list", "--json"]));
    let line = [
        "attended",
        "connection",
        "documents",
        "error",
        "failed",
        "name",
        "outages",
        "outstanding",
        "processed",
        "run",
        "state",
        "undeliverable",
        "undelivered",
        "word",
    ];
    assert_eq!(keys(&list[0]), line);
    let of = |name: &str| list[0][name].as_i64();
    let counted = ["documents", "outstanding", "processed", "failed"].map(|name| of(name).unwrap());
    assert_eq!(counted, [6, 2, 1, 3]);
    let shown = parsed(&place.succeeds(&["job", "show", "docs", "--json"]));
    let more = [
        "begun_ms",
        "counters",
        "definition",
        "ended_ms",
        "next_runs_ms",
        "removals",
        "runs",
        "version",
        "window_end_ms",
    ];
    let mut expected = [&line[..], &more].concat();
    expected.sort_unstable();
    assert_eq!(keys(&shown), expected);
    assert_eq!(shown["definition"]["spec"]["roots"], json!(["/srv/docs"]));
}

#[test]
fn a_crawl_tries_again_what_it_has_given_up_when_somebody_says_so() {
    let site = Site::with_pages(100).serve();
    site.intercept(|request| (request.path == "/p/1").then(|| Answer::status(500)));
    let place = made();
    let mut crawl = crawling(&place, &site);
    let url = site.page_url(1);
    let failed = || parsed(&place.succeeds(&["job", "failed", "site", "--json"]));
    let started = Instant::now();
    while failed()["failed"] != 1 {
        assert!(started.elapsed() < PATIENCE, "nothing has failed");
    }
    let letter = &failed()["documents"][0];
    assert_eq!((letter["document"].as_str(), &letter["reason"]), (Some(&*url), &json!("http-500")));
    assert_eq!((&letter["tries"], &letter["run"]), (&json!(1), &json!(1)));
    site.intercept(|_| None);
    let told = place.succeeds(&["job", "retry", "site", &url]);
    assert_eq!(told, "job site: 1 document is ready again\n");
    assert!(crawl.0.wait().unwrap().success());
    assert_eq!(site.traffic().counts()["127.0.0.1/p/1"], 2);
    assert_eq!(place.succeeds(&["job", "failed", "site"]), "no document of job site has failed\n");
    let listed = parsed(&place.succeeds(&["job", "list", "--json"]));
    assert_eq!((&listed[0]["word"], &listed[0]["processed"]), (&json!("done"), &json!(100)));
    assert_says(&place.succeeds(&["verify"]), &["no errors"]);
}
