//! Requests and responses as JSON, between processes and for programs.
//!
//! Invariant: what cannot be read is told in one way: the other process is of another version.

use crate::refusal::refusal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::fmt::Display;

/// Reads a request that another process sent.
pub fn request<T: DeserializeOwned>(request: Json) -> anyhow::Result<T> {
    serde_json::from_value(request).map_err(|error| refusal(other_version(&error)).into())
}

/// Reads a response of another process.
pub fn response<T: DeserializeOwned>(response: Json) -> anyhow::Result<T> {
    serde_json::from_value(response).map_err(|error| anyhow::anyhow!(other_version(&error)))
}

/// A refusal of a verb that is not in the table.
pub fn unknown_verb(name: &str) -> anyhow::Error {
    refusal(other_version(&format!("there is no verb {name:?}"))).into()
}

/// A request or a response as JSON.
pub fn encode(value: &impl Serialize) -> anyhow::Result<Json> {
    Ok(serde_json::to_value(value)?)
}

fn other_version(detail: &dyn Display) -> String {
    format!("the other process is of another version: {detail}; try again with the same version")
}
