//! `driftline page`: everything that is known of one page in the link index.
//!
//! Invariant: a page of which nothing is known is told as such, with an exit code of its own,
//! and never shown as an empty one.

use super::answers::Answers;
use super::links::finding::{self, Found};
use super::links::showing::head_lines;
use super::links::{Head, unknown};
use super::place::Place;
use super::words::{date, quoted};
use super::{say, shown};
use anyhow::Context;
use clap::Args as ClapArgs;
use outputs::links::pages::LOADED;
use page::uri::Uri;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::ids::JobId;
use store::tables::jobs;
use store::{Db, clock};

/// Jobs of a page that are named.
const JOBS_MAX: usize = 100;

/// Show everything that is known of one page
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline page https://example.com/page")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// The page's URL; a name without http:// or https:// may be either
    url: String,
}

/// The question, as it goes through a socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    url: String,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    asked: String,
    /// The page; `null` if nothing is known of it.
    page: Option<Known>,
}

/// A page.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Known {
    #[serde(flatten)]
    head: Head,
    domain: String,
    /// In-links, and one more if it is there.
    score: u64,
    title: Option<String>,
    /// The status that the page last came with.
    status: Option<u16>,
    /// The server's name for itself.
    server: Option<String>,
    /// When it was first crawled.
    first_seen_ms: Option<i64>,
    /// When the version that is known was fetched; it may have been seen unchanged since.
    version_ms: Option<i64>,
    /// The jobs that have it.
    jobs: Vec<Owner>,
}

/// A job that has a page.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Owner {
    /// `null` for what was loaded from archives.
    id: Option<i64>,
    /// `null` if the job is deleted.
    name: Option<String>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = args.place.link_session().ask("page", Ask { url: args.url.clone() })?;
    let answer: Answer = serde_json::from_value(json.clone())
        .context("the process that holds the directory is of another version")?;
    match args.place.json() {
        true => say(&json.to_string()),
        false => lines(&args, &answer, clock::now_ms()).iter().for_each(|line| say(line)),
    }
    Ok(if answer.page.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The answer, by whoever has the index open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let (index, candidates) = finding::candidates(answers, &ask.url)?;
    let found = index.read(move |view| finding::find(view, &candidates))?;
    let page = found.map(|found| known(&answers.db, &found)).transpose()?;
    Ok(serde_json::to_value(Answer { asked: ask.url, page })?)
}

fn known(db: &Db, found: &Found) -> store::Result<Known> {
    let head = Head::of(found);
    let page = found.page.as_ref().map(|(page, _)| page);
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let owners = page.map_or_else(Vec::new, |page| page.owners.clone());
    Ok(Known {
        domain: Uri::from_uri(&head.uri).map_or(String::new(), |uri| uri.domain().to_owned()),
        score: head.incount + u64::from(head.crawled),
        title: page.and_then(|page| text(&page.title)),
        status: page.map(|page| page.status).filter(|status| *status != 0),
        server: page.and_then(|page| text(&page.server)),
        first_seen_ms: page.map(|page| page.first_ms),
        version_ms: page.filter(|page| page.is_there()).map(|page| page.date_ms),
        jobs: owners_of(db, owners)?,
        head,
    })
}

fn owners_of(db: &Db, owners: Vec<i64>) -> store::Result<Vec<Owner>> {
    db.read(move |tx| {
        let mut named = Vec::new();
        for owner in owners.iter().copied().take(JOBS_MAX) {
            named.push(match owner {
                LOADED => Owner { id: None, name: Some("loaded".to_owned()) },
                id => {
                    let name = jobs::load(tx, JobId(id))?.map(|job| job.name);
                    Owner { id: Some(id), name }
                }
            });
        }
        Ok(named)
    })
}

fn lines(args: &Args, answer: &Answer, now_ms: i64) -> Vec<String> {
    let Some(page) = &answer.page else { return vec![unknown(&args.place, &answer.asked)] };
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
    let url = quoted(&answer.asked);
    out.push(format!("    its links: driftline links {url}{}", args.place.flags()));
    out
}

fn job_name(owner: &Owner) -> String {
    match (&owner.name, owner.id) {
        (Some(name), None) => format!("({name})"),
        (Some(name), Some(_)) => name.clone(),
        (None, id) => format!("({}, deleted)", id.unwrap_or(LOADED)),
    }
}

#[cfg(test)]
mod tests;
