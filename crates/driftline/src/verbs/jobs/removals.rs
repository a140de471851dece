//! What a job is to lose, and the decision of a person about what is held.
//!
//! Approving is one event of the life cycle; whoever works on the job sweeps then. Rejecting
//! takes the marks off, part by part, and says so at the end. Invariants: a request looks at a
//! bounded number of rows, and whoever asked comes back for the rest; no transaction spans two
//! parts; only what was held when somebody was told is decided.

use super::{find, unknown};
use crate::text::{count, quoted, shown, when};
use crate::verbs::access::{Area, Needs};
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::ChangeContext;
use crate::verbs::context::VerbContext;
use crate::verbs::paging::{LIST_LIMIT_MAX, usual_limit};
use crate::verbs::{Change, Verb};
use clap::Args as ClapArgs;
use crawl::conduct::{self, removals::weigh};
use crawl::lifecycle::JobEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::ids::{JobId, Part, QueueId};
use store::tables::job_states::{self, JobState};
use store::tables::queue::Place as QueuePlace;
use store::tables::{removals, settings};
use store::{Db, Error, Tx, clock};

/// Marks that one transaction takes off.
const STEP: u32 = 1_000;
/// Transactions of one request.
const STEPS_MAX: u32 = 20;

/// What a job is to lose, and whether that is held.
pub struct Removals;

/// Lets a job lose what is held, or keeps it.
pub struct DecideRemovals;

#[derive(ClapArgs, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemovalsRequest {
    /// The job
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Number of documents to list
    #[arg(long, value_name = "N", default_value_t = usual_limit(),
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: u32,
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovalDecision {
    Approve,
    Reject,
}

/// What a job has, has lost and is to lose.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RemovalsResponse {
    pub job: String,
    /// Since when removals are held; `null` when none is.
    pub held_since_ms: Option<i64>,
    /// Documents that the job has now.
    pub documents: i64,
    /// Documents that it had when its run began, or its day.
    pub had: i64,
    /// What it may lose without an approval.
    pub limit: i64,
    /// What it has lost since without an approval.
    pub lost: i64,
    /// Documents that are to leave, by cause.
    pub leaving: BTreeMap<String, i64>,
    /// The first of the documents.
    pub listed: Vec<LeavingDocument>,
}

/// A document that is to leave.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct LeavingDocument {
    pub document: String,
    pub cause: String,
}

/// What came of a decision.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DecidedRemovals {
    pub job: String,
    /// Documents that it concerns.
    pub documents: u64,
    /// The name of the job's state now.
    pub state: String,
    /// Whether all of it is done; otherwise the same request goes on with it.
    pub is_done: bool,
}

/// Removals that are held, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldRemovals {
    /// When the removals were held first.
    pub since_ms: i64,
    /// How many documents, by cause.
    pub leaving: BTreeMap<String, i64>,
}

impl HeldRemovals {
    /// In a line, with what can be done about it.
    pub fn line(&self, job: &str, now_ms: i64) -> String {
        let many = count(self.leaving.values().sum(), "removal");
        let (causes, job) = (causes(&self.leaving), quoted(&shown(job)));
        format!(
            "{many} held since {} ({causes}); decide: driftline job removals show {job}",
            when(self.since_ms, now_ms)
        )
    }
}

pub fn causes(leaving: &BTreeMap<String, i64>) -> String {
    let words: Vec<String> =
        leaving.iter().map(|(cause, number)| format!("{number} {}", shown(cause))).collect();
    words.join(", ")
}

/// What is held of a job, if anything is.
pub fn held_removals(
    tx: &mut Tx<'_>,
    job: JobId,
    state: &JobState,
) -> store::Result<Option<HeldRemovals>> {
    let Some(since_ms) = state.removals.held_ms else { return Ok(None) };
    Ok(Some(HeldRemovals { since_ms, leaving: removals::marked(tx, job)? }))
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecideRequest {
    pub name: String,
    pub decision: RemovalDecision,
}

impl Verb for Removals {
    const NAME: &'static str = "job-removals";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = RemovalsRequest;
    type Response = RemovalsResponse;

    fn answer(context: &VerbContext, request: RemovalsRequest) -> anyhow::Result<RemovalsResponse> {
        look(context, request)
    }
}

impl Change for DecideRemovals {
    const NAME: &'static str = "job-decide";
    const NEEDS: Option<Needs> = Some(Needs::operator(Area::Jobs));
    type Request = DecideRequest;
    type Response = DecidedRemovals;

    /// Carries out a decision, for as much as a request may.
    fn carry_out(
        context: &ChangeContext,
        request: DecideRequest,
    ) -> anyhow::Result<DecidedRemovals> {
        match request.decision {
            RemovalDecision::Approve => approve(&context.db, request.name),
            RemovalDecision::Reject => reject(&context.db, request.name),
        }
    }

    fn subject(request: &DecideRequest) -> AuditSubject {
        AuditSubject::of("job", "removals", &request.name)
    }

    fn outcome(_: &DecidedRemovals) -> String {
        String::new()
    }
}

fn look(context: &VerbContext, request: RemovalsRequest) -> anyhow::Result<RemovalsResponse> {
    let limit = request.limit.clamp(1, LIST_LIMIT_MAX);
    let now_ms = clock::now_ms();
    Ok(context.db.read(move |tx| {
        let job = find(tx, &request.name)?;
        let state = job_states::state(tx, job.id)?;
        let weighed = weigh(tx, &job, &state, now_ms)?;
        let leaving = removals::marked(tx, job.id)?;
        let mut listed = Vec::new();
        for part in (0..i64::from(settings::parts(tx)?)).map(Part) {
            let left = limit - u32::try_from(listed.len()).unwrap_or(limit);
            if left == 0 || leaving.is_empty() {
                break;
            }
            let place = QueuePlace { part, job: job.id };
            let rows = removals::list(tx, place, i64::MIN, QueueId(i64::MIN), left)?;
            let row = |it: removals::MarkedDocument| LeavingDocument {
                document: it.docid,
                cause: it.cause,
            };
            listed.extend(rows.into_iter().map(row));
        }
        Ok(RemovalsResponse {
            held_since_ms: state.removals.held_ms,
            documents: removals::documents(tx, job.id)?,
            had: weighed.base,
            limit: weighed.limit,
            lost: weighed.lost,
            leaving,
            listed,
            job: job.name,
        })
    })?)
}

fn approve(db: &Db, name: String) -> anyhow::Result<DecidedRemovals> {
    let now_ms = clock::now_ms();
    Ok(db.write(move |tx| {
        let job = find(tx, &name)?;
        let documents = removals::marked(tx, job.id)?.values().sum::<i64>();
        let state = conduct::change(tx, job.id, &JobEvent::ApproveRemovals, now_ms)
            .map_err(|error| explained(error, &name))?;
        let (job, documents) = (job.name, u64::try_from(documents).unwrap_or(0));
        Ok(DecidedRemovals { job, documents, state: state.name(), is_done: true })
    })?)
}

fn reject(db: &Db, name: String) -> anyhow::Result<DecidedRemovals> {
    let now_ms = clock::now_ms();
    let wanted = name.clone();
    let (job, round, parts) = db.read(move |tx| {
        let job = find(tx, &wanted)?;
        let state = job_states::state(tx, job.id)?;
        if state.removals.held_ms.is_none() {
            let none = format!("the job is {}; none of its removals are held", state.name());
            return Err(explained(Error::Refused(none), &wanted));
        }
        Ok((job.id, state.removals.held, settings::parts(tx)?))
    })?;
    let (mut steps, mut documents) = (0, 0);
    for part in (0..i64::from(parts)).map(Part) {
        let place = QueuePlace { part, job };
        loop {
            let count = db.write(move |tx| removals::unmark(tx, place, round, STEP))?;
            documents += count;
            steps += u32::from(count > 0);
            if count < u64::from(STEP) {
                break;
            }
            if steps >= STEPS_MAX {
                let state = db.read(move |tx| job_states::state(tx, job))?.name();
                return Ok(DecidedRemovals { job: name, documents, state, is_done: false });
            }
        }
    }
    let state = db.write(move |tx| {
        // What was held meanwhile has not been seen by whoever rejects.
        let before = job_states::lock(tx, job)?.ok_or_else(|| unknown(&name))?;
        if before.removals.held > round {
            return Ok((name.clone(), before));
        }
        let state = conduct::change(tx, job, &JobEvent::RemovalsRejected, now_ms)
            .map_err(|error| explained(error, &name))?;
        Ok((name.clone(), state))
    })?;
    Ok(DecidedRemovals { job: state.0, documents, state: state.1.name(), is_done: true })
}

/// A refusal that names the job and what can be done.
fn explained(error: Error, name: &str) -> Error {
    let Error::Refused(reason) = error else { return error };
    let (name, command) = (shown(name), quoted(name));
    Error::Refused(format!(
        "cannot decide on removals of job {name}: {reason} (next: driftline job removals show \
         {command})"
    ))
}
