//! The command line: one subcommand a verb, one file a verb.
//!
//! A verb answers with its exit code: 0 for yes or done, 1 for no. Trouble of any
//! kind ends with 2, as it does for grep and for clap itself, so that a script can
//! tell "no" from "no answer". This module prints a failure; nothing else does.

// Talking to the terminal is what these modules are for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub mod audit;
mod authdomain;
mod authgroup;
mod authority;
mod backup;
mod completions;
pub mod connection;
mod connector;
mod copy;
mod crawl;
mod csv;
mod delivering;
mod demo;
mod doctor;
pub mod documents;
pub mod domains;
mod export;
mod extract;
mod gc;
pub mod hosts;
mod import;
mod init;
pub mod job;
pub mod links;
mod load;
mod man;
pub mod page;
pub mod report;
mod restore;
mod robots;
mod run_as;
mod search;
mod serve;
pub mod status;
mod terminal;
pub mod token;
pub mod top;
mod usage;
mod verify;
pub mod why;
mod work;

use crate::place::Place;
use crate::stderr;
use crate::text::shown;
use crate::verbs::changes::Changed;
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
    Demo(demo::Args),
    Crawl(crawl::Args),
    Work(work::Args),
    Serve(serve::Args),
    Init(init::Args),
    Status(status::Args),
    Documents(documents::Args),
    Why(why::Args),
    Hosts(hosts::Args),
    Search(search::Args),
    Links(links::Args),
    Load(load::Args),
    Page(page::Args),
    Top(top::Args),
    Domains(domains::Args),
    Report(report::Args),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Copy(copy::Args),
    Gc(gc::Args),
    Connector(connector::Args),
    Connection(connection::Args),
    Job(job::Args),
    Authgroup(authgroup::Args),
    Authdomain(authdomain::Args),
    Import(import::Args),
    Export(export::Args),
    Token(token::Args),
    Audit(audit::Args),
    Robots(robots::Args),
    Completions(completions::Args),
    Man(man::Args),
    Extract(extract::Args),
}

/// Reads the command line, runs its verb, and reports how it went.
pub fn main() -> ExitCode {
    store::open_files::raise_limit();
    let code = answer();
    stderr::end();
    code
}

fn answer() -> ExitCode {
    let line = match Cli::try_parse() {
        Ok(line) => line,
        Err(error) => return usage::answer(&error),
    };
    run(line.command).unwrap_or_else(|error| {
        // A script that reads answers as JSON reads failures so, too.
        match usage::is_json() {
            true => stderr::line(&serde_json::json!({"error": format!("{error:#}")}).to_string()),
            false => stderr::notice("error", &format!("{error:#}")),
        }
        ExitCode::from(TROUBLE)
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Crawl(args) => crawl::run(args),
        Command::Work(args) => work::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Init(args) => init::run(args),
        Command::Status(args) => status::run(args),
        Command::Documents(args) => documents::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Hosts(args) => hosts::run(args),
        Command::Search(args) => search::run(args),
        Command::Links(args) => links::run(args),
        Command::Load(args) => load::run(args),
        Command::Page(args) => page::run(args),
        Command::Top(args) => top::run(args),
        Command::Domains(args) => domains::run(args),
        Command::Report(args) => report::run(args),
        Command::Why(args) => why::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Copy(args) => copy::run(args),
        Command::Gc(args) => gc::run(args),
        Command::Connector(args) => connector::run(args),
        Command::Connection(args) => connection::run(args),
        Command::Job(args) => job::run(args),
        Command::Authgroup(args) => authgroup::run(args),
        Command::Authdomain(args) => authdomain::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        Command::Token(args) => token::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Robots(args) => robots::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Extract(args) => extract::run(args),
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
fn report_change(place: &Place, changed: &Changed, nothing: &str) -> anyhow::Result<ExitCode> {
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
