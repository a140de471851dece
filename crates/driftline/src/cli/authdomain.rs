//! `driftline authdomain`: authorization domains, listed, made and deleted.

use super::authority::{self, CreateArgs, DeleteArgs, ListArgs};
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;
use store::tables::authorities::Realm;

/// List, make and delete authorization domains
///
/// An authorization domain is a realm of user names; an authority is asked for users of its own.
#[derive(ClapArgs)]
#[command(
    after_help = "Example: driftline authdomain create corp --description 'the company directory'"
)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List all authorization domains
    #[command(after_help = "Example: driftline authdomain list --json")]
    List(ListArgs),
    /// Make an authorization domain
    #[command(
        after_help = "Example: driftline authdomain create corp --description 'the company directory'"
    )]
    Create(CreateArgs),
    /// Delete an authorization domain that no connection refers to
    #[command(after_help = "Example: driftline authdomain delete corp")]
    Delete(DeleteArgs),
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List(args) => authority::list(Realm::Domains, &args),
        Action::Create(args) => authority::create(Realm::Domains, &args),
        Action::Delete(args) => authority::delete(Realm::Domains, &args),
    }
}
