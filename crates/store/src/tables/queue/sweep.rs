//! Sweeping documents out of a job: those that a complete run has not found again, and
//! all of a job that is deleted.
//!
//! Relies on the same claim and settlement as crawling, so that a crash in between loses
//! nothing. Invariants: a document leaves its job only in the commit that tells outputs
//! of it; one that another job of the same connection holds is not removed for that job.

use super::counting::Deltas;
use super::role::peek_unlinked;
use super::{
    Action, Entry, Place, ReasonCode, SETTLED, State, claim_to, older_bin_text, peek_older,
};
use crate::chunkfile::document::DocumentRole;
use crate::ids::{BinId, ChunkId, ConnectionId, JobId, QueueId, Run};
use crate::tables::events;
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::HashMap;

/// Which documents of a job a sweep removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sweep {
    /// What older runs than this one settled, and pages that it has only named as requisites.
    Clean(Run),
    /// What is marked to leave, up to a round of decisions.
    Leaving(i64),
    /// All documents, because the job is deleted.
    Delete,
    /// What can only be looked at after a time: it stays, but is given up for this run.
    Left { horizon_ms: i64 },
}

impl Sweep {
    /// The action of documents that are swept; `None` leaves it as it is.
    pub fn action(self) -> Option<Action> {
        match self {
            Sweep::Clean(_) | Sweep::Leaving(_) => Some(Action::Clean),
            Sweep::Delete => Some(Action::Delete),
            Sweep::Left { .. } => None,
        }
    }
}

/// The next documents that are to be swept.
pub fn peek(tx: &mut Tx<'_>, place: Place, sweep: Sweep, limit: u32) -> Result<Vec<Entry>> {
    match sweep {
        Sweep::Clean(run) => {
            let older = peek_settled(tx, place, run, limit)?;
            if older.is_empty() { peek_unlinked(tx, place, run, limit) } else { Ok(older) }
        }
        Sweep::Leaving(round) => peek_leaving(tx, place, round, limit),
        Sweep::Delete => peek_all(tx, place, limit),
        Sweep::Left { horizon_ms } => peek_left(tx, place, horizon_ms, limit),
    }
}

/// Claims documents that were peeked at.
pub fn claim(
    tx: &mut Tx<'_>,
    place: Place,
    chunk: ChunkId,
    sweep: Sweep,
    peeked: Vec<Entry>,
) -> Result<Vec<Entry>> {
    claim_to(tx, place, chunk, sweep.action(), peeked)
}

fn peek_settled(tx: &mut Tx<'_>, place: Place, run: Run, limit: u32) -> Result<Vec<Entry>> {
    let (text, mut found) = (older_bin_text(), Vec::new());
    let mut at = BinId(i64::MIN);
    while (found.len() as u64) < u64::from(limit) {
        let next: Option<(BinId, Run)> =
            tx.query_opt(&text, &[place.part.into(), place.job.into(), at.into()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let Some((bin, done_run)) = next else { break };
        if done_run < run {
            let room = limit - u32::try_from(found.len()).unwrap_or(limit);
            found.extend(peek_older(tx, place, bin, run, room)?);
        }
        at = bin;
    }
    Ok(found)
}

/// What is being looked at, or is to be, may be found again: it is left out.
fn peek_leaving(tx: &mut Tx<'_>, place: Place, round: i64, limit: u32) -> Result<Vec<Entry>> {
    tx.query(
        &format!(
            "SELECT {} FROM queue q
             WHERE q.part = $1 AND q.jobid = $2 AND q.leaving_round <= $3
               AND q.leaving IS NOT NULL AND {SETTLED}
             ORDER BY q.leaving_round, q.id LIMIT $4",
            super::ENTRY
        ),
        &[place.part.into(), place.job.into(), round.into(), limit.into()],
        Entry::from_row,
    )
}

/// Each kind by the index that holds it, for a job may be one of many in a part.
const KINDS: [&str; 4] = [
    "q.state = 'ready' ORDER BY q.bin, q.docpriority, q.id",
    "q.state = 'waiting' ORDER BY q.checktime, q.id",
    "{SETTLED} ORDER BY q.bin, q.done_run, q.id",
    "q.state = 'cut' ORDER BY q.reason, q.id",
];

fn peek_all(tx: &mut Tx<'_>, place: Place, limit: u32) -> Result<Vec<Entry>> {
    for kind in KINDS {
        let kind = kind.replace("{SETTLED}", SETTLED);
        let found = tx.query(
            &format!(
                "SELECT {} FROM queue q WHERE q.part = $1 AND q.jobid = $2 AND {kind} LIMIT $3",
                super::ENTRY
            ),
            &[place.part.into(), place.job.into(), limit.into()],
            Entry::from_row,
        )?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// What waits for a time after `horizon_ms`, or for a bin that is left alone until then.
fn peek_left(tx: &mut Tx<'_>, place: Place, horizon_ms: i64, limit: u32) -> Result<Vec<Entry>> {
    let params = [place.part.into(), place.job.into(), Value::Int(horizon_ms), Value::from(limit)];
    let select = format!("SELECT {} FROM queue q", super::ENTRY);
    let waiting = tx.query(
        &format!(
            "{select} WHERE q.part = $1 AND q.jobid = $2 AND q.state = 'waiting'
               AND q.checktime > $3 ORDER BY q.checktime, q.id LIMIT $4"
        ),
        &params,
        Entry::from_row,
    )?;
    if !waiting.is_empty() {
        return Ok(waiting);
    }
    tx.query(
        &format!(
            "{select} JOIN bins b ON b.part = q.part AND b.bin = q.bin
             WHERE q.part = $1 AND q.jobid = $2 AND q.state = 'ready'
               AND (b.next_ms > $3 OR b.blocked_ms > $3)
             ORDER BY q.bin, q.docpriority, q.id LIMIT $4"
        ),
        &params,
        Entry::from_row,
    )
}

/// How many documents of a part a run has given up for a reason.
pub fn given_up(tx: &mut Tx<'_>, place: Place, run: Run, reason: ReasonCode) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM queue WHERE part = $1 AND jobid = $2 AND state = 'failed'
           AND done_run = $3 AND reason = $4",
        &[place.part.into(), place.job.into(), run.into(), reason.into()],
        |row| row.get(0),
    )
}

/// Whether a run has given up something that no document is known of: it may be a directory,
/// and what is in it was not named.
pub fn is_any_unlisted(tx: &mut Tx<'_>, job: JobId, run: Run) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT 1 FROM queue WHERE jobid = $1 AND state = 'failed' AND done_run = $2
           AND has_document = 0 LIMIT 1",
        &[job.into(), run.into()],
        |row| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

/// Those of some documents that another job of the connection holds, each as what: as a page if
/// any of them does.
pub fn shared(
    tx: &mut Tx<'_>,
    place: Place,
    connection: ConnectionId,
    keys: &[DocHash],
) -> Result<HashMap<DocHash, DocumentRole>> {
    let mut shared = HashMap::new();
    for it in holdings(tx, place, connection, keys)? {
        let role = shared.entry(it.dochash).or_insert(it.role);
        *role = it.role.min(*role);
    }
    Ok(shared)
}

/// A document that a job holds: it has processed it, and neither let it go nor cut it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HoldingDocument {
    pub dochash: DocHash,
    pub job: JobId,
    /// How far it is from the seeds of that job.
    pub hops: i64,
    /// What it is to that job.
    pub role: DocumentRole,
}

/// Which other jobs of a connection hold some documents.
pub fn holdings(
    tx: &mut Tx<'_>,
    place: Place,
    connection: ConnectionId,
    keys: &[DocHash],
) -> Result<Vec<HoldingDocument>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    tx.query_in(
        "SELECT q.dochash, q.jobid, q.hops, q.requisite FROM queue q JOIN job_definitions d ON d.id = q.jobid
         WHERE q.part = $1 AND q.jobid <> $2 AND d.connectionid = $3 AND q.done_run IS NOT NULL
           AND q.state <> 'cut' AND q.dochash IN ($keys)",
        &[place.part.into(), place.job.into(), connection.into()],
        &keys,
        |row| {
            let role = DocumentRole::of_requisite(row.get(3)?);
            Ok(HoldingDocument { dochash: row.get(0)?, job: row.get(1)?, hops: row.get(2)?, role })
        },
    )
}

/// Forgets documents that were only ever named, by older runs than this one. Returns
/// where to go on, until there is nothing more.
pub fn forget_cut(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    reason: &str,
    id: QueueId,
    limit: u32,
) -> Result<Option<(String, QueueId)>> {
    let looked: Vec<(String, QueueId, BinId, bool)> = tx.query(
        "SELECT reason, id, bin, CASE WHEN done_run IS NULL AND seen_run < $5 THEN 1 ELSE 0 END
         FROM queue
         WHERE part = $1 AND jobid = $2 AND state = 'cut' AND (reason, id) > ($3, $4)
         ORDER BY reason, id LIMIT $6",
        &[place.part.into(), place.job.into(), reason.into(), id.into(), run.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let stale: Vec<Value<'_>> = looked.iter().filter(|it| it.3).map(|it| it.1.into()).collect();
    let removed: Vec<BinId> = tx.query_in(
        "DELETE FROM queue WHERE part = $1 AND state = 'cut' AND done_run IS NULL
           AND seen_run < $2 AND id IN ($keys)
         RETURNING bin",
        &[place.part.into(), run.into()],
        &stale,
        |row| row.get(0),
    )?;
    super::settle::count_out_of_bins(tx, place, &removed)?;
    events::forget(tx, place.part, &stale)?;
    let mut deltas = Deltas::default();
    deltas.add(State::Cut, DocumentRole::Page, -(removed.len() as i64));
    deltas.write(tx, place)?;
    let full = looked.len() as u64 == u64::from(limit);
    Ok(looked.into_iter().next_back().filter(|_| full).map(|it| (it.0, it.1)))
}
