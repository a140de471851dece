//! Jobs: what is defined (table 11.13) and where they stand (table 11.16).
//!
//! A definition is a plain struct that this module loads and saves whole. The state
//! is a few orthogonal fields; the names of table 11.24 are derived from them.
//! Invariant: a job's run number only grows, and grows in the transaction that
//! starts the run; nothing else is written for it.

use crate::ids::{ConnectionId, JobId, NodeId, Run};
use crate::value::Row;
use crate::{Error, Result, Tx, Value};

/// A job's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id, made by us.
    pub id: JobId,
    /// Unique; what the command line calls it.
    pub name: String,
    /// What people say of it.
    pub description: String,
    /// Where its documents come from.
    pub connection: ConnectionId,
    /// The connector's document specification, as JSON.
    pub docspec: String,
    /// 1 to 10; 1 comes first.
    pub priority: i64,
    /// Whether it goes on for ever, rechecking what is due.
    pub continuous: bool,
    /// Least time between looks at a document.
    pub interval_ms: Option<i64>,
    /// Most time between looks at a document.
    pub interval_max_ms: Option<i64>,
    /// Least time between seedings.
    pub reseed_ms: Option<i64>,
    /// How long a document lives.
    pub expiration_ms: Option<i64>,
}

/// The priority of a job that is given none, of 1 to 10.
const PRIORITY: i64 = 5;

const COLUMNS: &str = "id, name, description, connectionid, docspec, priority, type, intervaltime, \
                       maxintervaltime, reseedinterval, expirationtime";

impl Job {
    /// A job as it is made when nothing else is said: it scans once, in the middle of
    /// all priorities, and has no specification.
    pub fn new(id: JobId, name: &str, connection: ConnectionId) -> Job {
        Job {
            id,
            name: name.to_owned(),
            description: String::new(),
            connection,
            docspec: "{}".to_owned(),
            priority: PRIORITY,
            continuous: false,
            interval_ms: None,
            interval_max_ms: None,
            reseed_ms: None,
            expiration_ms: None,
        }
    }

    fn from_row(row: &Row<'_>) -> Result<Job> {
        Ok(Job {
            id: row.get(0)?,
            name: row.get(1)?,
            description: row.get(2)?,
            connection: row.get(3)?,
            docspec: row.get(4)?,
            priority: row.get(5)?,
            continuous: row.get::<String>(6)? == "continuous",
            interval_ms: row.get(7)?,
            interval_max_ms: row.get(8)?,
            reseed_ms: row.get(9)?,
            expiration_ms: row.get(10)?,
        })
    }
}

/// Writes a job's definition, new or changed. A new job is inactive and has no run.
pub fn save(tx: &mut Tx<'_>, it: &Job, now_ms: i64) -> Result<()> {
    let kind = if it.continuous { "continuous" } else { "scan once" };
    tx.execute(
        "INSERT INTO job_definitions (id, name, description, connectionid, docspec, priority, type,
             intervaltime, maxintervaltime, reseedinterval, expirationtime, startmethod,
             hopcountmode, refetch, onfailure, version, changed_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'manual', 'accurate', 'estimate',
                 'skip', 1, $12)
         ON CONFLICT (id) DO UPDATE SET
             name = excluded.name, description = excluded.description,
             connectionid = excluded.connectionid, docspec = excluded.docspec,
             priority = excluded.priority, type = excluded.type,
             intervaltime = excluded.intervaltime, maxintervaltime = excluded.maxintervaltime,
             reseedinterval = excluded.reseedinterval, expirationtime = excluded.expirationtime,
             version = job_definitions.version + 1, changed_ms = excluded.changed_ms",
        &[
            it.id.into(),
            (&it.name).into(),
            (&it.description).into(),
            it.connection.into(),
            (&it.docspec).into(),
            it.priority.into(),
            kind.into(),
            it.interval_ms.into(),
            it.interval_max_ms.into(),
            it.reseed_ms.into(),
            it.expiration_ms.into(),
            now_ms.into(),
        ],
    )?;
    tx.execute(
        "INSERT INTO job_states (jobid, phase, minimal, paused, waiting, stopping, resuming, seeding,
             restart, repository_present, outputs_present, run, run_kind, lastchecktime, changed_ms)
         VALUES ($1, 'inactive', 0, 0, 0, 0, 0, 0, 'none', 1, 1, 0, 'full', 0, $2)
         ON CONFLICT (jobid) DO NOTHING",
        &[it.id.into(), now_ms.into()],
    )?;
    Ok(())
}

/// A job by its name.
pub fn find(tx: &mut Tx<'_>, name: &str) -> Result<Option<Job>> {
    tx.query_opt(
        &format!("SELECT {COLUMNS} FROM job_definitions WHERE name = $1"),
        &[name.into()],
        Job::from_row,
    )
}

/// Jobs by name, after one.
pub fn list(tx: &mut Tx<'_>, after: &str, limit: u32) -> Result<Vec<Job>> {
    tx.query(
        &format!("SELECT {COLUMNS} FROM job_definitions WHERE name > $1 ORDER BY name LIMIT $2"),
        &[after.into(), Value::from(limit)],
        Job::from_row,
    )
}

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
        |row| Ok(Attended { job: Job::from_row(row)?, run: row.get(11)? }),
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
    use crate::tables::connections::{self, Connection, Kind};
    use crate::tables::nodes::{self, NewNode};
    use crate::testing::both_databases;

    fn job(id: i64, name: &str) -> Job {
        Job {
            id: JobId(id),
            name: name.into(),
            description: "a test".into(),
            connection: ConnectionId(1),
            docspec: "{}".into(),
            priority: 5,
            continuous: false,
            interval_ms: None,
            interval_max_ms: Some(9),
            reseed_ms: None,
            expiration_ms: None,
        }
    }

    #[test]
    fn a_definition_is_saved_whole_and_keeps_its_state() {
        both_databases(|db| {
            db.write(|tx| save(tx, &job(1, "a"), 1))?;
            db.write(|tx| start_run(tx, JobId(1), NodeId(1), 2))?;
            let edited = Job { docspec: "{\"seeds\":[]}".into(), continuous: true, ..job(1, "b") };
            let saved = edited.clone();
            db.write(move |tx| save(tx, &saved, 3))?;
            assert_eq!(db.read(|tx| find(tx, "a"))?, None);
            assert_eq!(db.read(|tx| find(tx, "b"))?, Some(edited.clone()));
            assert_eq!(db.read(|tx| list(tx, "", 9))?, [edited]);
            assert_eq!(db.read(|tx| state(tx, JobId(1)))?.run, Run(1), "an edit starts nothing");
            Ok(())
        });
    }

    #[test]
    fn an_interrupted_run_goes_on_and_an_ended_one_is_followed() {
        both_databases(|db| {
            db.write(|tx| save(tx, &job(1, "a"), 1))?;
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
                save(tx, &job(1, "a"), 1)
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
