//! What two crawls of the sample web must find, worked out without a crawler.
//!
//! Walks the web by asking its answering function, with the parsers of `page` and the
//! plainest reading of the rules: robots.txt is obeyed, `nofollow` links are not
//! followed, a `noindex` page is read but not kept, redirects and links are followed
//! within the sample. The second crawl looks at everything the first one knew. Invariant:
//! no I/O, no clock, nothing of the crawl.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use page::facts::{Facts, LinkKind, Rel};
use page::html::{self, Input};
use page::robots::Robots;
use page::url::{Policy, origin_of, path_of};

use super::{CALENDAR_STEP, FAILING, Fate, HOSTS, SITEMAP, SiteState, answer, written};
use crate::loopback_web::{Answer, Request};

/// The months of the calendar that are let in, besides the first page: a path that
/// repeats a step more often is taken for endless.
pub const CALENDAR_MONTHS: usize = 2;

/// What a crawler is told to do.
#[derive(Debug, Clone, Copy)]
pub struct Manners<'a> {
    /// The name by which robots.txt addresses it.
    pub agent: &'a str,
    /// Whether it also takes the sitemaps that robots.txt names, and what they list.
    pub sitemaps: bool,
}

impl Default for Manners<'_> {
    fn default() -> Self {
        Manners { agent: "driftline", sitemaps: false }
    }
}

/// The fate of every URL in the first and in the second crawl. What only `nofollow`
/// links lead to is in neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedSite {
    /// Of the first state.
    pub first: BTreeMap<String, Fate>,
    pub second: BTreeMap<String, Fate>,
}

impl ExpectedSite {
    /// How many URLs have a fate in a crawl: `Expected::count(&expected.first, …)`.
    pub fn count(crawl: &BTreeMap<String, Fate>, fate: Fate) -> usize {
        crawl.values().filter(|one| **one == fate).count()
    }

    /// The URLs of a fate.
    pub fn of(crawl: &BTreeMap<String, Fate>, fate: Fate) -> Vec<&str> {
        let is_meant = |entry: &(&String, &Fate)| *entry.1 == fate;
        crawl.iter().filter(is_meant).map(|(url, _)| url.as_str()).collect()
    }
}

/// Works out both crawls, begun at the first page of every host at this port.
pub fn expected(port: u16, manners: Manners<'_>) -> ExpectedSite {
    let seeds = HOSTS.iter().map(|host| format!("{}/", written::origin(host, port)));
    let before = walk(seeds.collect(), SiteState::Before, manners);
    let after = walk(before.keys().cloned().collect(), SiteState::After, manners);
    let first = before.iter().map(|(url, answer)| (url.clone(), alone(answer))).collect();
    let second = after.iter().map(|(url, answer)| (url.clone(), both(before.get(url), answer)));
    ExpectedSite { first, second: second.collect() }
}

/// What a URL says in one state.
enum ExpectedAnswer {
    Page { facts: Box<Facts>, has_validator: bool },
    Noindex,
    Redirect,
    Missing,
    Failing,
    Robots,
    Trap,
}

/// A fate in a crawl that knows nothing.
fn alone(answer: &ExpectedAnswer) -> Fate {
    match answer {
        ExpectedAnswer::Page { .. } => Fate::Added,
        ExpectedAnswer::Noindex => Fate::Noindex,
        ExpectedAnswer::Redirect => Fate::Redirect,
        ExpectedAnswer::Missing => Fate::Missing,
        ExpectedAnswer::Failing => Fate::Failing,
        ExpectedAnswer::Robots => Fate::Robots,
        ExpectedAnswer::Trap => Fate::Trap,
    }
}

/// A fate in a crawl that knows what was told before.
fn both(before: Option<&ExpectedAnswer>, answer: &ExpectedAnswer) -> Fate {
    let Some(ExpectedAnswer::Page { facts: known, .. }) = before else { return alone(answer) };
    match answer {
        ExpectedAnswer::Page { facts, has_validator } => {
            let is_same = facts.content_hash == known.content_hash;
            match (is_same, has_validator) {
                (true, true) => Fate::Kept,
                (true, false) => Fate::Same,
                (false, _) if is_restyled(known, facts) => Fate::Restyled,
                (false, _) => Fate::Updated,
            }
        }
        ExpectedAnswer::Missing => Fate::Removed,
        ExpectedAnswer::Redirect => Fate::Moved,
        other => alone(other),
    }
}

/// The same text in other bytes. A sitemap has no text.
fn is_restyled(known: &Facts, facts: &Facts) -> bool {
    facts.text_hash == known.text_hash && !facts.text.is_empty()
}

/// Everything that is reached from some URLs, and what it says.
fn walk(
    begin: Vec<String>,
    state: SiteState,
    manners: Manners<'_>,
) -> BTreeMap<String, ExpectedAnswer> {
    let mut known: BTreeMap<String, ExpectedAnswer> = BTreeMap::new();
    let mut queue: VecDeque<String> = begin.into();
    if manners.sitemaps {
        let port = queue.front().map_or(80, |url| ask(url).port());
        let with_sitemap = HOSTS.iter().filter(|host| !host.sitemap.is_empty());
        queue.extend(with_sitemap.map(|host| written::origin(host, port) + SITEMAP));
    }
    while let Some(url) = queue.pop_front() {
        if let Entry::Vacant(place) = known.entry(url) {
            let answer = expected_answer(place.key(), state, manners.agent, &mut queue);
            place.insert(answer);
        }
    }
    known
}

/// What one URL says; where it leads joins the queue.
fn expected_answer(
    url: &str,
    state: SiteState,
    agent: &str,
    queue: &mut VecDeque<String>,
) -> ExpectedAnswer {
    let request = ask(url);
    if request.path.matches(CALENDAR_STEP).count() > CALENDAR_MONTHS {
        return ExpectedAnswer::Trap;
    }
    // A host that fails now has told its rules before.
    let rules = answer(SiteState::Before, &ask(&format!("{}/robots.txt", origin_of(url))));
    if !Robots::parse(&rules.body).verdict(agent, &request.path).allowed {
        return ExpectedAnswer::Robots;
    }
    if request.host == FAILING && state == SiteState::After {
        return ExpectedAnswer::Failing;
    }
    let answer = answer(state, &request);
    match answer.status {
        200 => read(url, &answer, queue),
        301 | 302 => {
            queue.extend(header(&answer, "location").map(str::to_owned));
            ExpectedAnswer::Redirect
        }
        _ => ExpectedAnswer::Missing,
    }
}

fn read(url: &str, answer: &Answer, queue: &mut VecDeque<String>) -> ExpectedAnswer {
    let has_validator =
        header(answer, "etag").is_some() || header(answer, "last-modified").is_some();
    if path_of(url) == SITEMAP {
        queue.extend(listed_pages(&answer.body));
        let content_hash = page::fingerprint::content_hash(&answer.body);
        let facts = Box::new(Facts { content_hash, ..Facts::default() });
        return ExpectedAnswer::Page { facts, has_validator };
    }
    let facts = html::extract(&Input::new(&answer.body, url, &Policy::default()));
    let followed = facts.links.iter().filter(|link| {
        link.kind == LinkKind::A && !link.rel.has(Rel::NOFOLLOW) && !facts.directives.nofollow
    });
    queue.extend(followed.map(|link| link.url.clone()));
    if facts.directives.noindex {
        return ExpectedAnswer::Noindex;
    }
    ExpectedAnswer::Page { facts: Box::new(facts), has_validator }
}

/// What a sitemap lists.
fn listed_pages(xml: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(xml);
    let locations = text.split("<loc>").skip(1).filter_map(|rest| rest.split('<').next());
    locations.map(str::to_owned).collect()
}

/// The request that a crawler would send.
fn ask(url: &str) -> Request {
    let authority = url.split('/').nth(2).unwrap_or_default();
    Request::get(authority, path_of(url))
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}
