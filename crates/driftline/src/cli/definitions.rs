//! What is defined, who may call, and who changed what.

pub mod audit;
pub mod authdomain;
pub mod authgroup;
pub mod authority;
pub mod connection;
pub mod connector;
pub mod export;
pub mod import;
pub mod token;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of this room.
#[derive(Subcommand)]
pub enum DefinitionsCommand {
    Connector(connector::Args),
    Connection(connection::Args),
    Authgroup(authgroup::Args),
    Authdomain(authdomain::Args),
    Import(import::Args),
    Export(export::Args),
    Token(token::Args),
    Audit(audit::Args),
}

/// Runs one of them.
pub fn run(command: DefinitionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        DefinitionsCommand::Connector(args) => connector::run(args),
        DefinitionsCommand::Connection(args) => connection::run(args),
        DefinitionsCommand::Authgroup(args) => authgroup::run(args),
        DefinitionsCommand::Authdomain(args) => authdomain::run(args),
        DefinitionsCommand::Import(args) => import::run(args),
        DefinitionsCommand::Export(args) => export::run(args),
        DefinitionsCommand::Token(args) => token::run(args),
        DefinitionsCommand::Audit(args) => audit::run(args),
    }
}
