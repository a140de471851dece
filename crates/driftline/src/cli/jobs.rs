//! Jobs, their documents and hosts, and what they did.

pub mod documents;
pub mod hosts;
pub mod job;
pub mod report;
pub mod why;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of this room.
#[derive(Subcommand)]
pub enum JobsCommand {
    Job(job::Args),
    Documents(documents::Args),
    Why(why::Args),
    Hosts(hosts::Args),
    Report(report::Args),
}

/// Runs one of them.
pub fn run(command: JobsCommand) -> anyhow::Result<ExitCode> {
    match command {
        JobsCommand::Job(args) => job::run(args),
        JobsCommand::Documents(args) => documents::run(args),
        JobsCommand::Why(args) => why::run(args),
        JobsCommand::Hosts(args) => hosts::run(args),
        JobsCommand::Report(args) => report::run(args),
    }
}
