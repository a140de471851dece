//! Connectors: which there are, and whether they are registered.

use super::ADMIN;
use crate::catalog::{self, kind_of};
use crate::refusal::OrRefused;
use crate::verbs::access::Needs;
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::{ChangeContext, ChangeResult};
use crate::verbs::context::VerbContext;
use crate::verbs::{Change, Verb};
use serde::{Deserialize, Serialize};
use store::catalog::Connector;
use store::clock;
use store::tables::registrations::{self, Registration};

/// All connectors, and which are registered.
pub struct Connectors;

/// Registers or deregisters a connector.
pub struct RegisterConnector;

/// A connector, as it is listed.
#[derive(Serialize, Deserialize)]
pub struct ConnectorLine {
    pub kind: String,
    pub name: String,
    pub about: String,
    pub registered: bool,
    pub registered_ms: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    pub kind: String,
    pub name: String,
    /// Otherwise it is deregistered.
    pub register: bool,
}

impl Verb for Connectors {
    const NAME: &'static str = "connectors";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ();
    type Response = Vec<ConnectorLine>;

    fn answer(context: &VerbContext, _: ()) -> anyhow::Result<Vec<ConnectorLine>> {
        let registered = context.db.read(registrations::list)?;
        let line = |it: &'static Connector| {
            let is_it = |row: &&Registration| row.kind == it.kind && row.classname == it.name;
            let found = registered.iter().find(is_it);
            ConnectorLine::new(it, found.is_some(), found.map(|row| row.registered_ms))
        };
        Ok(catalog::all().map(line).collect())
    }
}

impl ConnectorLine {
    pub fn new(it: &Connector, registered: bool, registered_ms: Option<i64>) -> ConnectorLine {
        ConnectorLine {
            kind: it.kind.name().to_owned(),
            name: it.name.to_owned(),
            about: it.about.to_owned(),
            registered,
            registered_ms,
        }
    }
}

impl Change for RegisterConnector {
    const NAME: &'static str = "connector-register";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = RegisterRequest;
    type Response = ChangeResult;

    fn carry_out(
        context: &ChangeContext,
        request: RegisterRequest,
    ) -> anyhow::Result<ChangeResult> {
        let kind = kind_of(&request.kind).or_refused()?;
        let connector = catalog::named(Some(kind), &request.name)?;
        let now_ms = clock::now_ms();
        let is_new = context.db.write(move |tx| match request.register {
            true => registrations::register(tx, connector, now_ms),
            false => registrations::deregister(tx, connector, now_ms),
        })?;
        let done = if request.register { "registered" } else { "deregistered" };
        let line = format!("{} connector {}: {done}", connector.kind.name(), connector.name);
        Ok(ChangeResult::done(is_new.then_some(line).into_iter().collect()))
    }

    fn subject(request: &RegisterRequest) -> AuditSubject {
        let action = if request.register { "register" } else { "deregister" };
        AuditSubject::of("connector", action, &request.name)
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }
}
