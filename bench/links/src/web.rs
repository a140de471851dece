//! A made-up web that is the same every time: pages in domains of very different sizes,
//! about 15 links each, to targets of which few are linked to by many (Zipf).
//!
//! A third of the URIs is never crawled, as on the real web, where it is most of them.

use outputs::links::{PageChange, PageContent, What};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;

/// Domains.
const DOMAINS: u64 = 50_000;
/// Links of a page: this many at least, and up to so many more.
const LINKS_MIN: u64 = 5;
const LINKS_SPREAD: u64 = 21;
/// When the first page was fetched, and how long one takes.
const FIRST_MS: i64 = 1_790_000_000_000;
const PAGE_MS: i64 = 10;
/// One link of ten is another one when a page has changed.
const CHANGED_OF: u64 = 10;
const WORDS: [&str; 64] = [
    "about", "access", "annual", "archive", "article", "author", "basic", "better", "blog", "book",
    "browse", "build", "chapter", "city", "code", "company", "contact", "data", "design",
    "details", "digital", "download", "editor", "events", "example", "family", "forum", "free",
    "gallery", "garden", "guide", "health", "history", "home", "index", "install", "journal",
    "latest", "library", "manual", "market", "media", "music", "network", "news", "notes",
    "online", "open", "overview", "paper", "photo", "policy", "press", "privacy", "project",
    "reference", "report", "research", "review", "science", "search", "service", "software",
    "travel",
];

/// The web.
#[derive(Clone, Copy)]
pub struct Web {
    /// Pages that are crawled.
    pub pages: u64,
}

/// A number that looks random, from two.
fn mixed(one: u64, other: u64) -> u64 {
    let mut word = one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other.rotate_left(32);
    for _ in 0..2 {
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word ^= word >> 27;
    }
    word
}

fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

impl Web {
    /// URIs that are linked to: a third of them are no pages.
    pub fn uris(&self) -> u64 {
        self.pages + self.pages / 2
    }

    /// The row of a URI. The square makes some domains large.
    pub fn uri(&self, number: u64) -> String {
        let share = unit(mixed(number, 1));
        let domain = (share * share * DOMAINS as f64) as u64;
        let words = mixed(number, 2);
        let word = |at: u64| WORDS[(words >> (6 * at)) as usize % WORDS.len()];
        let www = if domain % 3 == 0 { ".www" } else { "" };
        let name = WORDS[mixed(domain, 8) as usize % WORDS.len()];
        format!("com.{name}{domain}>{www}>s>/{}/{}-{number}.html", word(0), word(1))
    }

    /// Targets of a page, each once, as numbers of URIs.
    pub fn targets(&self, page: u64, version: u64) -> Vec<u64> {
        let count = LINKS_MIN + mixed(page, 3) % LINKS_SPREAD;
        let mut targets: Vec<u64> = (0..count)
            .map(|link| {
                let seed = mixed(page, 100 + link);
                let is_other = version > 0 && mixed(seed, version) % CHANGED_OF == 0;
                let draw = if is_other { mixed(seed, 77 + version) } else { seed };
                // Ranks by 1/r, and which URI has which rank is anybody's guess.
                let rank = ((unit(draw) * (self.uris() as f64).ln()).exp() - 1.0) as u64;
                rank.min(self.uris() - 1).wrapping_mul(2_654_435_761) % self.uris()
            })
            .collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// A page as the index is told of it. Version 0 is the first.
    pub fn change(&self, page: u64, version: u64) -> PageChange {
        let anchor = |target: u64| {
            // Most who link to a page call it the same.
            let words = match mixed(page, target) % 10 {
                0..7 => mixed(target, 4),
                other => mixed(target, 5 + other),
            };
            let word = |at: u64| WORDS[(words >> (6 * at)) as usize % WORDS.len()];
            format!("{} {}", word(0), word(1))
        };
        let link = |target: u64| OutLink {
            uri: self.uri(target),
            anchor: anchor(target),
            kind: LinkKind::A,
            rel: Rel::default(),
        };
        let mut links: Vec<OutLink> =
            self.targets(page, version).into_iter().map(link).collect();
        links.sort_unstable_by(|one, other| one.uri.cmp(&other.uri));
        let words = mixed(page, 6);
        let word = |at: u64| WORDS[(words >> (6 * at)) as usize % WORDS.len()];
        let title = format!("{} {} {}", word(0), word(1), word(2));
        let content = PageContent { status: 200, title, server: String::new(), links };
        let later_ms = i64::try_from(version * self.pages + page).unwrap_or(0) * PAGE_MS;
        PageChange {
            uri: self.uri(page),
            date_ms: FIRST_MS + later_ms,
            job: 1,
            in_order: true,
            what: What::Page(Box::new(content)),
        }
    }
}
