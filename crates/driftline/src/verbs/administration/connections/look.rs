//! Connections as they are shown, and whether they can be used. Nothing here writes.

use super::{ConnectionName, ConnectionsRequest, ShownConnection, find};
use crate::catalog::{self, typed};
use crate::definitions;
use crate::verbs::context::VerbContext;
use store::Tx;
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::registrations;

/// Connections of a kind listed at most.
const LISTED_MAX: u32 = 10_000;

/// The connections that are asked for.
pub fn answer(
    context: &VerbContext,
    request: ConnectionsRequest,
) -> anyhow::Result<Vec<ShownConnection>> {
    let opens = request.opens;
    let mut found = context.db.read(move |tx| {
        let mut found = Vec::new();
        if let Some(name) = &request.name {
            let (kind, it) =
                find(tx, &ConnectionName { name: name.clone(), kind: request.kind.clone() })?;
            found.push(look(tx, kind, &it)?);
            return Ok(found);
        }
        let wanted = request.kind.as_deref().and_then(ConnectionKind::parse);
        for kind in
            ConnectionKind::ALL.into_iter().filter(|kind| wanted.is_none_or(|it| *kind == it))
        {
            for it in connections::list(tx, kind, "", LISTED_MAX)? {
                found.push(look(tx, kind, &it)?);
            }
        }
        Ok(found)
    })?;
    for it in found.iter_mut().filter(|it| opens && it.findings.is_empty()) {
        it.findings.extend(tried(context, it)?);
    }
    Ok(found)
}

/// Opens a connection. Why it cannot be used, if it cannot.
fn tried(context: &VerbContext, it: &ShownConnection) -> anyhow::Result<Option<String>> {
    let (kind, name) = (ConnectionKind::parse(&it.kind), it.name.clone());
    let Some(
        kind @ (ConnectionKind::Repository | ConnectionKind::Output | ConnectionKind::Notification),
    ) = kind
    else {
        // Others say what they reach in their jobs.
        return Ok(None);
    };
    let known = context.db.read(move |tx| connections::find(tx, kind, &name))?;
    let Some(known) = known else { return Ok(None) };
    let (class, config) = (&known.classname, &known.config);
    let tried = match kind {
        ConnectionKind::Repository => crawl::connectors::open(class, config),
        ConnectionKind::Notification => outputs::notifications::open(class, config)
            .and_then(|mut it| it.check().map_err(|away| away.why)),
        _ => outputs::connectors::open(class, config)
            .and_then(|mut it| it.check().map_err(|away| away.why)),
    };
    Ok(tried.err())
}

fn look(tx: &mut Tx<'_>, kind: ConnectionKind, it: &Connection) -> store::Result<ShownConnection> {
    let mut form = definitions::connection_form(tx, it)?;
    let mut findings = Vec::new();
    match catalog::find(kind, &form.connector) {
        None => findings.push(format!(
            "this program has no {} connector {}",
            kind.name(),
            form.connector
        )),
        Some(connector) => {
            if !registrations::is_registered(tx, kind, connector.name)? {
                findings.push(format!(
                    "its connector is not registered; register it: driftline connector register \
                     {} --kind {}",
                    connector.name,
                    kind.name()
                ));
            }
            if let Err(reason) = (connector.check_config)(&it.config) {
                findings.push(format!("its settings cannot be used: {reason}"));
            }
            typed::hide(&mut form.settings, &typed::secrets(connector.settings, ""));
        }
    }
    Ok(ShownConnection {
        kind: kind.name().to_owned(),
        name: it.name.clone(),
        version: connections::version(tx, it.id)?.unwrap_or(0),
        findings,
        definition: form,
    })
}
