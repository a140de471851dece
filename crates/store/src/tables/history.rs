//! Every activity, as the reports show it (table 11.11), with counts and retention.
//!
//! Whoever does something appends it in the transaction of what it tells of. Invariants:
//! an activity is one row; the counts of its hour ([`counts`]) change in the same
//! transaction, when it is written and when it is forgotten, so that at every commit they
//! equal the rows.

pub mod counts;
mod query;
mod retention;

pub use query::{ActivityQuery, Key, page, reach};
pub use retention::{ACTIVITIES_MIN, PER_DOCUMENT_MAX, excess, retention_after, step, thin};

use crate::ids::{ConnectionId, JobId, Part};
use crate::{Result, Tx, Value};
use page::ids::hash128;

/// Bytes of a result's class: it is part of a key.
const RESULT_BYTES_MAX: usize = 255;
/// What the description of a look begins with that found nothing new, where the result
/// alone does not say so.
const NOTHING_NEW: &str = "nothing new";
/// Results that say so by themselves: of the web, and of other connectors.
const UNCHANGED: [&str; 2] = ["304", "UNCHANGED"];
/// The part that what jobs do as a whole is written to.
const JOBS_PART: Part = Part(0);

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Activity {
    pub id: i64,
    pub connection: ConnectionId,
    pub job: Option<JobId>,
    /// Such as `fetch`, `robots`, `document ingest`, `job start`.
    pub kind: String,
    /// What it was about: a URL, a job's name.
    pub entity: String,
    pub bytes: Option<i64>,
    /// The class of the result: `OK`, `404`, `EXCLUDEDURL` …
    pub result: Option<String>,
    /// The result in words.
    pub description: Option<String>,
    pub start_ms: i64,
    pub end_ms: i64,
}

impl Activity {
    /// Whether it is a look that found nothing new.
    pub fn is_nothing_new(&self) -> bool {
        says_nothing_new(self.result.as_deref(), self.description.as_deref())
    }

    /// Notes that it is a look that found nothing new.
    pub fn say_nothing_new(&mut self) {
        if !self.is_nothing_new() {
            self.description = Some(match self.description.take() {
                Some(detail) => format!("{NOTHING_NEW}: {detail}"),
                None => NOTHING_NEW.to_owned(),
            });
        }
    }

    /// The class of its result, as it is stored.
    fn result_class(&self) -> Option<&str> {
        let result = self.result.as_deref()?;
        Some(&result[..result.floor_char_boundary(RESULT_BYTES_MAX)])
    }
}

fn says_nothing_new(result: Option<&str>, description: Option<&str>) -> bool {
    result.is_some_and(|it| UNCHANGED.contains(&it))
        || description.is_some_and(|it| it.starts_with(NOTHING_NEW))
}

/// Writes activities, in the transaction of what they tell of.
pub fn append(tx: &mut Tx<'_>, part: Part, activities: &[Activity]) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = activities
        .iter()
        .map(|it| {
            vec![
                part.into(),
                it.id.into(),
                it.connection.into(),
                it.job.into(),
                (&it.kind).into(),
                (&it.entity).into(),
                it.bytes.into(),
                it.result_class().into(),
                (&it.description).into(),
                it.start_ms.into(),
                it.end_ms.into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO history (part, id, connectionid, jobid, activitytype, entityid, datasize,
                              resultcode, resultdesc, starttime, endtime)",
        &rows,
        "",
    )?;
    counts::add(tx, part, activities)
}

/// What a job as a whole did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobActivity<'a> {
    pub job: JobId,
    /// Such as `job start`.
    pub kind: &'a str,
    /// The class of the result.
    pub result: &'a str,
    /// The result in words.
    pub description: Option<&'a str>,
}

/// Writes what a job as a whole did, in the transaction that changed where it stands:
/// its connection's history tells of it. Nothing is written for a job that is not there.
pub fn append_job(tx: &mut Tx<'_>, it: JobActivity<'_>, now_ms: i64) -> Result<()> {
    let known: Option<(ConnectionId, String, i64)> = tx.query_opt(
        "SELECT d.connectionid, d.name, s.changed_ms FROM job_definitions d
         JOIN job_states s ON s.jobid = d.id WHERE d.id = $1",
        &[it.job.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let Some((connection, name, stamp)) = known else { return Ok(()) };
    let activity = Activity {
        id: job_activity_id(it.job, stamp),
        connection,
        job: Some(it.job),
        kind: it.kind.to_owned(),
        entity: name,
        bytes: None,
        result: Some(it.result.to_owned()),
        description: it.description.map(str::to_owned),
        start_ms: now_ms,
        end_ms: now_ms,
    };
    append(tx, JOBS_PART, &[activity])
}

/// A number for what a job did. Whoever tells a job something need not be a node, so it
/// has no ids of its own; but a job's stamp grows with every change, under its row's lock.
/// Below zero there are no ids of nodes.
fn job_activity_id(job: JobId, stamp: i64) -> i64 {
    let mut key = job.0.to_be_bytes().to_vec();
    key.extend(stamp.to_be_bytes());
    let hash = hash128(&key);
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(first) | i64::MIN
}

#[cfg(test)]
mod tests;
