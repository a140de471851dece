//! The documents of a job, with filters, page after page.
//!
//! `walk` goes along the queue's indexes. Invariant: an answer costs a bounded number
//! of rows, whatever is asked for; when there may be more, it has a cursor to go on.

pub mod walk;

use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::{LIST_LIMIT_MAX, usual_limit};
use clap::Args as ClapArgs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::tables::queue::State;
use store::tables::queue::list::ListedDocument;
use walk::{DocumentWalk, walk};

/// The documents of a job by where they stand.
pub struct Documents;

#[derive(ClapArgs, Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentsRequest {
    /// Name of the job; can be omitted if there is only one
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub filter: DocumentFilter,
    /// Number of documents to list
    #[arg(long, value_name = "N", default_value_t = usual_limit(),
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: u32,
    /// Cursor of the next page, from an earlier answer
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// What a document must be to be listed.
#[derive(ClapArgs, Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentFilter {
    /// Only documents in this state
    #[arg(long, value_name = "STATE", value_parser = state_name)]
    #[schemars(with = "Option<StateName>")]
    pub state: Option<String>,
    /// Only documents with this reason, such as robots, hops, dns or http-503
    #[arg(long, value_name = "CODE")]
    pub reason: Option<String>,
    /// Only documents of this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Only documents with this status of the last response, such as 404
    #[arg(long, value_name = "CODE")]
    #[schemars(range(min = 0, max = 999))]
    pub status: Option<i64>,
    /// Only documents whose URL contains this text
    #[arg(long, value_name = "TEXT")]
    pub contains: Option<String>,
}

impl DocumentFilter {
    /// Documents that were given up, for a reason or for any.
    pub fn failed(reason: Option<String>) -> DocumentFilter {
        let state = Some(State::Failed.name().to_owned());
        DocumentFilter { state, reason, ..DocumentFilter::default() }
    }
}

/// The states, as the document of the API lists them.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum StateName {
    Ready,
    Waiting,
    Active,
    Done,
    Cut,
    Failed,
}

fn state_name(text: &str) -> Result<String, String> {
    if State::ALL.iter().any(|state| state.name() == text) {
        return Ok(text.to_owned());
    }
    let names: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
    Err(format!("states are {}", names.join(", ")))
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DocumentsResponse {
    pub job: String,
    pub urls: Vec<DocumentLine>,
    /// How many documents were looked at.
    pub walked: u64,
    /// To go on with; `null` when all was seen.
    pub cursor: Option<String>,
}

/// A document, as it is listed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DocumentLine {
    pub url: String,
    pub state: String,
    pub status: Option<i64>,
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub outcome: Option<String>,
    pub checked_ms: Option<i64>,
    pub due_ms: Option<i64>,
    pub hops: i64,
    /// `page`, or `requisite` for what pages only need to be shown.
    pub role: String,
    /// The last run that settled it.
    pub run: Option<i64>,
}

impl From<ListedDocument> for DocumentLine {
    fn from(row: ListedDocument) -> DocumentLine {
        DocumentLine {
            url: row.docid,
            state: row.state.name().to_owned(),
            status: row.status,
            reason: row.reason,
            detail: row.detail,
            outcome: row.outcome,
            checked_ms: row.checked_ms,
            due_ms: row.check_ms,
            hops: row.hops,
            role: row.role.name().to_owned(),
            run: row.done_run.map(|run| run.0),
        }
    }
}

impl Verb for Documents {
    const NAME: &'static str = "documents";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = DocumentsRequest;
    type Response = DocumentsResponse;

    fn answer(
        context: &VerbContext,
        request: DocumentsRequest,
    ) -> anyhow::Result<DocumentsResponse> {
        let job = context.job(request.job)?;
        let limit = request.limit.clamp(1, LIST_LIMIT_MAX) as usize;
        let asked = DocumentWalk { filter: &request.filter, cursor: request.cursor.as_deref() };
        let found = walk(&context.db, &job, &asked, limit)?;
        Ok(DocumentsResponse {
            job: job.name,
            urls: found.rows.into_iter().map(DocumentLine::from).collect(),
            walked: found.walked,
            cursor: found.cursor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_states_are_states() {
        assert!(state_name("cut").is_ok());
        assert!(state_name("lost").is_err_and(|error| error.contains("waiting")));
    }
}
