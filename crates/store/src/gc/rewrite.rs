//! Rewriting chunks of which little is needed any more: facts and bodies without those of
//! documents that have newer ones or are gone.
//!
//! Records keep their numbers, because documents point to them: a short one stands in the
//! place of each that is dropped. The facts of a step go into one pack, bodies into an object
//! of their own for each chunk; all of it is announced before it is written, and takes the
//! place of the old in one transaction under the part's lease. What was there before is
//! condemned, so that whoever has looked it up can read it for as long as its grace lasts.
//! Invariant: what a document points to, and the last answer of one without content, is in
//! the new facts, byte for byte as it was.

use super::{GcReport, LeasedPart};
use crate::chunkfile::bodies;
use crate::chunkfile::document::{Body, Change, DocumentRecord};
use crate::chunkfile::facts::{self, FactsFile, InObject};
use crate::chunkfile::warc_reader::ByteRange;
use crate::collect::{self, NewObject, WrittenObject};
use crate::ids::{ChunkId, CommitNumber, IdMaker, ObjectId, Part};
use crate::objects::{ChunkKey, ObjectPath, Objects};
use crate::pack::{self, PACK_BYTES_MAX};
use crate::tables::chunk_storage::{
    self, ChunkPointer, NewBodies, RewrittenChunk, SettledChunks, StoredChunk,
};
use crate::tables::chunks::Facts;
use crate::tables::documents::LookOutcome;
use crate::tables::objects::{self as rows, ObjectKind};
use crate::{Db, Error, Result};
use page::ids::DocHash;
use std::collections::HashMap;

/// A chunk is rewritten when less than so many percent of what it was last written with is
/// needed: a third of what is stored can be dead, and rewriting costs twice what it frees.
const LIVE_PERCENT_MIN: i64 = 67;
/// Chunks looked at in one query, and packs.
const CHUNKS_PAGE: u32 = 100;
/// Chunks of one pack, at most: those that are packed or rewritten together.
const PACK_CHUNKS: u32 = 1_000;

/// What rewriting works with, in a part.
pub(super) struct RewriteContext<'a> {
    pub held: &'a LeasedPart<'a>,
    pub objects: &'a Objects,
    pub ids: &'a IdMaker,
    pub settled: SettledChunks,
    /// What the report says of written bytes when it is enough.
    pub until_bytes: u64,
}

/// Facts of several chunks that will be one pack.
#[derive(Default)]
struct Pack {
    bytes: Vec<u8>,
    chunks: Vec<RewrittenChunk>,
}

impl RewriteContext<'_> {
    /// Rewrites what is due among the part's settled chunks, within what may be written.
    pub fn run(&self, report: &mut GcReport) -> Result<()> {
        let (part, settled) = (self.part(), self.settled);
        let mut after = CommitNumber::NONE;
        while report.rewritten_bytes < self.until_bytes {
            let page = self
                .db()
                .read(move |tx| chunk_storage::stored(tx, part, after, settled, CHUNKS_PAGE))?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.seq;
            let mut pack = Pack::default();
            for chunk in page.into_iter().filter(|it| is_little(it.live, it.written)) {
                match self.rewritten(chunk, &mut pack, report) {
                    // It stays as it is, for `verify` to name.
                    Ok(()) | Err(Error::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                }
                if pack.bytes.len() as i64 >= PACK_BYTES_MAX {
                    self.commit(std::mem::take(&mut pack), report)?;
                }
            }
            self.commit(pack, report)?;
        }
        Ok(())
    }

    /// Moves what is left in packs, of which little is, into others, byte for byte.
    pub fn repack(&self, report: &mut GcReport) -> Result<()> {
        let part = self.part();
        let packs = self
            .db()
            .read(move |tx| chunk_storage::sparse_packs(tx, part, LIVE_PERCENT_MIN, CHUNKS_PAGE))?;
        let mut moved = Pack::default();
        for pack in packs {
            if report.rewritten_bytes >= self.until_bytes {
                break;
            }
            let pieces = match self.pieces(pack.id) {
                // It stays as it is, for `verify` to name.
                Err(Error::Corrupt { .. }) => continue,
                pieces => pieces?,
            };
            for (from, bytes) in pieces {
                report.rewritten_bytes += bytes.len() as u64;
                let facts = Some((moved.bytes.len() as i64, bytes.len() as i64));
                moved.bytes.extend(bytes);
                let bodies = NewBodies::Same;
                moved.chunks.push(RewrittenChunk { from, facts, left: i64::MAX, bodies });
            }
            if moved.bytes.len() as i64 >= PACK_BYTES_MAX {
                self.commit(std::mem::take(&mut moved), report)?;
            }
        }
        self.commit(moved, report)
    }

    /// The facts that chunks have in a pack; all of them are as they were written.
    fn pieces(&self, pack: ObjectId) -> Result<Vec<(StoredChunk, Vec<u8>)>> {
        let part = self.part();
        let chunks =
            self.db().read(move |tx| chunk_storage::in_pack(tx, part, pack, PACK_CHUNKS))?;
        let mut pieces = Vec::with_capacity(chunks.len());
        for (chunk, range) in chunks {
            let facts = Facts::Object { object: pack, range: Some(range) };
            let bytes = pack::read_facts(self.db(), self.objects, part, facts)?;
            let Some(bytes) = bytes else { continue };
            pack::stream(part, chunk.id, bytes.clone())?.try_for_each(|record| record.map(drop))?;
            pieces.push((chunk, bytes));
        }
        Ok(pieces)
    }

    fn db(&self) -> &Db {
        self.held.db
    }

    fn part(&self) -> Part {
        self.held.lease.part
    }

    /// Writes the new bodies of a chunk, and adds its new facts to a pack; nothing if it was
    /// rewritten before and enough of that is needed.
    fn rewritten(&self, chunk: StoredChunk, pack: &mut Pack, report: &mut GcReport) -> Result<()> {
        let (part, id) = (self.part(), chunk.id);
        let Some((place, bodies)) =
            self.db().read(move |tx| chunk_storage::places(tx, part, id))?
        else {
            return Ok(());
        };
        if !self.is_due(&chunk, &place)? {
            return Ok(());
        }
        let key = ChunkKey::new(part, id)?;
        let mut records = match pack::read_facts(self.db(), self.objects, part, place)? {
            Some(bytes) => pack::stream(part, id, bytes)?.collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        let left = self.drop_dead(id, &mut records)?;
        let written = match bodies.filter(|_| left.documents > 0) {
            Some(path) => self.rewrite_bodies(key, &path, &mut records)?,
            None => None,
        };
        report.rewritten_bytes += written.as_ref().map_or(0, |it| it.bytes);
        let bodies = written.map_or(NewBodies::None, NewBodies::Written);
        let facts = match left.records {
            0 => None,
            _ => {
                records.push(DocumentRecord::dropped(left.documents));
                let bytes = facts::encode(key, &records)?;
                let offset = pack.bytes.len() as i64;
                report.rewritten_bytes += bytes.len() as u64;
                pack.bytes.extend_from_slice(&bytes);
                Some((offset, bytes.len() as i64))
            }
        };
        pack.chunks.push(RewrittenChunk { from: chunk, facts, left: left.documents, bodies });
        Ok(())
    }

    /// Whether little is needed of what the chunk was last written with, which the last of its
    /// records says if it was rewritten.
    fn is_due(&self, chunk: &StoredChunk, place: &Facts) -> Result<bool> {
        let key = ChunkKey::new(self.part(), chunk.id)?;
        let last = match place {
            Facts::None => return Ok(true),
            Facts::Inline(bytes) => last_record(&FactsFile::open(key, bytes.as_slice())?)?,
            Facts::Object { object, range } => {
                let (part, object) = (self.part(), *object);
                let row = self.db().read(move |tx| rows::find(tx, part, object))?;
                let Some(row) = row else { return Ok(false) };
                let (offset, len) = range.unwrap_or((0, row.bytes));
                let (Ok(offset), Ok(len)) = (u64::try_from(offset), u64::try_from(len)) else {
                    return Ok(false);
                };
                let (objects, path) = (self.objects, ObjectPath::parse(&row.path)?);
                last_record(&FactsFile::open(key, InObject { objects, path, offset, len })?)?
            }
        };
        Ok(match last.filter(DocumentRecord::is_dropped) {
            // What it still has are answers of documents without content.
            Some(last) if last.job == 0 => false,
            Some(last) => is_little(chunk.live, last.job),
            None => true,
        })
    }

    /// Puts short records in the place of those that nothing needs. Returns what is left.
    fn drop_dead(&self, chunk: ChunkId, records: &mut [DocumentRecord]) -> Result<ChunkRemainder> {
        let part = self.part();
        let hashes: Vec<DocHash> =
            records.iter().filter(|it| !it.is_dropped()).map(|it| it.dochash).collect();
        let found = self.db().read(move |tx| chunk_storage::pointing(tx, part, &hashes))?;
        let mut by_hash: HashMap<DocHash, Vec<&ChunkPointer>> = HashMap::new();
        found.iter().for_each(|it| by_hash.entry(it.dochash).or_default().push(it));
        let mut left = ChunkRemainder::default();
        for (ordinal, record) in (0..).zip(records) {
            let rows = by_hash.get(&record.dochash).map_or(&[][..], Vec::as_slice);
            let points = |it: &&&ChunkPointer| {
                it.facts == Some((chunk, ordinal))
                    && it.removed_ms.is_none_or(|ms| ms >= self.settled.before_ms)
            };
            let documents = rows.iter().filter(points).count() as i64;
            left.documents += documents;
            if documents > 0 || rows.iter().any(|it| is_last_answer(record, it)) {
                left.records += 1;
            } else {
                *record = DocumentRecord::dropped(0);
            }
        }
        Ok(left)
    }

    /// Writes the bodies that records still name, and tells them where they are now.
    fn rewrite_bodies(
        &self,
        key: ChunkKey,
        path: &str,
        records: &mut [DocumentRecord],
    ) -> Result<Option<WrittenObject>> {
        let named = |record: &DocumentRecord| match record.body {
            Body::Here { offset, len } => Some(ByteRange { offset, len }),
            Body::None | Body::Earlier { .. } => None,
        };
        let places: Vec<ByteRange> = records.iter().filter_map(named).collect();
        if places.is_empty() {
            return Ok(None);
        }
        let old = self.objects.get(&ObjectPath::parse(path)?)?;
        let (bytes, moved) = bodies::copy(key, &old, &places)?;
        let here = records.iter_mut().filter(|it| named(it).is_some());
        for (record, place) in here.zip(moved) {
            record.body = Body::Here { offset: place.offset, len: place.len };
        }
        let id = ObjectId(self.ids.next());
        let path = ObjectPath::rewritten_bodies(key, id);
        let new = NewObject { part: self.part(), id, kind: ObjectKind::Bodies, path: &path };
        let now_ms = (self.held.clock)();
        collect::write(self.db(), self.objects, new, bytes, now_ms).map(Some)
    }

    /// Writes the pack, and puts it and the bodies in the place of the old. A chunk that has
    /// changed since is left as it is; what was written for it is collected.
    fn commit(&self, pack: Pack, report: &mut GcReport) -> Result<()> {
        let Some(first) = pack.chunks.first() else { return Ok(()) };
        let (part, settled) = (self.part(), self.settled);
        let path = ChunkKey::new(part, first.from.id)?;
        let id = ObjectId(self.ids.next());
        let path = ObjectPath::pack(path.part, id.0);
        let written = match pack.bytes.is_empty() {
            true => None,
            false => {
                let new = NewObject { part, id, kind: ObjectKind::Pack, path: &path };
                let now_ms = (self.held.clock)();
                Some(collect::write(self.db(), self.objects, new, pack.bytes, now_ms)?)
            }
        };
        let chunks = pack.chunks;
        let (rewritten, condemned) = self.held.step(move |tx, now_ms| {
            let (mut rewritten, mut condemned, mut is_used) = (0, 0, false);
            for chunk in &chunks {
                let gone = chunk_storage::replace(tx, part, id, chunk, settled, now_ms)?;
                if let Some(gone) = gone {
                    rewritten += 1;
                    condemned += gone;
                    is_used |= chunk.facts.is_some();
                }
            }
            if let Some(written) = written.as_ref().filter(|_| is_used) {
                written.publish(tx, now_ms)?;
            }
            Ok((rewritten, condemned))
        })?;
        report.rewritten += rewritten;
        report.condemned += condemned;
        Ok(())
    }
}

/// What is left of a chunk.
#[derive(Default)]
struct ChunkRemainder {
    /// Documents that point to its facts.
    documents: i64,
    /// Records that are needed.
    records: i64,
}

fn is_little(live: i64, written: i64) -> bool {
    live * 100 < written * LIVE_PERCENT_MIN || live == 0
}

/// Whether a record tells what a document without content answered the last time it was
/// asked: later looks that got the same answer have no record.
fn is_last_answer(record: &DocumentRecord, row: &ChunkPointer) -> bool {
    let is_live = row.facts.is_some() && row.removed_ms.is_none();
    let Some(fetch) = record.fetch.as_ref().filter(|_| record.change == Change::NoContent) else {
        return false;
    };
    let outcome = match fetch.final_url {
        Some(_) => LookOutcome::Redirect,
        None => LookOutcome::Gone,
    };
    !is_live && row.outcome == outcome.name() && row.http_status == Some(fetch.status.into())
}

fn last_record<S: facts::RangeSource>(file: &FactsFile<S>) -> Result<Option<DocumentRecord>> {
    file.len().checked_sub(1).map(|last| file.get(last)).transpose()
}
