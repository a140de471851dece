//! Processes that work on the data, or have: what the API tells of them.

use super::answers::Answers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use store::tables::nodes;

/// Processes that are told of at most.
const LIMIT_MAX: u32 = 1_000;

/// The question, as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    limit: u32,
}

/// A start of a process.
#[derive(Serialize, JsonSchema)]
pub struct Line {
    /// The start.
    id: i64,
    /// The process's name among those that share a database.
    name: String,
    /// What it does.
    roles: String,
    /// Its program's version.
    version: String,
    /// Whether it runs.
    state: String,
    /// How it is.
    health: String,
    /// When it was started.
    started_ms: i64,
    /// When it was last heard of.
    heartbeat_ms: i64,
    /// When it was stopped.
    stopped_ms: Option<i64>,
}

/// The processes, by the process that has the rows.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let limit = ask.limit.clamp(1, LIMIT_MAX);
    let found = answers.db.read(move |tx| nodes::list(tx, limit))?;
    let lines = found.into_iter().map(|it| Line {
        id: it.id.0,
        name: it.name,
        roles: it.roles,
        version: it.version,
        state: it.state.name().to_owned(),
        health: it.health,
        started_ms: it.started_ms,
        heartbeat_ms: it.heartbeat_ms,
        stopped_ms: it.stopped_ms,
    });
    Ok(serde_json::to_value(lines.collect::<Vec<_>>())?)
}
