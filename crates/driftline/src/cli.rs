//! The command line: a room for each noun, with a file for each command: its flags, and what it
//! prints. What a command asks or changes is a verb ([`crate::verbs`]).
//!
//! A command answers with its exit code: 0 for yes or done, 1 for no. Trouble of any
//! kind ends with 2, as it does for grep and for clap itself, so that a script can
//! tell "no" from "no answer". This module prints a failure; nothing else does.

// Talking to the terminal is what these modules are for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod crawls;
mod csv;
mod data;
mod definitions;
mod differences;
mod jobs;
mod link_index;
mod mirror;
mod program;
mod search;
mod terminal;

use crate::place::Place;
use crate::stderr;
use crate::text::shown;
use crate::verbs::changes::ChangeResult;
use crate::verbs::wire;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// The exit code of a verb that could not answer.
const TROUBLE: u8 = 2;

/// Keeps a searchable, linked, publishable copy of a changing web up to date.
#[derive(Parser)]
#[command(name = "driftline", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Program(program::ProgramCommand),
    #[command(flatten)]
    Crawls(crawls::CrawlsCommand),
    #[command(flatten)]
    Data(data::DataCommand),
    #[command(flatten)]
    Jobs(jobs::JobsCommand),
    Search(search::Args),
    #[command(flatten)]
    LinkIndex(link_index::LinkIndexCommand),
    Mirror(mirror::Args),
    #[command(flatten)]
    Definitions(definitions::DefinitionsCommand),
}

/// Reads the command line, runs its verb, and reports how it went.
pub fn main() -> ExitCode {
    store::open_files::raise_limit();
    stderr::report_panics();
    let code = answer();
    stderr::end();
    code
}

fn answer() -> ExitCode {
    let line = match Cli::try_parse() {
        Ok(line) => line,
        Err(error) => return program::usage::answer(&error),
    };
    run(line.command).unwrap_or_else(|error| {
        // A script that reads answers as JSON reads failures so, too.
        match program::usage::is_json() {
            true => stderr::line(&serde_json::json!({"error": format!("{error:#}")}).to_string()),
            false => stderr::notice("error", &format!("{error:#}")),
        }
        ExitCode::from(TROUBLE)
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Program(command) => program::run(command),
        Command::Crawls(command) => crawls::run(command),
        Command::Data(command) => data::run(command),
        Command::Jobs(command) => jobs::run(command),
        Command::Search(args) => search::run(args),
        Command::LinkIndex(command) => link_index::run(command),
        Command::Mirror(args) => mirror::run(args),
        Command::Definitions(command) => definitions::run(command),
    }
}

/// The whole command line, for what is generated from it.
fn command() -> clap::Command {
    Cli::command()
}

/// Prints an answer that is a file. A reader that has gone away is no failure.
fn print_whole(text: &[u8]) -> anyhow::Result<()> {
    use std::io::{ErrorKind, Write};
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints one line of an answer. A reader that has gone away is no failure.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a response as JSON.
fn say_json(response: &impl serde::Serialize) -> anyhow::Result<()> {
    say(&wire::encode(response)?.to_string());
    Ok(())
}

/// Tells what a change came to, and says `nothing` when it was nothing.
fn report_change(place: &Place, changed: &ChangeResult, nothing: &str) -> anyhow::Result<ExitCode> {
    if place.json() {
        say_json(changed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if changed.changes.is_empty() {
        say(nothing);
        return Ok(ExitCode::SUCCESS);
    }
    changed.changes.iter().for_each(|line| say(&shown(line)));
    if !changed.applied {
        say("this was a dry run: nothing was changed");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_defined() {
        Cli::command().debug_assert();
    }
}
