//! Settling the documents of a chunk when it commits: where each goes from here.
//!
//! Invariant: only documents that are active in this very chunk are settled; a
//! settlement for anything else is a bug of the caller, and nothing is written.

use super::{Place, State, count_moves};
use crate::dialect::Kind;
use crate::ids::{BinId, ChunkId, QueueId, Run};
use crate::{Error, Result, Tx, Value};

/// Where a processed document goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// Processed in this run; nothing more to do until the next.
    Done,
    /// Processed; to be looked at again at a time (continuous jobs).
    Again {
        /// When.
        check_ms: i64,
        /// What then: `fetch` or `expire`.
        action: &'static str,
    },
    /// Not processed: try again at a time.
    Retry {
        /// When.
        check_ms: i64,
        /// Retries that are left.
        failcount: Option<i64>,
        /// When retrying ends.
        failtime: Option<i64>,
        /// What went wrong.
        reason: String,
    },
    /// Known, but not to be processed, for this reason.
    Cut {
        /// Such as `robots` or `trap`.
        reason: String,
    },
    /// Given up: a dead letter that an operator can retry.
    Failed {
        /// What went wrong.
        reason: String,
    },
    /// No longer the job's: its row goes.
    Deleted,
}

/// One document with where it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The row.
    pub id: QueueId,
    /// Generation of the links and carried values it asserted this time.
    pub generation: i64,
    /// Where it goes.
    pub to: Settlement,
}

const KINDS: &[Kind] = &[
    Kind::Int,
    Kind::Text,
    Kind::Text,
    Kind::Text,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::Int,
];

/// Settles documents of a chunk. A document whose carried values changed while it
/// was active (`rescan`) is ready again at once instead.
pub fn settle(
    tx: &mut Tx<'_>,
    place: Place,
    (chunk, run): (ChunkId, Run),
    settled: &[Settled],
) -> Result<()> {
    let deleted: Vec<Value<'_>> =
        settled.iter().filter(|it| it.to == Settlement::Deleted).map(|it| it.id.into()).collect();
    let kept: Vec<&Settled> = settled.iter().filter(|it| it.to != Settlement::Deleted).collect();
    let rows: Vec<Vec<Value<'_>>> = kept.iter().map(|it| update_row(it, run)).collect();

    let updated = tx.update_rows(
        "UPDATE queue SET state = v.column2, action = v.column3, reason = v.column4,
             done_run = COALESCE(v.column5, done_run), checktime = v.column6,
             failcount = v.column7, failtime = v.column8, generation = v.column9, chunk = NULL",
        &[place.part.into(), chunk.into()],
        (KINDS, &rows),
        "WHERE queue.part = $1 AND queue.id = v.column1
           AND queue.state = 'active' AND queue.chunk = $2",
    )?;
    let removed = tx.query_in(
        "DELETE FROM queue WHERE part = $1 AND state = 'active' AND chunk = $2 AND id",
        &[place.part.into(), chunk.into()],
        &deleted,
        "RETURNING id",
        |_| Ok(()),
    )?;
    if updated != kept.len() as u64 || removed.len() != deleted.len() {
        return Err(Error::Refused(format!(
            "chunk {chunk} settles documents that are not active in it ({updated} of {} updated, \
             {} of {} deleted)",
            kept.len(),
            removed.len(),
            deleted.len()
        )));
    }
    let mut moves: Vec<(State, i64)> = kept.iter().map(|it| (state_after(it), 1)).collect();
    moves.push((State::Active, -(settled.len() as i64)));
    count_moves(tx, place, &summed(&moves))?;
    rescan(tx, place, &kept)
}

/// Documents whose carried values changed meanwhile go straight back.
fn rescan(tx: &mut Tx<'_>, place: Place, kept: &[&Settled]) -> Result<()> {
    let keys: Vec<Value<'_>> = kept.iter().map(|it| it.id.into()).collect();
    let again: Vec<(QueueId, BinId)> = tx.query_in(
        "UPDATE queue SET state = 'ready', rescan = 0, checktime = NULL, reason = NULL
         WHERE part = $1 AND rescan = 1 AND state IN ('ready', 'waiting', 'done') AND id",
        &[place.part.into()],
        &keys,
        "RETURNING id, bin",
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut moves = Vec::new();
    for (id, _) in &again {
        let was = kept.iter().find(|it| it.id == *id).map(|it| state_after(it));
        moves.extend(was.map(|state| (state, -1)));
        moves.push((State::Ready, 1));
    }
    count_moves(tx, place, &summed(&moves))?;
    super::add::mark_bins(tx, place, again.into_iter().map(|(_, bin)| bin))
}

fn state_after(settled: &Settled) -> State {
    match settled.to {
        Settlement::Done => State::Done,
        Settlement::Again { .. } | Settlement::Retry { .. } => State::Waiting,
        Settlement::Cut { .. } => State::Cut,
        Settlement::Failed { .. } => State::Failed,
        Settlement::Deleted => unreachable!("deleted documents have no state"),
    }
}

fn update_row(settled: &Settled, run: Run) -> Vec<Value<'_>> {
    let null = Value::Null;
    let processed = Value::from(run);
    let (action, reason, done_run, check, failcount, failtime) = match &settled.to {
        Settlement::Done => ("fetch", null, processed, null, null, null),
        Settlement::Again { check_ms, action } => {
            (*action, null, processed, (*check_ms).into(), null, null)
        }
        Settlement::Retry { check_ms, failcount, failtime, reason } => {
            let (count, time) = ((*failcount).into(), (*failtime).into());
            ("fetch", reason.into(), null, (*check_ms).into(), count, time)
        }
        Settlement::Cut { reason } | Settlement::Failed { reason } => {
            ("fetch", reason.into(), null, null, null, null)
        }
        Settlement::Deleted => unreachable!("deleted documents are not updated"),
    };
    vec![
        settled.id.into(),
        state_after(settled).name().into(),
        action.into(),
        reason,
        done_run,
        check,
        failcount,
        failtime,
        settled.generation.into(),
    ]
}

/// One delta for each state, so that no counter is named twice in a statement.
fn summed(moves: &[(State, i64)]) -> Vec<(State, i64)> {
    State::ALL
        .into_iter()
        .map(|state| (state, moves.iter().filter(|it| it.0 == state).map(|it| it.1).sum()))
        .collect()
}
