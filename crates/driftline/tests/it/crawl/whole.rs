//! A site crawled, crawled again, changed, and crawled again: every page once, and then
//! only what changed.

use super::{Home, Summary, words};
use crate::site::{Served, Site};

const PAGES: u64 = 240;
const REDIRECTS: u64 = 10;
const MISSING: u64 = 8;
/// What has no validator and is asked for without one each time.
const BARE: usize = 18;
const BODIES: &str = "SELECT COUNT(*) FROM objects WHERE kind = 'bodies' AND state = 'published'";

struct Crawled {
    home: Home,
    site: Served,
}

impl Crawled {
    fn new(home: Home) -> Crawled {
        let (pages, redirects) = (PAGES as usize, REDIRECTS as usize);
        let site = Site::with_pages(pages).hosts(3).redirects(redirects).missing(MISSING as usize);
        Crawled { home, site: site.serve() }
    }

    /// Crawls until the run is over, and checks what holds after every run.
    #[track_caller]
    fn run(&self) -> Summary {
        let seeds = self.site.seeds();
        let summary = self.home.crawled(&words(&seeds, &["--concurrency", "16"]));
        self.home.verify();
        assert_eq!(self.home.number("SELECT COUNT(*) FROM queue WHERE state <> 'done'"), 0);
        assert_eq!(summary.count("/documents/done"), PAGES + REDIRECTS + MISSING);
        assert_eq!((summary.count("/left"), summary.count("/failed")), (0, 0), "{summary:?}");
        assert_eq!(summary.count("/did/redirected"), REDIRECTS);
        summary
    }
}

fn a_site_is_crawled_whole_and_then_only_what_changed(home: Home) {
    let it = Crawled::new(home);
    let first = it.run();
    let traffic = it.site.take_traffic();
    assert_eq!(it.site.unfetched(&traffic), Vec::<String>::new());
    assert_eq!(traffic.repeats_count(), 0, "{:?}", traffic.repeats());
    assert_eq!(first.changes(), [PAGES, 0, 0, 0]);
    assert_eq!(first.count("/did/missing"), MISSING);
    assert_eq!(first.count("/did/requests"), PAGES + REDIRECTS + MISSING);
    let bodies = it.home.number(BODIES);
    assert!(bodies > 0);

    let second = it.run();
    let traffic = it.site.take_traffic();
    assert_eq!(second.changes(), [0, 0, PAGES, 0]);
    assert_eq!(second.count("/did/not_modified"), PAGES);
    assert_eq!(traffic.with_status(304), PAGES as usize);
    assert_eq!(traffic.unconditional_count(), BARE, "only what has no validator");
    assert_eq!(traffic.repeats_count(), 0);
    assert_eq!(it.home.number(BODIES), bodies, "what is the same is not stored again");
    let stored = "SELECT COUNT(*) FROM chunks WHERE run = 2 AND bodies_object IS NOT NULL";
    assert_eq!(it.home.number(stored), 0);
    let told = "SELECT COUNT(*) FROM history WHERE resultdesc LIKE 'nothing new%'";
    assert_eq!(it.home.number(told), BARE as i64, "the same redirects, and still missing");

    it.site.edit([0, 7, 100]);
    it.site.remove(200..205);
    let third = it.run();
    let traffic = it.site.take_traffic();
    assert_eq!(third.changes(), [0, 3, PAGES - 8, 5]);
    assert_eq!(third.count("/did/removed/gone"), 5, "{third:?}");
    assert_eq!(traffic.repeats_count(), 5, "what is gone is looked for twice");

    it.site.restore();
    let fourth = it.run();
    let traffic = it.site.take_traffic();
    assert_eq!(fourth.changes(), [5, 0, PAGES - 5, 0]);
    assert_eq!(traffic.unconditional_count(), BARE + 5);
    assert_eq!(it.home.number("SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL"), 258);
}

#[test]
fn a_site_is_crawled_whole_and_then_only_what_changed_on_sqlite() {
    a_site_is_crawled_whole_and_then_only_what_changed(Home::directory());
}

#[test]
fn a_site_is_crawled_whole_and_then_only_what_changed_on_postgres_and_s3() {
    let Some(home) = Home::servers() else { return };
    a_site_is_crawled_whole_and_then_only_what_changed(home);
}

#[test]
fn a_site_is_crawled_whole_and_then_only_what_changed_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_site_is_crawled_whole_and_then_only_what_changed(home);
}
