//! Jobs that their schedules may start or wake, and from when on schedules count.
//!
//! Invariant: nothing that a schedule named before it was defined starts its job.

use super::state::{JobState, STATE};
use crate::ids::JobId;
use crate::tables::jobs::StartMethod;
use crate::{Error, Result, Tx};

/// A job that a schedule may start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ScheduledJob {
    pub job: JobId,
    pub method: StartMethod,
    /// The version of its definition.
    pub version: i64,
    pub state: JobState,
    /// When its last run ended; `None` if it has had none, or one is under way.
    pub ran_ms: Option<i64>,
}

/// Jobs that schedules may start or wake: those that are inactive, or run. One that waits
/// for a window is among them though it has no schedule any more.
pub fn scheduled(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<ScheduledJob>> {
    let columns: Vec<String> = STATE.split(", ").map(|it| format!("s.{it}")).collect();
    tx.query(
        &format!(
            "SELECT d.id, d.startmethod, d.version, r.ended_ms, {} FROM job_definitions d
             JOIN job_states s ON s.jobid = d.id
             LEFT JOIN runs r ON r.jobid = d.id AND r.run = s.run
             WHERE (d.startmethod <> 'manual' AND s.phase IN ('inactive', 'active'))
                OR (s.phase = 'active' AND s.waiting = 1)
             ORDER BY d.id LIMIT $1",
            columns.join(", ")
        ),
        &[limit.into()],
        |row| {
            let method = row.get::<String>(1)?;
            let method = StartMethod::parse(&method)
                .ok_or_else(|| Error::corrupt("a job's start method", &method))?;
            let state = JobState::from_row(row, 4)?;
            let (job, version, ran_ms) = (row.get(0)?, row.get(2)?, row.get(3)?);
            Ok(ScheduledJob { job, method, version, state, ran_ms })
        },
    )
}

/// From when on a job's schedule counts, unless that is known.
pub fn set_last(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE job_states SET lasttime = $2 WHERE jobid = $1 AND lasttime IS NULL",
        &[job.into(), now_ms.into()],
    )?;
    Ok(())
}

/// Times that a job's schedule names count from now on. What was never looked at counts
/// from the first look on.
pub(in crate::tables) fn count_from(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE job_states SET lasttime = $2 WHERE jobid = $1 AND lasttime < $2",
        &[job.into(), now_ms.into()],
    )?;
    Ok(())
}
