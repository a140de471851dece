//! All definitions as one document: authority groups and domains, connections of every
//! kind, jobs. Names instead of ids; TOML for people, JSON for programs.
//!
//! [`collect`] reads what is stored, [`checked`] holds a document against the catalogue
//! of connectors, [`difference`] says in plain lines what it would change, [`apply`] writes
//! it. Invariants: nothing is written before all of it has been checked, and then in one
//! transaction; a field that nobody knows is refused; a thing that a document does not
//! name stays as it is, a thing that it names becomes what it says.

mod apply;
mod check;
mod collect;
mod differences;
mod redaction;
mod usual;

pub use apply::apply;
pub use check::{check_job_name, checked, has_secrets, secrets_of_connection, secrets_of_job};
pub use collect::{collect, connection_form};
pub use differences::difference;
pub use redaction::{hidden, hidden_connection, one_line};
pub use usual::without_usual;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use store::tables::connections::{ConnectionKind, MAXCOUNT};
use store::tables::jobs::{HopcountMode, OnFailure, Refetch, StartMethod};

/// What to do where secrets cannot be sealed.
pub const NAME_A_KEY: &str = "give a key file with --secrets-key, the same for every process that \
     uses the database; to create one: (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' \
     >secrets.key)";

/// Everything that can be defined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Definitions {
    /// Authority groups by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub authgroups: BTreeMap<String, DescribedOnly>,
    /// Authorization domains by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub authdomains: BTreeMap<String, DescribedOnly>,
    /// Connections by kind and name.
    pub connections: Connections,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, JobForm>,
}

impl Definitions {
    /// Whether a connection has a secret among its settings.
    pub fn has_secrets(&self) -> bool {
        let has = |kind| self.connections.of(kind).values().any(|form| has_secrets(kind, form));
        ConnectionKind::ALL.into_iter().any(has)
    }
}

/// A thing that is only described.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DescribedOnly {
    pub description: String,
}

/// The connections of each kind, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub repository: BTreeMap<String, ConnectionForm>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub output: BTreeMap<String, ConnectionForm>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub transformation: BTreeMap<String, ConnectionForm>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub authority: BTreeMap<String, ConnectionForm>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mapping: BTreeMap<String, ConnectionForm>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notification: BTreeMap<String, ConnectionForm>,
}

impl Connections {
    /// Those of a kind.
    pub fn of(&self, kind: ConnectionKind) -> &BTreeMap<String, ConnectionForm> {
        match kind {
            ConnectionKind::Repository => &self.repository,
            ConnectionKind::Output => &self.output,
            ConnectionKind::Transformation => &self.transformation,
            ConnectionKind::Authority => &self.authority,
            ConnectionKind::Mapping => &self.mapping,
            ConnectionKind::Notification => &self.notification,
        }
    }

    /// Those of a kind, to be changed.
    pub fn of_mut(&mut self, kind: ConnectionKind) -> &mut BTreeMap<String, ConnectionForm> {
        match kind {
            ConnectionKind::Repository => &mut self.repository,
            ConnectionKind::Output => &mut self.output,
            ConnectionKind::Transformation => &mut self.transformation,
            ConnectionKind::Authority => &mut self.authority,
            ConnectionKind::Mapping => &mut self.mapping,
            ConnectionKind::Notification => &mut self.notification,
        }
    }
}

/// A connection as the document of definitions has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionForm {
    /// Its connector.
    pub connector: String,
    /// What people say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Connections open at once; without it, what is usual for the connector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,
    /// Its authority group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its authorization domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The mapping that is asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prerequisite: Option<String>,
    /// How long its history is kept: without it, 90 days; 0 is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_ms: Option<i64>,
    /// The connector's settings.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub settings: Json,
    /// How fast its bins are asked, by expression.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub throttles: BTreeMap<String, ThrottleForm>,
}

impl ConnectionForm {
    /// A connection of a connector, with nothing else said.
    pub fn new(connector: &str) -> ConnectionForm {
        ConnectionForm {
            connector: connector.to_owned(),
            description: None,
            max_connections: None,
            group: None,
            domain: None,
            prerequisite: None,
            history_ms: None,
            settings: nothing(),
            throttles: BTreeMap::new(),
        }
    }
}

/// How fast some bins are asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThrottleForm {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Documents a minute, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
    /// Connections open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<i64>,
    /// Bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<i64>,
}

/// A job as the document of definitions has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
// tidy: wide every field is a key of a job in the document of definitions
pub struct JobForm {
    /// The repository connection that its documents come from.
    pub connection: String,
    /// What people say of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// 1 to 10; 1 comes first.
    #[serde(default = "priority")]
    pub priority: i64,
    /// `scan once` or `continuous`.
    #[serde(default = "scan_once", rename = "type")]
    pub kind: String,
    /// Least time between looks at a document; without it, never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recrawl_ms: Option<i64>,
    /// Most time between looks at a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recrawl_max_ms: Option<i64>,
    /// Least time between seedings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reseed_ms: Option<i64>,
    /// How long a document lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_ms: Option<i64>,
    /// What starts it: `manual`, `window begin`, `window inside`.
    #[serde(default = "manual")]
    pub start: String,
    /// `accurate`, `no delete`, `never delete`.
    #[serde(default = "accurate")]
    pub hopcount: String,
    /// `estimate`, `formula`, `fixed`.
    #[serde(default = "estimate")]
    pub refetch: String,
    /// Fetches a day that it may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetches_per_day: Option<i64>,
    /// `skip` or `abort`.
    #[serde(default = "skip")]
    pub on_failure: String,
    /// What it may lose in a run (a continuous job in a day) without an approval, such as
    /// `20% or 50`; `off` is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_limit: Option<String>,
    /// How much of that goes at once, where the document itself is proof, such as `2% or 20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_removal_limit: Option<String>,
    /// The most hops for each kind of link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hops: BTreeMap<String, i64>,
    /// The connector's document specification.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub spec: Json,
    /// Transformations and outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipeline: Vec<StageForm>,
    /// Whom it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationForm>,
    /// When it starts by itself, such as `hours=3 days=mon-fri zone=Europe/Berlin window=2h`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<String>,
}

impl JobForm {
    /// A job of a connection, with nothing else said.
    pub fn new(connection: &str) -> JobForm {
        JobForm {
            connection: connection.to_owned(),
            description: String::new(),
            priority: priority(),
            kind: scan_once(),
            recrawl_ms: None,
            recrawl_max_ms: None,
            reseed_ms: None,
            expiration_ms: None,
            start: manual(),
            hopcount: accurate(),
            refetch: estimate(),
            fetches_per_day: None,
            on_failure: skip(),
            removal_limit: None,
            proven_removal_limit: None,
            hops: BTreeMap::new(),
            spec: nothing(),
            pipeline: Vec::new(),
            notifications: Vec::new(),
            schedules: Vec::new(),
        }
    }
}

/// A stage of a pipeline: a transformation or an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageForm {
    /// The transformation connection, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformation: Option<String>,
    /// The output connection, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The number of the stage it hears, from 0; without it, the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// What people say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The connector's specification.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub spec: Json,
}

/// A notification of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationForm {
    /// The notification connection that is told.
    pub connection: String,
    /// What people say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The connector's specification.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub spec: Json,
}

/// Connections that a connector opens at once where nothing else is said.
pub fn usual_connections(kind: ConnectionKind, connector: &str) -> i64 {
    match kind {
        ConnectionKind::Repository => crawl::connectors::max_connections(connector),
        _ => MAXCOUNT,
    }
}

fn priority() -> i64 {
    store::tables::jobs::PRIORITY
}

fn scan_once() -> String {
    SCAN_ONCE.to_owned()
}

fn manual() -> String {
    StartMethod::Manual.name().to_owned()
}

fn accurate() -> String {
    HopcountMode::Accurate.name().to_owned()
}

fn estimate() -> String {
    Refetch::Estimate.name().to_owned()
}

fn skip() -> String {
    OnFailure::Skip.name().to_owned()
}

/// A job that ends.
pub const SCAN_ONCE: &str = "scan once";
/// A job that goes on for ever.
pub const CONTINUOUS: &str = "continuous";

fn nothing() -> Json {
    Json::Object(Map::new())
}

fn is_nothing(json: &Json) -> bool {
    json.as_object().is_some_and(Map::is_empty)
}

/// Takes out fields that are null, which TOML cannot say and which mean the same.
fn without_null(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_null);
        }
        Json::Array(values) => values.iter_mut().for_each(without_null),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
