//! `driftline job removals`: what a job is to lose, and the decision of a person about what is
//! held.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{count, quoted, shown, when};
use crate::verbs::jobs::removals::{
    DecideRemovals, DecideRequest, DecidedRemovals, RemovalDecision, Removals, RemovalsRequest,
    RemovalsResponse, causes,
};
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;
use store::clock;

#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    action: RemovalsCommand,
}

#[derive(Subcommand)]
enum RemovalsCommand {
    /// Show which documents are to be removed and why, and whether the removals are held
    #[command(after_help = "Example: driftline job removals show docs --limit 20")]
    Show(RemovalsShowArgs),
    /// Approve the removals that are held
    #[command(after_help = "Example: driftline job removals approve docs")]
    Approve(RemovalsDecideArgs),
    /// Reject the removals that are held; the next run decides again
    #[command(after_help = "Example: driftline job removals reject docs")]
    Reject(RemovalsDecideArgs),
}

#[derive(ClapArgs)]
struct RemovalsShowArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    request: RemovalsRequest,
}

#[derive(ClapArgs)]
struct RemovalsDecideArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        RemovalsCommand::Show(args) => show(&args.place, args.request),
        RemovalsCommand::Approve(args) => decide(&args.place, args.name, RemovalDecision::Approve),
        RemovalsCommand::Reject(args) => decide(&args.place, args.name, RemovalDecision::Reject),
    }
}

fn show(place: &Place, request: RemovalsRequest) -> anyhow::Result<ExitCode> {
    let found = place.ask::<Removals>(request)?;
    if place.json() {
        say_json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    lines(&found, &place.flags(), clock::now_ms()).iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

fn lines(found: &RemovalsResponse, place: &str, now_ms: i64) -> Vec<String> {
    let job = shown(&found.job);
    let total: i64 = found.leaving.values().sum();
    if total == 0 {
        return vec![format!("job {job}: no document is to be removed")];
    }
    let causes = causes(&found.leaving);
    let mut out = vec![format!("job {job}: {} to be removed ({causes})", count(total, "document"))];
    out.push(format!(
        "    it had {} and has lost {}; without approval it may lose {}",
        count(found.had, "document"),
        found.lost,
        found.limit
    ));
    for it in &found.listed {
        out.push(format!("    {:<14}  {}", shown(&it.cause), shown(&it.document)));
    }
    if (found.listed.len() as i64) < total {
        out.push(format!("    and {} more", total - found.listed.len() as i64));
    }
    match found.held_since_ms {
        Some(held_ms) => {
            let name = quoted(&job);
            out.push(format!("held since {}; decide:", when(held_ms, now_ms)));
            out.push(format!("    driftline job removals approve {name}{place}"));
            out.push(format!("    driftline job removals reject {name}{place}"));
        }
        None => out.push("nothing is held; the decision is made when the run ends".to_owned()),
    }
    out
}

fn decide(place: &Place, name: String, decision: RemovalDecision) -> anyhow::Result<ExitCode> {
    let mut documents = 0;
    let done = loop {
        let request = DecideRequest { name: name.clone(), decision };
        let step = place.change::<DecideRemovals>(request)?;
        documents += step.documents;
        if step.is_done {
            break DecidedRemovals { documents, ..step };
        }
    };
    if place.json() {
        say_json(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    let many = count(i64::try_from(done.documents).unwrap_or(i64::MAX), "document");
    let job = shown(&done.job);
    say(&match decision {
        RemovalDecision::Approve => {
            format!("job {job}: {many} will be removed ({})", shown(&done.state))
        }
        RemovalDecision::Reject => format!("job {job}: {many} stay"),
    });
    if decision == RemovalDecision::Approve {
        say(&format!(
            "a process that works on the job removes them; start one if none is running: \
             driftline work{}",
            place.flags()
        ));
    }
    Ok(ExitCode::SUCCESS)
}
