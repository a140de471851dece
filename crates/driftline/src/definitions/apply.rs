//! Writes a checked document, in the caller's transaction.
//!
//! What others refer to comes first: domains and groups, mappings in the order in which
//! they are asked, connections, jobs. Invariant: a thing that is as it was is not
//! written, so its version stays.

use super::{CONTINUOUS, ConnectionForm, Definitions, JobForm, NAME_A_KEY, StageForm, has_secrets};
use crate::catalog;
use crawl::schedule;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use store::catalog::{Check, Connector};
use store::ids::{ConnectionId, IdMaker, JobId};
use store::tables::authorities::{self, NamedGroup, Realm};
use store::tables::connections::{self, Connection, ConnectionKind, HISTORY_MS};
use store::tables::jobs::{self, HopcountMode, Job, OnFailure, Refetch, StartMethod};
use store::tables::nodes::{self, NewNode};
use store::tables::notifications::{self, Notification};
use store::tables::pipelines::{self, PipelineStage, StageKind};
use store::tables::throttles::{self, Throttle};
use store::tables::{hopfilters, registrations, schedules};
use store::{Error, Result, Tx};

/// Milliseconds of a minute.
const MINUTE_MS: f64 = 60_000.0;

/// Writes what is different from what is stored. `new` has been checked.
pub fn apply(tx: &mut Tx<'_>, stored: &Definitions, new: &Definitions, now_ms: i64) -> Result<()> {
    for (realm, before, after) in [
        (Realm::Domains, &stored.authdomains, &new.authdomains),
        (Realm::Groups, &stored.authgroups, &new.authgroups),
    ] {
        for (name, form) in after.iter().filter(|(name, form)| before.get(*name) != Some(form)) {
            let it = NamedGroup { name: name.clone(), description: form.description.clone() };
            authorities::save(tx, realm, &it)?;
        }
    }
    let mut writing = DefinitionWriter { now_ms, ids: None };
    writing.mappings(tx, &new.connections.mapping)?;
    for kind in ConnectionKind::ALL {
        let before = stored.connections.of(kind);
        for (name, form) in new.connections.of(kind) {
            if kind != ConnectionKind::Mapping && before.get(name) != Some(form) {
                writing.connection(tx, kind, name, form)?;
            }
        }
    }
    for (name, form) in new.jobs.iter().filter(|(name, form)| stored.jobs.get(*name) != Some(form))
    {
        writing.job(tx, name, form)?;
    }
    Ok(())
}

struct DefinitionWriter {
    now_ms: i64,
    /// Made when the first new thing needs an id.
    ids: Option<IdMaker>,
}

impl DefinitionWriter {
    fn next_id(&mut self, tx: &mut Tx<'_>) -> Result<i64> {
        if self.ids.is_none() {
            // Ids are made from a node's number; this one begins and ends here.
            let node = NewNode {
                name: "definitions".to_owned(),
                roles: "define".to_owned(),
                address: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let node = nodes::register(tx, &node, self.now_ms)?;
            nodes::stop(tx, node, self.now_ms)?;
            self.ids = Some(IdMaker::new(node)?);
        }
        Ok(self.ids.as_ref().expect("it was made above").next())
    }

    /// Saves mappings, each after the one that is asked before it.
    fn mappings(&mut self, tx: &mut Tx<'_>, all: &BTreeMap<String, ConnectionForm>) -> Result<()> {
        let mut pending: Vec<(&String, &ConnectionForm)> = all.iter().collect();
        while !pending.is_empty() {
            let waits = |form: &ConnectionForm| {
                form.prerequisite
                    .as_ref()
                    .is_some_and(|it| pending.iter().any(|(name, _)| *name == it))
            };
            // Where all wait for each other the table refuses the first.
            let next = pending.iter().position(|(_, form)| !waits(form)).unwrap_or(0);
            let (name, form) = pending.remove(next);
            self.connection(tx, ConnectionKind::Mapping, name, form)?;
        }
        Ok(())
    }

    fn connection(
        &mut self,
        tx: &mut Tx<'_>,
        kind: ConnectionKind,
        name: &str,
        form: &ConnectionForm,
    ) -> Result<()> {
        let known = connections::find(tx, kind, name)?;
        let is_kept = known.as_ref().is_some_and(|known| known.classname == form.connector);
        if !is_kept && !registrations::is_registered(tx, kind, &form.connector)? {
            return Err(Error::Refused(format!(
                "{} connection {name}: its connector is not registered; register it first: \
                 driftline connector register {} --kind {0}",
                kind.name(),
                form.connector
            )));
        }
        if !tx.keys().can_seal() && has_secrets(kind, form) {
            let kind = kind.name();
            return Err(Error::Refused(format!(
                "{kind} connection {name}: its secrets would be stored unencrypted; {NAME_A_KEY}"
            )));
        }
        let id = match known {
            Some(known) => known.id,
            None => ConnectionId(self.next_id(tx)?),
        };
        let it = Connection {
            id,
            name: name.to_owned(),
            description: form.description.clone(),
            classname: form.connector.clone(),
            config: written(kind, &form.connector, &form.settings, |it| it.check_config),
            maxcount: form
                .max_connections
                .unwrap_or_else(|| super::usual_connections(kind, &form.connector)),
            groupname: form.group.clone(),
            authdomainname: form.domain.clone(),
            prerequisite: form.prerequisite.clone(),
            history_ms: Some(form.history_ms.unwrap_or(HISTORY_MS)).filter(|kept_ms| *kept_ms > 0),
        };
        connections::save(tx, kind, &it, self.now_ms)?;
        if kind == ConnectionKind::Repository {
            throttles::replace(tx, id, &throttles_of(form))?;
        }
        Ok(())
    }

    fn job(&mut self, tx: &mut Tx<'_>, name: &str, form: &JobForm) -> Result<()> {
        let id = match jobs::find(tx, name)? {
            Some(known) => known.id,
            None => JobId(self.next_id(tx)?),
        };
        let (connection, connector) = found(tx, ConnectionKind::Repository, &form.connection)?;
        let it = Job {
            description: form.description.clone(),
            docspec: written(ConnectionKind::Repository, &connector, &form.spec, |it| {
                it.check_spec
            }),
            priority: form.priority,
            continuous: form.kind == CONTINUOUS,
            interval_ms: form.recrawl_ms,
            interval_max_ms: form.recrawl_max_ms,
            reseed_ms: form.reseed_ms,
            expiration_ms: form.expiration_ms,
            start: word(&form.start, StartMethod::parse)?,
            hopcount: word(&form.hopcount, HopcountMode::parse)?,
            refetch: word(&form.refetch, Refetch::parse)?,
            fetches_per_day: form.fetches_per_day,
            on_failure: word(&form.on_failure, OnFailure::parse)?,
            removal_limit: form.removal_limit.clone(),
            proven_removal_limit: form.proven_removal_limit.clone(),
            ..Job::new(id, name, connection)
        };
        jobs::save(tx, &it, self.now_ms)?;
        let mut stages = Vec::new();
        for stage in &form.pipeline {
            stages.push(stage_of(tx, stage)?);
        }
        pipelines::replace(tx, id, &stages, self.now_ms)?;
        let mut told = Vec::new();
        for note in &form.notifications {
            let (connection, connector) =
                found(tx, ConnectionKind::Notification, &note.connection)?;
            let spec =
                written(ConnectionKind::Notification, &connector, &note.spec, |it| it.check_spec);
            let description = note.description.clone();
            told.push(Notification { connection, description, spec });
        }
        notifications::replace(tx, id, &told, self.now_ms)?;
        let mut records = Vec::new();
        for text in &form.schedules {
            records.push(schedule::parse(text).map_err(|bad| Error::Refused(bad.to_string()))?);
        }
        schedules::replace(tx, id, &records, self.now_ms)?;
        hopfilters::replace(tx, id, &form.hops, self.now_ms)
    }
}

fn throttles_of(form: &ConnectionForm) -> Vec<Throttle> {
    let throttle = |(matches, it): (&String, &super::ThrottleForm)| Throttle {
        matches: matches.clone(),
        description: it.description.clone(),
        per_ms: it.per_minute.map(|rate| rate / MINUTE_MS),
        connections_max: it.connections,
        bytes_per_s_max: it.bytes_per_s,
    };
    form.throttles.iter().map(throttle).collect()
}

fn stage_of(tx: &mut Tx<'_>, form: &StageForm) -> Result<PipelineStage> {
    let (kind, name) = match (&form.transformation, &form.output) {
        (Some(name), _) => (StageKind::Transformation, name),
        (None, Some(name)) => (StageKind::Output, name),
        (None, None) => return Err(Error::Refused("a stage names no connection".into())),
    };
    let (connection, connector) = found(tx, kind.kind(), name)?;
    let (prerequisite, description) = (form.after, form.description.clone());
    let spec = written(kind.kind(), &connector, &form.spec, |it| it.check_spec);
    Ok(PipelineStage { prerequisite, kind, connection, description, spec })
}

/// Settings as their connector writes them, so that equal settings are equal texts.
fn written(
    kind: ConnectionKind,
    connector: &str,
    settings: &Json,
    check: impl Fn(&Connector) -> Check,
) -> String {
    let text = settings.to_string();
    let connector = catalog::find(kind, connector);
    connector.and_then(|it| check(it)(&text).ok()).unwrap_or(text)
}

/// A connection's id and its connector.
fn found(tx: &mut Tx<'_>, kind: ConnectionKind, name: &str) -> Result<(ConnectionId, String)> {
    let found = connections::find(tx, kind, name)?;
    found.map(|it| (it.id, it.classname)).ok_or_else(|| {
        Error::Refused(format!("there is no {} connection named {name:?}", kind.name()))
    })
}

fn word<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    parse(text).ok_or_else(|| Error::Refused(format!("nobody knows the word {text:?}")))
}
