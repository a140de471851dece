//! Sends messages, one for each document or for several.
//!
//! A message is `{"action": "put", "uri": …, "document": {…}}` or `{"action": "remove",
//! "uri": …}`; several are `{"changes": […]}`. Invariants: whatever is sent may be sent
//! again; a document that the receiver does not want is removed there, so that no older
//! version stays.

use super::signature::sign;
use super::{ID, Removal, SendMethod, URI, WebhookConfig};
use crate::connectors::isolation::{BatchOutcome, isolate, unless_unavailable};
use crate::connectors::worst_of_each;
use crate::fields;
use crate::http::{Method, ServerClient, ServerRequest, ServerResponse};
use crate::output::{Operation, Outcome, Output, Unavailable, Wants};
use data_encoding::HEXLOWER;
use page::ids::hash128;
use serde_json::{Value as Json, json};
use store::clock;
use url::Url;
use url::form_urlencoded::byte_serialize;

/// Bytes of one message, beyond one document.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// An output that posts batches of changes to a URL.
pub struct Webhook {
    server: ServerClient,
    config: WebhookConfig,
}

/// Something to be told.
#[derive(Clone)]
struct WebhookMessage {
    uri: String,
    /// The message about it, as JSON.
    message: String,
    is_removal: bool,
}

impl Webhook {
    /// Opens it; nothing is asked yet.
    pub fn open(config: &str) -> Result<Webhook, String> {
        let config = WebhookConfig::parse(config)?;
        let server = config.request.server(&config.url, config.login.login())?;
        Ok(Webhook { server, config })
    }

    /// Where a document is told of.
    fn address(&self, uri: &str, is_removal: bool) -> Result<Url, Unavailable> {
        let id = || HEXLOWER.encode(&hash128(uri.as_bytes()));
        let escaped: String = byte_serialize(uri.as_bytes()).collect();
        let text = self.config.url.replace(URI, &escaped.replace('+', "%20")).replace(ID, &id());
        let mut url =
            Url::parse(&text).map_err(|error| self.server.unavailable(&error.to_string()))?;
        if is_removal && !self.config.names_documents() {
            url.query_pairs_mut().append_pair("uri", uri);
        }
        Ok(url)
    }

    fn request(&self, changes: &[WebhookMessage]) -> Result<ServerRequest<'static>, Unavailable> {
        let method = match self.config.method {
            SendMethod::Put => Method::PUT,
            SendMethod::Post => Method::POST,
        };
        let [one] = changes else {
            let all: Vec<&str> = changes.iter().map(|it| it.message.as_str()).collect();
            let body = format!(r#"{{"changes":[{}]}}"#, all.join(","));
            return Ok(ServerRequest::json(method, self.server.base().clone(), body.into_bytes()));
        };
        if one.is_removal && self.config.removal == Removal::Delete {
            return Ok(ServerRequest::new(Method::DELETE, self.address(&one.uri, true)?));
        }
        let body = match self.config.batch {
            1 => one.message.clone(),
            _ => format!(r#"{{"changes":[{}]}}"#, one.message),
        };
        Ok(ServerRequest::json(method, self.address(&one.uri, false)?, body.into_bytes()))
    }

    fn send(&self, changes: &[WebhookMessage]) -> Result<BatchOutcome, Unavailable> {
        let mut request = self.request(changes)?;
        let is_delete = request.method == Method::DELETE;
        if let Some(secret) = &self.config.secret {
            sign(&mut request, secret, clock::now_ms());
        }
        let response = self.server.send(request)?;
        match response.status {
            200..300 => Ok(BatchOutcome::Done),
            404 | 410 if is_delete => Ok(BatchOutcome::Done),
            // The address itself is wrong, whatever is sent there.
            404 | 405 | 410 => Err(self.server.unexpected(&response)),
            _ if response.unavailable().is_some() => Err(self.server.unexpected(&response)),
            400..500 => {
                Ok(BatchOutcome::Refused { code: "REFUSED", detail: error_text(&response) })
            }
            _ => Ok(BatchOutcome::Broken(self.server.unexpected(&response))),
        }
    }

    /// Sends changes. What is refused is removed, so that nothing of it stays.
    fn send_all(&self, changes: &[WebhookMessage]) -> Vec<Outcome> {
        let most = usize::try_from(self.config.batch).unwrap_or(1);
        let ranges = by_size(changes);
        let mut outcomes = Vec::with_capacity(changes.len());
        for range in ranges {
            let part = &changes[range];
            if let Some(Outcome::Later(unavailable)) = outcomes.last() {
                // Who is away is not asked again in the same breath.
                let later = Outcome::Later(unavailable.clone());
                outcomes.extend(part.iter().map(|_| later.clone()));
                continue;
            }
            let sent = isolate(part.len(), most, |range| self.send(&part[range]));
            for (change, outcome) in part.iter().zip(sent) {
                outcomes.push(match outcome {
                    Outcome::Rejected { .. } if !change.is_removal => {
                        self.after_refusal(change, outcome)
                    }
                    outcome => outcome,
                });
            }
        }
        outcomes
    }

    fn after_refusal(&self, change: &WebhookMessage, rejected: Outcome) -> Outcome {
        match self.send(&[removal(&change.uri)]) {
            Ok(BatchOutcome::Done) => rejected,
            // It has not wanted the document, nor does it know what a removal is.
            Ok(BatchOutcome::Refused { .. }) => rejected,
            Ok(BatchOutcome::Broken(unavailable)) => {
                Outcome::Trouble { code: "SERVER", detail: unavailable.why }
            }
            Err(unavailable) => Outcome::Later(unavailable),
        }
    }
}

impl Output for Webhook {
    fn check(&mut self) -> Result<(), Unavailable> {
        // Whatever it says to this, it is there and can be spoken to.
        self.server
            .send(ServerRequest::new(Method::OPTIONS, self.address("check", false)?))
            .map(|_| ())
    }

    fn wants(&self) -> Wants {
        Wants::Facts
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, Unavailable> {
        let (mut changes, mut ends) = (Vec::new(), Vec::new());
        for operation in operations {
            let stale = operation.stale.iter().filter(|uri| **uri != operation.uri);
            changes.extend(stale.map(|uri| removal(uri)));
            changes.push(match &operation.content {
                Some(content) => {
                    let document = Json::Object(fields::to_json(&operation.uri, content));
                    let message =
                        json!({"action": "put", "uri": operation.uri, "document": document});
                    let (uri, message) = (operation.uri.clone(), message.to_string());
                    WebhookMessage { uri, message, is_removal: false }
                }
                None => removal(&operation.uri),
            });
            ends.push(changes.len());
        }
        unless_unavailable(worst_of_each(&self.send_all(&changes), &ends))
    }
}

fn removal(uri: &str) -> WebhookMessage {
    let message = json!({"action": "remove", "uri": uri}).to_string();
    WebhookMessage { uri: uri.to_owned(), message, is_removal: true }
}

fn error_text(response: &ServerResponse) -> String {
    match response.words() {
        words if words.is_empty() => format!("the receiver answers {}", response.status),
        words => format!("the receiver answers {}: {words}", response.status),
    }
}

/// Ranges of changes whose messages are not too long together.
fn by_size(changes: &[WebhookMessage]) -> Vec<std::ops::Range<usize>> {
    let (mut ranges, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (at, change) in changes.iter().enumerate() {
        if at > begin && bytes + change.message.len() > MESSAGE_BYTES_MAX {
            ranges.push(begin..at);
            (begin, bytes) = (at, 0);
        }
        bytes += change.message.len();
    }
    if begin < changes.len() {
        ranges.push(begin..changes.len());
    }
    ranges
}
