//! `driftline connection`: named uses of connectors, with their settings.
//!
//! A connection is shown and edited as it stands in the document of all definitions, so
//! it is checked in the same way. Invariant: an edit loads, changes and saves in one
//! transaction.

mod flags;
mod history;
pub mod showing;

use super::answers::Answers;
use super::changes::{Changed, Changes, define};
use super::place::Place;
use super::{kind_of, shown, told, words};
use crate::catalog;
use crate::definitions::{ConnectionForm, Definitions, hidden_connection};
use crate::refusal::require;
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use flags::Flags;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::ids::{ConnectionId, Part};
use store::tables::connections::{self, Connection, Kind};
use store::tables::{claims, ingests, outlets, settings};
use store::{Tx, clock};

/// Rows that are forgotten in one transaction.
const FORGET_ROWS: u32 = 1_000;

/// Define where documents come from and where they go: named uses of connectors
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline connection create copy --connector files --kind output directory=/srv/out
Example: driftline connection edit web --throttle '^www\\.example\\.com$=12/min,conns=2'")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List all connections
    #[command(after_help = "Example: driftline connection list --kind output")]
    List(ListArgs),
    /// Show a connection with its settings
    #[command(after_help = "Example: driftline connection show web")]
    Show(OneArgs),
    /// Make a connection
    #[command(after_help = "\
Example: driftline connection create copy --connector files --kind output directory=/srv/out")]
    Create(CreateArgs),
    /// Change a connection; what is not given stays
    #[command(after_help = "\
Example: driftline connection edit web --throttle '^www\\.example\\.com$=12/min,conns=2,kb=100'")]
    Edit(EditArgs),
    /// Delete a connection that no job and no other connection uses
    #[command(after_help = "Example: driftline connection delete copy")]
    Delete(OneArgs),
    /// Say whether a connection can be used, and if not, why
    #[command(after_help = "Example: driftline connection check copy")]
    Check(OneArgs),
    /// Send every document to an output again, as the next runs look at it
    ///
    /// For an output that has lost what it had. Nothing is fetched again for it.
    #[command(after_help = "Example: driftline connection reindex copy")]
    Reindex(OneArgs),
    /// Forget what an output has; it is told nothing
    ///
    /// For an output that was emptied, or is not to be cleaned up: documents that leave are
    /// not removed from it any more, and what the next runs look at is added anew.
    #[command(after_help = "Example: driftline connection forget copy")]
    Forget(OneArgs),
    /// Clear the history of a repository connection, all of it
    ///
    /// Documents, queue and outputs stay as they are. What is older than the connection keeps
    /// its history is forgotten without this.
    #[command(after_help = "Example: driftline connection clear-history web")]
    ClearHistory(OneArgs),
    /// Take the settings away from connections whose key is lost
    ///
    /// Settings are sealed where they are stored. If the key is lost, nobody can read them any
    /// more; after this the connections can be given settings again.
    #[command(after_help = "Example: driftline connection forget-sealed")]
    ForgetSealed(AllArgs),
}

#[derive(ClapArgs)]
struct AllArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    place: Place,
    /// Only connections of this kind
    #[arg(long, value_name = "KIND", value_parser = kind_of)]
    kind: Option<Kind>,
}

#[derive(ClapArgs)]
struct OneArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: One,
}

/// Which connection.
#[derive(ClapArgs, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct One {
    /// The connection
    #[arg(value_name = "NAME")]
    name: String,
    /// Its kind, where two connections share the name: repository, output, transformation,
    /// authority, mapping or notification
    #[arg(long, value_name = "KIND", value_parser = kind_name)]
    kind: Option<String>,
}

#[derive(ClapArgs)]
struct CreateArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: One,
    /// The connector that it uses; `driftline connector list` lists them
    #[arg(long, value_name = "NAME")]
    connector: String,
    #[command(flatten)]
    flags: Flags,
}

#[derive(ClapArgs)]
struct EditArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: One,
    /// Give it another name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

/// A change, as it goes through a socket.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Change {
    /// Makes it.
    Create {
        /// Which.
        one: One,
        /// Its connector.
        connector: String,
        /// What else was said.
        flags: Flags,
    },
    /// Changes it.
    Edit {
        /// Which.
        one: One,
        /// Its new name.
        rename: Option<String>,
        /// What else was said.
        flags: Flags,
    },
    /// Deletes it.
    Delete {
        /// Which.
        one: One,
    },
    /// Sends everything to it again.
    Reindex {
        /// Which.
        one: One,
    },
    /// Forgets what it has.
    Forget {
        /// Which.
        one: One,
    },
    /// Takes away what is sealed with a key that is lost.
    ForgetSealed {},
    /// Clears its history, a piece of it at a time.
    ClearHistory {
        /// Which.
        one: One,
        /// What began before.
        before_ms: i64,
    },
}

/// A question, as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    kind: Option<String>,
    name: Option<String>,
    /// Whether it is tried, too.
    #[serde(default)]
    opens: bool,
}

fn kind_name(text: &str) -> Result<String, String> {
    kind_of(text).map(|kind| kind.name().to_owned())
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (place, change) = match args.action {
        Action::List(args) => {
            let kind = args.kind.map(|kind| kind.name().to_owned());
            let ask = Ask { kind, name: None, opens: false };
            return showing::list(&args.place, &ask);
        }
        Action::Show(args) => return showing::show(&args.place, &ask_for(args.one)),
        Action::Check(args) => {
            let ask = Ask { opens: true, ..ask_for(args.one) };
            return showing::check(&args.place, &ask);
        }
        Action::Create(CreateArgs { place, one, connector, flags }) => {
            (place, Change::Create { one, connector, flags })
        }
        Action::Edit(EditArgs { place, one, rename, flags }) => {
            (place, Change::Edit { one, rename, flags })
        }
        Action::Delete(OneArgs { place, one }) => (place, Change::Delete { one }),
        Action::Reindex(OneArgs { place, one }) => (place, Change::Reindex { one }),
        Action::Forget(OneArgs { place, one }) => (place, Change::Forget { one }),
        Action::ForgetSealed(AllArgs { place }) => (place, Change::ForgetSealed {}),
        Action::ClearHistory(OneArgs { place, one }) => return history::clear(&place, one),
    };
    let answer = place.change("connection", &change)?;
    told(&place, answer, "nothing has changed: it was so already")
}

fn ask_for(one: One) -> Ask {
    Ask { kind: one.kind, name: Some(one.name), opens: false }
}

/// Connections with their settings, by the process that has the rows.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    showing::answer(answers, ask)
}

/// Makes, changes or deletes one.
pub fn change(changes: &Changes, change: Change) -> anyhow::Result<Changed> {
    match change {
        Change::Create { one, connector, flags } => create(changes, one, connector, flags),
        Change::Edit { one, rename, flags } => edit(changes, one, rename, flags),
        Change::Delete { one } => {
            let (id, line) = changes.db.write(move |tx| {
                let (kind, it) = find(tx, &one)?;
                connections::delete(tx, kind, &it.name)?;
                Ok((it.id, format!("{} connection {}: deleted", kind.name(), it.name)))
            })?;
            forget(&changes.db, id)?;
            Ok(Changed::done(vec![line]))
        }
        Change::Reindex { one } => {
            let now_ms = clock::now_ms();
            let name = changes.db.write(move |tx| {
                let it = output(tx, &one)?;
                outlets::reindex(tx, it.id, now_ms)?;
                Ok(it.name)
            })?;
            let line = format!("output connection {name}: the next runs send it everything again");
            Ok(Changed::done(vec![line]))
        }
        Change::Forget { one } => {
            let it = changes.db.read(move |tx| output(tx, &one))?;
            let count = forget(&changes.db, it.id)?;
            let many = words::count(i64::try_from(count).unwrap_or(i64::MAX), "document");
            let line = format!("output connection {}: {many} forgotten", it.name);
            Ok(Changed::done(vec![line]))
        }
        Change::ForgetSealed {} => {
            let now_ms = clock::now_ms();
            let forgotten = changes.db.write(move |tx| connections::forget_locked(tx, now_ms))?;
            let line = |(kind, name): &(Kind, String)| {
                format!("{} connection {name}: its settings are gone", kind.name())
            };
            Ok(Changed::done(forgotten.iter().map(line).collect()))
        }
        Change::ClearHistory { one, before_ms } => history::piece(changes, one, before_ms),
    }
}

/// The output connection of a name.
fn output(tx: &mut Tx<'_>, one: &One) -> store::Result<Connection> {
    let kind = one.kind.clone().or_else(|| Some(Kind::Output.name().to_owned()));
    match find(tx, &One { kind, name: one.name.clone() })? {
        (Kind::Output, it) => Ok(it),
        (kind, it) => Err(store::Error::Refused(format!(
            "{} is a connection of kind {}; only outputs have documents",
            shown(&it.name),
            kind.name()
        ))),
    }
}

/// Forgets what an output has, piece by piece. Returns how many documents.
fn forget(db: &store::Db, output: ConnectionId) -> store::Result<u64> {
    let parts = db.read(settings::parts)?;
    // First the claims on its URIs, so that none outlives its document.
    for part in (0..i64::from(parts)).map(Part) {
        while db.write(move |tx| claims::forget(tx, part, output, FORGET_ROWS))? > 0 {}
    }
    let mut forgotten = 0;
    for part in (0..i64::from(parts)).map(Part) {
        loop {
            let count = db.write(move |tx| ingests::forget(tx, part, output, FORGET_ROWS))?;
            forgotten += count;
            if count < u64::from(FORGET_ROWS) {
                break;
            }
        }
    }
    Ok(forgotten)
}

fn create(changes: &Changes, one: One, connector: String, flags: Flags) -> anyhow::Result<Changed> {
    let kind = one.kind.as_deref().and_then(Kind::parse);
    let connector = catalog::named(kind, &connector)?;
    let mut form = ConnectionForm::new(connector.name);
    flags.apply(connector, &mut form)?;
    let kind = connector.kind;
    changes.define(false, move |stored| {
        require!(
            !stored.connections.of(kind).contains_key(&one.name),
            "there is a {} connection named {} already; change it with: driftline connection edit",
            kind.name(),
            shown(&one.name)
        );
        Ok(holding(kind, &one.name, form.clone()))
    })
}

fn edit(
    changes: &Changes,
    one: One,
    rename: Option<String>,
    flags: Flags,
) -> anyhow::Result<Changed> {
    let now_ms = clock::now_ms();
    let lines = changes.db.write(move |tx| {
        let (kind, mut it) = find(tx, &one)?;
        let mut lines = Vec::new();
        if let Some(name) = rename.as_ref().filter(|name| **name != it.name) {
            lines.push(format!("{} connection {}: name -> {name}", kind.name(), it.name));
            it = renamed(tx, (kind, it), name, now_ms)?;
        }
        lines.extend(define(tx, now_ms, &mut |stored| {
            let connector = catalog::named(Some(kind), &it.classname)?;
            let form = stored.connections.of(kind).get(&it.name);
            let form = form.context("it was there a moment ago")?;
            // What is not given stays, if it goes where it went before.
            let mut form = hidden_connection(kind, form)?;
            flags.apply(connector, &mut form)?;
            Ok(holding(kind, &it.name, form))
        })?);
        Ok(lines)
    })?;
    Ok(Changed::done(lines))
}

fn renamed(
    tx: &mut Tx<'_>,
    (kind, it): (Kind, Connection),
    name: &str,
    now_ms: i64,
) -> store::Result<Connection> {
    if connections::find(tx, kind, name)?.is_some() {
        let kind = kind.name();
        let reason = format!("there is a {kind} connection named {} already", shown(name));
        return Err(store::Error::Refused(reason));
    }
    let it = Connection { name: name.to_owned(), ..it };
    connections::save(tx, kind, &it, now_ms)?;
    Ok(it)
}

/// A document with one connection.
fn holding(kind: Kind, name: &str, form: ConnectionForm) -> Definitions {
    let mut definitions = Definitions::default();
    definitions.connections.of_mut(kind).insert(name.to_owned(), form);
    definitions
}

/// The connection of a name; its kind must be given only where two share the name.
fn find(tx: &mut Tx<'_>, one: &One) -> store::Result<(Kind, Connection)> {
    let wanted = one.kind.as_deref().and_then(Kind::parse);
    let mut found = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| wanted.is_none_or(|wanted| *kind == wanted)) {
        found.extend(connections::find(tx, kind, &one.name)?.map(|it| (kind, it)));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(store::Error::Refused(format!(
            "there is no {}connection named {}; `driftline connection list` lists them",
            wanted.map_or(String::new(), |kind| format!("{} ", kind.name())),
            shown(&one.name)
        ))),
        _ => {
            let kinds: Vec<String> =
                found.iter().map(|(kind, _)| format!("--kind {}", kind.name())).collect();
            Err(store::Error::Refused(format!(
                "there are {} connections named {}; say which with {}",
                found.len(),
                shown(&one.name),
                kinds.join(" or ")
            )))
        }
    }
}
