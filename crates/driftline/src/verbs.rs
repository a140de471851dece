//! Verbs: what the program can be asked ([`Verb`]) and told ([`Change`]), once for every face.
//!
//! A verb is a type with a request, a response and one function between them. The command line,
//! the socket of a data directory, `POST /api/v1/ask` and the routes of the HTTP API are faces of
//! it. Where the verb is known when the program is compiled, a face calls [`answer`] or
//! [`carry_out`]; where only its name is known, it looks it up with [`find`]. Requests and responses
//! travel as JSON, which is read and written in [`wire`] alone.
//!
//! Each room has its modules and, in the table of its file, a line for each of its verbs ([`registry`]).
//!
//! Invariants: what is in no table is not answered to another process; nothing that answers
//! writes; an answer is bounded in size and in the rows it reads, so that no request holds up a
//! crawl; a change that comes from a server is checked against its caller, and every change is in
//! the audit log.

pub mod access;
pub mod administration;
pub mod audit_trail;
pub mod changes;
pub mod context;
pub mod crawl;
pub mod doctor;
pub mod jobs;
pub mod links;
pub mod paging;
pub mod registry;
pub mod search;
pub mod status;
pub mod wire;

use access::{Asker, Caller, Needs};
use audit_trail::AuditSubject;
use changes::ChangeContext;
use context::VerbContext;
pub use registry::{RegisteredVerb, Run};
use registry::{verb, verb_at};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Something that can be asked. It writes nothing.
pub trait Verb {
    /// Its name between processes; no two verbs share one.
    const NAME: &'static str;
    /// What a caller of a server needs; `None` if it is asked only where the data is.
    const NEEDS: Option<Needs>;
    /// What must be open to answer it.
    const OPENS: Opens = Opens::Rows;
    type Request: Serialize + DeserializeOwned;
    type Response: Serialize + DeserializeOwned;

    fn answer(context: &VerbContext, request: Self::Request) -> anyhow::Result<Self::Response>;

    /// Refuses a request that is not answered through a server.
    fn check_caller(_request: &Self::Request, _caller: &Caller) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Something that can be told: it changes definitions, or where jobs stand.
pub trait Change {
    /// Its name between processes; no two verbs share one.
    const NAME: &'static str;
    /// What a caller of a server needs; `None` if it is made only where the data is.
    const NEEDS: Option<Needs>;
    type Request: Serialize + DeserializeOwned;
    type Response: Serialize + DeserializeOwned;

    fn carry_out(context: &ChangeContext, request: Self::Request)
    -> anyhow::Result<Self::Response>;

    /// What the audit log says of it before it is made.
    fn subject(request: &Self::Request) -> AuditSubject;

    /// What the audit log says of it when it is made.
    fn outcome(response: &Self::Response) -> String;

    /// Whether a request changes nothing, and so is not written down.
    fn is_dry_run(_request: &Self::Request) -> bool {
        false
    }

    /// Refuses a request that would let a caller out of the limits of its token.
    fn check_caller(_request: &Self::Request, _caller: &Caller) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What must be open to answer a verb. A data directory's indexes can be opened by one process
/// at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opens {
    Rows,
    LinkIndex,
    SearchIndex,
}

/// The verbs of this room and of all others, each with one line. What is not here is not answered
/// to another process, nor to a caller.
const ROOMS: &[&[RegisteredVerb]] = &[
    &[
        verb_at::<search::Search>("/api/v1/search", "Search the crawled documents"),
        verb::<doctor::Doctor>(),
    ],
    links::VERBS,
    status::VERBS,
    jobs::VERBS,
    crawl::VERBS,
    administration::VERBS,
];

pub fn all() -> impl Iterator<Item = &'static RegisteredVerb> {
    ROOMS.iter().copied().flatten()
}

/// The verb of a name.
pub fn find(name: &str) -> Option<&'static RegisteredVerb> {
    all().find(|verb| verb.name == name)
}

pub fn answer<V: Verb>(
    context: &VerbContext,
    asker: Asker<'_>,
    request: V::Request,
) -> anyhow::Result<V::Response> {
    if let Asker::Caller(caller) = asker {
        V::check_caller(&request, caller)?;
    }
    V::answer(context, request)
}

/// Makes a change, and writes down who did it: before it, and what came of it. What is only
/// tried is not written down.
pub fn carry_out<C: Change>(
    context: &ChangeContext,
    asker: Asker<'_>,
    request: C::Request,
) -> anyhow::Result<C::Response> {
    if let Asker::Caller(caller) = asker {
        C::check_caller(&request, caller)?;
    }
    if C::is_dry_run(&request) {
        return C::carry_out(context, request);
    }
    let subject = C::subject(&request);
    audit_trail::recorded(&context.db, asker.name(), &subject, C::outcome, || {
        C::carry_out(context, request)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use store::tables::tokens::Role;

    #[test]
    fn no_two_verbs_share_a_name() {
        let mut names: BTreeMap<&str, u32> = BTreeMap::new();
        all().for_each(|verb| *names.entry(verb.name).or_default() += 1);
        assert!(names.values().all(|count| *count == 1), "{names:?}");
    }

    /// What verbs need from outside, written down a second time: one that needs less than it did
    /// is a decision, not an accident.
    const NEEDS: &[(&str, &str, &str)] = &[
        ("search", "viewer", "search"),
        ("doctor", "-", "-"),
        ("links", "viewer", "links"),
        ("page", "viewer", "links"),
        ("top", "viewer", "links"),
        ("domains", "viewer", "links"),
        ("links-export", "-", "-"),
        ("links-retention", "admin", "administration"),
        ("status", "viewer", "jobs"),
        ("nodes", "viewer", "jobs"),
        ("jobs", "viewer", "jobs"),
        ("job-show", "viewer", "jobs"),
        ("job-state", "viewer", "jobs"),
        ("job-failed", "viewer", "jobs"),
        ("job-removals", "viewer", "jobs"),
        ("job-define", "operator", "jobs"),
        ("job-act", "operator", "jobs"),
        ("job-retry", "operator", "jobs"),
        ("job-decide", "operator", "jobs"),
        ("documents", "viewer", "jobs"),
        ("why", "viewer", "jobs"),
        ("hosts", "viewer", "jobs"),
        ("report", "viewer", "jobs"),
        ("crawl", "-", "-"),
        ("crawl-progress", "-", "-"),
        ("connectors", "admin", "administration"),
        ("connector-register", "admin", "administration"),
        ("connections", "admin", "administration"),
        ("connection-change", "admin", "administration"),
        ("authorities", "admin", "administration"),
        ("authority-change", "admin", "administration"),
        ("export", "admin", "administration"),
        ("import", "admin", "administration"),
        ("tokens", "admin", "administration"),
        ("token-create", "admin", "administration"),
        ("token-revoke", "admin", "administration"),
        ("audit", "admin", "administration"),
        ("audit-check", "admin", "administration"),
    ];

    #[test]
    fn every_verb_needs_what_was_decided() {
        let found: Vec<(&str, &str, &str)> = all()
            .map(|verb| match verb.needs {
                Some(needs) => (verb.name, needs.role.name(), needs.area.name()),
                None => (verb.name, "-", "-"),
            })
            .collect();
        assert_eq!(found, NEEDS);
    }

    #[test]
    fn who_may_only_look_changes_nothing() {
        for verb in all().filter(|verb| matches!(verb.run, Run::CarryOut(_))) {
            let is_for_viewers = verb.needs.is_some_and(|needs| needs.role < Role::Operator);
            assert!(!is_for_viewers, "{}", verb.name);
        }
    }
}
