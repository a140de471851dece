//! All that an output has, at once: forgetting it, retrying what was given up, counting.
//!
//! Invariant: each call does a bounded piece in its own transaction; whoever calls goes
//! on until nothing is left.

use super::{COLUMNS, Ingest, Move, NEVER_MS, SUMMED, UNDELIVERABLE, UNDELIVERED, save};
use crate::ids::{ConnectionId, JobId, Part};
use crate::{Result, Tx, Value};
use std::collections::HashMap;

/// Forgets what an output has of documents of a part, decisions too: the next look at
/// each adds it anew. Returns how many rows went.
pub fn forget(tx: &mut Tx<'_>, part: Part, output: ConnectionId, limit: u32) -> Result<u64> {
    let rows = tx.query(
        &format!(
            "SELECT {COLUMNS}, {SUMMED} FROM ingests WHERE part = $1 AND outputid = $2
             ORDER BY dochash, connectionid, componenthash LIMIT $3 /*for update*/"
        ),
        &[part.into(), output.into(), limit.into()],
        Ingest::from_row,
    )?;
    let gone = |row| Move { before: Some(row), after: None };
    let moves: Vec<Move> = rows.into_iter().map(gone).collect();
    save(tx, part, output, &moves)?;
    Ok(moves.len() as u64)
}

/// Decisions for an output in a part that were given up, from an id on.
pub fn given_up(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    after: i64,
    limit: u32,
) -> Result<Vec<Ingest>> {
    tx.query(
        &format!(
            "SELECT {COLUMNS}, {SUMMED} FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime = $3
               AND id > $4
             ORDER BY id LIMIT $5"
        ),
        &[part.into(), output.into(), NEVER_MS.into(), after.into(), limit.into()],
        Ingest::from_row,
    )
}

/// Which decisions are tried again: those of a job for an output in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct UndeliveredFilter {
    pub part: Part,
    pub output: ConnectionId,
    pub job: JobId,
}

/// Lets decisions that were given up be tried again: all, or those of documents that
/// `wants` names. Walks from an id on; returns where to go on and how many there were.
pub fn retry(
    tx: &mut Tx<'_>,
    of: UndeliveredFilter,
    after: i64,
    limit: u32,
    wants: impl Fn(&Ingest) -> bool,
) -> Result<(Option<i64>, u64)> {
    let UndeliveredFilter { part, output, job } = of;
    let rows = given_up(tx, part, output, after, limit)?;
    let last = rows.last().map(|row| row.id);
    let mut moves = Vec::new();
    for row in rows {
        let Some(pending) = row.pending.as_ref().filter(|it| it.job == job) else { continue };
        if wants(&row) {
            let pending = super::PendingDecision::new(pending.decision, pending.seq, pending.job);
            let after = Some(Ingest { pending: Some(pending), ..row.clone() });
            moves.push(Move { before: Some(row), after });
        }
    }
    save(tx, part, output, &moves)?;
    Ok((last, moves.len() as u64))
}

/// What outputs keep, or would keep, of the documents of a part, from an id on: rows whose
/// claims were written and for which nothing is pending, each with its output.
pub fn kept_after(
    tx: &mut Tx<'_>,
    part: Part,
    after: i64,
    limit: u32,
) -> Result<Vec<(ConnectionId, Ingest)>> {
    let outputs: Vec<(i64, ConnectionId)> = tx.query(
        "SELECT id, outputid FROM ingests
         WHERE part = $1 AND id > $2 AND ownership IS NOT NULL AND decision IS NULL
         ORDER BY id LIMIT $3",
        &[part.into(), after.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let keys: Vec<Value<'_>> = outputs.iter().map(|it| it.0.into()).collect();
    let rows = tx.query_in(
        &format!("SELECT {COLUMNS}, {SUMMED} FROM ingests WHERE part = $1 AND id IN ($keys)"),
        &[part.into()],
        &keys,
        Ingest::from_row,
    )?;
    let outputs: HashMap<i64, ConnectionId> = outputs.into_iter().collect();
    let mut kept: Vec<(ConnectionId, Ingest)> =
        rows.into_iter().filter_map(|row| Some((*outputs.get(&row.id)?, row))).collect();
    kept.sort_unstable_by_key(|it| it.1.id);
    kept.dedup_by_key(|it| it.1.id);
    Ok(kept)
}

/// Counts what is pending in a part, by job and by the name of its counter.
pub fn count_rows(tx: &mut Tx<'_>, part: Part) -> Result<Vec<(JobId, &'static str, i64)>> {
    tx.query(
        "SELECT jobid, CASE WHEN checktime = $2 THEN 1 ELSE 0 END, COUNT(*) FROM ingests
         WHERE part = $1 AND decision IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100000",
        &[part.into(), NEVER_MS.into()],
        |row| {
            let name = if row.get::<i64>(1)? != 0 { UNDELIVERABLE } else { UNDELIVERED };
            Ok((row.get(0)?, name, row.get(2)?))
        },
    )
}
