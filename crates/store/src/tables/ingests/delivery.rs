//! Delivering decisions: what is due, and what came of it.
//!
//! Invariants: decisions of a part go to an output in the order they were made, but for
//! those that are tried again; whatever an output says of a decision is said of that
//! decision alone.

use super::{
    BY_ID, COLUMNS, Decision, Ingest, Move, NEVER_MS, Ownership, PendingDecision, SUMMED,
    UNDELIVERED, save,
};
use crate::dialect::ValueKind;
use crate::ids::{CommitNumber, ConnectionId, JobId, Part};
use crate::tables::counters;
use crate::{Result, Tx, Value};
use std::collections::{BTreeMap, HashMap};

/// Something that an output must hear in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Due {
    pub part: Part,
    pub output: ConnectionId,
}

/// The next output of a part, after one, that must hear something for the first time.
pub fn due(tx: &mut Tx<'_>, after: Due) -> Result<Option<Due>> {
    tx.query_opt(
        "SELECT part, outputid FROM ingests
         WHERE decision IS NOT NULL AND checktime IS NULL AND (part, outputid) > ($1, $2)
         ORDER BY part, outputid LIMIT 1",
        &[after.part.into(), after.output.into()],
        |row| Ok(Due { part: row.get(0)?, output: row.get(1)? }),
    )
}

/// The next output of a part, after one, that is tried again, and the earliest time when.
pub fn retries(tx: &mut Tx<'_>, after: Due) -> Result<Option<(Due, i64)>> {
    tx.query_opt(
        "SELECT part, outputid, checktime FROM ingests
         WHERE decision IS NOT NULL AND checktime IS NOT NULL AND (part, outputid) > ($1, $2)
         ORDER BY part, outputid, checktime LIMIT 1",
        &[after.part.into(), after.output.into()],
        |row| Ok((Due { part: row.get(0)?, output: row.get(1)? }, row.get(2)?)),
    )
}

/// How many decisions of a part an output has not heard, at most `limit`. What was given
/// up is not among them.
pub fn count_undelivered(tx: &mut Tx<'_>, at: Due, limit: i64) -> Result<i64> {
    // Each branch is a range of an index of its own.
    tx.query_one(
        "SELECT COUNT(*) FROM (
             SELECT id FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime IS NULL
             UNION ALL
             SELECT id FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime IS NOT NULL
               AND checktime < $3
             LIMIT $4) waiting",
        &[at.part.into(), at.output.into(), NEVER_MS.into(), limit.into()],
        |row| row.get(0),
    )
}

/// Whether anything is to be delivered, now or later.
pub fn is_any_due(tx: &mut Tx<'_>) -> Result<bool> {
    let mut at = Due { part: Part(i64::MIN), output: ConnectionId(i64::MIN) };
    if due(tx, at)?.is_some() {
        return Ok(true);
    }
    while let Some((next, check_ms)) = retries(tx, at)? {
        if check_ms < NEVER_MS {
            return Ok(true);
        }
        at = next;
    }
    Ok(false)
}

/// What an output must still hear in a part: what was never tried in the order it
/// was decided, then what is to be tried again, once its time has come.
pub fn undelivered(tx: &mut Tx<'_>, at: Due, now_ms: i64, limit: u32) -> Result<Vec<Ingest>> {
    let mut found = tx.query(
        &format!(
            "SELECT {COLUMNS}, {SUMMED} FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime IS NULL
             ORDER BY decided_seq, id LIMIT $3"
        ),
        &[at.part.into(), at.output.into(), limit.into()],
        Ingest::from_row,
    )?;
    let room = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(limit));
    found.extend(tx.query(
        &format!(
            "SELECT {COLUMNS}, {SUMMED} FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime IS NOT NULL
               AND checktime <= $3
             ORDER BY checktime, id LIMIT $4"
        ),
        &[at.part.into(), at.output.into(), now_ms.min(NEVER_MS - 1).into(), room.into()],
        Ingest::from_row,
    )?);
    Ok(found)
}

/// What came of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fate {
    /// The output has done it.
    Taken,
    /// The output does not want the document, and has nothing of it.
    Rejected,
    /// Another document owns the URI: the output was told nothing of this one.
    Shadowed,
    /// The output had it already; it owns its URI now.
    Claimed,
    /// It is tried again at a time, or never ([`NEVER_MS`]).
    Again {
        check_ms: i64,
        /// Tries that are left.
        failcount: Option<i64>,
        /// After this time the decision is given up.
        failtime: Option<i64>,
        error: String,
    },
}

/// A decision, the row it is of, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DeliveryResult {
    pub id: i64,
    pub pending: PendingDecision,
    pub fate: Fate,
}

impl DeliveryResult {
    /// Whether the output has now what was decided: what nearly always happens.
    fn is_plain(&self) -> bool {
        self.fate == Fate::Taken && self.pending.decision != Decision::Remove
    }
}

/// Records what came of decisions. One that has changed since stays as it is. Returns how
/// many were recorded.
pub fn delivered(tx: &mut Tx<'_>, at: Due, results: &[DeliveryResult], now_ms: i64) -> Result<u64> {
    let (plain, rest): (Vec<&DeliveryResult>, Vec<&DeliveryResult>) =
        results.iter().partition(|it| it.is_plain());
    let mut jobs: BTreeMap<JobId, Vec<Vec<Value<'_>>>> = BTreeMap::new();
    for it in plain {
        let resent = it.pending.resent.unwrap_or(0);
        let row = vec![it.id.into(), it.pending.seq.into(), resent.into()];
        jobs.entry(it.pending.job).or_default().push(row);
    }
    let mut count = 0;
    for (job, rows) in jobs {
        let taken = settle_plain(tx, at.part, &rows, now_ms)?;
        let delta = -i64::try_from(taken).unwrap_or(0);
        counters::add(tx, at.part, job, &[(UNDELIVERED, delta)])?;
        count += taken;
    }
    Ok(count + otherwise(tx, at, &rest, now_ms)?)
}

/// Outputs have now what was decided: `(id, seq, resent)`. Only what changes is written, so that
/// no index is touched but those of what is pending.
fn settle_plain(tx: &mut Tx<'_>, part: Part, rows: &[Vec<Value<'_>>], now_ms: i64) -> Result<u64> {
    tx.update_rows(
        "UPDATE ingests SET decision = NULL, jobid = NULL, delivered_seq = v.column2,
             lastingest = $2, firstingest = COALESCE(firstingest, $2), staleuris = NULL,
             ownership = 'owned', resent = NULL,
             checktime = NULL, failcount = NULL, failtime = NULL, errortext = NULL",
        &[part.into(), now_ms.into()],
        &[ValueKind::Int; 3],
        rows,
        "WHERE ingests.part = $1 AND ingests.id = v.column1 AND ingests.decided_seq = v.column2
           AND COALESCE(ingests.resent, 0) = v.column3 AND ingests.decision IS NOT NULL",
    )
}

/// What was removed, rejected, or is tried again.
fn otherwise(tx: &mut Tx<'_>, at: Due, results: &[&DeliveryResult], now_ms: i64) -> Result<u64> {
    if results.is_empty() {
        return Ok(0);
    }
    let mut ids: Vec<i64> = results.iter().map(|it| it.id).collect();
    ids.sort_unstable();
    let keys: Vec<Value<'_>> = ids.iter().map(|id| (*id).into()).collect();
    let rows = tx.query_in(
        &format!("SELECT {COLUMNS}, {SUMMED} FROM ingests {BY_ID}"),
        &[at.part.into(), at.output.into()],
        &keys,
        Ingest::from_row,
    )?;
    let fates: HashMap<(i64, CommitNumber), &DeliveryResult> =
        results.iter().map(|it| ((it.id, it.pending.seq), *it)).collect();
    let mut moves = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(pending) = row.pending.as_ref().filter(|it| !it.is_given_up()) else { continue };
        let Some(DeliveryResult { pending: known, fate, .. }) = fates.get(&(row.id, pending.seq))
        else {
            continue;
        };
        // What the output does not want need not be sent again to whoever owned it.
        if known.resent != pending.resent && *fate != Fate::Rejected {
            continue;
        }
        let after = after(row.clone(), fate, now_ms);
        moves.push(Move { before: Some(row), after });
    }
    save(tx, at.part, at.output, &moves)?;
    Ok(moves.len() as u64)
}

/// The row after a decision has met its fate.
fn after(mut row: Ingest, fate: &Fate, now_ms: i64) -> Option<Ingest> {
    let pending = row.pending.take()?;
    match fate {
        Fate::Taken | Fate::Rejected if pending.decision == Decision::Remove => return None,
        Fate::Taken | Fate::Rejected => {
            row.delivered_seq = Some(pending.seq);
            row.last_ingest_ms = Some(now_ms);
            row.first_ingest_ms.get_or_insert(now_ms);
            row.stale_uris = None;
            row.ownership = Some(Ownership::Owned);
            if *fate == Fate::Rejected {
                (row.uri, row.uri_hash) = (None, None);
                row.ownership = Some(Ownership::Rejected);
            }
        }
        Fate::Shadowed | Fate::Claimed => {
            row.delivered_seq = Some(pending.seq);
            row.stale_uris = None;
            row.ownership = match fate {
                Fate::Shadowed => Some(Ownership::Shadowed),
                _ => Some(Ownership::Owned),
            };
        }
        Fate::Again { check_ms, failcount, failtime, error } => {
            row.pending = Some(PendingDecision {
                check_ms: Some(*check_ms),
                failcount: *failcount,
                failtime: *failtime,
                error: Some(error.clone()),
                ..pending
            });
        }
    }
    Some(row)
}
