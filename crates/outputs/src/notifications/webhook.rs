//! The webhook notification: a JSON message to an address.

use super::{EVENTS, Notice, Notification, check_events, is_among};
use crate::connectors::server_settings::{
    CA_FILE, LoginSettings, PASSWORD, RequestSettings, SECRET, TIMEOUT, USER, read_flattened,
};
use crate::connectors::webhook::signature::sign;
use crate::connectors::{base, written};
use crate::http::{Method, ServerClient, ServerRequest};
use crate::output::Unavailable;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::clock;
use store::tables::connections::ConnectionKind;
use store::tables::notifications::Occasion;

/// The settings of notifications by webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct WebhookConfig {
    pub url: String,
    pub events: Vec<String>,
    pub secret: Option<String>,
    #[serde(flatten)]
    pub login: LoginSettings,
    #[serde(flatten)]
    pub request: RequestSettings,
}

impl WebhookConfig {
    /// Reads a configuration. The error is a sentence that names the field.
    pub fn parse(text: &str) -> Result<WebhookConfig, String> {
        read_flattened::<WebhookConfig>(text, SETTINGS)?.check()
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    fn check(self) -> Result<WebhookConfig, String> {
        self.request.check(&self.url)?;
        check_events(&self.events)?;
        Ok(self)
    }
}

struct Webhook {
    server: ServerClient,
    config: WebhookConfig,
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Notification>, String> {
    let config = WebhookConfig::parse(config)?;
    let server = config.request.server(&config.url, config.login.login())?;
    Ok(Box::new(Webhook { server, config }))
}

impl Notification for Webhook {
    fn check(&mut self) -> Result<(), Unavailable> {
        // Whatever it says to this, it is there and can be spoken to.
        let request = ServerRequest::new(Method::OPTIONS, self.server.base().clone());
        self.server.send(request).map(|_| ())
    }

    fn wants(&self, occasion: Occasion) -> bool {
        is_among(&self.config.events, occasion)
    }

    fn send(&mut self, notice: &Notice) -> Result<(), Unavailable> {
        let body = notice.to_json().to_string().into_bytes();
        let mut request = ServerRequest::json(Method::POST, self.server.base().clone(), body);
        if let Some(secret) = &self.config.secret {
            sign(&mut request, secret, clock::now_ms());
        }
        let response = self.server.send(request)?;
        self.server.check_done(&response)
    }
}

const SETTINGS: &[ConfigField] = &[
    ConfigField {
        name: "url",
        about: "the address",
        example: "http://localhost:8080/jobs",
        default: None,
        kind: SettingKind::Text,
    },
    EVENTS,
    SECRET,
    USER,
    PASSWORD,
    CA_FILE,
    TIMEOUT,
];

/// Registers notifications by webhook with their settings and checks.
pub const CONNECTOR: Connector = Connector {
    settings: SETTINGS,
    not_destination: &["events", "timeout_ms"],
    check_config: |text| written(&WebhookConfig::parse(text)?),
    ..base(
        ConnectionKind::Notification,
        "webhook",
        "the outcome of jobs, as a JSON message to a URL",
    )
};
