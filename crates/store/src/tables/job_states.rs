//! Where jobs stand (table 11.16).
//!
//! The state is a few orthogonal fields; the names of table 11.24 are derived from them.
//! Invariant: a job's run number only grows, and grows in the transaction that starts
//! the run; nothing else is written for it.

use crate::ids::{JobId, NodeId, Run};
use crate::tables::jobs::{COLUMNS, COLUMNS_COUNT, Job};
use crate::{Error, Result, Tx};

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// `inactive`, `active` … as in the table.
    pub phase: String,
    /// The current or last run; 0 before the first.
    pub run: Run,
    /// When it began.
    pub start_ms: Option<i64>,
    /// When it ended well.
    pub end_ms: Option<i64>,
    /// Why it was aborted.
    pub error: Option<String>,
}

impl State {
    /// Whether its run is under way.
    pub fn is_active(&self) -> bool {
        self.phase == "active"
    }
}

/// A job that is inactive and has no run, unless it is there already.
pub(super) fn make(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    tx.execute(
        "INSERT INTO job_states (jobid, phase, minimal, paused, waiting, stopping, resuming, seeding,
             restart, repository_present, outputs_present, run, run_kind, lastchecktime, changed_ms)
         VALUES ($1, 'inactive', 0, 0, 0, 0, 0, 0, 'none', 1, 1, 0, 'full', 0, $2)
         ON CONFLICT (jobid) DO NOTHING",
        &[job.into(), now_ms.into()],
    )?;
    Ok(())
}

/// Where a job stands.
pub fn state(tx: &mut Tx<'_>, job: JobId) -> Result<State> {
    tx.query_one(
        "SELECT phase, run, starttime, endtime, errortext FROM job_states WHERE jobid = $1",
        &[job.into()],
        |row| {
            Ok(State {
                phase: row.get(0)?,
                run: row.get(1)?,
                start_ms: row.get(2)?,
                end_ms: row.get(3)?,
                error: row.get(4)?,
            })
        },
    )
}

/// Starts the next run of a job, or goes on with the one that was interrupted, in
/// the name of a node. Returns the run, and whether it is new.
pub fn start_run(tx: &mut Tx<'_>, job: JobId, node: NodeId, now_ms: i64) -> Result<(Run, bool)> {
    // Of two processes that start it together one makes the run, the other joins.
    lock(tx, job)?;
    let state = state(tx, job)?;
    tx.execute("UPDATE job_states SET node = $2 WHERE jobid = $1", &[job.into(), node.into()])?;
    match state.phase.as_str() {
        "active" => return Ok((state.run, false)),
        "inactive" => {}
        phase => {
            return Err(Error::Refused(format!("job {job} cannot start while it is {phase}")));
        }
    }
    let run = Run(state.run.0 + 1);
    let kind = if run.0 > 1 { "incremental" } else { "full" };
    tx.execute(
        "UPDATE job_states SET phase = 'active', run = $2, run_kind = $3, starttime = $4,
             endtime = NULL, errortext = NULL, changed_ms = $4
         WHERE jobid = $1",
        &[job.into(), run.into(), kind.into(), now_ms.into()],
    )?;
    tx.execute(
        "INSERT INTO runs (jobid, run, run_kind, started_ms) VALUES ($1, $2, $3, $4)",
        &[job.into(), run.into(), kind.into(), now_ms.into()],
    )?;
    Ok((run, true))
}

/// All known links of a job have been judged by these settings.
pub fn set_judged(tx: &mut Tx<'_>, job: JobId, judged: &str) -> Result<()> {
    tx.execute("UPDATE job_states SET judged = $2 WHERE jobid = $1", &[job.into(), judged.into()])?;
    Ok(())
}

/// What decided about a job's links when its last run began.
pub fn judged(tx: &mut Tx<'_>, job: JobId) -> Result<Option<String>> {
    let judged =
        tx.query_opt("SELECT judged FROM job_states WHERE jobid = $1", &[job.into()], |row| {
            row.get::<Option<String>>(0)
        })?;
    Ok(judged.flatten())
}

/// A job whose run somebody attends to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Attended {
    pub job: Job,
    pub run: Run,
}

/// Active jobs whose node has been heard of since a time. One whose process died is
/// interrupted: nobody works on it until somebody goes on with it.
pub fn attended(tx: &mut Tx<'_>, heard_since_ms: i64, limit: u32) -> Result<Vec<Attended>> {
    let columns: Vec<String> = COLUMNS.split(", ").map(|column| format!("d.{column}")).collect();
    tx.query(
        &format!(
            "SELECT {}, s.run FROM job_states s
             JOIN nodes n ON n.id = s.node
             JOIN job_definitions d ON d.id = s.jobid
             WHERE s.phase = 'active' AND s.paused = 0 AND n.heartbeat_ms >= $1
               AND n.state IN ('joining', 'ready', 'draining')
             ORDER BY d.priority, s.jobid LIMIT $2",
            columns.join(", ")
        ),
        &[heard_since_ms.into(), limit.into()],
        |row| Ok(Attended { job: Job::from_row(row)?, run: row.get(COLUMNS_COUNT)? }),
    )
}

/// Takes the place of the node that attends to an active job. False when there is no
/// place to take: the run is over, the job is paused, or it is this very node.
pub fn attend(tx: &mut Tx<'_>, job: JobId, node: NodeId) -> Result<bool> {
    let taken = tx.execute(
        "UPDATE job_states SET node = $2
         WHERE jobid = $1 AND phase = 'active' AND paused = 0 AND COALESCE(node, 0) <> $2",
        &[job.into(), node.into()],
    )?;
    Ok(taken == 1)
}

/// Locks a job's state for the rest of the transaction: whoever counts its documents
/// against a limit does it one after the other.
pub fn lock(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    tx.query_opt(
        "SELECT run FROM job_states WHERE jobid = $1 /*for update*/",
        &[job.into()],
        |_| Ok(()),
    )?;
    Ok(())
}

/// Ends a run that has done all there was to do.
pub fn end_run(tx: &mut Tx<'_>, job: JobId, run: Run, now_ms: i64) -> Result<()> {
    let ended = tx.execute(
        "UPDATE job_states SET phase = 'inactive', endtime = $3, lasttime = $3, changed_ms = $3
         WHERE jobid = $1 AND run = $2 AND phase = 'active'",
        &[job.into(), run.into(), now_ms.into()],
    )?;
    if ended != 1 {
        return Err(Error::Refused(format!("run {run} of job {job} is not the active one")));
    }
    tx.execute(
        "UPDATE runs SET ended_ms = $3, outcome = 'done' WHERE jobid = $1 AND run = $2",
        &[job.into(), run.into(), now_ms.into()],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionId;
    use crate::tables::connections::{self, Connection, Kind};
    use crate::tables::jobs;
    use crate::tables::nodes::{self, NewNode};
    use crate::testing::both_databases;

    fn job(id: i64, name: &str) -> Job {
        Job::new(JobId(id), name, ConnectionId(1))
    }

    #[test]
    fn an_interrupted_run_goes_on_and_an_ended_one_is_followed() {
        both_databases(|db| {
            db.write(|tx| jobs::save(tx, &job(1, "a"), 1))?;
            let node = NewNode {
                name: "n".into(),
                roles: "crawl".into(),
                address: None,
                version: "0".into(),
            };
            let node = db.write(move |tx| nodes::register(tx, &node, 5))?;
            let start = |now_ms| db.write(move |tx| start_run(tx, JobId(1), node, now_ms));
            assert_eq!(start(10)?, (Run(1), true));
            assert_eq!(start(20)?, (Run(1), false), "it was never ended");
            assert_eq!(db.read(|tx| judged(tx, JobId(1)))?, None);
            db.write(|tx| set_judged(tx, JobId(1), "rules"))?;
            assert_eq!(db.read(|tx| judged(tx, JobId(1)))?.as_deref(), Some("rules"));
            let attended = db.read(|tx| attended(tx, 5, 9))?;
            assert_eq!(attended, [Attended { job: job(1, "a"), run: Run(1) }]);
            assert_eq!(db.read(|tx| super::attended(tx, 6, 9))?, [], "its node is silent");
            let other = NewNode {
                name: "m".into(),
                roles: "crawl".into(),
                address: None,
                version: "0".into(),
            };
            let other = db.write(move |tx| nodes::register(tx, &other, 7))?;
            assert!(db.write(move |tx| attend(tx, JobId(1), other))?);
            assert!(!db.write(move |tx| attend(tx, JobId(1), other))?, "it does already");
            assert_eq!(db.read(|tx| super::attended(tx, 6, 9))?.len(), 1);
            db.write(|tx| end_run(tx, JobId(1), Run(1), 30))?;
            assert!(db.write(|tx| end_run(tx, JobId(1), Run(1), 31)).is_err(), "it has ended");
            assert!(!db.write(move |tx| attend(tx, JobId(1), node))?, "there is no run");
            assert_eq!(start(40)?, (Run(2), true));
            let now = db.read(|tx| state(tx, JobId(1)))?;
            assert_eq!((now.phase.as_str(), now.start_ms, now.end_ms), ("active", Some(40), None));
            Ok(())
        });
    }

    #[test]
    fn the_view_names_the_states_of_the_chapter() {
        both_databases(|db| {
            db.write(|tx| {
                let web = Connection {
                    id: ConnectionId(1),
                    name: "web".into(),
                    description: None,
                    classname: "web".into(),
                    config: "{}".into(),
                    maxcount: 1,
                    groupname: None,
                    authdomainname: None,
                    prerequisite: None,
                    history_ms: None,
                };
                connections::save(tx, Kind::Repository, &web, 0)?;
                jobs::save(tx, &job(1, "a"), 1)
            })?;
            let named = |change: &'static str| {
                db.write(move |tx| {
                    tx.execute(&format!("UPDATE job_states SET {change} WHERE jobid = 1"), &[])?;
                    tx.query_one("SELECT status FROM jobs WHERE id = 1", &[], |row| {
                        row.get::<String>(0)
                    })
                })
            };
            assert_eq!(named("phase = 'inactive'")?, "INACTIVE");
            assert_eq!(named("phase = 'active', seeding = 1")?, "ACTIVESEEDING");
            assert_eq!(named("outputs_present = 0")?, "ACTIVESEEDING_NOOUTPUT");
            assert_eq!(named("paused = 1, waiting = 1, seeding = 0")?, "PAUSEDWAIT");
            assert_eq!(
                named("phase = 'aborting', restart = 'minimal', seeding = 1")?,
                "ABORTINGFORRESTARTSEEDINGMINIMAL"
            );
            Ok(())
        });
    }
}
