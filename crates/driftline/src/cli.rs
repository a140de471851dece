//! The command line: one subcommand a verb, one file a verb.
//!
//! A verb answers with its exit code: 0 for yes or done, 1 for no. Trouble of any
//! kind ends with 2, as it does for grep and for clap itself, so that a script can
//! tell "no" from "no answer". This module prints a failure; nothing else does.

// Talking to the terminal is what these modules are for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod alone;
pub mod answers;
pub mod audit;
mod authdomain;
mod authgroup;
mod authority;
mod backup;
pub mod changes;
mod completions;
pub mod connection;
mod connector;
mod copy;
mod crawl;
mod csv;
mod delivering;
mod demo;
mod differences;
mod doctor;
pub mod domains;
mod endless;
mod export;
mod extract;
mod gc;
pub mod hosts;
mod import;
mod init;
pub mod job;
pub mod json_line;
mod lease_keeper;
mod linked;
pub mod links;
mod load;
mod man;
pub mod nodes;
mod outages;
pub mod page;
mod place;
pub mod report;
mod restore;
mod robots;
mod run_as;
mod search;
mod searched;
mod serve;
pub mod status;
pub mod stderr;
mod temporary;
mod terminal;
pub mod token;
pub mod top;
pub mod urls;
mod usage;
mod verify;
pub mod why;
mod words;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use store::datadir::Layout;
use store::tables::connections::Kind;

/// The exit code of a verb that could not answer.
const TROUBLE: u8 = 2;

/// Keeps a searchable, linked, publishable copy of a changing web up to date.
#[derive(Parser)]
#[command(name = "driftline", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Demo(demo::Args),
    Crawl(crawl::Args),
    Work(work::Args),
    Serve(serve::Args),
    Init(init::Args),
    Status(status::Args),
    Urls(urls::Args),
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

/// What every verb about a data directory takes.
#[derive(clap::Args)]
struct Data {
    /// The data directory; DRIFTLINE_DATA names another default
    #[arg(long, value_name = "DIR", default_value_os_t = default_data())]
    data: PathBuf,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl Data {
    fn root(&self) -> &Path {
        &self.data
    }

    fn layout(&self) -> Layout {
        Layout::new(&self.data)
    }

    /// The layout of a directory that must be there.
    fn existing(&self) -> anyhow::Result<Layout> {
        existing(&self.data)
    }
}

/// The variable of the environment that names the data directory.
const DATA_VARIABLE: &str = "DRIFTLINE_DATA";

/// The data directory of a command line that names none. A default, and not a value from the
/// environment, so that it is no contradiction to `--database`.
fn default_data() -> PathBuf {
    let named = std::env::var_os(DATA_VARIABLE).filter(|it| !it.is_empty());
    named.map_or_else(|| PathBuf::from("driftline-data"), PathBuf::from)
}

/// The layout of a data directory that must be there.
fn existing(root: &Path) -> anyhow::Result<Layout> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let layout = Layout::new(root);
    let name = shown(&root.display().to_string());
    match std::fs::metadata(layout.database()) {
        Ok(file) if file.is_file() => Ok(layout),
        Err(error) if !matches!(error.kind(), NotFound | NotADirectory) => anyhow::bail!(
            "the data directory {name} cannot be read: {error}; run this as the user who made it, \
             or let its owner give you the permission"
        ),
        _ => anyhow::bail!(
            "there is no data directory at {name}; name another with --data, or make one with: \
             driftline init --data {name}"
        ),
    }
}

/// Reads the command line, runs its verb, and reports how it went.
pub fn main() -> ExitCode {
    store::open_files::raise_limit();
    stderr::tell_panics();
    let code = answer();
    stderr::end();
    code
}

fn answer() -> ExitCode {
    let line = match Cli::try_parse() {
        Ok(line) => line,
        Err(error) => return usage::answer(&error),
    };
    run(line.verb).unwrap_or_else(|error| {
        // A script that reads answers as JSON reads failures so, too.
        match usage::is_json() {
            true => stderr::line(&serde_json::json!({"error": format!("{error:#}")}).to_string()),
            false => stderr::notice("error", &format!("{error:#}")),
        }
        ExitCode::from(TROUBLE)
    })
}

fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Demo(args) => demo::run(args),
        Verb::Crawl(args) => crawl::run(args),
        Verb::Work(args) => work::run(args),
        Verb::Serve(args) => serve::run(args),
        Verb::Init(args) => init::run(args),
        Verb::Status(args) => status::run(args),
        Verb::Urls(args) => urls::run(args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Hosts(args) => hosts::run(args),
        Verb::Search(args) => search::run(args),
        Verb::Links(args) => links::run(args),
        Verb::Load(args) => load::run(args),
        Verb::Page(args) => page::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Domains(args) => domains::run(args),
        Verb::Report(args) => report::run(args),
        Verb::Why(args) => why::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Backup(args) => backup::run(args),
        Verb::Restore(args) => restore::run(args),
        Verb::Copy(args) => copy::run(args),
        Verb::Gc(args) => gc::run(args),
        Verb::Connector(args) => connector::run(args),
        Verb::Connection(args) => connection::run(args),
        Verb::Job(args) => job::run(args),
        Verb::Authgroup(args) => authgroup::run(args),
        Verb::Authdomain(args) => authdomain::run(args),
        Verb::Import(args) => import::run(args),
        Verb::Export(args) => export::run(args),
        Verb::Token(args) => token::run(args),
        Verb::Audit(args) => audit::run(args),
        Verb::Robots(args) => robots::run(args),
        Verb::Completions(args) => completions::run(args),
        Verb::Man(args) => man::run(args),
        Verb::Extract(args) => extract::run(args),
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

/// Tells what a change came to, and a word when it was nothing.
fn told(
    place: &place::Place,
    answer: serde_json::Value,
    nothing: &str,
) -> anyhow::Result<ExitCode> {
    use anyhow::Context;
    if place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let changed: changes::Changed = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
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

/// A kind of connection or connector, by its name.
fn kind_of(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        format!("there are these kinds: {}", names.join(", "))
    })
}

/// Text from outside, fit for a terminal: control characters and those that
/// turn the direction of writing are shown as escapes (T24).
pub fn shown(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_harmless(c) {
            out.push(c)
        } else {
            out.extend(c.escape_unicode())
        }
        out
    })
}

/// Whether a character neither controls whatever shows it nor turns the direction of writing.
fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_defined() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}c é"), "a\\u{1b}[2Jb\\u{202e}c é");
    }
}
