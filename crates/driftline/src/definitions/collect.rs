//! Reads all definitions into one document.
//!
//! Secrets are in it as they are; whoever shows it hides them first.

use super::{
    CONTINUOUS, ConnectionForm, Definitions, DescribedOnly, JobForm, NotificationForm, SCAN_ONCE,
    StageForm, ThrottleForm, without_null,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use store::ids::ConnectionId;
use store::tables::authorities::{self, Realm};
use store::tables::connections::{self, Connection, ConnectionKind, HISTORY_MS};
use store::tables::jobs::{self, Job};
use store::tables::pipelines::{self, StageKind};
use store::tables::{hopfilters, notifications, schedules, throttles};
use store::{Error, Result, Tx};

/// Rows read at a time.
const PAGE: u32 = 500;
/// Milliseconds of a minute.
const MINUTE_MS: f64 = 60_000.0;
/// A rate is shown to a millionth of a document a minute.
const RATE_STEPS: f64 = 1e6;

/// Everything that is defined.
pub fn collect(tx: &mut Tx<'_>) -> Result<Definitions> {
    let mut found = Definitions::default();
    for (realm, into) in
        [(Realm::Groups, &mut found.authgroups), (Realm::Domains, &mut found.authdomains)]
    {
        let rows = paged(tx, |tx, after| authorities::list(tx, realm, after, PAGE), |it| &it.name)?;
        into.extend(
            rows.into_iter().map(|it| (it.name, DescribedOnly { description: it.description })),
        );
    }
    for kind in ConnectionKind::ALL {
        let rows = paged(tx, |tx, after| connections::list(tx, kind, after, PAGE), |it| &it.name)?;
        for it in rows {
            let form = connection_form(tx, &it)?;
            found.connections.of_mut(kind).insert(it.name, form);
        }
    }
    for job in paged(tx, |tx, after| jobs::list(tx, after, PAGE), |it| &it.name)? {
        let form = job_form(tx, &job)?;
        found.jobs.insert(job.name, form);
    }
    Ok(found)
}

/// All rows of a list that is read by name.
fn paged<T>(
    tx: &mut Tx<'_>,
    mut read: impl FnMut(&mut Tx<'_>, &str) -> Result<Vec<T>>,
    name: impl Fn(&T) -> &String,
) -> Result<Vec<T>> {
    let mut all: Vec<T> = Vec::new();
    loop {
        let after = all.last().map_or(String::new(), |it| name(it).clone());
        let page = read(tx, &after)?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// A connection as a document says it.
pub fn connection_form(tx: &mut Tx<'_>, it: &Connection) -> Result<ConnectionForm> {
    let throttles = throttles::load(tx, it.id)?
        .into_iter()
        .map(|throttle| {
            let rate = |per_ms: f64| (per_ms * MINUTE_MS * RATE_STEPS).round() / RATE_STEPS;
            let form = ThrottleForm {
                description: throttle.description,
                per_minute: throttle.per_ms.map(rate),
                connections: throttle.connections_max,
                bytes_per_s: throttle.bytes_per_s_max,
            };
            (throttle.matches, form)
        })
        .collect::<BTreeMap<_, _>>();
    Ok(ConnectionForm {
        connector: it.classname.clone(),
        description: it.description.clone(),
        max_connections: Some(it.maxcount),
        group: it.groupname.clone(),
        domain: it.authdomainname.clone(),
        prerequisite: it.prerequisite.clone(),
        // The usual is not said; what is kept for ever has no time.
        history_ms: Some(it.history_ms.unwrap_or(0)).filter(|kept_ms| *kept_ms != HISTORY_MS),
        settings: json(&it.config, &it.name)?,
        throttles,
    })
}

/// A job as a document says it.
fn job_form(tx: &mut Tx<'_>, it: &Job) -> Result<JobForm> {
    let mut pipeline = Vec::new();
    for stage in pipelines::load(tx, it.id)? {
        let name = Some(name_of(tx, stage.connection)?);
        let (transformation, output) = match stage.kind {
            StageKind::Transformation => (name, None),
            StageKind::Output => (None, name),
        };
        let (after, description) = (stage.prerequisite, stage.description);
        let spec = json(&stage.spec, &it.name)?;
        pipeline.push(StageForm { transformation, output, after, description, spec });
    }
    let mut told = Vec::new();
    for note in notifications::load(tx, it.id)? {
        let (connection, spec) = (name_of(tx, note.connection)?, json(&note.spec, &it.name)?);
        told.push(NotificationForm { connection, description: note.description, spec });
    }
    Ok(JobForm {
        connection: name_of(tx, it.connection)?,
        description: it.description.clone(),
        priority: it.priority,
        kind: (if it.continuous { CONTINUOUS } else { SCAN_ONCE }).to_owned(),
        recrawl_ms: it.interval_ms,
        recrawl_max_ms: it.interval_max_ms,
        reseed_ms: it.reseed_ms,
        expiration_ms: it.expiration_ms,
        start: it.start.name().to_owned(),
        hopcount: it.hopcount.name().to_owned(),
        refetch: it.refetch.name().to_owned(),
        fetches_per_day: it.fetches_per_day,
        on_failure: it.on_failure.name().to_owned(),
        removal_limit: it.removal_limit.clone(),
        proven_removal_limit: it.proven_removal_limit.clone(),
        hops: hopfilters::load(tx, it.id)?,
        spec: json(&it.docspec, &it.name)?,
        pipeline,
        notifications: told,
        schedules: schedules::load(tx, it.id)?.iter().map(crawl::schedule::print).collect(),
    })
}

fn name_of(tx: &mut Tx<'_>, id: ConnectionId) -> Result<String> {
    let found = connections::load(tx, id)?;
    found.map(|(_, it)| it.name).ok_or_else(|| {
        Error::corrupt("the definitions", format!("connection {id} is used and is not there"))
    })
}

fn json(text: &str, of: &str) -> Result<Json> {
    let mut json: Json = serde_json::from_str(text)
        .map_err(|error| Error::corrupt(format!("the definition of {of}"), error.to_string()))?;
    without_null(&mut json);
    Ok(json)
}
