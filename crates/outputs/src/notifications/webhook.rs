//! The webhook notification: a JSON message to an address.

use super::{EVENTS, Notice, Notification, check_events, is_among};
use crate::connectors::webhook::signature::sign;
use crate::connectors::{
    CA_FILE, PASSWORD, SECRET, TIMEOUT, USER, check_nothing, login, read, written,
};
use crate::http::{self, Access, Ask, Method, Server};
use crate::output::Away;
use serde::{Deserialize, Serialize};
use store::catalog::{Connector, Setting, SettingKind};
use store::clock;
use store::tables::connections::Kind;
use store::tables::notifications::Occasion;

/// Its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct WebhookConfig {
    pub url: String,
    pub events: Vec<String>,
    pub secret: Option<String>,
    pub user: String,
    pub password: Option<String>,
    pub ca_file: String,
    pub timeout_ms: i64,
}

impl Default for WebhookConfig {
    fn default() -> WebhookConfig {
        WebhookConfig {
            url: String::new(),
            events: Vec::new(),
            secret: None,
            user: String::new(),
            password: None,
            ca_file: String::new(),
            timeout_ms: http::TIMEOUT_MS,
        }
    }
}

impl WebhookConfig {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(self) -> Result<WebhookConfig, String> {
        http::address("url", &self.url)?;
        http::check_timeout(self.timeout_ms)?;
        check_events(&self.events)?;
        Ok(self)
    }
}

struct Webhook {
    server: Server,
    config: WebhookConfig,
}

/// Opens it.
pub fn open(config: &str) -> Result<Box<dyn Notification>, String> {
    let config = read::<WebhookConfig>(config)?.check()?;
    let access = Access {
        url: &config.url,
        login: login(&config.user, config.password.as_deref()),
        ca_file: &config.ca_file,
        timeout_ms: config.timeout_ms,
    };
    Ok(Box::new(Webhook { server: Server::new(access)?, config }))
}

impl Notification for Webhook {
    fn check(&mut self) -> Result<(), Away> {
        // Whatever it says to this, it is there and can be spoken to.
        let ask = Ask::new(Method::OPTIONS, self.server.base().clone());
        self.server.ask(ask).map(|_| ())
    }

    fn wants(&self, occasion: Occasion) -> bool {
        is_among(&self.config.events, occasion)
    }

    fn tell(&mut self, notice: &Notice) -> Result<(), Away> {
        let body = notice.to_json().to_string().into_bytes();
        let mut ask = Ask::json(Method::POST, self.server.base().clone(), body);
        if let Some(secret) = &self.config.secret {
            sign(&mut ask, secret, clock::now_ms());
        }
        let answer = self.server.ask(ask)?;
        match answer.is_done() {
            true => Ok(()),
            false => Err(self.server.puzzled(&answer)),
        }
    }
}

/// The connector.
pub const CONNECTOR: Connector = Connector {
    kind: Kind::Notification,
    name: "webhook",
    about: "what became of a job, as a JSON message to an address",
    settings: &[
        Setting {
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
    ],
    not_destination: &["events", "timeout_ms"],
    spec: &[],
    link_types: &[],
    takes_bodies: false,
    check_config: |text| written(&read::<WebhookConfig>(text)?.check()?),
    check_spec: check_nothing,
    install: None,
    deinstall: None,
};
