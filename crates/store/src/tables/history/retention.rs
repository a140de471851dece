//! Forgetting what is older than its connection keeps, what belongs to none, and of looks that
//! found nothing new those that are too many.
//!
//! Relies on the index by time for finding the oldest without looking at the rest.
//! Invariants: a step is bounded, and each of its transactions is about one part; what two
//! processes forget at once is counted out once.

use super::{Activity, Key, counts, says_nothing_new};
use crate::ids::{ConnectionId, Part};
use crate::{Db, Result, Tx, Value};
use std::collections::BTreeMap;

/// The next connection that has a history, after one, and how long it is kept: `Some(None)`
/// keeps it for ever, and of a connection that is gone nothing is kept (`Some(Some(0))`).
pub fn kept(tx: &mut Tx<'_>, after: ConnectionId) -> Result<Option<(ConnectionId, Option<i64>)>> {
    let next: Option<ConnectionId> = tx.query_opt(
        "SELECT connectionid FROM history WHERE connectionid > $1
         ORDER BY connectionid, starttime, id LIMIT 1",
        &[after.into()],
        |row| row.get(0),
    )?;
    let Some(next) = next else { return Ok(None) };
    let kept: Option<Option<i64>> =
        tx.query_opt("SELECT history_ms FROM connections WHERE id = $1", &[next.into()], |row| {
            row.get(0)
        })?;
    Ok(Some((next, kept.unwrap_or(Some(0)))))
}

/// The oldest activities of a connection that began before a time, by part.
pub fn oldest(
    tx: &mut Tx<'_>,
    connection: ConnectionId,
    before_ms: i64,
    limit: u32,
) -> Result<BTreeMap<Part, Vec<i64>>> {
    let rows: Vec<(Part, i64)> = tx.query(
        "SELECT part, id FROM history WHERE connectionid = $1 AND starttime < $2
         ORDER BY starttime, id LIMIT $3",
        &[connection.into(), before_ms.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut found: BTreeMap<Part, Vec<i64>> = BTreeMap::new();
    for (part, id) in rows {
        found.entry(part).or_default().push(id);
    }
    Ok(found)
}

/// Forgets activities of a part, and counts them out. Returns how many were there.
pub fn remove(tx: &mut Tx<'_>, part: Part, ids: &[i64]) -> Result<u64> {
    let ids: Vec<Value<'_>> = ids.iter().map(|id| (*id).into()).collect();
    let gone: Vec<Activity> = tx.query_in(
        "DELETE FROM history WHERE part = $1 AND id",
        &[part.into()],
        &ids,
        "RETURNING id, connectionid, jobid, activitytype, datasize, resultcode, starttime",
        |row| {
            Ok(Activity {
                id: row.get(0)?,
                connection: row.get(1)?,
                job: row.get(2)?,
                kind: row.get(3)?,
                entity: String::new(),
                bytes: row.get(4)?,
                result: row.get(5)?,
                description: None,
                start_ms: row.get(6)?,
                end_ms: 0,
            })
        },
    )?;
    counts::subtract(tx, part, &gone)?;
    Ok(gone.len() as u64)
}

/// Forgets at most `limit` activities of a connection that began before a time, the oldest
/// first. Returns how many were found; call again while it is `limit`.
pub fn step(db: &Db, connection: ConnectionId, before_ms: i64, limit: u32) -> Result<u64> {
    let found = db.read(move |tx| oldest(tx, connection, before_ms, limit))?;
    let mut count = 0;
    for (part, ids) in found {
        count += ids.len() as u64;
        db.write(move |tx| remove(tx, part, &ids))?;
    }
    Ok(count)
}

/// Activities that a connection keeps for each document of its jobs before looks that found
/// nothing new are forgotten. With a look a day and every tenth changed, three months of changes
/// fit beside some days of such looks; it is about what the document's own rows take.
pub const PER_DOCUMENT_MAX: i64 = 10;
/// Activities that it keeps in any case.
pub const ACTIVITIES_MIN: i64 = 5_000;

/// How many activities a connection has beyond what it keeps for its documents.
pub fn excess(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<i64> {
    let activities: i64 = tx.query_one(
        "SELECT COALESCE(CAST(SUM(activities) AS BIGINT), 0) FROM history_counts
         WHERE connectionid = $1",
        &[connection.into()],
        |row| row.get(0),
    )?;
    if activities <= ACTIVITIES_MIN {
        return Ok(0);
    }
    let documents: i64 = tx.query_one(
        "SELECT COALESCE(CAST(SUM(c.value) AS BIGINT), 0) FROM counters c
         JOIN job_definitions d ON d.id = c.jobid
         WHERE d.connectionid = $1 AND c.name IN ('ready', 'waiting', 'active', 'done', 'failed')",
        &[connection.into()],
        |row| row.get(0),
    )?;
    Ok((activities - ACTIVITIES_MIN.max(documents.saturating_mul(PER_DOCUMENT_MAX))).max(0))
}

/// Looks at the next `limit` activities of a connection behind a key that began before a time,
/// and forgets those that are looks which found nothing new, at most `count` of them. Returns
/// how far it came, and whether it came to the end.
pub fn thin(
    db: &Db,
    (connection, after): (ConnectionId, Key),
    (before_ms, count): (i64, i64),
    limit: u32,
) -> Result<(Key, bool)> {
    let rows: Vec<(Part, Key, bool)> = db.read(move |tx| {
        tx.query(
            "SELECT part, id, starttime, resultcode, resultdesc FROM history
             WHERE connectionid = $1 AND (starttime, id) > ($2, $3) AND starttime < $4
             ORDER BY starttime, id LIMIT $5",
            &[connection.into(), after.0.into(), after.1.into(), before_ms.into(), limit.into()],
            |row| {
                let (result, description): (Option<String>, Option<String>) =
                    (row.get(3)?, row.get(4)?);
                let is_doomed = says_nothing_new(result.as_deref(), description.as_deref());
                Ok((row.get(0)?, (row.get(2)?, row.get(1)?), is_doomed))
            },
        )
    })?;
    let is_end = rows.len() < limit as usize;
    let (mut reached, mut left) = (after, count);
    let mut doomed: BTreeMap<Part, Vec<i64>> = BTreeMap::new();
    for (part, key, is_doomed) in rows {
        if left == 0 {
            break;
        }
        reached = key;
        if is_doomed {
            left -= 1;
            doomed.entry(part).or_default().push(key.1);
        }
    }
    for (part, ids) in doomed {
        db.write(move |tx| remove(tx, part, &ids))?;
    }
    Ok((reached, is_end))
}
