//! Committed chunks, as those read them who consume them in their order.

use crate::ids::{ChunkId, CommitNumber, JobId, ObjectId, Part, Run};
use crate::value::{Row, column};
use crate::{Result, Tx};

/// A committed chunk as an output reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CommittedChunk {
    pub id: ChunkId,
    pub seq: CommitNumber,
    pub job: JobId,
    pub run: Run,
    pub documents: i64,
    pub committed_ms: i64,
    pub facts: Facts,
    pub bodies_object: Option<ObjectId>,
}

/// A committed chunk without its facts: enough to know whether they are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChunkHead {
    pub id: ChunkId,
    pub seq: CommitNumber,
    pub job: JobId,
    /// Documents settled.
    pub documents: i64,
    pub adds: i64,
    pub updates: i64,
    pub removes: i64,
    pub keeps: i64,
    pub errors: i64,
    pub committed_ms: i64,
    /// Whether bodies were stored with it.
    pub has_bodies: bool,
}

const HEAD: &str = "id, seq, jobid, documents, adds, updates, removes, keeps, errors, \
                    committed_ms, bodies_object";

impl ChunkHead {
    fn from_row(row: &Row<'_>) -> Result<ChunkHead> {
        let bodies: Option<ObjectId> = row.get(column!(HEAD, "bodies_object"))?;
        Ok(ChunkHead {
            id: row.get(column!(HEAD, "id"))?,
            seq: row.get(column!(HEAD, "seq"))?,
            job: row.get(column!(HEAD, "jobid"))?,
            documents: row.get(column!(HEAD, "documents"))?,
            adds: row.get(column!(HEAD, "adds"))?,
            updates: row.get(column!(HEAD, "updates"))?,
            removes: row.get(column!(HEAD, "removes"))?,
            keeps: row.get(column!(HEAD, "keeps"))?,
            errors: row.get(column!(HEAD, "errors"))?,
            committed_ms: row.get(column!(HEAD, "committed_ms"))?,
            has_bodies: bodies.is_some(),
        })
    }

    /// Whether a document of it may say something new. One that says what it said is written
    /// down again only when its bytes are stored for the first time.
    pub fn has_news(&self) -> bool {
        self.adds + self.updates + self.removes > 0 || self.has_bodies
    }
}

const COMMITTED: &str = "id, seq, jobid, run, documents, committed_ms, bodies_object, facts, \
                         facts_object, facts_offset, facts_len";

impl CommittedChunk {
    fn from_row(row: &Row<'_>) -> Result<CommittedChunk> {
        Ok(CommittedChunk {
            id: row.get(column!(COMMITTED, "id"))?,
            seq: row.get(column!(COMMITTED, "seq"))?,
            job: row.get(column!(COMMITTED, "jobid"))?,
            run: row.get(column!(COMMITTED, "run"))?,
            documents: row.get(column!(COMMITTED, "documents"))?,
            committed_ms: row.get(column!(COMMITTED, "committed_ms"))?,
            bodies_object: row.get(column!(COMMITTED, "bodies_object"))?,
            facts: facts_from(row, column!(COMMITTED, "facts"))?,
        })
    }
}

/// Where the facts of a chunk are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Facts {
    /// The facts themselves, in the chunk's row.
    Inline(Vec<u8>),
    /// In an object, at this offset, this long; `None` is the whole object.
    Object { object: ObjectId, range: Option<(i64, i64)> },
    /// Retention has dropped them, or the chunk had none.
    None,
}

/// Committed chunks after a number, in order: what an output's cursor walks.
pub fn after(
    tx: &mut Tx<'_>,
    part: Part,
    seq: CommitNumber,
    limit: u32,
) -> Result<Vec<CommittedChunk>> {
    tx.query(
        &format!(
            "SELECT {COMMITTED} FROM chunks
             WHERE part = $1 AND state = 'crawled' AND seq > $2 ORDER BY seq LIMIT $3"
        ),
        &[part.into(), seq.into(), limit.into()],
        CommittedChunk::from_row,
    )
}

/// As [`after`], without the facts of chunks that [have no news](Head::has_news).
pub fn changes_after(
    tx: &mut Tx<'_>,
    part: Part,
    seq: CommitNumber,
    limit: u32,
) -> Result<Vec<CommittedChunk>> {
    tx.query(
        "SELECT id, seq, jobid, run, documents, committed_ms, bodies_object,
                CASE WHEN adds + updates + removes > 0 OR bodies_object IS NOT NULL
                     THEN facts END,
                CASE WHEN adds + updates + removes > 0 OR bodies_object IS NOT NULL
                     THEN facts_object END,
                facts_offset, facts_len
         FROM chunks WHERE part = $1 AND state = 'crawled' AND seq > $2 ORDER BY seq LIMIT $3",
        &[part.into(), seq.into(), limit.into()],
        CommittedChunk::from_row,
    )
}

/// The same chunks as [`after`] without their facts, none of which are read on the way.
pub fn heads_after(
    tx: &mut Tx<'_>,
    part: Part,
    seq: CommitNumber,
    limit: u32,
) -> Result<Vec<ChunkHead>> {
    tx.query(
        &format!(
            "SELECT {HEAD} FROM chunks
             WHERE part = $1 AND state = 'crawled' AND seq > $2 ORDER BY seq LIMIT $3"
        ),
        &[part.into(), seq.into(), limit.into()],
        ChunkHead::from_row,
    )
}

/// Where the facts of a chunk are; `None` if it is not there any more.
pub fn facts_of(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<Option<Facts>> {
    tx.query_opt(
        "SELECT facts, facts_object, facts_offset, facts_len
         FROM chunks WHERE part = $1 AND id = $2 AND state = 'crawled'",
        &[part.into(), chunk.into()],
        |row| facts_from(row, 0),
    )
}

/// The facts of four columns that begin at a place: their bytes, their object, and the range
/// of it.
fn facts_from(row: &Row<'_>, at: usize) -> Result<Facts> {
    if let Some(bytes) = row.get::<Option<Vec<u8>>>(at)? {
        return Ok(Facts::Inline(bytes));
    }
    let Some(object) = row.get::<Option<ObjectId>>(at + 1)? else { return Ok(Facts::None) };
    let range = row.get::<Option<i64>>(at + 2)?.zip(row.get::<Option<i64>>(at + 3)?);
    Ok(Facts::Object { object, range })
}
