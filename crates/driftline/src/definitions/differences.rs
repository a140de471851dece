//! What a document would change, in plain lines such as `job docs: priority 5 -> 3`.
//!
//! Both sides have been checked, so that a default that is left out is no difference.
//! Invariant: no line shows a secret.

use super::{Definitions, secrets_of_connection, secrets_of_job};
use crate::catalog::typed::HIDDEN;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use store::tables::connections::ConnectionKind;

/// Characters of a value that a line shows.
const SHOWN_MAX: usize = 200;

/// What is different in `new`. What it does not name stays, and has no line.
pub fn difference(stored: &Definitions, new: &Definitions) -> Vec<String> {
    let mut lines = Vec::new();
    for (word, before, after) in [
        ("authority group", &stored.authgroups, &new.authgroups),
        ("authorization domain", &stored.authdomains, &new.authdomains),
    ] {
        for (name, form) in after {
            compare(&mut lines, &format!("{word} {name}"), before.get(name), form, &[]);
        }
    }
    let mut merged = stored.clone();
    for kind in ConnectionKind::ALL {
        merged.connections.of_mut(kind).extend(new.connections.of(kind).clone());
        for (name, form) in new.connections.of(kind) {
            let before = stored.connections.of(kind).get(name);
            let label = format!("{} connection {name}", kind.name());
            compare(&mut lines, &label, before, form, &secrets_of_connection(kind, form));
        }
    }
    for (name, form) in &new.jobs {
        let secrets = secrets_of_job(&merged, form);
        compare(&mut lines, &format!("job {name}"), stored.jobs.get(name), form, &secrets);
    }
    lines
}

fn compare<T: Serialize>(
    lines: &mut Vec<String>,
    label: &str,
    before: Option<&T>,
    after: &T,
    secrets: &[String],
) {
    let Some(before) = before else {
        lines.push(format!("{label}: new"));
        return;
    };
    let (before, after) = (flat(before), flat(after));
    let fields: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for field in fields {
        let (old, new) = (before.get(field), after.get(field));
        if old == new {
            continue;
        }
        let name = field.trim_start_matches('/').replace('/', ".");
        lines.push(match secrets.contains(field) {
            true => format!("{label}: {name} {HIDDEN} -> another {HIDDEN}"),
            false => format!("{label}: {name} {} -> {}", shown(old), shown(new)),
        });
    }
}

/// Every field of a form by its place; a list of plain values is one field.
fn flat(form: &impl Serialize) -> BTreeMap<String, Json> {
    let mut found = BTreeMap::new();
    // A form is a plain struct: it always has a JSON.
    let mut pending = vec![(String::new(), serde_json::to_value(form).unwrap_or_default())];
    while let Some((place, value)) = pending.pop() {
        match value {
            Json::Object(fields) => pending
                .extend(fields.into_iter().map(|(name, value)| (format!("{place}/{name}"), value))),
            Json::Array(values) if values.iter().any(Json::is_object) => pending.extend(
                values.into_iter().enumerate().map(|(at, value)| (format!("{place}/{at}"), value)),
            ),
            value => {
                found.insert(place, value);
            }
        }
    }
    found
}

fn shown(value: Option<&Json>) -> String {
    let text = match value {
        None => return "(none)".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
