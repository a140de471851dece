//! A definition that is changed in mid-run: what fails until then succeeds, in the same
//! run and in the same process. ManifoldCF's numbers: ten processed of ten.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::{Home, until};
use super::{ends_well, listed, told, web_job, work};
use crate::site::Site;
use driftline::loopback_web::Answer;

const PAGES: usize = 10;

/// The server has one page for a crawler of another name only.
fn what_fails_until_the_job_is_edited_succeeds_in_the_same_run(home: &Home) {
    let site = Site::with_pages(PAGES).serve();
    let refusals = Arc::new(AtomicUsize::new(0));
    let refused = refusals.clone();
    site.intercept(move |request| {
        let is_welcome = request.header("user-agent").is_some_and(|it| it.contains("WelcomeBot"));
        if request.path != "/p/7" || is_welcome {
            return None;
        }
        refused.fetch_add(1, Ordering::SeqCst);
        Some(Answer::status(500))
    });
    let manners = ["--on-failure", "abort", "delay_ms=0s", "retries=100", "retry_ms=100ms"];
    web_job(home, &[site.seed()], &manners);
    told(home, &["job", "start", "site"]);
    let work = work(home, &[]);
    until(&site, "one page fails again and again, all others are there", || {
        let line = listed(home).unwrap();
        refusals.load(Ordering::SeqCst) > 1 && line["processed"] == PAGES - 1
    });
    told(home, &["job", "edit", "site", "agent=WelcomeBot/1.0"]);
    ends_well(work);
    let line = listed(home).unwrap();
    assert_eq!((&line["state"], &line["word"]), (&"INACTIVE".into(), &"done".into()), "{line}");
    assert_eq!((&line["processed"], &line["run"]), (&PAGES.into(), &1.into()), "{line}");
    let workers = "SELECT COUNT(*) FROM nodes WHERE roles = 'crawl work'";
    assert_eq!(home.number(workers), 1, "no process was started again");
    home.verify();
}

#[test]
fn what_fails_until_the_job_is_edited_succeeds_in_the_same_run_on_sqlite() {
    what_fails_until_the_job_is_edited_succeeds_in_the_same_run(&Home::directory());
}

#[test]
fn what_fails_until_the_job_is_edited_succeeds_in_the_same_run_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_fails_until_the_job_is_edited_succeeds_in_the_same_run(&home);
}
