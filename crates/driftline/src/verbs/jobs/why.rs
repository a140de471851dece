//! Why a URL is or is not there: the one reason, in a sentence, with what to do about it.
//!
//! `lookup` finds what is known, `judge` and `outcomes` decide, `cause` lists every reason there is.
//! A job that is not named is each job that knows the URL; when none does, each says
//! why it does not.

pub mod cause;
pub mod judge;
pub mod lookup;
pub mod outcomes;
#[cfg(test)]
mod tests;

use crate::text::{count, when};
use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use lookup::LookedUp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::clock;

/// Why a URL is stored, or is not.
pub struct Why;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// The URL
    pub url: String,
    /// Job to ask; without it, every job that knows the URL
    pub job: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WhyResponse {
    pub asked: String,
    pub answers: Vec<WhyReason>,
}

/// What one job says of a URL.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WhyReason {
    /// The URL that was looked for; `null` when the text is none.
    pub url: Option<String>,
    pub job: Option<String>,
    /// A word for scripts that never changes.
    pub code: String,
    pub sentence: String,
    pub next: Option<String>,
    pub command: Option<String>,
    pub state: Option<String>,
    /// The code that the queue keeps.
    pub reason: Option<String>,
    pub status: Option<i64>,
    pub checked_ms: Option<i64>,
    pub details: Vec<WhyDetail>,
}

/// Something else that is known of a URL.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhyDetail {
    pub name: String,
    pub value: String,
}

impl Verb for Why {
    const NAME: &'static str = "why";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = WhyRequest;
    type Response = WhyResponse;

    fn answer(context: &VerbContext, request: WhyRequest) -> anyhow::Result<WhyResponse> {
        let now_ms = clock::now_ms();
        let asked = request.url.clone();
        let mut all = context
            .db
            .read(move |tx| lookup::look(tx, &request.url, request.job.as_deref(), now_ms))?;
        for job in all.iter_mut().filter_map(|looked| looked.job.as_mut()) {
            job.standing = context.standing(job.standing);
        }
        if context.is_unattended() {
            let holders = all.iter_mut().filter_map(|looked| looked.holder.as_mut());
            holders.for_each(|it| it.alive = false);
        }
        Ok(WhyResponse { asked, answers: all.iter().map(reason).collect() })
    }
}

fn reason(looked: &LookedUp) -> WhyReason {
    let because = judge::because(looked);
    let document = looked.document.as_ref();
    WhyReason {
        url: looked.url.clone().ok(),
        job: looked.job.as_ref().map(|job| job.name.clone()),
        code: because.cause.code().to_owned(),
        sentence: because.sentence,
        next: because.next,
        command: because.command,
        state: looked.row.as_ref().map(|row| row.state.name().to_owned()),
        reason: looked.row.as_ref().and_then(|row| row.reason.clone()),
        status: document.and_then(|document| document.http_status),
        checked_ms: document.map(|document| document.checked_ms),
        details: details(looked),
    }
}

/// What else is known, in the order people want it.
fn details(looked: &LookedUp) -> Vec<WhyDetail> {
    let mut out = Vec::new();
    let mut tell = |name: &str, value: Option<String>| {
        out.extend(value.map(|value| WhyDetail { name: name.to_owned(), value }));
    };
    let at = |moment_ms: i64| when(moment_ms, looked.now_ms);
    if let Some(document) = &looked.document {
        tell("title", document.title.clone());
        tell("status", document.http_status.map(|status| status.to_string()));
        tell("type", document.media_type.clone());
        tell("first seen", Some(at(document.first_ms)));
        let checks = count(document.checks, "time");
        tell("checked", Some(format!("{}, {checks} in total", at(document.checked_ms))));
        tell("fetched", document.fetched_ms.map(at));
        tell("changed", document.changed_ms.map(at));
        tell("facts", document.chunk.map(|chunk| format!("in chunk {chunk}")));
        tell("body", document.body_chunk.map(|chunk| format!("in chunk {chunk}")));
    }
    if looked.redirects.len() > 1 {
        tell("redirects", Some(looked.redirects.join(" -> ")));
    }
    if let Some(row) = &looked.row {
        let seed = row.seed_run.is_some().then(|| "a seed".to_owned());
        tell(
            "found",
            Some(format!("{}; last referenced in run {}", at(row.added_ms), row.seen_run)),
        );
        tell("distance", seed.or_else(|| Some(count(row.hops, "link") + " from a seed")));
        let is_requisite = row.role.is_requisite();
        tell("role", is_requisite.then(|| "requisite: pages need it to be shown".to_owned()));
        let relation = if is_requisite { "needed by" } else { "linked from" };
        tell(relation, looked.parent.clone());
        tell("chunk", row.chunk.map(|chunk| chunk.to_string()));
    }
    out
}
