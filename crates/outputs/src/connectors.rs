//! The output connectors: what each says of itself; one line a connector.
//!
//! Help, checks, forms and documents come from this list; a test of the program loops
//! over it. Invariant: what a connector says of its fields is what its struct has.

pub(crate) mod choice;
pub mod files;
mod isolation;
pub mod mirror;
pub mod null;
pub mod opensearch;
#[cfg(test)]
mod operations;
pub mod server_settings;
pub mod solr;
pub mod webhook;

use crate::output::{Outcome, Output};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::catalog::Connector;
use store::tables::connections::ConnectionKind;

/// Opens a connection with its configuration. The error is a sentence.
pub type Open = fn(&str) -> Result<Box<dyn Output>, String>;

/// Every output connector, and what opens its connections.
pub const ALL: &[(Connector, Open)] = &[
    (files::CONNECTOR, files::open),
    (mirror::CONNECTOR, mirror::open),
    (null::CONNECTOR, null::open),
    (opensearch::CONNECTOR, opensearch::open),
    (solr::CONNECTOR, solr::open),
    (webhook::CONNECTOR, webhook::open),
];

/// Opens an output connection. The error is a sentence.
pub fn open(class: &str, config: &str) -> Result<Box<dyn Output>, String> {
    match ALL.iter().find(|it| it.0.name == class) {
        Some((_, open)) => open(config),
        None => Err(format!("this program has no output connector {class}")),
    }
}

/// Reads JSON of a connector's form. The error is a sentence that names the field,
/// without the line and column, which nobody who typed a setting knows.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        message.split(" at line ").next().unwrap_or(&message).to_owned()
    })
}

/// Its form with every field, as JSON.
pub(crate) fn written(form: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(form).map_err(|error| error.to_string())
}

/// What is said where nothing can be said.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Nothing {}

/// Refuses everything that is said to what takes no settings.
fn check_nothing(text: &str) -> Result<String, String> {
    written(&read::<Nothing>(text)?)
}

/// A connector without settings, a specification or tables: what all of them begin with.
pub(crate) const fn base(
    kind: ConnectionKind,
    name: &'static str,
    about: &'static str,
) -> Connector {
    Connector {
        kind,
        name,
        about,
        settings: &[],
        not_destination: &[],
        spec: &[],
        link_types: &[],
        takes_bodies: false,
        takes_requisites: false,
        check_config: check_nothing,
        check_spec: check_nothing,
        check_job: None,
        install: None,
        deinstall: None,
    }
}

/// The worst outcome of each operation. `outcomes` are those of the parts of operations, one
/// operation after the other, and `ends` says where the parts of each end.
fn worst_of_each(outcomes: &[Outcome], ends: &[usize]) -> Vec<Outcome> {
    let begins = std::iter::once(0).chain(ends.iter().copied());
    begins.zip(ends).map(|(begin, end)| worst(&outcomes[begin..*end])).collect()
}

/// What came of several things that belong together: what keeps them from being done.
fn worst(outcomes: &[Outcome]) -> Outcome {
    let weight = |outcome: &Outcome| match outcome {
        Outcome::Taken => 0,
        Outcome::Rejected { .. } => 1,
        Outcome::Trouble { .. } => 2,
        Outcome::Later(_) => 3,
    };
    outcomes.iter().max_by_key(|it| weight(it)).cloned().unwrap_or(Outcome::Taken)
}
