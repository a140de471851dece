//! `driftline report`: what was done (history, maxima of activity and bandwidth, results)
//! and where documents stand (one by one, or counted).
//!
//! A report is a [`columns::Report`] with its columns; `asking` says what may be asked,
//! `source` finds whose rows are meant, and each report makes rows of them, which
//! `showing` prints and `csv` writes. Invariants: memory is bounded, however many rows
//! there are; an answer is exact for the time that it says it covers; without `--whole` it
//! looks at no more than [`ROWS_MAX`] rows.

mod asking;
mod classes;
mod columns;
mod csv;
mod documents;
mod history;
pub mod moments;
mod queue;
mod results;
mod selection;
mod showing;
mod source;
mod windows;

pub use asking::{Args, Ask, WINDOW_MS};

use super::answers::Answers;
use super::{outages, say};
use anyhow::{Context, ensure};
use columns::Report;
use selection::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::clock;
use store::tables::outages::Outage;

/// Rows that a report looks at unless it is told to look at all: what both databases
/// answer within a fifth of a second.
pub const ROWS_MAX: u64 = 25_000;
/// Rows of one answer at most.
pub const LIMIT_MAX: u32 = 1_000;
/// Rows of one answer where nothing else is said: the original's page.
pub const LIMIT: u32 = 20;

/// The answer.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    report: Report,
    connection: String,
    /// The time that is covered: from then on, or from the beginning.
    since_ms: Option<i64>,
    /// Before then, or up to now.
    until_ms: Option<i64>,
    rows: Vec<Row>,
    /// How many rows were looked at, where rows were looked at.
    walked: u64,
    /// To go on with; `null` at the end.
    next: Option<String>,
    /// To go back with; `null` at the beginning.
    previous: Option<String>,
    /// What cannot be reached now and holds jobs of the connection up.
    #[serde(default)]
    outages: Vec<Outage>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let asking::Asked { place, ask, csv } = args.asked(clock::now_ms())?;
    let page = |ask: &Ask| -> anyhow::Result<Json> {
        match ask.whole {
            // It may take long, so nobody else is asked to do it.
            true => Ok(answer(&Answers::of_rows(place.rows()?), ask.clone())?),
            false => place.ask("report", ask),
        }
    };
    if let Some(path) = csv {
        ensure!(!place.json(), "an answer is either --json or --csv");
        let written = csv::write(&path, &ask, |ask| read(page(ask)?))?;
        if path.as_os_str() != "-" {
            say(&format!("{written} rows written"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let json = page(&ask)?;
    match place.json() {
        true => say(&json.to_string()),
        false => showing::print(&ask, &read(json)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(json: Json) -> anyhow::Result<Answer> {
    serde_json::from_value(json)
        .context("the process that holds the directory is of another version")
}

/// The answer, by whoever has the rows open.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let source = source::Source::open(&answers.db, &ask, clock::now_ms())?;
    let mut answer = match ask.report {
        Report::History => history::answer(&source)?,
        Report::Activity | Report::Bandwidth => windows::answer(&source)?,
        Report::Results => results::answer(&source)?,
        Report::Documents => documents::answer(&source)?,
        Report::Queue => queue::answer(&source)?,
    };
    let (doing, now_ms) = (answers.doing.clone(), source.now_ms);
    let away = answers.db.read(move |tx| outages::current(tx, doing.as_deref(), now_ms))?;
    let concerns = |it: &Outage| source.jobs.values().any(|job| it.jobs.contains(&job.name));
    answer.outages = away.into_iter().filter(concerns).collect();
    Ok(serde_json::to_value(answer)?)
}

#[cfg(test)]
mod tests;
