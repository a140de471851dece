//! Walking a connection's activities by time, in either direction.
//!
//! Invariants: a page costs the rows it returns, however long the history is; a walk that
//! goes on behind the last row's [`Key`] sees every activity once.

use super::Activity;
use crate::ids::ConnectionId;
use crate::value::{Row, column};
use crate::{Result, Tx};

/// A place in the order of time: when an activity began, and its id.
pub type Key = (i64, i64);

/// Which activities, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ActivityQuery {
    pub connection: ConnectionId,
    /// From this time on.
    pub since_ms: i64,
    /// Activities that began before this time.
    pub until_ms: i64,
    pub newest_first: bool,
}

impl ActivityQuery {
    /// All that a connection has, the oldest first.
    pub fn all(connection: ConnectionId) -> ActivityQuery {
        ActivityQuery { connection, since_ms: i64::MIN, until_ms: i64::MAX, newest_first: false }
    }

    /// Where it begins: before the first activity.
    pub fn start(&self) -> Key {
        match self.newest_first {
            true => (self.until_ms, i64::MIN),
            false => (self.since_ms.saturating_sub(1), i64::MAX),
        }
    }
}

const ACTIVITY: &str = "id, connectionid, jobid, activitytype, entityid, datasize, resultcode, \
                        resultdesc, starttime, endtime";

impl Activity {
    fn from_row(row: &Row<'_>) -> Result<Activity> {
        Ok(Activity {
            id: row.get(column!(ACTIVITY, "id"))?,
            connection: row.get(column!(ACTIVITY, "connectionid"))?,
            job: row.get(column!(ACTIVITY, "jobid"))?,
            kind: row.get(column!(ACTIVITY, "activitytype"))?,
            entity: row.get(column!(ACTIVITY, "entityid"))?,
            bytes: row.get(column!(ACTIVITY, "datasize"))?,
            result: row.get(column!(ACTIVITY, "resultcode"))?,
            description: row.get(column!(ACTIVITY, "resultdesc"))?,
            start_ms: row.get(column!(ACTIVITY, "starttime"))?,
            end_ms: row.get(column!(ACTIVITY, "endtime"))?,
        })
    }
}

/// The next activities of a walk, behind a key.
pub fn page(
    tx: &mut Tx<'_>,
    walk: &ActivityQuery,
    after: Key,
    limit: u32,
) -> Result<Vec<Activity>> {
    let (condition, order, bound_ms) = match walk.newest_first {
        true => ("(starttime, id) < ($2, $3) AND starttime >= $4", "DESC", walk.since_ms),
        false => ("(starttime, id) > ($2, $3) AND starttime < $4", "ASC", walk.until_ms),
    };
    tx.query(
        &format!(
            "SELECT {ACTIVITY} FROM history
             WHERE connectionid = $1 AND {condition}
             ORDER BY starttime {order}, id {order} LIMIT $5"
        ),
        &[walk.connection.into(), after.0.into(), after.1.into(), bound_ms.into(), limit.into()],
        Activity::from_row,
    )
}

/// From when on there are at most `count` activities before a time; `None` if there are no
/// more than that.
pub fn reach(
    tx: &mut Tx<'_>,
    connection: ConnectionId,
    until_ms: i64,
    count: u32,
) -> Result<Option<i64>> {
    let first_left_out: Option<i64> = tx.query_opt(
        "SELECT starttime FROM history WHERE connectionid = $1 AND starttime < $2
         ORDER BY starttime DESC, id DESC LIMIT 1 OFFSET $3",
        &[connection.into(), until_ms.into(), count.into()],
        |row| row.get(0),
    )?;
    Ok(first_left_out.map(|start_ms| start_ms + 1))
}
