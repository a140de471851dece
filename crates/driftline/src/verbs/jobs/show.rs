//! A job: its definition without secrets, how it stands, its last and its next runs.

use super::job_status::{self, JobLine};
use super::removals::{self, HeldRemovals};
use super::{JobRequest, find};
use crate::catalog::typed;
use crate::definitions::{self, JobForm};
use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crawl::schedule::{self, Since};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::ids::Run;
use store::tables::job_states::Phase;
use store::tables::job_states::runs::{self, RunRow};
use store::tables::{jobs, schedules};
use store::{Tx, clock};

/// Everything about one job.
pub struct ShowJob;

/// Runs that are shown, of the past.
const RUNS: u32 = 5;
/// Runs that are foretold.
const NEXT_RUNS: usize = 5;

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ShownJob {
    #[serde(flatten)]
    pub line: JobLine,
    /// How often it has been changed, its making counted.
    pub version: i64,
    /// When its current or last run began.
    pub begun_ms: Option<i64>,
    /// When that run ended well.
    pub ended_ms: Option<i64>,
    /// When its window ends.
    pub window_end_ms: Option<i64>,
    /// Its documents by state, and what else is counted.
    pub counters: BTreeMap<String, i64>,
    pub definition: JobForm,
    /// Removals that are held, if any are.
    #[serde(default)]
    pub removals: Option<HeldRemovals>,
    /// Its last runs, the newest first.
    pub runs: Vec<RunRow>,
    /// When its schedules start it next.
    pub next_runs_ms: Vec<i64>,
}

impl Verb for ShowJob {
    const NAME: &'static str = "job-show";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = JobRequest;
    type Response = ShownJob;

    fn answer(context: &VerbContext, request: JobRequest) -> anyhow::Result<ShownJob> {
        let (doing, now_ms) = (context.doing.clone(), clock::now_ms());
        let name = request.name;
        Ok(context.db.read(move |tx| look(tx, doing.as_deref(), &name, now_ms))?)
    }
}

fn look(tx: &mut Tx<'_>, doing: Option<&str>, name: &str, now_ms: i64) -> store::Result<ShownJob> {
    let job = find(tx, name)?;
    let (line, state, counters) = job_status::one(tx, doing, name, now_ms)?;
    let records = schedules::load(tx, job.id)?;
    // Starts are looked for from the end of the last run on, while there is none.
    let last_ms = match state.phase {
        Phase::Inactive => state.last_ms.unwrap_or(now_ms),
        _ => now_ms,
    };
    let runs = runs::last(tx, job.id, Run(i64::MAX), RUNS)?;
    let since = Since { last_ms, ran_ms: runs.first().and_then(|run| run.ended_ms) };
    Ok(ShownJob {
        line,
        version: jobs::version(tx, job.id)?.unwrap_or(0),
        begun_ms: state.start_ms,
        ended_ms: state.end_ms,
        window_end_ms: state.window_end_ms,
        counters,
        definition: definition(tx, name)?,
        removals: removals::held_removals(tx, job.id, &state)?,
        runs,
        next_runs_ms: schedule::next_runs(job.start, &records, since, now_ms, NEXT_RUNS),
    })
}

/// A job's definition without its secrets.
fn definition(tx: &mut Tx<'_>, name: &str) -> store::Result<JobForm> {
    let stored = definitions::collect(tx)?;
    let broken =
        |reason: String| store::Error::corrupt(format!("the definition of {name}"), reason);
    let form = stored.jobs.get(name).ok_or_else(|| broken("it is not there".to_owned()))?;
    let secrets = definitions::secrets_of_job(&stored, form);
    let mut json = serde_json::to_value(form).map_err(|error| broken(error.to_string()))?;
    typed::hide(&mut json, &secrets);
    serde_json::from_value(json).map_err(|error| broken(error.to_string()))
}
