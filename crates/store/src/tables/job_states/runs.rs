//! The runs that a job has had: what is told of its past.
//!
//! A run's row is made and ended by [`super::save`]. Invariant: a list costs the rows it
//! returns.

use crate::ids::{JobId, Run};
use crate::value::Row;
use crate::{Result, Tx};

/// One run.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[allow(missing_docs)]
pub struct RunRow {
    pub run: i64,
    /// What it meant for older documents: `full`, `incremental`, `partial`, `changes only`.
    pub kind: String,
    pub started_ms: i64,
    /// `None` while it is under way.
    pub ended_ms: Option<i64>,
    /// `done` or `aborted`, when it has ended.
    pub outcome: Option<String>,
    /// Why it was aborted, unless somebody did it.
    pub error: Option<String>,
}

/// The last runs of a job before one, the newest first.
pub fn last(tx: &mut Tx<'_>, job: JobId, before: Run, limit: u32) -> Result<Vec<RunRow>> {
    tx.query(
        "SELECT run, run_kind, started_ms, ended_ms, outcome, errortext FROM runs
         WHERE jobid = $1 AND run < $2 ORDER BY run DESC LIMIT $3",
        &[job.into(), before.into(), limit.into()],
        row_of,
    )
}

/// Runs of a job after one that have ended: those that ended with an error first, then from
/// the newest.
pub fn ended_after(tx: &mut Tx<'_>, job: JobId, after: Run, limit: u32) -> Result<Vec<RunRow>> {
    tx.query(
        "SELECT run, run_kind, started_ms, ended_ms, outcome, errortext FROM runs
         WHERE jobid = $1 AND run > $2 AND ended_ms IS NOT NULL
         ORDER BY CASE WHEN errortext IS NULL THEN 1 ELSE 0 END, run DESC LIMIT $3",
        &[job.into(), after.into(), limit.into()],
        row_of,
    )
}

fn row_of(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        run: row.get(0)?,
        kind: row.get(1)?,
        started_ms: row.get(2)?,
        ended_ms: row.get(3)?,
        outcome: row.get(4)?,
        error: row.get(5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionId;
    use crate::tables::job_states::{JobState, Phase, RunKind, save, state};
    use crate::tables::jobs::{self, Job};
    use crate::testing::both_databases;

    #[test]
    fn runs_are_listed_from_the_newest_with_how_they_ended() {
        both_databases(|db| {
            let job = JobId(1);
            db.write(move |tx| {
                jobs::save(tx, &Job::new(job, "a", ConnectionId(1)), 1)?;
                jobs::save(tx, &Job::new(JobId(2), "b", ConnectionId(1)), 1)
            })?;
            let step = |now_ms: i64, change: fn(&mut JobState)| {
                db.write(move |tx| {
                    let before = state(tx, job)?;
                    let mut now = before.clone();
                    change(&mut now);
                    save(tx, job, &before, &now, now_ms)
                })
            };
            step(10, |it| {
                (it.phase, it.run, it.run_kind) = (Phase::Active, Run(1), RunKind::Full)
            })?;
            step(20, |it| (it.phase, it.end_ms) = (Phase::Inactive, Some(20)))?;
            step(30, |it| {
                (it.phase, it.run, it.end_ms) = (Phase::Active, Run(2), None);
            })?;
            step(40, |it| (it.phase, it.error) = (Phase::Inactive, Some("no disk".into())))?;
            step(50, |it| (it.phase, it.run) = (Phase::Active, Run(3)))?;
            let row =
                |run, started_ms, ended_ms, outcome: Option<&str>, error: Option<&str>| RunRow {
                    run,
                    kind: "full".into(),
                    started_ms,
                    ended_ms,
                    outcome: outcome.map(str::to_owned),
                    error: error.map(str::to_owned),
                };
            let newest = row(3, 50, None, None, None);
            let failed = row(2, 30, Some(40), Some("aborted"), Some("no disk"));
            let first = row(1, 10, Some(20), Some("done"), None);
            let all = db.read(move |tx| last(tx, job, Run(i64::MAX), 9))?;
            assert_eq!(all, [newest, failed.clone(), first]);
            assert_eq!(db.read(move |tx| last(tx, job, Run(3), 1))?, [failed]);
            assert_eq!(db.read(|tx| last(tx, JobId(2), Run(i64::MAX), 9))?, []);
            let ended = |after, limit| {
                let rows = db.read(move |tx| ended_after(tx, job, Run(after), limit))?;
                Ok::<_, crate::Error>(rows.iter().map(|it| it.run).collect::<Vec<_>>())
            };
            assert_eq!(ended(0, 9)?, [2, 1], "one that is under way has not ended");
            step(60, |it| (it.phase, it.end_ms, it.error) = (Phase::Inactive, Some(60), None))?;
            assert_eq!(ended(0, 9)?, [2, 3, 1]);
            assert_eq!(
                (ended(2, 9)?, ended(0, 1)?),
                (vec![3], vec![2]),
                "errors are left out last"
            );
            Ok(())
        });
    }
}
