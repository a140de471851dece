//! What somebody meets who crawls for the first time, does it wrong, and does it again.

use std::time::Duration;

use super::{Home, Running, Summary, text};
use crate::site::Site;
use driftline::loopback_web::Answer;

fn screen(home: &Home, args: &[&str]) -> (Option<i32>, String) {
    let output = home.command(args).output().unwrap();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[track_caller]
fn says(screen: &str, words: &[&str]) {
    for word in words {
        assert!(screen.contains(word), "{word:?} is not in: {screen}");
    }
}

fn a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it(home: &Home) {
    let site = Site::with_pages(4).serve();
    let seed = site.seed();
    let (code, first) = screen(home, &["crawl", &seed]);
    assert_eq!(code, Some(1), "{first}");
    says(&first, &["127.0.0.1 is a private address; add --allow-private (address)", &seed]);
    assert_eq!(site.web().visits_count(), 0, "nobody was asked");

    let (_, why) = screen(home, &["why", &seed]);
    says(&why, &["127.0.0.1 is a private address", "--allow-private"]);
    let (_, hosts) = screen(home, &["hosts", "127.0.0.1"]);
    says(&hosts, &["1 error", "not requested", "--allow-private"]);
    let (_, status) = screen(home, &["status"]);
    says(&status, &["1 failed", "1 error,"]);
    let history = home.texts("SELECT resultcode FROM history WHERE activitytype = 'fetch'");
    assert_eq!(history.into_iter().collect::<Vec<_>>(), ["address"]);

    let again = ["crawl", &seed, "--allow-private", "--delay", "0"];
    let (code, second) = screen(home, &again);
    assert_eq!(code, Some(0), "{second}");
    says(&second, &["4 added"]);
    let (_, hosts) = screen(home, &["hosts", "127.0.0.1"]);
    assert!(!hosts.contains("not requested"), "{hosts}");
}

#[test]
fn a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it_on_sqlite() {
    a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it(&Home::directory());
}

#[test]
fn a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it(&home);
}

/// Three times, so that its breaker is open as well.
fn a_server_that_was_down_is_asked_again_by_the_next_crawl(home: &Home) {
    let site = Site::with_pages(4).serve();
    let (port, seed) = (site.web().port(), site.seed());
    drop(site);
    for _ in 0..3 {
        let ended = Running::start(home.crawl(&[&seed, "--patience", "1"])).ended();
        assert_eq!(ended.status.code(), Some(1));
        let summary = Summary::printed(&ended);
        let group = &summary.0["did"]["errors"]["host-left-alone"];
        assert_eq!(group["example"], seed.as_str(), "{summary:?}");
        says(group["sentence"].as_str().unwrap(), &["refused the connection"]);
    }
    assert_eq!(home.number("SELECT COUNT(*) FROM bins WHERE blocked_by = 'connect-refused'"), 1);
    let (_, why) = screen(home, &["why", &seed]);
    says(&why, &["the server refused the connection", "the next run tries again"]);
    let history = home.texts("SELECT resultcode FROM history WHERE activitytype = 'robots'");
    assert_eq!(history.into_iter().collect::<Vec<_>>(), ["connect-refused"]);

    let _site = Site::with_pages(4).port(port).serve();
    assert_eq!(home.crawled(&[&seed]).changes(), [4, 0, 0, 0]);
    home.verify();
}

#[test]
fn a_server_that_was_down_is_asked_again_by_the_next_crawl_on_sqlite() {
    a_server_that_was_down_is_asked_again_by_the_next_crawl(&Home::directory());
}

#[test]
fn a_server_that_was_down_is_asked_again_by_the_next_crawl_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_server_that_was_down_is_asked_again_by_the_next_crawl(&home);
}

/// The run is interrupted while a document waits for its host, and goes on when that is there.
fn a_run_that_goes_on_asks_a_server_again_that_was_down(home: &Home) {
    let late = Site::with_pages(4).serve();
    let (port, down) = (late.web().port(), late.seed());
    drop(late);
    let site = Site::with_pages(300).answering_after(Duration::from_millis(20)).serve();
    let seed = site.seed();
    let seeds = [seed.as_str(), &down];
    let running = Running::start(home.crawl(&[&seeds[..], &["--concurrency", "1"]].concat()));
    let waits = "SELECT COUNT(*) FROM queue WHERE reason = 'robots-unreachable'";
    super::until(&site, "it has begun", || site.web().visits_count() > 5);
    super::until(&site, "one waits", || home.number(waits) == 1);
    running.signal("INT");
    assert_eq!(running.ended().status.code(), Some(1), "it was stopped");
    let _late = Site::with_pages(4).port(port).serve();
    let summary = home.crawled(&[&seeds[..], &["--concurrency", "32"]].concat());
    assert_eq!(summary.count("/run"), 1, "it went on: {summary:?}");
    assert_eq!(summary.count("/documents/done"), 304, "{summary:?}");
}

#[test]
fn a_run_that_goes_on_asks_a_server_again_that_was_down_on_sqlite() {
    a_run_that_goes_on_asks_a_server_again_that_was_down(&Home::directory());
}

#[test]
fn a_run_that_goes_on_asks_a_server_again_that_was_down_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_run_that_goes_on_asks_a_server_again_that_was_down(&home);
}

#[test]
fn a_seed_that_is_not_there_is_named_and_is_no_success() {
    let (home, site) = (Home::directory(), Site::with_pages(4).serve());
    let seed = format!("{}no-such-page", site.seed());
    let flags = ["--allow-private", "--delay", "0"];
    let (code, first) = screen(&home, &[&["crawl", &seed], &flags[..]].concat());
    assert_eq!(code, Some(1), "{first}");
    says(&first, &[&format!("the server has no page at the seed {seed}")]);
    // One that is there makes up for it.
    let (code, both) = screen(&home, &[&["crawl", &site.seed(), &seed], &flags[..]].concat());
    assert_eq!(code, Some(0), "{both}");
    says(&both, &["4 added", &format!("the server has no page at the seed {seed}")]);
}

#[test]
fn a_run_is_a_success_although_its_last_process_met_only_failures() {
    let (home, site) = (Home::directory(), Site::with_pages(10).serve());
    site.intercept(|request| (request.path == "/p/7").then(|| Answer::status(500)));
    let seed = site.seed();
    let running = Running::start(home.crawl(&[&seed, "--retry-wait", "60"]));
    let count = "SELECT COALESCE(CAST(SUM(value) AS BIGINT), 0) FROM counters
                 WHERE name IN ('done', 'waiting')";
    super::until(&site, "it has begun", || site.web().visits_count() > 10);
    super::until(&site, "all but one are done", || home.number(count) == 10);
    running.signal("INT");
    assert_eq!(running.ended().status.code(), Some(1), "it was stopped");
    let due = "UPDATE queue SET checktime = 0 WHERE state = 'waiting'";
    home.rows().write(move |tx| tx.execute(due, &[])).unwrap();
    let last = home.crawled(&[&seed, "--retries", "0"]);
    assert_eq!((last.changes(), last.count("/failed")), ([0; 4], 1), "{last:?}");
    assert_eq!(last.count("/whole_run/totals/adds"), 9, "{last:?}");
}

#[test]
fn a_run_that_stopped_at_its_limit_says_how_many_urls_it_left_out() {
    let (home, site) = (Home::directory(), Site::with_pages(20).serve());
    let flags = ["--allow-private", "--delay", "0", "--max-pages", "5"];
    let (code, said) = screen(&home, &[&["crawl", &site.seed()], &flags[..]].concat());
    assert_eq!(code, Some(0), "{said}");
    let left = home.number("SELECT COUNT(*) FROM queue WHERE reason = 'limit'");
    assert!(left > 0, "{said}");
    says(&said, &[&format!("stopped at 5 pages; {left} known URLs skipped"), "the job has 5 done"]);
    assert!(!said.contains(" cut"), "{said}");
}

#[test]
fn what_a_crawl_changes_of_its_job_is_in_the_audit_log() {
    let (home, site) = (Home::directory(), Site::with_pages(2).serve());
    home.crawled(&[&site.seed()]);
    home.crawled(&["--max-pages", "7"]);
    home.crawled(&["--max-pages", "7"]);
    let (_, audit) = screen(&home, &["audit"]);
    says(&audit, &["command line: crawl, done", "job site: new", "job site: spec.pages_max"]);
    assert_eq!(audit.matches("crawl, done").count(), 2, "the third has changed nothing: {audit}");
}
