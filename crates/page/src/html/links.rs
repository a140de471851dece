//! The links of one document as they are found, and resolved at its end.
//!
//! Resolving waits for the end because `<base>` and `<meta name=robots>` speak for
//! the whole document wherever they stand. Relies on `url::Resolver`. Invariant:
//! at most [`FOUND_MAX`] links are held and `LINKS_MAX` given; each is absolute,
//! and no two of one kind lead to the same URL.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use super::Input;
use crate::facts::{Directives, Facts, LINKS_MAX, Link, LinkKind, Rel};
use crate::url::Resolver;

/// Links held before resolving: more than are given, as some lead nowhere.
const FOUND_MAX: usize = 4 * LINKS_MAX;

/// A place in [`FoundLinks`], by which the words of a link can be added later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkId(u32);

/// What was found that concerns links.
pub(super) struct FoundLinks<'d> {
    pub(super) agent: String,
    pub(super) images: bool,
    keep_fragment: bool,
    pub(super) directives: Directives,
    pub(super) base: Option<Cow<'d, str>>,
    pub(super) canonical: Option<Cow<'d, str>>,
    links: Vec<Raw<'d>>,
    /// The place of each `href` seen, so that a menu's repeated links cost little.
    places: LinkTable,
    overflow: bool,
}

/// A link before it is resolved.
struct Raw<'d> {
    href: Cow<'d, str>,
    anchor: String,
    kind: LinkKind,
    rel: Rel,
}

impl<'d> FoundLinks<'d> {
    pub(super) fn new(input: &Input<'_>) -> FoundLinks<'d> {
        FoundLinks {
            agent: input.agent.to_owned(),
            images: input.images,
            keep_fragment: input.policy.keep_fragment,
            directives: input.directives,
            base: None,
            canonical: None,
            links: Vec::new(),
            places: LinkTable::new(0),
            overflow: false,
        }
    }

    /// Adds a link, or finds it again. `None` when it names this very document or
    /// there are too many.
    pub(super) fn add(&mut self, href: Cow<'d, str>, kind: LinkKind, rel: Rel) -> Option<LinkId> {
        if self.overflow {
            return None;
        }
        let href = if self.keep_fragment { href } else { without_fragment(href)? };
        let hash = self.places.hash((&*href, kind));
        let known = self.places.get(hash).and_then(|at| Some((at, self.links.get_mut(at)?)));
        if let Some((at, link)) = known.filter(|(_, link)| link.kind == kind && link.href == href) {
            link.rel = both(link.rel, rel);
            return Some(LinkId(index(at)));
        }
        if self.links.len() >= FOUND_MAX {
            self.overflow = true;
            return None;
        }
        self.places.set(hash, self.links.len());
        let place = LinkId(index(self.links.len()));
        self.links.push(Raw { href, anchor: String::new(), kind, rel });
        Some(place)
    }

    /// Whether the link at `place` still has no words.
    pub(super) fn wants_words(&self, place: LinkId) -> bool {
        self.links.get(place.0 as usize).is_some_and(|link| link.anchor.is_empty())
    }

    /// Gives the link at `place` its words, unless it has some.
    pub(super) fn set_words(&mut self, place: LinkId, words: String) {
        let link = self.links.get_mut(place.0 as usize);
        if let Some(link) = link.filter(|link| link.anchor.is_empty()) {
            link.anchor = words;
        }
    }

    /// Resolves what was found into the facts; gives the resolver, for what else the page names.
    pub(super) fn finish(self, input: &Input<'_>, facts: &mut Facts) -> Option<Resolver> {
        facts.directives = self.directives;
        facts.truncated.links = self.overflow;
        let mut resolver = Resolver::new(input.url, input.policy).ok()?;
        if let Some(base) = &self.base {
            resolver.set_base(base);
        }
        let page_wide = if self.directives.nofollow { Rel::NOFOLLOW } else { Rel::default() };
        let mut given = OutLinks::new(self.links.len());
        for raw in self.links {
            let Ok(url) = resolver.resolve(&raw.href) else { continue };
            given.add(url, raw.anchor, raw.kind, raw.rel.with(page_wide));
        }
        facts.truncated.links |= given.overflow;
        facts.links = given.links;
        facts.canonical =
            self.canonical.and_then(|href| resolver.resolve(&href).ok().map(str::to_owned));
        Some(resolver)
    }
}

/// `href` up to its `#`; `None` when nothing is left, for then it is a place in this document.
fn without_fragment(href: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let whole = |text: &str| memchr::memchr(b'#', text.as_bytes()).unwrap_or(text.len());
    let cut = match href {
        Cow::Borrowed(text) => Cow::Borrowed(text[..whole(text)].trim_ascii()),
        Cow::Owned(text) => Cow::Owned(text[..whole(&text)].trim_ascii().to_owned()),
    };
    (!cut.is_empty()).then_some(cut)
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("FOUND_MAX fits 32 bits")
}

/// A promise holds for a target when every link to it makes it.
fn both(first: Rel, second: Rel) -> Rel {
    Rel(first.0 & second.0)
}

/// Where something stands in a list, by its hash.
///
/// The caller compares before taking what stands there for the same, so that a
/// collision costs a repeated entry at most. The hash has a random key: a page
/// cannot aim at collisions.
struct LinkTable {
    by_hash: HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>,
    hasher: RandomState,
}

impl LinkTable {
    fn new(expected: usize) -> LinkTable {
        let by_hash = HashMap::with_capacity_and_hasher(expected, BuildHasherDefault::default());
        LinkTable { by_hash, hasher: RandomState::new() }
    }

    fn hash(&self, what: impl Hash) -> u64 {
        self.hasher.hash_one(what)
    }

    fn get(&self, hash: u64) -> Option<usize> {
        self.by_hash.get(&hash).map(|&at| at as usize)
    }

    fn set(&mut self, hash: u64, at: usize) {
        self.by_hash.insert(hash, index(at));
    }
}

/// Hands a `u64` that is a hash already through to the table.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn write(&mut self, bytes: &[u8]) {
        // Only `write_u64` is used; this keeps the trait's promise for other input.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The links given, each URL once for a kind.
struct OutLinks {
    links: Vec<Link>,
    places: LinkTable,
    overflow: bool,
}

impl OutLinks {
    fn new(expected: usize) -> OutLinks {
        let expected = expected.min(LINKS_MAX);
        OutLinks {
            links: Vec::with_capacity(expected),
            places: LinkTable::new(expected),
            overflow: false,
        }
    }

    fn add(&mut self, url: &str, anchor: String, kind: LinkKind, rel: Rel) {
        let hash = self.places.hash((url, kind));
        let known = self.places.get(hash).and_then(|at| self.links.get_mut(at));
        if let Some(link) = known.filter(|link| link.kind == kind && link.url == url) {
            if link.anchor.is_empty() {
                link.anchor = anchor;
            }
            link.rel = both(link.rel, rel);
        } else if self.links.len() < LINKS_MAX {
            self.places.set(hash, self.links.len());
            self.links.push(Link { url: url.to_owned(), anchor, kind, rel });
        } else {
            self.overflow = true;
        }
    }
}
