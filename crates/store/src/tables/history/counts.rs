//! How many activities there are of each hour, by job, kind and result (`history_counts`).
//!
//! A report over months adds up a few thousand rows instead of millions. Relies on
//! [`super::append`] and [`super::step`] for being called with every row that comes or
//! goes; `verify` compares ([`differences`]).

use super::Activity;
use crate::ids::{ConnectionId, JobId, Part};
use crate::value::column;
use crate::{Result, Tx, Value};
use std::collections::BTreeMap;

/// What is counted together.
pub const HOUR_MS: i64 = 3_600_000;
/// Differences that are told: more of the same help nobody.
const DIFFERENCES_MAX: u32 = 100;

/// The hour that a time lies in.
pub fn hour_of(time_ms: i64) -> i64 {
    time_ms - time_ms % HOUR_MS
}

/// Activities of one job, kind and result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Count {
    pub job: Option<JobId>,
    pub kind: String,
    /// Empty for those that have none.
    pub result: String,
    pub activities: i64,
    pub bytes: i64,
}

/// What a count is of: connection, hour, job, kind and result.
type Key<'a> = (i64, i64, i64, &'a str, &'a str);

fn summed<'a>(activities: &'a [Activity]) -> BTreeMap<Key<'a>, (i64, i64)> {
    let mut sums: BTreeMap<Key<'a>, (i64, i64)> = BTreeMap::new();
    for it in activities {
        let job = it.job.map_or(0, |job| job.0);
        let result = it.result_class().unwrap_or_default();
        let key = (it.connection.0, hour_of(it.start_ms), job, it.kind.as_str(), result);
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + 1, sum.1 + it.bytes.unwrap_or(0));
    }
    sums
}

/// Counts activities that were written.
pub(super) fn add(tx: &mut Tx<'_>, part: Part, activities: &[Activity]) -> Result<()> {
    change(tx, part, activities, 1)
}

/// Counts activities out that are gone. What counts none goes, too.
pub(super) fn subtract(tx: &mut Tx<'_>, part: Part, activities: &[Activity]) -> Result<()> {
    change(tx, part, activities, -1)?;
    let keys: Vec<Key<'_>> = summed(activities).into_keys().collect();
    let Some(first_hour) = keys.iter().map(|key| key.1).min() else { return Ok(()) };
    let last_hour = keys.iter().map(|key| key.1).max().unwrap_or(first_hour);
    let mut connections: Vec<i64> = keys.iter().map(|key| key.0).collect();
    connections.dedup();
    for connection in connections {
        tx.execute(
            "DELETE FROM history_counts WHERE part = $1 AND connectionid = $2
               AND hour >= $3 AND hour <= $4 AND activities = 0",
            &[part.into(), connection.into(), first_hour.into(), last_hour.into()],
        )?;
    }
    Ok(())
}

fn change(tx: &mut Tx<'_>, part: Part, activities: &[Activity], sign: i64) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = summed(activities)
        .into_iter()
        .map(|((connection, hour, job, kind, result), (count, bytes))| {
            vec![
                part.into(),
                connection.into(),
                hour.into(),
                job.into(),
                kind.into(),
                result.into(),
                (sign * count).into(),
                (sign * bytes).into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO history_counts (part, connectionid, hour, jobid, activitytype, resultcode,
                                     activities, bytes)",
        &rows,
        "ON CONFLICT (part, connectionid, hour, jobid, activitytype, resultcode) DO UPDATE SET
             activities = history_counts.activities + excluded.activities,
             bytes = history_counts.bytes + excluded.bytes",
    )?;
    Ok(())
}

/// The counts of a connection over whole hours, from one to before another, summed; at
/// most `limit` of them.
pub fn between(
    tx: &mut Tx<'_>,
    connection: ConnectionId,
    since_ms: i64,
    until_ms: i64,
    limit: u32,
) -> Result<Vec<Count>> {
    tx.query(
        &format!(
            "SELECT {COUNT} FROM history_counts
             WHERE connectionid = $1 AND hour >= $2 AND hour < $3
             GROUP BY jobid, activitytype, resultcode
             ORDER BY jobid, activitytype, resultcode LIMIT $4"
        ),
        &[connection.into(), since_ms.into(), until_ms.into(), limit.into()],
        |row| {
            let job: JobId = row.get(column!(COUNT, "jobid"))?;
            Ok(Count {
                job: Some(job).filter(|job| job.0 != 0),
                kind: row.get(column!(COUNT, "activitytype"))?,
                result: row.get(column!(COUNT, "resultcode"))?,
                activities: row.get(column!(COUNT, "all_activities"))?,
                bytes: row.get(column!(COUNT, "all_bytes"))?,
            })
        },
    )
}

const COUNT: &str = "jobid, activitytype, resultcode,
    CAST(SUM(activities) AS BIGINT) AS all_activities, CAST(SUM(bytes) AS BIGINT) AS all_bytes";

/// A count that is not what the rows say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Difference {
    pub part: Part,
    pub connection: ConnectionId,
    pub hour: i64,
    pub kind: String,
    pub result: String,
    /// Activities and bytes that are kept.
    pub kept: (i64, i64),
    /// Activities and bytes that there are.
    pub counted: (i64, i64),
}

const DIFFERENCE: &str = "part, connectionid, hour, activitytype, resultcode,
    CAST(SUM(kept) AS BIGINT) AS all_kept, CAST(SUM(kept_bytes) AS BIGINT) AS all_kept_bytes,
    CAST(SUM(counted) AS BIGINT) AS all_counted,
    CAST(SUM(counted_bytes) AS BIGINT) AS all_counted_bytes";

/// Counts that are not what the rows say, of all parts: rows lie in the order of time, and one
/// walk over them is enough.
pub fn differences(tx: &mut Tx<'_>) -> Result<Vec<Difference>> {
    tx.query(
        &format!(
            "SELECT {DIFFERENCE} FROM (
                 SELECT part, connectionid, hour, jobid, activitytype, resultcode,
                        activities AS kept, bytes AS kept_bytes, 0 AS counted, 0 AS counted_bytes
                 FROM history_counts
                 UNION ALL
                 SELECT part, connectionid, starttime - starttime % $1, COALESCE(jobid, 0),
                        activitytype, COALESCE(resultcode, ''), 0, 0, 1, COALESCE(datasize, 0)
                 FROM history) AS sides
             GROUP BY part, connectionid, hour, jobid, activitytype, resultcode
             HAVING SUM(kept) <> SUM(counted) OR SUM(kept_bytes) <> SUM(counted_bytes)
             ORDER BY part, connectionid, hour LIMIT $2"
        ),
        &[HOUR_MS.into(), DIFFERENCES_MAX.into()],
        |row| {
            Ok(Difference {
                part: row.get(column!(DIFFERENCE, "part"))?,
                connection: row.get(column!(DIFFERENCE, "connectionid"))?,
                hour: row.get(column!(DIFFERENCE, "hour"))?,
                kind: row.get(column!(DIFFERENCE, "activitytype"))?,
                result: row.get(column!(DIFFERENCE, "resultcode"))?,
                kept: (
                    row.get(column!(DIFFERENCE, "all_kept"))?,
                    row.get(column!(DIFFERENCE, "all_kept_bytes"))?,
                ),
                counted: (
                    row.get(column!(DIFFERENCE, "all_counted"))?,
                    row.get(column!(DIFFERENCE, "all_counted_bytes"))?,
                ),
            })
        },
    )
}
