//! What commands about jobs and their documents print.

use super::crawled::Copy;
use super::redacted::Varying;
use super::{Screens, hold_redacted};

const EDITED: &str = "http://www.tides.example:8017/methods";
const REMOVED: &str = "http://www.tides.example:8017/tables/2025";
#[test]
fn crawl() {
    let copy = Copy::new();
    let varying =
        Varying { texts: &[(r"slowest hosts: .*", "slowest hosts: [hosts]")], fields: &[] };
    hold_redacted("crawl", &copy.printed, &copy.data(), varying);
}

#[test]
fn jobs() {
    let copy = Copy::new();
    Screens::of(&copy.data())
        .varying(Varying { texts: &[], fields: &["waited_ms"] })
        .both(&["job", "list"])
        .both(&["job", "show", "demo"])
        .both(&["job", "failed", "demo"])
        .both(&["job", "removals", "show", "demo"])
        .both(&["job", "wait", "demo"])
        .hold("job");
}

#[test]
fn what_is_done_with_a_job() {
    let copy = Copy::new();
    let schedule = "hours=3 zone=Europe/Berlin window=2h";
    Screens::of(&copy.data())
        .text(&["job", "pause", "demo"])
        .text(&["job", "retry", "demo"])
        .text(&["job", "edit", "demo", "--priority", "3", "--schedule", schedule])
        .text(&["job", "edit", "demo", "--priority", "3"])
        .text(&["job", "edit", "demo", "--interval", "1d"])
        .both(&["job", "start", "demo"])
        .text(&["job", "list"])
        .text(&["job", "delete", "demo"])
        .text(&["job", "wait", "demo", "--timeout", "0"])
        .text(&["job", "create", "other", "--connection", "nowhere"])
        .hold("job-actions");
}

#[test]
fn documents() {
    let copy = Copy::new();
    // The order of documents that are as far from the seeds is that of their commits.
    let texts = &[(r"\b\d+ documents checked", "[n] documents checked")];
    Screens::of(&copy.data())
        .varying(Varying { texts, fields: &["walked"] })
        .sorted(&["documents", "--limit", "200"])
        .both(&["documents", "--contains", "/methods", "--limit", "1"])
        .json(&["documents", "--contains", "/timetable"])
        .text(&["documents", "--state", "waiting"])
        .hold("documents");
}

#[test]
fn why() {
    let copy = Copy::new();
    Screens::of(&copy.data())
        .both(&["why", EDITED])
        .text(&["why", REMOVED])
        .text(&["why", "http://www.tides.example:8017/today"])
        .text(&["why", "http://www.tides.example:8017/drafts/new-gauge"])
        .text(&["why", "http://www.harbour-gazette.example:8017/find"])
        .text(&["why", "http://www.harbour-gazette.example:8017/people/editor"])
        .text(&["why", "http://ferries.example:8017/timetable"])
        .text(&["why", "http://ferries.example:8017/fares"])
        .text(&["why", "http://lighthouse.example:8017/calendar/next/next/next/"])
        .text(&["why", "http://lighthouse.example:8017/towers/maiden"])
        .text(&["why", "http://www.tides.example:8017/nowhere"])
        .text(&["why", "https://other.example/"])
        .text(&["why", "hello"])
        .hold("why");
}

#[test]
fn hosts() {
    let copy = Copy::new();
    Screens::of(&copy.data())
        .text(&["hosts"])
        .both(&["hosts", "--by", "errors", "--limit", "1"])
        .both(&["hosts", "www.tides.example"])
        .text(&["hosts", "ferries.example"])
        .text(&["hosts", "nobody.example"])
        .hold("hosts");
}

#[test]
fn reports() {
    let copy = Copy::new();
    let texts = &[(r"\b\d+ activities read", "[n] activities read")];
    Screens::of(&copy.data())
        .varying(Varying { texts, fields: &["walked"] })
        .text(&["report", "history", "--match", "www.tides.example:8017/m", "--limit", "3"])
        .json(&["report", "history", "--match", "www.tides.example:8017/m", "--limit", "1"])
        .both(&["report", "activity"])
        .both(&["report", "bandwidth"])
        .both(&["report", "results"])
        .both(&["report", "documents", "--match", "www.tides.example:8017/m.*s$"])
        .text(&["report", "queue", "--class", "^https?://([^/:]+)"])
        .json(&["report", "queue"])
        .text(&["report", "history", "--since", "yesterday"])
        .hold("report");
}
