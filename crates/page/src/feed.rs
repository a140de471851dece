//! Feeds: RSS, Atom and JSON Feed to the pages they announce.
//!
//! feed-rs reads RSS and Atom, after [`slim`] has cut the document down to what
//! is asked for here; JSON Feed is read directly. Every flavour ends in the same
//! record. Links are as written, resolved only against `xml:base`: the caller
//! knows the feed's own address.
//!
//! Invariant: at most [`BYTES_MAX`] bytes are read, at most [`ENTRIES_MAX`]
//! entries kept, no entity is expanded beyond XML's own five, and the stack does
//! not grow with the nesting of the input.

pub(crate) mod datetime;
mod json;
mod slim;
pub(crate) mod source;

use std::io::Read;

use feed_rs::model;

pub use source::Cut;
use source::DecodedText;

use crate::facts::SHORT_TEXT_BYTES_MAX;

/// Bytes of a feed that are read, after unpacking.
pub const BYTES_MAX: usize = 16 << 20;
/// Entries that are kept: the first ones.
pub const ENTRIES_MAX: usize = 10_000;
/// A longer address or identifier is no address.
pub const URL_BYTES_MAX: usize = 4_096;
/// Bytes of a title that are looked at, markup included.
const MARKUP_BYTES_MAX: usize = 16 << 10;

/// The flavour of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FeedKind {
    /// RSS of any version, RDF included.
    Rss,
    Atom,
    Json,
}

/// A parsed feed: its format, its title and the pages that it announces.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Feed {
    pub kind: FeedKind,
    /// Its title as plain text; empty if it has none.
    pub title: String,
    /// The page it belongs to.
    pub site: Option<String>,
    /// The WebSub hub that announces its changes.
    pub hub: Option<String>,
    /// What it announces, in its own order. Entries without an address are left out.
    pub entries: Vec<FeedEntry>,
    /// A limit cut something off.
    pub truncated: bool,
    /// The document broke off or was not well-formed; the entries are those before that.
    pub malformed: bool,
}

/// A page that a feed announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// Its address, as written.
    pub url: String,
    /// Its title as plain text, at most `SHORT_TEXT_BYTES_MAX` bytes.
    pub title: String,
    /// When it was last changed, else published.
    pub updated_ms: Option<i64>,
    /// The feed's own name for it; empty if it has none.
    pub id: String,
}

/// Reads a feed, gzipped or not; none if it is no feed.
pub fn read(bytes: &[u8]) -> Option<Feed> {
    let mut source = DecodedText::new(bytes, BYTES_MAX);
    match source.first_byte()? {
        b'<' => read_xml(bytes),
        b'{' => {
            let mut text = Vec::new();
            // Reading from a source cannot fail: what is broken ends early.
            let _ = source.read_to_end(&mut text);
            json::read(&text)
        }
        _ => None,
    }
}

fn read_xml(bytes: &[u8]) -> Option<Feed> {
    let slim = slim::slim(DecodedText::new(bytes, BYTES_MAX))?;
    // The default identifier is random where nothing else is at hand.
    let parser = feed_rs::parser::Builder::new()
        .sanitize_content(false)
        .id_generator(|_, _, _| String::new())
        .build();
    let read = parser.parse(slim.xml.as_bytes()).ok()?;
    Some(Feed {
        kind: match slim.family {
            slim::FeedDialect::Rss => FeedKind::Rss,
            slim::FeedDialect::Atom => FeedKind::Atom,
        },
        title: read.title.map(|text| plain_text(&text.content)).unwrap_or_default(),
        site: page_link(&read.links).and_then(http_url),
        hub: read
            .links
            .iter()
            .find(|link| link.rel.as_deref() == Some("hub"))
            .and_then(|link| http_url(&link.href)),
        entries: read.entries.iter().filter_map(entry_of).collect(),
        truncated: slim.truncated,
        malformed: slim.malformed,
    })
}

fn entry_of(read: &model::Entry) -> Option<FeedEntry> {
    let date = read.updated.or(read.published);
    let title = read.title.as_ref().map_or("", |text| text.content.as_str());
    entry(page_link(&read.links), title, date.map(|date| date.timestamp_millis()), &read.id)
}

/// An entry, if it has an address. An identifier that is one serves where the
/// link is missing: RSS calls that a permalink.
fn entry(url: Option<&str>, title: &str, updated_ms: Option<i64>, id: &str) -> Option<FeedEntry> {
    let id = id.trim();
    let written = url.map(str::trim).filter(|url| !url.is_empty() && url.len() <= URL_BYTES_MAX);
    let url = written.map(str::to_owned).or_else(|| http_url(id))?;
    let id = if id.len() <= URL_BYTES_MAX { id } else { "" };
    Some(FeedEntry { url, title: plain_text(title), updated_ms, id: id.to_owned() })
}

/// The link to the page itself: `alternate`, or without any relation.
fn page_link(links: &[model::Link]) -> Option<&str> {
    let is_page = |link: &&model::Link| matches!(link.rel.as_deref(), None | Some("alternate"));
    links.iter().find(is_page).map(|link| link.href.as_str())
}

/// An absolute address of the web, of bounded length.
fn http_url(text: &str) -> Option<String> {
    let text = text.trim();
    let is_http = ["http://", "https://"]
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)));
    (is_http && text.len() <= URL_BYTES_MAX).then(|| text.to_owned())
}

/// Text without markup, white space collapsed, cut to a bounded length.
///
/// Titles hold HTML whether or not the feed says so. A `<` that opens no tag is
/// itself. What comes out is text, not HTML: whoever shows it must escape it.
fn plain_text(markup: &str) -> String {
    let mut out = String::new();
    let mut rest = &markup[..markup.floor_char_boundary(MARKUP_BYTES_MAX)];
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        let (text, length) = match rest.as_bytes()[at] {
            b'<' => tag(&rest[at..]),
            _ => reference(&rest[at..]),
        };
        out.push_str(text.encode_utf8(&mut [0; 4]));
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    let mut plain = String::new();
    for word in out.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if plain.len() > SHORT_TEXT_BYTES_MAX {
            break;
        }
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain.truncate(plain.floor_char_boundary(SHORT_TEXT_BYTES_MAX));
    // The cut may come right behind a blank.
    plain.truncate(plain.trim_end().len());
    plain
}

/// A tag counts as a blank; the length says how much of the text it was.
fn tag(text: &str) -> (char, usize) {
    let opens = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?');
    let is_tag = text.as_bytes().get(1).is_some_and(opens);
    match text.find('>') {
        Some(end) if is_tag => (' ', end + 1),
        _ => ('<', 1),
    }
}

/// The character a reference stands for. Names beyond the common ones stay as written.
fn reference(text: &str) -> (char, usize) {
    const LENGTH_MAX: usize = 10;
    let window = &text.as_bytes()[1..text.len().min(LENGTH_MAX)];
    let Some(end) = window.iter().position(|byte| *byte == b';') else { return ('&', 1) };
    let name = &text[1..=end];
    let character = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => name.strip_prefix('#').and_then(|number| {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }),
    };
    character.map_or(('&', 1), |character| (character, end + 2))
}

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod tests;
