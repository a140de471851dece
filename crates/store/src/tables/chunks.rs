//! Chunks: the atom of claim, of commit, and of what outputs consume.
//!
//! Invariants: a chunk has a number in its part's order only once it is committed,
//! and gets it in the committing transaction; numbers of a part are given in
//! commit order without a gap, so a reader's cursor never skips one. A chunk that
//! was never committed leaves its documents ready again.

use crate::checksums::declared::CHUNKS;
use crate::ids::{ChunkId, JobId, ObjectId, Part, Run};
use crate::tables::leases::Lease;
use crate::tables::queue::{self, Place};
use crate::value::Row;
use crate::{Error, Result, Tx, Value, checksums};

/// Opens a chunk under a lease, to claim documents into. The caller has fenced.
pub fn open(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    job: JobId,
    run: Run,
    now_ms: i64,
) -> Result<()> {
    open_for(tx, lease, Opening { chunk, claim: chunk, job, run }, now_ms)
}

/// A chunk that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The chunk.
    pub chunk: ChunkId,
    /// What its documents are active in: the chunk itself, or the chunk that first claimed, if
    /// this one goes on with documents which the chunk before it left active.
    pub claim: ChunkId,
    /// The job whose documents it has.
    pub job: JobId,
    /// The job's run.
    pub run: Run,
}

/// Begins a chunk with documents that may have been claimed before it.
pub fn open_for(tx: &mut Tx<'_>, lease: &Lease, opening: Opening, now_ms: i64) -> Result<()> {
    let Opening { chunk, claim, job, run } = opening;
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
    task(tx, lease, chunk, "crawling", now_ms)
}

/// What a committed chunk holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Documents settled.
    pub documents: i64,
    /// Changes by kind.
    pub adds: i64,
    /// Changes by kind.
    pub updates: i64,
    /// Changes by kind.
    pub removes: i64,
    /// Changes by kind.
    pub keeps: i64,
    /// Documents that failed.
    pub errors: i64,
    /// Bytes received.
    pub bytes: i64,
    /// Facts that live in the row until they are packed.
    pub facts: Option<Vec<u8>>,
    /// Facts that are an object of their own.
    pub facts_object: Option<ObjectId>,
    /// The bodies.
    pub bodies_object: Option<ObjectId>,
}

/// Commits a chunk: gives it its number. The caller settles its documents in the
/// same transaction, and started it with `leases::number_commit`, whose number
/// this is.
pub fn commit(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    seq: i64,
    summary: &Summary,
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
    task(tx, lease, chunk, "crawled", now_ms)
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
    Ok(state(tx, part, chunk)?.as_deref() == Some("crawled"))
}

/// Whether a chunk has been opened and is not yet committed or given up.
pub fn is_open(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<bool> {
    Ok(state(tx, part, chunk)?.as_deref() == Some("crawling"))
}

fn state(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<Option<String>> {
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
    task(tx, lease, chunk, "error", now_ms)?;
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

/// A committed chunk as an output reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Committed {
    pub id: ChunkId,
    pub seq: i64,
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
pub struct Head {
    pub id: ChunkId,
    pub seq: i64,
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

impl Head {
    /// Whether a document of it may say something new. One that says what it said is written
    /// down again only when its bytes are stored for the first time.
    pub fn has_news(&self) -> bool {
        self.adds + self.updates + self.removes > 0 || self.has_bodies
    }
}

impl Committed {
    fn from_row(row: &Row<'_>) -> Result<Committed> {
        Ok(Committed {
            id: row.get(0)?,
            seq: row.get(1)?,
            job: row.get(2)?,
            run: row.get(3)?,
            documents: row.get(4)?,
            committed_ms: row.get(5)?,
            facts: facts_from(row)?,
            bodies_object: row.get(10)?,
        })
    }
}

/// Where the facts of a chunk are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Facts {
    /// In the row.
    Inline(Vec<u8>),
    /// In an object, at this offset, this long; `None` is the whole object.
    Object { object: ObjectId, range: Option<(i64, i64)> },
    /// Retention has dropped them, or the chunk had none.
    None,
}

/// Committed chunks after a number, in order: what an output's cursor walks.
pub fn after(tx: &mut Tx<'_>, part: Part, seq: i64, limit: u32) -> Result<Vec<Committed>> {
    tx.query(
        "SELECT id, seq, jobid, run, documents, committed_ms, facts, facts_object, facts_offset,
                facts_len, bodies_object
         FROM chunks WHERE part = $1 AND state = 'crawled' AND seq > $2 ORDER BY seq LIMIT $3",
        &[part.into(), seq.into(), limit.into()],
        Committed::from_row,
    )
}

/// As [`after`], without the facts of chunks that [have no news](Head::has_news).
pub fn changes_after(tx: &mut Tx<'_>, part: Part, seq: i64, limit: u32) -> Result<Vec<Committed>> {
    tx.query(
        "SELECT id, seq, jobid, run, documents, committed_ms,
                CASE WHEN adds + updates + removes > 0 OR bodies_object IS NOT NULL
                     THEN facts END,
                CASE WHEN adds + updates + removes > 0 OR bodies_object IS NOT NULL
                     THEN facts_object END,
                facts_offset, facts_len, bodies_object
         FROM chunks WHERE part = $1 AND state = 'crawled' AND seq > $2 ORDER BY seq LIMIT $3",
        &[part.into(), seq.into(), limit.into()],
        Committed::from_row,
    )
}

/// The same chunks as [`after`] without their facts, none of which are read on the way.
pub fn heads_after(tx: &mut Tx<'_>, part: Part, seq: i64, limit: u32) -> Result<Vec<Head>> {
    tx.query(
        "SELECT id, seq, jobid, documents, adds, updates, removes, keeps, errors, committed_ms,
                bodies_object
         FROM chunks WHERE part = $1 AND state = 'crawled' AND seq > $2 ORDER BY seq LIMIT $3",
        &[part.into(), seq.into(), limit.into()],
        |row| {
            Ok(Head {
                id: row.get(0)?,
                seq: row.get(1)?,
                job: row.get(2)?,
                documents: row.get(3)?,
                adds: row.get(4)?,
                updates: row.get(5)?,
                removes: row.get(6)?,
                keeps: row.get(7)?,
                errors: row.get(8)?,
                committed_ms: row.get(9)?,
                has_bodies: row.get::<Option<ObjectId>>(10)?.is_some(),
            })
        },
    )
}

/// Where the facts of a chunk are; `None` if it is not there any more.
pub fn facts_of(tx: &mut Tx<'_>, part: Part, chunk: ChunkId) -> Result<Option<Facts>> {
    tx.query_opt(
        "SELECT 0, 0, 0, 0, 0, 0, facts, facts_object, facts_offset, facts_len
         FROM chunks WHERE part = $1 AND id = $2 AND state = 'crawled'",
        &[part.into(), chunk.into()],
        facts_from,
    )
}

fn facts_from(row: &Row<'_>) -> Result<Facts> {
    if let Some(bytes) = row.get::<Option<Vec<u8>>>(6)? {
        return Ok(Facts::Inline(bytes));
    }
    let Some(object) = row.get::<Option<ObjectId>>(7)? else { return Ok(Facts::None) };
    let range = row.get::<Option<i64>>(8)?.zip(row.get::<Option<i64>>(9)?);
    Ok(Facts::Object { object, range })
}

/// An open chunk, and who works on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// When it was claimed.
    pub claimed_ms: i64,
    /// The node's name.
    pub node_name: Option<String>,
    /// Whether that node may still commit it. If not, the next holder of the part
    /// gives it up.
    pub alive: bool,
}

/// Who works on a chunk; `None` when it is not open.
pub fn holder(tx: &mut Tx<'_>, part: Part, chunk: ChunkId, now_ms: i64) -> Result<Option<Holder>> {
    tx.query_opt(
        "SELECT c.claimed_ms, n.name, l.deadline_ms FROM chunks c
         LEFT JOIN nodes n ON n.id = c.node
         LEFT JOIN leases l ON l.part = c.part AND l.role = 'crawl' AND l.token = c.token
         WHERE c.part = $1 AND c.id = $2 AND c.state = 'crawling'",
        &[part.into(), chunk.into()],
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

/// Records what a role is doing with a chunk, for whoever follows it.
fn task(tx: &mut Tx<'_>, lease: &Lease, chunk: ChunkId, task: &str, now_ms: i64) -> Result<()> {
    mark_task(tx, lease, chunk, task, None, now_ms)
}

/// Records what a role is doing with a chunk: `building`, `built`, `propagated`,
/// or `error` with its text.
pub fn mark_task(
    tx: &mut Tx<'_>,
    lease: &Lease,
    chunk: ChunkId,
    task: &str,
    error: Option<&str>,
    now_ms: i64,
) -> Result<()> {
    tx.execute(
        "INSERT INTO chunk_tasks (part, chunk, role, node, task, errortext, changed_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (part, chunk, role) DO UPDATE SET
             node = excluded.node, task = excluded.task, errortext = excluded.errortext,
             changed_ms = excluded.changed_ms",
        &[
            lease.part.into(),
            chunk.into(),
            (&lease.role).into(),
            lease.node.into(),
            task.into(),
            error.into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}

/// Everything of a part that a role is said to be doing is said to be another thing.
pub fn move_tasks(tx: &mut Tx<'_>, lease: &Lease, from: &str, to: &str, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE chunk_tasks SET task = $4, node = $5, changed_ms = $6
         WHERE part = $1 AND role = $2 AND task = $3",
        &[
            lease.part.into(),
            (&lease.role).into(),
            from.into(),
            to.into(),
            lease.node.into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}
