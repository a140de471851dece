//! Where the facts and bodies of committed chunks are kept, as it changes after
//! the commit: facts move from rows into packs, bodies that nothing needs go.
//!
//! Invariant: at every commit a chunk's facts are in exactly one place, its row or
//! an object that is published.

use crate::ids::{ChunkId, ObjectId, Part};
use crate::tables::objects;
use crate::{Error, Result, Tx};

/// A committed chunk whose facts are in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpacked {
    /// The chunk.
    pub id: ChunkId,
    /// Bytes of its facts.
    pub bytes: i64,
}

/// Committed chunks whose facts are in their rows, in commit order.
pub fn unpacked(tx: &mut Tx<'_>, part: Part, limit: u32) -> Result<Vec<Unpacked>> {
    tx.query(
        "SELECT id, CAST(LENGTH(facts) AS BIGINT) FROM chunks
         WHERE part = $1 AND facts IS NOT NULL AND state = 'crawled' ORDER BY seq LIMIT $2",
        &[part.into(), limit.into()],
        |row| Ok(Unpacked { id: row.get(0)?, bytes: row.get(1)? }),
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
pub struct Packed {
    /// The chunk.
    pub id: ChunkId,
    /// Its facts' first byte in the pack.
    pub offset: i64,
    /// Their bytes.
    pub len: i64,
}

/// Points chunks to their pieces of a pack, in the transaction that publishes it.
/// Refuses if another packer was faster; then nothing may be committed.
pub fn set_packed(tx: &mut Tx<'_>, part: Part, pack: ObjectId, pieces: &[Packed]) -> Result<()> {
    for piece in pieces {
        let touched = tx.execute(
            "UPDATE chunks SET facts = NULL, facts_object = $3, facts_offset = $4, facts_len = $5
             WHERE part = $1 AND id = $2 AND facts IS NOT NULL AND LENGTH(facts) = $5",
            &[part.into(), piece.id.into(), pack.into(), piece.offset.into(), piece.len.into()],
        )?;
        if touched != 1 {
            let chunk = piece.id;
            return Err(Error::Refused(format!(
                "the facts of chunk {chunk} of part {part} are no longer in its row"
            )));
        }
    }
    Ok(())
}

/// How far a walk over a part's chunks has come, and what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The last chunk number looked at; `None` when the walk is at its end.
    pub next: Option<i64>,
    /// Objects condemned.
    pub condemned: u64,
}

/// Condemns bodies that no document points to, of up to `limit` chunks numbered
/// after `after` and not after `settled`, which every output has passed.
///
/// The caller holds the part's crawl lease and has fenced in this transaction:
/// otherwise a commit at the same time could point to what is condemned.
pub fn condemn_bodies(
    tx: &mut Tx<'_>,
    part: Part,
    (after, settled): (i64, i64),
    limit: u32,
    now_ms: i64,
) -> Result<Step> {
    let looked_at: Vec<(ChunkId, i64, Option<ObjectId>, i64)> = tx.query(
        "SELECT id, seq, bodies_object,
                CAST(CASE WHEN EXISTS (SELECT 1 FROM documents WHERE documents.part = $1
                                       AND documents.bodychunk = chunks.id)
                     THEN 1 ELSE 0 END AS BIGINT)
         FROM chunks
         WHERE part = $1 AND state = 'crawled' AND seq > $2 AND seq <= $3
         ORDER BY seq LIMIT $4",
        &[part.into(), after.into(), settled.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let mut condemned = 0;
    for (chunk, _, bodies, needed) in &looked_at {
        let Some(bodies) = bodies.filter(|_| *needed == 0) else { continue };
        tx.execute(
            "UPDATE chunks SET bodies_object = NULL WHERE part = $1 AND id = $2",
            &[part.into(), (*chunk).into()],
        )?;
        condemned += u64::from(objects::condemn(tx, (part, bodies), now_ms)?);
    }
    let full = looked_at.len() == limit as usize;
    let next = looked_at.last().filter(|_| full).map(|(_, seq, ..)| *seq);
    Ok(Step { next, condemned })
}
