//! Numbers over many rows, kept so that nobody has to count: per part, per job.
//!
//! Invariant (the fifth of ARCHITECTURE.md): a counter is changed in the same transaction as the
//! rows it counts, so at every commit it equals the count; `verify` compares them.

use crate::ids::{JobId, Part};
use crate::{Result, Tx};
use std::collections::BTreeMap;

/// Names of counters that a job has; there are a few dozen.
const NAMES_MAX: i64 = 100;

/// Adds to counters of a job in a part. Zero deltas cost nothing.
pub fn add(tx: &mut Tx<'_>, part: Part, job: JobId, deltas: &[(&str, i64)]) -> Result<()> {
    let rows: Vec<_> = deltas
        .iter()
        .filter(|(_, delta)| *delta != 0)
        .map(|(name, delta)| vec![part.into(), job.into(), (*name).into(), (*delta).into()])
        .collect();
    tx.insert_rows(
        "INSERT INTO counters (part, jobid, name, value)",
        &rows,
        "ON CONFLICT (part, jobid, name) DO UPDATE SET value = counters.value + excluded.value",
    )?;
    Ok(())
}

/// The counters of a job, summed over all parts. There are a few dozen names.
pub fn of_job(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<(String, i64)>> {
    tx.query(
        "SELECT name, CAST(SUM(value) AS BIGINT) FROM counters WHERE jobid = $1
         GROUP BY name ORDER BY name LIMIT 1000",
        &[job.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The counters of all jobs, summed over all parts, in one look at a small table.
pub fn of_jobs(tx: &mut Tx<'_>, jobs_max: u32) -> Result<BTreeMap<JobId, Vec<(String, i64)>>> {
    let rows: Vec<(JobId, String, i64)> = tx.query(
        "SELECT jobid, name, CAST(SUM(value) AS BIGINT) FROM counters WHERE jobid > 0
         GROUP BY jobid, name ORDER BY jobid, name LIMIT $1",
        &[(i64::from(jobs_max) * NAMES_MAX).into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut found: BTreeMap<JobId, Vec<(String, i64)>> = BTreeMap::new();
    for (job, name, value) in rows {
        found.entry(job).or_default().push((name, value));
    }
    Ok(found)
}

/// The counters of a job in one part.
pub fn in_part(tx: &mut Tx<'_>, part: Part, job: JobId) -> Result<Vec<(String, i64)>> {
    tx.query(
        "SELECT name, value FROM counters WHERE part = $1 AND jobid = $2 ORDER BY name LIMIT 1000",
        &[part.into(), job.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The counters of all jobs in one part, for `verify`.
pub fn of_part(tx: &mut Tx<'_>, part: Part, limit: u32) -> Result<Vec<(JobId, String, i64)>> {
    tx.query(
        "SELECT jobid, name, value FROM counters WHERE part = $1 AND jobid > 0
         ORDER BY jobid, name LIMIT $2",
        &[part.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

/// Pages that a job has let in: all documents but those that are cut, and requisites.
pub fn pages_let_in(tx: &mut Tx<'_>, job: JobId) -> Result<i64> {
    tx.query_one(
        "SELECT COALESCE(CAST(SUM(CASE WHEN name = 'requisites' THEN -value ELSE value END)
                              AS BIGINT), 0) FROM counters
         WHERE jobid = $1
           AND name IN ('ready', 'waiting', 'active', 'done', 'failed', 'requisites')",
        &[job.into()],
        |row| row.get(0),
    )
}

/// Parts that have something of a job, from one on.
pub fn parts_of(tx: &mut Tx<'_>, job: JobId, from: Part, limit: u32) -> Result<Vec<Part>> {
    tx.query(
        "SELECT DISTINCT part FROM counters WHERE jobid = $1 AND part >= $2 ORDER BY part LIMIT $3",
        &[job.into(), from.into(), limit.into()],
        |row| row.get(0),
    )
}

/// Parts in which a counter of a job is above zero, from one on.
pub fn parts_with(
    tx: &mut Tx<'_>,
    job: JobId,
    name: &str,
    from: Part,
    limit: u32,
) -> Result<Vec<Part>> {
    tx.query(
        "SELECT part FROM counters WHERE jobid = $1 AND name = $2 AND value > 0 AND part >= $3
         ORDER BY part LIMIT $4",
        &[job.into(), name.into(), from.into(), limit.into()],
        |row| row.get(0),
    )
}

/// One counter of a job, summed over all parts.
pub fn total(tx: &mut Tx<'_>, job: JobId, name: &str) -> Result<i64> {
    tx.query_one(
        "SELECT COALESCE(CAST(SUM(value) AS BIGINT), 0) FROM counters WHERE jobid = $1 AND name = $2",
        &[job.into(), name.into()],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    #[test]
    fn counters_add_up_over_parts() {
        both_databases(|db| {
            let job = JobId(7);
            for (part, delta) in [(0, 3), (1, 4), (0, -1)] {
                db.write(move |tx| add(tx, Part(part), job, &[("ready", delta), ("done", 0)]))?;
            }
            assert_eq!(db.read(move |tx| of_job(tx, job))?, [("ready".to_owned(), 6)]);
            assert_eq!(db.read(move |tx| total(tx, job, "ready"))?, 6);
            assert_eq!(db.read(move |tx| parts_of(tx, job, Part(0), 9))?, [Part(0), Part(1)]);
            assert_eq!(db.read(move |tx| parts_of(tx, job, Part(1), 9))?, [Part(1)]);
            assert_eq!(db.read(move |tx| total(tx, job, "never"))?, 0);
            assert_eq!(db.read(move |tx| pages_let_in(tx, job))?, 6);
            db.write(|tx| add(tx, Part(2), JobId(8), &[("failed", 0), ("done", 2)]))?;
            db.write(|tx| add(tx, Part(3), JobId(8), &[("done", 1)]))?;
            let all = db.read(|tx| of_jobs(tx, 9))?;
            let done = vec![("done".to_owned(), 3)];
            assert_eq!(all, [(job, vec![("ready".to_owned(), 6)]), (JobId(8), done)].into());
            let with = |name: &'static str, from| {
                db.read(move |tx| parts_with(tx, JobId(8), name, Part(from), 9))
            };
            assert_eq!(with("done", 0)?, [Part(2), Part(3)]);
            assert_eq!((with("done", 3)?, with("ready", 0)?), (vec![Part(3)], vec![]));
            Ok(())
        });
    }
}
