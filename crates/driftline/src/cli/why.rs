//! `driftline why`: the one reason for which a URL is or is not there, in a sentence,
//! with what to do about it.
//!
//! `look` finds what is known, `judge` and `settled` decide, `cause` lists every reason there is.
//! A job that is not named is each job that knows the URL; when none does, each says
//! why it does not.

mod cause;
mod judge;
mod look;
mod settled;
#[cfg(test)]
mod tests;

pub use look::spellings;

use super::answers::Answers;
use super::place::Place;
use super::words::{count, when};
use super::{say, shown};
use anyhow::Context;
use cause::Cause;
use clap::Args as ClapArgs;
use look::Looked;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::clock;

/// Tell why a URL is stored, or why it is not
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline why https://example.com/page --job example")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// The job; without it, every job that knows the URL
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// The URL; a name without http:// or https:// may be either
    url: String,
}

/// The question as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    url: String,
    job: Option<String>,
}

/// The answer.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    asked: String,
    answers: Vec<Reason>,
}

/// What one job has to say.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reason {
    /// The URL that was looked for; `null` when the text is none.
    url: Option<String>,
    job: Option<String>,
    /// A word for scripts that never changes.
    code: String,
    sentence: String,
    next: Option<String>,
    command: Option<String>,
    state: Option<String>,
    /// The code that the queue keeps.
    reason: Option<String>,
    status: Option<i64>,
    checked_ms: Option<i64>,
    details: Vec<Detail>,
}

/// Something else that is known.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Detail {
    name: String,
    value: String,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let answer = args.place.ask("why", Ask { url: args.url, job: args.job })?;
    refuse_other_texts(&answer)?;
    if args.place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    told(answer, &args.place.flags())?.iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

/// A text that is no web address is a mistake of the question, not an answer to it.
fn refuse_other_texts(answer: &Json) -> anyhow::Result<()> {
    let first = &answer["answers"][0];
    if first["code"].as_str() != Some(Cause::NotWeb.code()) {
        return Ok(());
    }
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (asked, sentence, next) =
        (text(&answer["asked"]), text(&first["sentence"]), text(&first["next"]));
    anyhow::bail!("{asked:?}: {sentence} {next}")
}

/// An answer as people read it. The flags name the place in a command that is suggested.
pub fn told(answer: Json, flags: &str) -> anyhow::Result<Vec<String>> {
    let answer: Answer = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
    let each: Vec<Vec<String>> =
        answer.answers.iter().map(|reason| lines(&answer.asked, reason, flags)).collect();
    Ok(each.join(&String::new()))
}

/// The answer, by whoever has the rows open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let now_ms = clock::now_ms();
    let asked = ask.url.clone();
    let mut all =
        answers.db.read(move |tx| look::look(tx, &ask.url, ask.job.as_deref(), now_ms))?;
    for job in all.iter_mut().filter_map(|looked| looked.job.as_mut()) {
        job.standing = answers.standing(job.standing);
    }
    if answers.is_unattended() {
        all.iter_mut().filter_map(|looked| looked.holder.as_mut()).for_each(|it| it.alive = false);
    }
    let answers = all.iter().map(reason).collect();
    Ok(serde_json::to_value(Answer { asked, answers })?)
}

fn reason(looked: &Looked) -> Reason {
    let because = judge::because(looked);
    let document = looked.document.as_ref();
    Reason {
        url: looked.url.clone().ok(),
        job: looked.job.as_ref().map(|job| job.name.clone()),
        code: because.cause.code().to_owned(),
        sentence: because.sentence,
        next: because.next,
        command: because.command,
        state: looked.row.as_ref().map(|row| row.state.clone()),
        reason: looked.row.as_ref().and_then(|row| row.reason.clone()),
        status: document.and_then(|document| document.http_status),
        checked_ms: document.map(|document| document.checked_ms),
        details: details(looked),
    }
}

/// What else is known, in the order people want it.
fn details(looked: &Looked) -> Vec<Detail> {
    let mut out = Vec::new();
    let mut tell = |name: &str, value: Option<String>| {
        out.extend(value.map(|value| Detail { name: name.to_owned(), value }));
    };
    let at = |moment_ms: i64| when(moment_ms, looked.now_ms);
    if let Some(document) = &looked.document {
        tell("title", document.title.clone());
        tell("status", document.http_status.map(|status| status.to_string()));
        tell("type", document.media_type.clone());
        tell("first seen", Some(at(document.first_ms)));
        let checks = count(document.checks, "time");
        tell("checked", Some(format!("{}, {checks} in all", at(document.checked_ms))));
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
        tell("found", Some(format!("{}; last named in run {}", at(row.added_ms), row.seen_run)));
        tell("distance", seed.or_else(|| Some(count(row.hops, "link") + " from a seed")));
        tell("linked from", looked.parent.clone());
        tell("chunk", row.chunk.map(|chunk| chunk.to_string()));
    }
    out
}

/// What people read of one job.
fn lines(asked: &str, reason: &Reason, flags: &str) -> Vec<String> {
    let url = reason.url.as_deref().unwrap_or(asked);
    let job = reason.job.as_deref().map_or(String::new(), |job| format!(" (job {})", shown(job)));
    let mut out = vec![format!("{}{job}", shown(url))];
    if reason.url.is_some() && url != asked {
        out.push(format!("    That is the one spelling of {}.", shown(asked)));
    }
    out.push(format!("    {}", shown(&reason.sentence)));
    if let Some(next) = &reason.next {
        let command = reason.command.as_ref().map(|command| format!(": {}{flags}", shown(command)));
        out.push(format!("    {}{}", shown(next), command.unwrap_or_default()));
    }
    for detail in &reason.details {
        out.push(format!("      {:<12} {}", shown(&detail.name), shown(&detail.value)));
    }
    out
}
