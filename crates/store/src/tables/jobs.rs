//! Jobs as they are defined (table 11.13).
//!
//! A definition is a plain struct that this module loads and saves whole; its pipeline,
//! notifications, hop filters and schedules have modules of their own. Invariant: an
//! edit changes nothing of where the job stands, which is [`job_states`]' affair, but
//! that a job which is told to fetch something else looks at everything again
//! (`job_states.seedingversion` is forgotten).

use crate::checksums::coverage::{
    CONNECTIONS, JOB_DEFINITIONS, JOB_HOP_FILTERS, JOB_NOTIFICATIONS, JOB_PIPELINES, SCHEDULES,
    THROTTLES,
};
use crate::ids::{ConnectionId, JobId};
use crate::tables::{job_states, registrations};
use crate::value::{Row, column};
use crate::{Error, Result, Tx, Value, checksums};

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident: $($(#[$of_choice:meta])* $choice:ident = $text:literal,)*;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {
                $($(#[$of_choice])* $choice,)*
            }

            impl $name {
                /// All of them, by name.
                pub const NAMES: &[&str] = &[$($text),*];

                /// Its name in the table and on the command line.
                pub fn name(self) -> &'static str {
                    match self { $($name::$choice => $text,)* }
                }

                /// The choice of a name.
                pub fn parse(name: &str) -> Option<$name> {
                    match name { $($text => Some($name::$choice),)* _ => None }
                }

                fn read(name: &str) -> Result<$name> {
                    $name::parse(name).ok_or_else(|| {
                        Error::corrupt("a job's definition", format!("it has the word {name:?}"))
                    })
                }
            }
        )*
    };
}

choices! {
    /// What starts a job.
    StartMethod:
        /// A person, or a program.
        Manual = "manual",
        /// A schedule, when its window begins.
        WindowBegin = "window begin",
        /// A schedule, at any time within its window.
        WindowInside = "window inside",
    ;
    /// What becomes of documents that no link leads to any more.
    HopcountMode:
        /// They are removed.
        Accurate = "accurate",
        /// They stay for now; the mode can be changed back.
        NoDelete = "no delete",
        /// They stay for ever.
        NeverDelete = "never delete",
    ;
    /// When a document of a continuous job is looked at again.
    Refetch:
        /// By an estimate of how often it changes.
        Estimate = "estimate",
        /// By ManifoldCF's formula.
        Formula = "formula",
        /// After the same time always.
        Fixed = "fixed",
    ;
    /// What a document that cannot be fetched means for its job.
    OnFailure:
        /// The document is skipped.
        Skip = "skip",
        /// The job is aborted.
        Abort = "abort",
    ;
}

/// What a job crawls, how often, and where its documents go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
// tidy: wide a row of `job_definitions`
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
    pub start: StartMethod,
    /// What becomes of documents that no link leads to any more.
    pub hopcount: HopcountMode,
    /// When a document is looked at again.
    pub refetch: Refetch,
    /// Fetches a day that it may spend; `None` is no limit.
    pub fetches_per_day: Option<i64>,
    /// What a document that cannot be fetched means for it.
    pub on_failure: OnFailure,
    /// What it may lose without an approval, as
    /// [`RemovalLimit`](crate::tables::removals::RemovalLimit) reads it; `None` is as usual.
    pub removal_limit: Option<String>,
    /// How much of that goes at once, likewise.
    pub proven_removal_limit: Option<String>,
}

/// The priority of a job that is given none, of 1 to 10.
pub const PRIORITY: i64 = 5;

pub(super) const COLUMNS: &str = "id, name, description, connectionid, docspec, priority, type, intervaltime, \
                       maxintervaltime, reseedinterval, expirationtime, startmethod, hopcountmode, refetch, \
                       fetches_per_day, onfailure, removal_limit, proven_removal_limit";
/// How many they are: where a statement that selects them goes on.
pub(super) const COLUMNS_COUNT: usize = 18;

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
            start: StartMethod::Manual,
            hopcount: HopcountMode::Accurate,
            refetch: Refetch::Estimate,
            fetches_per_day: None,
            on_failure: OnFailure::Skip,
            removal_limit: None,
            proven_removal_limit: None,
        }
    }

    pub(super) fn from_row(row: &Row<'_>) -> Result<Job> {
        Ok(Job {
            id: row.get(column!(COLUMNS, "id"))?,
            name: row.get(column!(COLUMNS, "name"))?,
            description: row.get(column!(COLUMNS, "description"))?,
            connection: row.get(column!(COLUMNS, "connectionid"))?,
            docspec: row.get(column!(COLUMNS, "docspec"))?,
            priority: row.get(column!(COLUMNS, "priority"))?,
            continuous: row.get::<String>(column!(COLUMNS, "type"))? == "continuous",
            interval_ms: row.get(column!(COLUMNS, "intervaltime"))?,
            interval_max_ms: row.get(column!(COLUMNS, "maxintervaltime"))?,
            reseed_ms: row.get(column!(COLUMNS, "reseedinterval"))?,
            expiration_ms: row.get(column!(COLUMNS, "expirationtime"))?,
            start: StartMethod::read(&row.get::<String>(column!(COLUMNS, "startmethod"))?)?,
            hopcount: HopcountMode::read(&row.get::<String>(column!(COLUMNS, "hopcountmode"))?)?,
            refetch: Refetch::read(&row.get::<String>(column!(COLUMNS, "refetch"))?)?,
            fetches_per_day: row.get(column!(COLUMNS, "fetches_per_day"))?,
            on_failure: OnFailure::read(&row.get::<String>(column!(COLUMNS, "onfailure"))?)?,
            removal_limit: row.get(column!(COLUMNS, "removal_limit"))?,
            proven_removal_limit: row.get(column!(COLUMNS, "proven_removal_limit"))?,
        })
    }
}

/// Writes a job's definition, new or changed; its version counts the changes. A new job
/// is inactive and has no run.
pub fn save(tx: &mut Tx<'_>, it: &Job, now_ms: i64) -> Result<()> {
    let known = load(tx, it.id)?;
    let is_whole = checksums::are_whole(tx, &JOB_DEFINITIONS, "id", it.id.into())?;
    if known.as_ref() == Some(it) && is_whole {
        return Ok(());
    }
    write(tx, it, now_ms)?;
    job_states::make(tx, it.id, now_ms)?;
    let fetches = |it: &Job| (it.connection, it.docspec.clone());
    if known.as_ref().is_some_and(|known| fetches(known) != fetches(it)) {
        reseed(tx, it.id)?;
    }
    if known.as_ref().is_some_and(|known| known.start != it.start) {
        job_states::count_from(tx, it.id, now_ms)?;
    }
    if known.is_none_or(|known| known.connection != it.connection) {
        registrations::assess_job(tx, it.id, now_ms)?;
    }
    Ok(())
}

fn write(tx: &mut Tx<'_>, it: &Job, now_ms: i64) -> Result<()> {
    let mut values = vec![
        it.id.into(),
        (&it.name).into(),
        (&it.description).into(),
        it.connection.into(),
        (&it.docspec).into(),
        it.priority.into(),
        (if it.continuous { "continuous" } else { "scan once" }).into(),
        it.interval_ms.into(),
        it.interval_max_ms.into(),
        it.reseed_ms.into(),
        it.expiration_ms.into(),
        it.start.name().into(),
        it.hopcount.name().into(),
        it.refetch.name().into(),
        it.fetches_per_day.into(),
        it.on_failure.name().into(),
        (&it.removal_limit).into(),
        (&it.proven_removal_limit).into(),
    ];
    let checksum = JOB_DEFINITIONS.places(COLUMNS).of(&values);
    values.extend([Value::from(now_ms), checksum.into()]);
    tx.execute(
        "INSERT INTO job_definitions (id, name, description, connectionid, docspec, priority, type,
             intervaltime, maxintervaltime, reseedinterval, expirationtime, startmethod,
             hopcountmode, refetch, fetches_per_day, onfailure, removal_limit,
             proven_removal_limit, version, changed_ms, checksum)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 1,
             $19, $20)
         ON CONFLICT (id) DO UPDATE SET
             name = excluded.name, description = excluded.description,
             connectionid = excluded.connectionid, docspec = excluded.docspec,
             priority = excluded.priority, type = excluded.type,
             intervaltime = excluded.intervaltime, maxintervaltime = excluded.maxintervaltime,
             reseedinterval = excluded.reseedinterval, expirationtime = excluded.expirationtime,
             startmethod = excluded.startmethod, hopcountmode = excluded.hopcountmode,
             refetch = excluded.refetch, fetches_per_day = excluded.fetches_per_day,
             onfailure = excluded.onfailure, removal_limit = excluded.removal_limit,
             proven_removal_limit = excluded.proven_removal_limit, version = job_definitions.version + 1,
             changed_ms = excluded.changed_ms, checksum = excluded.checksum",
        &values,
    )?;
    Ok(())
}

/// Notes that something which belongs to a job's definition has changed.
pub(super) fn touch(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE job_definitions SET version = version + 1, changed_ms = $2 WHERE id = $1",
        &[job.into(), now_ms.into()],
    )?;
    Ok(())
}

/// Forgets where seeding got to: the next run looks at everything again.
pub fn reseed(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    tx.execute("UPDATE job_states SET seedingversion = NULL WHERE jobid = $1", &[job.into()])?;
    Ok(())
}

/// The same for every job that fetches from a connection or delivers to it.
pub(super) fn reseed_users(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<()> {
    tx.execute(
        "UPDATE job_states SET seedingversion = NULL WHERE jobid IN (
             SELECT id FROM job_definitions WHERE connectionid = $1
             UNION SELECT ownerid FROM jobpipelines WHERE connectionid = $1)",
        &[connection.into()],
    )?;
    Ok(())
}

/// Refuses a job of whose definition a row is damaged, with what belongs to it and to its
/// repository connection: a run does not begin with other settings than it was given.
pub fn require_whole(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    let Some(known) = load(tx, job)? else { return Ok(()) };
    checksums::require_whole(tx, &JOB_DEFINITIONS, "id", job.into())?;
    for table in [&JOB_PIPELINES, &JOB_NOTIFICATIONS, &SCHEDULES, &JOB_HOP_FILTERS] {
        checksums::require_whole(tx, table, "ownerid", job.into())?;
    }
    checksums::require_whole(tx, &CONNECTIONS, "id", known.connection.into())?;
    checksums::require_whole(tx, &THROTTLES, "ownerid", known.connection.into())
}

/// Whether other jobs read the connection of a job.
pub fn has_siblings(tx: &mut Tx<'_>, job: JobId, connection: ConnectionId) -> Result<bool> {
    let other = tx.query_opt(
        "SELECT 1 FROM job_definitions WHERE connectionid = $1 AND id <> $2 LIMIT 1",
        &[connection.into(), job.into()],
        |_| Ok(()),
    )?;
    Ok(other.is_some())
}

/// Removes a job's definition with all that belongs to it, and where it stood. Its
/// documents must be gone: nobody would find them any more. Returns whether it was there.
pub fn delete(tx: &mut Tx<'_>, job: JobId) -> Result<bool> {
    for table in
        ["jobpipelines", "former_outputs", "jobnotifications", "schedules", "jobhopfilters"]
    {
        tx.execute(&format!("DELETE FROM {table} WHERE ownerid = $1"), &[job.into()])?;
    }
    for table in ["job_states", "runs"] {
        tx.execute(&format!("DELETE FROM {table} WHERE jobid = $1"), &[job.into()])?;
    }
    Ok(tx.execute("DELETE FROM job_definitions WHERE id = $1", &[job.into()])? == 1)
}

/// How often a job's definition has been changed since it was made, which counts as the
/// first.
pub fn version(tx: &mut Tx<'_>, job: JobId) -> Result<Option<i64>> {
    tx.query_opt("SELECT version FROM job_definitions WHERE id = $1", &[job.into()], |row| {
        row.get(0)
    })
}

/// A job by its id.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<Option<Job>> {
    tx.query_opt(
        &format!("SELECT {COLUMNS} FROM job_definitions WHERE id = $1"),
        &[job.into()],
        Job::from_row,
    )
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

#[cfg(test)]
mod tests;
