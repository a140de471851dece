//! The OpenSearch output, which speaks to Elasticsearch as well: documents in an index,
//! through the bulk interface.

mod bulk;
pub mod work;

use super::server_settings::{
    CA_FILE, LoginSettings, PASSWORD, RequestSettings, TIMEOUT, USER, read_flattened,
};
use super::{base, written};
use crate::output::Output;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// Bytes of an index's name.
const INDEX_BYTES_MAX: usize = 255;

/// An OpenSearch output's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct OpenSearchConfig {
    pub url: String,
    pub index: String,
    pub refresh: bool,
    #[serde(flatten)]
    pub login: LoginSettings,
    pub api_key: Option<String>,
    #[serde(flatten)]
    pub request: RequestSettings,
}

impl Default for OpenSearchConfig {
    fn default() -> OpenSearchConfig {
        OpenSearchConfig {
            url: String::new(),
            index: "documents".to_owned(),
            refresh: true,
            login: LoginSettings::default(),
            api_key: None,
            request: RequestSettings::default(),
        }
    }
}

impl OpenSearchConfig {
    /// Reads a configuration. The error is a sentence that names the field.
    pub fn parse(text: &str) -> Result<OpenSearchConfig, String> {
        read_flattened::<OpenSearchConfig>(text, SETTINGS)?.check()
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    fn check(self) -> Result<OpenSearchConfig, String> {
        self.request.check(&self.url)?;
        let is_plain = |it: char| it.is_ascii_graphic() && !r##"\/*?"<>|,#:"##.contains(it);
        let fits = (1..=INDEX_BYTES_MAX).contains(&self.index.len());
        let begins = !self.index.starts_with(['-', '_', '+', '.']);
        let is_small = !self.index.bytes().any(|it| it.is_ascii_uppercase());
        if !fits || !begins || !is_small || !self.index.chars().all(is_plain) {
            return Err(format!(
                "index: {:?} is no name of an index; use small letters, digits, - and _",
                self.index
            ));
        }
        Ok(self)
    }
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Output>, String> {
    Ok(Box::new(work::OpenSearch::open(config)?))
}

const SETTINGS: &[ConfigField] = &[
    ConfigField {
        name: "url",
        about: "the address of the server",
        example: "http://localhost:9200",
        default: None,
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "index",
        about: "the index",
        example: "web",
        default: Some("documents"),
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "refresh",
        about: "whether the end of a run makes all of it visible to searches",
        example: "no",
        default: Some("yes"),
        kind: SettingKind::Flag,
    },
    USER,
    PASSWORD,
    ConfigField {
        name: "api_key",
        about: "a key in place of user and password, as the server gives it out encoded",
        example: "VnVhQ2ZHY0JDZGJrU",
        default: None,
        kind: SettingKind::Secret,
    },
    CA_FILE,
    TIMEOUT,
];

/// Registers the output with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: SETTINGS,
    not_destination: &["index", "refresh", "timeout_ms"],
    check_config: |text| written(&OpenSearchConfig::parse(text)?),
    ..base(
        ConnectionKind::Output,
        "opensearch",
        "documents in an index of OpenSearch or Elasticsearch",
    )
};

#[cfg(test)]
mod tests;
