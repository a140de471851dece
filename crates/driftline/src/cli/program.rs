//! The program itself: its demo, its completions, its manual.

pub mod completions;
pub mod demo;
pub mod man;
pub mod usage;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of this room.
#[derive(Subcommand)]
pub enum ProgramCommand {
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs one of them.
pub fn run(command: ProgramCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProgramCommand::Demo(args) => demo::run(args),
        ProgramCommand::Completions(args) => completions::run(args),
        ProgramCommand::Man(args) => man::run(args),
    }
}
