//! The webhook output: documents as JSON messages to an address.

pub mod signature;
pub mod work;

use super::choice::choice;
use super::server_settings::{
    CA_FILE, LoginSettings, PASSWORD, RequestSettings, SECRET, TIMEOUT, USER, read_flattened,
};
use super::{base, written};
use crate::output::Output;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// Documents of one message at most.
pub const BATCH_MAX: i64 = 200;
/// Stands for the document's URI in an address.
pub const URI: &str = "{uri}";
/// Stands for a hash of the document's URI in an address.
pub const ID: &str = "{id}";

/// How messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SendMethod {
    Post,
    Put,
}

choice!(SendMethod of "method" { Post = "post", Put = "put" });

/// How a removal is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Removal {
    Message,
    Delete,
}

choice!(Removal of "removal" { Message = "message", Delete = "delete" });

/// The settings of the webhook output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct WebhookConfig {
    pub url: String,
    pub method: SendMethod,
    pub batch: i64,
    pub removal: Removal,
    pub secret: Option<String>,
    #[serde(flatten)]
    pub login: LoginSettings,
    #[serde(flatten)]
    pub request: RequestSettings,
}

impl Default for WebhookConfig {
    fn default() -> WebhookConfig {
        WebhookConfig {
            url: String::new(),
            method: SendMethod::Post,
            batch: 1,
            removal: Removal::Message,
            secret: None,
            login: LoginSettings::default(),
            request: RequestSettings::default(),
        }
    }
}

impl WebhookConfig {
    /// Reads a configuration. The error is a sentence that names the field.
    pub fn parse(text: &str) -> Result<WebhookConfig, String> {
        read_flattened::<WebhookConfig>(text, SETTINGS)?.check()
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    fn check(self) -> Result<WebhookConfig, String> {
        self.request.check(&self.url)?;
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(format!("batch: 1 to {BATCH_MAX} documents, not {}", self.batch));
        }
        if self.batch > 1 && self.names_documents() {
            return Err(format!("url: {URI} and {ID} are for one document; set batch to 1"));
        }
        if self.batch > 1 && self.removal == Removal::Delete {
            return Err("removal: delete is for one document; set batch to 1".to_owned());
        }
        Ok(self)
    }

    /// Whether each document has an address of its own.
    pub fn names_documents(&self) -> bool {
        self.url.contains(URI) || self.url.contains(ID)
    }
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Output>, String> {
    Ok(Box::new(work::Webhook::open(config)?))
}

const SETTINGS: &[ConfigField] = &[
    ConfigField {
        name: "url",
        about: "the URL; {uri} and {id} stand for the document's URI and a hash of it",
        example: "http://localhost:8080/documents",
        default: None,
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "method",
        about: "how messages are sent",
        example: "put",
        default: Some("post"),
        kind: SettingKind::Choice(SendMethod::WORDS),
    },
    ConfigField {
        name: "batch",
        about: "documents of one message; with more than 1, a message is a list of changes",
        example: "100",
        default: Some("1"),
        kind: SettingKind::Number { least: 1, most: BATCH_MAX },
    },
    ConfigField {
        name: "removal",
        about: "how a removal is told: as a message, or by DELETE",
        example: "message",
        default: Some("message"),
        kind: SettingKind::Choice(Removal::WORDS),
    },
    SECRET,
    USER,
    PASSWORD,
    CA_FILE,
    TIMEOUT,
];

/// Registers the output with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: SETTINGS,
    not_destination: &["method", "batch", "removal", "timeout_ms"],
    check_config: |text| written(&WebhookConfig::parse(text)?),
    ..base(ConnectionKind::Output, "webhook", "documents as JSON messages to a URL")
};

#[cfg(test)]
mod tests;
