//! `driftline page`: everything that is known of one page in the link index.

use super::links::show::head_lines;
use super::links::unknown;
use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{date, quoted, shown};
use crate::verbs::links::page::{Page, PageJob, PageRequest, PageResponse};
use clap::Args as ClapArgs;
use outputs::links::pages::LOADED;
use std::process::ExitCode;
use store::clock;

/// Show everything that is known about a page
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline page https://example.com/page")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// URL of the page; without a scheme, http and https are both tried
    url: String,
}

/// Runs the verb. A page of which nothing is known is a "no".
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let response = args.place.ask::<Page>(PageRequest { url: args.url.clone() })?;
    match args.place.json() {
        true => say_json(&response)?,
        false => lines(&args, &response, clock::now_ms()).iter().for_each(|line| say(line)),
    }
    Ok(if response.page.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(args: &Args, response: &PageResponse, now_ms: i64) -> Vec<String> {
    let Some(page) = &response.page else { return vec![unknown(&args.place, &response.asked)] };
    let mut out = head_lines(&page.head, now_ms);
    let mut add = |name: &str, value: Option<String>| {
        out.extend(value.map(|value| format!("    {name:<17}{}", shown(&value))));
    };
    add("title", page.title.clone());
    add("status", page.status.map(|status| status.to_string()));
    add("server", page.server.clone());
    add("score", Some(page.score.to_string()));
    add("first seen", page.first_seen_ms.map(date));
    add("unchanged since", page.version_ms.map(date));
    add("last seen", page.head.last_seen_ms.map(date));
    add("gone since", page.head.gone_ms.map(date));
    let jobs: Vec<String> = page.jobs.iter().map(job_name).collect();
    add("jobs", Some(jobs.join(", ")).filter(|_| !jobs.is_empty()));
    add("domain", Some(page.domain.clone()));
    add("row", Some(page.head.uri.clone()));
    let url = quoted(&response.asked);
    out.push(format!("    its links: driftline links {url}{}", args.place.flags()));
    out
}

fn job_name(owner: &PageJob) -> String {
    match (&owner.name, owner.id) {
        (Some(name), None) => format!("({name})"),
        (Some(name), Some(_)) => name.clone(),
        (None, id) => format!("({}, deleted)", id.unwrap_or(LOADED)),
    }
}

#[cfg(test)]
mod tests;
