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

use super::{CALENDAR_STEP, FAILING, Fate, HOSTS, SITEMAP, State, answer, written};
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
pub struct Expected {
    /// Of the first state.
    pub first: BTreeMap<String, Fate>,
    pub second: BTreeMap<String, Fate>,
}

impl Expected {
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
pub fn expected(port: u16, manners: Manners<'_>) -> Expected {
    let seeds = HOSTS.iter().map(|host| format!("{}/", written::origin(host, port)));
    let before = walk(seeds.collect(), State::Before, manners);
    let after = walk(before.keys().cloned().collect(), State::After, manners);
    let first = before.iter().map(|(url, told)| (url.clone(), alone(told))).collect();
    let second = after.iter().map(|(url, told)| (url.clone(), both(before.get(url), told)));
    Expected { first, second: second.collect() }
}

/// What a URL says in one state.
enum Told {
    Page { facts: Box<Facts>, has_validator: bool },
    Noindex,
    Redirect,
    Missing,
    Failing,
    Robots,
    Trap,
}

/// A fate in a crawl that knows nothing.
fn alone(told: &Told) -> Fate {
    match told {
        Told::Page { .. } => Fate::Added,
        Told::Noindex => Fate::Noindex,
        Told::Redirect => Fate::Redirect,
        Told::Missing => Fate::Missing,
        Told::Failing => Fate::Failing,
        Told::Robots => Fate::Robots,
        Told::Trap => Fate::Trap,
    }
}

/// A fate in a crawl that knows what was told before.
fn both(before: Option<&Told>, told: &Told) -> Fate {
    let Some(Told::Page { facts: known, .. }) = before else { return alone(told) };
    match told {
        Told::Page { facts, has_validator } => {
            let is_same = facts.content_hash == known.content_hash;
            match (is_same, has_validator) {
                (true, true) => Fate::Kept,
                (true, false) => Fate::Same,
                (false, _) if is_restyled(known, facts) => Fate::Restyled,
                (false, _) => Fate::Updated,
            }
        }
        Told::Missing => Fate::Removed,
        Told::Redirect => Fate::Moved,
        other => alone(other),
    }
}

/// The same text in other bytes. A sitemap has no text.
fn is_restyled(known: &Facts, facts: &Facts) -> bool {
    facts.text_hash == known.text_hash && !facts.text.is_empty()
}

/// Everything that is reached from some URLs, and what it says.
fn walk(begin: Vec<String>, state: State, manners: Manners<'_>) -> BTreeMap<String, Told> {
    let mut known: BTreeMap<String, Told> = BTreeMap::new();
    let mut queue: VecDeque<String> = begin.into();
    if manners.sitemaps {
        let port = queue.front().map_or(80, |url| ask(url).port());
        let with_sitemap = HOSTS.iter().filter(|host| !host.sitemap.is_empty());
        queue.extend(with_sitemap.map(|host| written::origin(host, port) + SITEMAP));
    }
    while let Some(url) = queue.pop_front() {
        if let Entry::Vacant(place) = known.entry(url) {
            let told = tell(place.key(), state, manners.agent, &mut queue);
            place.insert(told);
        }
    }
    known
}

/// What one URL says; where it leads joins the queue.
fn tell(url: &str, state: State, agent: &str, queue: &mut VecDeque<String>) -> Told {
    let request = ask(url);
    if request.path.matches(CALENDAR_STEP).count() > CALENDAR_MONTHS {
        return Told::Trap;
    }
    // A host that fails now has told its rules before.
    let rules = answer(State::Before, &ask(&format!("{}/robots.txt", origin_of(url))));
    if !Robots::parse(&rules.body).verdict(agent, &request.path).allowed {
        return Told::Robots;
    }
    if request.host == FAILING && state == State::After {
        return Told::Failing;
    }
    let answer = answer(state, &request);
    match answer.status {
        200 => read(url, &answer, queue),
        301 | 302 => {
            queue.extend(header(&answer, "location").map(str::to_owned));
            Told::Redirect
        }
        _ => Told::Missing,
    }
}

fn read(url: &str, answer: &Answer, queue: &mut VecDeque<String>) -> Told {
    let has_validator =
        header(answer, "etag").is_some() || header(answer, "last-modified").is_some();
    if path_of(url) == SITEMAP {
        queue.extend(listed(&answer.body));
        let content_hash = page::fingerprint::content_hash(&answer.body);
        let facts = Box::new(Facts { content_hash, ..Facts::default() });
        return Told::Page { facts, has_validator };
    }
    let facts = html::extract(&Input::new(&answer.body, url, &Policy::default()));
    let followed = facts.links.iter().filter(|link| {
        link.kind == LinkKind::A && !link.rel.has(Rel::NOFOLLOW) && !facts.directives.nofollow
    });
    queue.extend(followed.map(|link| link.url.clone()));
    if facts.directives.noindex {
        return Told::Noindex;
    }
    Told::Page { facts: Box::new(facts), has_validator }
}

/// What a sitemap lists.
fn listed(xml: &[u8]) -> Vec<String> {
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
