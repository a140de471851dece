//! `driftline status`: what a data directory holds, and who holds it.
//!
//! The process that has the directory open answers through its socket; when none
//! does, the directory is read here.

use super::answers::Answers;
use super::place::Place;
use super::{say, shown};
use anyhow::Context;
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::tables::overview;

/// Show what a data directory holds
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline status --json")]
pub struct Args {
    #[command(flatten)]
    place: Place,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let answer = args.place.ask("status", ())?;
    if args.place.json() {
        say(&answer.to_string());
    } else {
        print(&answer, &args.place)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer, by the process that holds the directory (which says what it is
/// doing) or by this one.
pub fn answer(answers: &Answers, (): ()) -> anyhow::Result<serde_json::Value> {
    let overview = answers.db.read(overview::read)?;
    let holder = answers
        .doing
        .as_ref()
        .map(|doing| serde_json::json!({"process": std::process::id(), "doing": doing}));
    Ok(serde_json::json!({"holder": holder, "overview": overview}))
}

fn print(answer: &serde_json::Value, place: &Place) -> anyhow::Result<()> {
    let overview: Shown = serde_json::from_value(answer["overview"].clone())
        .context("the process that holds the directory is of another version")?;
    let place = place.name();
    say(&format!("{place}: {} parts, schema {}", overview.parts, overview.schema));
    match (answer["holder"]["process"].as_u64(), answer["holder"]["doing"].as_str()) {
        (Some(process), Some(doing)) => {
            say(&format!("held by process {process} ({})", shown(doing)))
        }
        _ => say("not in use"),
    }
    say(&format!("{} chunks committed", overview.commits));
    for job in &overview.jobs {
        let name = job.name.as_deref().map_or(format!("job {}", job.id), shown);
        let counts: Vec<String> =
            job.counters.iter().map(|(state, count)| format!("{count} {state}")).collect();
        say(&format!("{name}: {}", counts.join(", ")));
    }
    Ok(())
}

/// What this verb reads of an [`Overview`], whatever else a newer one has.
#[derive(serde::Deserialize)]
struct Shown {
    parts: u32,
    schema: i64,
    commits: i64,
    jobs: Vec<ShownJob>,
}

#[derive(serde::Deserialize)]
struct ShownJob {
    id: i64,
    name: Option<String>,
    counters: std::collections::BTreeMap<String, i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overview_can_be_shown() {
        let json = serde_json::to_value(overview::Overview::default()).unwrap();
        assert!(serde_json::from_value::<Shown>(json).is_ok());
    }
}
