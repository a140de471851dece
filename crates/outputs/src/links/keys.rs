//! Which rows there are, and what their keys look like.
//!
//! | family | key | row |
//! |---|---|---|
//! | pages | number | a page and what it links to |
//! | seen | number | when a page that did not change was last seen |
//! | nodes | hash of the URI | a URI: its in-links counted, its page if it was crawled |
//! | inlinks | hash, form, … | who links to a URI |
//! | lost | hash, time, source | who linked to a URI, until when and why |
//! | ranks | class, in-links, URI | URIs from most to least linked, of all and of a domain |
//! | domains | domain; pages, domain | the pages of domains, and domains from most to least |
//! | meta | name | how far the part is |
//!
//! All rows of a URI lie in the part of its domain. Pages have numbers, given in the order
//! of their first crawl, so that pages are appended and sources are small. A URI is in one
//! of two classes, crawled or not: by in-links and by score (one more if crawled) the two
//! lists of a ranking merge into one.

use super::counts;
use page::ids::DocHash;
use page::outlinks::domain_of;
use store::ids::Part;
use store::sorted::{Family, Habit};

/// What each crawled page says: its row, title and links.
pub const PAGES: Family = Family { byte: b'p', name: "pages", habit: Habit::Kept };
/// When each page was last seen.
pub const SEEN: Family = Family { byte: b's', name: "seen", habit: Habit::Looked };
/// The counts of each URI that is linked to or crawled.
pub const NODES: Family = Family { byte: b'n', name: "nodes", habit: Habit::Looked };
/// The in-links of each URI, in blocks.
pub const INLINKS: Family = Family { byte: b'i', name: "inlinks", habit: Habit::Ranked };
/// In-links that were lost, kept for a while.
pub const LOST: Family = Family { byte: b'l', name: "lost", habit: Habit::Ranked };
/// URIs in the order of their scores.
pub const RANKS: Family = Family { byte: b'r', name: "ranks", habit: Habit::Ranked };
/// Domains and their ranking.
pub const DOMAINS: Family = Family { byte: b'd', name: "domains", habit: Habit::Looked };
/// How far the part is.
pub const META: Family = Family { byte: b'm', name: "meta", habit: Habit::Looked };

/// All families of the link index.
pub const FAMILIES: &[Family] = &[PAGES, SEEN, NODES, INLINKS, LOST, RANKS, DOMAINS, META];
/// Those that can be computed from pages.
pub const DERIVED: &[Family] = &[NODES, INLINKS, RANKS, DOMAINS];

/// Bytes of a page's number in a key: a trillion pages in a part.
pub const NUMBER_BYTES: usize = 5;
/// Bytes of a part in a key; a database has at most 4,096 of them (`settings::PARTS_MAX`).
pub const PART_BYTES: usize = 2;
/// Bytes of a source in a key.
pub const SOURCE_BYTES: usize = PART_BYTES + NUMBER_BYTES;

/// A part, as it stands in keys and records.
pub fn part_bytes(part: Part) -> [u8; PART_BYTES] {
    u16::try_from(part.0).unwrap_or(u16::MAX).to_be_bytes()
}

/// Reads a part's number as keys have it.
pub fn read_part(bytes: [u8; PART_BYTES]) -> Part {
    Part(u16::from_be_bytes(bytes).into())
}

/// A page by where it lives and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct PageRef {
    pub part: Part,
    pub number: u64,
}

impl PageRef {
    /// As it stands in keys.
    pub fn bytes(self) -> [u8; SOURCE_BYTES] {
        let mut out = [0; SOURCE_BYTES];
        out[..PART_BYTES].copy_from_slice(&part_bytes(self.part));
        out[PART_BYTES..].copy_from_slice(&number(self.number));
        out
    }

    /// Reads what stands in keys.
    pub fn read(bytes: &[u8]) -> Option<PageRef> {
        let (part, rest) = bytes.split_first_chunk::<PART_BYTES>()?;
        Some(PageRef { part: read_part(*part), number: read_number(rest)? })
    }
}

fn number(number: u64) -> [u8; NUMBER_BYTES] {
    let mut out = [0; NUMBER_BYTES];
    out.copy_from_slice(&number.to_be_bytes()[8 - NUMBER_BYTES..]);
    out
}

/// Reads a page's number.
pub fn read_number(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; NUMBER_BYTES] = bytes.try_into().ok()?;
    let mut wide = [0; 8];
    wide[8 - NUMBER_BYTES..].copy_from_slice(&bytes);
    Some(u64::from_be_bytes(wide))
}

/// The key that a URI goes by.
pub fn hash(uri: &str) -> DocHash {
    DocHash::of(uri)
}

/// The key of a page by its number.
pub fn page(page: u64) -> Vec<u8> {
    [&[PAGES.byte][..], &number(page)].concat()
}

/// A page's last sighting.
pub fn seen(page: u64) -> Vec<u8> {
    [&[SEEN.byte][..], &number(page)].concat()
}

/// The key of a URI by its hash.
pub fn node(hash: DocHash) -> Vec<u8> {
    [&[NODES.byte][..], &hash.0].concat()
}

/// How in-links of a URI are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlinkForm {
    /// One block with all of them, but for later edits.
    Base = 0,
    /// The edits of one change.
    Edits = 1,
    /// One row for each, when they are many.
    Wide = 2,
}

/// All in-links of a URI, of whatever form.
pub fn inlinks(hash: DocHash) -> Vec<u8> {
    [&[INLINKS.byte][..], &hash.0].concat()
}

/// The first key behind all in-links of a URI.
pub fn after_inlinks(hash: DocHash) -> Vec<u8> {
    store::sorted::after_prefix(&inlinks(hash))
}

/// In-links of a URI in one form.
pub fn inlinks_in(hash: DocHash, form: InlinkForm) -> Vec<u8> {
    [&[INLINKS.byte][..], &hash.0, &[form as u8]].concat()
}

/// The edits of one change.
pub fn edits(hash: DocHash, seq: u64) -> Vec<u8> {
    [&inlinks_in(hash, InlinkForm::Edits)[..], &seq.to_be_bytes()].concat()
}

/// One in-link of many.
pub fn wide(hash: DocHash, source: PageRef) -> Vec<u8> {
    [&inlinks_in(hash, InlinkForm::Wide)[..], &source.bytes()].concat()
}

/// Where the form stands in a key of in-links, and what follows it.
pub fn form_of(key: &[u8]) -> Option<(u8, &[u8])> {
    let (form, rest) = key.get(17..)?.split_first()?;
    Some((*form, rest))
}

/// Bytes of a time in seconds.
const TIME_BYTES: usize = 5;

/// All lost in-links of a URI, the latest first.
pub fn lost_of(hash: DocHash) -> Vec<u8> {
    [&[LOST.byte][..], &hash.0].concat()
}

/// The key of a lost in-link; those of one target lie latest first.
pub fn lost(hash: DocHash, lost_s: u64, source: PageRef) -> Vec<u8> {
    [&lost_of(hash)[..], &counts::descending(lost_s), &source.bytes()].concat()
}

/// When an in-link was lost, and whose it was.
pub fn read_lost(key: &[u8]) -> Option<(u64, PageRef)> {
    let rest = key.get(17..)?;
    let (time, source) = rest.split_at_checked(TIME_BYTES)?;
    Some((counts::read(time)?, PageRef::read(source)?))
}

/// What keys of lost in-links, or of in-links, have in common that are of one target.
pub fn target_of(key: &[u8]) -> &[u8] {
    key.get(..17).unwrap_or(key)
}

/// Which of the two lists of a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RankingList {
    /// URIs that were never crawled.
    Linked = 0,
    Crawled = 1,
}

impl RankingList {
    /// Both lists, in the order of their numbers.
    pub const BOTH: [RankingList; 2] = [RankingList::Linked, RankingList::Crawled];

    /// The list a URI is in.
    pub fn of(crawled: bool) -> RankingList {
        if crawled { RankingList::Crawled } else { RankingList::Linked }
    }
}

/// A list of the ranking of all URIs of a part.
pub fn ranks(class: RankingList) -> Vec<u8> {
    vec![RANKS.byte, b't', class as u8]
}

/// A URI in the ranking of all.
pub fn rank(class: RankingList, incount: u64, uri: &str) -> Vec<u8> {
    [&[RANKS.byte, b't', class as u8][..], &counts::descending(incount), uri.as_bytes()].concat()
}

/// A list of the ranking of a domain's URIs.
pub fn domain_ranks(domain: &str, class: RankingList) -> Vec<u8> {
    [&[RANKS.byte, b'd'], domain.as_bytes(), &[b'>', class as u8]].concat()
}

/// In-links up to which a URI has no row in the ranking of its domain: of each number the
/// URIs of a domain lie together in the ranking of all. It saves most rows of rankings, at
/// the price of so many looks for a domain that has nothing better.
pub const FEW_MAX: u64 = 32;

/// A URI in the ranking of its domain: the domain is not written twice.
pub fn domain_rank(class: RankingList, incount: u64, uri: &str) -> Vec<u8> {
    let domain = domain_of(uri);
    let rest = &uri.as_bytes()[domain.len()..];
    [&domain_ranks(domain, class)[..], &counts::descending(incount), rest].concat()
}

/// The number of in-links in a ranking's key, and what follows it. `prefix` is that of
/// its list.
pub fn read_rank<'a>(prefix: &[u8], key: &'a [u8]) -> Option<(u64, &'a str)> {
    let (count, rest) = key.get(prefix.len()..)?.split_at_checked(counts::BYTES)?;
    Some((counts::read(count)?, std::str::from_utf8(rest).ok()?))
}

/// A domain, by its reversed name.
pub fn domain(domain: &str) -> Vec<u8> {
    [&[DOMAINS.byte, b'c'], domain.as_bytes()].concat()
}

/// The ranking of a part's domains.
pub fn domains_ranked() -> Vec<u8> {
    vec![DOMAINS.byte, b'r']
}

/// A domain in the ranking of domains.
pub fn domain_place(pages: u64, domain: &str) -> Vec<u8> {
    [&domains_ranked()[..], &counts::descending(pages), domain.as_bytes()].concat()
}

/// How far the part is.
pub fn state() -> Vec<u8> {
    vec![META.byte, b's']
}

/// The batch of a part that is under way.
pub fn pending() -> Vec<u8> {
    vec![META.byte, b'p']
}

/// How far the sweep of the part's lost links is.
pub fn swept() -> Vec<u8> {
    vec![META.byte, b'l']
}

/// How far another part's batches have come here.
pub fn applied(from: Part) -> Vec<u8> {
    [&[META.byte, b'a'][..], &part_bytes(from)].concat()
}

/// How far a file has been loaded.
pub fn loaded(file: &[u8]) -> Vec<u8> {
    [&[META.byte, b'f'][..], file].concat()
}
