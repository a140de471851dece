//! Sites without end (T13): a crawl comes to an end on its own, has every real page,
//! and says what it left.

use super::{Home, Running, Summary, text, until};
use crate::site::{ENDLESS_REAL, Site};
use crate::web::Answer;

/// Pages fetched of a site that has 200 and traps without end.
const FETCHED_MAX: usize = 5_000;
/// Pages of it that a later run may try before its trust is used up again.
const LEAKED_MAX: u64 = 500;
/// When the crawl is interrupted: after some patterns have closed, before others have.
const INTERRUPTED: u64 = 600;

fn a_site_without_end_is_crawled_to_its_end(home: &Home) {
    let site = Site::endless().serve();
    let seed = site.seed();
    let running = Running::start(home.crawl(&[&seed, "--concurrency", "8"]));
    until(&site, "it is in the traps", || site.web().visits_count() > INTERRUPTED);
    running.signal("INT");
    assert_eq!(Summary::printed(&running.ended()).0["ended"], "stopped");
    let summary = home.crawled(&[&seed]);
    let traffic = site.take_traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new(), "of {ENDLESS_REAL} real pages");
    let by_step = traffic.by_first_step();
    let fetched: usize = by_step.values().sum();
    assert!(fetched <= FETCHED_MAX, "{fetched}: {by_step:?}");
    assert!(traffic.repeats().is_empty());

    let endless = summary.0["endless"].as_array().unwrap();
    let patterns: Vec<&str> = endless.iter().filter_map(|it| it["pattern"].as_str()).collect();
    let named = |step: &str| patterns.iter().any(|pattern| pattern.contains(step));
    assert!(named("/shop?f#") && named("/calendar/#/#"), "{patterns:?}");
    home.verify();
    what_was_left_is_told(home, &site.page_url(0));

    // Another process knows it too: what a good page names of the trap is left as well.
    site.intercept(|request| {
        let links = (0..8).map(|n| format!("<a href=\"/shop?f{n}=new\">more</a> "));
        (request.path == "/p/0").then(|| Answer::html(links.collect::<String>()).etag("new"))
    });
    let again = home.crawled(&[&seed]);
    assert!(again.count("/did/added") <= LEAKED_MAX, "{again:?}");
    assert_eq!(again.count("/did/updated"), 1, "{again:?}");
    let asked = site.traffic().counts();
    assert!(!asked.keys().any(|place| place.contains("=new")), "{asked:?}");
}

/// `why`, `hosts` and `status` name the trap.
fn what_was_left_is_told(home: &Home, seed: &str) {
    let left = home.texts(
        "SELECT docid FROM queue WHERE state = 'cut' AND reason = 'budget' ORDER BY id LIMIT 1",
    );
    let left = left.first().unwrap();
    let said = |args: &[&str]| text(&home.command(args).output().unwrap().stdout);
    let why = said(&["why", left]);
    assert!(why.contains("it looks endless") && why.contains("pages like"), "{why}");
    let host = seed.trim_start_matches("http://").split('/').next().unwrap();
    for told in [said(&["hosts", host]), said(&["status"])] {
        assert!(told.contains("not followed any further: it looks endless"), "{told}");
    }
}

#[test]
fn a_site_without_end_is_crawled_to_its_end_on_sqlite() {
    a_site_without_end_is_crawled_to_its_end(&Home::directory());
}

#[test]
fn a_site_without_end_is_crawled_to_its_end_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_site_without_end_is_crawled_to_its_end(&home);
}

/// Somebody who knows better than what was counted.
fn what_was_closed_is_followed_again_when_it_is_reopened(home: &Home) {
    let site = Site::with_pages(20).serve();
    let seed = site.seed();
    home.crawled(&[&seed, "--max-hops", "0"]);
    let close = "INSERT INTO traps (part, jobid, bin, pattern, documents, stale, deep, suspects,
                                    recent_stale, recent_alike, rule, closed_ms)
                 SELECT part, jobid, bin, $1, 600, 600, 0, 0, 1000000, 1000000, 'stale', 1
                 FROM queue WHERE state = 'done' LIMIT 1";
    let pattern = format!("127.0.0.1:{}/p/#", site.web().port());
    home.rows().write(move |tx| tx.execute(close, &[(&pattern).into()])).unwrap();
    let closed = home.crawled(&[&seed, "--max-hops", "none"]);
    assert_eq!((closed.count("/did/added"), closed.count("/documents/cut")), (0, 7), "{closed:?}");
    let open = home.crawled(&[&seed, "--reopen"]);
    assert_eq!((open.count("/did/added"), open.count("/documents/cut")), (19, 0), "{open:?}");
    assert_eq!(open.0["endless"].as_array().unwrap().len(), 0);
}

#[test]
fn what_was_closed_is_followed_again_when_it_is_reopened_on_sqlite() {
    what_was_closed_is_followed_again_when_it_is_reopened(&Home::directory());
}

#[test]
fn what_was_closed_is_followed_again_when_it_is_reopened_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_was_closed_is_followed_again_when_it_is_reopened(&home);
}
