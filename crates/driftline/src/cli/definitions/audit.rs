//! `driftline audit`: who changed what, and when.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{quoted, shown};
use crate::verbs::administration::audit::{AuditEntries, AuditRequest, CheckAudit};
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// List who changed what, newest first
#[derive(ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Example: driftline audit --limit 20
Example: driftline audit verify"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<AuditCommand>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    request: AuditRequest,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Verify that nobody has tampered with the log
    ///
    /// Every event contains the hash of the one before it. The command prints the head, which is
    /// the newest event. It must be the one in the last `audit` line of the log of
    /// `driftline serve`, or a later one.
    #[command(after_help = "Example: driftline audit verify")]
    Verify(AuditVerifyArgs),
}

#[derive(ClapArgs)]
struct AuditVerifyArgs {
    #[command(flatten)]
    place: Place,
}

fn verify(place: &Place) -> anyhow::Result<ExitCode> {
    let checked = place.ask::<CheckAudit>(())?;
    if place.json() {
        say_json(&checked)?;
    } else {
        for problem in &checked.problems {
            say(&format!("the audit log: {}", shown(problem)));
        }
        let head = checked.head.as_deref().unwrap_or("none");
        let verdict = match checked.problems.is_empty() {
            true => "the chain is intact",
            false => "the chain is broken; compare with a backup and with logged heads",
        };
        say(&format!("{} events, {verdict}; head: {head}", checked.events));
    }
    let is_whole = checked.problems.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(AuditCommand::Verify(args)) = args.action {
        return verify(&args.place);
    }
    let limit = args.request.limit;
    let response = args.place.ask::<AuditEntries>(args.request)?;
    if args.place.json() {
        say_json(&response)?;
        return Ok(ExitCode::SUCCESS);
    }
    if response.entries.is_empty() {
        say("nothing was changed");
    }
    for it in &response.entries {
        let time = jiff::Timestamp::from_millisecond(it.at_ms).unwrap_or_default();
        let (who, verb) = (shown(&it.who), shown(&it.verb));
        say(&format!("{time:.0} {who}: {verb}, {}", it.outcome));
        it.changes.lines().for_each(|line| say(&format!("    {}", shown(line))));
    }
    if let Some(cursor) = &response.cursor {
        let place = args.place.flags();
        say(&format!(
            "next page: driftline audit --limit {limit}{place} --cursor {}",
            quoted(cursor)
        ));
    }
    Ok(ExitCode::SUCCESS)
}
