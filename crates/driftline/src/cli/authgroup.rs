//! `driftline authgroup`: authority groups, listed, made and deleted.

use super::authority::{self, CreateAuthorityArgs, DeleteAuthorityArgs, ListAuthorityArgs};
use crate::verbs::administration::authorities::AuthorityKind;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

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
    List(ListAuthorityArgs),
    /// Make an authority group
    #[command(
        after_help = "Example: driftline authgroup create staff --description 'who works here'"
    )]
    Create(CreateAuthorityArgs),
    /// Delete an authority group that no connection refers to
    #[command(after_help = "Example: driftline authgroup delete staff")]
    Delete(DeleteAuthorityArgs),
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List(args) => authority::list(AuthorityKind::AuthGroup, &args),
        Action::Create(args) => authority::create(AuthorityKind::AuthGroup, &args),
        Action::Delete(args) => authority::delete(AuthorityKind::AuthGroup, &args),
    }
}
