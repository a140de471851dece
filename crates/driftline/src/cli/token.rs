//! `driftline token`: who may call the HTTP API.
//!
//! Invariant: a token is shown once, when it is made; nothing keeps more than its hash.

use super::answers::Answers;
use super::audit::COMMAND_LINE;
use super::changes::Changes;
use super::place::Place;
use super::words::{date, table, when};
use super::{say, shown, told};
use crate::catalog::typed;
use crate::http::access::{hash_of, new_token};
use crate::http::routes::Area;
use crate::refusal::{refuse, require};
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::tables::tokens::{self, Role, Token};
use store::{Error, clock};

/// Characters of a name.
const NAME_MAX: usize = 100;

/// Manage the tokens of the HTTP API
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline token create me --role admin
Example: driftline token create dashboard --area monitoring --expires 90d
Example: driftline token revoke dashboard")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a token, and show it this once
    #[command(after_help = "\
Roles: viewer searches and reads; operator also starts, stops and edits jobs; admin does everything;
publisher reads publications and nothing else.
Example: driftline token create me --role admin")]
    Create(CreateArgs),
    /// List tokens
    #[command(after_help = "Example: driftline token list")]
    List(ListArgs),
    /// Take a token back
    #[command(after_help = "Example: driftline token revoke me")]
    Revoke(RevokeArgs),
}

#[derive(ClapArgs)]
struct CreateArgs {
    #[command(flatten)]
    place: Place,
    /// A name to know it by
    #[arg(value_name = "NAME")]
    name: String,
    /// What it may do
    #[arg(long, value_name = "ROLE", default_value = "viewer",
          value_parser = PossibleValuesParser::new(Role::ALL.map(Role::name)))]
    role: String,
    /// Good for this piece of the API only; may be given several times
    #[arg(long, value_name = "AREA",
          value_parser = PossibleValuesParser::new(Area::ALL.map(Area::name)))]
    area: Vec<String>,
    /// How long it is good, such as 90d; without it, until it is revoked
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

#[derive(ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct RevokeArgs {
    #[command(flatten)]
    place: Place,
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// A token that is to be made.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct New {
    /// A name to know it by.
    name: String,
    /// What it may do.
    role: Role,
    /// What of the API it is good for; all of it if nothing is named.
    #[serde(default)]
    areas: Vec<String>,
    /// How long it is good; until it is revoked if nothing is said.
    #[serde(default)]
    expires_in_ms: Option<i64>,
}

/// A token that was made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Made {
    /// What was done.
    changes: Vec<String>,
    /// That it was done.
    applied: bool,
    /// The token. It is shown this once.
    token: String,
}

/// A token, as it is listed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Its name.
    name: String,
    /// What it may do.
    role: Role,
    /// What of the API it is good for; all of it if nothing is named.
    areas: Vec<String>,
    /// When it was made.
    created_ms: i64,
    /// Until when it is good; until it is revoked if nothing is said.
    expires_ms: Option<i64>,
    /// When it was last used, to a minute.
    used_ms: Option<i64>,
    /// When it was taken back.
    revoked_ms: Option<i64>,
}

/// A change, as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Change {
    /// Makes a token.
    Create(New),
    /// Takes one back.
    Revoke {
        /// Which.
        name: String,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Create(args) => create(args),
        Action::List(args) => list(&args.place),
        Action::Revoke(args) => {
            let answer = args.place.change("token", Change::Revoke { name: args.name })?;
            told(&args.place, answer, "")
        }
    }
}

fn create(args: CreateArgs) -> anyhow::Result<ExitCode> {
    let span = |text: &str| {
        let wrong = || format!("--expires is a span of time such as 90d, not {text:?}");
        typed::milliseconds(text).filter(|ms| *ms > 0).with_context(wrong)
    };
    let expires_in_ms = args.expires.as_deref().map(span).transpose()?;
    let role = Role::parse(&args.role).context("there is no such role")?;
    let (name, areas) = (args.name, args.area);
    let new = New { name, role, areas, expires_in_ms };
    let answer = args.place.change("token", Change::Create(new))?;
    if args.place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let made: Made = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
    made.changes.iter().for_each(|line| say(&shown(line)));
    say("keep it: it is shown this once, and only its hash is stored");
    say("");
    say(&made.token);
    Ok(ExitCode::SUCCESS)
}

fn list(place: &Place) -> anyhow::Result<ExitCode> {
    let answer = place.ask("tokens", ())?;
    if place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let found: Vec<Line> = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
    if found.is_empty() {
        say("there is none; make one: driftline token create NAME --role ROLE");
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = clock::now_ms();
    let mut rows =
        vec![["name", "role", "areas", "made", "last used", ""].map(str::to_owned).to_vec()];
    for it in &found {
        let state = match (it.revoked_ms, it.expires_ms) {
            (Some(ms), _) => format!("revoked {}", date(ms)),
            (None, Some(ms)) if ms <= now_ms => format!("expired {}", date(ms)),
            (None, Some(ms)) => format!("expires {}", date(ms)),
            (None, None) => String::new(),
        };
        let areas = if it.areas.is_empty() { "all".to_owned() } else { it.areas.join(", ") };
        let used = it.used_ms.map_or("never".to_owned(), |ms| when(ms, now_ms));
        let (name, role) = (shown(&it.name), it.role.name().to_owned());
        rows.push(vec![name, role, areas, date(it.created_ms), used, state]);
    }
    table(&rows, |_| false).iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

/// The tokens, by the process that has the rows.
pub fn answer(answers: &Answers, (): ()) -> anyhow::Result<Json> {
    let found = answers.db.read(tokens::list)?;
    let lines = found.into_iter().map(|it| Line {
        name: it.name,
        role: it.role,
        areas: it.areas,
        created_ms: it.created_ms,
        expires_ms: it.expires_ms,
        used_ms: it.used_ms,
        revoked_ms: it.revoked_ms,
    });
    Ok(serde_json::to_value(lines.collect::<Vec<_>>())?)
}

/// Carries out a change.
pub fn change(changes: &Changes, it: Change) -> anyhow::Result<Json> {
    let now_ms = clock::now_ms();
    match it {
        Change::Create(new) => make(changes, new, now_ms),
        Change::Revoke { name } => {
            let (named, line) = (name.clone(), format!("token {name}: revoked"));
            if !changes.db.write(move |tx| tokens::revoke(tx, &named, now_ms))? {
                refuse!(
                    "there is no token named {} that is good; `driftline token list` lists them",
                    shown(&name)
                );
            }
            Ok(serde_json::json!({"changes": [line], "applied": true}))
        }
    }
}

fn make(changes: &Changes, new: New, now_ms: i64) -> anyhow::Result<Json> {
    let New { name, role, areas, expires_in_ms } = new;
    let is_fit = !name.trim().is_empty() && name.chars().count() <= NAME_MAX;
    require!(is_fit, "a token's name has 1 to {NAME_MAX} characters");
    require!(name != COMMAND_LINE, "who uses the command line is called so; take another name");
    let known = Area::ALL.map(Area::name);
    if let Some(area) = areas.iter().find(|it| !known.contains(&it.as_str())) {
        refuse!("there is no area {}; there are {}", shown(area), known.join(", "));
    }
    require!(expires_in_ms.is_none_or(|ms| ms > 0), "a token is good for some time at least");
    let expires_ms = expires_in_ms.map(|ms| now_ms.saturating_add(ms));
    let secret = new_token()?;
    let (id, hash) = (super::audit::new_id()?, hash_of(&secret));
    let (created_ms, used_ms, revoked_ms) = (now_ms, None, None);
    let limits =
        if areas.is_empty() { String::new() } else { format!(" for {}", areas.join(", ")) };
    let until = expires_ms.map_or(String::new(), |ms| format!(" until {}", date(ms)));
    let line = format!("token {name}: made, {}{limits}{until}", role.name());
    let token =
        Token { id, name: name.clone(), role, areas, created_ms, expires_ms, used_ms, revoked_ms };
    match changes.db.write(move |tx| tokens::create(tx, &token, &hash)) {
        Err(Error::Duplicate { .. }) => refuse!(
            "there is a token named {} already; revoke it, or take another name",
            shown(&name)
        ),
        done => done?,
    }
    let made = Made { changes: vec![line], applied: true, token: secret };
    Ok(serde_json::to_value(made)?)
}
