//! `driftline authgroup`: authority groups, listed, made and deleted.

use super::authority::{self, CreateArgs, DeleteArgs, ListArgs};
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;
use store::tables::authorities::Realm;

/// List, make and delete authority groups
///
/// An authority group ties repository connections to the authorities that know who may see
/// their documents.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline authgroup create staff --description 'who works here'")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List all authority groups
    #[command(after_help = "Example: driftline authgroup list --json")]
    List(ListArgs),
    /// Make an authority group
    #[command(
        after_help = "Example: driftline authgroup create staff --description 'who works here'"
    )]
    Create(CreateArgs),
    /// Delete an authority group that no connection refers to
    #[command(after_help = "Example: driftline authgroup delete staff")]
    Delete(DeleteArgs),
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List(args) => authority::list(Realm::Groups, &args),
        Action::Create(args) => authority::create(Realm::Groups, &args),
        Action::Delete(args) => authority::delete(Realm::Groups, &args),
    }
}
