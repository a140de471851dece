//! Compares the rows of pages with the stored facts of the documents they are about.
//!
//! What is read from pages can be computed from them ([`super::super::bulk`]); that pages are what
//! was crawled is known from the facts alone. Both sides are sorted by URI in files and read side
//! by side. A page that was loaded from an archive has no facts here, and is left as it is; what
//! is committed behind the cursor of a part is what the index has still to follow.
//!
//! Invariant: what is held in memory is a chunk, a step of rows, and the buffers of the sorter.

use super::super::bulk::SORT_BYTES;
use super::super::bulk::external_sort::Sorter;
use super::super::changes::{PageChange, PageContent, What};
use super::super::codec::{self, ByteReader};
use super::super::follow::chunk_changes::Chunks;
use super::super::index::LinkIndex;
use super::super::keys;
use super::super::pages::{LOADED, Page, attributes};
use super::super::parts::Parts;
use page::facts::{LinkKind, Rel};
use std::collections::HashSet;
use std::path::Path;
use store::ids::{CommitNumber, Part};
use store::objects::Objects;
use store::sorted::{Pair, Span};
use store::tables::{chunks, documents};
use store::{Db, Result};

/// Pages that are read at a time.
const PAGES_STEP: usize = 2_000;
/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;
/// A record begins with the part and the hash of its URI.
const URI_BYTES: usize = 18;
/// Bytes that stand for what a page says.
const SAYS_BYTES: usize = 16;
/// What follows: that a commit behind the cursor is about it, that its page was loaded from an
/// archive, what facts say, or the page's row.
const LATE: u8 = 0;
const LOADED_ROW: u8 = 1;
const FACTS: u8 = 2;
const ROW: u8 = 3;

/// What came of a comparison with facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct FactsVerified {
    /// Pages that were compared with facts.
    pub compared: u64,
    /// URIs that commits are about which the index has still to follow.
    pub waiting: u64,
    pub differences: u64,
}

/// Compares, with files in a directory. Every difference is reported in a sentence. Nobody may
/// change the index meanwhile.
pub fn verify(
    index: &LinkIndex,
    db: &Db,
    objects: &Objects,
    scratch: &Path,
    report: &mut dyn FnMut(&str),
) -> Result<FactsVerified> {
    let mut sorter = Sorter::new(scratch, SORT_BYTES, |_, record, out| out.extend(record))?;
    let mut records = Records { parts: Parts::new(index.parts()), record: Vec::new() };
    let mut chunks = Chunks::new(db.clone(), objects.clone())?;
    for part in Part::all(index.parts()) {
        push_rows(index, part, &mut records, &mut sorter)?;
        push_facts(db, part, index.cursor(part)?, &mut chunks, &mut |kind, uri, says| {
            sorter.push(records.of(kind, uri, says))
        })?;
    }
    compare(sorter, report)
}

/// Makes records, in one buffer.
struct Records {
    parts: Parts,
    record: Vec<u8>,
}

impl Records {
    fn of(&mut self, kind: u8, uri: &str, says: &[u8]) -> &[u8] {
        self.record.clear();
        self.record.extend_from_slice(&keys::part_bytes(self.parts.of(uri)));
        self.record.extend_from_slice(&keys::hash(uri).0);
        self.record.push(kind);
        self.record.extend_from_slice(says);
        self.record.extend_from_slice(uri.as_bytes());
        &self.record
    }
}

/// The rows of the pages of a part.
fn push_rows(
    index: &LinkIndex,
    part: Part,
    records: &mut Records,
    sorter: &mut Sorter,
) -> Result<()> {
    let mut span = Span::prefix(&[keys::PAGES.byte]);
    loop {
        let from = span.clone();
        let rows: Vec<Pair> = index.read(move |view| view.scan(part, &from, PAGES_STEP))?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        span = span.behind(last);
        for (_, value) in &rows {
            let page = Page::decode(value)?;
            if page.reported_by == LOADED {
                sorter.push(records.of(LOADED_ROW, &page.uri, &[]))?;
                continue;
            }
            let redirects = page.links.iter().any(|it| it.kind == LinkKind::Redirect);
            let mut says = vec![u8::from(page.is_there()), u8::from(redirects)];
            let links = page.links.iter().map(|it| (&*it.uri, &*it.anchor, it.kind, it.rel));
            says.extend(digest(page.status, &page.title, links));
            sorter.push(records.of(ROW, &page.uri, &says))?;
        }
    }
}

/// Whoever takes a record: its kind, the URI, and what is said of it.
type Push<'a> = dyn FnMut(u8, &str, &[u8]) -> Result<()> + 'a;

/// What the facts of a part's documents say, as far as their rows name them.
fn push_facts(
    db: &Db,
    part: Part,
    cursor: CommitNumber,
    chunks: &mut Chunks,
    push: &mut Push<'_>,
) -> Result<()> {
    let mut seq = CommitNumber::NONE;
    loop {
        let some = db.read(move |tx| chunks::after(tx, part, seq, CHUNKS_STEP))?;
        let Some(last) = some.last() else { return Ok(()) };
        seq = last.seq;
        for chunk in some {
            let (id, is_late) = (chunk.id, chunk.seq > cursor);
            let changes = chunks.changes(part, chunk)?;
            let hashes: Vec<_> = changes.iter().map(|(hash, _)| *hash).collect();
            let rows = db.read(move |tx| documents::pointers(tx, part, &hashes))?;
            let current: HashSet<_> = rows
                .iter()
                .filter(|row| row.chunk == Some(id) && !row.is_removed && !row.role.is_requisite())
                .map(|row| row.dochash)
                .collect();
            for (hash, PageChange { uri, what, .. }) in &changes {
                match what {
                    _ if is_late => push(LATE, uri, &[])?,
                    What::Page(content) if current.contains(hash) => {
                        push(FACTS, uri, &says(content))?;
                    }
                    _ => {}
                }
            }
        }
    }
}

fn says(content: &PageContent) -> [u8; SAYS_BYTES] {
    let links = content.links.iter().map(|it| (&*it.uri, &*it.anchor, it.kind, it.rel));
    digest(content.status, &content.title, links)
}

/// What a page says, in few bytes.
fn digest<'a>(
    status: u16,
    title: &str,
    links: impl Iterator<Item = (&'a str, &'a str, LinkKind, Rel)>,
) -> [u8; SAYS_BYTES] {
    let mut bytes = Vec::new();
    codec::put_number(&mut bytes, status.into());
    codec::put_text(&mut bytes, title);
    for (uri, anchor, kind, rel) in links {
        codec::put_text(&mut bytes, uri);
        codec::put_text(&mut bytes, anchor);
        bytes.push(attributes(kind, rel));
    }
    let mut digest = [0; SAYS_BYTES];
    digest.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..SAYS_BYTES]);
    digest
}

/// What is known of a URI from both sides.
#[derive(Default)]
struct Sides {
    uri: String,
    is_late: bool,
    is_loaded: bool,
    facts: Vec<[u8; SAYS_BYTES]>,
    /// Whether the page is there, whether it redirects, and what it says.
    row: Option<(bool, bool, [u8; SAYS_BYTES])>,
}

fn compare(sorter: Sorter, report: &mut dyn FnMut(&str)) -> Result<FactsVerified> {
    let mut verified = FactsVerified::default();
    let mut records = sorter.finish()?;
    let (mut record, mut key, mut sides) = (Vec::new(), Vec::new(), Sides::default());
    loop {
        let is_there = records.next(&mut record)?;
        let is_next = !is_there || !record.starts_with(&key) || key.is_empty();
        if is_next {
            sides.judge(&mut verified, report);
            sides = Sides::default();
        }
        if !is_there {
            return Ok(verified);
        }
        key.clear();
        key.extend_from_slice(record.get(..URI_BYTES).unwrap_or_default());
        let mut reader = ByteReader::new("a record", record.get(URI_BYTES..).unwrap_or_default());
        let mut says = [0; SAYS_BYTES];
        match reader.byte()? {
            LATE => sides.is_late = true,
            LOADED_ROW => sides.is_loaded = true,
            FACTS => {
                says.copy_from_slice(reader.bytes(SAYS_BYTES)?);
                sides.facts.push(says);
            }
            _ => {
                let (is_there, redirects) = (reader.byte()? == 1, reader.byte()? == 1);
                says.copy_from_slice(reader.bytes(SAYS_BYTES)?);
                sides.row = Some((is_there, redirects, says));
            }
        }
        sides.uri = reader.rest()?.to_owned();
    }
}

impl Sides {
    fn judge(&self, verified: &mut FactsVerified, report: &mut dyn FnMut(&str)) {
        let uri = &self.uri;
        let difference = match (&self.row, self.facts.as_slice()) {
            _ if self.is_late => {
                verified.waiting += 1;
                return;
            }
            _ if self.is_loaded => return,
            (None | Some((false, ..) | (true, true, _)), []) => return,
            (None | Some((false, ..)), _) => {
                Some(format!("{uri} is no page of the index, but it is one by its facts"))
            }
            (Some(_), []) => Some(format!("{uri} is a page of the index, but has no facts")),
            (Some((.., says)), facts) => {
                verified.compared += 1;
                let what = "has another status, title or links in the index than in its facts";
                (!facts.contains(says)).then(|| format!("{uri} {what}"))
            }
        };
        if let Some(what) = difference {
            verified.differences += 1;
            report(&what);
        }
    }
}
