//! Definitions as they may be shown to anybody: without their secrets.

use super::{ConnectionForm, Definitions, JobForm, secrets_of_connection, secrets_of_job};
use crate::catalog::typed;
use serde_json::Value as Json;
use store::tables::connections::ConnectionKind;

/// The same with `***` in the place of every secret.
pub fn hidden(found: &Definitions) -> serde_json::Result<Definitions> {
    let mut out = found.clone();
    for kind in ConnectionKind::ALL {
        for form in out.connections.of_mut(kind).values_mut() {
            *form = hidden_connection(kind, form)?;
        }
    }
    for form in out.jobs.values_mut() {
        let places = secrets_of_job(found, form);
        let mut json = serde_json::to_value(&*form)?;
        typed::hide(&mut json, &places);
        *form = serde_json::from_value::<JobForm>(json)?;
    }
    Ok(out)
}

/// A connection with `***` in the place of every secret.
pub fn hidden_connection(
    kind: ConnectionKind,
    form: &ConnectionForm,
) -> serde_json::Result<ConnectionForm> {
    let mut json = serde_json::to_value(form)?;
    typed::hide(&mut json, &secrets_of_connection(kind, form));
    serde_json::from_value(json)
}

/// One of them, by how lines about it begin: `job docs`, `output connection solr`. Without
/// secrets, in one line of JSON.
pub fn one_line(all: &Definitions, label: &str) -> Option<String> {
    let all = serde_json::to_value(hidden(all).ok()?).ok()?;
    let of = |kind: &str, word: &str| -> Option<&Json> {
        all.pointer(kind)?.get(label.strip_prefix(word)?.strip_prefix(' ')?)
    };
    let connection = |kind: ConnectionKind| {
        of(&format!("/connections/{}", kind.name()), &format!("{} connection", kind.name()))
    };
    let found = of("/jobs", "job")
        .or_else(|| of("/authgroups", "authority group"))
        .or_else(|| of("/authdomains", "authorization domain"))
        .or_else(|| ConnectionKind::ALL.into_iter().find_map(connection));
    found.map(Json::to_string)
}
