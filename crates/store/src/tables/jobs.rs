//! Jobs as they are defined (table 11.13).
//!
//! A definition is a plain struct that this module loads and saves whole. Invariant: an
//! edit changes nothing of where the job stands, which is [`job_states`]' affair.

use crate::ids::{ConnectionId, JobId};
use crate::tables::job_states;
use crate::value::Row;
use crate::{Result, Tx, Value};

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

pub(super) const COLUMNS: &str = "id, name, description, connectionid, docspec, priority, type, intervaltime, \
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

    pub(super) fn from_row(row: &Row<'_>) -> Result<Job> {
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
    job_states::make(tx, it.id, now_ms)
}

/// A job by its name.
pub fn find(tx: &mut Tx<'_>, name: &str) -> Result<Option<Job>> {
    tx.query_opt(
        &format!("SELECT {COLUMNS} FROM job_definitions WHERE name = $1"),
        &[name.into()],
        Job::from_row,
    )
}

/// A job by its id.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<Option<Job>> {
    tx.query_opt(
        &format!("SELECT {COLUMNS} FROM job_definitions WHERE id = $1"),
        &[job.into()],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{NodeId, Run};
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
            db.write(|tx| job_states::start_run(tx, JobId(1), NodeId(1), 2))?;
            let edited = Job { docspec: "{\"seeds\":[]}".into(), continuous: true, ..job(1, "b") };
            let saved = edited.clone();
            db.write(move |tx| save(tx, &saved, 3))?;
            assert_eq!(db.read(|tx| find(tx, "a"))?, None);
            assert_eq!(db.read(|tx| find(tx, "b"))?, Some(edited.clone()));
            assert_eq!(db.read(|tx| list(tx, "", 9))?, [edited]);
            assert_eq!(
                db.read(|tx| job_states::state(tx, JobId(1)))?.run,
                Run(1),
                "an edit starts nothing"
            );
            Ok(())
        });
    }
}
