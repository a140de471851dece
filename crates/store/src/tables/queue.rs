//! The document queue: one row for each document of each job.
//!
//! A document is `ready` (its bin decides when), `waiting` for its check time,
//! `active` in a chunk, `done`, `cut` by a scope or limit, or `failed`. What a new
//! run means for documents of older runs is never written: what an older run settled
//! (`done_run`) is what a recheck takes, `seen_run` tells who was found again.
//!
//! What is active names its claim (the column `chunk`): the chunk that claimed it, or the first of
//! a row of chunks that one holder commits one after the other. The open one of them names the
//! same claim, so that documents need not be rewritten with every commit that leaves them active.
//!
//! Invariants: a document is in at most one claim, and a claim has one open chunk; whoever queues something ready
//! marks its bin in the same transaction; the counters `ready`, `waiting` … equal
//! the rows of that state at every commit, and so do `documents` (rows that have one) and
//! `leaving …` (rows that are to lose it, by cause). Writes by the part's holder are
//! fenced by the caller; [`add`] needs no lease, so that links can cross parts.
//!
//! Order of locks, so that commits and foreign adds do not wait for each other in a
//! circle: the lease, queue rows, bins, bin_work, counters. A commit therefore adds
//! its links first, settles then, and books visits to bins last.

mod action;
mod add;
mod again;
mod counting;
mod due;
pub mod list;
mod ready;
mod reason;
pub mod retry;
mod role;
mod settle;
pub mod sweep;

pub use action::Action;
pub use add::{AddContext, AddResult, Candidate, RequisiteRules, add};
pub use again::{let_in, look_again};
pub use counting::{REQUISITES, count_part, count_rows};
pub use due::{hasten, next_due, pull_in, unschedule, wake};
pub use ready::peek_ready;
pub use reason::{REASON_BYTES_MAX, Reason, ReasonCode};
pub use role::{LEVELS_MAX, Standing, has_unlinked, standings};
pub use settle::{Presences, RoleChange, SettledDocument, Settlement, settle, settle_with};

use crate::chunkfile::document::DocumentRole;
use crate::dialect::ValueKind;
use crate::ids::{BinId, ChunkId, JobId, Part, QueueId, Run};
use crate::names::names;
use crate::tables::events;
use crate::value::{Row, column};
use crate::{Result, Tx, Value};
use counting::{Move, count_moves};
use page::ids::DocHash;
use std::collections::{BTreeMap, HashSet};

/// Where a document stands, in the order of its life. A name is also that of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum State {
    Ready,
    Waiting,
    Active,
    Done,
    Cut,
    Failed,
}

names!(State of "a row of the queue" {
    Ready = "ready",
    Waiting = "waiting",
    Active = "active",
    Done = "done",
    Cut = "cut",
    Failed = "failed",
});

/// A document of a job, as the frontier needs it.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
// tidy: wide a row of `queue` as the frontier needs it
pub struct Entry {
    pub id: QueueId,
    pub bin: BinId,
    pub dochash: DocHash,
    /// Its identifier: for the web, the canonical URL.
    pub docid: String,
    /// What is to be done.
    pub action: Action,
    /// Links from the nearest seed.
    pub hops: i64,
    /// Redirects in a row that led here; 0 for a link.
    pub redirects: i64,
    /// Where it stood when it was looked at.
    pub state: State,
    /// The last run that named it.
    pub seen_run: Run,
    /// The last run whose seed it was.
    pub seed_run: Option<Run>,
    /// The last run that settled it; `None` if none has.
    pub done_run: Option<Run>,
    /// Generation of the links and carried values it has asserted.
    pub generation: i64,
    /// Retries that are left, while it is failing.
    pub failcount: Option<i64>,
    /// When retrying ends, while it is failing.
    pub failtime: Option<i64>,
    /// Lists that lead to it, if it is a list of documents itself ([`Candidate::priority`]).
    pub list_depth: u8,
    /// The part of who named it first.
    pub parent_part: Option<Part>,
    /// What it is to the job.
    pub role: DocumentRole,
    /// A page that the run has only named as a requisite so far: at its end it becomes one.
    pub unlinked: bool,
    /// The last run that named it as a requisite.
    pub needed_run: Option<Run>,
    /// Requisites in a row that lead to it, if it is one; [`LEVELS_MAX`] leads no further.
    pub levels: i64,
}

const ENTRY: &str = "q.id, q.bin, q.dochash, q.docid, q.action, q.hops, q.redirects, q.state, q.done_run, q.generation, q.failcount, q.failtime, q.seen_run, q.seed_run, q.docpriority, q.parentpart, q.requisite, q.unlinked, q.needed_run, q.levels";

impl Entry {
    fn from_row(row: &Row<'_>) -> Result<Entry> {
        Ok(Entry {
            id: row.get(column!(ENTRY, "id"))?,
            bin: row.get(column!(ENTRY, "bin"))?,
            dochash: row.get(column!(ENTRY, "dochash"))?,
            docid: row.get(column!(ENTRY, "docid"))?,
            action: row.get(column!(ENTRY, "action"))?,
            hops: row.get(column!(ENTRY, "hops"))?,
            redirects: row.get(column!(ENTRY, "redirects"))?,
            state: row.get(column!(ENTRY, "state"))?,
            done_run: row.get(column!(ENTRY, "done_run"))?,
            generation: row.get(column!(ENTRY, "generation"))?,
            failcount: row.get(column!(ENTRY, "failcount"))?,
            failtime: row.get(column!(ENTRY, "failtime"))?,
            seen_run: row.get(column!(ENTRY, "seen_run"))?,
            seed_run: row.get(column!(ENTRY, "seed_run"))?,
            list_depth: ready::depth_of(row.get(column!(ENTRY, "docpriority"))?),
            parent_part: row.get(column!(ENTRY, "parentpart"))?,
            role: DocumentRole::of_requisite(row.get(column!(ENTRY, "requisite"))?),
            unlinked: row.get(column!(ENTRY, "unlinked"))?,
            needed_run: row.get(column!(ENTRY, "needed_run"))?,
            levels: row.get(column!(ENTRY, "levels"))?,
        })
    }

    /// Where it stands, for whoever judges what it leads to.
    pub fn standing(&self) -> Standing {
        Standing { hops: self.hops, role: self.looked_at_as(), levels: self.levels }
    }

    /// As what it is looked at: a page that nothing has linked to in this run leads on as a
    /// requisite does.
    pub fn looked_at_as(&self) -> DocumentRole {
        DocumentRole::of_requisite(self.unlinked || self.role.is_requisite())
    }
}

/// One job's documents in one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Place {
    pub part: Part,
    pub job: JobId,
}

/// What a run has settled, in the words of an index: done, given up, not let in, or to be
/// looked at again at its time.
const SETTLED: &str = "q.done_run IS NOT NULL
      AND (q.state IN ('done', 'failed', 'cut') OR (q.state = 'waiting' AND q.reason IS NULL))";

fn older_text() -> String {
    format!(
        "SELECT {ENTRY} FROM queue q
         WHERE q.part = $1 AND q.jobid = $2 AND q.bin = $3 AND q.done_run < $4 AND {SETTLED}
         ORDER BY q.done_run, q.id LIMIT $5"
    )
}

/// Whether a bin from which all was claimed that could be has more: documents that wait
/// for an event.
pub fn is_held_back(tx: &mut Tx<'_>, place: Place, bin: BinId) -> Result<bool> {
    if !events::is_any(tx)? {
        return Ok(false);
    }
    let found = tx.query_opt(
        "SELECT 1 FROM queue q
         WHERE q.part = $1 AND q.jobid = $2 AND q.bin = $3 AND q.state = 'ready' LIMIT 1",
        &[place.part.into(), place.job.into(), bin.into()],
        |row| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

/// The next documents of a bin that an older run settled and this one rechecks.
pub fn peek_older(
    tx: &mut Tx<'_>,
    place: Place,
    bin: BinId,
    run: Run,
    limit: u32,
) -> Result<Vec<Entry>> {
    tx.query(
        &older_text(),
        &[place.part.into(), place.job.into(), bin.into(), run.into(), limit.into()],
        Entry::from_row,
    )
}

/// What an older run settled and did not process well, or is looked at again at its time,
/// in the words of its index.
const SETTLED_APART: &str = "q.done_run IS NOT NULL
      AND (q.state IN ('failed', 'cut') OR (q.state = 'waiting' AND q.reason IS NULL))";

fn has_older_text() -> String {
    let of_job = "SELECT q.id FROM queue q WHERE q.part = $1 AND q.jobid = $2 AND q.done_run < $3";
    format!(
        "SELECT older.id FROM (
             SELECT done.id FROM ({of_job} AND q.state = 'done' LIMIT 1) done
             UNION ALL
             SELECT apart.id FROM ({of_job} AND {SETTLED_APART} LIMIT 1) apart) older LIMIT 1"
    )
}

/// Whether anything is left that an older run settled, in whichever bin.
pub fn has_older(tx: &mut Tx<'_>, place: Place, run: Run) -> Result<bool> {
    let found: Option<QueueId> = tx.query_opt(
        &has_older_text(),
        &[place.part.into(), place.job.into(), run.into()],
        |row| row.get(0),
    )?;
    Ok(found.is_some())
}

fn older_bin_text() -> String {
    format!(
        "SELECT q.bin, q.done_run FROM queue q
         WHERE q.part = $1 AND q.jobid = $2 AND q.bin > $3 AND {SETTLED}
         ORDER BY q.bin, q.done_run, q.id LIMIT 1"
    )
}

/// The first bin after one that has documents an older run settled. Walks from bin
/// to bin and looks at one document of each.
pub fn next_older_bin(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    after: BinId,
) -> Result<Option<BinId>> {
    let (text, mut at) = (older_bin_text(), after);
    loop {
        let found: Option<(BinId, Run)> =
            tx.query_opt(&text, &[place.part.into(), place.job.into(), at.into()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        match found {
            Some((bin, done_run)) if done_run < run => return Ok(Some(bin)),
            Some((bin, _)) => at = bin,
            None => return Ok(None),
        }
    }
}

/// The plus keeps SQLite from walking all that is ready in the job instead of
/// looking up the id.
const CLAIM: &str = "WHERE queue.part = $1 AND +queue.jobid = $2 AND queue.state = $4
       AND COALESCE(queue.done_run, -1) = $5 AND queue.requisite = $7
       AND NOT EXISTS (SELECT 1 FROM queue o
                       WHERE o.part = queue.part AND o.dochash = queue.dochash
                         AND o.state = 'active')
       AND queue.id = v.column1";

/// Makes documents active that were peeked at. Returns those that were still to be had: not
/// taken, changed or removed meanwhile, and not active in another job.
pub fn claim(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    peeked: Vec<Entry>,
) -> Result<Vec<Entry>> {
    claim_to(tx, place, claim, None, peeked)
}

/// The same, with another action than the documents wait for.
fn claim_to(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    action: Option<Action>,
    mut peeked: Vec<Entry>,
) -> Result<Vec<Entry>> {
    for entry in peeked.iter_mut().filter(|it| it.state == State::Waiting) {
        entry.action = action.unwrap_or(Action::Fetch);
    }
    // One statement for each kind, because the counters need to know what the rows
    // were before, and that nothing has happened to them since.
    let mut kinds: BTreeMap<_, Vec<Vec<Value<'_>>>> = BTreeMap::new();
    for entry in &peeked {
        let kind = (entry.state, entry.done_run, entry.role);
        kinds.entry(kind).or_default().push(vec![entry.id.into()]);
    }
    let mut claimed = 0;
    for ((state, done_run, role), rows) in kinds {
        // What waits for its end is looked at if a later run takes it before.
        let looks = (state == State::Waiting).then_some(Action::Fetch);
        let fixed = [
            place.part.into(),
            place.job.into(),
            claim.into(),
            state.name().into(),
            done_run.unwrap_or(Run(-1)).into(),
            action.or(looks).map(Action::name).into(),
            role.is_requisite().into(),
        ];
        let set = "UPDATE queue SET state = 'active', chunk = $3, action = COALESCE($6, action),
             checktime = CASE WHEN $6 IN ('clean', 'delete') THEN checktime END,
             claimed_state = CASE WHEN $6 IN ('clean', 'delete') THEN state END,
             claimed_action = CASE WHEN $6 IN ('clean', 'delete') THEN action END";
        let count = tx.update_rows(set, &fixed, &[ValueKind::Int], &rows, CLAIM)? as i64;
        count_moves(tx, place, &[Move { from: state, to: State::Active, role, count }])?;
        claimed += count;
    }
    if claimed == peeked.len() as i64 {
        return Ok(peeked);
    }
    let keys: Vec<Value<'_>> = peeked.iter().map(|entry| entry.id.into()).collect();
    let claimed: Vec<QueueId> = tx.query_in(
        "SELECT id FROM queue WHERE part = $1 AND state = 'active' AND chunk = $2
           AND id IN ($keys)",
        &[place.part.into(), claim.into()],
        &keys,
        |row| row.get(0),
    )?;
    let claimed: HashSet<QueueId> = claimed.into_iter().collect();
    Ok(peeked.into_iter().filter(|entry| claimed.contains(&entry.id)).collect())
}

/// What is active in a claim: how a holder learns what one took whose answer was lost.
pub fn active_in(tx: &mut Tx<'_>, place: Place, claim: ChunkId, limit: u32) -> Result<Vec<Entry>> {
    tx.query(
        &format!(
            "SELECT {ENTRY} FROM queue q
             WHERE q.part = $1 AND q.jobid = $2 AND q.state = 'active' AND q.chunk = $3
             ORDER BY q.id LIMIT $4"
        ),
        &[place.part.into(), place.job.into(), claim.into(), limit.into()],
        Entry::from_row,
    )
}

/// Makes everything that is active in a claim ready again. What was to be swept is what it
/// was: that claim never happened. Returns how many documents that were.
pub fn unclaim(tx: &mut Tx<'_>, place: Place, claim: ChunkId) -> Result<u64> {
    let freed: Vec<(BinId, State, bool)> = tx.query(
        "UPDATE queue SET chunk = NULL, claimed_state = NULL, claimed_action = NULL,
             state = COALESCE(claimed_state, CASE WHEN action IN ('clean', 'delete')
                                  AND done_run IS NOT NULL THEN 'done' ELSE 'ready' END),
             action = COALESCE(claimed_action, CASE WHEN action IN ('clean', 'delete')
                                  THEN 'fetch' ELSE action END)
         WHERE part = $1 AND jobid = $2 AND state = 'active' AND chunk = $3
         RETURNING bin, state, requisite",
        &[place.part.into(), place.job.into(), claim.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let moves: Vec<Move> = freed
        .iter()
        .map(|(_, to, is_requisite)| {
            let role = DocumentRole::of_requisite(*is_requisite);
            Move { from: State::Active, to: *to, role, count: 1 }
        })
        .collect();
    count_moves(tx, place, &moves)?;
    let is_ready = |it: &&(BinId, State, bool)| it.1 == State::Ready;
    let ready: Vec<BinId> = freed.iter().filter(is_ready).map(|it| it.0).collect();
    add::mark_bins(tx, place, ready)?;
    Ok(freed.len() as u64)
}

/// Rows by their ids; those that are gone are left out.
pub fn load(tx: &mut Tx<'_>, place: Place, ids: &[QueueId]) -> Result<Vec<Entry>> {
    let keys: Vec<Value<'_>> = ids.iter().map(|id| (*id).into()).collect();
    tx.query_in(
        &format!(
            "SELECT {ENTRY} FROM queue q
             WHERE q.part = $1 AND +q.jobid = $2 AND q.id IN ($keys)"
        ),
        &[place.part.into(), place.job.into()],
        &keys,
        Entry::from_row,
    )
}

/// The row of a document in a job.
pub fn find(tx: &mut Tx<'_>, place: Place, dochash: DocHash) -> Result<Option<Entry>> {
    tx.query_opt(
        &format!(
            "SELECT {ENTRY} FROM queue q
             WHERE q.part = $1 AND q.dochash = $2 AND q.jobid = $3"
        ),
        &[place.part.into(), (&dochash).into(), place.job.into()],
        Entry::from_row,
    )
}

#[cfg(test)]
mod tests;
