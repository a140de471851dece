//! The generated site is what it says: whole, always the same, and truthful about its
//! visitors.

use std::collections::{BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::pages::Plan;
use super::{ENDLESS_REAL, Served, Site, Traffic};
use driftline::loopback_web::{Answer, Visit};

/// Status, head and body of a URL of this machine, whatever its host is called.
fn get(url: &str, headers: &str) -> (u16, String, String) {
    let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (host, port) = authority.split_once(':').unwrap();
    let address = if host.starts_with("127.") { host } else { "127.0.0.1" };
    let mut stream = TcpStream::connect((address, port.parse().unwrap())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let ask =
        format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

/// The links of a page, made absolute.
fn links(url: &str, body: &str) -> Vec<String> {
    let policy = page::url::Policy::default();
    let facts = page::html::extract(&page::html::Input::new(body.as_bytes(), url, &policy));
    facts.links.into_iter().map(|link| link.url).collect()
}

/// Every URL that is reached from the seeds, as a patient crawler would.
fn reached(seeds: Vec<String>, is_inside: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = seeds.iter().cloned().collect();
    let mut queue: VecDeque<String> = seeds.into();
    while let Some(url) = queue.pop_front() {
        let (status, head, body) = get(&url, "");
        let found = match status {
            200 => links(&url, &body),
            301 => head
                .lines()
                .filter_map(|line| line.strip_prefix("location: "))
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
        for link in found {
            if is_inside(&link) && known.insert(link.clone()) {
                queue.push_back(link);
            }
        }
    }
    known
}

fn with_step<'a>(urls: &'a BTreeSet<String>, step: &str) -> Vec<&'a String> {
    urls.iter().filter(|url| url.contains(step)).collect()
}

#[test]
fn every_page_is_reached_from_the_first() {
    let site = Site::with_pages(90).hosts(3).redirects(7).missing(100).serve();
    let urls = reached(vec![site.seed()], |_| true);
    assert_eq!(with_step(&urls, "/p/").len(), 90);
    assert_eq!(with_step(&urls, "/r/").len(), 7);
    assert_eq!(with_step(&urls, "/gone/").len(), 100);
    let traffic = site.take_traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    assert_eq!((traffic.with_status(301), traffic.with_status(404)), (7, 100));
    assert_eq!((traffic.repeats_count(), traffic.host_overlaps().len()), (0, 0));
    assert_eq!(traffic.by_first_step().into_values().sum::<usize>(), 197);
    assert!(site.traffic().visits().is_empty(), "what was taken is forgotten");
    assert_eq!(site.unfetched(&site.traffic()), site.page_urls());
}

#[test]
fn every_page_of_a_host_is_reached_within_it() {
    let site = Site::with_pages(40).named(&["a.example", "b.example"]).serve();
    let seeds = site.seeds();
    assert_eq!(seeds.len(), 2);
    let seed = seeds[1].clone();
    let host = page::url::origin_of(&seed).to_owned();
    let urls = reached(vec![seed], |url| url.starts_with(&host));
    assert_eq!(urls.len(), 20);
}

#[test]
fn pages_are_distinct_and_always_the_same() {
    let plan = Plan::new(300);
    let policy = page::url::Policy::default();
    let facts: Vec<_> = (0..300)
        .map(|page| {
            let html = plan.html(page, 0, 80);
            assert_eq!(html, plan.html(page, 0, 80));
            assert!((1_000..3_500).contains(&html.len()), "{}", html.len());
            let input = page::html::Input::new(html.as_bytes(), "http://127.0.0.1/p/0", &policy);
            page::html::extract(&input)
        })
        .collect();
    let many = facts.iter().filter(|facts| facts.links.len() >= 6).count();
    assert!(many > 280, "{many} pages have six links");
    for (number, one) in facts.iter().enumerate() {
        for other in &facts[..number] {
            let bits = page::fingerprint::distance(one.simhash, other.simhash);
            assert!(bits > page::fingerprint::NEAR_BITS, "page {number} is like another");
        }
    }
}

#[test]
fn a_page_changes_only_when_it_is_told_to() {
    let site = Site::with_pages(5).serve();
    let url = site.page_url(3);
    let (_, head, first) = get(&url, "");
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let known = format!("If-None-Match: {tag}\r\n");
    assert_eq!(get(&url, &known).0, 304);
    site.edit([3]);
    let (status, _, second) = get(&url, &known);
    assert_eq!(status, 200);
    assert_ne!(first, second);
    site.remove([3]);
    assert_eq!(get(&url, &known).0, 404);
    site.restore();
    assert_eq!(get(&url, "").0, 200);
    site.intercept(|request| (request.path == "/p/3").then(|| Answer::status(503)));
    assert_eq!(get(&url, "").0, 503);
    assert_eq!(get(&site.page_url(2), "").0, 200);
    assert_eq!(site.traffic().unconditional_count(), 4);
}

#[test]
fn a_site_has_the_robots_txt_it_was_given_and_no_other() {
    let robots = |site: &Served| {
        let (status, _, body) = get(&site.web().url("127.0.0.1", "/robots.txt"), "");
        (status, body.contains("Crawl-delay"))
    };
    assert_eq!(robots(&Site::with_pages(1).serve()), (404, false));
    let site = Site::with_pages(1).robots("User-agent: *\nCrawl-delay: 1\n").serve();
    assert_eq!(robots(&site), (200, true));
    assert!(site.traffic().counts().is_empty(), "robots.txt is no document");
}

#[test]
fn a_site_without_end_has_all_its_real_pages() {
    let site = Site::endless().named(&["endless.example"]).serve();
    let real = reached(vec![site.seed()], |url| url.contains("/p/"));
    assert_eq!(real.len(), ENDLESS_REAL);
    let seen = site.take_traffic();
    assert_eq!(seen.counts().len(), ENDLESS_REAL);
}

#[test]
fn every_trap_leads_to_pages_that_were_not_there_before() {
    let site = Site::endless().named(&["endless.example"]).serve();
    let here = site.web().url("endless.example", "");
    let within = |steps: usize, begin: &str| {
        let mut known = BTreeSet::from([format!("{here}{begin}")]);
        for _ in 0..steps {
            let more: Vec<String> =
                known.iter().flat_map(|url| links(url, &get(url, "").2)).collect();
            known.extend(more.into_iter().filter(|url| !url.contains("/p/")));
        }
        known.len()
    };
    for begin in ["/calendar/2024/1", "/shop", "/deep/again/", "/lost/1", "/lobby?visit=1"] {
        let (few, more) = (within(2, begin), within(4, begin));
        assert!(few > 2 && more > few, "{begin}: {few}, {more}");
    }
    let other = site.web().url("n1.endless.example", "/");
    let onward = links(&other, &get(&other, "").2);
    assert_eq!(onward.iter().filter(|url| url.contains(".endless.example")).count(), 2);
    let steps = site.traffic().by_first_step();
    assert!(steps.contains_key("shop") && steps.contains_key("calendar"), "{steps:?}");
}

fn visit(id: u64, place: (&str, &str), began: u64, ended: u64) -> Visit {
    let (host, path) = (place.0.to_owned(), place.1.to_owned());
    let (began, ended) = (Duration::from_millis(began), Duration::from_millis(ended));
    Visit { id, host, path, status: 200, is_conditional: false, began, ended }
}

#[test]
fn overlaps_gaps_and_repeats_are_found() {
    let traffic = Traffic::new(vec![
        visit(2, ("a", "/1"), 10, 20),
        visit(1, ("a", "/1"), 0, 5),
        visit(3, ("b", "/1"), 12, 90),
        visit(4, ("b", "/1"), 20, 30),
        visit(5, ("b", "/2"), 40, 50),
        visit(6, ("a", "/robots.txt"), 23, 24),
        visit(7, ("a", "/robots.txt"), 30, 31),
    ]);
    let ids = |pairs: Vec<(&Visit, &Visit)>| -> Vec<(u64, u64)> {
        pairs.into_iter().map(|(one, other)| (one.id, other.id)).collect()
    };
    assert_eq!(ids(traffic.host_overlaps()), [(3, 4), (3, 5)]);
    assert_eq!(ids(traffic.document_overlaps()), [(3, 4)]);
    let gaps = traffic.smallest_gaps();
    assert_eq!(gaps["a"], Duration::from_millis(3));
    assert_eq!(gaps["b"], Duration::ZERO);
    assert_eq!(traffic.smallest_gap(), Some(Duration::ZERO));
    let repeats: Vec<_> = traffic.repeats().into_iter().collect();
    assert_eq!(repeats, [("a/1".to_owned(), 1), ("b/1".to_owned(), 1)]);
}

#[test]
fn a_log_file_says_what_the_memory_says() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("log");
    let site =
        Site::with_pages(20).log_file(&file).answering_after(Duration::from_millis(1)).serve();
    let port = site.web().port();
    reached(vec![site.seed()], |_| true);
    let (told, read) = (site.traffic(), Traffic::read(&file));
    assert_eq!(told.counts(), read.counts());
    assert_eq!(told.visits().len(), read.visits().len());
    for (one, other) in told.visits().iter().zip(read.visits()) {
        assert_eq!((one.id, one.status, &one.path), (other.id, other.status, &other.path));
        assert!(one.ended - one.began >= Duration::from_millis(1));
    }
    drop(site);
    assert_eq!(Site::with_pages(1).port(port).serve().web().port(), port);
}
