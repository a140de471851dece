//! A source that breaks, or is not there, does not empty what was made of it: removals are
//! held until a person decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::super::{Home, Running, Summary, text, words};
use super::{comes, ends_well, state, told, work};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

const PAGES: usize = 120;
const LIVE: &str = "SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL";
const MARKED: &str = "SELECT COUNT(*) FROM queue WHERE leaving IS NOT NULL";
const HELD: &str = "SELECT COUNT(*) FROM job_states WHERE held_ms IS NOT NULL";

/// What is wrong with a site.
const NOTHING: u8 = 0;
const ALL_GONE: u8 = 1;
const NO_NAVIGATION: u8 = 2;

/// A site that can break, and a job of it.
struct Shop {
    home: Home,
    site: Served,
    trouble: Arc<AtomicU8>,
}

impl Shop {
    fn new(home: Home) -> Shop {
        let site = Site::with_pages(PAGES).serve();
        let trouble = Arc::new(AtomicU8::new(NOTHING));
        let now = trouble.clone();
        site.intercept(move |request| match now.load(Ordering::SeqCst) {
            ALL_GONE => Some(Answer::status(404)),
            NO_NAVIGATION if request.path == "/p/0" => {
                Some(Answer::html("<p>under repair").etag("repair"))
            }
            _ => None,
        });
        Shop { home, site, trouble }
    }

    fn breaks(&self, trouble: u8) {
        self.trouble.store(trouble, Ordering::SeqCst);
    }

    fn crawl(&self, seeds: &[String]) -> Summary {
        let ended = Running::start(self.home.crawl(&words(seeds, &["--retries", "0"]))).ended();
        self.home.verify();
        Summary::printed(&ended)
    }

    /// Documents that are live, and those that are marked.
    fn counts(&self) -> (i64, i64) {
        (self.home.number(LIVE), self.home.number(MARKED))
    }

    fn removals(&self, action: &str) -> String {
        told(&self.home, &["job", "removals", action, "site"])
    }

    fn sweep(&self) {
        ends_well(work(&self.home, &[]));
        self.home.verify();
    }
}

fn a_site_that_answers_404_for_everything_keeps_its_documents(home: Home) {
    let shop = Shop::new(home);
    let pages = shop.site.page_urls();
    assert_eq!(shop.crawl(&pages).changes(), [120, 0, 0, 0]);
    shop.breaks(ALL_GONE);
    let broken = shop.crawl(&pages);
    assert_eq!(broken.changes()[3], 20, "what is proven goes at once, up to a small share");
    assert_eq!(shop.counts(), (100, 100));
    assert_eq!(shop.home.number(HELD), 1);
    let status = told(&shop.home, &["status"]);
    assert!(status.contains("100 removals held since"), "{status}");
    let shown = shop.removals("show");
    assert!(shown.contains("100 gone") && shown.contains("job removals approve"), "{shown}");
    let job = told(&shop.home, &["job", "show", "site"]);
    assert!(job.contains("100 removals held"), "{job}");
    // Another run while they are held changes nothing.
    assert_eq!(shop.crawl(&pages).changes()[3], 0);
    assert_eq!(shop.counts(), (100, 100));
    // The site is back: all of them are found again, and nothing is held any more.
    shop.breaks(NOTHING);
    assert_eq!(shop.crawl(&pages).changes(), [20, 0, 100, 0]);
    assert_eq!((shop.counts(), shop.home.number(HELD)), ((120, 0), 0));
}

#[test]
fn a_site_that_answers_404_for_everything_keeps_its_documents_on_sqlite() {
    a_site_that_answers_404_for_everything_keeps_its_documents(Home::directory());
}

#[test]
fn a_site_that_answers_404_for_everything_keeps_its_documents_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_site_that_answers_404_for_everything_keeps_its_documents(home);
}

fn a_site_whose_navigation_has_vanished_loses_nothing_unless_that_is_approved(home: Home) {
    let shop = Shop::new(home);
    let seed = [shop.site.seed()];
    assert_eq!(shop.crawl(&seed).changes(), [120, 0, 0, 0]);
    shop.breaks(NO_NAVIGATION);
    let summary = shop.crawl(&seed);
    assert_eq!(summary.changes(), [0, 1, 0, 0]);
    assert_eq!(summary.count("/held/leaving/unreachable"), 119, "{summary:?}");
    assert_eq!(shop.counts(), (120, 119));
    // Rejected, they are as before; the next run asks again.
    assert!(shop.removals("reject").contains("119 documents stay"));
    assert_eq!((shop.counts(), shop.home.number(HELD)), ((120, 0), 0));
    let again = shop.home.command(&["job", "removals", "reject", "site"]).output().unwrap();
    assert!(text(&again.stderr).contains("none of its removals are held"));
    shop.home.verify();
    assert_eq!(shop.crawl(&seed).changes()[3], 0);
    assert_eq!(shop.counts(), (120, 119));
    // Approved, they go, and only they.
    assert!(shop.removals("approve").contains("119 documents will be removed"));
    shop.sweep();
    assert_eq!((shop.counts(), shop.home.number(HELD)), ((1, 0), 0));
    let reasons = shop.home.texts("SELECT reason FROM documents WHERE removed_ms IS NOT NULL");
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["unreachable"]);
    let audit = told(&shop.home, &["audit"]);
    assert!(audit.contains("job, done") && audit.contains("removals"), "{audit}");
    shop.breaks(NOTHING);
    assert_eq!(shop.crawl(&seed).changes()[0], 119, "they come back with the navigation");
}

#[test]
fn a_site_whose_navigation_has_vanished_loses_nothing_unless_that_is_approved_on_sqlite() {
    a_site_whose_navigation_has_vanished_loses_nothing_unless_that_is_approved(Home::directory());
}

#[test]
fn a_site_whose_navigation_has_vanished_loses_nothing_unless_that_is_approved_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_site_whose_navigation_has_vanished_loses_nothing_unless_that_is_approved(home);
}

#[test]
fn what_was_approved_goes_with_the_next_crawl_and_a_limit_of_its_own_counts() {
    let shop = Shop::new(Home::directory());
    let seed = [shop.site.seed()];
    shop.crawl(&seed);
    shop.breaks(NO_NAVIGATION);
    shop.crawl(&seed);
    shop.removals("approve");
    assert_eq!(shop.crawl(&seed).changes(), [0, 0, 1, 119]);
    assert_eq!(shop.counts(), (1, 0));
    shop.breaks(NOTHING);
    shop.crawl(&seed);
    told(&shop.home, &["job", "edit", "site", "--removal-limit", "off"]);
    shop.breaks(NO_NAVIGATION);
    assert_eq!(shop.crawl(&seed).changes()[3], 119, "without a limit nobody is asked");
    let wrong = shop.home.command(&["job", "edit", "site", "--removal-limit", "many"]);
    let wrong = { wrong }.output().unwrap();
    assert!(text(&wrong.stderr).contains("20% or 50"), "{}", text(&wrong.stderr));
}

#[test]
fn a_job_is_deleted_with_all_its_documents_although_removals_are_held() {
    let shop = Shop::new(Home::directory());
    let seed = [shop.site.seed()];
    shop.crawl(&seed);
    shop.breaks(NO_NAVIGATION);
    shop.crawl(&seed);
    assert_eq!(shop.counts(), (120, 119));
    told(&shop.home, &["job", "delete", "site", "--yes"]);
    shop.sweep();
    assert_eq!((shop.counts(), state(&shop.home).as_str()), ((0, 0), "GONE"));
    assert_eq!(shop.home.number("SELECT COUNT(*) FROM counters WHERE jobid <> 0"), 0);
}

/// A files job over a directory that can go.
struct Share {
    home: Home,
    root: PathBuf,
    away: PathBuf,
}

impl Share {
    fn new(home: Home) -> Share {
        let [root, away] = ["share", "away"].map(|name| home.folder.path().join(name));
        std::fs::create_dir_all(root.join("below")).unwrap();
        for name in ["one.txt", "two.txt", "below/three.txt"] {
            std::fs::write(root.join(name), name).unwrap();
        }
        let out = home.folder.path().join("out");
        super::files_job(&home, (&root, &out), &[]);
        let share = Share { home, root, away };
        share.run();
        assert_eq!(share.home.number(LIVE), 3);
        share
    }

    fn run(&self) {
        told(&self.home, &["job", "start", "docs"]);
        ends_well(work(&self.home, &[]));
        self.home.verify();
    }

    /// Starts the job, which must be in trouble; then it is aborted.
    fn is_in_trouble(&self, words: &str) {
        told(&self.home, &["job", "start", "docs"]);
        let working = Running::start(self.home.command(&["work", "--lease", "1"]));
        let troubled = "SELECT COUNT(*) FROM job_states WHERE failcount IS NOT NULL";
        comes(words, || self.home.number(troubled) == 1);
        told(&self.home, &["job", "abort", "docs"]);
        comes("it is aborted", || state(&self.home) == "INACTIVE");
        drop(working);
        let forget = "UPDATE job_states SET failcount = NULL, failtime = NULL";
        let rows = self.home.rows();
        rows.write(move |tx| tx.execute(forget, &[]).and(store::testing::sum_rows(tx))).unwrap();
        assert_eq!(self.home.number(LIVE), 3, "nothing is removed: {words}");
    }
}

fn a_share_that_is_not_mounted_is_trouble_and_removes_nothing(home: Home) {
    let share = Share::new(home);
    std::fs::rename(&share.root, &share.away).unwrap();
    share.is_in_trouble("the root is missing");
    std::fs::create_dir(&share.root).unwrap();
    share.is_in_trouble("only the mount point is there, and empty");
    std::fs::remove_dir(&share.root).unwrap();
    std::fs::rename(&share.away, &share.root).unwrap();
    std::fs::remove_file(share.root.join("two.txt")).unwrap();
    share.run();
    assert_eq!(share.home.number(LIVE), 2, "what is really gone goes");
}

#[test]
fn a_share_that_is_not_mounted_is_trouble_and_removes_nothing_on_sqlite() {
    a_share_that_is_not_mounted_is_trouble_and_removes_nothing(Home::directory());
}

#[test]
fn a_share_that_is_not_mounted_is_trouble_and_removes_nothing_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_share_that_is_not_mounted_is_trouble_and_removes_nothing(home);
}
