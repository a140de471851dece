//! `driftline job failed` and `driftline job retry`: the dead letters of a job.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{count, counted, quoted, shown, when};
use crate::verbs::jobs::failed::{FailedDocument, FailedDocuments, FailedRequest};
use crate::verbs::jobs::retry::{RetryFailed, RetryRequest, RetryResult};
use anyhow::ensure;
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::clock;

/// Documents that can be named in one command.
const NAMED_MAX: usize = 1_000;

#[derive(ClapArgs)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    request: FailedRequest,
}

#[derive(ClapArgs)]
pub struct RetryArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Only documents that failed for this reason, such as dns or http-503
    #[arg(long, value_name = "CODE", conflicts_with = "documents")]
    reason: Option<String>,
    /// Only these documents
    #[arg(value_name = "URL")]
    documents: Vec<String>,
}

/// Lists what has failed.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let found = args.place.ask::<FailedDocuments>(args.request.clone())?;
    if args.place.json() {
        say_json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = clock::now_ms();
    for it in &found.documents {
        lines(it, now_ms).iter().for_each(|line| say(line));
    }
    let name = quoted(&found.job);
    if let Some(cursor) = &found.cursor {
        let reason = args
            .request
            .reason
            .as_ref()
            .map_or(String::new(), |it| format!(" --reason {}", quoted(it)));
        let (limit, place, cursor) = (args.request.limit, args.place.flags(), quoted(cursor));
        say(&format!(
            "next page: driftline job failed {name}{reason} --limit {limit}{place} --cursor \
             {cursor}"
        ));
    } else if found.documents.is_empty() && args.request.cursor.is_none() {
        let word = if found.failed == 0 { "document" } else { "such document" };
        say(&format!("no {word} of job {} has failed", shown(&found.job)));
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(it: &FailedDocument, now_ms: i64) -> Vec<String> {
    let reason = shown(it.reason.as_deref().unwrap_or("-"));
    let checked = it.checked_ms.map_or("-".to_owned(), |checked_ms| when(checked_ms, now_ms));
    // The date that goes with an old moment is left to `why`.
    let checked = checked.split(" (").next().unwrap_or_default().to_owned();
    let tries = it.tries.map_or("-".to_owned(), |tries| counted(tries, "try", "tries"));
    let mut out = vec![format!("{reason:<16}  {tries:<8}  {checked:<10}  {}", shown(&it.document))];
    out.extend(it.detail.as_ref().map(|detail| format!("    {}", shown(detail))));
    out
}

/// Runs the verb that tries again.
pub fn retry(args: RetryArgs) -> anyhow::Result<ExitCode> {
    let RetryArgs { place, name, reason, documents } = args;
    ensure!(
        documents.len() <= NAMED_MAX,
        "{} documents are more than the {NAMED_MAX} that one command takes; retry all with \
         --reason, or use several commands",
        documents.len()
    );
    let mut total = RetryResult { job: name.clone(), retried: 0, unknown: Vec::new(), after: None };
    loop {
        let (name, reason, documents) = (name.clone(), reason.clone(), documents.clone());
        let request = RetryRequest { name, reason, documents, after: total.after };
        let done = place.change::<RetryFailed>(request)?;
        total.retried += done.retried;
        total.unknown.extend(done.unknown);
        total.after = done.after;
        if total.after.is_none() {
            break;
        }
    }
    let is_whole = total.unknown.is_empty();
    if place.json() {
        let answer = serde_json::json!(
            {"job": total.job, "retried": total.retried, "unknown": total.unknown}
        );
        say(&answer.to_string());
    } else {
        let many = count(i64::try_from(total.retried).unwrap_or(i64::MAX), "document");
        let verb = if total.retried == 1 { "is" } else { "are" };
        say(&format!("job {}: {many} {verb} ready again", shown(&total.job)));
        for it in &total.unknown {
            say(&format!("    not failed: {}", shown(it)));
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
