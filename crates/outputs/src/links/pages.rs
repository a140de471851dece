//! A page, and what it links to: what the rest of the index is computed from.
//!
//! Links are sorted by their URIs, and each is written as what differs from the one
//! before. Invariant: the row of a page that is gone stays, without links, and says since
//! when, so that nothing older brings it back.

use super::codec::{self, ByteReader};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use store::Result;

/// The owner of pages that were loaded from archives; jobs have larger numbers.
pub const LOADED: i64 = 0;

/// A page as the index stores it: who told of it, and its links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Page {
    /// The URI in its row form.
    pub uri: String,
    /// When this version was fetched.
    pub date_ms: i64,
    /// When it was first known.
    pub first_ms: i64,
    /// The job that told of this version.
    pub reported_by: i64,
    /// The jobs that have it. It is gone when there is none left.
    pub owners: Vec<i64>,
    /// The part's change that wrote this row.
    pub seq: u64,
    /// The last status that was answered with; 0 if nobody knows.
    pub status: u16,
    pub title: String,
    /// The server's name for itself.
    pub server: String,
    /// Why it is gone; empty while it is there.
    pub gone: String,
    /// What it links to, by URI, each once.
    pub links: Vec<PageLink>,
}

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PageLink {
    /// The target in its row form.
    pub uri: String,
    pub anchor: String,
    /// How the page names it.
    pub kind: LinkKind,
    pub rel: Rel,
    /// When it was first seen, in seconds.
    pub first_s: u64,
}

impl PageLink {
    /// A link that was first seen then.
    pub fn new(link: OutLink, first_s: u64) -> PageLink {
        let OutLink { uri, anchor, kind, rel } = link;
        PageLink { uri, anchor, kind, rel, first_s }
    }

    /// The link without the times at which it was seen.
    pub fn into_link(self) -> OutLink {
        OutLink { uri: self.uri, anchor: self.anchor, kind: self.kind, rel: self.rel }
    }
}

impl Page {
    /// Whether it is there.
    pub fn is_there(&self) -> bool {
        !self.owners.is_empty()
    }

    /// The bytes of the row.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.uri.len() + self.links.len() * 40);
        codec::put_text(&mut out, &self.uri);
        codec::put_signed(&mut out, self.date_ms);
        codec::put_signed(&mut out, self.date_ms - self.first_ms);
        codec::put_signed(&mut out, self.reported_by);
        codec::put_number(&mut out, self.owners.len() as u64);
        self.owners.iter().for_each(|owner| codec::put_signed(&mut out, *owner));
        codec::put_number(&mut out, self.seq);
        codec::put_number(&mut out, self.status.into());
        for text in [&self.title, &self.server, &self.gone] {
            codec::put_text(&mut out, text);
        }
        codec::put_number(&mut out, self.links.len() as u64);
        let (mut before, mut first_s) = ("", seconds(self.first_ms));
        for link in &self.links {
            let shared = shared_prefix(before, &link.uri);
            codec::put_number(&mut out, shared as u64);
            codec::put_text(&mut out, &link.uri[shared..]);
            out.push(attributes(link.kind, link.rel));
            codec::put_signed(&mut out, link.first_s as i64 - first_s as i64);
            codec::put_text(&mut out, &link.anchor);
            (before, first_s) = (&link.uri, link.first_s);
        }
        out
    }

    /// Reads the bytes of a row.
    pub fn decode(bytes: &[u8]) -> Result<Page> {
        let mut reader = ByteReader::new("pages", bytes);
        let mut page = Page::read_head(&mut reader)?;
        page.read_links(&mut reader)?;
        Ok(page)
    }

    /// Reads a row without its links, and says how many there are.
    pub fn decode_head(bytes: &[u8]) -> Result<(Page, u64)> {
        let mut reader = ByteReader::new("pages", bytes);
        let page = Page::read_head(&mut reader)?;
        Ok((page, reader.number()?))
    }

    fn read_head(reader: &mut ByteReader<'_>) -> Result<Page> {
        let uri = reader.text()?.to_owned();
        let date_ms = reader.signed()?;
        let first_ms = date_ms.wrapping_sub(reader.signed()?);
        let reported_by = reader.signed()?;
        let count = reader.count()?;
        let owners = (0..count).map(|_| reader.signed()).collect::<Result<_>>()?;
        let seq = reader.number()?;
        let status = u16::try_from(reader.number()?).unwrap_or(0);
        let title = reader.text()?.to_owned();
        let server = reader.text()?.to_owned();
        let gone = reader.text()?.to_owned();
        let links = Vec::new();
        Ok(Page {
            uri,
            date_ms,
            first_ms,
            reported_by,
            owners,
            seq,
            status,
            title,
            server,
            gone,
            links,
        })
    }

    fn read_links(&mut self, reader: &mut ByteReader<'_>) -> Result<()> {
        let count = reader.count()?;
        let mut links: Vec<PageLink> = Vec::with_capacity(count);
        let mut first_s = seconds(self.first_ms);
        for _ in 0..count {
            let before = links.last().map_or("", |link| &*link.uri);
            let shared = usize::try_from(reader.number()?).ok();
            let start = shared.and_then(|shared| before.get(..shared));
            let start = start.ok_or_else(|| reader.broken("a link shares what is not there"))?;
            let uri = [start, reader.text()?].concat();
            let (kind, rel) = read_attributes(reader.byte()?)
                .ok_or_else(|| reader.broken("a link is of no known kind"))?;
            first_s = first_s.wrapping_add_signed(reader.signed()?);
            let anchor = reader.text()?.to_owned();
            links.push(PageLink { uri, anchor, kind, rel, first_s });
        }
        self.links = links;
        Ok(())
    }
}

/// A time in whole seconds, which is how exact links are.
pub fn seconds(ms: i64) -> u64 {
    u64::try_from(ms.div_euclid(1_000)).unwrap_or(0)
}

/// Bytes that two URIs begin with both, up to the border of a character.
fn shared_prefix(before: &str, uri: &str) -> usize {
    let shared = before.bytes().zip(uri.bytes()).take_while(|(one, other)| one == other).count();
    (0..=shared).rev().find(|at| uri.is_char_boundary(*at)).unwrap_or(0)
}

const KINDS: [LinkKind; 12] = [
    LinkKind::A,
    LinkKind::Area,
    LinkKind::Frame,
    LinkKind::Canonical,
    LinkKind::Redirect,
    LinkKind::Refresh,
    LinkKind::Alternate,
    LinkKind::Next,
    LinkKind::Prev,
    LinkKind::Feed,
    LinkKind::Sitemap,
    LinkKind::Image,
];

/// Kind and promises of a link in one byte, whose highest bit is free.
pub fn attributes(kind: LinkKind, rel: Rel) -> u8 {
    let place = KINDS.iter().position(|it| *it == kind).unwrap_or(0);
    place as u8 | (rel.0 & 7) << 4
}

/// Reads the byte that `attributes` makes; `None` if no link has it.
pub fn read_attributes(byte: u8) -> Option<(LinkKind, Rel)> {
    Some((*KINDS.get(usize::from(byte & 15))?, Rel(byte >> 4 & 7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let link = |uri: &str, first_s| PageLink {
            uri: uri.into(),
            anchor: "ä & b".into(),
            kind: LinkKind::Image,
            rel: Rel(7),
            first_s,
        };
        let page = Page {
            uri: "com.a>>o>/ö".into(),
            date_ms: -5,
            first_ms: 1_700_000_000_123,
            reported_by: 7,
            owners: vec![0, 7],
            seq: 300,
            status: 200,
            title: "T".into(),
            server: String::new(),
            gone: String::new(),
            links: vec![link("com.b>>o>/é1", 5), link("com.b>>o>/è2", 1_800_000_000)],
        };
        let bytes = page.encode();
        assert_eq!(Page::decode(&bytes).unwrap(), page);
        for end in 0..bytes.len() {
            assert!(Page::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn every_kind_and_promise_has_its_byte() {
        for kind in KINDS {
            for rel in (0..8).map(Rel) {
                let byte = attributes(kind, rel);
                assert!(byte < 0x80);
                assert_eq!(read_attributes(byte), Some((kind, rel)));
            }
        }
        assert_eq!(read_attributes(15), None);
    }
}
