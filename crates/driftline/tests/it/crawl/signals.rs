//! A crawl that is asked to stop, and one that is asked while it runs.

use std::process::Output;
use std::time::Duration;

use super::{Home, Running, Summary, assert_trouble, text, until, words};
use crate::site::{Served, Site};

const PAGES: usize = 300;
/// The page whose answer takes longer than anybody waits.
const SLOW: &str = "/p/40";
const SLOW_FOR: Duration = Duration::from_secs(30);

fn site() -> Served {
    Site::with_pages(PAGES).answering_after(Duration::from_millis(10)).serve()
}

fn begun(home: &Home, site: &Served) -> Running {
    let running = Running::start(home.crawl(&[&site.seed(), "--concurrency", "8"]));
    until(site, "it begins", || site.web().visits_count() > 50);
    running
}

/// What is left when everything is given back in good order.
#[track_caller]
fn is_tidy(home: &Home) {
    home.verify();
    assert_eq!(home.active().len(), 0);
    let held = home.number("SELECT COUNT(*) FROM leases WHERE deadline_ms <> 0");
    let open = home.number("SELECT COUNT(*) FROM chunks WHERE state = 'crawling'");
    let ready = home.number("SELECT COUNT(*) FROM nodes WHERE state <> 'stopped'");
    assert_eq!((held, open, ready), (0, 0, 0));
}

#[track_caller]
fn goes_on(home: &Home, site: &Served) {
    let summary = home.crawled(&[&site.seed()]);
    assert_eq!((summary.count("/run"), summary.count("/documents/done")), (1, PAGES as u64));
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
    is_tidy(home);
}

fn stops_in_good_order(signal: &str) {
    let (home, site) = (Home::directory(), site());
    let running = begun(&home, &site);
    running.signal(signal);
    let ended = running.ended();
    let summary = Summary::printed(&ended);
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
    assert_eq!(summary.0["ended"], "stopped");
    assert!(text(&ended.stderr).contains("again to stop at once"));
    is_tidy(&home);
    goes_on(&home, &site);
    let repeats = site.traffic().repeats();
    assert!(repeats.is_empty(), "what was fetched was committed: {repeats:?}");
}

#[test]
fn ctrl_c_stops_in_good_order() {
    stops_in_good_order("INT");
}

#[test]
fn sigterm_stops_in_good_order() {
    stops_in_good_order("TERM");
}

fn twice_stops_at_once(signal: &str) -> Output {
    let (home, site) = (Home::directory(), site());
    let port = site.web().port();
    site.intercept(move |request| {
        let slow = driftline::loopback_web::Answer::status(503).after(SLOW_FOR);
        (request.path == SLOW && request.port() == port).then_some(slow)
    });
    let running = begun(&home, &site);
    running.signal(signal);
    running.says("again to stop at once");
    running.signal(signal);
    let ended = running.ended();
    home.verify();
    site.intercept(|_| None);
    goes_on(&home, &site);
    ended
}

#[test]
fn ctrl_c_twice_stops_at_once() {
    let ended = twice_stops_at_once("INT");
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert!(text(&ended.stderr).contains("continues from the last commit"));
}

#[test]
fn sigterm_twice_stops_at_once() {
    assert_eq!(twice_stops_at_once("TERM").status.code(), Some(143));
}

/// A clean stop does not wait for ever either.
#[test]
fn one_signal_is_enough_for_an_answer_that_never_comes() {
    let (home, site) = (Home::directory(), site());
    site.intercept(|request| {
        let slow = driftline::loopback_web::Answer::status(503).after(SLOW_FOR);
        (request.path == SLOW).then_some(slow)
    });
    let running = begun(&home, &site);
    running.signal("INT");
    assert_eq!(running.ended().status.code(), Some(1));
    home.verify();
    site.intercept(|_| None);
    goes_on(&home, &site);
}

#[test]
fn a_directory_that_is_crawled_answers_questions_and_refuses_a_second_crawl() {
    let (home, site) = (Home::directory(), site());
    let running = begun(&home, &site);
    let refused = home.crawl(&[&site.seed()]).output().unwrap();
    let (holder, instead) = (format!("in use by process {}", running.id()), "`driftline work`");
    assert_trouble(&refused, &[&holder, "status", "which accepts any crawl", instead]);
    let asked = |args: &[&str]| {
        let output = home.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let status: serde_json::Value = serde_json::from_str(&asked(&["status", "--json"])).unwrap();
    assert_eq!(status["holder"]["process"], running.id(), "{status}");
    assert_eq!(status["holder"]["doing"], "crawl");
    assert!(asked(&["documents", "--job", "site"]).contains("/p/"));
    assert!(asked(&["hosts"]).contains("127.0.0.1"));
    assert!(asked(&["why", &site.seed()]).contains(&site.seed()));
    asked(&["verify"]);
    running.signal("INT");
    assert_eq!(running.ended().status.code(), Some(1));
    goes_on(&home, &site);
}

/// The same questions of a database, which nobody holds.
#[test]
fn a_database_that_is_crawled_answers_questions() {
    let Some(home) = Home::database() else { return };
    let site = site();
    let seeds = site.seeds();
    let args = words(&seeds, &["--concurrency", "8", "--node", "a"]);
    let running = Running::start(home.crawl(&args));
    until(&site, "it begins", || site.web().visits_count() > 50);
    for verb in [&["status"][..], &["documents", "--job", "site"], &["hosts"], &["why", &seeds[0]]]
    {
        let output = home.command(verb).output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", text(&output.stderr));
        assert!(!output.stdout.is_empty());
    }
    Summary::of(&running.ended());
    is_tidy(&home);
}
