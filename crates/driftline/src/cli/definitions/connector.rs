//! `driftline connector`: which connectors there are, what they take, and whether they
//! are registered.
//!
//! All that is shown comes from the catalogue, so a new connector needs no line here.

use crate::catalog::{self, kind_of};
use crate::cli::{report_change, say, say_json};
use crate::place::Place;
use crate::text::{self, quoted, shown};
use crate::verbs::administration::connectors::{
    ConnectorLine, Connectors, RegisterConnector, RegisterRequest,
};
use clap::{Args as ClapArgs, Subcommand};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// List connectors and their settings, and register or deregister them
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline connector show web")]
pub struct Args {
    #[command(subcommand)]
    action: ConnectorCommand,
}

#[derive(Subcommand)]
enum ConnectorCommand {
    /// List all connectors
    #[command(after_help = "Example: driftline connector list --json")]
    List(ConnectorListArgs),
    /// Show the settings of a connector
    #[command(after_help = "Example: driftline connector show files --kind output")]
    Show(ConnectorOneArgs),
    /// Register a connector: its tables are created, and jobs that waited for it continue
    #[command(after_help = "Example: driftline connector register web")]
    Register(ConnectorOneArgs),
    /// Deregister a connector: its tables are dropped, and running jobs that use it stop making
    /// progress
    #[command(after_help = "Example: driftline connector deregister web")]
    Deregister(ConnectorOneArgs),
}

#[derive(ClapArgs)]
struct ConnectorListArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct ConnectorOneArgs {
    #[command(flatten)]
    place: Place,
    /// Name of the connector
    #[arg(value_name = "NAME")]
    name: String,
    /// Its kind, if two connectors have the same name
    #[arg(long, value_name = "KIND", value_parser = kind_of)]
    kind: Option<ConnectionKind>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        ConnectorCommand::List(args) => list(&args),
        ConnectorCommand::Show(args) => show(&args),
        ConnectorCommand::Register(args) => set(&args, true),
        ConnectorCommand::Deregister(args) => set(&args, false),
    }
}

fn set(args: &ConnectorOneArgs, register: bool) -> anyhow::Result<ExitCode> {
    let connector = catalog::named(args.kind, &args.name)?;
    let kind = connector.kind.name().to_owned();
    let request = RegisterRequest { kind, name: args.name.clone(), register };
    let changed = args.place.change::<RegisterConnector>(request)?;
    report_change(&args.place, &changed, "nothing changed: it is already as requested")
}

fn connector_lines(place: &Place) -> anyhow::Result<Vec<ConnectorLine>> {
    match place.is_absent() {
        // What there is to choose from can be looked up before anything is made; a new
        // directory has all of them registered.
        true => Ok(catalog::all().map(|it| ConnectorLine::new(it, true, None)).collect()),
        false => place.ask::<Connectors>(()),
    }
}

fn list(args: &ConnectorListArgs) -> anyhow::Result<ExitCode> {
    let listed = connector_lines(&args.place)?;
    if args.place.json() {
        say_json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |it: ConnectorLine| {
        let standing = if it.registered { "" } else { " (not registered)" };
        vec![it.kind, it.name, format!("{}{standing}", it.about)]
    };
    let rows: Vec<Vec<String>> = listed.into_iter().map(row).collect();
    text::table(&rows, |_| false).iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

fn show(args: &ConnectorOneArgs) -> anyhow::Result<ExitCode> {
    let connector = catalog::named(args.kind, &args.name)?;
    let listed = connector_lines(&args.place)?;
    let is_it = |it: &&ConnectorLine| it.kind == connector.kind.name() && it.name == connector.name;
    let registered = listed.iter().find(is_it).is_some_and(|it| it.registered);
    if args.place.json() {
        say(&described(connector, registered).to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let standing = if registered { "registered" } else { "not registered" };
    say(&format!("{} connector {}, {standing}", connector.kind.name(), connector.name));
    say(&format!("    {}", connector.about));
    if !connector.link_types.is_empty() {
        say(&format!("    link types: {}", connector.link_types.join(", ")));
    }
    let of_job = match connector.kind {
        ConnectionKind::Repository => "settings of a job for its documents:",
        _ => "settings of a job:",
    };
    for (heading, settings) in
        [("settings of a connection:", connector.settings), (of_job, connector.spec)]
    {
        say("");
        match settings.is_empty() {
            true => say(&format!("{heading} none")),
            false => say(heading),
        }
        settings.iter().flat_map(lines).for_each(|line| say(&line));
    }
    Ok(ExitCode::SUCCESS)
}

/// A setting, as people read it.
fn lines(setting: &ConfigField) -> [String; 2] {
    let default = match setting.default {
        Some("") | None => String::new(),
        Some(default) => format!(" [{}]", shown(default)),
    };
    let example = quoted(&format!("{}={}", setting.name, setting.example));
    [
        format!("    {}: {}{default}", setting.name, setting.about),
        format!("        {}, such as {example}", takes(setting.kind)),
    ]
}

/// What a setting takes, in words.
fn takes(kind: SettingKind) -> String {
    match kind {
        SettingKind::Text => "a text".to_owned(),
        SettingKind::Number { least, most: i64::MAX } => {
            format!("a whole number of at least {least}")
        }
        SettingKind::Number { least, most } => format!("a whole number from {least} to {most}"),
        SettingKind::Flag => "yes or no".to_owned(),
        SettingKind::Seconds => "a duration".to_owned(),
        SettingKind::Choice(choices) => format!("one of {}", choices.join(", ")),
        SettingKind::List => "a list of texts; repeat the setting for each".to_owned(),
        SettingKind::Secret => "a secret text".to_owned(),
    }
}

fn described(connector: &Connector, registered: bool) -> Json {
    let settings = |list: &[ConfigField]| -> Vec<Json> {
        let one = |it: &ConfigField| {
            let (name, about, example) = (it.name, it.about, it.example);
            serde_json::json!({"name": name, "about": about, "example": example,
                               "default": it.default, "takes": takes(it.kind)})
        };
        list.iter().map(one).collect()
    };
    serde_json::json!({
        "kind": connector.kind.name(), "name": connector.name, "about": connector.about,
        "registered": registered, "link_types": connector.link_types,
        "settings": settings(connector.settings), "spec": settings(connector.spec),
    })
}
