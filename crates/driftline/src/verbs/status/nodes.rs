//! Processes that work on the data, or have.

use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::{LIST_LIMIT_MAX, usual_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::tables::nodes;

/// Processes that have worked on the data, the newest first.
pub struct Nodes;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesRequest {
    /// Number of processes to list
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: u32,
}

/// A start of a process.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct NodeLine {
    id: i64,
    /// The process's name among those that share a database.
    name: String,
    /// The roles of the process, separated by commas.
    roles: String,
    /// The version of its program.
    version: String,
    /// Whether the process runs, was stopped, or is gone.
    state: String,
    health: String,
    started_ms: i64,
    heartbeat_ms: i64,
    stopped_ms: Option<i64>,
}

impl Verb for Nodes {
    const NAME: &'static str = "nodes";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = NodesRequest;
    type Response = Vec<NodeLine>;

    fn answer(context: &VerbContext, request: NodesRequest) -> anyhow::Result<Vec<NodeLine>> {
        let limit = request.limit.clamp(1, LIST_LIMIT_MAX);
        let found = context.db.read(move |tx| nodes::list(tx, limit))?;
        let line = |it: nodes::Node| NodeLine {
            id: it.id.0,
            name: it.name,
            roles: it.roles,
            version: it.version,
            state: it.state.name().to_owned(),
            health: it.health,
            started_ms: it.started_ms,
            heartbeat_ms: it.heartbeat_ms,
            stopped_ms: it.stopped_ms,
        };
        Ok(found.into_iter().map(line).collect())
    }
}
