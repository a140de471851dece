//! Where the facts and bodies of committed chunks are kept, as it changes after
//! the commit: facts move from rows into packs, facts and bodies that nothing needs go.
//!
//! Invariant: at every commit a chunk's facts are in exactly one place, its row or
//! an object that is published, or nowhere when retention has dropped them; and an
//! object is condemned in the transaction that takes the last pointer to it away.

mod forgotten;
mod live_data;

pub use forgotten::forget;
pub use live_data::{
    ChunkPointer, NewBodies, RewrittenChunk, SettledChunks, SparsePack, StoredChunk, in_pack,
    pointing, replace, sparse_packs, stored,
};

use crate::ids::{ChunkId, CommitNumber, ObjectId, Part};
use crate::tables::chunks::{self, Facts};
use crate::tables::{cursors, objects};
use crate::{Error, Result, Tx};

/// A committed chunk whose facts are in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct UnpackedChunk {
    pub id: ChunkId,
    /// Bytes of its facts.
    pub bytes: i64,
}

/// Committed chunks whose facts are in their rows, in commit order.
pub fn unpacked(tx: &mut Tx<'_>, part: Part, limit: u32) -> Result<Vec<UnpackedChunk>> {
    tx.query(
        "SELECT id, CAST(LENGTH(facts) AS BIGINT) FROM chunks
         WHERE part = $1 AND facts IS NOT NULL AND state = 'crawled' ORDER BY seq LIMIT $2",
        &[part.into(), limit.into()],
        |row| Ok(UnpackedChunk { id: row.get(0)?, bytes: row.get(1)? }),
    )
}

/// The facts in a chunk's row, if they still are there.
pub fn inline_facts(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<Option<Vec<u8>>> {
    let facts = tx.query_opt(
        "SELECT facts FROM chunks WHERE part = $1 AND id = $2",
        &[part.into(), chunk.into()],
        |row| row.get::<Option<Vec<u8>>>(0),
    )?;
    Ok(facts.flatten())
}

/// One chunk's piece of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PackedChunk {
    pub id: ChunkId,
    /// Its facts' first byte in the pack.
    pub offset: i64,
    pub len: i64,
}

/// Points chunks to their pieces of a pack, in the transaction that publishes it.
/// Refuses if another packer was faster; then nothing may be committed.
pub fn set_packed(
    tx: &mut Tx<'_>,
    part: Part,
    pack: ObjectId,
    pieces: &[PackedChunk],
) -> Result<()> {
    for piece in pieces {
        let values =
            [part.into(), piece.id.into(), pack.into(), piece.offset.into(), piece.len.into()];
        let touched = chunks::change(tx, part, piece.id, |tx| {
            tx.execute(
                "UPDATE chunks SET facts = NULL, facts_object = $3, facts_offset = $4,
                     facts_len = $5
                 WHERE part = $1 AND id = $2 AND facts IS NOT NULL AND LENGTH(facts) = $5",
                &values,
            )
        })?;
        if touched != 1 {
            let chunk = piece.id;
            return Err(Error::Refused(format!(
                "the facts of chunk {chunk} of part {part} are no longer in its row"
            )));
        }
    }
    Ok(())
}

/// Where the bodies of a committed chunk are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StoredBodies {
    pub id: ChunkId,
    /// Its number in the part's order.
    pub seq: CommitNumber,
    pub path: String,
    /// BLAKE3 of the object's bytes.
    pub hash: Vec<u8>,
}

/// Committed chunks numbered after `after` that have bodies, in commit order.
pub fn stored_bodies(
    tx: &mut Tx<'_>,
    part: Part,
    after: CommitNumber,
    limit: u32,
) -> Result<Vec<StoredBodies>> {
    tx.query(
        "SELECT chunks.id, chunks.seq, objects.path, objects.hash
         FROM chunks JOIN objects ON objects.part = $1 AND objects.id = chunks.bodies_object
         WHERE chunks.part = $1 AND chunks.state = 'crawled' AND chunks.seq > $2
         ORDER BY chunks.seq LIMIT $3",
        &[part.into(), after.into(), limit.into()],
        |row| {
            Ok(StoredBodies {
                id: row.get(0)?,
                seq: row.get(1)?,
                path: row.get(2)?,
                hash: row.get(3)?,
            })
        },
    )
}

/// The number up to which a part is settled: every consumer has passed it, and it
/// was committed before a time. [`CommitNumber::NONE`] when nothing is.
///
/// A consumer that begins later finds the facts of every document that is there,
/// and of chunks behind this number only those.
pub fn settled(tx: &mut Tx<'_>, part: Part, committed_before_ms: i64) -> Result<SettledChunks> {
    let old: Option<CommitNumber> = tx.query_opt(
        "SELECT seq FROM chunks
         WHERE part = $1 AND state = 'crawled' AND committed_ms < $2 ORDER BY seq DESC LIMIT 1",
        &[part.into(), committed_before_ms.into()],
        |row| row.get(0),
    )?;
    let passed = cursors::slowest(tx, part)?;
    let seq = old.unwrap_or(CommitNumber::NONE).min(passed.unwrap_or(CommitNumber::LAST));
    Ok(SettledChunks { seq, before_ms: committed_before_ms })
}

/// Where the facts and the bodies of a chunk are at one moment: whoever reads a body by what
/// the facts say of its place must not take the bodies of another moment. `None` if it is not
/// there any more.
pub fn places(
    tx: &mut Tx<'_>,
    part: Part,
    chunk: ChunkId,
) -> Result<Option<(Facts, Option<String>)>> {
    let Some(facts) = chunks::facts_of(tx, part, chunk)? else { return Ok(None) };
    let bodies = tx.query_opt(
        "SELECT objects.path FROM chunks
         JOIN objects ON objects.part = $1 AND objects.id = chunks.bodies_object
         WHERE chunks.part = $1 AND chunks.id = $2",
        &[part.into(), chunk.into()],
        |row| row.get(0),
    )?;
    Ok(Some((facts, bodies)))
}

/// How far a walk over a part's chunks has come, and what it did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageProgress {
    /// The last chunk number looked at; `None` when the walk is at its end.
    pub next: Option<CommitNumber>,
    /// Chunks that lost something.
    pub chunks: u64,
    /// Objects condemned.
    pub condemned: u64,
    /// Bytes that were in rows.
    pub row_bytes: u64,
}

/// A committed chunk as a walk sees it.
struct ScannedChunk {
    id: ChunkId,
    seq: CommitNumber,
    object: Option<ObjectId>,
    row_bytes: Option<i64>,
    needed: bool,
}

/// The step that ends with these chunks, before it has done anything.
fn step_over(looked_at: &[ScannedChunk], limit: u32) -> StorageProgress {
    let full = looked_at.len() == limit as usize;
    let next = looked_at.last().filter(|_| full).map(|chunk| chunk.seq);
    StorageProgress { next, ..StorageProgress::default() }
}

/// Condemns bodies that no document points to, of up to `limit` chunks numbered
/// after `after` and not after `settled`, which every output has passed.
///
/// The caller holds the part's crawl lease and has fenced in this transaction:
/// otherwise a commit at the same time could point to what is condemned.
pub fn condemn_bodies(
    tx: &mut Tx<'_>,
    part: Part,
    after: CommitNumber,
    settled: SettledChunks,
    limit: u32,
    now_ms: i64,
) -> Result<StorageProgress> {
    let looked_at = tx.query(
        "SELECT id, seq, bodies_object,
                CAST(CASE WHEN EXISTS (SELECT 1 FROM documents WHERE documents.part = $1
                                       AND documents.bodychunk = chunks.id
                                       AND (documents.removed_ms IS NULL
                                            OR documents.removed_ms >= $5))
                     THEN 1 ELSE 0 END AS BIGINT)
         FROM chunks
         WHERE part = $1 AND state = 'crawled' AND seq > $2 AND seq <= $3
         ORDER BY seq LIMIT $4",
        &[part.into(), after.into(), settled.seq.into(), limit.into(), settled.before_ms.into()],
        |row| {
            let (id, seq, object) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(ScannedChunk { id, seq, object, row_bytes: None, needed: row.get::<i64>(3)? == 1 })
        },
    )?;
    let mut step = step_over(&looked_at, limit);
    for chunk in looked_at.iter().filter(|chunk| !chunk.needed) {
        let Some(bodies) = chunk.object else { continue };
        chunks::change(tx, part, chunk.id, |tx| {
            tx.execute(
                "UPDATE chunks SET bodies_object = NULL WHERE part = $1 AND id = $2",
                &[part.into(), chunk.id.into()],
            )
        })?;
        step.chunks += 1;
        step.condemned += u64::from(objects::condemn(tx, part, bodies, now_ms)?);
    }
    Ok(step)
}

/// Drops facts that no document points to, of the same chunks as
/// [`condemn_bodies`] and under the same condition: from the row, or by condemning
/// their object once no other chunk has facts in it. Those that may tell of a document
/// without content are left to whoever reads them ([`replace`]).
pub fn drop_facts(
    tx: &mut Tx<'_>,
    part: Part,
    after: CommitNumber,
    settled: SettledChunks,
    limit: u32,
    now_ms: i64,
) -> Result<StorageProgress> {
    let looked_at = tx.query(
        "SELECT id, seq, facts_object, CAST(LENGTH(facts) AS BIGINT),
                CAST(CASE WHEN chunks.documents > adds + updates + keeps
                            OR EXISTS (SELECT 1 FROM documents WHERE documents.part = $1
                                       AND documents.chunk = chunks.id
                                       AND (documents.removed_ms IS NULL
                                            OR documents.removed_ms >= $5))
                     THEN 1 ELSE 0 END AS BIGINT)
         FROM chunks
         WHERE part = $1 AND state = 'crawled' AND seq > $2 AND seq <= $3
         ORDER BY seq LIMIT $4",
        &[part.into(), after.into(), settled.seq.into(), limit.into(), settled.before_ms.into()],
        |row| {
            let (id, seq, object, row_bytes) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(ScannedChunk { id, seq, object, row_bytes, needed: row.get::<i64>(4)? == 1 })
        },
    )?;
    let mut step = step_over(&looked_at, limit);
    for chunk in looked_at.iter().filter(|chunk| !chunk.needed) {
        if chunk.row_bytes.is_none() && chunk.object.is_none() {
            continue;
        }
        // A packer may have moved the facts since the look; the next walk finds them.
        let object = chunk.object.map_or(-1, |object| object.0);
        let dropped = chunks::change(tx, part, chunk.id, |tx| {
            tx.execute(
                "UPDATE chunks SET facts = NULL, facts_object = NULL, facts_offset = NULL,
                     facts_len = NULL
                 WHERE part = $1 AND id = $2 AND COALESCE(facts_object, -1) = $3",
                &[part.into(), chunk.id.into(), object.into()],
            )
        })?;
        if dropped == 0 {
            continue;
        }
        step.chunks += 1;
        step.row_bytes += chunk.row_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        if let Some(object) = chunk.object
            && !holds_facts(tx, part, object)?
        {
            step.condemned += u64::from(objects::condemn(tx, part, object, now_ms)?);
        }
    }
    Ok(step)
}

/// Whether any chunk has its facts in this object.
fn holds_facts(tx: &mut Tx<'_>, part: Part, object: ObjectId) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT id FROM chunks WHERE part = $1 AND facts_object = $2 LIMIT 1",
        &[part.into(), object.into()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}
