//! Documents that always fail: one bad document never stops a job, unless the job says so.

use store::tables::jobs::{self, OnFailure};

use super::{Home, Running, Summary, text, words};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

const PAGES: usize = 10;

fn site_with_a_bad_page() -> Served {
    let site = Site::with_pages(PAGES).serve();
    site.intercept(|request| (request.path == "/p/7").then(|| Answer::status(500)));
    site
}

/// ManifoldCF's numbers: ten documents, one that always fails, nine processed.
fn one_bad_document_is_skipped(home: &Home) {
    let site = site_with_a_bad_page();
    let summary = home.crawled(&words(&[site.seed()], &["--retries", "3", "--retry-wait", "0.05"]));
    assert_eq!((summary.count("/documents/done"), summary.count("/documents/failed")), (9, 1));
    assert_eq!(site.traffic().counts().values().max(), Some(&4), "one try and three more");
    let reason = home.texts("SELECT reason FROM queue WHERE state = 'failed'");
    assert_eq!(reason.into_iter().collect::<Vec<_>>(), ["http-500"]);
}

#[test]
fn one_bad_document_is_skipped_on_sqlite() {
    one_bad_document_is_skipped(&Home::directory());
}

#[test]
fn one_bad_document_is_skipped_on_postgres() {
    let Some(home) = Home::database() else { return };
    one_bad_document_is_skipped(&home);
}

/// A document that keeps failing is given up when its time is over, however many tries
/// it has left.
#[test]
fn a_document_has_a_fail_time_as_well_as_a_fail_count() {
    let (home, site) = (Home::directory(), site_with_a_bad_page());
    let flags = ["--retries", "100", "--retry-wait", "0.02", "--patience", "0.2"];
    let summary = home.crawled(&words(&[site.seed()], &flags));
    assert_eq!((summary.count("/documents/done"), summary.count("/documents/failed")), (9, 1));
    let tries = site.traffic().counts().values().max().copied();
    assert!(tries.is_some_and(|tries| (2..12).contains(&tries)), "{tries:?}");
    assert_eq!(home.number("SELECT COUNT(*) FROM queue WHERE failtime IS NOT NULL"), 0);
}

#[test]
fn a_job_that_says_so_is_aborted_by_one_bad_document() {
    let (home, site) = (Home::directory(), site_with_a_bad_page());
    home.crawled(&words(&[site.seed()], &["--max-pages", "1"]));
    home.rows()
        .write(|tx| {
            let mut job = jobs::find(tx, "site")?.expect("it was crawled");
            job.on_failure = OnFailure::Abort;
            jobs::save(tx, &job, 1)
        })
        .unwrap();
    let args = words(&[], &["--max-pages", "0", "--retries", "0"]);
    let ended = Running::start(home.crawl(&args)).ended();
    assert_eq!(ended.status.code(), Some(2), "{}", text(&ended.stdout));
    let said = text(&ended.stdout) + &text(&ended.stderr);
    assert!(said.contains("/p/7 has failed for good (http-500)"), "{said}");
    assert_eq!(home.texts("SELECT status FROM jobs").first().unwrap(), "INACTIVE");
    let run = "SELECT outcome FROM runs WHERE run = 2";
    assert_eq!(home.texts(run).first().unwrap(), "aborted");
    home.verify();
    site.intercept(|_| None);
    let mended: Summary = home.crawled(&args);
    assert_eq!(mended.count("/documents/done"), PAGES as u64, "{mended:?}");
}
