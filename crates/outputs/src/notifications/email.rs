//! The e-mail notification: a short message through a mail server.
//!
//! Invariant: with `starttls` and `tls` nothing is said in the open, neither the message
//! nor the login, and a server whose certificate is not good hears nothing.

use super::{EVENTS, Notice, Notification, check_events, is_among, time};
use crate::connectors::choice::choice;
use crate::connectors::server_settings::{
    CA_FILE, LoginSettings, PASSWORD, RequestSettings, TIMEOUT, USER, read_flattened,
};
use crate::connectors::{base, written};
use crate::http::{self, Login};
use crate::output::Unavailable;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{SmtpTransport, Transport};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;
use store::tables::notifications::Occasion;

/// Who may be written to at once.
const RECIPIENTS_MAX: usize = 100;

/// How the server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Secretly after a first word.
    StartTls,
    /// Secretly from the start.
    Tls,
    /// In the open.
    Plain,
}

choice!(Security of "security" { StartTls = "starttls", Tls = "tls", Plain = "plain" });

/// The settings of notifications by mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct EmailConfig {
    pub server: String,
    pub port: u16,
    pub security: Security,
    pub from: String,
    pub to: Vec<String>,
    pub events: Vec<String>,
    #[serde(flatten)]
    pub login: LoginSettings,
    #[serde(flatten)]
    pub request: RequestSettings,
}

impl Default for EmailConfig {
    fn default() -> EmailConfig {
        EmailConfig {
            server: String::new(),
            port: 0,
            security: Security::StartTls,
            from: String::new(),
            to: Vec::new(),
            events: Vec::new(),
            login: LoginSettings::default(),
            request: RequestSettings::default(),
        }
    }
}

impl EmailConfig {
    /// Reads a configuration. The error is a sentence that names the field.
    pub fn parse(text: &str) -> Result<EmailConfig, String> {
        read_flattened::<EmailConfig>(text, SETTINGS)?.check()
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    fn check(self) -> Result<EmailConfig, String> {
        if self.server.is_empty() || self.server.contains(['/', ':', '@', ' ']) {
            return Err("server: name the mail server, such as mail.example.com".to_owned());
        }
        http::check_timeout(self.request.timeout_ms)?;
        check_events(&self.events)?;
        mailbox("from", &self.from)?;
        if !(1..=RECIPIENTS_MAX).contains(&self.to.len()) {
            return Err(format!("to: 1 to {RECIPIENTS_MAX} addresses"));
        }
        for to in &self.to {
            mailbox("to", to)?;
        }
        Ok(self)
    }

    fn port(&self) -> u16 {
        match (self.port, self.security) {
            (0, Security::Tls) => 465,
            (0, Security::Plain) => 25,
            (0, Security::StartTls) => 587,
            (port, _) => port,
        }
    }
}

fn mailbox(field: &str, text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|_| {
        format!("{field}: {text:?} is not an address; write one such as crawler@example.com")
    })
}

struct Email {
    transport: SmtpTransport,
    config: EmailConfig,
}

/// Opens it; nothing is asked yet.
pub fn open(config: &str) -> Result<Box<dyn Notification>, String> {
    let config = EmailConfig::parse(config)?;
    let tls = match config.security {
        Security::Plain => Tls::None,
        Security::Tls => Tls::Wrapper(trust(&config)?),
        Security::StartTls => Tls::Required(trust(&config)?),
    };
    let timeout = Duration::from_millis(config.request.timeout_ms.unsigned_abs());
    let mut builder = SmtpTransport::builder_dangerous(&config.server)
        .port(config.port())
        .timeout(Some(timeout))
        .tls(tls);
    if let Login::Basic(user, password) = config.login.login() {
        builder = builder.credentials(Credentials::new(user, password));
    }
    Ok(Box::new(Email { transport: builder.build(), config }))
}

/// Whom we trust: Mozilla's roots, as everywhere, and those of a file.
fn trust(config: &EmailConfig) -> Result<TlsParameters, String> {
    let unusable = |error: lettre::transport::smtp::Error| format!("TLS cannot be used: {error}");
    let mut builder = TlsParameters::builder(config.server.clone())
        .certificate_store(CertificateStore::WebpkiRoots);
    for root in http::authorities(&config.request.ca_file)? {
        builder =
            builder.add_root_certificate(Certificate::from_der(root.to_vec()).map_err(unusable)?);
    }
    builder.build_rustls().map_err(unusable)
}

impl Email {
    /// Refuses a server that leads where nothing of ours goes; what cannot be resolved is told by
    /// whoever connects.
    fn refuse_target(&self) -> Result<(), Unavailable> {
        match store::targets::resolve(&self.config.server, self.config.port()) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(self.unavailable(&error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn unavailable(&self, why: &str) -> Unavailable {
        let (server, port) = (&self.config.server, self.config.port());
        Unavailable::because(format!("mail server {server}:{port} cannot be used: {why}"))
    }

    fn message(&self, notice: &Notice) -> Result<Message, String> {
        let subject: String =
            notice.sentence().chars().filter(|it| !it.is_control()).take(200).collect();
        let id = format!(
            "<{}.{}.{}@driftline>",
            notice.at_ms,
            notice.run,
            notice.occasion.name().replace(' ', "-")
        );
        let mut builder = Message::builder()
            .from(mailbox("from", &self.config.from)?)
            // The same message, told again, is the same one.
            .message_id(Some(id))
            .subject(subject)
            .header(ContentType::TEXT_PLAIN);
        for to in &self.config.to {
            builder = builder.to(mailbox("to", to)?);
        }
        builder.body(text(notice)).map_err(|error| error.to_string())
    }
}

/// What a message says.
fn text(notice: &Notice) -> String {
    let mut lines = vec![notice.sentence(), String::new()];
    let mut line = |label: &str, value: &str| lines.push(format!("{label}: {value}"));
    line("event", notice.occasion.name());
    if !notice.description.is_empty() {
        line("job", &notice.description);
    }
    if let Some(started) = notice.started_ms.and_then(time) {
        line("started", &started);
    }
    if let Some(at) = time(notice.at_ms) {
        line("time", &at);
    }
    for (state, count) in &notice.documents {
        line(&format!("documents {state}"), &count.to_string());
    }
    lines.push(String::new());
    lines.join("\n")
}

impl Notification for Email {
    fn check(&mut self) -> Result<(), Unavailable> {
        self.refuse_target()?;
        match self.transport.test_connection() {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.unavailable("it does not answer as a mail server does")),
            Err(error) => Err(self.unavailable(&error.to_string())),
        }
    }

    fn wants(&self, occasion: Occasion) -> bool {
        is_among(&self.config.events, occasion)
    }

    fn send(&mut self, notice: &Notice) -> Result<(), Unavailable> {
        self.refuse_target()?;
        let message = self.message(notice).map_err(|why| self.unavailable(&why))?;
        let sent = self.transport.send(&message);
        sent.map(|_| ()).map_err(|error| self.unavailable(&deepest(&error)))
    }
}

/// The error at the bottom, which says most.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut at = error.source();
    while let Some(next) = at {
        message = format!("{message}: {next}");
        at = next.source();
    }
    message
}

const SETTINGS: &[ConfigField] = &[
    ConfigField {
        name: "server",
        about: "the mail server",
        example: "mail.example.com",
        default: None,
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "port",
        about: "port of the mail server; 0 for the default: 587 with starttls, 465 with tls, 25 \
             with plain",
        example: "2525",
        default: Some("0"),
        kind: SettingKind::Number { least: 0, most: 65_535 },
    },
    ConfigField {
        name: "security",
        about: "encryption: STARTTLS, TLS from the start, or none",
        example: "tls",
        default: Some("starttls"),
        kind: SettingKind::Choice(Security::WORDS),
    },
    ConfigField {
        name: "from",
        about: "whom messages are from",
        example: "Crawler <crawler@example.com>",
        default: None,
        kind: SettingKind::Text,
    },
    ConfigField {
        name: "to",
        about: "who is written to",
        example: "admin@example.com",
        default: None,
        kind: SettingKind::List,
    },
    EVENTS,
    USER,
    PASSWORD,
    CA_FILE,
    TIMEOUT,
];

/// Registers notifications by mail with their settings and checks.
pub const CONNECTOR: Connector = Connector {
    settings: SETTINGS,
    not_destination: &["from", "to", "events", "timeout_ms"],
    check_config: |text| written(&EmailConfig::parse(text)?),
    ..base(ConnectionKind::Notification, "email", "the outcome of jobs, by e-mail")
};
