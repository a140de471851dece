//! What budgets are told: documents that were fetched, and links to be judged.

use super::rules::Novelty;
use page::facts::Facts;
use page::ids::DocHash;
use store::ids::{BinId, JobId, Part};

/// What a document said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ContentDigest<'a> {
    /// A text, with its hash and its SimHash (`page::fingerprint`).
    Words { text: &'a str, hash: [u8; 16], simhash: u64 },
    /// Something that is not read as text (an image, an archive), by the hash of its
    /// bytes. Such a document is stale only if the same bytes came before.
    Bytes([u8; 16]),
    /// Nothing: a page without any text.
    Nothing,
}

impl<'a> ContentDigest<'a> {
    /// What a document's facts say. A sitemap, a feed or a picture has no text and is
    /// none the worse for it; a page without text is.
    pub fn of(facts: &'a Facts) -> ContentDigest<'a> {
        let Facts { text, text_hash, simhash, .. } = facts;
        match facts.media_type.as_str() {
            _ if !text.is_empty() => {
                ContentDigest::Words { text, hash: *text_hash, simhash: *simhash }
            }
            "text/html" | "application/xhtml+xml" => ContentDigest::Nothing,
            _ => ContentDigest::Bytes(facts.content_hash),
        }
    }
}

/// A document that was fetched. Failures and redirects are none.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct FetchedDocument<'a> {
    pub job: JobId,
    pub part: Part,
    pub bin: BinId,
    pub url: &'a str,
    /// The key of that.
    pub dochash: DocHash,
    /// Links from the nearest seed.
    pub hops: i64,
    pub content: ContentDigest<'a>,
    /// Whether the job has fetched it before.
    pub look: LookKind,
    /// Pages that its host may have ([`CandidateLink::host_pages`]).
    pub host_pages: i64,
    /// Whether another process has read the page that named it first, which is of another host
    /// then. Links of pages that this process reads are told to [`super::Budgets::link_outside`].
    pub is_named_elsewhere: bool,
}

/// Which look at a document it was. What is known says little that is new, and that is
/// no reason to close anything, so only the first look is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LookKind {
    First,
    /// A later one, and it is as it was.
    Same,
    /// A later one, and it has changed.
    Changed,
}

/// A link to be judged.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct CandidateLink<'a> {
    pub job: JobId,
    pub bin: BinId,
    pub url: &'a str,
    /// The key of that.
    pub dochash: DocHash,
    /// Links from the nearest seed on this path; 0 for a seed.
    pub hops: i64,
    /// What the page that names it was worth; `None` where that is not known, as when
    /// a document is about to be fetched.
    pub from: Option<Novelty>,
    /// Pages that its host may have before pages of other hosts link to it; [`NO_LIMIT`] at a
    /// seed's host.
    pub host_pages: i64,
    /// Lists that lead to it, if it is known to be a list: 1 for one that robots.txt names.
    pub list_depth: u8,
}

/// More pages than any host has.
pub const NO_LIMIT: i64 = i64::MAX;

/// A sitemap or an index of them that was read.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct ReadList<'a> {
    pub part: Part,
    pub job: JobId,
    pub bin: BinId,
    pub url: &'a str,
    /// Which look at it this is: it is counted at the first one only.
    pub look: LookKind,
    /// Its bytes, unpacked.
    pub bytes: i64,
}

/// An index of sitemaps, which names a list.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct ListIndex<'a> {
    pub part: Part,
    pub job: JobId,
    pub bin: BinId,
    pub url: &'a str,
    /// Which look at it this is: what it names is counted at the first one only.
    pub look: LookKind,
    /// Lists that lead to it ([`CandidateLink::list_depth`]).
    pub list_depth: u8,
}

impl ListIndex<'_> {
    /// Lists that lead to what it names.
    pub fn depth_below(&self) -> u8 {
        // One that a page or a seed list names begins a chain, as one of robots.txt does.
        self.list_depth.max(1).saturating_add(1)
    }
}
