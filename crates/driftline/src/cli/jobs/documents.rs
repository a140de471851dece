//! `driftline documents`: the documents of a job, with filters, page after page.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{quoted, shown, when};
use crate::verbs::jobs::documents::{DocumentLine, Documents, DocumentsRequest};
use crate::verbs::paging::usual_limit;
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::chunkfile::document::DocumentRole;
use store::clock;

/// List the documents of a job, by state, reason, host or status
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline documents --state failed --reason http-503 --limit 20")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    request: DocumentsRequest,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let response = args.place.ask::<Documents>(args.request.clone())?;
    if args.place.json() {
        say_json(&response)?;
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = clock::now_ms();
    response.urls.iter().for_each(|it| say(&line(it, now_ms)));
    match &response.cursor {
        Some(cursor) => {
            let command = command(&args, &response.job, cursor);
            say(&format!("{} documents checked; next page: {command}", response.walked));
        }
        None if response.urls.is_empty() && args.request.cursor.is_none() => {
            say(&format!("no matching document in job {}", shown(&response.job)));
        }
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn line(it: &DocumentLine, now_ms: i64) -> String {
    let status = it.status.map_or("-".to_owned(), |status| status.to_string());
    let reason = it.reason.as_deref().or(it.outcome.as_deref()).unwrap_or("-");
    let checked = it.checked_ms.map_or("-".to_owned(), |checked_ms| when(checked_ms, now_ms));
    let role = if it.role == DocumentRole::Page.name() {
        String::new()
    } else {
        format!(" ({})", it.role)
    };
    format!(
        "{:<7}  {status:>3}  {:<16}  {:<10}  {}{role}",
        it.state,
        shown(reason),
        // The date that goes with an old moment is left to `why`.
        checked.split(" (").next().unwrap_or_default(),
        shown(&it.url)
    )
}

/// The command that goes on, with all that was asked.
fn command(args: &Args, job: &str, cursor: &str) -> String {
    let filter = &args.request.filter;
    let mut out = format!("driftline documents --job {}", quoted(job));
    let status = filter.status.map(|status| status.to_string());
    let flags = [
        ("state", &filter.state),
        ("reason", &filter.reason),
        ("host", &filter.host),
        ("status", &status),
        ("contains", &filter.contains),
    ];
    for (flag, value) in flags {
        if let Some(value) = value {
            out.push_str(&format!(" --{flag} {}", quoted(value)));
        }
    }
    let limit = args.request.limit;
    if limit != usual_limit() {
        out.push_str(&format!(" --limit {limit}"));
    }
    out.push_str(&args.place.flags());
    format!("{out} --cursor {}", quoted(cursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_columns_and_shows_nothing_strange() {
        let it = DocumentLine {
            url: "http://a.example/\u{1b}[2J".into(),
            state: "failed".into(),
            status: Some(503),
            reason: Some("http-503".into()),
            detail: None,
            outcome: None,
            checked_ms: Some(1_000),
            due_ms: None,
            hops: 1,
            role: "page".into(),
            run: Some(1),
        };
        assert_eq!(
            line(&it, 61_000),
            "failed   503  http-503          1 min ago   http://a.example/\\u{1b}[2J"
        );
        let it = DocumentLine { role: "requisite".into(), ..it };
        assert!(line(&it, 61_000).ends_with(" (requisite)"));
    }
}
