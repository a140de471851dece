//! Definitions without what goes without saying: fields that are as they would be if nobody
//! had said anything.
//!
//! What is usual the forms and the connectors themselves say: a setting is usual when the
//! connector makes the same of the rest without it. Invariant: what comes out means the
//! same as what went in, to this program; to another version a usual value is its own.

use super::check::{by_connector, connector_of, connector_of_stage};
use super::{ConnectionForm, Definitions, JobForm};
use crate::catalog;
use serde::Serialize;
use serde_json::Value as Json;
use store::catalog::Check;
use store::tables::connections::ConnectionKind;

/// All definitions as a document for people and for other databases.
pub fn without_usual(found: &Definitions) -> serde_json::Result<Json> {
    let mut document = serde_json::to_value(found)?;
    for kind in ConnectionKind::ALL {
        for (name, form) in found.connections.of(kind) {
            let place = &mut document["connections"][kind.name()][name];
            let mut usual = ConnectionForm::new(&form.connector);
            usual.max_connections = Some(super::usual_connections(kind, &form.connector));
            leave_out(place, &usual, "connector")?;
            if let Ok(connector) = catalog::named(Some(kind), &form.connector) {
                leave_out_settings(&mut place["settings"], connector.check_config);
                without_nothing(place, "settings");
            }
        }
    }
    for (name, form) in &found.jobs {
        let place = &mut document["jobs"][name];
        leave_out(place, &JobForm::new(&form.connection), "connection")?;
        if let Ok(connector) = connector_of(found, ConnectionKind::Repository, &form.connection) {
            leave_out_settings(&mut place["spec"], connector.check_spec);
            without_nothing(place, "spec");
        }
        for (number, stage) in form.pipeline.iter().enumerate() {
            if let Ok(connector) = connector_of_stage(found, stage) {
                leave_out_settings(&mut place["pipeline"][number]["spec"], connector.check_spec);
                without_nothing(&mut place["pipeline"][number], "spec");
            }
        }
        for (number, told) in form.notifications.iter().enumerate() {
            if let Ok(connector) =
                connector_of(found, ConnectionKind::Notification, &told.connection)
            {
                let spec = &mut place["notifications"][number]["spec"];
                leave_out_settings(spec, connector.check_spec);
                without_nothing(&mut place["notifications"][number], "spec");
            }
        }
    }
    Ok(document)
}

/// Takes fields out of a form that are as in another one, but for the one that it must have.
fn leave_out(form: &mut Json, usual: &impl Serialize, must: &str) -> serde_json::Result<()> {
    let usual = serde_json::to_value(usual)?;
    if let Json::Object(fields) = form {
        fields.retain(|name, value| name == must || usual.get(name) != Some(value));
    }
    Ok(())
}

/// Takes out of settings what their connector adds by itself.
fn leave_out_settings(settings: &mut Json, check: Check) {
    let Ok(full) = by_connector(check, settings) else { return };
    for place in places(settings) {
        let mut less = settings.clone();
        remove(&mut less, &place);
        if by_connector(check, &less).is_ok_and(|it| it == full) {
            *settings = less;
        }
    }
}

/// Where the values of settings are; an inner object comes after what is in it.
fn places(settings: &Json) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut pending = vec![(Vec::new(), settings)];
    while let Some((place, value)) = pending.pop() {
        if let Json::Object(fields) = value {
            for (name, value) in fields {
                let inner: Vec<String> = place.iter().cloned().chain([name.clone()]).collect();
                found.push(inner.clone());
                pending.push((inner, value));
            }
        }
    }
    found.sort_by_key(|place| std::cmp::Reverse(place.len()));
    found
}

fn remove(json: &mut Json, place: &[String]) {
    let Some((last, before)) = place.split_last() else { return };
    let inner = before.iter().try_fold(json, |inner, name| inner.get_mut(name));
    if let Some(Json::Object(fields)) = inner {
        fields.remove(last);
    }
}

/// Takes out a field that says nothing.
fn without_nothing(form: &mut Json, field: &str) {
    let is_nothing = match &form[field] {
        Json::Null => true,
        Json::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if let (true, Json::Object(fields)) = (is_nothing, form) {
        fields.remove(field);
    }
}
