//! `driftline token`: who may call the HTTP API.

use crate::catalog::typed;
use crate::cli::{report_change, say, say_json};
use crate::place::Place;
use crate::text::{date, shown, table, when};
use crate::verbs::access::Area;
use crate::verbs::administration::tokens::{
    CreateToken, NewToken, RevokeToken, TokenRequest, Tokens,
};
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;
use store::clock;
use store::tables::tokens::Role;

/// Manage the tokens of the HTTP API
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline token create me --role admin
Example: driftline token create dashboard --area monitoring --expires 90d
Example: driftline token revoke dashboard")]
pub struct Args {
    #[command(subcommand)]
    action: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Create a token, which is shown only once
    #[command(after_help = "\
Roles: viewer can search and read; operator can also start, stop and edit jobs; admin can do everything;
publisher can read publications and nothing else.
Example: driftline token create me --role admin")]
    Create(TokenCreateArgs),
    /// List tokens
    #[command(after_help = "Example: driftline token list")]
    List(TokenListArgs),
    /// Revoke a token
    #[command(after_help = "Example: driftline token revoke me")]
    Revoke(TokenRevokeArgs),
}

#[derive(ClapArgs)]
struct TokenCreateArgs {
    #[command(flatten)]
    place: Place,
    /// Name of the token
    #[arg(value_name = "NAME")]
    name: String,
    /// Role of the token
    #[arg(long, value_name = "ROLE", default_value = "viewer",
          value_parser = PossibleValuesParser::new(Role::ALL.map(Role::name)))]
    role: String,
    /// Limit the token to this area of the API; can be repeated
    #[arg(long, value_name = "AREA",
          value_parser = PossibleValuesParser::new(Area::ALL.map(Area::name)))]
    area: Vec<String>,
    /// How long the token is valid, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

#[derive(ClapArgs)]
struct TokenListArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct TokenRevokeArgs {
    #[command(flatten)]
    place: Place,
    /// Name of the token
    #[arg(value_name = "NAME")]
    name: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        TokenCommand::Create(args) => create(args),
        TokenCommand::List(args) => list(&args.place),
        TokenCommand::Revoke(args) => {
            let changed = args.place.change::<RevokeToken>(TokenRequest { name: args.name })?;
            report_change(&args.place, &changed, "")
        }
    }
}

fn create(args: TokenCreateArgs) -> anyhow::Result<ExitCode> {
    let span = |text: &str| {
        let wrong = || format!("--expires is a duration such as 90d, not {text:?}");
        typed::milliseconds(text).filter(|ms| *ms > 0).with_context(wrong)
    };
    let expires_in_ms = args.expires.as_deref().map(span).transpose()?;
    let role = Role::parse(&args.role).context("there is no such role")?;
    let (name, areas) = (args.name, args.area);
    let new = NewToken { name, role, areas, expires_in_ms };
    let made = args.place.change::<CreateToken>(new)?;
    if args.place.json() {
        say_json(&made)?;
        return Ok(ExitCode::SUCCESS);
    }
    made.changes.iter().for_each(|line| say(&shown(line)));
    say("save it now: it is not shown again, and only its hash is stored");
    say("");
    say(&made.token);
    Ok(ExitCode::SUCCESS)
}

fn list(place: &Place) -> anyhow::Result<ExitCode> {
    let found = place.ask::<Tokens>(())?;
    if place.json() {
        say_json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        say("there is no token; create one: driftline token create NAME --role ROLE");
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
