//! Documents that are in the index and not there any more.
//!
//! One whose removal the index has still to follow is none. Removals are told by chunks alone, so
//! those behind the cursor are read. Invariant: at most [`STRAYS_MAX`] documents are held; where
//! there are more, the chunks are read again for the next of them.

use super::{VerifyContext, VerifyPositions, broken, live};
use crate::search::schema::DocumentKey;
use std::collections::{BTreeMap, HashMap, HashSet};
use store::ids::{CommitNumber, Part};
use store::tables::{chunks, documents};
use store::{Result, pack};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, Searcher, SegmentReader, TantivyDocument};

/// Documents that are held at a time.
pub const STRAYS_MAX: usize = 10_000;
/// Keys that are looked up at a time.
const KEYS_STEP: usize = 1_000;
/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;

/// A document that is in the index and has no row that is there.
struct Stray<'a> {
    key: DocumentKey,
    searcher: &'a Searcher,
    at: DocAddress,
}

type ByPart<'a> = BTreeMap<Part, Vec<Stray<'a>>>;

/// Tells of documents that should not be in the index. Returns how many others there are whose
/// removal the index has still to follow.
pub fn report(
    of: &VerifyContext<'_>,
    reached: &VerifyPositions,
    report: &mut dyn FnMut(&str),
) -> Result<u64> {
    let (mut late, mut held, mut strays) = (0, 0, ByPart::new());
    for searcher in of.shards.searchers() {
        for (segment, reader) in (0u32..).zip(searcher.segment_readers()) {
            let mut keys = SegmentKeys { reader, field: of.fields.key, after: Some(Vec::new()) };
            while let Some(some) = keys.next()? {
                let mut by_part = ByPart::new();
                for (part, key, doc) in some {
                    let at = DocAddress::new(segment, doc);
                    by_part.entry(part).or_default().push(Stray { key, searcher, at });
                }
                for (part, some) in by_part {
                    let some = without_row(of, part, some)?;
                    held += some.len();
                    strays.entry(part).or_default().extend(some);
                }
                if held >= STRAYS_MAX {
                    late += settle(of, std::mem::take(&mut strays), reached, report)?;
                    held = 0;
                }
            }
        }
    }
    Ok(late + settle(of, strays, reached, report)?)
}

/// The keys of a segment, with where their documents are.
struct SegmentKeys<'a> {
    reader: &'a SegmentReader,
    field: Field,
    /// The last key that was read, while there may be more.
    after: Option<Vec<u8>>,
}

impl SegmentKeys<'_> {
    /// The documents of some keys; `None` when there are no more.
    fn next(&mut self) -> Result<Option<Vec<(Part, DocumentKey, u32)>>> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let inverted = self.reader.inverted_index(self.field).map_err(broken)?;
        let parts = self.reader.fast_fields().u64("part").map_err(broken)?;
        let mut stream = inverted.terms().range().gt(after).into_stream().map_err(io)?;
        let mut found = Vec::new();
        let mut keys = 0;
        while keys < KEYS_STEP && stream.advance() {
            keys += 1;
            let postings = inverted
                .read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)
                .map_err(io)?;
            let Some(key) = DocumentKey::parse(stream.key()) else { continue };
            for doc in live(self.reader, postings) {
                let part = i64::try_from(parts.first(doc).unwrap_or(0)).unwrap_or(0);
                found.push((Part(part), key, doc));
            }
            self.after = Some(stream.key().to_vec());
        }
        if keys < KEYS_STEP {
            self.after = None;
        }
        Ok(Some(found))
    }
}

fn io(error: std::io::Error) -> store::Error {
    broken(error.into())
}

/// Those of some documents of a part that have no row which is there.
fn without_row<'a>(
    of: &VerifyContext<'_>,
    part: Part,
    mut some: Vec<Stray<'a>>,
) -> Result<Vec<Stray<'a>>> {
    let hashes: Vec<_> = some.iter().map(|it| it.key.hash).collect();
    let rows = of.db.read(move |tx| documents::pointers(tx, part, &hashes))?;
    let there: HashSet<DocumentKey> = rows
        .into_iter()
        .filter(|row| !row.is_removed && row.chunk.is_some())
        .map(|row| DocumentKey { connection: row.connection, hash: row.dochash })
        .collect();
    some.retain(|it| !there.contains(&it.key));
    Ok(some)
}

/// Tells of those that no commit behind the cursor is about. Returns the number of the others.
fn settle(
    of: &VerifyContext<'_>,
    strays: ByPart<'_>,
    reached: &VerifyPositions,
    report: &mut dyn FnMut(&str),
) -> Result<u64> {
    let mut late = 0;
    for (part, some) in strays {
        let mut by_hash: HashMap<_, Vec<Stray<'_>>> = HashMap::new();
        some.into_iter().for_each(|it| by_hash.entry(it.key.hash).or_default().push(it));
        let mut seq = reached.get(&part).map_or(CommitNumber::NONE, |it| it.0);
        while !by_hash.is_empty() {
            let chunks = of.db.read(move |tx| chunks::after(tx, part, seq, CHUNKS_STEP))?;
            let Some(last) = chunks.last() else { break };
            seq = last.seq;
            for chunk in chunks {
                let read = pack::read_facts(of.db, of.objects, part, chunk.facts)?;
                let Some(bytes) = read else { continue };
                for record in pack::stream(part, chunk.id, bytes)? {
                    let waiting = by_hash.remove(&record?.dochash);
                    late += waiting.map_or(0, |it| it.len() as u64);
                }
            }
        }
        for it in by_hash.into_values().flatten() {
            let stored: TantivyDocument = it.searcher.doc(it.at).map_err(broken)?;
            let url = stored.get_first(of.fields.url).and_then(|it| it.as_str());
            let url = url.unwrap_or("a document without a name");
            report(&format!("{url} is in the index, and is not there any more"));
        }
    }
    Ok(late)
}
