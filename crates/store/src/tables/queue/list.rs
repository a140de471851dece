//! Looking at the queue: the documents of a job page by page, in the order of an
//! index, and all that is known of one of them.
//!
//! Invariants: a page costs the rows it returns, however long the queue is, because
//! each state is walked along an index and nothing is left out on the way that the
//! index does not leave out; a walk that goes on behind the last row's [`QueuePosition`] sees
//! every document that stayed where it was, once.

use super::ready::depth_of;
use super::{Action, Place, ReasonCode, SETTLED, State};
use crate::chunkfile::document::DocumentRole;
use crate::ids::{BinId, ChunkId, ConnectionId, JobId, Part, QueueId, Run};
use crate::tables::documents::LAST_LOOK;
use crate::value::{Row, column};
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// Jobs that are shown for one document.
const JOBS_MAX: u32 = 100;
/// Events that are shown for one document.
const EVENTS_MAX: u32 = 10;

/// A document of a job as people see it.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
// tidy: wide a row of `queue` as people see it
pub struct ListedDocument {
    pub id: QueueId,
    pub job: JobId,
    pub bin: BinId,
    /// Its identifier: for the web, the canonical URL.
    pub docid: String,
    pub state: State,
    /// What is to be done.
    pub action: Action,
    /// Why it stands there: a short code, which may be one of [`ReasonCode`].
    pub reason: Option<String>,
    /// The reason in words.
    pub detail: Option<String>,
    /// Its place in the bin's order.
    pub priority: f64,
    /// Links from the nearest seed.
    pub hops: i64,
    /// What it is to its job.
    pub role: DocumentRole,
    /// The last run that named it.
    pub seen_run: Run,
    /// The last run that processed it.
    pub done_run: Option<Run>,
    /// The last run whose seeds named it.
    pub seed_run: Option<Run>,
    /// When it falls due.
    pub check_ms: Option<i64>,
    /// Retries that are left, while it is failing.
    pub failcount: Option<i64>,
    /// The chunk that has it, while it is active.
    pub chunk: Option<ChunkId>,
    /// Who named it first: the part and the key.
    pub parent: Option<(Part, DocHash)>,
    /// When it was first named.
    pub added_ms: i64,
    /// What came of the last look at it.
    pub outcome: Option<String>,
    /// The status of the last answer.
    pub status: Option<i64>,
    /// When it was last looked at.
    pub checked_ms: Option<i64>,
    /// How often it was looked at, in all runs.
    pub checks: Option<i64>,
}

const LISTED: &str = "q.id, q.jobid, q.bin, q.docid, q.state, q.action, q.reason, q.detail, \
    q.docpriority, q.hops, q.seen_run, q.done_run, q.seed_run, q.checktime, q.failcount, q.chunk, \
    q.parentpart, q.parenthash, q.added_ms, COALESCE(l.outcome, d.outcome) AS outcome, \
    CASE WHEN l.id IS NULL THEN d.httpstatus ELSE l.httpstatus END AS httpstatus, \
    COALESCE(l.checked_ms, d.checked_ms) AS checked_ms, COALESCE(l.checks, d.checks) AS checks, q.requisite";

impl ListedDocument {
    fn from_row(row: &Row<'_>) -> Result<ListedDocument> {
        Ok(ListedDocument {
            id: row.get(column!(LISTED, "id"))?,
            job: row.get(column!(LISTED, "jobid"))?,
            bin: row.get(column!(LISTED, "bin"))?,
            docid: row.get(column!(LISTED, "docid"))?,
            state: row.get(column!(LISTED, "state"))?,
            action: row.get(column!(LISTED, "action"))?,
            reason: row.get(column!(LISTED, "reason"))?,
            detail: row.get(column!(LISTED, "detail"))?,
            priority: row.get(column!(LISTED, "docpriority"))?,
            hops: row.get(column!(LISTED, "hops"))?,
            seen_run: row.get(column!(LISTED, "seen_run"))?,
            done_run: row.get(column!(LISTED, "done_run"))?,
            seed_run: row.get(column!(LISTED, "seed_run"))?,
            check_ms: row.get(column!(LISTED, "checktime"))?,
            failcount: row.get(column!(LISTED, "failcount"))?,
            chunk: row.get(column!(LISTED, "chunk"))?,
            parent: row
                .get::<Option<Part>>(column!(LISTED, "parentpart"))?
                .zip(row.get(column!(LISTED, "parenthash"))?),
            added_ms: row.get(column!(LISTED, "added_ms"))?,
            outcome: row.get(column!(LISTED, "outcome"))?,
            status: row.get(column!(LISTED, "httpstatus"))?,
            checked_ms: row.get(column!(LISTED, "checked_ms"))?,
            checks: row.get(column!(LISTED, "checks"))?,
            role: DocumentRole::of_requisite(row.get(column!(LISTED, "requisite"))?),
        })
    }

    /// Why it stands there, if that is a reason of the program's own.
    pub fn reason_code(&self) -> Option<ReasonCode> {
        self.reason.as_deref().and_then(ReasonCode::parse)
    }

    /// Lists that lead to it, if it is a list of documents itself; 0 if it is none.
    pub fn list_depth(&self) -> u8 {
        depth_of(self.priority)
    }

    /// Where a walk of this state stands behind this row.
    pub fn key(&self, state: Option<State>) -> QueuePosition {
        let run = self.done_run.map_or(i64::MIN, |run| run.0);
        let number = match state {
            Some(State::Waiting) => self.check_ms.unwrap_or(i64::MIN),
            Some(State::Active) => self.chunk.map_or(i64::MIN, |chunk| chunk.0),
            _ => self.bin.0,
        };
        let reason = self.reason.clone().unwrap_or_default();
        QueuePosition { number, run, priority: self.priority, reason, id: self.id.0 }
    }
}

/// A place in the order of a walk. Which fields count depends on the state.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct QueuePosition {
    /// The bin, the check time or the chunk.
    pub number: i64,
    /// The run that processed it.
    pub run: i64,
    /// The priority in its bin.
    pub priority: f64,
    pub reason: String,
    pub id: i64,
}

impl QueuePosition {
    /// The position before all rows.
    pub fn first() -> QueuePosition {
        let least = i64::MIN;
        QueuePosition {
            number: least,
            run: least,
            priority: f64::MIN,
            reason: String::new(),
            id: least,
        }
    }
}

/// What is walked. A walk takes the nearest index, and so may bring more than was
/// asked for: documents of other states for `Done`, of other bins for all but `Ready`
/// and `Done`, with other reasons for all but `Cut`. The caller leaves them out.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueQuery {
    /// The job and the part.
    pub place: Place,
    /// The job's connection, whose documents are looked up.
    pub connection: ConnectionId,
    /// Documents of this state; `None` walks all, in order of arrival.
    pub state: Option<State>,
    /// Documents of this bin.
    pub bin: Option<BinId>,
    /// Documents with this reason.
    pub reason: Option<String>,
}

/// The next documents of a walk, behind a key.
pub fn list(
    tx: &mut Tx<'_>,
    walk: &QueueQuery,
    after: &QueuePosition,
    limit: u32,
) -> Result<Vec<ListedDocument>> {
    let (condition, order, position) = position(walk, after);
    let mut values: Vec<Value<'_>> =
        vec![walk.place.part.into(), walk.place.job.into(), walk.connection.into(), limit.into()];
    values.extend(position);
    tx.query(&page_text(condition, order), &values, ListedDocument::from_row)
}

fn page_text(condition: &str, order: &str) -> String {
    format!(
        "SELECT {LISTED} FROM queue q
         LEFT JOIN documents d ON d.part = q.part AND d.dochash = q.dochash
                              AND d.connectionid = $3
         {LAST_LOOK}
         WHERE q.part = $1 AND q.jobid = $2 AND {condition}
         ORDER BY {order} LIMIT $4"
    )
    .replace("{SETTLED}", SETTLED)
}

/// What is behind a key in a walk's order: the condition, the order, and the values
/// from `$5` on. Each is what an index was made for; see `migrations/queue.sql`.
fn position<'a>(
    walk: &'a QueueQuery,
    after: &'a QueuePosition,
) -> (&'static str, &'static str, Vec<Value<'a>>) {
    let (number, run): (Value<'_>, Value<'_>) = (after.number.into(), after.run.into());
    let (priority, id): (Value<'_>, Value<'_>) = (after.priority.into(), after.id.into());
    match (walk.state, walk.bin, &walk.reason) {
        (None, ..) => ("q.id > $5", "q.id", vec![id]),
        (Some(State::Ready), None, _) => (
            "q.state = 'ready' AND (q.bin, q.docpriority, q.id) > ($5, $6, $7)",
            "q.bin, q.docpriority, q.id",
            vec![number, priority, id],
        ),
        (Some(State::Ready), Some(bin), _) => (
            "q.state = 'ready' AND q.bin = $5 AND (q.docpriority, q.id) > ($6, $7)",
            "q.docpriority, q.id",
            vec![bin.into(), priority, id],
        ),
        (Some(State::Waiting), ..) => (
            "q.state = 'waiting' AND (q.checktime, q.id) > ($5, $6)",
            "q.checktime, q.id",
            vec![number, id],
        ),
        (Some(State::Active), ..) => {
            ("q.state = 'active' AND (q.chunk, q.id) > ($5, $6)", "q.chunk, q.id", vec![number, id])
        }
        (Some(State::Done), None, _) => (
            "{SETTLED} AND (q.bin, q.done_run, q.id) > ($5, $6, $7)",
            "q.bin, q.done_run, q.id",
            vec![number, run, id],
        ),
        (Some(State::Done), Some(bin), _) => (
            "{SETTLED} AND q.bin = $5 AND (q.done_run, q.id) > ($6, $7)",
            "q.done_run, q.id",
            vec![bin.into(), run, id],
        ),
        (Some(State::Cut), _, None) => (
            "q.state = 'cut' AND (q.reason, q.id) > ($5, $6)",
            "q.reason, q.id",
            vec![(&after.reason).into(), id],
        ),
        (Some(State::Cut), _, Some(reason)) => {
            ("q.state = 'cut' AND q.reason = $5 AND q.id > $6", "q.id", vec![reason.into(), id])
        }
        (Some(State::Failed), ..) => ("q.state = 'failed' AND q.id > $5", "q.id", vec![id]),
    }
}

/// A document in every job that knows it.
pub fn in_jobs(tx: &mut Tx<'_>, part: Part, dochash: DocHash) -> Result<Vec<ListedDocument>> {
    tx.query(
        &format!(
            "SELECT {LISTED} FROM queue q
             LEFT JOIN job_definitions j ON j.id = q.jobid
             LEFT JOIN documents d ON d.part = q.part AND d.dochash = q.dochash
                                  AND d.connectionid = j.connectionid
             {LAST_LOOK}
             WHERE q.part = $1 AND q.dochash = $2 ORDER BY q.jobid LIMIT $3"
        ),
        &[part.into(), (&dochash).into(), JOBS_MAX.into()],
        ListedDocument::from_row,
    )
}

/// How many documents of a job in a part are left out for a reason, up to a bound.
pub fn count_cut(tx: &mut Tx<'_>, place: Place, reason: ReasonCode, most: i64) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM (SELECT 1 AS one FROM queue
             WHERE part = $1 AND jobid = $2 AND state = 'cut' AND reason = $3 LIMIT $4) c",
        &[place.part.into(), place.job.into(), reason.into(), most.into()],
        |row| row.get(0),
    )
}

/// The identifier of a document by its key, if any job knows it.
pub fn docid_of(tx: &mut Tx<'_>, part: Part, dochash: DocHash) -> Result<Option<String>> {
    tx.query_opt(
        "SELECT docid FROM queue WHERE part = $1 AND dochash = $2 ORDER BY jobid LIMIT 1",
        &[part.into(), (&dochash).into()],
        |row| row.get(0),
    )
}

/// Events in play that a document waits for.
pub fn waits_for(tx: &mut Tx<'_>, part: Part, id: QueueId) -> Result<Vec<String>> {
    tx.query(
        "SELECT p.eventname FROM prereqevents p JOIN events e ON e.name = p.eventname
         WHERE p.part = $1 AND p.owner = $2 ORDER BY p.eventname LIMIT $3",
        &[part.into(), id.into(), EVENTS_MAX.into()],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests;
