//! Limits and scopes, and second thoughts about them: what is let in later is fetched
//! then, what is known already is not fetched for it again.

use std::time::Duration;

use super::{Home, Summary, words};
use crate::site::{Served, Site, Traffic};
use driftline::loopback_web::Answer;

const PAGES: u64 = 120;

fn crawled(home: &Home, site: &Served, more: &[&str]) -> (Summary, Traffic) {
    let seed = [site.seed()];
    let summary = home.crawled(&words(&seed, more));
    home.verify();
    let traffic = site.take_traffic();
    (summary, traffic)
}

fn a_limit_of_pages_is_kept_exactly_and_can_be_raised(home: &Home) {
    let site = Site::with_pages(PAGES as usize).serve();
    let (first, traffic) = crawled(home, &site, &["--max-pages", "30"]);
    assert_eq!(traffic.counts().len(), 30, "exactly as many as were allowed");
    assert_eq!(first.changes(), [30, 0, 0, 0]);
    let known = traffic.counts();

    let (second, traffic) = crawled(home, &site, &["--max-pages", "50"]);
    assert_eq!(traffic.counts().len(), 50);
    assert_eq!(second.changes(), [20, 0, 30, 0]);
    assert_eq!(traffic.unconditional_count(), 20, "what is known is only asked about");
    assert!(known.keys().all(|place| traffic.counts().contains_key(place)));

    let (third, traffic) = crawled(home, &site, &["--max-pages", "0"]);
    assert_eq!(third.changes(), [PAGES - 50, 0, 50, 0], "no limit");
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    assert_eq!(third.count("/documents/done"), PAGES);
}

#[test]
fn a_limit_of_pages_is_kept_exactly_and_can_be_raised_on_sqlite() {
    a_limit_of_pages_is_kept_exactly_and_can_be_raised(&Home::directory());
}

#[test]
fn a_limit_of_pages_is_kept_exactly_and_can_be_raised_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_limit_of_pages_is_kept_exactly_and_can_be_raised(&home);
}

/// Pages of which each leads to the next.
fn chain(site: &Served) {
    site.intercept(|request| {
        let number: u64 = request.path.strip_prefix("/p/")?.parse().ok()?;
        let next = format!("<p>number {number}<a href=\"/p/{}\">next</a>", number + 1);
        Some(Answer::html(next).etag(&number.to_string()))
    });
}

#[test]
fn a_limit_of_hops_is_kept_exactly_and_can_be_raised() {
    let (home, site) = (Home::directory(), Site::with_pages(1).serve());
    chain(&site);
    let (first, _) = crawled(&home, &site, &["--max-hops", "3"]);
    assert_eq!(first.changes(), [4, 0, 0, 0], "the seed and three links");
    assert_eq!(first.count("/documents/cut"), 1);
    let (second, traffic) = crawled(&home, &site, &["--max-hops", "7"]);
    assert_eq!(second.changes(), [4, 0, 4, 0]);
    assert_eq!(traffic.unconditional_count(), 4, "only what is new is fetched whole");
    let (third, _) = crawled(&home, &site, &["--max-hops", "2"]);
    assert_eq!(third.count("/did/removed/hop limit"), 5, "{third:?}");
    let (fourth, _) = crawled(&home, &site, &["--max-hops", "4"]);
    assert_eq!(fourth.changes(), [2, 0, 3, 0], "{fourth:?}");
}

#[test]
fn what_is_excluded_later_is_removed_without_being_asked_for() {
    let (home, site) = (Home::directory(), Site::with_pages(PAGES as usize).serve());
    crawled(&home, &site, &[]);
    let (second, traffic) = crawled(&home, &site, &["--exclude", "/p/1[0-9]$"]);
    assert_eq!(second.changes(), [0, 0, PAGES - 10, 10]);
    assert_eq!(second.count("/did/removed/out of scope"), 10);
    assert_eq!(traffic.counts().len() as u64, PAGES - 10);
    let removed = "SELECT COUNT(*) FROM documents WHERE reason = 'out of scope'";
    assert_eq!(home.number(removed), 10);

    let (third, traffic) = crawled(&home, &site, &["--exclude", ""]);
    assert_eq!(third.changes(), [10, 0, PAGES - 10, 0], "they come back");
    assert_eq!(traffic.unconditional_count(), 10);
}

#[test]
fn a_wider_scope_finds_the_links_of_pages_that_have_not_changed() {
    let (home, site) = (Home::directory(), Site::with_pages(PAGES as usize).hosts(3).serve());
    let (first, traffic) = crawled(&home, &site, &[]);
    assert_eq!(first.changes(), [PAGES / 3, 0, 0, 0], "one host of three");
    assert_eq!(traffic.repeats_count(), 0);
    let (second, traffic) = crawled(&home, &site, &["--scope", "any"]);
    assert_eq!(second.changes(), [PAGES - PAGES / 3, 0, PAGES / 3, 0]);
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    assert_eq!(traffic.with_status(304) as u64, PAGES / 3, "nothing was fetched again for it");
}

#[test]
fn a_narrower_scope_removes_the_hosts_that_are_left_out_once_that_is_approved() {
    let (home, site) = (Home::directory(), Site::with_pages(PAGES as usize).hosts(3).serve());
    let (first, _) = crawled(&home, &site, &["--scope", "any"]);
    assert_eq!(first.changes(), [PAGES, 0, 0, 0]);
    let (second, traffic) = crawled(&home, &site, &["--scope", "host"]);
    assert_eq!(second.changes(), [0, 0, PAGES / 3, 0], "two of three are too many to go unasked");
    assert_eq!(traffic.counts().len() as u64, PAGES / 3);
    let approved = home.command(&["job", "removals", "approve", "site"]).output().unwrap();
    assert!(approved.status.success());
    let (third, _) = crawled(&home, &site, &["--scope", "host"]);
    assert_eq!(third.changes(), [0, 0, PAGES / 3, PAGES - PAGES / 3]);
}

/// `/p/0` leads to a slow page and a fast one; both lead to `/p/x`, the slow one by a
/// shorter path, on which `/p/y` is near enough.
#[test]
fn a_shorter_path_that_is_found_later_lets_in_what_lies_behind() {
    let (home, site) = (Home::directory(), Site::with_pages(1).serve());
    site.intercept(|request| {
        let (links, delay_ms) = match request.path.as_str() {
            "/p/0" => (&["/slow", "/fast"][..], 0),
            "/slow" => (&["/x"][..], 3_000),
            "/fast" => (&["/faster"][..], 0),
            "/faster" => (&["/x"][..], 0),
            "/x" => (&["/y"][..], 0),
            "/y" => (&[][..], 0),
            _ => return None,
        };
        let links: String = links.iter().map(|to| format!("<a href=\"{to}\">{to}</a> ")).collect();
        let page = Answer::html(format!("<p>{} leads to {links}", request.path));
        Some(page.etag("1").after(Duration::from_millis(delay_ms)))
    });
    let (first, traffic) = crawled(&home, &site, &["--max-hops", "3"]);
    assert_eq!(traffic.counts().len(), 6, "{first:?}");
}

/// A sitemap that robots.txt names is a link away, and what it lists is two.
#[test]
fn what_a_listed_sitemap_leads_to_is_counted_from_it() {
    let (home, site) = (Home::directory(), Site::with_pages(1).serve());
    let origin = site.seed().trim_end_matches("/p/0").to_owned();
    site.intercept(move |request| match request.path.as_str() {
        "/robots.txt" => Some(Answer::text(format!("Sitemap: {origin}/map.xml\n"))),
        "/map.xml" => Some(Answer::of(
            "application/xml",
            format!("<urlset><url><loc>{origin}/listed</loc></url></urlset>"),
        )),
        "/listed" => Some(Answer::html("<p>Listed, with <a href=\"/beyond\">more</a>.")),
        _ => None,
    });
    let (first, traffic) = crawled(&home, &site, &["--max-hops", "2"]);
    let asked = traffic.counts();
    assert!(asked.keys().any(|place| place.ends_with("/listed")), "{first:?}");
    assert!(!asked.keys().any(|place| place.ends_with("/beyond")), "{first:?}");
}
