//! Authority groups and authorization domains: names with descriptions that connections refer to.

use super::ADMIN;
use crate::definitions::{Definitions, DescribedOnly};
use crate::refusal::require;
use crate::text::shown;
use crate::verbs::access::Needs;
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::{ChangeContext, ChangeResult};
use crate::verbs::context::VerbContext;
use crate::verbs::{Change, Verb};
use serde::{Deserialize, Serialize};
use store::tables::authorities::{self, Realm};

/// Names listed at most.
const LISTED_MAX: u32 = 10_000;

/// The authority groups, or the authorization domains.
pub struct Authorities;

/// Makes or deletes one.
pub struct ChangeAuthority;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorityKind {
    AuthGroup,
    AuthDomain,
}

impl AuthorityKind {
    /// The command that is about it.
    pub fn command(self) -> &'static str {
        match self {
            AuthorityKind::AuthGroup => "authgroup",
            AuthorityKind::AuthDomain => "authdomain",
        }
    }

    fn realm(self) -> Realm {
        match self {
            AuthorityKind::AuthGroup => Realm::Groups,
            AuthorityKind::AuthDomain => Realm::Domains,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityRequest {
    pub kind: AuthorityKind,
    pub name: String,
    /// The new description; nothing deletes the group.
    pub description: Option<String>,
}

/// An authority group or an authorization domain, as it is listed.
#[derive(Serialize, Deserialize)]
pub struct AuthorityLine {
    pub name: String,
    pub description: String,
}

impl Verb for Authorities {
    const NAME: &'static str = "authorities";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = AuthorityKind;
    type Response = Vec<AuthorityLine>;

    fn answer(context: &VerbContext, kind: AuthorityKind) -> anyhow::Result<Vec<AuthorityLine>> {
        let realm = kind.realm();
        let found = context.db.read(move |tx| authorities::list(tx, realm, "", LISTED_MAX))?;
        let lines = found.into_iter();
        let lines = lines.map(|it| AuthorityLine { name: it.name, description: it.description });
        Ok(lines.collect())
    }
}

impl Change for ChangeAuthority {
    const NAME: &'static str = "authority-change";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = AuthorityRequest;
    type Response = ChangeResult;

    fn carry_out(
        context: &ChangeContext,
        request: AuthorityRequest,
    ) -> anyhow::Result<ChangeResult> {
        let AuthorityRequest { kind, name, description } = request;
        match description {
            Some(description) => create(context, kind, name, description),
            None => delete(context, kind, name),
        }
    }

    fn subject(request: &AuthorityRequest) -> AuditSubject {
        let action = if request.description.is_some() { "create" } else { "delete" };
        AuditSubject::of(request.kind.command(), action, &request.name)
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }
}

fn create(
    context: &ChangeContext,
    kind: AuthorityKind,
    name: String,
    description: String,
) -> anyhow::Result<ChangeResult> {
    let realm = kind.realm();
    context.define(false, move |stored| {
        let mut new = Definitions::default();
        let (known, into) = match realm {
            Realm::Groups => (&stored.authgroups, &mut new.authgroups),
            Realm::Domains => (&stored.authdomains, &mut new.authdomains),
        };
        require!(
            !known.contains_key(&name),
            "there is already an {} named {}; choose another name",
            realm.word(),
            shown(&name)
        );
        into.insert(name.clone(), DescribedOnly { description: description.clone() });
        Ok(new)
    })
}

fn delete(
    context: &ChangeContext,
    kind: AuthorityKind,
    name: String,
) -> anyhow::Result<ChangeResult> {
    let (realm, gone) = (kind.realm(), name.clone());
    let word = realm.word();
    let was_there = context.db.write(move |tx| authorities::delete(tx, realm, &gone))?;
    require!(
        was_there,
        "there is no {word} named {}; `driftline {} list` lists them",
        shown(&name),
        kind.command()
    );
    Ok(ChangeResult::done(vec![format!("{word} {name}: deleted")]))
}
