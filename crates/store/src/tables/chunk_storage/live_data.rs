//! How much of what chunks have is needed, and what takes its place when it is rewritten.
//!
//! A document points to its facts by chunk and number, and to its bytes by chunk. Facts of a
//! document that was removed count as needed for a while, so that whoever has looked the
//! document up before can finish. Invariant: documents come to point to a chunk in the
//! commit of that chunk only, so of a settled chunk ever less is needed.

use crate::collect::WrittenObject;
use crate::ids::{ChunkId, CommitNumber, ObjectId, Part};
use crate::tables::documents::LAST_LOOK;
use crate::tables::{chunks, objects};
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// What is settled in a part, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledChunks {
    /// The number up to which it is.
    pub seq: CommitNumber,
    /// Documents that were removed before this time point to nothing.
    pub before_ms: i64,
}

/// A settled chunk that has facts or bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StoredChunk {
    pub id: ChunkId,
    /// Its number in the part's order.
    pub seq: CommitNumber,
    /// Records with facts that it was committed with.
    pub written: i64,
    /// Documents that point to its facts.
    pub live: i64,
    /// The object with its facts, unless they are in the row.
    pub facts_object: Option<ObjectId>,
    /// The object with its bodies.
    pub bodies_object: Option<ObjectId>,
}

/// Settled chunks numbered after `after` that have facts or bodies, in commit order.
pub fn stored(
    tx: &mut Tx<'_>,
    part: Part,
    after: CommitNumber,
    settled: SettledChunks,
    limit: u32,
) -> Result<Vec<StoredChunk>> {
    tx.query(
        "SELECT id, seq, adds + updates, facts_object, bodies_object,
                (SELECT COUNT(*) FROM documents
                 WHERE documents.part = $1 AND documents.chunk = chunks.id
                   AND (documents.removed_ms IS NULL OR documents.removed_ms >= $4))
         FROM chunks
         WHERE part = $1 AND state = 'crawled' AND seq > $2 AND seq <= $3
           AND (facts IS NOT NULL OR facts_object IS NOT NULL OR bodies_object IS NOT NULL)
         ORDER BY seq LIMIT $5",
        &[part.into(), after.into(), settled.seq.into(), settled.before_ms.into(), limit.into()],
        |row| {
            Ok(StoredChunk {
                id: row.get(0)?,
                seq: row.get(1)?,
                written: row.get(2)?,
                facts_object: row.get(3)?,
                bodies_object: row.get(4)?,
                live: row.get(5)?,
            })
        },
    )
}

/// What a document's row says of where its facts are, and of its last answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChunkPointer {
    pub dochash: DocHash,
    pub facts: Option<(ChunkId, i64)>,
    pub removed_ms: Option<i64>,
    pub outcome: String,
    pub http_status: Option<i64>,
}

/// The rows of documents, of every connection that has them.
pub fn pointing(tx: &mut Tx<'_>, part: Part, hashes: &[DocHash]) -> Result<Vec<ChunkPointer>> {
    let keys: Vec<Value<'_>> = hashes.iter().map(Value::from).collect();
    tx.query_in(
        &format!(
            "SELECT d.dochash, d.chunk, d.ordinal, d.removed_ms, COALESCE(l.outcome, d.outcome),
                    CASE WHEN l.id IS NULL THEN d.httpstatus ELSE l.httpstatus END
             FROM documents d {LAST_LOOK}
             WHERE d.part = $1 AND d.dochash IN ($keys)"
        ),
        &[part.into()],
        &keys,
        |row| {
            Ok(ChunkPointer {
                dochash: row.get(0)?,
                facts: row.get::<Option<ChunkId>>(1)?.zip(row.get(2)?),
                removed_ms: row.get(3)?,
                outcome: row.get(4)?,
                http_status: row.get(5)?,
            })
        },
    )
}

/// A pack of which little is left: chunks whose facts were in it have others now, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SparsePack {
    pub id: ObjectId,
    /// Bytes of it that chunks point to.
    pub live_bytes: i64,
}

/// Packs of a part of which chunks point to less than so many percent.
pub fn sparse_packs(
    tx: &mut Tx<'_>,
    part: Part,
    live_percent_min: i64,
    limit: u32,
) -> Result<Vec<SparsePack>> {
    tx.query(
        "SELECT objects.id, CAST(SUM(chunks.facts_len) AS BIGINT)
         FROM objects JOIN chunks ON chunks.part = $1 AND chunks.facts_object = objects.id
         WHERE objects.part = $1 AND objects.kind = 'pack' AND objects.state = 'published'
         GROUP BY objects.id, objects.bytes
         HAVING SUM(chunks.facts_len) * 100 < objects.bytes * $2
         ORDER BY objects.id LIMIT $3",
        &[part.into(), live_percent_min.into(), limit.into()],
        |row| Ok(SparsePack { id: row.get(0)?, live_bytes: row.get(1)? }),
    )
}

/// Chunks whose facts are in a pack, and where, in commit order.
pub fn in_pack(
    tx: &mut Tx<'_>,
    part: Part,
    pack: ObjectId,
    limit: u32,
) -> Result<Vec<(StoredChunk, (i64, i64))>> {
    tx.query(
        "SELECT id, seq, bodies_object, facts_offset, facts_len FROM chunks
         WHERE part = $1 AND facts_object = $2 ORDER BY seq LIMIT $3",
        &[part.into(), pack.into(), limit.into()],
        |row| {
            let (id, seq, bodies_object) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let facts_object = Some(pack);
            let stored = StoredChunk { id, seq, written: 0, live: 0, facts_object, bodies_object };
            Ok((stored, (row.get(3)?, row.get(4)?)))
        },
    )
}

/// The bodies of a chunk that is rewritten.
#[derive(Debug, Clone)]
pub enum NewBodies {
    /// They stay as they are.
    Same,
    /// These take their place.
    Written(WrittenObject),
    /// Nothing of them is needed any more.
    None,
}

/// What takes the place of a chunk's facts and bodies.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct RewrittenChunk {
    /// The chunk as it was looked at.
    pub from: StoredChunk,
    /// Its facts' first byte in the pack and their bytes; `None` if none are left.
    pub facts: Option<(i64, i64)>,
    /// Documents that the new facts are of.
    pub left: i64,
    pub bodies: NewBodies,
}

/// Puts new facts, which are in a pack that is published in this transaction, and new bodies
/// in the place of a chunk's old ones, which are condemned. Returns how many objects were;
/// `None` if the chunk is not as it was looked at, and then nothing has changed.
///
/// The caller holds the part's crawl lease and has fenced in this transaction.
pub fn replace(
    tx: &mut Tx<'_>,
    part: Part,
    pack: ObjectId,
    it: &RewrittenChunk,
    settled: SettledChunks,
    now_ms: i64,
) -> Result<Option<u64>> {
    let bodies = match &it.bodies {
        NewBodies::Same => it.from.bodies_object,
        NewBodies::Written(written) => Some(written.key.1),
        NewBodies::None => None,
    };
    let was = |object: Option<ObjectId>| object.map_or(-1, |object| object.0).into();
    let values = [
        part.into(),
        it.from.id.into(),
        it.facts.map(|_| pack).into(),
        it.facts.map(|it| it.0).into(),
        it.facts.map(|it| it.1).into(),
        bodies.into(),
        was(it.from.facts_object),
        was(it.from.bodies_object),
        settled.before_ms.into(),
        it.left.into(),
    ];
    let touched = chunks::change(tx, part, it.from.id, |tx| {
        tx.execute(
            "UPDATE chunks SET facts = NULL, facts_object = $3, facts_offset = $4, facts_len = $5,
                 bodies_object = $6
             WHERE part = $1 AND id = $2
               AND COALESCE(facts_object, -1) = $7 AND COALESCE(bodies_object, -1) = $8
               AND (SELECT COUNT(*) FROM documents
                    WHERE documents.part = $1 AND documents.chunk = $2
                      AND (documents.removed_ms IS NULL OR documents.removed_ms >= $9)) <= $10",
            &values,
        )
    })?;
    if touched == 0 {
        return Ok(None);
    }
    let mut condemned = 0;
    if let NewBodies::Written(written) = &it.bodies {
        written.publish(tx, now_ms)?;
    }
    if let Some(old) = it.from.bodies_object.filter(|old| bodies != Some(*old)) {
        condemned += u64::from(objects::condemn(tx, part, old, now_ms)?);
    }
    if let Some(old) = it.from.facts_object
        && !super::holds_facts(tx, part, old)?
    {
        condemned += u64::from(objects::condemn(tx, part, old, now_ms)?);
    }
    Ok(Some(condemned))
}
