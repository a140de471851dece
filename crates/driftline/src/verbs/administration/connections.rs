//! Connections: named uses of connectors, with their settings.
//!
//! A connection is shown and edited as it stands in the document of all definitions, so
//! it is checked in the same way. Invariants: an edit loads, changes and saves in one
//! transaction; no secret is shown.

pub mod flags;
mod history;
mod look;

use super::ADMIN;
use crate::catalog::{self, kind_of};
use crate::definitions::{ConnectionForm, Definitions, hidden_connection};
use crate::refusal::require;
use crate::text::{self, shown};
use crate::verbs::access::Needs;
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::{ChangeContext, ChangeResult, define};
use crate::verbs::context::VerbContext;
use crate::verbs::{Change, Verb};
use anyhow::Context;
use clap::Args as ClapArgs;
use flags::ConnectionFlags;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::ids::{ConnectionId, Part};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::{claims, ingests, outlets, settings};
use store::{Tx, clock};

/// Rows that are forgotten in one transaction.
const FORGET_ROWS: u32 = 1_000;

/// Connections of every kind, without their secrets.
pub struct Connections;

/// Makes, edits or deletes a connection, or forgets what is kept of one.
pub struct ChangeConnection;

/// Which connection.
#[derive(ClapArgs, Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionName {
    /// The connection
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Its kind, where two connections share the name: repository, output, transformation,
    /// authority, mapping or notification
    #[arg(long, value_name = "KIND", value_parser = kind_name)]
    pub kind: Option<String>,
}

/// Which connections are shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionsRequest {
    pub kind: Option<String>,
    pub name: Option<String>,
    /// Whether they are opened, too, to see whether they can be used.
    pub opens: bool,
}

/// A connection, as it is shown.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ShownConnection {
    pub kind: String,
    pub name: String,
    /// How often it has been changed, its making counted.
    pub version: i64,
    /// Why it cannot be used; empty when it can.
    pub findings: Vec<String>,
    pub definition: ConnectionForm,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ConnectionRequest {
    Create {
        one: ConnectionName,
        connector: String,
        flags: ConnectionFlags,
    },
    Edit {
        one: ConnectionName,
        rename: Option<String>,
        flags: ConnectionFlags,
    },
    Delete {
        one: ConnectionName,
    },
    /// Sends everything to it again.
    Reindex {
        one: ConnectionName,
    },
    /// Forgets what it has.
    Forget {
        one: ConnectionName,
    },
    /// Takes away what is sealed with a key that is lost.
    ForgetSealed {},
    /// Clears its history, a piece of it at a time.
    ClearHistory {
        one: ConnectionName,
        before_ms: i64,
    },
}

impl Verb for Connections {
    const NAME: &'static str = "connections";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ConnectionsRequest;
    type Response = Vec<ShownConnection>;

    fn answer(
        context: &VerbContext,
        request: ConnectionsRequest,
    ) -> anyhow::Result<Vec<ShownConnection>> {
        look::answer(context, request)
    }
}

impl Change for ChangeConnection {
    const NAME: &'static str = "connection-change";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ConnectionRequest;
    type Response = ChangeResult;

    fn carry_out(
        context: &ChangeContext,
        request: ConnectionRequest,
    ) -> anyhow::Result<ChangeResult> {
        carry_out(context, request)
    }

    fn subject(request: &ConnectionRequest) -> AuditSubject {
        let of =
            |action: &str, one: &ConnectionName| AuditSubject::of("connection", action, &one.name);
        match request {
            ConnectionRequest::Create { one, .. } => of("create", one),
            ConnectionRequest::Edit { one, .. } => of("edit", one),
            ConnectionRequest::Delete { one } => of("delete", one),
            ConnectionRequest::Reindex { one } => of("reindex", one),
            ConnectionRequest::Forget { one } => of("forget", one),
            ConnectionRequest::ClearHistory { one, .. } => of("clear_history", one),
            ConnectionRequest::ForgetSealed {} => {
                AuditSubject::unnamed("connection", "forget_sealed")
            }
        }
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }
}

fn kind_name(text: &str) -> Result<String, String> {
    kind_of(text).map(|kind| kind.name().to_owned())
}

fn carry_out(context: &ChangeContext, request: ConnectionRequest) -> anyhow::Result<ChangeResult> {
    match request {
        ConnectionRequest::Create { one, connector, flags } => {
            create(context, one, connector, flags)
        }
        ConnectionRequest::Edit { one, rename, flags } => edit(context, one, rename, flags),
        ConnectionRequest::Delete { one } => delete(context, one),
        ConnectionRequest::Reindex { one } => {
            let now_ms = clock::now_ms();
            let name = context.db.write(move |tx| {
                let it = output(tx, &one)?;
                outlets::reindex(tx, it.id, now_ms)?;
                Ok(it.name)
            })?;
            let line = format!("output connection {name}: the next runs send everything again");
            Ok(ChangeResult::done(vec![line]))
        }
        ConnectionRequest::Forget { one } => {
            let it = context.db.read(move |tx| output(tx, &one))?;
            let count = forget(&context.db, it.id)?;
            let many = text::count(i64::try_from(count).unwrap_or(i64::MAX), "document");
            let line = format!("output connection {}: {many} forgotten", it.name);
            Ok(ChangeResult::done(vec![line]))
        }
        ConnectionRequest::ForgetSealed {} => {
            let now_ms = clock::now_ms();
            let forgotten = context.db.write(move |tx| connections::forget_locked(tx, now_ms))?;
            let line = |(kind, name): &(ConnectionKind, String)| {
                format!("{} connection {name}: its settings were deleted", kind.name())
            };
            Ok(ChangeResult::done(forgotten.iter().map(line).collect()))
        }
        ConnectionRequest::ClearHistory { one, before_ms } => {
            history::piece(context, one, before_ms)
        }
    }
}

/// The output connection of a name.
fn output(tx: &mut Tx<'_>, one: &ConnectionName) -> store::Result<Connection> {
    let kind = one.kind.clone().or_else(|| Some(ConnectionKind::Output.name().to_owned()));
    match find(tx, &ConnectionName { kind, name: one.name.clone() })? {
        (ConnectionKind::Output, it) => Ok(it),
        (kind, it) => Err(store::Error::Refused(format!(
            "{} is a connection of kind {}; only output connections have documents",
            shown(&it.name),
            kind.name()
        ))),
    }
}

fn delete(context: &ChangeContext, one: ConnectionName) -> anyhow::Result<ChangeResult> {
    let (id, line) = context.db.write(move |tx| {
        let (kind, it) = find(tx, &one)?;
        connections::delete(tx, kind, &it.name)?;
        Ok((it.id, format!("{} connection {}: deleted", kind.name(), it.name)))
    })?;
    forget(&context.db, id)?;
    Ok(ChangeResult::done(vec![line]))
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

fn create(
    context: &ChangeContext,
    one: ConnectionName,
    connector: String,
    flags: ConnectionFlags,
) -> anyhow::Result<ChangeResult> {
    let kind = one.kind.as_deref().and_then(ConnectionKind::parse);
    let connector = catalog::named(kind, &connector)?;
    let mut form = ConnectionForm::new(connector.name);
    flags.apply(connector, &mut form)?;
    let kind = connector.kind;
    context.define(false, move |stored| {
        require!(
            !stored.connections.of(kind).contains_key(&one.name),
            "there is already a {} connection named {}; change it with: driftline connection edit",
            kind.name(),
            shown(&one.name)
        );
        Ok(holding(kind, &one.name, form.clone()))
    })
}

fn edit(
    context: &ChangeContext,
    one: ConnectionName,
    rename: Option<String>,
    flags: ConnectionFlags,
) -> anyhow::Result<ChangeResult> {
    let now_ms = clock::now_ms();
    let lines = context.db.write(move |tx| {
        let (kind, mut it) = find(tx, &one)?;
        let mut lines = Vec::new();
        if let Some(name) = rename.as_ref().filter(|name| **name != it.name) {
            lines.push(format!("{} connection {}: name -> {name}", kind.name(), it.name));
            it = renamed(tx, kind, it, name, now_ms)?;
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
    Ok(ChangeResult::done(lines))
}

fn renamed(
    tx: &mut Tx<'_>,
    kind: ConnectionKind,
    it: Connection,
    name: &str,
    now_ms: i64,
) -> store::Result<Connection> {
    if connections::find(tx, kind, name)?.is_some() {
        let kind = kind.name();
        let reason = format!("there is already a {kind} connection named {}", shown(name));
        return Err(store::Error::Refused(reason));
    }
    let it = Connection { name: name.to_owned(), ..it };
    connections::save(tx, kind, &it, now_ms)?;
    Ok(it)
}

/// A document with one connection.
fn holding(kind: ConnectionKind, name: &str, form: ConnectionForm) -> Definitions {
    let mut definitions = Definitions::default();
    definitions.connections.of_mut(kind).insert(name.to_owned(), form);
    definitions
}

/// The connection of a name; its kind must be given only where two share the name.
fn find(tx: &mut Tx<'_>, one: &ConnectionName) -> store::Result<(ConnectionKind, Connection)> {
    let wanted = one.kind.as_deref().and_then(ConnectionKind::parse);
    let mut found = Vec::new();
    for kind in
        ConnectionKind::ALL.into_iter().filter(|kind| wanted.is_none_or(|wanted| *kind == wanted))
    {
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
                "there are {} connections named {}; choose one with {}",
                found.len(),
                shown(&one.name),
                kinds.join(" or ")
            )))
        }
    }
}
