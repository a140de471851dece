//! In-links meet the pages they come from: both are brought into the order of the pages'
//! numbers, which pages have already.
//!
//! Invariant: every in-link comes out once, with the URI of its page. One whose page has not
//! come yet, because another part's batch is under way, is named by the page's place, as
//! `?part:number`, so that no list is shorter than its count.

use super::cells::{Put, QueryTableCell};
use crate::links::bulk::external_sort::{Merge, Sorter};
use crate::links::codec::{self, ByteReader};
use crate::links::inlinks::{self, Inlink, ROWS_STEP};
use crate::links::keys::{self, InlinkForm, PageRef, SOURCE_BYTES};
use crate::links::node::{Inlinks, Node};
use store::ids::Part;
use store::sorted::{Span, View};
use store::{Error, Result};

/// In-links on their way.
pub struct InlinkJoiner {
    sorter: Sorter,
    record: Vec<u8>,
}

impl InlinkJoiner {
    pub fn new(sorter: Sorter) -> InlinkJoiner {
        InlinkJoiner { sorter, record: Vec::new() }
    }

    /// Takes the in-links of a URI, however many.
    pub fn push_inlinks(&mut self, view: &dyn View, part: Part, node: &Node) -> Result<()> {
        let hash = keys::hash(&node.uri);
        if node.inlinks != Inlinks::Wide {
            for edit in inlinks::list(view, part, hash, node)? {
                if let Some(link) = &edit.link {
                    self.push(&node.uri, edit.source, link)?;
                }
            }
            return Ok(());
        }
        let mut span = Span::prefix(&keys::inlinks_in(hash, InlinkForm::Wide));
        loop {
            let rows = view.scan(part, &span, ROWS_STEP)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            span = span.behind(last);
            for (key, value) in &rows {
                let source = keys::form_of(key).and_then(|(_, source)| PageRef::read(source));
                let source =
                    source.ok_or_else(|| Error::corrupt("an in-link", "its key is broken"))?;
                self.push(&node.uri, source, &inlinks::decode_wide(value)?)?;
            }
        }
    }

    fn push(&mut self, target: &str, source: PageRef, link: &Inlink) -> Result<()> {
        self.record.clear();
        self.record.extend_from_slice(&source.bytes());
        codec::put_text(&mut self.record, target);
        codec::put_number(&mut self.record, link.seq);
        self.record.extend_from_slice(link.anchor.as_bytes());
        self.sorter.push(&self.record)
    }

    /// All of them, in the order of their pages.
    pub fn finish(self) -> Result<JoinedInlinks> {
        let mut joined = JoinedInlinks { inlinks: self.sorter.finish()?, record: Vec::new() };
        joined.advance()?;
        Ok(joined)
    }
}

/// In-links in the order of their pages.
pub struct JoinedInlinks {
    inlinks: Merge,
    /// The next of them; empty behind the last.
    record: Vec<u8>,
}

impl JoinedInlinks {
    fn advance(&mut self) -> Result<()> {
        if !self.inlinks.next(&mut self.record)? {
            self.record.clear();
        }
        Ok(())
    }

    /// Tells the in-links of a page, and those before it whose pages are not there.
    pub fn up_to(&mut self, page: PageRef, uri: &str, put: &mut Put<'_>) -> Result<()> {
        let page = page.bytes();
        while let Some((source, _)) = self.record.split_first_chunk::<SOURCE_BYTES>() {
            match *source {
                source if source > page => break,
                source if source == page => self.emit(uri, put)?,
                source => self.emit(&place_of(&source), put)?,
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Tells the in-links that are left: none of their pages is there.
    pub fn rest(&mut self, put: &mut Put<'_>) -> Result<()> {
        while let Some((source, _)) = self.record.split_first_chunk::<SOURCE_BYTES>() {
            let place = place_of(source);
            self.emit(&place, put)?;
            self.advance()?;
        }
        Ok(())
    }

    fn emit(&self, uri: &str, put: &mut Put<'_>) -> Result<()> {
        let rest = self.record.get(SOURCE_BYTES..).unwrap_or_default();
        let mut reader = ByteReader::new("an in-link of the dump", rest);
        let row = ["p:", reader.text()?].concat();
        let seq = reader.number()?;
        let value = reader.rest()?;
        put(&QueryTableCell {
            row: &row,
            family: "inlinks",
            qualifier: uri,
            value,
            is_text: true,
            seq,
        })
    }
}

fn place_of(source: &[u8]) -> String {
    let unreadable = PageRef { part: Part(u16::MAX.into()), number: u64::MAX };
    let source = PageRef::read(source).unwrap_or(unreadable);
    format!("?{}:{}", source.part, source.number)
}
