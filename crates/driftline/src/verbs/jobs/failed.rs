//! The dead letters of a job: documents that a run has given up, and what outputs could not
//! take.
//!
//! A document that was given up stays with its reason, and the next run looks at it again.
//! Invariant: a request looks at a bounded number of rows.

use super::documents::DocumentFilter;
use super::documents::walk::{DocumentWalk, walk};
use super::{find, undelivered};
use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::{LIST_LIMIT_MAX, usual_limit};
use clap::Args as ClapArgs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::tables::counters;
use store::tables::queue::list::ListedDocument;

/// What a job has given up, and why.
pub struct FailedDocuments;

#[derive(ClapArgs, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedRequest {
    /// The job
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Only documents that failed for this reason, such as dns or http-503; `output` for those that
    /// an output rejected
    #[arg(long, value_name = "CODE")]
    pub reason: Option<String>,
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

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FailedResponse {
    pub job: String,
    /// How many documents have failed, for whatever reason.
    pub failed: i64,
    /// How many documents an output could not take.
    pub undeliverable: i64,
    pub documents: Vec<FailedDocument>,
    /// To go on with; `null` when all was seen.
    pub cursor: Option<String>,
}

/// A document that has failed, as it is listed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FailedDocument {
    pub document: String,
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub status: Option<i64>,
    /// When it was last looked at.
    pub checked_ms: Option<i64>,
    /// How often it was looked at, in all runs.
    pub tries: Option<i64>,
    /// The run that gave it up.
    pub run: Option<i64>,
}

impl From<ListedDocument> for FailedDocument {
    fn from(row: ListedDocument) -> FailedDocument {
        FailedDocument {
            document: row.docid,
            reason: row.reason,
            detail: row.detail,
            status: row.status,
            checked_ms: row.checked_ms,
            tries: row.checks,
            run: row.done_run.map(|run| run.0),
        }
    }
}

impl Verb for FailedDocuments {
    const NAME: &'static str = "job-failed";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = FailedRequest;
    type Response = FailedResponse;

    fn answer(context: &VerbContext, request: FailedRequest) -> anyhow::Result<FailedResponse> {
        let name = request.name.clone();
        let (job, failed) = context.db.read(move |tx| {
            let job = find(tx, &name)?;
            let failed = counters::total(tx, job.id, "failed")?;
            Ok((job, failed))
        })?;
        let limit = request.limit.clamp(1, LIST_LIMIT_MAX) as usize;
        let has_outputs = undelivered::is_meant_by(request.reason.as_deref());
        // They come first, before what is listed page by page.
        let first = if has_outputs && request.cursor.is_none() { limit } else { 0 };
        let (undeliverable, mut documents) = undelivered::list(&context.db, job.id, first)?;
        let filter = DocumentFilter::failed(request.reason);
        let asked = DocumentWalk { filter: &filter, cursor: request.cursor.as_deref() };
        let found = walk(&context.db, &job, &asked, limit)?;
        documents.extend(found.rows.into_iter().map(FailedDocument::from));
        let (job, cursor) = (job.name, found.cursor);
        Ok(FailedResponse { job, failed, undeliverable, documents, cursor })
    }
}
