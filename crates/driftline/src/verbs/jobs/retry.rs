//! What a job has given up, tried again by somebody who does not want to wait for the next run.
//!
//! Invariants: a request looks at a bounded number of rows, and whoever asked comes back for the
//! rest; no transaction spans two parts.

use super::{find, undelivered, unknown};
use crate::text::{quoted, shown};
use crate::verbs::Change;
use crate::verbs::access::{Area, Needs};
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::ChangeContext;
use page::ids::DocHash;
use page::url::{Policy, canonical};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use store::ids::{JobId, Part, QueueId, Run};
use store::tables::job_states::{self, JobState, Phase};
use store::tables::queue::{self, retry};
use store::tables::{counters, settings};
use store::{Db, Error, Tx};

/// Rows that one transaction looks at.
const STEP: u32 = 500;
/// Transactions of one request.
const STEPS_MAX: u32 = 20;

/// Makes ready again what a job has given up.
pub struct RetryFailed;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    pub name: String,
    /// Only what failed for this reason.
    pub reason: Option<String>,
    pub documents: Vec<String>,
    /// Where an earlier request ended.
    pub after: Option<RetryPosition>,
}

/// A row of a part, behind which a retry goes on.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RetryPosition {
    part: i64,
    row: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RetryResult {
    pub job: String,
    /// Documents that are ready again.
    pub retried: u64,
    /// Documents that were named and have not failed.
    pub unknown: Vec<String>,
    /// To go on with; `null` when all was done.
    pub after: Option<RetryPosition>,
}

impl Change for RetryFailed {
    const NAME: &'static str = "job-retry";
    const NEEDS: Option<Needs> = Some(Needs::operator(Area::Jobs));
    type Request = RetryRequest;
    type Response = RetryResult;

    fn carry_out(context: &ChangeContext, request: RetryRequest) -> anyhow::Result<RetryResult> {
        retry(&context.db, request)
    }

    fn subject(request: &RetryRequest) -> AuditSubject {
        AuditSubject::of("job", "retry", &request.name)
    }

    fn outcome(done: &RetryResult) -> String {
        format!("job {}: {} documents are retried", done.job, done.retried)
    }
}

/// Makes documents ready again, for as many as a request may.
fn retry(db: &Db, it: RetryRequest) -> anyhow::Result<RetryResult> {
    let name = it.name.clone();
    let job = db.read(move |tx| find(tx, &name))?;
    let mut done =
        RetryResult { job: job.name.clone(), retried: 0, unknown: Vec::new(), after: None };
    let keys: Vec<DocHash> = it.documents.iter().flat_map(keys_of).collect();
    let is_meant = undelivered::is_meant_by(it.reason.as_deref());
    let mut taken = Vec::new();
    if is_meant && it.after.is_none() {
        // No run is needed for it: what they say is there.
        (done.retried, taken) = undelivered::retry(db, job.id, &keys)?;
    }
    let from = Part(it.after.map_or(0, |after| after.part));
    let only_outputs = done.retried > 0 || it.reason.as_deref() == Some(undelivered::REASON);
    let parts = db.read(move |tx| {
        // What is refused is refused although nothing has failed.
        match running(tx, job.id, &job.name, false) {
            Err(Error::Refused(_)) if only_outputs => return Ok(Vec::new()),
            outcome => outcome?,
        };
        counters::parts_with(tx, job.id, "failed", from, settings::PARTS_MAX)
    })?;
    let retrying = RetryProgress { db, job: job.id, request: &it, parts };
    match it.documents.is_empty() {
        true => retrying.all(&mut done)?,
        false => retrying.named(&mut done, taken)?,
    }
    Ok(done)
}

/// A retry that is under way.
struct RetryProgress<'a> {
    db: &'a Db,
    job: JobId,
    request: &'a RetryRequest,
    /// The parts that may have what it is about.
    parts: Vec<Part>,
}

impl RetryProgress<'_> {
    /// Makes all documents ready, or all with a reason, from a position on.
    fn all(&self, done: &mut RetryResult) -> anyhow::Result<()> {
        let mut steps = 0;
        for part in &self.parts {
            let after = self.request.after.filter(|it| it.part == part.0);
            let mut at = Some(QueueId(after.map_or(i64::MIN, |it| it.row)));
            while let Some(row) = at {
                if steps == STEPS_MAX {
                    done.after = Some(RetryPosition { part: part.0, row: row.0 });
                    return Ok(());
                }
                steps += 1;
                let (job, name) = (self.job, self.request.name.clone());
                let reason = self.request.reason.clone();
                let place = queue::Place { part: *part, job };
                let step = self.db.write(move |tx| {
                    let run = running(tx, job, &name, true)?;
                    retry::retry(tx, place, run, reason.as_deref(), row, STEP)
                })?;
                done.retried += step.count;
                at = step.next;
            }
        }
        Ok(())
    }

    /// Makes the documents ready that are named; `taken` are those that outputs take again.
    fn named(&self, done: &mut RetryResult, taken: Vec<DocHash>) -> anyhow::Result<()> {
        let texts = &self.request.documents;
        let keys: Vec<DocHash> = texts.iter().flat_map(keys_of).collect();
        let mut found: HashSet<DocHash> = taken.into_iter().collect();
        for part in &self.parts {
            let (job, name, keys) = (self.job, self.request.name.clone(), keys.clone());
            let place = queue::Place { part: *part, job };
            let (count, these) = self.db.write(move |tx| {
                let run = running(tx, job, &name, true)?;
                let these = retry::failed(tx, place, &keys)?;
                Ok((retry::retry_these(tx, place, run, &these)?, these))
            })?;
            done.retried += count;
            found.extend(these);
        }
        let is_unknown = |text: &&String| !keys_of(text).iter().any(|key| found.contains(key));
        done.unknown = texts.iter().filter(is_unknown).cloned().collect();
        Ok(())
    }
}

/// What a document may be known by: its identifier, or a URL that means it.
fn keys_of(text: &String) -> Vec<DocHash> {
    let canonical = canonical(text, &Policy::default()).ok();
    canonical.iter().chain([text]).map(|it| DocHash::of(it)).collect()
}

/// The run of a job that can try again what it has given up. With `keeps`, nobody ends
/// the run before this transaction is over.
fn running(tx: &mut Tx<'_>, job: JobId, name: &str, keeps: bool) -> store::Result<Run> {
    let state = match keeps {
        true => job_states::lock(tx, job)?.ok_or_else(|| unknown(name))?,
        false => job_states::state(tx, job)?,
    };
    match state.phase {
        Phase::Active => Ok(state.run),
        _ => Err(refused(&state, name)),
    }
}

fn refused(state: &JobState, name: &str) -> Error {
    let command = quoted(name);
    let why = match state.phase {
        Phase::Inactive => format!(
            "its next run retries failed documents anyway (next: driftline job start {command})"
        ),
        Phase::ReadyForStartup | Phase::StartingUp => {
            "its run is about to start; try again in a moment".to_owned()
        }
        _ => format!(
            "its run is ending, and the next one retries failed documents anyway (next: driftline \
             job wait {command} && driftline job start {command})"
        ),
    };
    let (name, state) = (shown(name), state.name());
    Error::Refused(format!("job {name} cannot retry anything now: the job is {state}; {why}"))
}
