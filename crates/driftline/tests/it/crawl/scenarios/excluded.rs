//! Documents that a job does not keep: for what they say, and for what they are. It is
//! ManifoldCF's scenario of a content exclusion rule.

use super::super::Home;
use super::{ends_well, listed, told, web_job, work};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

/// Pages 0 to 9, of which 3 and 7 say that there is nothing; 3 leads on to 10.
fn site() -> Served {
    let site = Site::with_pages(1).serve();
    site.intercept(|request| {
        let number: usize = request.path.strip_prefix("/n/")?.parse().ok()?;
        Some(match number {
            0 => {
                let links = (1..10).map(|n| format!("<a href=/n/{n}>{n}</a>"));
                Answer::html(links.collect::<String>() + "<a href=/n/20>pdf</a>")
            }
            3 => Answer::html("<title>Oops</title><p>Page not FOUND.</p><a href=/n/10>more</a>"),
            7 => Answer::html("<title>page not found</title>"),
            20 => Answer::of("application/octet-stream", vec![0; 300_000]),
            n => Answer::html(format!("<p>Page {n}.</p>")).etag(&format!("e{n}")),
        })
    });
    site
}

fn origin(site: &Served) -> String {
    site.seed().rsplit_once("/p").map_or_else(|| site.seed(), |it| it.0.to_owned())
}

#[track_caller]
fn run(home: &Home) -> serde_json::Value {
    told(home, &["job", "start", "site"]);
    ends_well(work(home, &["--node", "a"]));
    home.verify();
    listed(home).unwrap()
}

const EXCLUDED: &str = "SELECT COUNT(*) FROM repohistory WHERE activitytype = 'process'
     AND resultcode = 'EXCLUDEDCONTENT' AND resultdesc = 'Rejected due to content exclusion rule'";
const FINE: &str = "SELECT COUNT(*) FROM repohistory WHERE activitytype = 'fetch'
     AND resultcode = '200' AND (resultdesc IS NULL OR resultdesc = 'nothing new')";

fn a_page_that_says_what_is_not_wanted_is_not_kept_but_leads_on(home: Home) {
    let site = site();
    let seed = format!("{}/n/0", origin(&site));
    web_job(&home, &[seed], &["delay_ms=0", "scope.media_types=text/*"]);
    let kept = |home: &Home| told(home, &["documents", "--state", "done", "--limit", "100"]);
    run(&home);
    assert!(kept(&home).contains("/n/7"), "{}", kept(&home));
    assert_eq!((home.number(EXCLUDED), home.number(FINE)), (0, 11));
    let why = told(&home, &["why", &format!("{}/n/20", origin(&site))]);
    assert!(why.contains("the job does not keep documents of its type"), "{why}");

    // The rule comes: what it excludes leaves, though no page has changed.
    told(&home, &["job", "edit", "site", "scope.exclude_content=(?i)page not found"]);
    run(&home);
    assert_eq!((home.number(EXCLUDED), home.number(FINE)), (2, 22));
    let done = kept(&home);
    assert!(!done.contains("/n/3") && !done.contains("/n/7") && done.contains("/n/10"), "{done}");
    let why = told(&home, &["why", &format!("{}/n/3", origin(&site))]);
    assert!(why.contains("--exclude-content") && why.contains("page not found"), "{why}");

    // It goes: what it kept out comes back, and what was had is not had again.
    told(&home, &["job", "edit", "site", "scope.exclude_content="]);
    site.take_traffic();
    run(&home);
    assert!(kept(&home).contains("/n/7"));
    run(&home);
    assert!(site.take_traffic().with_status(304) >= 7, "nothing has changed since");
}

#[test]
fn a_page_that_says_what_is_not_wanted_is_not_kept_but_leads_on_on_sqlite() {
    a_page_that_says_what_is_not_wanted_is_not_kept_but_leads_on(Home::directory());
}

#[test]
fn a_page_that_says_what_is_not_wanted_is_not_kept_but_leads_on_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_page_that_says_what_is_not_wanted_is_not_kept_but_leads_on(home);
}
