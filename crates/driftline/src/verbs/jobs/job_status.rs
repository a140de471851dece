//! How jobs stand: the state by its name and in a plain word, what is counted of their
//! documents, and whether somebody works on them.
//!
//! Relies on counters, so it costs the same however many documents there are. Invariant:
//! the words are those of ManifoldCF's interface, so that whoever knows one knows both.

use super::find;
use crate::place::holder::{DOING_CRAWL, DOING_SERVE, DOING_WORK};
use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::status::outages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use store::dialect::Dialect;
use store::tables::job_states::{self, JobState, Phase, Restart};
use store::tables::jobs::{self, Job};
use store::tables::outages::Outage;
use store::tables::{connections, counters, ingests, nodes};
use store::{Tx, clock};

/// The role of nodes that work on all jobs.
pub const WORK_ROLE: &str = "work";
/// The role of nodes that work on jobs.
const CRAWLS: &str = crawl::worker::ROLE;
/// How long a silent process counts as alive on a database: as long as another takes to
/// replace it.
const SILENCE_MS: i64 = 45_000;
const JOBS_MAX: u32 = 10_000;

/// How a job stands.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobLine {
    pub name: String,
    /// Where its documents come from.
    pub connection: String,
    /// The name of its state, as table 11.24 has it.
    pub state: String,
    /// The same in a word for people.
    pub word: String,
    /// The current or last run; 0 before the first.
    pub run: i64,
    /// Documents that it has let in.
    pub documents: i64,
    /// Those that are to be looked at, now or later.
    pub outstanding: i64,
    /// Those that have been looked at and are kept.
    pub processed: i64,
    /// Those that were given up.
    pub failed: i64,
    /// What its outputs must still hear.
    #[serde(default)]
    pub undelivered: i64,
    /// What an output could not take.
    #[serde(default)]
    pub undeliverable: i64,
    /// Why its last run was aborted.
    pub error: Option<String>,
    /// Whether somebody works on it.
    pub attended: bool,
    /// Outputs and repositories that it waits for because they cannot be reached.
    #[serde(default)]
    pub outages: Vec<Outage>,
}

/// How all jobs stand, or one; none if there is no such job.
pub struct Jobs;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsRequest {
    /// Name of the job; without it, all jobs
    pub name: Option<String>,
}

impl Verb for Jobs {
    const NAME: &'static str = "jobs";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = JobsRequest;
    type Response = Vec<JobLine>;

    fn answer(context: &VerbContext, request: JobsRequest) -> anyhow::Result<Vec<JobLine>> {
        let (doing, now_ms) = (context.doing.clone(), clock::now_ms());
        Ok(context
            .db
            .read(move |tx| lines(tx, request.name.as_deref(), doing.as_deref(), now_ms))?)
    }
}

fn lines(
    tx: &mut Tx<'_>,
    name: Option<&str>,
    doing: Option<&str>,
    now_ms: i64,
) -> store::Result<Vec<JobLine>> {
    let jobs = match name {
        Some(name) => jobs::find(tx, name)?.into_iter().collect(),
        None => jobs::list(tx, "", JOBS_MAX)?,
    };
    let counted = match jobs.as_slice() {
        [one] => [(one.id, counters::of_job(tx, one.id)?)].into(),
        _ => counters::of_jobs(tx, JOBS_MAX)?,
    };
    let workers = workers(tx, doing, now_ms)?;
    let away = outages::current(tx, doing, now_ms)?;
    let mut names = HashMap::new();
    let mut lines = Vec::new();
    for job in jobs {
        let connection = job.connection;
        if let std::collections::hash_map::Entry::Vacant(place) = names.entry(connection) {
            let found = connections::load(tx, connection)?;
            place.insert(found.map_or_else(String::new, |(_, it)| it.name));
        }
        let counters = counted.get(&job.id).cloned().unwrap_or_default().into_iter().collect();
        let state = job_states::state(tx, job.id)?;
        let attended = workers.attend(tx, &state, now_ms)?;
        let outages = outages::of_job(&away, &job.name);
        let line = line(job, &names[&connection], &counters, &state);
        lines.push(JobLine { attended, outages, ..line });
    }
    Ok(lines)
}

/// How one job stands, with its state and its counters.
pub fn one(
    tx: &mut Tx<'_>,
    doing: Option<&str>,
    name: &str,
    now_ms: i64,
) -> store::Result<(JobLine, JobState, BTreeMap<String, i64>)> {
    let job = find(tx, name)?;
    let counters: BTreeMap<String, i64> = counters::of_job(tx, job.id)?.into_iter().collect();
    let connection =
        connections::load(tx, job.connection)?.map_or_else(String::new, |it| it.1.name);
    let state = job_states::state(tx, job.id)?;
    let attended = workers(tx, doing, now_ms)?.attend(tx, &state, now_ms)?;
    let outages = outages::of_job(&outages::current(tx, doing, now_ms)?, name);
    let line = line(job, &connection, &counters, &state);
    Ok((JobLine { attended, outages, ..line }, state, counters))
}

/// How a job stands by its rows alone.
fn line(job: Job, connection: &str, counters: &BTreeMap<String, i64>, state: &JobState) -> JobLine {
    let sum = |names: &[&str]| -> i64 { names.iter().filter_map(|name| counters.get(*name)).sum() };
    // In a continuous job what has been looked at waits for its next look.
    let processed: &[&str] = if job.continuous { &["done", "waiting"] } else { &["done"] };
    JobLine {
        name: job.name,
        connection: connection.to_owned(),
        state: state.name(),
        word: word(state).to_owned(),
        run: state.run.0,
        documents: sum(&["ready", "waiting", "active", "done", "failed"]),
        outstanding: sum(&["ready", "waiting", "active"]),
        processed: sum(processed),
        failed: sum(&["failed"]),
        undelivered: sum(&[ingests::UNDELIVERED]),
        undeliverable: sum(&[ingests::UNDELIVERABLE]),
        error: state.error.clone(),
        attended: false,
        outages: Vec::new(),
    }
}

/// A state in the word that ManifoldCF's interface has for it.
pub fn word(state: &JobState) -> &'static str {
    match state.phase {
        Phase::Inactive if state.error.is_some() => "error",
        Phase::Inactive if state.run.0 == 0 => "not yet run",
        Phase::Inactive if state.end_ms.is_none() => "aborted",
        Phase::Inactive => "done",
        Phase::ReadyForStartup | Phase::StartingUp => "starting up",
        Phase::Active if state.resuming => "resuming",
        Phase::Active if state.stopping => "stopping",
        Phase::Active if state.paused => "paused",
        Phase::Active if state.waiting => "waiting",
        Phase::Active if !(state.repository_present && state.outputs_present) => {
            "running no connector"
        }
        Phase::Active => "running",
        Phase::ShuttingDown => "cleaning up",
        Phase::Aborting if state.restart != Restart::None => "restarting",
        Phase::Aborting => "aborting",
        Phase::ReadyForNotify | Phase::Notifying => "end notification",
        Phase::ReadyForDelete
        | Phase::DeleteStartingUp
        | Phase::Deleting
        | Phase::ReadyForDeleteNotify
        | Phase::NotifyingOfDeletion => "terminating",
    }
}

/// Who works on jobs, as far as the process that answers can tell.
enum Workers {
    Nobody,
    /// A process that works on the job it was given.
    OnOne,
    OnAll,
}

fn workers(tx: &mut Tx<'_>, doing: Option<&str>, now_ms: i64) -> store::Result<Workers> {
    if tx.dialect() == Dialect::Postgres {
        let heard_since_ms = now_ms - SILENCE_MS;
        if !nodes::live(tx, WORK_ROLE, heard_since_ms, 1)?.is_empty() {
            return Ok(Workers::OnAll);
        }
        let crawls = nodes::live(tx, CRAWLS, heard_since_ms, 1)?;
        return Ok(if crawls.is_empty() { Workers::Nobody } else { Workers::OnOne });
    }
    // A lock outlives no process, so who holds the directory is what counts.
    Ok(match doing {
        Some(DOING_WORK | DOING_SERVE) => Workers::OnAll,
        Some(DOING_CRAWL) => Workers::OnOne,
        _ => Workers::Nobody,
    })
}

impl Workers {
    fn attend(&self, tx: &mut Tx<'_>, state: &JobState, now_ms: i64) -> store::Result<bool> {
        match (self, state.node) {
            (Workers::OnAll, _) => Ok(true),
            (Workers::OnOne, Some(node)) if state.phase != Phase::Inactive => {
                nodes::is_live(tx, node, now_ms - SILENCE_MS)
            }
            _ => Ok(false),
        }
    }
}
