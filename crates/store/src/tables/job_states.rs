//! Where jobs stand (table 11.16).
//!
//! The state is a few orthogonal fields; the names of table 11.24 are derived from them.
//! Invariant: a job's run number only grows, and grows in the transaction that starts
//! the run; nothing else is written for it.

mod due;
pub mod refetch;
pub mod runs;
mod state;
#[cfg(test)]
mod view_tests;

pub(super) use due::count_from;
pub use due::{ScheduledJob, scheduled, set_last};
pub use state::{AbortedFrom, JobState, Phase, RemovalRounds, Restart, RunKind};

use crate::checksums::coverage::JOB_STATES;
use crate::ids::{JobId, NodeId, Part, Run};
use crate::tables::connections;
use crate::tables::hopfilters::{self, HopFilters};
use crate::tables::jobs::{self, COLUMNS, COLUMNS_COUNT, Job};
use crate::tables::outlets::{self, Outlet};
use crate::{Error, Result, Tx, Value, checksums};
use state::STATE;

/// A job that is inactive and has no run, unless it is there already.
pub(crate) fn make(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    tx.execute(
        "INSERT INTO job_states (jobid, phase, minimal, paused, waiting, stopping, resuming, seeding,
             restart, repository_present, outputs_present, run, run_kind, lastchecktime, changed_ms,
             checksum)
         VALUES ($1, 'inactive', 0, 0, 0, 0, 0, 0, 'none', 1, 1, 0, 'full', 0, $2, $3)
         ON CONFLICT (jobid) DO NOTHING",
        &[job.into(), now_ms.into(), checksum(job, &JobState::default()).into()],
    )?;
    Ok(())
}

/// The checksum of a job's row in a state.
fn checksum(job: JobId, state: &JobState) -> i64 {
    let mut values: Vec<Value<'_>> = vec![job.into()];
    values.extend(state.to_row());
    JOB_STATES.places(&format!("jobid, {STATE}")).of(&values)
}

/// Where a job stands.
pub fn state(tx: &mut Tx<'_>, job: JobId) -> Result<JobState> {
    let sql = format!("SELECT {STATE} FROM job_states WHERE jobid = $1");
    tx.query_one(&sql, &[job.into()], |row| JobState::from_row(row, 0))
}

/// Where a job stands, which nobody else changes before this transaction ends; `None`
/// if there is no such job.
pub fn lock(tx: &mut Tx<'_>, job: JobId) -> Result<Option<JobState>> {
    let sql = format!("SELECT {STATE} FROM job_states WHERE jobid = $1 /*for update*/");
    tx.query_opt(&sql, &[job.into()], |row| JobState::from_row(row, 0))
}

/// A number that is another one after every change of where a job stands, for those who
/// wait for one.
pub fn stamp(tx: &mut Tx<'_>) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(changed_ms), 0) AS BIGINT) FROM job_states";
    tx.query_one(sql, &[], |row| row.get(0))
}

/// Writes where a job stands now. A run that is new, or over, is noted among its runs.
pub fn save(
    tx: &mut Tx<'_>,
    job: JobId,
    before: &JobState,
    now: &JobState,
    now_ms: i64,
) -> Result<()> {
    let columns: Vec<&str> = STATE.split(", ").collect();
    let set: Vec<String> =
        columns.iter().zip(2..).map(|(column, place)| format!("{column} = ${place}")).collect();
    let sql = format!(
        // It grows even where clocks differ.
        "UPDATE job_states SET {}, checksum = ${},
             changed_ms = CASE WHEN changed_ms < ${place} THEN ${place} ELSE changed_ms + 1 END
         WHERE jobid = $1",
        set.join(", "),
        columns.len() + 3,
        place = columns.len() + 2
    );
    let mut values: Vec<Value<'_>> = vec![job.into()];
    values.extend(now.to_row());
    // What was read from a damaged row is not believed because it is written again.
    let is_whole = checksums::are_whole(tx, &JOB_STATES, "jobid", job.into())?;
    let checksum = checksum(job, now);
    values.extend([Value::from(now_ms), (if is_whole { checksum } else { !checksum }).into()]);
    tx.execute(&sql, &values)?;
    if now.run > before.run {
        // One that was given up for this one, in the middle of its start-up perhaps.
        tx.execute(
            "UPDATE runs SET ended_ms = $2, outcome = 'aborted'
             WHERE jobid = $1 AND ended_ms IS NULL",
            &[job.into(), now_ms.into()],
        )?;
        tx.execute(
            "INSERT INTO runs (jobid, run, run_kind, started_ms) VALUES ($1, $2, $3, $4)",
            &[job.into(), now.run.into(), now.run_kind.name().into(), now_ms.into()],
        )?;
    }
    let was_over = is_run_over(before);
    if is_run_over(now) && !was_over && now.run.0 > 0 {
        let outcome = if now.end_ms.is_some() { "done" } else { "aborted" };
        tx.execute(
            "UPDATE runs SET ended_ms = $3, outcome = $4, errortext = $5
             WHERE jobid = $1 AND run = $2 AND ended_ms IS NULL",
            &[job.into(), now.run.into(), now_ms.into(), outcome.into(), (&now.error).into()],
        )?;
    }
    Ok(())
}

/// Whether a job has nothing more to do for its run but to tell of its end.
fn is_run_over(state: &JobState) -> bool {
    matches!(state.phase, Phase::Inactive | Phase::ReadyForNotify | Phase::Notifying)
}

/// Forgets what a part still has of a job whose documents are gone. Returns how many
/// rows that were; call again until it is none.
pub fn forget(tx: &mut Tx<'_>, part: Part, job: JobId, limit: u32) -> Result<u64> {
    let mut count = 0;
    for (table, key) in [
        ("traps", "part, jobid, bin, pattern"),
        ("bin_work", "part, jobid, bin"),
        ("outlinks", "part, jobid, dochash"),
        ("edges", "part, jobid, targethash, counts, sourcehash, linktype"),
        ("distances", "part, jobid, dochash, linktype"),
        ("handed", "part, jobid, dochash"),
        ("carrydowns", "part, jobid, childhash, parenthash, dataname, datavaluehash"),
        ("removals", "part, jobid, run, hour, cause"),
        ("counters", "part, jobid, name"),
    ] {
        count += tx.execute(
            &format!(
                "DELETE FROM {table} WHERE ({key}) IN (
                     SELECT {key} FROM {table} WHERE part = $1 AND jobid = $2 LIMIT $3)"
            ),
            &[part.into(), job.into(), limit.into()],
        )?;
    }
    Ok(count)
}

/// Starts the next run of a job, or goes on with the one that was interrupted, in
/// the name of a node. Returns the run, and whether it is new.
pub fn start_run(tx: &mut Tx<'_>, job: JobId, node: NodeId, now_ms: i64) -> Result<(Run, bool)> {
    // Of two processes that start it together one makes the run, the other joins.
    let before = lock(tx, job)?.ok_or_else(|| Error::Refused(format!("there is no job {job}")))?;
    let mut now = JobState { node: Some(node), ..before.clone() };
    match before.phase {
        Phase::Active => {}
        Phase::Inactive => {
            now.phase = Phase::Active;
            now.run = Run(before.run.0 + 1);
            now.run_kind = if now.run.0 > 1 { RunKind::Incremental } else { RunKind::Full };
            now.start_ms = Some(now_ms);
            (now.end_ms, now.error) = (None, None);
        }
        _ => {
            let name = before.name();
            return Err(Error::Refused(format!("job {job} cannot start while it is {name}")));
        }
    }
    save(tx, job, &before, &now, now_ms)?;
    Ok((now.run, now.run > before.run))
}

/// All known links of a job have been judged by these settings.
pub fn set_admission(tx: &mut Tx<'_>, job: JobId, judged: &str) -> Result<()> {
    tx.execute("UPDATE job_states SET judged = $2 WHERE jobid = $1", &[job.into(), judged.into()])?;
    Ok(())
}

/// What decided about a job's links when its last run began.
pub fn admission(tx: &mut Tx<'_>, job: JobId) -> Result<Option<String>> {
    let judged =
        tx.query_opt("SELECT judged FROM job_states WHERE jobid = $1", &[job.into()], |row| {
            row.get::<Option<String>>(0)
        })?;
    Ok(judged.flatten())
}

/// A job whose documents somebody attends to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AttendedJob {
    pub job: Job,
    pub state: JobState,
    /// The name of its repository connector.
    pub connector: String,
    /// The configuration of its connection.
    pub config: String,
    /// The authority group that secures its documents.
    pub authority: Option<String>,
    /// Where its documents go, and went.
    pub outlets: Vec<Outlet>,
    /// Whether other jobs read the same connection, and so may have the same documents.
    pub has_siblings: bool,
    /// How far from its seeds it goes.
    pub hops: HopFilters,
}

impl AttendedJob {
    /// A job as it is attended to, in a state.
    pub fn new(tx: &mut Tx<'_>, job: Job, state: JobState) -> Result<AttendedJob> {
        let Some((_, connection)) = connections::load(tx, job.connection)? else {
            return Err(Error::Refused("its repository connection is gone".to_owned()));
        };
        let outlets = outlets::of_job(tx, job.id)?;
        let has_siblings = jobs::has_siblings(tx, job.id, job.connection)?;
        let hops = hopfilters::load(tx, job.id)?;
        let (connector, authority) = (connection.classname, connection.groupname);
        let config = connection.config;
        Ok(AttendedJob { job, state, connector, config, authority, outlets, has_siblings, hops })
    }
}

/// Phases in which documents of a job are worked on.
const WORKING: &str = "('active', 'shutting down', 'deleting')";

/// Jobs whose documents are to be worked on, and whose node has been heard of since a
/// time. One whose process died is interrupted: nobody works on it until somebody goes
/// on with it.
pub fn attended(tx: &mut Tx<'_>, heard_since_ms: i64, limit: u32) -> Result<Vec<AttendedJob>> {
    let of = |table: &str, columns: &str| -> String {
        let columns: Vec<String> = columns.split(", ").map(|it| format!("{table}.{it}")).collect();
        columns.join(", ")
    };
    let keys = tx.keys();
    let mut found = tx.query(
        &format!(
            "SELECT {}, {}, c.classname, c.groupname, c.config FROM job_states s
             JOIN nodes n ON n.id = s.node
             JOIN job_definitions d ON d.id = s.jobid
             JOIN connections c ON c.id = d.connectionid
             WHERE s.phase IN {WORKING} AND s.paused = 0 AND s.waiting = 0 AND s.resuming = 0
               AND (s.repository_present = 1 OR s.phase <> 'active') AND s.outputs_present = 1
               AND n.heartbeat_ms >= $1 AND n.state IN ('joining', 'ready', 'draining')
             ORDER BY d.priority, s.jobid LIMIT $2",
            of("d", COLUMNS),
            of("s", STATE)
        ),
        &[heard_since_ms.into(), limit.into()],
        |row| {
            let state = JobState::from_row(row, COLUMNS_COUNT)?;
            let at = COLUMNS_COUNT + STATE.split(", ").count();
            Ok(AttendedJob {
                job: Job::from_row(row)?,
                state,
                connector: row.get(at)?,
                authority: row.get(at + 1)?,
                config: keys.open(row.get(at + 2)?)?,
                outlets: Vec::new(),
                has_siblings: false,
                hops: HopFilters::new(),
            })
        },
    )?;
    for it in &mut found {
        it.hops = hopfilters::load(tx, it.job.id)?;
        it.outlets = outlets::of_job(tx, it.job.id)?;
        it.has_siblings = jobs::has_siblings(tx, it.job.id, it.job.connection)?;
    }
    Ok(found)
}

/// Jobs whose documents are to be worked on, and whose node has not been heard of since
/// a time.
pub fn unattended(tx: &mut Tx<'_>, heard_since_ms: i64, limit: u32) -> Result<Vec<JobId>> {
    tx.query(
        &format!(
            "SELECT s.jobid FROM job_states s
             WHERE s.phase IN {WORKING} AND NOT EXISTS (
                 SELECT 1 FROM nodes n WHERE n.id = s.node AND n.heartbeat_ms >= $1
                   AND n.state IN ('joining', 'ready', 'draining'))
             ORDER BY s.jobid LIMIT $2"
        ),
        &[heard_since_ms.into(), limit.into()],
        |row| row.get(0),
    )
}

/// Takes the place of the node that attends to a job, which is gone, and whose seeding
/// with it. False when there is no place to take: nothing is worked on, or it is this
/// very node.
pub fn attend(tx: &mut Tx<'_>, job: JobId, node: NodeId) -> Result<bool> {
    let taken = tx.execute(
        &format!(
            "UPDATE job_states SET node = $2, seeding = 0
             WHERE jobid = $1 AND phase IN {WORKING} AND COALESCE(node, 0) <> $2"
        ),
        &[job.into(), node.into()],
    )?;
    Ok(taken == 1)
}

/// Jobs that are about something, after one.
pub fn busy(tx: &mut Tx<'_>, after: JobId, limit: u32) -> Result<Vec<(JobId, JobState)>> {
    tx.query(
        &format!(
            "SELECT jobid, {STATE} FROM job_states
             WHERE phase <> 'inactive' AND jobid > $1 ORDER BY jobid LIMIT $2"
        ),
        &[after.into(), limit.into()],
        |row| Ok((row.get(0)?, JobState::from_row(row, 1)?)),
    )
}

/// Ends a run that has done all there was to do.
pub fn end_run(tx: &mut Tx<'_>, job: JobId, run: Run, now_ms: i64) -> Result<()> {
    let Some(before) = lock(tx, job)?.filter(|it| it.is_active() && it.run == run) else {
        return Err(Error::Refused(format!("run {run} of job {job} is not the active one")));
    };
    let (phase, at) = (Phase::Inactive, Some(now_ms));
    let now = JobState { phase, end_ms: at, last_ms: at, ..before.clone() };
    save(tx, job, &before, &now, now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionId;
    use crate::tables::connections::{self, Connection, ConnectionKind};
    use crate::tables::jobs;
    use crate::tables::nodes::{self, NewNode};
    use crate::testing::both_databases;

    fn job(id: i64, name: &str) -> Job {
        Job::new(JobId(id), name, ConnectionId(1))
    }

    #[test]
    fn an_interrupted_run_goes_on_and_an_ended_one_is_followed() {
        both_databases(|db| {
            db.write(|tx| {
                let web = Connection::new(ConnectionId(1), "web", "web");
                connections::save(tx, ConnectionKind::Repository, &web, 0)?;
                jobs::save(tx, &job(1, "a"), 1)
            })?;
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
            assert_eq!(db.read(|tx| admission(tx, JobId(1)))?, None);
            db.write(|tx| set_admission(tx, JobId(1), "rules"))?;
            assert_eq!(db.read(|tx| admission(tx, JobId(1)))?.as_deref(), Some("rules"));
            let attended = db.read(|tx| attended(tx, 5, 9))?;
            let found: Vec<(&Job, Run)> =
                attended.iter().map(|it| (&it.job, it.state.run)).collect();
            assert_eq!(found, [(&job(1, "a"), Run(1))]);
            assert_eq!((&*attended[0].connector, &*attended[0].config), ("web", "{}"));
            db.write(|tx| {
                let web = Connection::new(ConnectionId(1), "web", "web");
                let changed = Connection { config: r#"{"a":1}"#.into(), ..web };
                connections::save(tx, ConnectionKind::Repository, &changed, 12)
            })?;
            let again = db.read(|tx| super::attended(tx, 5, 9))?;
            assert_eq!(again[0].config, r#"{"a":1}"#, "a changed configuration is seen");
            let known = again[0].clone();
            let one =
                db.read(move |tx| AttendedJob::new(tx, known.job.clone(), known.state.clone()))?;
            assert_eq!(one, again[0]);
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
            let stamp = db.read(super::stamp)?;
            assert_eq!(stamp, 30);
            assert_eq!(start(25)?, (Run(2), true));
            assert_eq!(db.read(super::stamp)?, 31, "it grows though a clock is late");
            let now = db.read(|tx| state(tx, JobId(1)))?;
            assert_eq!((now.phase, now.start_ms, now.end_ms), (Phase::Active, Some(25), None));
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
                connections::save(tx, ConnectionKind::Repository, &web, 0)?;
                jobs::save(tx, &job(1, "a"), 1)
            })?;
            let named = |change: &'static str| {
                db.write(move |tx| {
                    tx.execute(&format!("UPDATE job_states SET {change} WHERE jobid = 1"), &[])?;
                    crate::testing::sum_rows(tx)?;
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
