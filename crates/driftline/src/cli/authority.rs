//! What `driftline authgroup` and `driftline authdomain` share: both are names with
//! descriptions that connections refer to.

use super::answers::Answers;
use super::changes::{Changed, Changes};
use super::place::Place;
use super::{say, shown, told};
use crate::definitions::{Definitions, Described};
use crate::refusal::require;
use anyhow::Context;
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::tables::authorities::{self, Realm};

/// Names listed at most.
const LISTED_MAX: u32 = 10_000;

/// What listing takes.
#[derive(ClapArgs)]
pub struct ListArgs {
    #[command(flatten)]
    place: Place,
}

/// What making one takes.
#[derive(ClapArgs)]
pub struct CreateArgs {
    #[command(flatten)]
    place: Place,
    /// Its name, of at most 32 characters
    #[arg(value_name = "NAME")]
    name: String,
    /// What it is, in at most 255 characters
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
}

/// What deleting one takes.
#[derive(ClapArgs)]
pub struct DeleteArgs {
    #[command(flatten)]
    place: Place,
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// A change, as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    verb: String,
    name: String,
    /// `None` deletes it.
    description: Option<String>,
}

/// One of them, as it is listed.
#[derive(Serialize, Deserialize)]
struct Listed {
    name: String,
    description: String,
}

/// The verb of each.
pub fn verb(realm: Realm) -> &'static str {
    match realm {
        Realm::Groups => "authgroup",
        Realm::Domains => "authdomain",
    }
}

fn realm_of(verb: &str) -> Realm {
    if verb == "authgroup" { Realm::Groups } else { Realm::Domains }
}

/// The list, by the process that has the rows.
pub fn answer(answers: &Answers, verb: String) -> anyhow::Result<Json> {
    let realm = realm_of(&verb);
    let found = answers.db.read(move |tx| authorities::list(tx, realm, "", LISTED_MAX))?;
    let listed: Vec<Listed> =
        found.into_iter().map(|it| Listed { name: it.name, description: it.description }).collect();
    Ok(serde_json::to_value(listed)?)
}

/// Makes or deletes one.
pub fn change(changes: &Changes, it: Change) -> anyhow::Result<Changed> {
    let (realm, name) = (realm_of(&it.verb), it.name);
    let word = realm.word();
    let Some(description) = it.description else {
        let gone = name.clone();
        let was_there = changes.db.write(move |tx| authorities::delete(tx, realm, &gone))?;
        require!(
            was_there,
            "there is no {word} named {}; `driftline {} list` lists them",
            shown(&name),
            it.verb
        );
        return Ok(Changed::done(vec![format!("{word} {name}: deleted")]));
    };
    changes.define(false, move |stored| {
        let mut new = Definitions::default();
        let (known, into) = match realm {
            Realm::Groups => (&stored.authgroups, &mut new.authgroups),
            Realm::Domains => (&stored.authdomains, &mut new.authdomains),
        };
        require!(
            !known.contains_key(&name),
            "there is an {word} named {} already; choose another name",
            shown(&name)
        );
        into.insert(name.clone(), Described { description: description.clone() });
        Ok(new)
    })
}

/// Lists them.
pub fn list(realm: Realm, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let answer = args.place.ask("authorities", verb(realm))?;
    if args.place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let listed: Vec<Listed> = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
    if listed.is_empty() {
        say(&format!("there is none; make one: driftline {} create NAME", verb(realm)));
    }
    for it in listed {
        say(format!("{:<32} {}", shown(&it.name), shown(&it.description)).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes one.
pub fn create(realm: Realm, args: &CreateArgs) -> anyhow::Result<ExitCode> {
    let (name, description) = (args.name.clone(), Some(args.description.clone()));
    let change = Change { verb: verb(realm).to_owned(), name, description };
    told(&args.place, args.place.change(verb(realm), &change)?, "nothing has changed")
}

/// Deletes one.
pub fn delete(realm: Realm, args: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let name = args.name.clone();
    let change = Change { verb: verb(realm).to_owned(), name, description: None };
    told(&args.place, args.place.change(verb(realm), &change)?, "nothing has changed")
}
