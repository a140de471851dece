//! Chunks: the atom of claim, of commit, and of what outputs consume.
//!
//! Invariants: a chunk has a number in its part's order only once it is committed,
//! and gets it in the committing transaction; numbers of a part are given in
//! commit order without a gap, so a reader's cursor never skips one. A chunk that
//! was never committed leaves its documents ready again.

mod committed;
mod tasks;

pub use committed::{
    ChunkHead, CommittedChunk, Facts, after, changes_after, facts_of, heads_after,
};
pub use tasks::{Task, mark_task, move_tasks};

use crate::checksums::coverage::CHUNKS;
use crate::ids::{ChunkId, CommitNumber, JobId, ObjectId, Part, Run};
use crate::names::names;
use crate::tables::leases::Lease;
use crate::tables::queue::{self, Place};
use crate::{Error, Result, Tx, Value, checksums};

/// Where a chunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Crawling,
    Crawled,
    Abandoned,
}

names!(ChunkState of "a row of chunks" {
    Crawling = "crawling",
    Crawled = "crawled",
    Abandoned = "abandoned",
});

/// Opens a chunk under a lease, to claim documents into. The caller has fenced.
pub fn open(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    job: JobId,
    run: Run,
    now_ms: i64,
) -> Result<()> {
    open_for(tx, lease, ChunkOpening { chunk, claim: chunk, job, run }, now_ms)
}

/// A chunk that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChunkOpening {
    pub chunk: ChunkId,
    /// What its documents are active in: the chunk itself, or the chunk that first claimed, if
    /// this one goes on with documents which the chunk before it left active.
    pub claim: ChunkId,
    /// The job whose documents it has.
    pub job: JobId,
    pub run: Run,
}

/// Begins a chunk with documents that may have been claimed before it.
pub fn open_for(tx: &mut Tx<'_>, lease: &Lease, opening: ChunkOpening, now_ms: i64) -> Result<()> {
    let ChunkOpening { chunk, claim, job, run } = opening;
    let zero = Value::Int(0);
    let nothing = [zero, zero, zero, zero, zero, zero, zero];
    let mut covered = vec![lease.part.into(), chunk.into(), job.into(), run.into(), Value::Null];
    covered.extend(nothing);
    covered.extend([Value::Null; 5]);
    tx.execute(
        "INSERT INTO chunks (part, id, jobid, run, node, token, state, documents, adds, updates,
                             removes, keeps, errors, bytes, claimed_ms, checksum, claim)
         VALUES ($1, $2, $3, $4, $5, $6, 'crawling', 0, 0, 0, 0, 0, 0, 0, $7, $8, $9)",
        &[
            lease.part.into(),
            chunk.into(),
            job.into(),
            run.into(),
            lease.node.into(),
            lease.token.into(),
            now_ms.into(),
            CHUNKS.places(CHUNKS.covered).of(&covered).into(),
            claim.into(),
        ],
    )?;
    mark_task(tx, lease, chunk, Task::Crawling, None, now_ms)
}

/// What a committed chunk holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChunkSummary {
    /// Documents settled.
    pub documents: i64,
    pub adds: i64,
    pub updates: i64,
    pub removes: i64,
    pub keeps: i64,
    /// Documents that failed.
    pub errors: i64,
    /// Bytes received.
    pub bytes: i64,
    /// Facts that live in the row until they are packed.
    pub facts: Option<Vec<u8>>,
    /// Facts that are an object of their own.
    pub facts_object: Option<ObjectId>,
    pub bodies_object: Option<ObjectId>,
}

/// Commits a chunk: gives it its number. The caller settles its documents in the
/// same transaction, and started it with `leases::number_commit`, whose number
/// this is.
pub fn commit(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    seq: CommitNumber,
    summary: &ChunkSummary,
    now_ms: i64,
) -> Result<()> {
    let values = [
        lease.part.into(),
        chunk.into(),
        lease.token.into(),
        seq.into(),
        summary.documents.into(),
        summary.adds.into(),
        summary.updates.into(),
        summary.removes.into(),
        summary.keeps.into(),
        summary.errors.into(),
        summary.bytes.into(),
        summary.facts.as_ref().into(),
        summary.facts_object.into(),
        summary.bodies_object.into(),
        now_ms.into(),
    ];
    let touched = change(tx, lease.part, chunk, |tx| {
        tx.execute(
        "UPDATE chunks SET state = 'crawled', seq = $4, documents = $5, adds = $6, updates = $7,
             removes = $8, keeps = $9, errors = $10, bytes = $11, facts = $12, facts_object = $13,
             bodies_object = $14, committed_ms = $15
         WHERE part = $1 AND id = $2 AND token = $3 AND state = 'crawling'",
        &values,
    )
    })?;
    if touched != 1 {
        return Err(Error::invariant(format!(
            "chunk {chunk} of part {} is not open under this lease",
            lease.part
        )));
    }
    mark_task(tx, lease, chunk, Task::Crawled, None, now_ms)
}

/// Changes what a chunk's checksum is made of.
pub(super) fn change(
    tx: &mut Tx<'_>,
    part: Part,
    chunk: ChunkId,
    statement: impl FnOnce(&mut Tx<'_>) -> Result<u64>,
) -> Result<u64> {
    checksums::change(tx, &CHUNKS, &[("part", part.into()), ("id", chunk.into())], statement)
}

/// Whether a chunk has been committed: how a holder learns the outcome of a commit
/// whose answer was lost.
pub fn is_committed(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<bool> {
    Ok(state(tx, part, chunk)? == Some(ChunkState::Crawled))
}

/// Whether a chunk has been opened and is not yet committed or given up.
pub fn is_open(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<bool> {
    Ok(state(tx, part, chunk)? == Some(ChunkState::Crawling))
}

fn state(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<Option<ChunkState>> {
    tx.query_opt(
        "SELECT state FROM chunks WHERE part = $1 AND id = $2",
        &[part.into(), chunk.into()],
        |row| row.get(0),
    )
}

/// Gives up the chunks that earlier holders of the part left open: their documents
/// are ready again. Returns how many documents that were.
pub fn abandon_stale(tx: &mut Tx<'_>, lease: &Lease, now_ms: i64, limit: u32) -> Result<u64> {
    let stale: Vec<(ChunkId, JobId)> = tx.query(
        "SELECT id, jobid FROM chunks
         WHERE part = $1 AND state = 'crawling' AND token < $2 ORDER BY id LIMIT $3",
        &[lease.part.into(), lease.token.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut documents = 0;
    for (chunk, job) in stale {
        documents += abandon(tx, lease, chunk, job, now_ms)?;
    }
    Ok(documents)
}

/// Gives up one chunk: its documents are ready again.
pub fn abandon(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    job: JobId,
    now_ms: i64,
) -> Result<u64> {
    let claim: Option<ChunkId> = tx.query_opt(
        "SELECT claim FROM chunks WHERE part = $1 AND id = $2 AND state = 'crawling'",
        &[lease.part.into(), chunk.into()],
        |row| row.get(0),
    )?;
    let documents = match claim {
        Some(claim) => queue::unclaim(tx, Place { part: lease.part, job }, claim)?,
        None => 0,
    };
    tx.execute(
        "UPDATE chunks SET state = 'abandoned' WHERE part = $1 AND id = $2 AND state = 'crawling'",
        &[lease.part.into(), chunk.into()],
    )?;
    mark_task(tx, lease, chunk, Task::Error, None, now_ms)?;
    Ok(documents)
}

/// Forgets up to `limit` chunks that were given up and claimed before a time, with
/// what roles said of them. Nothing points to such a chunk: its documents went back
/// when it was given up. Returns how many. The caller has fenced.
pub fn forget_abandoned(
    tx: &mut Tx<'_>,
    part: Part,
    claimed_before_ms: i64,
    limit: u32,
) -> Result<u64> {
    let old: Vec<ChunkId> = tx.query(
        "SELECT id FROM chunks
         WHERE part = $1 AND state = 'abandoned' AND claimed_ms < $2 ORDER BY claimed_ms LIMIT $3",
        &[part.into(), claimed_before_ms.into(), limit.into()],
        |row| row.get(0),
    )?;
    let keys: Vec<_> = old.iter().map(|id| (*id).into()).collect();
    for doomed in [
        "DELETE FROM chunk_tasks WHERE part = $1 AND chunk IN ($keys) RETURNING part",
        "DELETE FROM chunks WHERE part = $1 AND state = 'abandoned' AND id IN ($keys)
         RETURNING part",
    ] {
        tx.query_in(doomed, &[part.into()], &keys, |_| Ok(()))?;
    }
    Ok(old.len() as u64)
}

/// Who works on documents that a chunk has claimed: on the chunk itself, or on the one that goes on
/// with what it left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Holder {
    /// When it was claimed.
    pub claimed_ms: i64,
    pub node_name: Option<String>,
    /// Whether that node may still commit it. If not, the next holder of the part
    /// gives it up.
    pub alive: bool,
}

/// Who works on what a chunk claimed; `None` when no chunk that is open has it.
pub fn holder(tx: &mut Tx<'_>, part: Part, claim: ChunkId, now_ms: i64) -> Result<Option<Holder>> {
    tx.query_opt(
        "SELECT c.claimed_ms, n.name, l.deadline_ms FROM chunks c
         LEFT JOIN nodes n ON n.id = c.node
         LEFT JOIN leases l ON l.part = c.part AND l.role = 'crawl' AND l.token = c.token
         WHERE c.part = $1 AND c.claim = $2 AND c.state = 'crawling'",
        &[part.into(), claim.into()],
        |row| {
            let deadline_ms: Option<i64> = row.get(2)?;
            Ok(Holder {
                claimed_ms: row.get(0)?,
                node_name: row.get(1)?,
                alive: deadline_ms.is_some_and(|deadline_ms| deadline_ms > now_ms),
            })
        },
    )
}
