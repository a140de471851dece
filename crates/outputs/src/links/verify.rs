//! Compares the index with what its pages say, and names every difference.
//!
//! Relies on [`super::bulk`] for what should be there, in order; what is there is read in the
//! same order beside it. Whether the pages are what was crawled is for [`facts`] to say. Invariant: nothing is held in memory but a page of rows of each
//! kind and one list that is not wide.

pub mod facts;

use super::bulk::{self, BulkEvent, ComputedCounts};
use super::fold::decode_domain;
use super::index::LinkIndex;
use super::inlinks::{self, Edit, Inlink, ROWS_STEP};
use super::keys::{self, InlinkForm, PageRef};
use super::node::{Inlinks, Node};
use page::ids::DocHash;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::path::Path;
use store::Result;
use store::ids::Part;
use store::sorted::{Pair, Row, Span};

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct VerifyResult {
    /// What should be there.
    #[serde(flatten)]
    pub computed: ComputedCounts,
    /// In how many places something else is.
    pub differences: u64,
}

/// Compares, with files in a directory. Every difference is reported in a sentence. Nobody
/// may change the index meanwhile.
pub fn verify(
    index: &LinkIndex,
    scratch: &Path,
    report: &mut dyn FnMut(&str),
) -> Result<VerifyResult> {
    let mut comparing = InlinkComparison { index, report, differences: 0, at: None };
    let computed = bulk::compute(index, scratch, &mut |part, event| comparing.take(part, event))?;
    Ok(VerifyResult { computed, differences: comparing.differences })
}

struct InlinkComparison<'a> {
    index: &'a LinkIndex,
    report: &'a mut dyn FnMut(&str),
    differences: u64,
    /// What is there of the part that is told of.
    at: Option<There>,
}

/// What is there of a part, as far as it was not compared yet.
struct There {
    nodes: RowCursor,
    ranks: RowCursor,
    domains: RowCursor,
    /// Rows of in-links, of which only the targets count: whose they are.
    lists: RowCursor,
    /// The URI whose in-links are told of.
    open: Option<ComparedUri>,
}

/// A URI whose in-links are compared.
struct ComparedUri {
    hash: DocHash,
    node: Option<Node>,
    list: List,
}

enum List {
    Whole(VecDeque<Edit>),
    Wide(RowCursor),
}

impl InlinkComparison<'_> {
    fn take(&mut self, part: Part, event: BulkEvent<'_>) -> Result<()> {
        let mut there = self.at.take().unwrap_or_else(|| There::new(part));
        match event {
            BulkEvent::Inlink { hash, source, link } => {
                self.open(&mut there, hash)?;
                self.inlink(&mut there, source, &link)?;
            }
            BulkEvent::Node { hash, node } => {
                self.open(&mut there, hash)?;
                self.node(&mut there, node)?;
            }
            BulkEvent::Row(row) => self.row(&mut there, &row)?,
            BulkEvent::End => {
                self.end(&mut there)?;
                return Ok(());
            }
        }
        self.at = Some(there);
        Ok(())
    }

    fn differs(&mut self, what: &str) {
        self.differences += 1;
        (self.report)(what);
    }

    /// Goes on to a URI. What lies before it should not be there.
    fn open(&mut self, there: &mut There, hash: DocHash) -> Result<()> {
        if there.open.as_ref().is_some_and(|open| open.hash == hash) {
            return Ok(());
        }
        let key = keys::node(hash);
        let found = loop {
            let next = there.nodes.next_if(self.index, |found| found <= &key[..])?;
            match next {
                None => break None,
                Some((found, value)) if found == key => break Some(Node::decode(&value)?),
                Some((_, value)) => self.unexpected(&Node::decode(&value)?),
            }
        };
        let part = there.nodes.part;
        let list = match found.as_ref().map(|node| (&node.inlinks, node.clone())) {
            None => List::Whole(VecDeque::new()),
            Some((Inlinks::Wide, _)) => {
                List::Wide(RowCursor::new(part, &keys::inlinks_in(hash, InlinkForm::Wide)))
            }
            Some((_, node)) => {
                let list = self.index.read(move |view| inlinks::list(view, part, hash, &node))?;
                List::Whole(list.into())
            }
        };
        self.skip_lists(there, Some(hash))?;
        there.open = Some(ComparedUri { hash, node: found, list });
        Ok(())
    }

    fn unexpected(&mut self, node: &Node) {
        let what = format!("{} is in the index, but no page is it or links to it", node.uri);
        self.differs(&what);
    }

    /// Rows of in-links up to a URI's: they belong to somebody who was told of.
    fn skip_lists(&mut self, there: &mut There, hash: Option<DocHash>) -> Result<()> {
        let until = hash.map_or_else(|| vec![u8::MAX], keys::inlinks);
        let mut stray: Option<Vec<u8>> = None;
        while let Some((key, _)) = there.lists.next_if(self.index, |key| key < &until[..])? {
            let owner = key.get(..17).unwrap_or_default().to_vec();
            if stray.as_ref() != Some(&owner) {
                stray = Some(owner);
                self.differs("there are in-links of a URI that is not in the index");
            }
        }
        if let Some(hash) = hash {
            // All rows of this one are its own.
            there.lists.skip_to(keys::after_inlinks(hash));
        }
        Ok(())
    }

    fn inlink(&mut self, there: &mut There, source: PageRef, link: &Inlink) -> Result<()> {
        let Some(open) = &mut there.open else { return Ok(()) };
        let uri = open.node.as_ref().map_or("a URI that is not in the index", |node| &node.uri);
        let uri = uri.to_owned();
        loop {
            let Some((found, is)) = open.list.peek(self.index)? else {
                self.differs(&format!("{uri}: the link from page {source:?} is missing"));
                return Ok(());
            };
            match found.cmp(&source) {
                Ordering::Greater => {
                    self.differs(&format!("{uri}: the link from page {source:?} is missing"));
                    return Ok(());
                }
                Ordering::Less => {
                    self.differs(&format!(
                        "{uri}: the link from page {found:?} is not in the page"
                    ));
                }
                Ordering::Equal if (Inlink { seq: 0, ..is.clone() }) != *link => {
                    self.differs(&format!(
                        "{uri}: the link from page {source:?} is {is:?}, but the page says {link:?}"
                    ));
                }
                Ordering::Equal => {}
            }
            open.list.pop();
            if found == source {
                return Ok(());
            }
        }
    }

    fn node(&mut self, there: &mut There, should: &Node) -> Result<()> {
        let Some(mut open) = there.open.take() else { return Ok(()) };
        let uri = &should.uri;
        while let Some((found, _)) = open.list.peek(self.index)? {
            self.differs(&format!("{uri}: the link from page {found:?} is not in the page"));
            open.list.pop();
        }
        let Some(is) = &open.node else {
            self.differs(&format!("{uri} is missing"));
            return Ok(());
        };
        let counted = |node: &Node| (node.uri.clone(), node.incount, node.page, node.crawled);
        if counted(is) != counted(should) {
            self.differs(&format!(
                "{uri} has {} in-links, page {:?}, crawled: {}; it should have {}, {:?}, {}",
                is.incount, is.page, is.crawled, should.incount, should.page, should.crawled
            ));
        }
        Ok(())
    }

    /// A row of a ranking or a domain. What lies before it should not be there.
    fn row(&mut self, there: &mut There, should: &Row) -> Result<()> {
        let walk = match should.key.first() == Some(&keys::DOMAINS.byte) {
            true => &mut there.domains,
            false => &mut there.ranks,
        };
        let found = loop {
            match walk.next_if(self.index, |key| key <= &should.key[..])? {
                None => break None,
                Some((key, value)) if key == should.key => break Some(value),
                Some((key, _)) => {
                    self.differs(&format!("{} is ranked, but should not be", shown(&key)));
                }
            }
        };
        let name = shown(&should.key);
        match (found, &should.value) {
            (None, _) => self.differs(&format!("{name} is not ranked, but should be")),
            (Some(is), Some(should)) if !should.is_empty() => {
                let (is, should) = (decode_domain(&is)?.0, decode_domain(should)?.0);
                if is != should {
                    self.differs(&format!("{name} has {is} pages; it should have {should}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What is left of a part should not be there.
    fn end(&mut self, there: &mut There) -> Result<()> {
        while let Some((_, value)) = there.nodes.next_if(self.index, |_| true)? {
            self.unexpected(&Node::decode(&value)?);
        }
        self.skip_lists(there, None)?;
        for walk in [&mut there.ranks, &mut there.domains] {
            while let Some((key, _)) = walk.next_if(self.index, |_| true)? {
                self.differs(&format!("{} is ranked, but should not be", shown(&key)));
            }
        }
        Ok(())
    }
}

impl There {
    fn new(part: Part) -> There {
        let walk = |byte: u8| RowCursor::new(part, &[byte]);
        There {
            nodes: walk(keys::NODES.byte),
            ranks: walk(keys::RANKS.byte),
            domains: walk(keys::DOMAINS.byte),
            lists: walk(keys::INLINKS.byte),
            open: None,
        }
    }
}

impl List {
    fn peek(&mut self, index: &LinkIndex) -> Result<Option<(PageRef, Inlink)>> {
        match self {
            List::Whole(list) => {
                let first = list.front();
                Ok(first.and_then(|it| it.link.clone().map(|link| (it.source, link))))
            }
            List::Wide(walk) => {
                let Some((key, value)) = walk.peek(index)? else { return Ok(None) };
                let source = keys::form_of(key).and_then(|(_, rest)| PageRef::read(rest));
                let link = inlinks::decode_wide(value)?;
                Ok(source.map(|source| (source, link)))
            }
        }
    }

    fn pop(&mut self) {
        match self {
            List::Whole(list) => {
                list.pop_front();
            }
            List::Wide(walk) => {
                walk.rows.pop_front();
            }
        }
    }
}

/// Rows that are there, a page of them at a time.
struct RowCursor {
    part: Part,
    /// What was not read yet.
    rest: Option<Span>,
    rows: VecDeque<Pair>,
}

impl RowCursor {
    fn new(part: Part, prefix: &[u8]) -> RowCursor {
        RowCursor { part, rest: Some(Span::prefix(prefix)), rows: VecDeque::new() }
    }

    fn peek(&mut self, index: &LinkIndex) -> Result<Option<(&[u8], &[u8])>> {
        if self.rows.is_empty()
            && let Some(span) = self.rest.take()
        {
            let (part, from) = (self.part, span.clone());
            self.rows = index.read(move |view| view.scan(part, &from, ROWS_STEP))?.into();
            if self.rows.len() == ROWS_STEP
                && let Some((last, _)) = self.rows.back()
            {
                self.rest = Some(span.behind(last));
            }
        }
        Ok(self.rows.front().map(|(key, value)| (&key[..], &value[..])))
    }

    fn next_if(
        &mut self,
        index: &LinkIndex,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Pair>> {
        let wanted = self.peek(index)?.is_some_and(|(key, _)| is_wanted(key));
        Ok(if wanted { self.rows.pop_front() } else { None })
    }

    /// Leaves out what lies before a key.
    fn skip_to(&mut self, key: Vec<u8>) {
        while self.rows.front().is_some_and(|(found, _)| *found < key) {
            self.rows.pop_front();
        }
        if self.rows.is_empty()
            && let Some(span) = &mut self.rest
            && span.from < key
        {
            span.from = key;
        }
    }
}

/// A key for people.
fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key.get(2..).unwrap_or_default()).escape_debug().to_string()
}
