//! Budgets in simulated crawls (endless sites end, honest ones are found whole), and
//! what each rule closes.
//!
//! Here is the crawl in memory that the tests share: the nearest pages first, links
//! judged by scope and budgets as a worker does, pages made by a function.

mod endless;
mod honest;
mod lists;
mod unlinked;
mod verdicts;

use super::*;
use crate::scope::{Reach, Scope, ScopeRules};
use page::fingerprint::{simhash, text_hash};
use page::url::{Policy, canonical};
use std::collections::{BTreeMap, HashMap, VecDeque};

const JOB: JobId = JobId(1);
const PART: Part = Part(3);

/// What a made-up host answers.
struct Answer {
    text: String,
    links: Vec<String>,
}

/// What a crawl came to.
struct Outcome {
    /// URLs that were fetched, in order.
    fetched: Vec<String>,
    /// What was closed, with how many links of it were refused.
    closed: BTreeMap<String, (ClosedPattern, usize)>,
    budgets: Budgets,
}

impl Outcome {
    /// How many of what was fetched begin so.
    fn count(&self, is_one: impl Fn(&str) -> bool) -> usize {
        self.fetched.iter().filter(|url| is_one(url)).count()
    }

    /// What was closed, for people.
    fn report(&self) -> String {
        let lines = self
            .closed
            .values()
            .map(|(closed, refused)| format!("{refused} refused: {}\n", closed.explain()));
        lines.collect()
    }
}

/// Crawls from a seed, at most so many pages.
fn crawl(seed: &str, pages_max: usize, site: impl Fn(&str) -> Answer) -> Outcome {
    let suffixes = Arc::new(SuffixList::bundled().clone());
    let rules = ScopeRules { reach: Reach::Domain, ..ScopeRules::default() };
    let scope = Scope::new(&rules, [seed], Arc::clone(&suffixes)).unwrap();
    let mut crawl = Crawl {
        scope,
        queue: VecDeque::from([(seed.to_owned(), 0)]),
        known: HashMap::from([(seed.to_owned(), true)]),
        outcome: Outcome {
            fetched: Vec::new(),
            closed: BTreeMap::new(),
            budgets: Budgets::new(BudgetLimits::default(), suffixes),
        },
    };
    while let Some((url, hops)) = crawl.queue.pop_front() {
        if !crawl.lets_in(&url, hops, None) {
            crawl.known.insert(url, false);
            continue;
        }
        if crawl.outcome.fetched.len() == pages_max {
            break;
        }
        crawl.fetch(&url, hops, site(&url));
    }
    crawl.outcome
}

struct Crawl {
    scope: Scope,
    queue: VecDeque<(String, i64)>,
    /// Whether it was let in; what was not is judged again when it is named again.
    known: HashMap<String, bool>,
    outcome: Outcome,
}

fn bin(url: &str) -> BinId {
    BinId(bin_of(host_of(url)))
}

impl Crawl {
    fn lets_in(&mut self, url: &str, hops: i64, from: Option<Novelty>) -> bool {
        let dochash = DocHash::of(url);
        let (host_pages, list_depth) = (NO_LIMIT, 0);
        let bin = bin(url);
        let link =
            CandidateLink { job: JOB, bin, url, dochash, hops, from, host_pages, list_depth };
        let Some(closed) = self.outcome.budgets.judge(&link) else { return true };
        let name = format!("{} {}", closed.pattern, closed.rule.code());
        let entry = self.outcome.closed.entry(name).or_insert_with(|| (closed.clone(), 0));
        *entry = (closed, entry.1 + 1);
        false
    }

    fn fetch(&mut self, url: &str, hops: i64, answer: Answer) {
        let content = match answer.text.as_str() {
            "" => ContentDigest::Nothing,
            text => ContentDigest::Words { text, hash: text_hash(text), simhash: simhash(text) },
        };
        let dochash = DocHash::of(url);
        let seen = FetchedDocument {
            job: JOB,
            part: PART,
            bin: bin(url),
            url,
            dochash,
            hops,
            content,
            look: LookKind::First,
            host_pages: NO_LIMIT,
            is_named_elsewhere: false,
        };
        let from = self.outcome.budgets.fetched(&seen);
        self.outcome.fetched.push(url.to_owned());
        for link in answer.links {
            let link = canonical(&link, &Policy::default()).unwrap();
            if self.known.get(&link) == Some(&true) {
                if from == Novelty::Fresh {
                    self.outcome.budgets.vouch(JOB, DocHash::of(&link));
                }
                continue;
            }
            if self.scope.judge(&link, hops + 1).is_err() {
                continue;
            }
            let is_in = self.lets_in(&link, hops + 1, Some(from));
            if is_in {
                self.queue.push_back((link.clone(), hops + 1));
            }
            self.known.insert(link, is_in);
        }
    }
}

/// A number that a text decides.
fn number(text: &str) -> u64 {
    text.bytes().fold(0x9e37_79b9_7f4a_7c15, |hash, byte| {
        let hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        hash ^ hash >> 29
    })
}

/// So many made-up words that a text decides, the common ones more often, as in a
/// language.
fn words(of: &str, count: usize) -> String {
    let mut state = number(of) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let word = |number: u64| {
        const SYLLABLES: [&str; 16] = [
            "ka", "lo", "mi", "ren", "tu", "sa", "vel", "do", "pin", "ga", "hu", "be", "nor", "fi",
            "zo", "que",
        ];
        let syllable = |at: u32| SYLLABLES[(number >> (4 * at)) as usize % 16];
        format!("{}{}{}", syllable(0), syllable(1), syllable(2))
    };
    let words: Vec<String> = (0..count)
        .map(|_| if next() % 2 == 0 { word(next() % 100) } else { word(next() % 4_096) })
        .collect();
    words.join(" ")
}
