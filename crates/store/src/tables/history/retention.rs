//! Forgetting what is older than its connection keeps, what belongs to none, and of looks that
//! found nothing new those that are too many.
//!
//! Relies on the history lying in the order of time: the oldest are found without looking at
//! the rest, and what is forgotten lies side by side.
//! Invariants: a step is bounded, and each of its transactions is about one part; what two
//! processes forget at once is counted out once.

use super::{Activity, Key, NOTHING_NEW, UNCHANGED, counts, says_nothing_new};
use crate::ids::{ConnectionId, Part};
use crate::value::column;
use crate::{Db, Result, Tx};
use std::collections::BTreeSet;

/// The next connection that has a history, after one, and how long it is kept: `Some(None)`
/// keeps it for ever, and of a connection that is gone nothing is kept (`Some(Some(0))`).
pub fn retention_after(
    tx: &mut Tx<'_>,
    after: ConnectionId,
) -> Result<Option<(ConnectionId, Option<i64>)>> {
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

/// A stretch of a connection's history, and what of it is to be forgotten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub connection: ConnectionId,
    /// What lies behind this key.
    pub after: Key,
    /// The last of it.
    pub last: Key,
    /// Only looks that found nothing new.
    pub only_nothing_new: bool,
}

/// What an activity is counted by.
const COUNTED: &str = "id, connectionid, jobid, activitytype, datasize, resultcode, starttime";

/// Forgets what a part has in a stretch, and counts it out. Returns how many there were.
pub(super) fn remove(tx: &mut Tx<'_>, part: Part, stretch: Stretch) -> Result<u64> {
    let Stretch { connection, after, last, only_nothing_new } = stretch;
    let gone: Vec<Activity> = tx.query(
        &format!(
            "DELETE FROM history
             WHERE part = $1 AND connectionid = $2
               AND (starttime, id) > ($3, $4) AND (starttime, id) <= ($5, $6)
               AND (CAST($7 AS BIGINT) = 0 OR resultcode IN ($8, $9)
                    OR SUBSTR(resultdesc, 1, CAST($10 AS INTEGER)) = $11)
             RETURNING {COUNTED}"
        ),
        &[
            part.into(),
            connection.into(),
            after.0.into(),
            after.1.into(),
            last.0.into(),
            last.1.into(),
            i64::from(only_nothing_new).into(),
            UNCHANGED[0].into(),
            UNCHANGED[1].into(),
            (NOTHING_NEW.len() as i64).into(),
            NOTHING_NEW.into(),
        ],
        |row| {
            Ok(Activity {
                id: row.get(column!(COUNTED, "id"))?,
                connection: row.get(column!(COUNTED, "connectionid"))?,
                job: row.get(column!(COUNTED, "jobid"))?,
                kind: row.get(column!(COUNTED, "activitytype"))?,
                entity: String::new(),
                bytes: row.get(column!(COUNTED, "datasize"))?,
                result: row.get(column!(COUNTED, "resultcode"))?,
                description: None,
                start_ms: row.get(column!(COUNTED, "starttime"))?,
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
    let found: Vec<(Part, Key)> = db.read(move |tx| {
        tx.query(
            "SELECT part, starttime, id FROM history WHERE connectionid = $1 AND starttime < $2
             ORDER BY starttime, id LIMIT $3",
            &[connection.into(), before_ms.into(), limit.into()],
            |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))),
        )
    })?;
    let Some((_, last)) = found.last().copied() else { return Ok(0) };
    let after = (i64::MIN, i64::MIN);
    let stretch = Stretch { connection, after, last, only_nothing_new: false };
    let parts: BTreeSet<Part> = found.iter().map(|(part, _)| *part).collect();
    for part in parts {
        db.write(move |tx| remove(tx, part, stretch))?;
    }
    Ok(found.len() as u64)
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

/// What shows whether an activity is a look that found nothing new.
const LOOK: &str = "part, id, starttime, resultcode, resultdesc";

/// Looks at the next `limit` activities of a connection behind a key that began before a time,
/// and forgets those that are looks which found nothing new, at most `count` of them. Returns
/// how far it came, and whether it came to the end.
pub fn thin(
    db: &Db,
    connection: ConnectionId,
    after: Key,
    before_ms: i64,
    count: i64,
    limit: u32,
) -> Result<(Key, bool)> {
    let rows: Vec<(Part, Key, bool)> = db.read(move |tx| {
        tx.query(
            &format!(
                "SELECT {LOOK} FROM history
                 WHERE connectionid = $1 AND (starttime, id) > ($2, $3) AND starttime < $4
                 ORDER BY starttime, id LIMIT $5"
            ),
            &[connection.into(), after.0.into(), after.1.into(), before_ms.into(), limit.into()],
            |row| {
                let result: Option<String> = row.get(column!(LOOK, "resultcode"))?;
                let description: Option<String> = row.get(column!(LOOK, "resultdesc"))?;
                let is_doomed = says_nothing_new(result.as_deref(), description.as_deref());
                let key = (row.get(column!(LOOK, "starttime"))?, row.get(column!(LOOK, "id"))?);
                Ok((row.get(column!(LOOK, "part"))?, key, is_doomed))
            },
        )
    })?;
    let (mut reached, mut left) = (after, count);
    let mut parts = BTreeSet::new();
    let mut is_end = rows.len() < limit as usize;
    for (part, key, is_doomed) in rows {
        if left == 0 {
            is_end = false;
            break;
        }
        reached = key;
        if is_doomed {
            left -= 1;
            parts.insert(part);
        }
    }
    let stretch = Stretch { connection, after, last: reached, only_nothing_new: true };
    for part in parts {
        db.write(move |tx| remove(tx, part, stretch))?;
    }
    Ok((reached, is_end))
}
