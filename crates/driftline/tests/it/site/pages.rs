//! The pages of a generated site: who links to whom, and what they say.
//!
//! Pure functions of the plan and a page's number, so that a site of any size takes no
//! memory. Invariants: from page 0 every page is reached, from the first page of a host
//! every page of that host; no two pages have the same text.

use std::fmt::Write;

/// Children of a page in the tree of its host.
const CHILDREN: usize = 4;
/// Links of a page to anywhere.
const LINKS_ANYWHERE: u64 = 6;
/// What keeps the targets of redirects apart from those of links.
const REDIRECT_SALT: u64 = 1;
const LINK_SALT: u64 = 2;
/// Words of a page: this many and up to as many again.
const WORDS: u64 = 130;
/// Words are made of two or three of these.
const SYLLABLES: [&str; 32] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su",
    "ta", "ve", "wi", "xo", "yu", "za", "bre", "cli", "dro", "flu", "gra", "ple", "sti", "tro",
    "shu", "mar", "wen",
];

/// What a site consists of.
#[derive(Debug, Clone)]
pub struct Plan {
    pub pages: usize,
    pub hosts: Vec<String>,
    pub redirects: usize,
    pub missing: usize,
    pub has_traps: bool,
}

impl Plan {
    pub fn new(pages: usize) -> Plan {
        let hosts = vec!["127.0.0.1".to_owned()];
        Plan { pages, hosts, redirects: 0, missing: 0, has_traps: false }
    }

    /// The host of a page, or of whatever has a number.
    pub fn host(&self, number: usize) -> &str {
        &self.hosts[number % self.hosts.len()]
    }

    /// Host and path of a page, as `Traffic` names it.
    pub fn place(&self, page: usize) -> String {
        format!("{}/p/{page}", self.host(page))
    }

    /// The URL of a page.
    pub fn url(&self, page: usize, port: u16) -> String {
        format!("http://{}:{port}/p/{page}", self.host(page))
    }

    /// The page at a path of a host.
    pub fn page_at(&self, host: &str, path: &str) -> Option<usize> {
        self.numbered("/p/", self.pages, (host, path))
    }

    /// The page that a path of a host redirects to.
    pub fn redirect_at(&self, host: &str, path: &str) -> Option<usize> {
        let number = self.numbered("/r/", self.redirects, (host, path))?;
        self.anywhere(REDIRECT_SALT, number as u64)
    }

    fn numbered(&self, prefix: &str, count: usize, (host, path): (&str, &str)) -> Option<usize> {
        let number: usize = path.strip_prefix(prefix)?.parse().ok()?;
        let is_here = number < count && self.host(number) == host;
        (is_here && path == format!("{prefix}{number}")).then_some(number)
    }

    /// The path of a host's first page.
    pub fn first_of(&self, host: &str) -> Option<String> {
        let number = self.hosts.iter().position(|known| known == host)?;
        (number < self.pages).then(|| format!("/p/{number}"))
    }

    /// Any page, always the same for the same arguments.
    fn anywhere(&self, salt: u64, number: u64) -> Option<usize> {
        let pages = u64::try_from(self.pages).unwrap();
        let at = hash(salt, number).checked_rem(pages)?;
        Some(usize::try_from(at).unwrap())
    }

    /// The links of a page: path and host's number, in the order of the page.
    pub fn links(&self, page: usize) -> Vec<(usize, String)> {
        let hosts = self.hosts.len();
        let (own, place) = (page % hosts, page / hosts);
        let children = (1..=CHILDREN).map(|n| (place * CHILDREN + n) * hosts + own);
        let firsts = if page == 0 { 1..hosts } else { 0..0 };
        let start = page as u64 * LINKS_ANYWHERE;
        let far = (0..LINKS_ANYWHERE).filter_map(|n| self.anywhere(LINK_SALT, start + n));
        let mut targets: Vec<usize> = Vec::new();
        for target in children.chain(firsts).chain(far) {
            if target < self.pages && target != page && !targets.contains(&target) {
                targets.push(target);
            }
        }
        let mut links: Vec<(usize, String)> =
            targets.iter().map(|target| (*target, format!("/p/{target}"))).collect();
        // What is no page hangs on the pages in turn.
        let hanging = |count| (page..count).step_by(self.pages.max(1));
        links.extend(hanging(self.redirects).map(|number| (number, format!("/r/{number}"))));
        links.extend(hanging(self.missing).map(|number| (number, format!("/gone/{number}"))));
        links
    }

    /// The page as HTML.
    pub fn html(&self, page: usize, edition: u64, port: u16) -> String {
        let seed = page as u64;
        let title = words(hash(seed, 7), 4);
        let text = words(hash(seed, 1 + (edition << 8)), WORDS + hash(seed, 2) % WORDS);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>Page {page}: {title}</title></head>\n<body><h1>Page {page}: {title}</h1>\n\
             <p>Edition {edition}. {text}.</p>\n<ul>\n"
        );
        for (number, path) in self.links(page) {
            let host = self.host(number);
            let anchor = words(hash(seed, 100 + number as u64), 2);
            // Within a host links are relative, as they mostly are.
            let origin = if host == self.host(page) {
                String::new()
            } else {
                format!("http://{host}:{port}")
            };
            let _ = writeln!(html, "<li><a href=\"{origin}{path}\">{anchor}</a></li>");
        }
        if self.has_traps {
            super::endless::write_links(self, page, port, &mut html);
        }
        html.push_str("</ul></body></html>\n");
        html
    }
}

/// So many invented words; the same for the same seed.
pub fn words(seed: u64, count: u64) -> String {
    let mut text = String::with_capacity(usize::try_from(count).unwrap() * 8);
    for number in 0..count {
        let mut bits = hash(seed, number);
        if number > 0 {
            text.push_str(if bits.is_multiple_of(11) { ". " } else { " " });
        }
        for _ in 0..2 + (bits >> 60) % 2 {
            text.push_str(SYLLABLES[usize::try_from(bits % 32).unwrap()]);
            bits >>= 5;
        }
    }
    text
}

/// SplitMix64 of two numbers: the same on every machine.
pub fn hash(one: u64, two: u64) -> u64 {
    let mut mixed = one.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(two).wrapping_add(1);
    mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
