//! Packing: facts of many small chunks move from their rows into one object.
//!
//! Rows keep a busy crawler from writing a storm of tiny objects; packs keep the
//! database small. Invariant: a reader finds the facts of a committed chunk at any
//! moment, in its row before the commit of the pack and in the pack behind it, and
//! they are the same bytes.

use crate::chunkfile::facts::FactsStream;
use crate::collect::{self, NewObject};
use crate::ids::{ChunkId, IdMaker, ObjectId, Part};
use crate::objects::{ChunkKey, ObjectPath, Objects};
use crate::tables::chunk_storage::{self, PackedChunk};
use crate::tables::chunks::{self, Facts};
use crate::tables::objects::{self as rows, ObjectKind};
use crate::{Db, Error, Result};
use std::io::Cursor;

#[cfg(test)]
mod tests;

/// Chunks in one pack.
pub const PACK_CHUNKS_MAX: u32 = 256;
/// A pack is closed before it grows beyond this, but holds at least one chunk.
pub const PACK_BYTES_MAX: i64 = 32 << 20;

/// Packs the oldest unpacked facts of a part, if there are at least `chunks_min`
/// of them or enough bytes for a full pack. Returns how many chunks were packed.
///
/// Two packers of one part do each other no harm: the slower one is refused and
/// what it wrote is collected.
pub fn pack_facts(
    db: &Db,
    objects: &Objects,
    part: Part,
    ids: &IdMaker,
    now_ms: i64,
    chunks_min: u32,
) -> Result<usize> {
    let waiting = db.read(move |tx| chunk_storage::unpacked(tx, part, PACK_CHUNKS_MAX))?;
    let mut total = 0;
    let fitting = waiting.iter().take_while(|chunk| {
        total += chunk.bytes;
        total <= PACK_BYTES_MAX
    });
    let count = fitting.count().max(1).min(waiting.len());
    let enough = count < waiting.len() || count >= chunks_min.clamp(1, PACK_CHUNKS_MAX) as usize;
    if !enough {
        return Ok(0);
    }
    let mut pack = Vec::new();
    let mut pieces = Vec::with_capacity(count);
    for chunk in &waiting[..count] {
        let id = chunk.id;
        let facts = db.read(move |tx| chunk_storage::inline_facts(tx, part, id))?;
        // Another packer has been here in the meantime: let it do the work.
        let Some(facts) = facts else { return Ok(0) };
        let (offset, len) = (to_i64(pack.len()), to_i64(facts.len()));
        pieces.push(PackedChunk { id, offset, len });
        pack.extend(facts);
    }
    let id = ObjectId(ids.next());
    let path = ObjectPath::pack(ChunkKey::new(part, waiting[0].id)?.part, id.0);
    let new = NewObject { part, id, kind: ObjectKind::Pack, path: &path };
    let written = collect::write(db, objects, new, pack, now_ms)?;
    let committed = db.write(move |tx| {
        written.publish(tx, now_ms)?;
        chunk_storage::set_packed(tx, part, id, &pieces)
    });
    match committed {
        Ok(()) => Ok(count),
        Err(Error::Refused(_)) => Ok(0),
        Err(error) => Err(error),
    }
}

/// The facts of a chunk, wherever they are. `None`: it has none (any more).
///
/// A place can be given up between looking it up and reading it only after a
/// grace of a day, so callers look up and read without ceremony.
pub fn read_facts(db: &Db, objects: &Objects, part: Part, facts: Facts) -> Result<Option<Vec<u8>>> {
    let (object, range) = match facts {
        Facts::Inline(bytes) => return Ok(Some(bytes)),
        Facts::None => return Ok(None),
        Facts::Object { object, range } => (object, range),
    };
    let row = db.read(move |tx| rows::find(tx, part, object))?;
    let what = || format!("object {object} of part {part}");
    let row =
        row.ok_or_else(|| Error::corrupt(what(), "a chunk points to it, but it is not published"))?;
    let path = ObjectPath::parse(&row.path)?;
    let Some((offset, len)) = range else { return objects.get(&path).map(Some) };
    let range = u64::try_from(offset).ok().zip(u64::try_from(len).ok());
    let (offset, len) =
        range.ok_or_else(|| Error::corrupt(what(), "a chunk names a negative range"))?;
    objects.get_range(&path, offset, len).map(Some)
}

/// The records of a committed chunk, in order. `None`: it has none (any more).
pub fn records(
    db: &Db,
    objects: &Objects,
    part: Part,
    chunk: ChunkId,
) -> Result<Option<FactsStream<Cursor<Vec<u8>>>>> {
    let facts = db.read(move |tx| chunks::facts_of(tx, part, chunk))?;
    let bytes = facts.map(|facts| read_facts(db, objects, part, facts)).transpose()?.flatten();
    bytes.map(|bytes| stream(part, chunk, bytes)).transpose()
}

/// The records in the facts of a chunk.
pub fn stream(part: Part, chunk: ChunkId, facts: Vec<u8>) -> Result<FactsStream<Cursor<Vec<u8>>>> {
    FactsStream::open(ChunkKey::new(part, chunk)?, Cursor::new(facts))
}

fn to_i64(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("what is in memory has fewer than 2^63 bytes")
}
