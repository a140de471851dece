//! The Solr output: documents in a core or collection, through its JSON update handler.

pub mod work;

use super::server_settings::{
    CA_FILE, LoginSettings, PASSWORD, RequestSettings, TIMEOUT, USER, read_flattened,
};
use super::{base, written};
use crate::fields;
use crate::output::Output;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// A Solr output's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct SolrConfig {
    pub url: String,
    pub id_field: String,
    pub commit_within_ms: i64,
    pub commit: bool,
    #[serde(flatten)]
    pub login: LoginSettings,
    #[serde(flatten)]
    pub request: RequestSettings,
}

impl Default for SolrConfig {
    fn default() -> SolrConfig {
        SolrConfig {
            url: String::new(),
            id_field: "id".to_owned(),
            commit_within_ms: 10_000,
            commit: true,
            login: LoginSettings::default(),
            request: RequestSettings::default(),
        }
    }
}

impl SolrConfig {
    /// Reads a configuration. The error is a sentence that names the field.
    pub fn parse(text: &str) -> Result<SolrConfig, String> {
        read_flattened::<SolrConfig>(text, SETTINGS)?.check()
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    fn check(self) -> Result<SolrConfig, String> {
        self.request.check(&self.url)?;
        fields::check_name(&self.id_field).map_err(|why| format!("id_field: {why}"))?;
        Ok(self)
    }
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Output>, String> {
    Ok(Box::new(work::Solr::open(config)?))
}

const SETTINGS: &[ConfigField] = &[
    ConfigField {
        name: "url",
        about: "the address of the core or collection",
        example: "http://localhost:8983/solr/web",
        default: None,
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "id_field",
        about: "the field that documents are known by: the schema's unique key",
        example: "id",
        default: Some("id"),
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "commit_within_ms",
        about: "how long a change may take to be visible to searches; 0 leaves it to the server",
        example: "1min",
        default: Some("10s"),
        kind: SettingKind::Seconds,
    },
    ConfigField {
        name: "commit",
        about: "whether the end of a run makes all of it visible to searches",
        example: "no",
        default: Some("yes"),
        kind: SettingKind::Flag,
    },
    USER,
    PASSWORD,
    CA_FILE,
    TIMEOUT,
];

/// Registers the output with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: SETTINGS,
    not_destination: &["id_field", "commit_within_ms", "commit", "timeout_ms"],
    check_config: |text| written(&SolrConfig::parse(text)?),
    ..base(ConnectionKind::Output, "solr", "documents in a core or collection of Solr")
};

#[cfg(test)]
mod tests;
