//! What there is, who works on it, and how each job stands.
//!
//! Costs the same however many documents there are: it reads counters and small tables.

pub mod endless;
pub mod nodes;
pub mod outages;

use super::Verb;
use super::access::{Area, Needs};
use super::context::VerbContext;
use super::jobs::removals::{self, HeldRemovals};
use super::registry::{RegisteredVerb, verb, verb_at};
use endless::Endless;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::clock;
use store::ids::JobId;
use store::tables::cursors::Lag;
use store::tables::job_states;
use store::tables::outages::Outage;
use store::tables::overview::{self, JobOverview, NodeOverview, Overview, RunTotals, Standing};
use store::tables::settings::LoadedArchives;

/// The verbs of this room.
pub const VERBS: &[RegisteredVerb] = &[
    verb::<Status>(),
    verb_at::<nodes::Nodes>(
        "/api/v1/nodes",
        "Processes that have worked on the data, newest first",
    ),
];

/// What there is, who works on it, and how each job stands.
pub struct Status;

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct StatusResponse {
    /// The process that holds the directory; `null` if there is none.
    pub holder: Option<Holder>,
    pub overview: Summary,
    /// Sites without end that were met.
    #[serde(default)]
    pub endless: Vec<Endless>,
    /// Outputs and repositories that cannot be reached now.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Removals that are held, by job.
    #[serde(default)]
    pub held: BTreeMap<String, HeldRemovals>,
}

/// A process that holds the directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// The number of the process.
    pub process: u32,
    /// The command that it carries out.
    pub doing: String,
}

/// What there is. What an older process does not tell is missing.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Parts of the database.
    pub parts: u32,
    /// The schema's version.
    pub schema: i64,
    /// Commits over all parts.
    pub commits: i64,
    /// Hosts that are left alone after trouble.
    #[serde(default)]
    pub hosts_blocked: i64,
    /// How far the link index is behind the crawl, where there is or will be one.
    #[serde(default)]
    pub links: Option<Lag>,
    /// What archives have brought into the link index, if anything.
    #[serde(default)]
    pub loaded: Option<LoadedArchives>,
    /// How far the search index is behind, if anything was committed.
    #[serde(default)]
    pub search: Option<Lag>,
    /// Processes that hold a lease.
    #[serde(default)]
    pub nodes: Vec<NodeSummary>,
    /// Jobs with their documents by state.
    pub jobs: Vec<JobSummary>,
}

/// A process that holds a lease.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NodeSummary {
    pub id: i64,
    pub name: String,
    /// What it does.
    pub roles: String,
    /// When it was last heard of.
    pub heartbeat_ms: i64,
}

/// How one job stands, its documents by state, and what its last run changed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct JobSummary {
    pub id: i64,
    /// `null` if it is not defined any more.
    pub name: Option<String>,
    pub standing: Standing,
    /// The current or last run; 0 before the first.
    pub run: i64,
    /// When that run began.
    pub start_ms: Option<i64>,
    /// When it ended well.
    pub end_ms: Option<i64>,
    /// Why it was aborted.
    pub error: Option<String>,
    /// Counters that are not zero, by name.
    pub counters: BTreeMap<String, i64>,
    /// What that run has committed so far.
    pub last_run: RunTotals,
}

impl Verb for Status {
    const NAME: &'static str = "status";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = ();
    type Response = StatusResponse;

    fn answer(context: &VerbContext, _: ()) -> anyhow::Result<StatusResponse> {
        let now_ms = clock::now_ms();
        let doing = context.doing.clone();
        let (overview, endless, outages, held) = context.db.read(move |tx| {
            let overview = overview::read(tx, now_ms)?;
            let outages = outages::current(tx, doing.as_deref(), now_ms)?;
            let (mut endless, mut held) = (Vec::new(), BTreeMap::new());
            for job in &overview.jobs {
                if let Some(name) = &job.name {
                    let id = JobId(job.id);
                    endless.extend(endless::of_job(tx, id, name)?);
                    let state = job_states::state(tx, id)?;
                    let of_job = removals::held(tx, id, &state)?;
                    held.extend(of_job.map(|it| (name.clone(), it)));
                }
            }
            Ok((overview, endless, outages, held))
        })?;
        let doing = context.doing.clone();
        let holder = doing.map(|doing| Holder { process: std::process::id(), doing });
        let mut overview = Summary::from(overview);
        for job in &mut overview.jobs {
            job.standing = context.standing(job.standing);
        }
        if context.is_unattended() {
            overview.nodes.clear();
        }
        Ok(StatusResponse { holder, overview, endless, outages, held })
    }
}

impl From<Overview> for Summary {
    fn from(it: Overview) -> Summary {
        Summary {
            parts: it.parts,
            schema: it.schema,
            commits: it.commits,
            hosts_blocked: it.hosts_blocked,
            links: it.links,
            loaded: it.loaded,
            search: it.search,
            nodes: it.nodes.into_iter().map(NodeSummary::from).collect(),
            jobs: it.jobs.into_iter().map(JobSummary::from).collect(),
        }
    }
}

impl From<NodeOverview> for NodeSummary {
    fn from(it: NodeOverview) -> NodeSummary {
        let NodeOverview { id, name, roles, heartbeat_ms } = it;
        NodeSummary { id, name, roles, heartbeat_ms }
    }
}

impl From<JobOverview> for JobSummary {
    fn from(it: JobOverview) -> JobSummary {
        JobSummary {
            id: it.id,
            name: it.name,
            standing: it.standing,
            run: it.run,
            start_ms: it.start_ms,
            end_ms: it.end_ms,
            error: it.error,
            counters: it.counters,
            last_run: it.last_run,
        }
    }
}
