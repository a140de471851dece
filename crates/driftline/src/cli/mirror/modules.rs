//! The modules of a mirror, each alone: what was fetched is published, parsed, transformed,
//! assembled; and a check of all of it.

use super::MirrorDirectory;
use crate::cli::say;
use crate::text::shown;
use clap::Args as ClapArgs;
use outputs::mirror::spider::publish;
use outputs::mirror::{Progress, assembler, check, parser, reactor};
use page::mirror::xfile;
use serde::Serialize;
use std::process::ExitCode;
use store::clock;

/// Publish what was delivered to a mirror as its next x-file
///
/// A crawl does this when its run is over. After a run that was aborted, --partial publishes what
/// it brought.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror spider ./copy --partial")]
pub struct SpiderArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
    /// Mark the x-file as partial: columns were not read to their end
    #[arg(long)]
    partial: bool,
}

/// Make articles of the pages that x-files name
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror parse ./copy")]
pub struct ParseArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
}

/// Transform pages and style sheets into what the mirror shows
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror react ./copy --all")]
pub struct ReactArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
    /// Transform all pages again, as after a change of the rules
    #[arg(long)]
    all: bool,
}

/// Assemble a new generation and switch the webroot to it
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror assemble ./copy")]
pub struct AssembleArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
}

/// Check every digest, link and cursor of a mirror
///
/// Exit code: 0 no errors, 1 something is damaged, 2 error.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror verify ./copy")]
pub struct VerifyArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
}

#[derive(Serialize)]
struct PublishResult {
    /// The x-file; absent if there was nothing to publish.
    x_file: Option<u64>,
}

pub fn spider(args: SpiderArgs) -> anyhow::Result<ExitCode> {
    let outcome = match args.partial {
        true => xfile::Outcome::Partial,
        false => xfile::Outcome::Complete,
    };
    let x_file = publish(&args.mirror.open()?, outcome, clock::now_ms())?;
    args.mirror.answer(&PublishResult { x_file }, || match x_file {
        Some(number) => say(&format!("x-file {number} is published")),
        None => say("nothing was delivered since the last x-file"),
    })?;
    Ok(ExitCode::SUCCESS)
}

pub fn parse(args: ParseArgs) -> anyhow::Result<ExitCode> {
    let progress = parser::run(&args.mirror.open()?)?;
    report(&args.mirror, "parser", progress)
}

pub fn react(args: ReactArgs) -> anyhow::Result<ExitCode> {
    let progress = reactor::run(&args.mirror.open()?, args.all)?;
    report(&args.mirror, "reactor", progress)
}

pub fn assemble(args: AssembleArgs) -> anyhow::Result<ExitCode> {
    let progress = assembler::run(&args.mirror.open()?, clock::now_ms())?;
    report(&args.mirror, "assembler", progress)
}

#[derive(Serialize)]
struct ModuleProgress {
    /// The x-file that the module is at.
    x_file: u64,
    /// X-files that were applied now.
    applied: u64,
    /// Files that were made anew.
    changed: u64,
}

/// Says how far a module has come.
fn report(mirror: &MirrorDirectory, module: &str, done: Progress) -> anyhow::Result<ExitCode> {
    let result =
        ModuleProgress { x_file: done.number, applied: done.x_files, changed: done.changed };
    mirror.answer(&result, || match (result.applied, result.changed) {
        (0, 0) => say(&format!("{module}: up to date at x-file {}", result.x_file)),
        _ => {
            say(&format!("{module}: at x-file {}, {} files changed", result.x_file, result.changed))
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct VerifyResult {
    files: u64,
    problems: Vec<String>,
}

pub fn verify(args: VerifyArgs) -> anyhow::Result<ExitCode> {
    let checked = check::check(&args.mirror.open()?)?;
    let result = VerifyResult { files: checked.files, problems: checked.problems };
    args.mirror.answer(&result, || {
        result.problems.iter().for_each(|problem| say(&shown(problem)));
        match result.problems.len() {
            0 => say(&format!("{} files checked, no errors", result.files)),
            1 => say(&format!("{} files checked, 1 error", result.files)),
            many => say(&format!("{} files checked, {many} errors", result.files)),
        }
    })?;
    Ok(if result.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
