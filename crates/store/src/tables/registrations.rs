//! Which connectors are registered (tables 11.1 and 11.2), and which jobs lack one.
//!
//! A connection can be defined only for a registered connector. Invariants: a
//! connector's own tables are made and dropped in the transaction that registers and
//! deregisters it; whether a job's connectors are there (`job_states.repository_present`,
//! `outputs_present`) is told in the same transaction, so that a job enters and leaves
//! the states without a connector at once. A missing transformation counts as a missing
//! repository: without it nothing can be fetched, but what was delivered can be removed.

use crate::catalog::Connector;
use crate::ids::{ConnectionId, JobId};
use crate::tables::connections::ConnectionKind;
use crate::{Result, Tx};

/// Registered connectors that are listed; the program has fewer.
const LISTED_MAX: u32 = 1_000;

/// A connector that can be used in connections.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Registration {
    pub kind: ConnectionKind,
    pub classname: String,
    pub description: String,
    pub registered_ms: i64,
}

/// Registers a connector and makes its own tables; one that is registered already is
/// described anew. Returns whether it is new.
pub fn register(tx: &mut Tx<'_>, connector: &Connector, now_ms: i64) -> Result<bool> {
    let is_new = !is_registered(tx, connector.kind, connector.name)?;
    tx.execute(
        "INSERT INTO registrations (kind, classname, description, bodies, requisites, registered_ms)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (kind, classname) DO UPDATE SET description = excluded.description,
             bodies = excluded.bodies, requisites = excluded.requisites",
        &[
            connector.kind.name().into(),
            connector.name.into(),
            connector.about.into(),
            connector.takes_bodies.into(),
            connector.takes_requisites.into(),
            now_ms.into(),
        ],
    )?;
    if let Some(install) = connector.install {
        install(tx)?;
    }
    if is_new {
        assess_connector(tx, connector, now_ms)?;
    }
    Ok(is_new)
}

/// Deregisters a connector and drops its own tables. Its connections and jobs stay;
/// running jobs stop making progress. Returns whether it was registered.
pub fn deregister(tx: &mut Tx<'_>, connector: &Connector, now_ms: i64) -> Result<bool> {
    let removed = tx.execute(
        "DELETE FROM registrations WHERE kind = $1 AND classname = $2",
        &[connector.kind.name().into(), connector.name.into()],
    )?;
    if removed == 0 {
        return Ok(false);
    }
    if let Some(deinstall) = connector.deinstall {
        deinstall(tx)?;
    }
    assess_connector(tx, connector, now_ms)?;
    Ok(true)
}

/// Whether a connector is registered.
pub fn is_registered(tx: &mut Tx<'_>, kind: ConnectionKind, classname: &str) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT 1 FROM registrations WHERE kind = $1 AND classname = $2",
        &[kind.name().into(), classname.into()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// The registered connectors of every kind.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<Registration>> {
    let rows = tx.query(
        "SELECT kind, classname, description, registered_ms FROM registrations
         ORDER BY kind, classname LIMIT $1",
        &[LISTED_MAX.into()],
        |row| {
            let kind = ConnectionKind::read(&row.get::<String>(0)?)?;
            let (classname, description) = (row.get(1)?, row.get(2)?);
            Ok(Registration { kind, classname, description, registered_ms: row.get(3)? })
        },
    )?;
    Ok(rows)
}

/// Connections of a job's stages of a kind whose connector is not registered.
const MISSING_STAGES: &str = "SELECT 1 FROM jobpipelines p
                     JOIN connections c ON c.id = p.connectionid
                     LEFT JOIN registrations r ON r.kind = c.kind AND r.classname = c.classname
                     WHERE p.ownerid = job_states.jobid AND r.classname IS NULL AND p.kind =";

/// Tells of the jobs that a condition names whether their connectors are there.
/// Returns how many changed.
fn assess(tx: &mut Tx<'_>, jobs: &str, values: &[crate::Value<'_>]) -> Result<u64> {
    let repository = format!(
        "CASE WHEN EXISTS (SELECT 1 FROM job_definitions d
                     JOIN connections c ON c.id = d.connectionid
                     LEFT JOIN registrations r ON r.kind = c.kind AND r.classname = c.classname
                     WHERE d.id = job_states.jobid AND r.classname IS NULL)
               OR EXISTS ({MISSING_STAGES} 'transformation') THEN 0 ELSE 1 END"
    );
    let outputs = format!("CASE WHEN EXISTS ({MISSING_STAGES} 'output') THEN 0 ELSE 1 END");
    tx.execute(
        &format!(
            "UPDATE job_states SET repository_present = {repository}, outputs_present = {outputs},
                 changed_ms = $1
             WHERE jobid IN ({jobs})
               AND (repository_present <> {repository} OR outputs_present <> {outputs})"
        ),
        values,
    )
}

/// Tells of a job whether its connectors are there.
pub(super) fn assess_job(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    assess(tx, "$2", &[now_ms.into(), job.into()])?;
    Ok(())
}

/// The same of every job that uses a connection.
pub(super) fn assess_connection(tx: &mut Tx<'_>, it: ConnectionId, now_ms: i64) -> Result<()> {
    assess(
        tx,
        "SELECT id FROM job_definitions WHERE connectionid = $2
         UNION SELECT ownerid FROM jobpipelines WHERE connectionid = $2",
        &[now_ms.into(), it.into()],
    )?;
    Ok(())
}

/// The same of every job that uses a connector.
fn assess_connector(tx: &mut Tx<'_>, connector: &Connector, now_ms: i64) -> Result<()> {
    assess(
        tx,
        "SELECT d.id FROM job_definitions d JOIN connections c ON c.id = d.connectionid
         WHERE c.kind = $2 AND c.classname = $3
         UNION SELECT p.ownerid FROM jobpipelines p JOIN connections c ON c.id = p.connectionid
         WHERE c.kind = $2 AND c.classname = $3",
        &[now_ms.into(), connector.kind.name().into(), connector.name.into()],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests;
