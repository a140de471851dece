//! Jobs, from their definition to their end, with their documents and hosts and what they did.
//!
//! A job is shown and edited as it stands in the document of all definitions, so it is
//! checked in the same way; where it stands changes by events of the life cycle only.
//! Invariants: an edit and an action are one transaction each; an action that is refused
//! changes nothing and says why, and what can be done instead.

pub mod actions;
pub mod define;
pub mod documents;
pub mod failed;
pub mod flags;
pub mod hosts;
pub mod job_status;
pub mod removals;
pub mod report;
pub mod retry;
pub mod show;
pub mod state;
#[cfg(test)]
mod tests;
mod undelivered;
pub mod why;

use super::registry::{RegisteredVerb, change, verb, verb_at};
use crate::text::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Tx;
use store::tables::jobs::{self, Job};

/// The verbs of this room.
pub const VERBS: &[RegisteredVerb] = &[
    verb::<job_status::Jobs>(),
    verb::<show::ShowJob>(),
    verb::<state::JobStateOf>(),
    verb::<failed::FailedDocuments>(),
    verb::<removals::Removals>(),
    change::<define::DefineJob>(),
    change::<actions::ActOnJob>(),
    change::<retry::RetryFailed>(),
    change::<removals::DecideRemovals>(),
    verb_at::<documents::Documents>("/api/v1/documents", "Documents of a job by state"),
    verb_at::<why::Why>("/api/v1/why", "Why a URL is stored or not"),
    verb_at::<hosts::Hosts>("/api/v1/hosts", "Hosts that jobs have visited, or one in detail"),
    verb::<report::Reports>(),
];

/// A request about one job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// The job
    pub name: String,
}

/// The job of a name.
pub fn find(tx: &mut Tx<'_>, name: &str) -> store::Result<Job> {
    jobs::find(tx, name)?.ok_or_else(|| unknown(name))
}

/// A refusal of a name that no job has.
pub fn unknown(name: &str) -> store::Error {
    store::Error::Refused(format!(
        "there is no job named {}; `driftline job list` lists them",
        shown(name)
    ))
}
