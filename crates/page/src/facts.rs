//! What is known of one document after parsing: the record that a chunk stores
//! and every output reads.
//!
//! Relies on nothing but its own fields; it is written by `html`, stored by
//! `store::chunkfile`, and read by the link index, search and the mirror.
//! Invariant: every list and text in it is bounded by the constants below, so a
//! reader may hold any number of bytes-limited records in memory.

use serde::{Deserialize, Serialize};

use crate::mirror::references::ReferenceKind;

/// A page may name this many links; what follows is counted, not kept.
pub const LINKS_MAX: usize = 10_000;
/// Requisites of one page; the largest galleries have a few hundred images in several widths.
pub const REQUISITES_MAX: usize = 4_000;
/// Headings kept per page.
pub const HEADINGS_MAX: usize = 500;
/// Bytes of running text kept per page.
pub const TEXT_BYTES_MAX: usize = 4 << 20;
/// Bytes of one short text: title, heading, anchor, description.
pub const SHORT_TEXT_BYTES_MAX: usize = 1_024;

/// Everything parsed from one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Sniffed media type, such as `text/html`.
    pub media_type: String,
    /// The encoding the text was decoded from, by its WHATWG name.
    pub charset: String,
    /// Language tag as the page declares it, such as `en` or `pt-BR`.
    pub language: Option<String>,
    /// Empty if there is no `<title>`.
    pub title: String,
    /// The content of `<meta name=description>`.
    pub description: String,
    /// Headings in document order.
    pub headings: Vec<Heading>,
    /// Links in document order, resolved and canonical; each target once for a kind.
    pub links: Vec<Link>,
    /// What the page asks of robots.
    pub directives: Directives,
    /// The URL the page calls its canonical one.
    pub canonical: Option<String>,
    /// Running text, white space collapsed.
    pub text: String,
    /// Hash of the exact body bytes.
    pub content_hash: [u8; 16],
    /// Hash of the running text alone: equal when only markup changed.
    pub text_hash: [u8; 16],
    /// SimHash of the running text: near-duplicates differ in few bits.
    pub simhash: u64,
    /// What a limit cut off.
    pub truncated: Truncated,
    /// What a browser fetches to show it, in document order, each once. Empty unless asked for.
    pub requisites: Vec<Requisite>,
}

/// Something without which a page cannot be shown whole, or a style sheet not be used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requisite {
    /// Where it is: absolute and canonical, without a fragment.
    pub url: String,
    /// What it is there for, by the first reference to it.
    pub kind: ReferenceKind,
}

/// A heading and where it stands in the outline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// From 1 for `<h1>` to 6 for `<h6>`.
    pub level: u8,
    /// Its text, white space collapsed.
    pub text: String,
}

/// One link of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where it leads: absolute and canonical.
    pub url: String,
    /// The words it is known by: anchor text, else `title`, else `alt`.
    pub anchor: String,
    /// How the page names it.
    pub kind: LinkKind,
    /// The link's `nofollow`, `ugc` and `sponsored`.
    pub rel: Rel,
}

/// The construct that names a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum LinkKind {
    A,
    Area,
    Frame,
    Canonical,
    Redirect,
    Refresh,
    Alternate,
    Next,
    Prev,
    Feed,
    Sitemap,
    Image,
}

/// `rel` promises of a link, as a small bit set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rel(pub u8);

impl Rel {
    /// `rel=nofollow`, or a page-wide `nofollow`.
    pub const NOFOLLOW: Rel = Rel(1);
    /// Written by users of the site.
    pub const UGC: Rel = Rel(2);
    /// An advertisement, or paid for.
    pub const SPONSORED: Rel = Rel(4);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Rel) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of two sets.
    #[must_use]
    pub fn with(self, other: Rel) -> Rel {
        Rel(self.0 | other.0)
    }
}

/// What a page (meta robots) or its answer (X-Robots-Tag) asks of robots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directives {
    /// Do not index this page.
    pub noindex: bool,
    /// Do not follow its links.
    pub nofollow: bool,
    /// Do not show a cached copy.
    pub noarchive: bool,
    /// Do not show a snippet.
    pub nosnippet: bool,
}

impl Directives {
    /// What both ask together.
    #[must_use]
    pub fn with(self, other: Directives) -> Directives {
        Directives {
            noindex: self.noindex || other.noindex,
            nofollow: self.nofollow || other.nofollow,
            noarchive: self.noarchive || other.noarchive,
            nosnippet: self.nosnippet || other.nosnippet,
        }
    }
}

/// What was cut because a limit was reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// There are more than `LINKS_MAX` links.
    pub links: bool,
    /// There is more than `TEXT_BYTES_MAX` of text.
    pub text: bool,
    /// There are more than `HEADINGS_MAX` headings.
    pub headings: bool,
    /// Reading stopped before the end: drawings or formulas in each other beyond any honest page.
    pub parse: bool,
    /// Requisites beyond `REQUISITES_MAX`.
    pub requisites: bool,
}
