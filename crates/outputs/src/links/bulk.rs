//! The whole index, computed from its pages by sorting.
//!
//! Every link of every page becomes a record under its target; sorted, the records of a
//! target follow each other, and so do the targets of a part. Nothing is looked up.
//!
//! Invariants: what comes out is in the order of [`BulkEvent`]s below, and depends on pages
//! alone; memory is bounded whatever there is ([`SORT_BYTES`], a few times).

pub mod external_sort;

use super::codec::{self, ByteReader};
use super::fold::encode_domain;
use super::index::LinkIndex;
use super::inlinks::Inlink;
use super::keys::{self, PageRef};
use super::node::Node;
use super::pages::{Page, attributes, read_attributes};
use super::parts::Parts;
use external_sort::{Merge, Sorter};
use page::ids::DocHash;
use page::outlinks::domain_of;
use std::path::Path;
use store::ids::Part;
use store::sorted::{Pair, Row, Span};
use store::{Error, Result};

/// Bytes of records that are sorted in memory.
pub const SORT_BYTES: usize = 48 << 20;
/// Pages that are read at a time.
const PAGES_STEP: usize = 2_000;
/// A record begins with the part and the hash of its target.
const TARGET_BYTES: usize = 18;
/// What follows: the target's own page, or somebody's link to it.
const OWN: u8 = 0;
const LINK: u8 = 1;

/// What the index consists of. For each part: for each URI in the order of its hash the
/// in-links in the order of their sources and then the URI itself; then the rows of the
/// part's rankings and domains, in the order of their keys; then its end.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum BulkEvent<'a> {
    /// Somebody links to a URI.
    Inlink { hash: DocHash, source: PageRef, link: Inlink },
    /// A URI, after its in-links. Where they are is not for this to say.
    Node { hash: DocHash, node: &'a Node },
    /// A row of a ranking or a domain.
    Row(Row),
    /// The part has no more.
    End,
}

/// How much there is in the index, as computed from its pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct ComputedCounts {
    /// Pages that are there.
    pub pages: u64,
    pub links: u64,
    pub uris: u64,
    pub domains: u64,
}

/// Receives the events of each part in their order.
pub type EventSink<'a> = dyn FnMut(Part, BulkEvent<'_>) -> Result<()> + 'a;

/// Computes everything, with files in a directory, and tells each part's events in order.
pub fn compute(
    index: &LinkIndex,
    scratch: &Path,
    emit: &mut EventSink<'_>,
) -> Result<ComputedCounts> {
    let mut sorter = Sorter::new(scratch, SORT_BYTES, without_known_uri)?;
    let mut computed = collect(index, &mut sorter)?;
    let mut targets = Targets::new(sorter.finish()?)?;
    for part in Part::all(index.parts()) {
        let mut ranks = Sorter::new(scratch, SORT_BYTES, whole)?;
        while let Some(target) = targets.next_of(part, emit)? {
            if target.node.counts() {
                computed.uris += 1;
                push_ranks(&target.node, &mut ranks)?;
            }
            emit(part, BulkEvent::Node { hash: target.hash, node: &target.node })?;
        }
        computed.domains += emit_ranks(part, ranks.finish()?, scratch, emit)?;
        emit(part, BulkEvent::End)?;
    }
    Ok(computed)
}

fn whole(_: &[u8], record: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(record);
}

/// Every page and every link of it, as records.
fn collect(index: &LinkIndex, sorter: &mut Sorter) -> Result<ComputedCounts> {
    let mut computed = ComputedCounts::default();
    let mut parts = Parts::new(index.parts());
    let mut record = Vec::new();
    for part in Part::all(index.parts()) {
        let mut span = Span::prefix(&[keys::PAGES.byte]);
        loop {
            let from = span.clone();
            let rows: Vec<Pair> = index.read(move |view| view.scan(part, &from, PAGES_STEP))?;
            let Some((last, _)) = rows.last() else { break };
            span = span.behind(last);
            for (key, value) in &rows {
                let page = Page::decode(value)?;
                let number = keys::read_number(&key[1..]);
                let number = number.ok_or_else(|| Error::corrupt("a page", "its key is broken"))?;
                let source = PageRef { part, number };
                computed.pages += u64::from(page.is_there());
                computed.links += page.links.len() as u64;
                own_record(&page, source, &mut record);
                sorter.push(&record)?;
                for link in &page.links {
                    begin_record(&link.uri, parts.of(&link.uri), LINK, &mut record);
                    record.extend_from_slice(&source.bytes());
                    codec::put_text(&mut record, &link.uri);
                    record.push(attributes(link.kind, link.rel));
                    codec::put_number(&mut record, link.first_s);
                    record.extend_from_slice(link.anchor.as_bytes());
                    sorter.push(&record)?;
                }
            }
        }
    }
    Ok(computed)
}

fn begin_record(uri: &str, part: Part, what: u8, record: &mut Vec<u8>) {
    record.clear();
    record.extend_from_slice(&keys::part_bytes(part));
    record.extend_from_slice(&keys::hash(uri).0);
    record.push(what);
}

fn own_record(page: &Page, source: PageRef, record: &mut Vec<u8>) {
    begin_record(&page.uri, source.part, OWN, record);
    record.push(u8::from(page.is_there()));
    codec::put_number(record, source.number);
    record.extend_from_slice(page.uri.as_bytes());
}

/// A run of links to one target has its URI once: in files it would be most of the bytes.
fn without_known_uri(before: &[u8], record: &[u8], out: &mut Vec<u8>) {
    let head = TARGET_BYTES + 1 + keys::SOURCE_BYTES;
    let is_link = record.get(TARGET_BYTES) == Some(&LINK);
    let is_known = before.len() > TARGET_BYTES && record.starts_with(&before[..TARGET_BYTES]);
    if !(is_link && is_known) {
        return out.extend_from_slice(record);
    }
    let (head, rest) = record.split_at(head);
    let mut reader = ByteReader::new("a record", rest);
    let _ = reader.text();
    out.extend_from_slice(head);
    out.push(0);
    out.extend_from_slice(&rest[rest.len() - reader.left()..]);
}

/// Targets in order, out of sorted records.
struct Targets {
    records: Merge,
    record: Vec<u8>,
    ended: bool,
}

struct TargetNode {
    hash: DocHash,
    node: Node,
}

impl Targets {
    fn new(records: Merge) -> Result<Targets> {
        let mut targets = Targets { records, record: Vec::new(), ended: false };
        targets.advance()?;
        Ok(targets)
    }

    fn advance(&mut self) -> Result<()> {
        self.ended = !self.records.next(&mut self.record)?;
        Ok(())
    }

    /// The next target of a part; its in-links are told on the way.
    fn next_of(&mut self, part: Part, emit: &mut EventSink<'_>) -> Result<Option<TargetNode>> {
        let is_here = |record: &[u8]| {
            let found = record.first_chunk::<{ keys::PART_BYTES }>();
            found.is_some_and(|it| keys::read_part(*it) == part)
        };
        if self.ended || !is_here(&self.record) {
            return Ok(None);
        }
        let mut target = [0; TARGET_BYTES];
        target.copy_from_slice(&self.record[..TARGET_BYTES]);
        let mut hash = [0; 16];
        hash.copy_from_slice(&target[2..]);
        let (hash, mut node) = (DocHash(hash), Node::default());
        while !self.ended && self.record.starts_with(&target) {
            let mut reader = ByteReader::new("a record", &self.record[TARGET_BYTES..]);
            if reader.byte()? == OWN {
                node.crawled = reader.byte()? == 1;
                node.page = Some(reader.number()?);
                node.uri = reader.rest()?.to_owned();
            } else {
                let source = PageRef::read(reader.bytes(keys::SOURCE_BYTES)?);
                let source = source.ok_or_else(|| reader.broken("no such source"))?;
                let uri = reader.text()?;
                if node.uri.is_empty() {
                    node.uri = uri.to_owned();
                }
                let (kind, rel) =
                    read_attributes(reader.byte()?).ok_or_else(|| reader.broken("no such kind"))?;
                let first_s = reader.number()?;
                let anchor = reader.rest()?.to_owned();
                let link = Inlink { anchor, kind, rel, first_s, seq: 0 };
                emit(part, BulkEvent::Inlink { hash, source, link })?;
                node.incount += 1;
            }
            self.advance()?;
        }
        Ok(Some(TargetNode { hash, node }))
    }
}

/// The rows of a URI in rankings, and one record for its domain to count.
fn push_ranks(node: &Node, ranks: &mut Sorter) -> Result<()> {
    for key in node.ranks() {
        ranks.push(&key)?;
    }
    ranks.push(&keys::domain(domain_of(&node.uri)))
}

/// The rows of rankings, and those of domains, which are counted on the way.
fn emit_ranks(
    part: Part,
    mut ranks: Merge,
    scratch: &Path,
    emit: &mut EventSink<'_>,
) -> Result<u64> {
    let mut put = |key: &[u8], value: Vec<u8>| {
        emit(part, BulkEvent::Row(Row { part, key: key.to_vec(), value: Some(value) }))
    };
    let mut places = Sorter::new(scratch, SORT_BYTES, whole)?;
    let (mut key, mut counted): (Vec<u8>, Option<(Vec<u8>, u64)>) = (Vec::new(), None);
    let mut domains = 0;
    loop {
        let is_there = ranks.next(&mut key)?;
        let is_domain = is_there && key.first() == Some(&keys::DOMAINS.byte);
        if let Some((_, pages)) = counted.as_mut().filter(|it| is_domain && it.0 == key) {
            *pages += 1;
            continue;
        }
        if let Some((domain, pages)) = counted.take() {
            domains += 1;
            put(&domain, encode_domain(pages, 0))?;
            let name = String::from_utf8_lossy(&domain[keys::domain("").len()..]).into_owned();
            places.push(&keys::domain_place(pages, &name))?;
        }
        match is_there {
            false => break,
            true if is_domain => counted = Some((key.clone(), 1)),
            true => put(&key, Vec::new())?,
        }
    }
    let mut places = places.finish()?;
    while places.next(&mut key)? {
        put(&key, Vec::new())?;
    }
    Ok(domains)
}
