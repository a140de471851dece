//! Dead letters: documents that a run has given up, made ready again because somebody
//! asks for it.
//!
//! Needs no lease, as adding needs none: it touches only what has failed, which nobody
//! works on. Invariants: a call looks at a bounded number of rows along an index and
//! changes no more; what is ready again counts as named by the current run, so that no
//! run takes it for forgotten, and has all its tries before it.

use super::counting::count_uncut;
use super::{Place, State, add};
use crate::ids::{BinId, QueueId, Run};
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// How far a walk over what has failed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryScan {
    /// Documents that are ready again.
    pub count: u64,
    /// The last row that was looked at, to go on behind it; `None` when there are no more.
    pub next: Option<QueueId>,
}

/// Makes the next documents of a job in a part ready again that have failed: those with
/// a reason, or all. Goes on behind a row and looks at up to `limit`.
pub fn retry(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    reason: Option<&str>,
    after: QueueId,
    limit: u32,
) -> Result<RetryScan> {
    let is_meant = |code: Option<&str>| reason.is_none_or(|reason| code == Some(reason));
    retry_where(tx, place, run, is_meant, after, limit)
}

/// The same for those with one of some reasons.
pub fn retry_any_of(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    reasons: &[String],
    after: QueueId,
    limit: u32,
) -> Result<RetryScan> {
    let is_meant = |code: Option<&str>| reasons.iter().any(|it| code == Some(it.as_str()));
    retry_where(tx, place, run, is_meant, after, limit)
}

fn retry_where(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    is_meant: impl Fn(Option<&str>) -> bool,
    after: QueueId,
    limit: u32,
) -> Result<RetryScan> {
    let looked: Vec<(QueueId, Option<String>)> = tx.query(
        FAILED,
        &[place.part.into(), place.job.into(), after.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let ids: Vec<Value<'_>> = looked
        .iter()
        .filter(|(_, code)| is_meant(code.as_deref()))
        .map(|(id, _)| (*id).into())
        .collect();
    let count = make_ready(tx, place, run, "id", &ids)?;
    let is_full = looked.len() as u64 == u64::from(limit);
    let next = looked.last().filter(|_| is_full).map(|(id, _)| *id);
    Ok(RetryScan { count, next })
}

const FAILED: &str = "SELECT id, reason FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'failed' AND id > $3
     ORDER BY id LIMIT $4";

/// Which of some documents have failed in this part.
pub fn failed(tx: &mut Tx<'_>, place: Place, keys: &[DocHash]) -> Result<Vec<DocHash>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    tx.query_in(
        "SELECT dochash FROM queue
         WHERE part = $1 AND +jobid = $2 AND state = 'failed' AND dochash IN ($keys)",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| row.get(0),
    )
}

/// Makes these documents ready again, as far as they have failed. Returns how many
/// that were.
pub fn retry_these(tx: &mut Tx<'_>, place: Place, run: Run, keys: &[DocHash]) -> Result<u64> {
    let keys: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    make_ready(tx, place, run, "dochash", &keys)
}

/// The plus keeps SQLite to the key, as in a claim.
fn ready_text(column: &str) -> String {
    format!(
        "UPDATE queue SET state = 'ready', action = 'fetch', reason = NULL, detail = NULL,
             checktime = NULL, failcount = NULL, failtime = NULL,
             seen_run = CASE WHEN seen_run < $3 THEN $3 ELSE seen_run END
         WHERE part = $1 AND +jobid = $2 AND state = 'failed' AND {column} IN ($keys)
         RETURNING bin"
    )
}

fn make_ready(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    column: &str,
    keys: &[Value<'_>],
) -> Result<u64> {
    let bins: Vec<BinId> = tx.query_in(
        &ready_text(column),
        &[place.part.into(), place.job.into(), run.into()],
        keys,
        |row| row.get(0),
    )?;
    let count = bins.len() as i64;
    add::mark_bins(tx, place, bins.iter().copied())?;
    count_uncut(tx, place, State::Failed, State::Ready, count)?;
    Ok(bins.len() as u64)
}

#[cfg(test)]
mod tests;
