//! What cannot be done is said plainly, with the right code, and nothing is lost by it.

use std::path::Path;
use std::time::Duration;

use super::{Home, Running, Summary, assert_trouble, text};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

#[track_caller]
fn is_refused(home: &Home, args: &[&str], words: &[&str]) {
    assert_trouble(&home.crawl(args).output().unwrap(), words);
}

#[test]
fn what_is_no_web_address_is_refused_before_anything_is_made() {
    let home = Home::directory();
    for bad in ["ftp://a.example/", "http://", "mailto:a@b.example", "http://[::1", "a b"] {
        is_refused(&home, &[bad], &[bad, "https://example.com/"]);
    }
    is_refused(&home, &["http://a.example/", "--exclude", "("], &["--exclude"]);
    is_refused(&home, &["http://a.example/", "--delay=-1"], &["--delay"]);
    is_refused(&home, &["http://a.example/", "--max-pages=-5"], &["--max-pages"]);
    is_refused(&home, &["http://a.example/", "--parts", "0"], &["parts"]);
    assert_eq!(std::fs::read_dir(home.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_job_that_nobody_knows_needs_a_url() {
    let home = Home::directory();
    is_refused(&home, &["--job", "nobody"], &["there is no data directory"]);
    assert!(!home.data().exists(), "and nothing is made");
    let site = Site::with_pages(2).serve();
    home.crawled(&[&site.seed()]);
    is_refused(&home, &["--job", "nobody"], &["no job nobody", "give the URL"]);
    let bare = home.command(&["crawl"]).output().unwrap();
    assert_trouble(&bare, &["give the URL", "--job NAME", "driftline status"]);
    assert_eq!(home.crawled(&[]).count("/run"), 2, "the other job is as it was");
}

#[test]
fn a_directory_that_cannot_be_used_is_left_as_it_is() {
    let home = Home::directory();
    std::fs::write(home.data(), "precious").unwrap();
    is_refused(&home, &["http://a.example/"], &[home.data().to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(home.data()).unwrap(), "precious");
    std::fs::remove_file(home.data()).unwrap();
    std::fs::create_dir(home.data()).unwrap();
    std::fs::write(home.data().join("thesis.tex"), "precious").unwrap();
    is_refused(&home, &["http://a.example/"], &["thesis.tex", "not a driftline data directory"]);
    std::fs::remove_file(home.data().join("thesis.tex")).unwrap();
    std::fs::write(home.data().join("driftline.sqlite"), "no database at all, but text").unwrap();
    is_refused(&home, &["http://a.example/"], &["not a database"]);
}

#[test]
fn a_directory_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::directory();
    let site = Site::with_pages(2).serve();
    home.crawled(&[&site.seed()]);
    let allow = |mode| {
        std::fs::set_permissions(home.data(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o000);
    if std::fs::read_dir(home.data()).is_ok() {
        store::testing::skipped("a directory without permission: this user may read everything");
    } else {
        is_refused(&home, &[&site.seed()], &[home.data().to_str().unwrap()]);
    }
    allow(0o700);
    home.verify();
}

fn a_newer_schema_is_refused_and_left_as_it_is(home: &Home) {
    let site = Site::with_pages(3).serve();
    home.crawled(&[&site.seed()]);
    let newer = "INSERT INTO schema_versions (version, name, applied_ms) VALUES (99, 'x', 0)";
    home.rows().write(move |tx| tx.execute(newer, &[])).unwrap();
    is_refused(home, &[&site.seed()], &["schema 99", "newer driftline"]);
    let older = "DELETE FROM schema_versions WHERE version = 99";
    home.rows().write(move |tx| tx.execute(older, &[])).unwrap();
    home.verify();
    assert_eq!(home.crawled(&[&site.seed()]).changes(), [0, 0, 3, 0]);
}

#[test]
fn a_newer_schema_is_refused_and_left_as_it_is_on_sqlite() {
    a_newer_schema_is_refused_and_left_as_it_is(&Home::directory());
}

#[test]
fn a_newer_schema_is_refused_and_left_as_it_is_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_newer_schema_is_refused_and_left_as_it_is(&home);
}

#[test]
fn a_database_that_cannot_be_reached_is_told_without_its_password() {
    let bare = |args: &[&str]| {
        let mut command = std::process::Command::new(super::PROGRAM);
        command.args(["crawl", "http://a.example/"]).args(args).output().unwrap()
    };
    let url = "postgres://me:hunter2@127.0.0.1:1/none";
    let refused = bare(&["--database", url, "--objects", "file:///tmp/none"]);
    assert_trouble(&refused, &["--database", "cannot be reached"]);
    assert!(!text(&refused.stderr).contains("hunter2"));
    assert_trouble(&bare(&["--database", url]), &["--objects"]);
    assert!(!Path::new("/tmp/none").exists());
}

/// The run is over: the summary says what went wrong and with whom, once for all alike.
#[test]
fn hosts_that_do_not_exist_are_told_in_the_summary_and_the_others_are_crawled() {
    let (home, site) = (Home::directory(), Site::with_pages(20).serve());
    let unknown = ["http://one.invalid/", "http://two.invalid/"];
    let args = [&site.seed(), unknown[0], unknown[1], "--patience", "1"];
    let ended = Running::start(home.crawl(&args)).ended();
    let summary = Summary::of(&ended);
    assert_eq!(summary.changes(), [20, 0, 0, 0]);
    assert_eq!(summary.count("/left"), 2, "they wait for the next run");
    let troubles = summary.0["did"]["troubles"].as_object().unwrap();
    let (code, group) = troubles.iter().next().unwrap();
    assert_eq!((troubles.len(), group["count"].as_u64()), (1, Some(2)), "{troubles:?}");
    assert!(code.starts_with("dns"), "{code}");
    assert!(group["example"].as_str().unwrap().contains(".invalid/"), "{group}");
    home.verify();
}

#[test]
fn a_crawl_that_can_fetch_nothing_says_why_and_is_no_success() {
    let home = Home::directory();
    let mut command = home.command(&["crawl", "nobody.invalid", "--patience", "1"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.contains("temporary errors: 1, such as https://nobody.invalid/robots.txt"),
        "{said}"
    );
    assert!(said.contains("could not be resolved"), "{said}");
    assert!(said.contains("1 document waits for the next run"), "{said}");
}

/// Without robots.txt in the way, a document is tried as often as it is said, and then
/// given up with its reason.
#[test]
fn a_document_in_trouble_is_tried_again_and_then_given_up() {
    let (home, site) = (Home::directory(), Site::with_pages(20).serve());
    site.intercept(|request| (request.path == "/p/7").then(|| Answer::status(500)));
    let summary = home.crawled(&[&site.seed(), "--retries", "3", "--retry-wait", "0.05"]);
    assert_eq!(summary.changes(), [19, 0, 0, 0]);
    assert_eq!(summary.count("/did/errors/http-500/count"), 1, "{summary:?}");
    assert_eq!(summary.count("/documents/failed"), 1);
    assert_eq!(site.traffic().counts()["127.0.0.1/p/7"], 4, "once and three times again");
    home.verify();
    site.intercept(|_| None);
    assert_eq!(home.crawled(&[&site.seed()]).changes(), [1, 0, 19, 0], "the next run has it");
}

fn with_robots(answer: impl Fn() -> Answer + Send + Sync + 'static) -> Served {
    let site = Site::with_pages(10).serve();
    site.intercept(move |request| (request.path == "/robots.txt").then(&answer));
    site
}

#[test]
fn robots_txt_that_is_garbage_forbids_nothing() {
    let garbage: Vec<u8> = (0..4_000_u32).map(|n| (n * 7_919 % 251) as u8).collect();
    let site = with_robots(move || Answer::of("application/octet-stream", garbage.clone()));
    let home = Home::directory();
    assert_eq!(home.crawled(&[&site.seed()]).changes(), [10, 0, 0, 0]);
}

#[test]
fn robots_txt_that_leads_in_a_circle_counts_as_none() {
    let site = with_robots(|| Answer::redirect(302, "/robots.txt"));
    let home = Home::directory();
    assert_eq!(home.crawled(&[&site.seed()]).changes(), [10, 0, 0, 0]);
    home.verify();
}

#[test]
fn robots_txt_that_cannot_be_had_closes_the_host_for_this_run() {
    for answer in [
        Answer::status(500),
        Answer::status(429),
        Answer::status(200).with_fault(driftline::loopback_web::Fault::Drop),
    ] {
        let site = with_robots(move || answer.clone());
        let home = Home::directory();
        let ended = Running::start(home.crawl(&[&site.seed(), "--patience", "1"])).ended();
        assert_eq!(ended.status.code(), Some(1), "nothing could be fetched");
        let summary = Summary::printed(&ended);
        assert_eq!((summary.changes(), summary.count("/left")), ([0; 4], 1), "{summary:?}");
        assert_eq!(site.traffic().counts().len(), 0, "nothing but robots.txt was asked for");
        let told = summary.0["did"]["troubles"].as_object().unwrap();
        assert_eq!(told.len(), 1, "{summary:?}");
        home.verify();
    }
}

#[test]
fn a_site_that_goes_away_and_comes_back_is_crawled_to_its_end() {
    let home = Home::directory();
    let site = Site::with_pages(60).answering_after(Duration::from_millis(20)).serve();
    let (port, seed) = (site.web().port(), site.seed());
    let running = Running::start(home.crawl(&[&seed, "--concurrency", "2", "--patience", "0"]));
    super::until(&site, "it begins", || site.web().visits_count() > 20);
    drop(site);
    let first = Summary::of(&running.ended());
    assert!(first.count("/left") > 0, "{first:?}");
    home.verify();
    let site = Site::with_pages(60).port(port).serve();
    // The breaker is open for a minute; nobody waits for that here.
    for passed in [
        "UPDATE bins SET blocked_ms = NULL, next_ms = 0, failures = 0",
        "UPDATE queue SET checktime = 0 WHERE state = 'waiting'",
    ] {
        home.rows().write(move |tx| tx.execute(passed, &[])).unwrap();
    }
    let second = home.crawled(&[&seed]);
    assert_eq!(second.count("/documents/done"), 60, "{second:?}");
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE chunk IS NOT NULL"), 60);
    drop(site);
}
