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
use store::tables::job_states;
use store::tables::outages::Outage;
use store::tables::overview::{self, Overview};

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
    pub overview: Overview,
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

impl Verb for Status {
    const NAME: &'static str = "status";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = ();
    type Response = StatusResponse;

    fn answer(context: &VerbContext, _: ()) -> anyhow::Result<StatusResponse> {
        let now_ms = clock::now_ms();
        let doing = context.doing.clone();
        let (mut overview, endless, outages, held) = context.db.read(move |tx| {
            let overview = overview::read(tx, now_ms)?;
            let outages = outages::current(tx, doing.as_deref(), now_ms)?;
            let (mut endless, mut held) = (Vec::new(), BTreeMap::new());
            for job in &overview.jobs {
                if let Some(name) = &job.name {
                    let id = JobId(job.id);
                    endless.extend(endless::of_job(tx, id, name)?);
                    let state = job_states::state(tx, id)?;
                    let of_job = removals::held_removals(tx, id, &state)?;
                    held.extend(of_job.map(|it| (name.clone(), it)));
                }
            }
            Ok((overview, endless, outages, held))
        })?;
        let doing = context.doing.clone();
        let holder = doing.map(|doing| Holder { process: std::process::id(), doing });
        for job in &mut overview.jobs {
            job.standing = context.standing(job.standing);
        }
        if context.is_unattended() {
            overview.nodes.clear();
        }
        Ok(StatusResponse { holder, overview, endless, outages, held })
    }
}
