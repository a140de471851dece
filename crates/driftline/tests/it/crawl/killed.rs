//! Crawls that are killed without warning, at any moment and again and again: nothing is
//! lost, little is repeated, and no host is asked sooner than it may be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{GLANCE, Home, PATIENCE, ROUNDING, Running, Summary, words};
use crate::site::{Served, Site};

/// Kills before the crawl is left in peace.
const KILLS: u64 = 10;
const PAGES: usize = 900;
/// Documents that a killed process may have to repeat.
const REPEATS_MAX: usize = 200;
/// A process is killed after it was seen to make fewer requests than this.
const VISITS_MAX: u64 = 170;
const DELAY: Duration = Duration::from_millis(500);

/// Numbers that look random and are the same every time.
pub(super) fn drawn(seed: u64, below: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)) % below
}

/// Waits until the site has seen so many visits; false if the process ended before.
fn lives_until(running: &mut Running, site: &Served, visits: u64) -> bool {
    let began = std::time::Instant::now();
    while !site.web().wait_for_visits(visits, GLANCE) {
        assert!(began.elapsed() < PATIENCE, "it makes no progress");
        if running.has_ended() {
            return false;
        }
    }
    true
}

fn a_crawl_that_is_killed_again_and_again_loses_nothing(home: &Home, seed: u64) {
    let site = Site::with_pages(PAGES).hosts(4).answering_after(Duration::from_millis(2)).serve();
    let seeds = site.seeds();
    let args = words(&seeds, &["--node", "a", "--concurrency", "16"]);
    let mut claimed: BTreeMap<String, usize> = BTreeMap::new();
    for kill in 0..KILLS {
        let begun = site.web().visits_count();
        let mut running = Running::start(home.crawl(&args));
        let visits = begun + drawn(seed * KILLS + kill, VISITS_MAX);
        assert!(lives_until(&mut running, &site, visits), "all was done before kill {kill}");
        running.kill();
        // The first kills may come before there is a table.
        let active = if visits > 0 { home.active() } else { Default::default() };
        // What was asked for and is not committed is repeated; what only waited is not.
        let traffic = site.traffic();
        let asked: BTreeSet<String> = traffic
            .visits()
            .iter()
            .filter(|visit| visit.id > begun)
            .map(|visit| site.web().url(&visit.host, &visit.path))
            .collect();
        let repeated = active.iter().filter(|docid| asked.contains(*docid)).count();
        assert!(repeated <= REPEATS_MAX, "{repeated} are to be asked for again");
        for docid in active {
            *claimed.entry(docid).or_default() += 1;
        }
    }
    let summary = Summary::of(&Running::start(home.crawl(&args)).ended());
    home.verify();
    // I4: what the index says is what the pages say, wherever it was cut off.
    assert!(home.verify_links() > PAGES as u64);
    assert_eq!(home.verify_search(), PAGES as u64);
    let traffic = site.traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    assert_eq!(summary.count("/documents/done"), PAGES as u64, "{summary:?}");
    assert_eq!(home.number("SELECT COUNT(*) FROM queue"), PAGES as i64);
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL"), 900);
    for (place, repeats) in traffic.repeats() {
        let (host, path) = place.split_once('/').unwrap();
        let docid = site.web().url(host, &format!("/{path}"));
        let uncommitted = claimed.get(&docid).copied().unwrap_or(0);
        assert!(repeats <= uncommitted, "{docid}: {repeats} repeats, {uncommitted} times claimed");
    }
}

#[test]
fn a_crawl_that_is_killed_again_and_again_loses_nothing_on_sqlite() {
    a_crawl_that_is_killed_again_and_again_loses_nothing(&Home::directory(), 1);
}

#[test]
fn a_crawl_that_is_killed_again_and_again_loses_nothing_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_crawl_that_is_killed_again_and_again_loses_nothing(&home, 2);
}

/// I3: what the killed process asked for and could not write down counts all the same.
fn a_host_is_not_asked_sooner_because_its_crawler_was_killed(home: &Home) {
    let site = Site::with_pages(50).serve();
    let seeds = site.seeds();
    let args = words(&seeds, &["--node", "a", "--delay", "0.5"]);
    // After robots.txt, after a first page, after a page that follows another.
    for visits in [1, 1, 2] {
        let mut running = Running::start(home.crawl(&args));
        let visits = site.web().visits_count() + visits;
        assert!(lives_until(&mut running, &site, visits), "it has ended");
        running.kill();
    }
    let mut running = Running::start(home.crawl(&args));
    assert!(lives_until(&mut running, &site, site.web().visits_count() + 1), "it has ended");
    running.kill();
    let traffic = site.traffic();
    let least = traffic.smallest_gap().unwrap();
    assert!(least + ROUNDING >= DELAY, "{least:?} between two of {:?}", traffic.visits());
}

#[test]
fn a_host_is_not_asked_sooner_because_its_crawler_was_killed_on_sqlite() {
    a_host_is_not_asked_sooner_because_its_crawler_was_killed(&Home::directory());
}

#[test]
fn a_host_is_not_asked_sooner_because_its_crawler_was_killed_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_host_is_not_asked_sooner_because_its_crawler_was_killed(&home);
}
