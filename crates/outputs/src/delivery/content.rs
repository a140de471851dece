//! What outputs are given of documents: facts and bytes out of committed chunks.
//!
//! Invariant: whatever the size of documents, no more is held than a few chunks of facts
//! and the bytes of one batch.

use super::DeliveryContext;
use crate::fields;
use crate::output::{Content, Wants};
use bytes::Bytes;
use page::facts::Facts;
use page::ids::DocHash;
use std::collections::{HashMap, VecDeque};
use store::chunkfile::document::{Body, Field};
use store::chunkfile::warc::Record;
use store::chunkfile::warc_reader::ByteRange;
use store::chunkfile::{bodies, http_head};
use store::ids::{ChunkId, Part};
use store::objects::{ChunkKey, ObjectPath};
use store::tables::chunk_storage;
use store::tables::documents::Document;
use store::{Error, Result, pack};

/// Chunks whose facts are kept in memory.
const CHUNKS_MAX: usize = 2;

/// What documents of a chunk say, what others say of them, and where their bytes are; by their
/// place and their key, which does not match where a damaged row points to.
type Records = HashMap<(i64, DocHash), (Facts, Vec<Field>, Body)>;

/// A chunk's records, and the path of its bodies that goes with them.
struct ChunkContents {
    records: Records,
    bodies: Option<ObjectPath>,
}

/// Reads what documents say.
pub(super) struct Contents {
    chunks: VecDeque<((Part, ChunkId), ChunkContents)>,
}

impl Contents {
    pub fn new() -> Contents {
        Contents { chunks: VecDeque::new() }
    }

    /// What a document says; `None` when it is not in the store.
    pub fn of(
        &mut self,
        context: &DeliveryContext,
        part: Part,
        document: &Document,
        wants: Wants,
    ) -> Result<Option<Content>> {
        let Some(chunk) = document.chunk else { return self.read(context, part, document, wants) };
        let is_known = self.chunks.iter().any(|it| it.0 == (part, chunk));
        let outcome = self.read(context, part, document, wants);
        if outcome.is_ok() || !is_known {
            return outcome;
        }
        // What is kept in memory may be older than the grace of a chunk that was rewritten.
        self.chunks.retain(|it| it.0 != (part, chunk));
        self.read(context, part, document, wants)
    }

    fn read(
        &mut self,
        context: &DeliveryContext,
        part: Part,
        document: &Document,
        wants: Wants,
    ) -> Result<Option<Content>> {
        let (changed_ms, length, role) = (document.changed_ms, document.length, document.role);
        if wants == Wants::Name {
            return Ok(Some(Content { changed_ms, length, role, ..Content::default() }));
        }
        let Some((chunk, ordinal)) = document.chunk.zip(document.ordinal) else { return Ok(None) };
        let key = (ordinal, document.dochash);
        let found = self.chunk(context, part, chunk)?;
        let Some((facts, given, body)) = found.records.get(&key) else {
            return Ok(None);
        };
        let (facts, fields, body) = (facts.clone(), fields::of(facts, given), *body);
        let bytes = match body {
            _ if wants < Wants::Bytes => None,
            Body::None => None,
            Body::Here { offset, len } => Some((found.bodies.clone(), ByteRange { offset, len })),
            Body::Earlier { chunk, offset, len } => {
                let earlier = ChunkKey::new(part, ChunkId(chunk))?;
                Some((Some(ObjectPath::bodies(earlier)), ByteRange { offset, len }))
            }
        };
        let bytes = bytes.map(|(path, place)| {
            let path = path.ok_or_else(|| Error::corrupt("bodies", "they are gone"))?;
            body_of(bodies::read(&context.objects, &path, place)?)
        });
        let bytes = bytes.transpose()?;
        Ok(Some(Content { facts, fields, length, bytes, authority: None, changed_ms, role }))
    }

    fn chunk(
        &mut self,
        context: &DeliveryContext,
        part: Part,
        chunk: ChunkId,
    ) -> Result<&ChunkContents> {
        let key = (part, chunk);
        if !self.chunks.iter().any(|it| it.0 == key) {
            if self.chunks.len() >= CHUNKS_MAX {
                self.chunks.pop_front();
            }
            self.chunks.push_back((key, read(context, part, chunk)?));
        }
        let found = self.chunks.iter().find(|it| it.0 == key);
        found.map(|it| &it.1).ok_or_else(|| Error::corrupt("facts", "they are gone"))
    }
}

/// Facts and bodies are of one moment: a chunk that is rewritten gets others of both.
fn read(context: &DeliveryContext, part: Part, chunk: ChunkId) -> Result<ChunkContents> {
    let mut records = Records::new();
    let places = context.db.read(move |tx| chunk_storage::places(tx, part, chunk))?;
    let Some((facts, bodies)) = places else { return Ok(ChunkContents { records, bodies: None }) };
    let bodies = bodies.map(|path| ObjectPath::parse(&path)).transpose()?;
    let bytes = pack::read_facts(&context.db, &context.objects, part, facts)?;
    let found = bytes.map(|bytes| pack::stream(part, chunk, bytes)).transpose()?;
    for (ordinal, record) in (0..).zip(found.into_iter().flatten()) {
        let record = record?;
        if let Some(facts) = record.facts {
            records.insert((ordinal, record.dochash), (facts, record.fields, record.body));
        }
    }
    Ok(ChunkContents { records, bodies })
}

/// The document in a record of a bodies file.
fn body_of(record: Record) -> Result<Bytes> {
    if record.kind() == "resource" {
        return Ok(record.block.into());
    }
    let message = http_head::parse(&record.block)
        .ok_or_else(|| Error::corrupt("bodies", "a record is no answer"))?;
    Ok(Bytes::copy_from_slice(message.payload))
}
