//! The repository connectors: each is one file and one line here.
//!
//! Help, checks, forms and documents come from this list; a test of the program loops
//! over it. Invariant: what a connector says of its fields is what its struct has.

mod content;
#[cfg(test)]
mod example;
pub mod feed;
pub mod files;
mod roots;
pub mod sql;
pub mod warc;
pub mod web;

use crate::repository::Repository;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use store::catalog::Connector;
use store::tables::connections::MAXCOUNT;

/// Makes a repository of a connection's configuration and a job's specification, in this
/// order.
pub type Make = fn(&str, &str) -> Result<Arc<dyn Repository>, String>;

/// Opens what a connection's configuration leads to. The error says why it cannot be used.
pub type Open = fn(&str) -> Result<(), String>;

/// Every repository connector, what makes its repositories, and what tries a connection
/// that leads somewhere by itself. Those of the web are worked on by the worker itself.
pub const ALL: &[(Connector, Option<Make>, Option<Open>)] = &[
    (web::CONNECTOR, None, None),
    (feed::CONNECTOR, None, None),
    (files::CONNECTOR, Some(files::repository), None),
    (sql::CONNECTOR, Some(sql::repository), Some(sql::open)),
    (warc::CONNECTOR, Some(warc::repository), None),
    // Of the guide to connectors, which the tests hold true.
    #[cfg(test)]
    (example::CONNECTOR, Some(example::repository), None),
];

/// Connections of the web open at once, where nothing else is said: what keeps them apart is
/// the delay of each host.
const WEB_CONNECTIONS_MAX: i64 = 256;

/// Connections open at once that a connector has where nothing else is said.
pub fn max_connections(connector: &str) -> i64 {
    if is_web(connector) { WEB_CONNECTIONS_MAX } else { MAXCOUNT }
}

/// Whether a connector's documents are on the web.
pub fn is_web(connector: &str) -> bool {
    [web::CONNECTOR.name, feed::NAME].contains(&connector)
}

/// Whether documents of a connector that is not the web lead to others: directories do.
pub fn leads_on(connector: &str) -> bool {
    let found = ALL.iter().find(|it| it.0.name == connector);
    !is_web(connector) && found.is_some_and(|it| !it.0.link_types.is_empty())
}

/// A connector with its connection's configuration and a job's specification.
pub fn repository(
    connector: &str,
    config: &str,
    docspec: &str,
) -> Result<Arc<dyn Repository>, String> {
    match ALL.iter().find(|it| it.0.name == connector).and_then(|it| it.1) {
        Some(make) => make(config, docspec),
        None => Err(format!("there is no repository connector {connector:?} in this program")),
    }
}

/// Refuses a job's specification, which has been checked by itself, that its connection does
/// not allow. The error is a sentence that names the field.
pub fn check_job(connector: &str, config: &str, docspec: &str) -> Result<(), String> {
    match ALL.iter().find(|it| it.0.name == connector).and_then(|it| it.0.check_job) {
        Some(check) => check(config, docspec),
        None => Ok(()),
    }
}

/// Tries what a connection leads to, if it leads somewhere without a job.
pub fn open(connector: &str, config: &str) -> Result<(), String> {
    match ALL.iter().find(|it| it.0.name == connector).and_then(|it| it.2) {
        Some(open) => open(config),
        None => Ok(()),
    }
}

/// Reads JSON of a connector's form. The error is a sentence that names the field.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| without_place(&error.to_string()))
}

/// Its form with every field, as JSON.
fn written(form: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(form).map_err(|error| error.to_string())
}

/// A message without the line and column, which nobody who typed a setting knows.
fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests;
