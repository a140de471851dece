//! `driftline urls`: the documents of a job, with filters, page after page.
//!
//! `walk` goes along the queue's indexes. Invariant: an answer costs a bounded number
//! of rows, whatever is asked for; when there may be more, it has a cursor to go on.

mod walk;

pub use walk::{host_name, walk};

use super::answers::Answers;
use super::place::Place;
use super::words::{quoted, when};
use super::{say, shown};
use anyhow::Context;
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::clock;
use store::tables::queue::State;
use store::tables::queue::list::Listed;

/// Documents of one answer at most: with the longest URLs it fits through a socket.
const LIMIT_MAX: u32 = 5_000;

/// List the documents of a job, by state, reason, host or status
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline urls --state failed --reason http-503 --limit 20")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    ask: Ask,
}

/// The question, as it is written and as it goes through a socket.
#[derive(ClapArgs, Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The job; may be left out when there is only one
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Documents to list
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIMIT_MAX)))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// What a document must be to be listed.
#[derive(ClapArgs, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Where it stands: ready, waiting, active, done, cut or failed
    #[arg(long, value_name = "STATE", value_parser = state_name)]
    state: Option<String>,
    /// Why it stands there, such as robots, hops, dns or http-503
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Its host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The status of the last answer, such as 404
    #[arg(long, value_name = "CODE")]
    status: Option<i64>,
    /// Text that its URL contains
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
}

impl Filter {
    /// Documents that were given up, for a reason or for any.
    pub fn failed(reason: Option<String>) -> Filter {
        let state = Some(State::Failed.name().to_owned());
        Filter { state, reason, ..Filter::default() }
    }
}

fn state_name(text: &str) -> Result<String, String> {
    if State::ALL.iter().any(|state| state.name() == text) {
        return Ok(text.to_owned());
    }
    let names: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
    Err(format!("states are {}", names.join(", ")))
}

/// The answer.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    job: String,
    urls: Vec<Line>,
    /// How many documents were looked at.
    walked: u64,
    /// To go on with; `null` when all was seen.
    cursor: Option<String>,
}

/// One document.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    url: String,
    state: String,
    status: Option<i64>,
    reason: Option<String>,
    detail: Option<String>,
    outcome: Option<String>,
    checked_ms: Option<i64>,
    due_ms: Option<i64>,
    hops: i64,
    /// The last run that settled it.
    run: Option<i64>,
}

impl From<Listed> for Line {
    fn from(row: Listed) -> Line {
        Line {
            url: row.docid,
            state: row.state,
            status: row.status,
            reason: row.reason,
            detail: row.detail,
            outcome: row.outcome,
            checked_ms: row.checked_ms,
            due_ms: row.check_ms,
            hops: row.hops,
            run: row.done_run.map(|run| run.0),
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let answer = args.place.ask("urls", &args.ask)?;
    if args.place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let answer: Answer = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
    let now_ms = clock::now_ms();
    answer.urls.iter().for_each(|it| say(&line(it, now_ms)));
    match &answer.cursor {
        Some(cursor) => {
            let command = command(&args, &answer.job, cursor);
            say(&format!("{} documents looked at; go on with: {command}", answer.walked));
        }
        None if answer.urls.is_empty() && args.ask.cursor.is_none() => {
            say(&format!("no such document in job {}", shown(&answer.job)));
        }
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer, by whoever has the rows open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let job = answers.job(ask.job.clone())?;
    let limit = ask.limit.clamp(1, LIMIT_MAX) as usize;
    let found = walk(&answers.db, &job, (&ask.filter, ask.cursor.as_deref()), limit)?;
    Ok(serde_json::to_value(Answer {
        job: job.name,
        urls: found.rows.into_iter().map(Line::from).collect(),
        walked: found.walked,
        cursor: found.cursor,
    })?)
}

fn line(it: &Line, now_ms: i64) -> String {
    let status = it.status.map_or("-".to_owned(), |status| status.to_string());
    let reason = it.reason.as_deref().or(it.outcome.as_deref()).unwrap_or("-");
    let checked = it.checked_ms.map_or("-".to_owned(), |checked_ms| when(checked_ms, now_ms));
    format!(
        "{:<7}  {status:>3}  {:<16}  {:<10}  {}",
        it.state,
        shown(reason),
        // The date that goes with an old moment is left to `why`.
        checked.split(" (").next().unwrap_or_default(),
        shown(&it.url)
    )
}

/// The command that goes on, with all that was asked.
fn command(args: &Args, job: &str, cursor: &str) -> String {
    let filter = &args.ask.filter;
    let mut out = format!("driftline urls --job {}", quoted(job));
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
    let limit = args.ask.limit;
    if limit != 100 {
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
        let it = Line {
            url: "http://a.example/\u{1b}[2J".into(),
            state: "failed".into(),
            status: Some(503),
            reason: Some("http-503".into()),
            detail: None,
            outcome: None,
            checked_ms: Some(1_000),
            due_ms: None,
            hops: 1,
            run: Some(1),
        };
        assert_eq!(
            line(&it, 61_000),
            "failed   503  http-503          1 min ago   http://a.example/\\u{1b}[2J"
        );
    }

    #[test]
    fn only_states_are_states() {
        assert!(state_name("cut").is_ok());
        assert!(state_name("lost").is_err_and(|error| error.contains("waiting")));
    }
}
