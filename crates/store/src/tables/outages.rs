//! Connections that cannot be reached just now: outputs that do not take documents, and
//! repositories that cannot be asked for seeds.
//!
//! Each process records what it could not reach, so that the command line, the API and
//! other processes can name it. Invariants: a row exists only while its node runs and
//! waits for that connection; a list costs the same however many documents wait, because
//! what it counts is bounded.

use crate::ids::{ConnectionId, JobId, NodeId, Part};
use crate::tables::ingests::{self, Due};
use crate::tables::{counters, settings};
use crate::{Result, Tx};
use std::collections::BTreeMap;

/// Outages that are listed at most.
const OUTAGES_MAX: u32 = 1_000;
/// Jobs that are named for one output at most.
const JOBS_MAX: u32 = 20;
/// Documents that are counted for one output at most.
const WAITING_MAX: i64 = 100_000;
/// Bytes of a reason at most.
const WHY_BYTES_MAX: usize = 2_048;
/// How long a silent process counts as alive: as long as another takes to replace it.
const SILENCE_MS: i64 = 45_000;

/// What could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// An output, which every job that sends documents to it waits for.
    Output(ConnectionId),
    /// The repository of a job that is to be started up or seeded.
    Repository(ConnectionId, JobId),
    /// Somebody who is to be told that a run of a job is over.
    RunEnd(JobId),
}

impl Unreachable {
    /// The connection and the job of its row; 0 where there is none.
    fn key(self) -> (ConnectionId, JobId) {
        match self {
            Unreachable::Output(output) => (output, JobId(0)),
            Unreachable::Repository(repository, job) => (repository, job),
            Unreachable::RunEnd(job) => (ConnectionId(0), job),
        }
    }
}

/// A failed attempt to reach something.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What could not be reached.
    pub what: Unreachable,
    /// The process that tried.
    pub node: NodeId,
    /// When the first of the attempts failed that failed in a row.
    pub since_ms: i64,
    /// Why, in words for people.
    pub why: String,
}

/// What kind of thing is away.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum OutageKind {
    Output,
    Repository,
    RunEnd,
}

/// Something that cannot be reached, over all processes.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Outage {
    /// What kind of thing it is.
    pub kind: OutageKind,
    /// The name of the connection; empty for the end of a run.
    pub connection: String,
    /// The jobs that wait for it; of an output, the first 20 that send documents there.
    pub jobs: Vec<String>,
    /// When it was first found to be away.
    pub since_ms: i64,
    /// When it was last tried.
    pub tried_ms: i64,
    /// Attempts that failed since then.
    pub attempts: i64,
    /// Why it could not be reached the last time.
    pub why: String,
    /// Documents that wait for it.
    pub waiting: i64,
    /// Whether more documents wait than were counted.
    pub waiting_more: bool,
}

/// Records a failed attempt.
pub fn record(tx: &mut Tx<'_>, failure: &Failure, now_ms: i64) -> Result<()> {
    let (connection, job) = failure.what.key();
    let why = &failure.why[..failure.why.floor_char_boundary(WHY_BYTES_MAX)];
    tx.execute(
        "INSERT INTO outages (connectionid, jobid, node, since_ms, tried_ms, attempts, why)
         VALUES ($1, $2, $3, $4, $5, 1, $6)
         ON CONFLICT (connectionid, jobid, node) DO UPDATE
         SET tried_ms = excluded.tried_ms, attempts = outages.attempts + 1, why = excluded.why",
        &[
            connection.into(),
            job.into(),
            failure.node.into(),
            failure.since_ms.into(),
            now_ms.into(),
            // PostgreSQL cannot hold a NUL, and what a server says may have one.
            why.replace('\0', " ").as_str().into(),
        ],
    )?;
    Ok(())
}

/// A process has reached an output again, or does not wait for it any more.
pub fn clear_output(tx: &mut Tx<'_>, output: ConnectionId, node: NodeId) -> Result<()> {
    tx.execute(
        "DELETE FROM outages WHERE connectionid = $1 AND jobid = 0 AND node = $2",
        &[output.into(), node.into()],
    )?;
    Ok(())
}

/// A job does not wait for anything any more, whichever process waited for it.
pub fn clear_job(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    tx.execute("DELETE FROM outages WHERE jobid = $1", &[job.into()])?;
    Ok(())
}

/// Why a job cannot go on, as the last attempt says; `None` if none has failed.
pub fn why_of_job(tx: &mut Tx<'_>, job: JobId) -> Result<Option<String>> {
    tx.query_opt(
        "SELECT why FROM outages WHERE jobid = $1 ORDER BY tried_ms DESC, node LIMIT 1",
        &[job.into()],
        |row| row.get(0),
    )
}

/// What processes recorded that do not run any more.
pub fn clear_gone(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute(
        "DELETE FROM outages WHERE NOT EXISTS
             (SELECT 1 FROM nodes n WHERE n.id = outages.node
                AND n.state IN ('joining', 'ready', 'draining'))",
        &[],
    )?;
    Ok(())
}

/// Everything that some process cannot reach now, each once.
pub fn list(tx: &mut Tx<'_>, now_ms: i64) -> Result<Vec<Outage>> {
    let rows: Vec<((ConnectionId, JobId), Option<String>, Outage)> = tx.query(
        "SELECT o.connectionid, o.jobid, c.connectionname, d.name, o.since_ms, o.tried_ms,
             o.attempts, o.why
         FROM outages o
         JOIN nodes n ON n.id = o.node
         LEFT JOIN connections c ON c.id = o.connectionid
         LEFT JOIN job_definitions d ON d.id = o.jobid
         WHERE n.state IN ('joining', 'ready', 'draining') AND n.heartbeat_ms >= $1
           AND (o.connectionid = 0 OR c.id IS NOT NULL) AND (o.jobid = 0 OR d.id IS NOT NULL)
         ORDER BY o.connectionid, o.jobid, o.tried_ms LIMIT $2",
        &[(now_ms - SILENCE_MS).into(), OUTAGES_MAX.into()],
        |row| {
            let (connection, job): (ConnectionId, JobId) = (row.get(0)?, row.get(1)?);
            let kind = match (connection.0, job.0) {
                (_, 0) => OutageKind::Output,
                (0, _) => OutageKind::RunEnd,
                _ => OutageKind::Repository,
            };
            let outage = Outage {
                kind,
                connection: row.get::<Option<String>>(2)?.unwrap_or_default(),
                jobs: Vec::new(),
                since_ms: row.get(4)?,
                tried_ms: row.get(5)?,
                attempts: row.get(6)?,
                why: row.get(7)?,
                waiting: 0,
                waiting_more: false,
            };
            Ok(((connection, job), row.get(3)?, outage))
        },
    )?;
    // Several processes may have tried the same; the last word is that of the latest try.
    let mut merged: BTreeMap<(ConnectionId, JobId), Outage> = BTreeMap::new();
    for (key, job, mut outage) in rows {
        outage.jobs.extend(job);
        if let Some(other) = merged.get(&key) {
            outage.since_ms = outage.since_ms.min(other.since_ms);
            outage.attempts += other.attempts;
        }
        merged.insert(key, outage);
    }
    for ((connection, job), outage) in &mut merged {
        match outage.kind {
            OutageKind::Output => measure_output(tx, *connection, outage)?,
            OutageKind::Repository => outage.waiting = outstanding(tx, *job)?,
            OutageKind::RunEnd => {}
        }
    }
    Ok(merged.into_values().collect())
}

/// Finds the jobs that wait for an output, and how many documents do.
fn measure_output(tx: &mut Tx<'_>, output: ConnectionId, outage: &mut Outage) -> Result<()> {
    outage.jobs = jobs_of_output(tx, output)?;
    outage.waiting = undelivered(tx, output)?;
    outage.waiting_more = outage.waiting >= WAITING_MAX;
    Ok(())
}

/// Documents of a job that are to be looked at.
fn outstanding(tx: &mut Tx<'_>, job: JobId) -> Result<i64> {
    let mut count = 0;
    for state in ["ready", "waiting", "active"] {
        count += counters::total(tx, job, state)?;
    }
    Ok(count)
}

fn jobs_of_output(tx: &mut Tx<'_>, output: ConnectionId) -> Result<Vec<String>> {
    tx.query(
        "SELECT DISTINCT d.name FROM jobpipelines p JOIN job_definitions d ON d.id = p.ownerid
         WHERE p.connectionid = $1 AND p.kind = 'output' ORDER BY d.name LIMIT $2",
        &[output.into(), JOBS_MAX.into()],
        |row| row.get(0),
    )
}

/// Decisions that an output has not heard, in the parts whose counters say that there are
/// any; an index counts them.
fn undelivered(tx: &mut Tx<'_>, output: ConnectionId) -> Result<i64> {
    let parts: Vec<Part> = tx.query(
        "SELECT DISTINCT part FROM counters WHERE name = $1 AND value > 0 ORDER BY part LIMIT $2",
        &[ingests::UNDELIVERED.into(), settings::PARTS_MAX.into()],
        |row| row.get(0),
    )?;
    let mut waiting = 0;
    for part in parts {
        if waiting >= WAITING_MAX {
            break;
        }
        waiting += ingests::count_undelivered(tx, Due { part, output }, WAITING_MAX - waiting)?;
    }
    Ok(waiting)
}

#[cfg(test)]
mod tests;
