//! Holds a document against the catalogue of connectors and against what is stored.
//!
//! What comes out names only what is there, has settings that its connectors take, in
//! full, and its secrets in the open. An error says which thing, which field and why.

use super::{CONTINUOUS, ConnectionForm, Definitions, JobForm, SCAN_ONCE, StageForm, without_null};
use crate::catalog::{self, typed};
use crate::refusal::{OrRefuse, OrRefused, refuse, require};
use anyhow::Context;
use crawl::schedule;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use store::catalog::{Check, ConfigField, Connector};
use store::tables::connections::{ConnectionKind, HISTORY_MS, NAME_BYTES_MAX};
use store::tables::jobs::{HopcountMode, OnFailure, Refetch, StartMethod};
use store::tables::removals::{RemovalLimit, RemovalLimits};
use store::tables::schedules::SCHEDULES_MAX;

/// The document as it can be applied to what is stored. `stored` has its secrets.
pub fn checked(stored: &Definitions, new: &Definitions) -> anyhow::Result<Definitions> {
    let mut out = new.clone();
    for kind in ConnectionKind::ALL {
        for (name, form) in out.connections.of_mut(kind) {
            let known = stored.connections.of(kind).get(name);
            check_connection(kind, form, known)
                .with_context(|| format!("{} connection {name}", kind.name()))?;
        }
    }
    // Jobs may use what the document defines and what is there already.
    let mut merged = stored.clone();
    for kind in ConnectionKind::ALL {
        merged.connections.of_mut(kind).extend(out.connections.of(kind).clone());
    }
    for (name, form) in &mut out.jobs {
        check_job(&merged, name, form, stored.jobs.get(name))
            .with_context(|| format!("job {name}"))?;
    }
    Ok(out)
}

fn check_connection(
    kind: ConnectionKind,
    form: &mut ConnectionForm,
    known: Option<&ConnectionForm>,
) -> anyhow::Result<()> {
    let connector = catalog::named(Some(kind), &form.connector)?;
    let secrets = secrets_of_connection(kind, form);
    let known = known.filter(|known| known.connector == form.connector);
    if let Some(known) = known {
        check_destination(connector, form, known, &secrets)?;
    }
    *form = revealed(form, &secrets, known)?;
    form.settings = by_connector(connector.check_config, &form.settings).context("settings")?;
    require!(
        form.throttles.is_empty() || kind == ConnectionKind::Repository,
        "only repository connections have throttles"
    );
    for expression in form.throttles.keys() {
        crawl::throttle::expression(expression).or_refused()?;
    }
    require!(
        form.history_ms.is_none_or(|kept_ms| kept_ms >= 0),
        "history_ms cannot be less than 0; 0 keeps history forever"
    );
    // The usual is the same whether it is said or not.
    form.max_connections.get_or_insert(super::usual_connections(kind, &form.connector));
    form.history_ms = form.history_ms.filter(|kept_ms| *kept_ms != HISTORY_MS);
    Ok(())
}

/// A stored secret goes nowhere but where it was meant for: one that is to stay as it is stored is
/// refused where the way there is another.
fn check_destination(
    connector: &Connector,
    form: &ConnectionForm,
    known: &ConnectionForm,
    secrets: &[String],
) -> anyhow::Result<()> {
    let text = |form: &ConnectionForm, place: &str| {
        let place = place.strip_prefix("/settings").unwrap_or(place);
        form.settings.pointer(place).and_then(Json::as_str).unwrap_or_default().to_owned()
    };
    let is_kept =
        |place: &&String| text(form, place) == typed::HIDDEN && !text(known, place).is_empty();
    let changed = typed::destinations_that_differ(connector, &known.settings, &form.settings);
    let Some(secret) = secrets.iter().find(is_kept).filter(|_| !changed.is_empty()) else {
        return Ok(());
    };
    let secret = secret.trim_start_matches("/settings/").replace('/', ".");
    refuse!(
        "{} changed, and so the stored secret is not sent to the new destination; give {secret} \
         again ({secret}=…), or remove it ({secret}=)",
        changed.join(", ")
    )
}

fn check_job(
    merged: &Definitions,
    name: &str,
    form: &mut JobForm,
    known: Option<&JobForm>,
) -> anyhow::Result<()> {
    check_job_name(name)?;
    check_words(form)?;
    check_schedules(form)?;
    let connector = connector_of(merged, ConnectionKind::Repository, &form.connection)?;
    let secrets = secrets_of_job(merged, form);
    *form = revealed(form, &secrets, known)?;
    form.spec = by_connector(connector.check_spec, &form.spec).context("spec")?;
    if let Some(connection) =
        merged.connections.of(ConnectionKind::Repository).get(&form.connection)
    {
        let (config, spec) = (connection.settings.to_string(), form.spec.to_string());
        let allowed = crawl::connectors::check_job(connector.name, &config, &spec);
        allowed.or_refused().context("spec")?;
    }
    for linktype in form.hops.keys() {
        let types = connector.link_types;
        require!(
            types.contains(&linktype.as_str()),
            "hops: the {} connector has no links of type {linktype:?}; it has: {}",
            connector.name,
            types.join(", ")
        );
    }
    for (number, stage) in form.pipeline.iter_mut().enumerate() {
        let connector = connector_of_stage(merged, stage);
        let checked =
            connector.and_then(|connector| by_connector(connector.check_spec, &stage.spec));
        stage.spec = checked.with_context(|| format!("stage {number} of the pipeline"))?;
    }
    for told in &mut form.notifications {
        let connector = connector_of(merged, ConnectionKind::Notification, &told.connection)?;
        told.spec = by_connector(connector.check_spec, &told.spec).context("notifications")?;
    }
    Ok(())
}

/// Refuses what cannot be a job's name.
pub fn check_job_name(name: &str) -> anyhow::Result<()> {
    require!(
        (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control),
        "a name has 1 to {NAME_BYTES_MAX} bytes and no control characters"
    );
    Ok(())
}

/// Schedules, each written in one way, so that equal ones are equal texts.
fn check_schedules(form: &mut JobForm) -> anyhow::Result<()> {
    require!(
        form.schedules.len() <= SCHEDULES_MAX,
        "a job can have {SCHEDULES_MAX} schedules, not {}",
        form.schedules.len()
    );
    for text in &mut form.schedules {
        let record =
            schedule::parse(text).or_refused().with_context(|| format!("schedule {text:?}"))?;
        require!(
            record.repeat_ms.is_none() || form.start == StartMethod::WindowInside.name(),
            "schedule {text:?} repeats runs in its window, which requires a job that starts \
             inside windows; add --start-method window-inside, or omit repeat"
        );
        *text = schedule::print(&record);
    }
    Ok(())
}

fn check_words(form: &JobForm) -> anyhow::Result<()> {
    require!((1..=10).contains(&form.priority), "priority is {}, not 1 to 10", form.priority);
    for (field, word, names) in [
        ("type", &form.kind, [SCAN_ONCE, CONTINUOUS].as_slice()),
        ("start", &form.start, StartMethod::NAMES),
        ("hopcount", &form.hopcount, HopcountMode::NAMES),
        ("refetch", &form.refetch, Refetch::NAMES),
        ("on_failure", &form.on_failure, OnFailure::NAMES),
    ] {
        require!(
            names.contains(&word.as_str()),
            "{field} is {word:?}, not one of {}",
            names.join(", ")
        );
    }
    for (field, number) in [
        ("recrawl_ms", form.recrawl_ms),
        ("recrawl_max_ms", form.recrawl_max_ms),
        ("reseed_ms", form.reseed_ms),
        ("expiration_ms", form.expiration_ms),
        ("fetches_per_day", form.fetches_per_day),
    ] {
        require!(number.is_none_or(|number| number > 0), "{field} must be more than 0");
    }
    let usual = RemovalLimits::USUAL;
    for (field, text, usual) in [
        ("removal_limit", &form.removal_limit, usual.all),
        ("proven_removal_limit", &form.proven_removal_limit, usual.proven),
    ] {
        let Some(text) = text else { continue };
        if let Err(wrong) = RemovalLimit::parse(text, usual) {
            refuse!("{field}: {wrong}");
        }
    }
    if let (Some(least), Some(most)) = (form.recrawl_ms, form.recrawl_max_ms) {
        require!(least <= most, "recrawl_ms is more than recrawl_max_ms");
    }
    Ok(())
}

/// The connector of a connection that a job names.
pub(super) fn connector_of(
    merged: &Definitions,
    kind: ConnectionKind,
    name: &str,
) -> anyhow::Result<&'static Connector> {
    let form = merged.connections.of(kind).get(name).or_refuse(|| {
        format!("there is no {} connection named {name:?}; define it first", kind.name())
    })?;
    catalog::named(Some(kind), &form.connector)
}

pub(super) fn connector_of_stage(
    merged: &Definitions,
    stage: &StageForm,
) -> anyhow::Result<&'static Connector> {
    match (&stage.transformation, &stage.output) {
        (Some(name), None) => connector_of(merged, ConnectionKind::Transformation, name),
        (None, Some(name)) => connector_of(merged, ConnectionKind::Output, name),
        _ => refuse!("it names either a transformation or an output"),
    }
}

/// Settings as the connector takes them, in full.
pub(super) fn by_connector(check: Check, settings: &Json) -> anyhow::Result<Json> {
    let checked = check(&settings.to_string()).or_refused()?;
    let mut json: Json = serde_json::from_str(&checked)?;
    without_null(&mut json);
    Ok(json)
}

/// A form with its secrets in the open: those that are hidden are those that are stored.
fn revealed<T: Serialize + DeserializeOwned>(
    form: &T,
    secrets: &[String],
    known: Option<&T>,
) -> anyhow::Result<T> {
    let mut json = serde_json::to_value(form)?;
    let known = known.map(serde_json::to_value).transpose()?;
    typed::reveal(&mut json, secrets, known.as_ref()).or_refused()?;
    Ok(serde_json::from_value(json)?)
}

/// Where the secrets of a connection's form are, as JSON pointers.
pub fn secrets_of_connection(kind: ConnectionKind, form: &ConnectionForm) -> Vec<String> {
    let settings = catalog::find(kind, &form.connector).map_or(&[][..], |it| it.settings);
    typed::secrets(settings, "/settings")
}

/// Whether a connection's form has a secret in it.
pub fn has_secrets(kind: ConnectionKind, form: &ConnectionForm) -> bool {
    let settings = &form.settings;
    secrets_of_connection(kind, form).iter().any(|place| {
        let place = place.strip_prefix("/settings").unwrap_or(place);
        settings.pointer(place).is_some_and(|it| !it.is_null() && it.as_str() != Some(""))
    })
}

/// Where the secrets of a job's form are; `merged` has the connections that it names.
pub fn secrets_of_job(merged: &Definitions, form: &JobForm) -> Vec<String> {
    let spec = |connector: anyhow::Result<&'static Connector>| -> &'static [ConfigField] {
        connector.map_or(&[], |it| it.spec)
    };
    let mut found = typed::secrets(
        spec(connector_of(merged, ConnectionKind::Repository, &form.connection)),
        "/spec",
    );
    for (number, stage) in form.pipeline.iter().enumerate() {
        let settings = spec(connector_of_stage(merged, stage));
        found.extend(typed::secrets(settings, &format!("/pipeline/{number}/spec")));
    }
    for (number, told) in form.notifications.iter().enumerate() {
        let settings = spec(connector_of(merged, ConnectionKind::Notification, &told.connection));
        found.extend(typed::secrets(settings, &format!("/notifications/{number}/spec")));
    }
    found
}
