//! How outputs and notifications ask servers: one blocking HTTP client with limits.
//!
//! An administrator has named the server, so private addresses are allowed here; metadata services
//! of clouds and this program itself are not ([`targets`]).
//! Invariants: every request ends within its time; of an answer no more than
//! [`ANSWER_BYTES_MAX`] are held; no redirect is followed, so that neither documents nor
//! logins reach a host that nobody named; no message shows a secret.

use crate::output::Unavailable;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use store::targets;
use url::Url;

pub use reqwest::Method;

/// Bytes of an answer: enough for a word on each document of the largest batch.
pub const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// How long opening a connection may take.
const CONNECT_MS_MAX: u64 = 10_000;
/// The longest rest that a server may ask for.
const RETRY_MS_MAX: i64 = 3_600_000;
/// How long a request may take unless something else is said.
pub const TIMEOUT_MS: i64 = 30_000;
/// Milliseconds that a request may take at least and at most.
pub const TIMEOUTS_MS: std::ops::RangeInclusive<i64> = 100..=600_000;
/// Characters of a server's own words that a message shows.
const SHOWN_MAX: usize = 300;

/// Where a server is, and how it is asked.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct ServerOptions<'a> {
    pub url: &'a str,
    pub login: Login,
    /// A file with certificates that are trusted beside the usual ones; empty for none.
    pub ca_file: &'a str,
    /// How long a request may take.
    pub timeout_ms: i64,
}

/// The credentials of requests to a server.
#[derive(Clone, Default)]
pub enum Login {
    /// No credentials.
    #[default]
    None,
    /// Somebody with a password.
    Basic(String, String),
    /// Somebody with a key: the whole `Authorization` header.
    Header(String),
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

/// A server, ready to be asked.
pub struct ServerClient {
    client: Client,
    base: Url,
    login: Login,
}

/// A request to the server of an output or a notification.
#[allow(missing_docs)]
pub struct ServerRequest<'a> {
    pub method: Method,
    pub url: Url,
    /// The type of what is sent.
    pub content_type: &'a str,
    pub body: Vec<u8>,
    /// What else the head says.
    pub headers: Vec<(&'static str, String)>,
}

impl ServerRequest<'_> {
    /// A question without a body.
    pub fn new(method: Method, url: Url) -> ServerRequest<'static> {
        ServerRequest { method, url, content_type: "", body: Vec::new(), headers: Vec::new() }
    }

    /// JSON that is sent.
    pub fn json(method: Method, url: Url, body: Vec<u8>) -> ServerRequest<'static> {
        ServerRequest { content_type: "application/json", body, ..ServerRequest::new(method, url) }
    }
}

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ServerResponse {
    pub status: u16,
    /// After how long it wants to be asked again.
    pub retry_ms: Option<i64>,
    pub body: Vec<u8>,
}

impl ServerResponse {
    /// Whether it has done what it was asked.
    pub fn is_done(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Its first words, for messages.
    pub fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// Whether the answer is about the server, whatever it is asked: it has no room, or
    /// it does not know us.
    pub fn unavailable(&self) -> Option<Unavailable> {
        let why = match self.status {
            401 | 403 | 407 => "it refuses our login",
            408 | 425 | 429 | 502 | 503 | 504 | 507 => "it has no room just now",
            _ => return None,
        };
        let why = match self.words() {
            words if words.is_empty() => format!("{why} ({})", self.status),
            words => format!("{why} ({}): {words}", self.status),
        };
        Some(Unavailable { why, retry_ms: self.retry_ms })
    }
}

/// A server's address, or why it is none.
pub fn address(field: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| {
        format!(
            "{field}: {text:?} is no address ({error}); write one such as http://localhost:9200"
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("{field}: an address begins with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{field}: a login does not belong here; use user and password"));
    }
    Ok(url)
}

/// Refuses a span that no request may take.
pub fn check_timeout(timeout_ms: i64) -> Result<(), String> {
    match TIMEOUTS_MS.contains(&timeout_ms) {
        true => Ok(()),
        false => Err("timeout_ms: a request takes from 100ms to 10min".to_owned()),
    }
}

impl ServerClient {
    /// Makes one ready; nothing is asked yet.
    pub fn new(access: ServerOptions<'_>) -> Result<ServerClient, String> {
        let timeout = Duration::from_millis(access.timeout_ms.max(1).unsigned_abs());
        let base = address("url", access.url)?;
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(timeout.min(Duration::from_millis(CONNECT_MS_MAX)))
            .timeout(timeout)
            .user_agent(concat!("driftline/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(trust(access.ca_file)?)
            .dns_resolver(Arc::new(GuardedResolver {
                port: base.port_or_known_default().unwrap_or(0),
            }))
            .build()
            .map_err(|error| format!("HTTP cannot be used: {}", reason(error)))?;
        Ok(ServerClient { client, base, login: access.login })
    }

    /// Its address with more segments.
    pub fn at(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// The address that the paths of requests are joined to.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Sends a request, and waits for the whole response.
    pub fn send(&self, request: ServerRequest<'_>) -> Result<ServerResponse, Unavailable> {
        self.refuse_address(&request.url)?;
        let mut builder = self.client.request(request.method, request.url);
        if !request.content_type.is_empty() {
            builder = builder.header("content-type", request.content_type);
        }
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if !request.body.is_empty() {
            builder = builder.body(request.body);
        }
        let response = self.logged_in(builder).send();
        let response = response.map_err(|error| self.unavailable(&reason(error)))?;
        self.read(response)
    }

    /// Refuses an address that stands in the URL itself, which no resolver is asked for.
    fn refuse_address(&self, url: &Url) -> Result<(), Unavailable> {
        let address = match url.host() {
            Some(url::Host::Ipv4(address)) => IpAddr::V4(address),
            Some(url::Host::Ipv6(address)) => IpAddr::V6(address),
            _ => return Ok(()),
        };
        let at = SocketAddr::new(address, url.port_or_known_default().unwrap_or(0));
        targets::refused(at).map_or(Ok(()), |why| Err(self.unavailable(why)))
    }

    fn logged_in(&self, builder: RequestBuilder) -> RequestBuilder {
        match &self.login {
            Login::None => builder,
            Login::Basic(user, password) => builder.basic_auth(user, Some(password)),
            Login::Header(value) => builder.header("authorization", value),
        }
    }

    fn read(&self, response: Response) -> Result<ServerResponse, Unavailable> {
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|it| it.to_str().ok());
        if (300..400).contains(&status) {
            let place = header(LOCATION).unwrap_or("another place").to_owned();
            return Err(self.unavailable(&format!(
                "it redirects to {place:?} ({status}), which is not followed; name that address \
                 if it is right"
            )));
        }
        let retry_ms = header(RETRY_AFTER).and_then(retry_ms);
        let mut body = Vec::new();
        let read = response.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut body);
        read.map_err(|error| {
            self.unavailable(&format!("its answer broke off: {}", deepest(&error)))
        })?;
        if body.len() as u64 > ANSWER_BYTES_MAX {
            return Err(
                self.unavailable(&format!("its answer is longer than {ANSWER_BYTES_MAX} bytes"))
            );
        }
        Ok(ServerResponse { status, retry_ms, body })
    }

    /// It cannot be used, and this is its name.
    pub fn unavailable(&self, why: &str) -> Unavailable {
        Unavailable::because(format!(
            "{} cannot be used: {why}",
            self.base.origin().ascii_serialization()
        ))
    }

    /// Refuses a response that says that nothing was done.
    pub fn check_done(&self, response: &ServerResponse) -> Result<(), Unavailable> {
        match response.is_done() {
            true => Ok(()),
            false => Err(self.unexpected(response)),
        }
    }

    /// What an answer means that nobody expected.
    pub fn unexpected(&self, response: &ServerResponse) -> Unavailable {
        match response.unavailable() {
            Some(unavailable) => {
                Unavailable { why: self.unavailable(&unavailable.why).why, ..unavailable }
            }
            None => {
                self.unavailable(&format!("it answers {}: {}", response.status, response.words()))
            }
        }
    }
}

/// Resolves names, and refuses those that lead where nothing of ours goes.
struct GuardedResolver {
    /// The port of the server.
    port: u16,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, port) = (name.as_str().to_owned(), self.port);
        Box::pin(async move {
            let found =
                tokio::task::spawn_blocking(move || targets::resolve(&host, port)).await??;
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Whom we trust: Mozilla's roots, as everywhere, and those of a file.
fn trust(ca_file: &str) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in authorities(ca_file)? {
        roots.add(root).map_err(|error| format!("ca_file {ca_file:?}: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The certificates of a file; none if no file is named.
pub fn authorities(ca_file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    if ca_file.is_empty() {
        return Ok(Vec::new());
    }
    let unreadable = |error: rustls::pki_types::pem::Error| {
        format!("ca_file {ca_file:?} cannot be read: {error}; name a file with certificates in PEM")
    };
    let found = CertificateDer::pem_file_iter(ca_file).map_err(unreadable)?;
    let found: Vec<CertificateDer<'static>> =
        found.collect::<Result<_, _>>().map_err(unreadable)?;
    match found.is_empty() {
        true => Err(format!("ca_file {ca_file:?} has no certificate in it")),
        false => Ok(found),
    }
}

/// How long a server wants to be left alone: seconds, or a date (RFC 9110, 10.2.3).
fn retry_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let wait_ms = match text.parse::<i64>() {
        Ok(seconds) => seconds.checked_mul(1_000)?,
        Err(_) => {
            let at: Timestamp = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
            at.as_millisecond() - store::clock::now_ms()
        }
    };
    Some(wait_ms.clamp(0, RETRY_MS_MAX))
}

/// Why a request failed, without its address, which may hold what is secret.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    match error.is_timeout() {
        true => "it does not answer in time".to_owned(),
        false => deepest(&error),
    }
}

/// The error at the bottom, which says most.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(next) = at.source() {
        at = next;
    }
    at.to_string()
}

#[cfg(test)]
mod tests;
