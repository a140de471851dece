//! The sample web holds together: every link is meant, every page is found, and the
//! second state differs from the first in everything that the demo shows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use page::facts::Facts;
use page::html::{Input, extract};
use page::url::Policy;

use super::written::origin;
use super::{
    DemoSite, ExpectedSite, FAILING, Fate, HOSTS, MOVED_LINK, Manners, SiteState, answer, changes,
};
use super::{expected, names, written::DemoPage};
use crate::loopback_web::{Answer, Request};

const PORT: u16 = 8080;
/// What a link may lead to although nothing is there.
const MEANT_MISSING: [&str; 2] = [
    // It goes in the second state; the page that links to it does not change.
    "http://lighthouse.example:8080/towers/maiden",
    "http://www.tides.example:8080/old-gauge.html",
];

fn get(state: SiteState, url: &str) -> Answer {
    let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    answer(state, &Request::get(authority, &format!("/{path}")))
}

fn facts(url: &str, body: &[u8]) -> Facts {
    extract(&Input::new(body, url, &Policy::default()))
}

/// Every page that is there in a state, with its facts.
fn pages(state: SiteState) -> BTreeMap<String, Facts> {
    let all = HOSTS.iter().flat_map(|host| host.pages.iter().map(move |page| (host, page)));
    all.filter_map(|(host, page): (_, &DemoPage)| {
        let url = format!("{}{}", origin(host, PORT), page.path);
        let answer = get(state, &url);
        (answer.status == 200).then(|| (url.clone(), facts(&url, &answer.body)))
    })
    .collect()
}

#[test]
fn every_link_leads_somewhere_or_is_meant_not_to() {
    let mut missing = BTreeSet::new();
    for state in [SiteState::Before, SiteState::After] {
        for (url, facts) in pages(state) {
            assert!(!facts.title.is_empty() && !facts.text.is_empty(), "{url}");
            for link in facts.links {
                match get(state, &link.url).status {
                    200 | 301 | 302 => {}
                    503 if link.url.contains(FAILING) => {}
                    404 | 410 if MEANT_MISSING.contains(&link.url.as_str()) => {
                        missing.insert(link.url);
                    }
                    status => panic!("{state:?}: {url} links to {}: {status}", link.url),
                }
            }
        }
    }
    assert!(missing.iter().eq(MEANT_MISSING.iter()), "links to nothing: {missing:?}");
}

#[test]
fn every_page_is_found_but_for_those_that_hide() {
    let hidden = |manners: Manners<'_>| -> Vec<String> {
        let found = expected(PORT, manners).second;
        let before = pages(SiteState::Before).into_keys();
        let all: BTreeSet<String> = before.chain(pages(SiteState::After).into_keys()).collect();
        all.into_iter().filter(|url| !found.contains_key(url)).collect()
    };
    let clearance = "http://shop.tides.example:8080/clearance";
    let signed = "http://shop.tides.example:8080/signed";
    assert_eq!(hidden(Manners::default()), [clearance, signed], "nofollow and sitemap only");
    assert_eq!(hidden(Manners { sitemaps: true, ..Manners::default() }), [clearance]);
}

#[test]
fn the_first_crawl_meets_everything_that_a_crawl_meets() {
    let first = expected(PORT, Manners::default()).first;
    let count = |fate| ExpectedSite::count(&first, fate);
    let shown: Vec<Fate> = first.values().copied().collect::<BTreeSet<_>>().into_iter().collect();
    use Fate::{Added, Missing, Noindex, Redirect, Robots, Trap};
    assert_eq!(shown, [Added, Redirect, Missing, Noindex, Robots, Trap]);
    assert_eq!(count(Added), 52);
    assert_eq!((count(Redirect), count(Missing), count(Noindex)), (3, 1, 1));
    assert_eq!((count(Robots), count(Trap)), (4, 1));
    let calendar = first.keys().filter(|url| url.contains("/calendar/")).count();
    assert_eq!(calendar, 4, "the month, two more, and the one that is cut");
}

#[test]
fn the_second_crawl_meets_every_kind_of_change() {
    let second = expected(PORT, Manners::default()).second;
    let count = |fate| ExpectedSite::count(&second, fate);
    assert_eq!((count(Fate::Added), count(Fate::Updated), count(Fate::Restyled)), (5, 9, 1));
    assert_eq!((count(Fate::Removed), count(Fate::Moved)), (3, 1));
    assert_eq!((count(Fate::Kept), count(Fate::Same), count(Fate::Failing)), (20, 11, 7));
    let of = |fate| ExpectedSite::of(&second, fate);
    assert!(of(Fate::Failing).iter().all(|url| url.contains(FAILING)));
    assert_eq!(of(Fate::Restyled), ["http://www.tides.example:8080/methods"]);
    assert_eq!(of(Fate::Moved), ["http://www.harbour-gazette.example:8080/people/editor"]);
}

#[test]
fn a_sitemap_is_a_document_that_changes_with_what_it_lists() {
    let crawls = expected(PORT, Manners { sitemaps: true, ..Manners::default() });
    let [tides, shop] =
        ["www.tides", "shop.tides"].map(|host| format!("http://{host}.example:{PORT}/sitemap.xml"));
    assert_eq!((crawls.first[&tides], crawls.first[&shop]), (Fate::Added, Fate::Added));
    assert_eq!((crawls.second[&tides], crawls.second[&shop]), (Fate::Updated, Fate::Same));
}

#[test]
fn what_is_said_to_have_changed_has() {
    let second = expected(PORT, Manners::default()).second;
    let told = changes();
    let changed = second.values().filter(|fate| {
        use Fate::{Added, Moved, Removed, Restyled, Updated};
        matches!(fate, Added | Moved | Removed | Restyled | Updated)
    });
    assert_eq!(told.len(), changed.count() + 1, "and the host that fails");
    for change in told.iter().filter(|change| change.host != FAILING) {
        let url = format!("http://{}:{PORT}{}", change.host, change.path);
        let begins = match second[&url] {
            Fate::Added => "added",
            Fate::Updated => "edited",
            Fate::Restyled => "markup",
            Fate::Removed => "removed",
            Fate::Moved => "moved",
            other => panic!("{url} is {other:?}"),
        };
        assert!(change.what.starts_with(begins), "{url}: {}", change.what);
    }
}

#[test]
fn a_link_moves_from_one_page_to_another() {
    let [was, is, storm] = MOVED_LINK.map(|(host, path)| format!("http://{host}:{PORT}{path}"));
    let from = |state| -> Vec<String> {
        let links = |facts: &Facts| facts.links.iter().any(|link| link.url == storm);
        let here = |url: &String| url.contains("gazette");
        pages(state)
            .into_iter()
            .filter(|(url, facts)| here(url) && links(facts))
            .map(|(url, _)| url)
            .collect()
    };
    assert_eq!(from(SiteState::Before), [was]);
    assert_eq!(from(SiteState::After), [is]);
}

#[test]
fn pages_are_told_apart_unless_one_says_it_is_the_other() {
    let pages: Vec<(String, Facts)> = pages(SiteState::Before).into_iter().collect();
    for (number, (url, one)) in pages.iter().enumerate() {
        for (other_url, other) in &pages[..number] {
            let bits = page::fingerprint::distance(one.simhash, other.simhash);
            let is_copy = one.canonical.as_ref() == Some(other_url);
            assert_eq!(bits <= page::fingerprint::NEAR_BITS, is_copy, "{url} {other_url} {bits}");
        }
    }
}

#[test]
fn the_web_is_served_as_it_is_described_and_changes_when_told() {
    let sample = DemoSite::start().unwrap();
    let ask = |url: &str| {
        let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", sample.web().port())).unwrap();
        let head =
            format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let seeds = sample.seeds();
    assert_eq!(seeds.len(), names().len());
    assert!(seeds.iter().all(|seed| ask(seed).starts_with("HTTP/1.1 200 ")));
    let robots = ask(&format!("{}robots.txt", seeds[0]));
    assert!(robots.contains(&format!("Sitemap: {}sitemap.xml", seeds[0])), "{robots}");
    assert!(ask(&format!("{}sitemap.xml", seeds[0])).contains(&format!("<loc>{}</loc>", seeds[0])));
    sample.change();
    assert!(ask(&seeds[0]).contains("Skarvøy"));
    assert!(ask(&format!("http://{FAILING}:1/")).starts_with("HTTP/1.1 503 "));
}
