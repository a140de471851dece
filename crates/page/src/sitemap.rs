//! Sitemaps: the pages, or further sitemaps, that a host lists about itself.
//!
//! Reads the XML of sitemaps.org (whatever namespace it claims), plain text with
//! one address a line, and RSS or Atom feeds that serve as sitemaps; each of
//! them gzipped or not. Relies on quick-xml, which knows no DTD and expands no
//! entity, and on the bounded source that feeds are read through.
//!
//! Invariant: what was read is never lost. A limit or a mistake ends the
//! reading, and [`Sitemap`] says so; the entries before it stand. Addresses are
//! as written: resolving, canonical form and whether the host may speak for
//! them is the caller's business.

mod text;
mod xml;

use crate::feed::{self, Cut, datetime, source::DecodedText};

/// Unpacked bytes that are read: the limit of sitemaps.org.
pub const BYTES_MAX: usize = 52_428_800;
/// Entries that are kept: the limit of sitemaps.org.
pub const ENTRIES_MAX: usize = 50_000;
/// A longer address is left out and counted.
pub const LOC_BYTES_MAX: usize = 4_096;
/// What kind of list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SitemapKind {
    /// A `<urlset>`, which lists pages.
    UrlSet,
    /// A `<sitemapindex>`, which lists further sitemaps.
    Index,
    /// Plain text with the URL of a page on each line.
    Text,
    /// An RSS feed: pages.
    Rss,
    /// An Atom feed: pages.
    Atom,
    /// None of these: a web page, an image, nothing at all.
    Unknown,
}

/// A sitemap, as far as it could be read.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Sitemap {
    pub kind: SitemapKind,
    /// Its entries, in its own order.
    pub entries: Vec<SitemapEntry>,
    /// Entries left out because they have no address, or none that can be one.
    pub skipped: usize,
    /// There were more entries than [`ENTRIES_MAX`].
    pub more_entries: bool,
    /// The reading ended early: too much, a bomb, or damaged.
    pub cut: Option<Cut>,
    /// Not well-formed; the entries are those before the mistake.
    pub malformed: bool,
    /// Bytes that were read, unpacked.
    pub bytes: usize,
}

/// A page or a further sitemap, and what the list says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SitemapEntry {
    /// The address as written, trimmed.
    pub loc: String,
    /// When it last changed, as far as the site says so in a form that is valid.
    pub lastmod_ms: Option<i64>,
    /// How often it is said to change.
    pub changefreq: Option<ChangeFreq>,
    /// How important it is said to be: 0 to 1.
    pub priority: Option<f32>,
}

/// How often a page is said to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ChangeFreq {
    Always,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Never,
}

impl ChangeFreq {
    fn parse(text: &str) -> Option<ChangeFreq> {
        match text.trim().to_ascii_lowercase().as_str() {
            "always" => Some(ChangeFreq::Always),
            "hourly" => Some(ChangeFreq::Hourly),
            "daily" => Some(ChangeFreq::Daily),
            "weekly" => Some(ChangeFreq::Weekly),
            "monthly" => Some(ChangeFreq::Monthly),
            "yearly" => Some(ChangeFreq::Yearly),
            "never" => Some(ChangeFreq::Never),
            _ => None,
        }
    }
}

/// Reads a sitemap, gzipped or not. Every input gives an answer.
pub fn read(bytes: &[u8]) -> Sitemap {
    let mut source = DecodedText::new(bytes, BYTES_MAX);
    match source.first_byte() {
        Some(b'<') => match xml::read(source) {
            xml::SitemapOrFeed::Sitemap(sitemap) => sitemap,
            xml::SitemapOrFeed::Feed => of_feed(bytes),
        },
        Some(_) => text::read(source),
        None => Sitemap { cut: source.cut, ..Sitemap::empty(SitemapKind::Unknown) },
    }
}

fn of_feed(bytes: &[u8]) -> Sitemap {
    let Some(feed) = feed::read(bytes) else { return Sitemap::empty(SitemapKind::Unknown) };
    let kind = match feed.kind {
        feed::FeedKind::Rss => SitemapKind::Rss,
        feed::FeedKind::Atom | feed::FeedKind::Json => SitemapKind::Atom,
    };
    let entries = feed.entries.into_iter().map(|entry| SitemapEntry {
        loc: entry.url,
        lastmod_ms: entry.updated_ms,
        changefreq: None,
        priority: None,
    });
    Sitemap {
        entries: entries.collect(),
        more_entries: feed.truncated,
        malformed: feed.malformed,
        ..Sitemap::empty(kind)
    }
}

impl Sitemap {
    fn empty(kind: SitemapKind) -> Sitemap {
        Sitemap {
            kind,
            entries: Vec::new(),
            skipped: 0,
            more_entries: false,
            cut: None,
            malformed: false,
            bytes: 0,
        }
    }

    /// Adds an entry; false once there are too many.
    fn add(&mut self, entry: Option<SitemapEntry>) -> bool {
        let Some(entry) = entry else {
            self.skipped += 1;
            return true;
        };
        self.more_entries = self.entries.len() == ENTRIES_MAX;
        if !self.more_entries {
            self.entries.push(entry);
        }
        !self.more_entries
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
