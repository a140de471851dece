//! Documents that are looked at again, or after all, because something else has changed:
//! how far they are from the seeds, or what they were handed.
//!
//! Invariant: as for adding, doing it twice does it once, and it needs no lease; whoever
//! works on a document just now looks at it again afterwards.

use super::add::{mark_bins, take_room};
use super::counting::{Move, count_moves, count_uncut};
use super::role::become_pages;
use super::{AddContext, Place, State};
use crate::chunkfile::document::DocumentRole;
use crate::ids::{BinId, QueueId};
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::BTreeSet;

/// Has documents looked at again that are done with, or will be: now, not at their time.
/// Returns the bins that have something ready because of it.
pub fn look_again(tx: &mut Tx<'_>, place: Place, keys: &[DocHash]) -> Result<BTreeSet<BinId>> {
    let ids = ids_of(tx, place, keys)?;
    afterwards(tx, place, &ids)?;
    let mut woken = BTreeSet::new();
    for state in [State::Done, State::Waiting] {
        let bins: Vec<BinId> = tx.query_in(
            "UPDATE queue SET state = 'ready', action = 'fetch', checktime = NULL
             WHERE part = $1 AND state = $2 AND (state <> 'waiting' OR reason IS NULL)
               AND id IN ($keys)
             RETURNING bin",
            &[place.part.into(), state.name().into()],
            &ids,
            |row| row.get(0),
        )?;
        count_uncut(tx, place, state, State::Ready, bins.len() as i64)?;
        woken.extend(bins);
    }
    mark_bins(tx, place, woken.iter().copied())?;
    Ok(woken)
}

/// Lets documents in that were too far from every seed, as far as there is room; those that were
/// only requisites become pages. Returns the bins that have something ready because of it.
pub fn let_in(tx: &mut Tx<'_>, adding: AddContext, keys: &[DocHash]) -> Result<BTreeSet<BinId>> {
    let AddContext { place, mut room, .. } = adding;
    let keys = ids_of(tx, place, keys)?;
    afterwards(tx, place, &keys)?;
    let ids: Vec<QueueId> = keys
        .iter()
        .filter_map(|key| if let Value::Int(id) = key { Some(QueueId(*id)) } else { None })
        .collect();
    let mut woken = become_pages(tx, place, ids, &mut room)?;
    let cut: Vec<QueueId> = tx.query_in(
        "SELECT id FROM queue WHERE part = $1 AND state = 'cut' AND reason = 'hops'
           AND id IN ($keys)
         ORDER BY id /*for update*/",
        &[place.part.into()],
        &keys,
        |row| row.get(0),
    )?;
    let (inside, outside): (Vec<QueueId>, Vec<QueueId>) =
        cut.into_iter().partition(|_| take_room(&mut room));
    let outside: Vec<Value<'_>> = outside.into_iter().map(Into::into).collect();
    tx.query_in(
        "UPDATE queue SET reason = 'limit', detail = NULL
         WHERE part = $1 AND state = 'cut' AND id IN ($keys)
         RETURNING id",
        &[place.part.into()],
        &outside,
        |_| Ok(()),
    )?;
    let inside: Vec<Value<'_>> = inside.into_iter().map(Into::into).collect();
    let bins: Vec<BinId> = tx.query_in(
        "UPDATE queue SET state = 'ready', reason = NULL, detail = NULL
         WHERE part = $1 AND state = 'cut' AND id IN ($keys)
         RETURNING bin",
        &[place.part.into()],
        &inside,
        |row| row.get(0),
    )?;
    let (from, to, role) = (State::Cut, State::Ready, DocumentRole::Page);
    count_moves(tx, place, &[Move { from, to, role, count: bins.len() as i64 }])?;
    woken.extend(bins);
    mark_bins(tx, place, woken.iter().copied())?;
    Ok(woken)
}

/// What is at work on just now is looked at once more.
fn afterwards(tx: &mut Tx<'_>, place: Place, ids: &[Value<'_>]) -> Result<()> {
    tx.query_in(
        "UPDATE queue SET rescan = 1 WHERE part = $1 AND state = 'active' AND id IN ($keys)
         RETURNING id",
        &[place.part.into()],
        ids,
        |_| Ok(()),
    )?;
    Ok(())
}

/// The rows of documents, in the order in which all lock.
fn ids_of(tx: &mut Tx<'_>, place: Place, keys: &[DocHash]) -> Result<Vec<Value<'static>>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Into::into).collect();
    let ids = tx.query_in(
        "SELECT id FROM queue WHERE part = $1 AND +jobid = $2 AND dochash IN ($keys)",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| row.get::<QueueId>(0),
    )?;
    let ids: BTreeSet<QueueId> = ids.into_iter().collect();
    Ok(ids.into_iter().map(Into::into).collect())
}
