//! What nothing leads to any more is cleaned up at the end of a complete run, and only
//! then: never for trouble, never for what could not be read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{Home, Summary};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

/// A web of a few pages, which can be changed: the links of each, or its trouble.
struct Web {
    home: Home,
    site: Served,
    pages: Arc<Mutex<BTreeMap<String, Page>>>,
}

#[derive(Clone)]
enum Page {
    Links(Vec<&'static str>),
    Broken,
}

impl Web {
    fn new(home: Home, pages: &[(&str, &[&'static str])]) -> Web {
        let site = Site::with_pages(1).serve();
        let held: Arc<Mutex<BTreeMap<String, Page>>> = Arc::default();
        let served = held.clone();
        site.intercept(move |request| {
            let pages = served.lock().unwrap();
            Some(match pages.get(&request.path)? {
                Page::Broken => Answer::status(500),
                Page::Links(links) => {
                    let links: Vec<String> =
                        links.iter().map(|to| format!("<a href=\"{to}\">to {to}</a>")).collect();
                    let text = format!("<p>{} {}", request.path, links.join(" "));
                    Answer::html(text.clone()).etag(&text.len().to_string())
                }
            })
        });
        let web = Web { home, site, pages: held };
        for (path, links) in pages {
            web.set(path, Page::Links(links.to_vec()));
        }
        web
    }

    fn set(&self, path: &str, page: Page) {
        self.pages.lock().unwrap().insert(path.to_owned(), page);
    }

    fn crawl(&self) -> Summary {
        let seed = self.site.seed();
        let seed = format!("{}start", &seed[..seed.len() - "p/0".len()]);
        let summary = self.home.crawled(&[&seed, "--retries", "0"]);
        self.home.verify();
        summary
    }
}

fn what_nothing_leads_to_is_removed(home: Home) {
    let web = Web::new(
        home,
        &[
            ("/start", &["/kept", "/lost"]),
            ("/kept", &["/leaf"]),
            ("/leaf", &[]),
            // A ring: each of these leads to the other.
            ("/lost", &["/ring"]),
            ("/ring", &["/lost"]),
        ],
    );
    assert_eq!(web.crawl().changes(), [5, 0, 0, 0]);
    assert_eq!(web.crawl().changes(), [0, 0, 5, 0]);
    web.set("/start", Page::Links(vec!["/kept"]));
    web.site.take_traffic();
    let third = web.crawl();
    assert_eq!(third.count("/did/removed/unreachable"), 2, "{third:?}");
    assert_eq!(third.changes(), [0, 1, 2, 2], "the ring is gone, and its two are not asked for");
    assert_eq!(web.site.take_traffic().counts().len(), 3);
    assert_eq!(web.home.number("SELECT COUNT(*) FROM queue"), 3);
    let reasons = "SELECT reason FROM documents WHERE removed_ms IS NOT NULL";
    assert_eq!(web.home.texts(reasons).into_iter().collect::<Vec<_>>(), ["unreachable"]);
    let told = "SELECT COUNT(*) FROM repohistory WHERE activitytype = 'document deletion'";
    assert_eq!(web.home.number(told), 2);
    web.set("/kept", Page::Links(vec!["/leaf", "/ring"]));
    assert_eq!(web.crawl().changes(), [2, 1, 2, 0], "they come back when something leads there");
}

#[test]
fn what_nothing_leads_to_is_removed_on_sqlite() {
    what_nothing_leads_to_is_removed(Home::directory());
}

#[test]
fn what_nothing_leads_to_is_removed_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_nothing_leads_to_is_removed(home);
}

#[test]
fn what_only_a_broken_page_leads_to_stays() {
    let web = Web::new(
        Home::directory(),
        &[("/start", &["/hub"]), ("/hub", &["/one", "/two"]), ("/one", &[]), ("/two", &[])],
    );
    assert_eq!(web.crawl().changes(), [4, 0, 0, 0]);
    web.set("/hub", Page::Broken);
    let second = web.crawl();
    assert_eq!(second.changes(), [0, 0, 3, 0], "{second:?}");
    assert_eq!(second.count("/failed"), 1);
    web.set("/hub", Page::Links(vec!["/one"]));
    let third = web.crawl();
    assert_eq!(third.changes(), [0, 1, 2, 1], "now it was read: {third:?}");
}
