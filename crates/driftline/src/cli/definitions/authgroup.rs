//! `driftline authgroup`: authority groups, listed, made and deleted.

use super::authority::{self, CreateAuthorityArgs, DeleteAuthorityArgs, ListAuthorityArgs};
use crate::verbs::administration::authorities::AuthorityKind;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// List, create and delete authority groups
///
/// An authority group links repository connections with the authorities that decide who may see
/// their documents.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline authgroup create staff --description 'who works here'")]
pub struct Args {
    #[command(subcommand)]
    action: AuthgroupCommand,
}

#[derive(Subcommand)]
enum AuthgroupCommand {
    /// List all authority groups
    #[command(after_help = "Example: driftline authgroup list --json")]
    List(ListAuthorityArgs),
    /// Create an authority group
    #[command(
        after_help = "Example: driftline authgroup create staff --description 'who works here'"
    )]
    Create(CreateAuthorityArgs),
    /// Delete an authority group that no connection refers to
    #[command(after_help = "Example: driftline authgroup delete staff")]
    Delete(DeleteAuthorityArgs),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        AuthgroupCommand::List(args) => authority::list(AuthorityKind::AuthGroup, &args),
        AuthgroupCommand::Create(args) => authority::create(AuthorityKind::AuthGroup, &args),
        AuthgroupCommand::Delete(args) => authority::delete(AuthorityKind::AuthGroup, &args),
    }
}
