//! What outputs are given of documents: facts and bytes out of committed chunks.
//!
//! Invariant: whatever the size of documents, no more is held than a few chunks of facts
//! and the bytes of one batch.

use super::Means;
use crate::fields;
use crate::output::{Content, Wants};
use bytes::Bytes;
use page::facts::Facts;
use page::ids::DocHash;
use std::collections::{HashMap, VecDeque};
use store::chunkfile::document::{Body, Field};
use store::chunkfile::warc::Record;
use store::chunkfile::warc_reader::Place;
use store::chunkfile::{bodies, http_head};
use store::ids::{ChunkId, Part};
use store::objects::ChunkKey;
use store::tables::documents::Document;
use store::{Error, Result, pack};

/// Chunks whose facts are kept in memory.
const CHUNKS_MAX: usize = 2;

/// What documents of a chunk say, what others say of them, and where their bytes are; by their
/// place and their key, which does not match where a damaged row points to.
type Records = HashMap<(i64, DocHash), (Facts, Vec<Field>, Body)>;

/// Reads what documents say.
pub(super) struct Contents {
    chunks: VecDeque<((Part, ChunkId), Records)>,
}

impl Contents {
    pub fn new() -> Contents {
        Contents { chunks: VecDeque::new() }
    }

    /// What a document says; `None` when it is not in the store.
    pub fn of(
        &mut self,
        means: &Means,
        (part, document): (Part, &Document),
        wants: Wants,
    ) -> Result<Option<Content>> {
        let (changed_ms, length) = (document.changed_ms, document.length);
        if wants == Wants::Name {
            return Ok(Some(Content { changed_ms, length, ..Content::default() }));
        }
        let Some((chunk, ordinal)) = document.chunk.zip(document.ordinal) else { return Ok(None) };
        let key = (ordinal, document.dochash);
        let Some((facts, said, body)) = self.records(means, (part, chunk))?.get(&key) else {
            return Ok(None);
        };
        let (facts, fields, body) = (facts.clone(), fields::of(facts, said), *body);
        let bytes = match body {
            _ if wants < Wants::Bytes => None,
            Body::None => None,
            Body::Here { offset, len } => Some((chunk, Place { offset, len })),
            Body::Earlier { chunk, offset, len } => Some((ChunkId(chunk), Place { offset, len })),
        };
        let bytes = bytes.map(|(chunk, place)| {
            let record = bodies::read(&means.objects, ChunkKey::new(part, chunk)?, place)?;
            body_of(record)
        });
        let bytes = bytes.transpose()?;
        Ok(Some(Content { facts, fields, length, bytes, authority: None, changed_ms }))
    }

    fn records(&mut self, means: &Means, key: (Part, ChunkId)) -> Result<&Records> {
        if !self.chunks.iter().any(|it| it.0 == key) {
            if self.chunks.len() >= CHUNKS_MAX {
                self.chunks.pop_front();
            }
            self.chunks.push_back((key, read(means, key)?));
        }
        let found = self.chunks.iter().find(|it| it.0 == key);
        found.map(|it| &it.1).ok_or_else(|| Error::corrupt("facts", "they are gone"))
    }
}

fn read(means: &Means, (part, chunk): (Part, ChunkId)) -> Result<Records> {
    let mut records = Records::new();
    let found = pack::records(&means.db, &means.objects, part, chunk)?;
    for (ordinal, record) in (0..).zip(found.into_iter().flatten()) {
        let record = record?;
        if let Some(facts) = record.facts {
            records.insert((ordinal, record.dochash), (facts, record.fields, record.body));
        }
    }
    Ok(records)
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
