//! Documents that wait for a time: for another try after trouble, which has a reason, or
//! for their next look or their end, which has none.
//!
//! Relies on the index of what waits, by time, so that a look costs the same however many
//! wait. Invariant: a document falls due once, however many look at the same moment.

use super::counting::count_uncut;
use super::{Place, State, add};
use crate::ids::{BinId, QueueId};
use crate::{Result, Tx, Value};

/// Makes documents ready whose time has come. Returns how many; call again while
/// it is `limit`.
pub fn wake(tx: &mut Tx<'_>, place: Place, now_ms: i64, limit: u32) -> Result<u64> {
    let bins: Vec<BinId> = tx.query(
        "WITH due AS (
             SELECT id FROM queue
             WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime <= $3
             ORDER BY checktime, id LIMIT $4)
         UPDATE queue SET state = 'ready', checktime = NULL
         WHERE part = $1 AND id IN (SELECT id FROM due)
           AND state = 'waiting' AND checktime <= $3
         RETURNING bin",
        &[place.part.into(), place.job.into(), now_ms.into(), limit.into()],
        |row| row.get(0),
    )?;
    let count = bins.len() as i64;
    count_uncut(tx, place, State::Waiting, State::Ready, count)?;
    add::mark_bins(tx, place, bins.iter().copied())?;
    Ok(bins.len() as u64)
}

/// Lets documents that wait for another try, for one of these reasons, be tried now. Returns
/// how many; call again while it is `limit`.
pub fn hasten(
    tx: &mut Tx<'_>,
    place: Place,
    reasons: &[String],
    now_ms: i64,
    limit: u32,
) -> Result<u64> {
    let reasons: Vec<Value<'_>> = reasons.iter().map(Value::from).collect();
    let ids: Vec<QueueId> = tx.query_in(
        "SELECT id FROM queue
         WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime > $3
           AND reason IN ($keys)
         ORDER BY checktime, id LIMIT $4",
        &[place.part.into(), place.job.into(), now_ms.into(), limit.into()],
        &reasons,
        |row| row.get(0),
    )?;
    let keys: Vec<Value<'_>> = ids.iter().map(|id| (*id).into()).collect();
    let hastened: Vec<QueueId> = tx.query_in(
        "UPDATE queue SET checktime = $3
         WHERE part = $1 AND +jobid = $2 AND state = 'waiting' AND id IN ($keys)
         RETURNING id",
        &[place.part.into(), place.job.into(), now_ms.into()],
        &keys,
        |row| row.get(0),
    )?;
    Ok(hastened.len() as u64)
}

/// Takes back when documents are looked at again, for a job that does not go on for ever
/// any more: they are settled by the run that has processed them. Returns how many; call
/// again while it is `limit`.
pub fn unschedule(tx: &mut Tx<'_>, place: Place, limit: u32) -> Result<u64> {
    let count = tx.execute(
        "WITH scheduled AS (
             SELECT id FROM queue
             WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND reason IS NULL
             ORDER BY checktime, id LIMIT $3)
         UPDATE queue SET state = 'done', action = 'fetch', checktime = NULL
         WHERE part = $1 AND id IN (SELECT id FROM scheduled)
           AND state = 'waiting' AND reason IS NULL",
        &[place.part.into(), place.job.into(), limit.into()],
    )?;
    count_uncut(tx, place, State::Waiting, State::Done, count as i64)?;
    Ok(count)
}

/// Lets no document of a job wait beyond a time. Returns how many did.
pub fn pull_in(tx: &mut Tx<'_>, place: Place, latest_ms: i64) -> Result<u64> {
    tx.execute(
        "UPDATE queue SET checktime = $3
         WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime > $3",
        &[place.part.into(), place.job.into(), latest_ms.into()],
    )
}

/// When the next waiting document of a job in a part falls due.
pub fn next_due(tx: &mut Tx<'_>, place: Place) -> Result<Option<i64>> {
    let due = tx.query_opt(
        "SELECT checktime FROM queue WHERE part = $1 AND jobid = $2 AND state = 'waiting'
         ORDER BY checktime, id LIMIT 1",
        &[place.part.into(), place.job.into()],
        |row| row.get(0),
    )?;
    Ok(due)
}
