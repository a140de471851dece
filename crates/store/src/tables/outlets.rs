//! Where a job's documents go: the outputs at the end of its pipeline, each with what
//! decides whether it must hear of a document again.
//!
//! Invariant: an outlet's versions change exactly when documents that have not changed
//! must be sent to it again.

mod routes;

pub use routes::Route;

use crate::ids::{ConnectionId, JobId};
use crate::tables::pipelines::{self, PipelineStage, STAGES_MAX, StageKind};
use crate::value::column;
use crate::{Result, Tx};
use page::ids::hash128;

/// One output of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Outlet {
    pub connection: ConnectionId,
    pub name: String,
    /// Stands for the connector, its configuration, what the job tells it, and how often
    /// everything was to be sent again.
    pub version: String,
    /// Stands for the transformations on the way.
    pub transformations: String,
    /// Whether it, or a transformation on the way, takes the bytes of documents; also that
    /// of another job, which may take the same documents there.
    pub bodies: bool,
    /// Whether it takes what pages need to be shown.
    pub requisites: bool,
    /// Whether the job does not send there any more, but has, so that documents of it may
    /// still be there.
    pub former: bool,
}

/// An output connection as it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OutputOpening {
    pub connection: ConnectionId,
    pub name: String,
    pub classname: String,
    pub config: String,
    pub maxcount: i64,
    pub version: i64,
    /// Whether its connector is registered.
    pub present: bool,
}

/// A transformation on the way to an output, as it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TransformationStep {
    pub name: String,
    pub classname: String,
    pub config: String,
    /// What the job tells it.
    pub spec: String,
}

/// An output of a job's pipeline, whether it takes bytes, and whether another job of the same
/// connection has a transformation before it that does.
const OUTLET: &str = "p.ordinal, p.connectionid, c.connectionname, c.classname, c.config, p.spec,
    c.reindexed, COALESCE(r.bodies, 0) AS own_bodies,
    COALESCE(r.requisites, 0) AS requisites,
    CASE WHEN EXISTS (
        SELECT 1 FROM jobpipelines q
        JOIN job_definitions e ON e.id = q.ownerid
        JOIN jobpipelines t ON t.ownerid = q.ownerid AND t.kind = 'transformation'
        JOIN connections u ON u.id = t.connectionid
        JOIN registrations s ON s.kind = u.kind AND s.classname = u.classname
        WHERE q.connectionid = p.connectionid AND q.ownerid <> p.ownerid
          AND e.connectionid = d.connectionid AND s.bodies = 1) THEN 1 ELSE 0 END AS others_bodies,
    0 AS former";

/// The outlets of a job, in the order of its pipeline, and then those it had.
pub fn of_job(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<Outlet>> {
    let keys = tx.keys();
    let found = tx.query(
        &format!(
            "SELECT {OUTLET}
             FROM jobpipelines p
             JOIN job_definitions d ON d.id = p.ownerid
             JOIN connections c ON c.id = p.connectionid
             LEFT JOIN registrations r ON r.kind = c.kind AND r.classname = c.classname
             WHERE p.ownerid = $1 AND p.kind = 'output'
             UNION ALL
             SELECT 0, f.connectionid, c.connectionname, c.classname, c.config, '', 0, 0, 0, 0, 1
             FROM former_outputs f JOIN connections c ON c.id = f.connectionid
             WHERE f.ownerid = $1
             ORDER BY 11, 1, 2 LIMIT $2"
        ),
        &[job.into(), (2 * STAGES_MAX as i64).into()],
        |row| {
            let classname: String = row.get(column!(OUTLET, "classname"))?;
            let config = keys.open(row.get(column!(OUTLET, "config"))?)?;
            let spec: String = row.get(column!(OUTLET, "spec"))?;
            let reindexed: i64 = row.get(column!(OUTLET, "reindexed"))?;
            let own: bool = row.get(column!(OUTLET, "own_bodies"))?;
            let others: bool = row.get(column!(OUTLET, "others_bodies"))?;
            let outlet = Outlet {
                connection: row.get(column!(OUTLET, "connectionid"))?,
                name: row.get(column!(OUTLET, "connectionname"))?,
                version: short(&format!("{classname}\n{config}\n{spec}\n{reindexed}")),
                transformations: String::new(),
                bodies: own || others,
                requisites: row.get(column!(OUTLET, "requisites"))?,
                former: row.get(column!(OUTLET, "former"))?,
            };
            Ok((row.get::<i64>(column!(OUTLET, "ordinal"))?, outlet))
        },
    )?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let stages = pipelines::load(tx, job)?;
    let mut outlets = Vec::with_capacity(found.len());
    for (ordinal, mut outlet) in found {
        if outlet.former {
            outlets.push(outlet);
            continue;
        }
        let way = way(tx, &stages, usize::try_from(ordinal).unwrap_or(usize::MAX))?;
        outlet.bodies |= way.iter().any(|it| it.bodies);
        // What stands for the transformations on the way: nothing when there are none.
        let text: String = way
            .iter()
            .map(|Leg { step, .. }| format!("{}+{}!{}\n", step.classname, step.config, step.spec))
            .collect();
        outlet.transformations = if text.is_empty() { text } else { short(&text) };
        outlets.push(outlet);
    }
    Ok(outlets)
}

/// The transformations on the way of a job's documents to an output, in order.
pub fn steps_of(
    tx: &mut Tx<'_>,
    job: JobId,
    output: ConnectionId,
) -> Result<Vec<TransformationStep>> {
    let stages = pipelines::load(tx, job)?;
    let is_it = |it: &PipelineStage| it.kind == StageKind::Output && it.connection == output;
    let Some(ordinal) = stages.iter().position(is_it) else { return Ok(Vec::new()) };
    Ok(way(tx, &stages, ordinal)?.into_iter().map(|it| it.step).collect())
}

/// A step, and whether it takes the bytes of documents.
struct Leg {
    step: TransformationStep,
    bodies: bool,
}

/// The transformations before a stage, from the repository on.
fn way(tx: &mut Tx<'_>, stages: &[PipelineStage], ordinal: usize) -> Result<Vec<Leg>> {
    let (mut legs, keys) = (Vec::new(), tx.keys());
    let mut before = stages.get(ordinal).and_then(|it| it.prerequisite);
    // A stage hears an earlier one, so this ends.
    while let Some(at) = before.and_then(|at| stages.get(usize::try_from(at).ok()?)) {
        let spec = at.spec.clone();
        legs.extend(tx.query_opt(
            "SELECT c.connectionname, c.classname, c.config, COALESCE(r.bodies, 0)
             FROM connections c
             LEFT JOIN registrations r ON r.kind = c.kind AND r.classname = c.classname
             WHERE c.id = $1",
            &[at.connection.into()],
            |row| {
                let (name, classname) = (row.get(0)?, row.get(1)?);
                let config = keys.open(row.get(2)?)?;
                let bodies = row.get::<i64>(3)? != 0;
                Ok(Leg {
                    step: TransformationStep { name, classname, config, spec: spec.clone() },
                    bodies,
                })
            },
        )?);
        before = at.prerequisite;
    }
    legs.reverse();
    Ok(legs)
}

const OPENING: &str = "c.connectionname, c.classname, c.config, c.maxcount, c.version,
    CASE WHEN r.classname IS NULL THEN 0 ELSE 1 END AS present";

/// An output connection, as it is opened.
pub fn opening(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<Option<OutputOpening>> {
    let keys = tx.keys();
    tx.query_opt(
        &format!(
            "SELECT {OPENING} FROM connections c
             LEFT JOIN registrations r ON r.kind = c.kind AND r.classname = c.classname
             WHERE c.id = $1"
        ),
        &[connection.into()],
        |row| {
            Ok(OutputOpening {
                connection,
                name: row.get(column!(OPENING, "connectionname"))?,
                classname: row.get(column!(OPENING, "classname"))?,
                config: keys.open(row.get(column!(OPENING, "config"))?)?,
                maxcount: row.get(column!(OPENING, "maxcount"))?,
                version: row.get(column!(OPENING, "version"))?,
                present: row.get(column!(OPENING, "present"))?,
            })
        },
    )
}

/// What a job tells an output.
pub fn spec_of(tx: &mut Tx<'_>, job: JobId, output: ConnectionId) -> Result<Option<String>> {
    tx.query_opt(
        "SELECT spec FROM jobpipelines WHERE ownerid = $1 AND connectionid = $2
         ORDER BY ordinal LIMIT 1",
        &[job.into(), output.into()],
        |row| row.get(0),
    )
}

/// Jobs that send documents of a repository connection to an output, by id.
pub fn senders(
    tx: &mut Tx<'_>,
    connection: ConnectionId,
    output: ConnectionId,
) -> Result<Vec<JobId>> {
    tx.query(
        "SELECT d.id FROM job_definitions d JOIN jobpipelines p ON p.ownerid = d.id
         WHERE d.connectionid = $1 AND p.connectionid = $2 AND p.kind = 'output'
         ORDER BY d.id LIMIT $3",
        &[connection.into(), output.into(), (STAGES_MAX as i64).into()],
        |row| row.get(0),
    )
}

/// Lets everything be sent to an output again, as each document is looked at: the jobs
/// that use it look at everything. Returns whether the connection is there.
pub fn reindex(tx: &mut Tx<'_>, output: ConnectionId, now_ms: i64) -> Result<bool> {
    let changed = tx.execute(
        "UPDATE connections SET reindexed = reindexed + 1, version = version + 1,
             changed_ms = $2
         WHERE id = $1 AND kind = 'output'",
        &[output.into(), now_ms.into()],
    )?;
    if changed > 0 {
        crate::tables::jobs::reseed_users(tx, output)?;
    }
    Ok(changed > 0)
}

/// A short text that stands for a long one.
fn short(text: &str) -> String {
    hash128(text.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
