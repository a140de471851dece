//! Plain text sitemaps: one address a line.
//!
//! Invariant: holds one line of at most `LOC_BYTES_MAX` bytes at a time, however
//! long the lines are.

use std::io::BufRead;

use super::{LOC_BYTES_MAX, Sitemap, SitemapEntry, SitemapKind};
use crate::feed::source::DecodedText;

pub(super) fn read(mut source: DecodedText) -> Sitemap {
    let mut lines =
        Lines { sitemap: Sitemap::empty(SitemapKind::Text), line: Vec::new(), full: false };
    loop {
        let chunk = source.chunk();
        if chunk.is_empty() {
            lines.end();
            break;
        }
        let end = memchr::memchr2(b'\n', b'\r', chunk);
        lines.push(&chunk[..end.unwrap_or(chunk.len())]);
        let taken = end.map_or(chunk.len(), |end| end + 1);
        source.consume(taken);
        if end.is_some() && !lines.end() {
            break;
        }
    }
    let mut sitemap = lines.sitemap;
    (sitemap.cut, sitemap.bytes) = (source.cut, source.taken());
    if sitemap.entries.is_empty() {
        sitemap.kind = SitemapKind::Unknown;
    }
    sitemap
}

struct Lines {
    sitemap: Sitemap,
    line: Vec<u8>,
    /// The line was longer than it may be.
    full: bool,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = if self.line.is_empty() { bytes.trim_ascii_start() } else { bytes };
        let room = LOC_BYTES_MAX - self.line.len();
        self.full |= bytes.trim_ascii_end().len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Takes the line as an entry; false once there are too many.
    fn end(&mut self) -> bool {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim();
        let is_address = !self.full && is_http(text);
        let go_on = text.is_empty() || {
            let entry = SitemapEntry {
                loc: text.to_owned(),
                lastmod_ms: None,
                changefreq: None,
                priority: None,
            };
            self.sitemap.add(is_address.then_some(entry))
        };
        self.line.clear();
        self.full = false;
        go_on
    }
}

/// Any text at all could be a list of relative addresses, so here only absolute
/// ones count.
fn is_http(text: &str) -> bool {
    let begins = |scheme: &str| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("http://") || begins("https://")
}
