//! `driftline authdomain`: authorization domains, listed, made and deleted.

use super::authority::{self, CreateAuthorityArgs, DeleteAuthorityArgs, ListAuthorityArgs};
use crate::verbs::administration::authorities::AuthorityKind;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// List, create and delete authorization domains
///
/// An authorization domain is a realm of user names; an authority is asked only about users of its
/// own domain.
#[derive(ClapArgs)]
#[command(
    after_help = "Example: driftline authdomain create corp --description 'the company directory'"
)]
pub struct Args {
    #[command(subcommand)]
    action: AuthdomainCommand,
}

#[derive(Subcommand)]
enum AuthdomainCommand {
    /// List all authorization domains
    #[command(after_help = "Example: driftline authdomain list --json")]
    List(ListAuthorityArgs),
    /// Create an authorization domain
    #[command(
        after_help = "Example: driftline authdomain create corp --description 'the company directory'"
    )]
    Create(CreateAuthorityArgs),
    /// Delete an authorization domain that no connection refers to
    #[command(after_help = "Example: driftline authdomain delete corp")]
    Delete(DeleteAuthorityArgs),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        AuthdomainCommand::List(args) => authority::list(AuthorityKind::AuthDomain, &args),
        AuthdomainCommand::Create(args) => authority::create(AuthorityKind::AuthDomain, &args),
        AuthdomainCommand::Delete(args) => authority::delete(AuthorityKind::AuthDomain, &args),
    }
}
