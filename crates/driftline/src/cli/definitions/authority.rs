//! What `driftline authgroup` and `driftline authdomain` share: both are names with
//! descriptions that connections refer to.

use crate::cli::{report_change, say, say_json};
use crate::place::Place;
use crate::text::shown;
use crate::verbs::administration::authorities::{
    Authorities, AuthorityKind, AuthorityRequest, ChangeAuthority,
};
use clap::Args as ClapArgs;
use std::process::ExitCode;

#[derive(ClapArgs)]
pub struct ListAuthorityArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
pub struct CreateAuthorityArgs {
    #[command(flatten)]
    place: Place,
    /// Name, at most 32 characters
    #[arg(value_name = "NAME")]
    name: String,
    /// Description, at most 255 characters
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
}

#[derive(ClapArgs)]
pub struct DeleteAuthorityArgs {
    #[command(flatten)]
    place: Place,
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

pub fn list(kind: AuthorityKind, args: &ListAuthorityArgs) -> anyhow::Result<ExitCode> {
    let listed = args.place.ask::<Authorities>(kind)?;
    if args.place.json() {
        say_json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if listed.is_empty() {
        say(&format!("none defined; create one: driftline {} create NAME", kind.command()));
    }
    for it in listed {
        say(format!("{:<32} {}", shown(&it.name), shown(&it.description)).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

pub fn create(kind: AuthorityKind, args: &CreateAuthorityArgs) -> anyhow::Result<ExitCode> {
    let (name, description) = (args.name.clone(), Some(args.description.clone()));
    change(&args.place, AuthorityRequest { kind, name, description })
}

pub fn delete(kind: AuthorityKind, args: &DeleteAuthorityArgs) -> anyhow::Result<ExitCode> {
    let name = args.name.clone();
    change(&args.place, AuthorityRequest { kind, name, description: None })
}

fn change(place: &Place, request: AuthorityRequest) -> anyhow::Result<ExitCode> {
    report_change(place, &place.change::<ChangeAuthority>(request)?, "nothing changed")
}
