//! The link index: links, pages, rankings, domains, and archives loaded into it.

pub mod domains;
pub mod links;
pub mod load;
pub mod page;
pub mod top;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of this room.
// One is made, from the command line.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand)]
pub enum LinkIndexCommand {
    Links(links::Args),
    Page(page::Args),
    Top(top::Args),
    Domains(domains::Args),
    Load(load::Args),
}

/// Runs one of them.
pub fn run(command: LinkIndexCommand) -> anyhow::Result<ExitCode> {
    match command {
        LinkIndexCommand::Links(args) => links::run(args),
        LinkIndexCommand::Page(args) => page::run(args),
        LinkIndexCommand::Top(args) => top::run(args),
        LinkIndexCommand::Domains(args) => domains::run(args),
        LinkIndexCommand::Load(args) => load::run(args),
    }
}
