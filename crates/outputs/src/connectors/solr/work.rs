//! Puts documents into Solr, and removes them.
//!
//! Solr refuses a whole batch because of one document, so a batch that is refused is
//! halved until the bad one is alone. Invariants: a document has one identifier for ever,
//! so that whatever is sent may be sent again; one that Solr does not take is removed, so
//! that no older version stays.

use super::SolrConfig;
use crate::connectors::isolation::{BatchOutcome, isolate, unless_unavailable};
use crate::fields::{id_of, to_json};
use crate::http::{Method, ServerClient, ServerRequest, ServerResponse};
use crate::output::{Operation, Outcome, Output, Unavailable, Wants};
use serde_json::{Value as Json, json};

/// Documents of one request.
const BATCH_MAX: usize = 100;
/// Bytes of a request, beyond one document.
const REQUEST_BYTES_MAX: usize = 8 << 20;

/// A Solr output, open.
pub struct Solr {
    server: ServerClient,
    config: SolrConfig,
}

impl Solr {
    /// Opens it; nothing is asked yet.
    pub fn open(config: &str) -> Result<Solr, String> {
        let config = SolrConfig::parse(config)?;
        let server = config.request.server(&config.url, config.login.login())?;
        Ok(Solr { server, config })
    }

    fn update(&self, body: String) -> Result<ServerResponse, Unavailable> {
        let mut url = self.server.at(&["update"]);
        url.query_pairs_mut().append_pair("wt", "json");
        if self.config.commit_within_ms > 0 {
            let within = self.config.commit_within_ms.to_string();
            url.query_pairs_mut().append_pair("commitWithin", &within);
        }
        self.server.send(ServerRequest::json(Method::POST, url, body.into_bytes()))
    }

    fn verdict(&self, response: &ServerResponse) -> Result<BatchOutcome, Unavailable> {
        match response.status {
            200..300 => Ok(BatchOutcome::Done),
            // There is no such core, whatever is sent there.
            404 | 405 => Err(self.server.unexpected(response)),
            _ if response.unavailable().is_some() => Err(self.server.unexpected(response)),
            409 => Ok(BatchOutcome::Broken(self.server.unexpected(response))),
            413 => Ok(BatchOutcome::Refused { code: "TOOLARGE", detail: error_text(response) }),
            400..500 => Ok(BatchOutcome::Refused { code: "SCHEMA", detail: error_text(response) }),
            _ => Ok(BatchOutcome::Broken(self.server.unexpected(response))),
        }
    }

    /// Removes documents; those that are not there are none.
    fn remove(&self, uris: &[&str]) -> Result<(), Unavailable> {
        for some in uris.chunks(BATCH_MAX) {
            let ids: Vec<String> = some.iter().map(|uri| id_of(uri)).collect();
            let response = self.update(json!({"delete": ids}).to_string())?;
            if !matches!(self.verdict(&response)?, BatchOutcome::Done) {
                return Err(self.server.unexpected(&response));
            }
        }
        Ok(())
    }

    fn document(&self, operation: &Operation) -> Option<String> {
        let mut json = to_json(&operation.uri, operation.content.as_ref()?);
        json.insert(self.config.id_field.clone(), id_of(&operation.uri).into());
        Some(Json::Object(json).to_string())
    }

    /// Puts documents, a request's worth after the other.
    fn put(&self, documents: &[String]) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(documents.len());
        while outcomes.len() < documents.len() {
            let rest = &documents[outcomes.len()..];
            if let Some(Outcome::Later(unavailable)) = outcomes.last() {
                let later = Outcome::Later(unavailable.clone());
                outcomes.extend(rest.iter().map(|_| later.clone()));
                continue;
            }
            let mut bytes = 0;
            let fits = |it: &&String| {
                bytes += it.len();
                bytes <= REQUEST_BYTES_MAX
            };
            let count = rest.iter().take_while(fits).count().max(1);
            outcomes.extend(isolate(count, BATCH_MAX, |range| {
                let response = self.update(format!("[{}]", rest[range].join(",")))?;
                self.verdict(&response)
            }));
        }
        outcomes
    }
}

impl Output for Solr {
    fn check(&mut self) -> Result<(), Unavailable> {
        let url = self.server.at(&["schema", "uniquekey"]);
        let response = self.server.send(ServerRequest::new(Method::GET, url))?;
        if !response.is_done() {
            return Err(self.server.unexpected(&response));
        }
        let key: Json = serde_json::from_slice(&response.body).unwrap_or_default();
        match key["uniqueKey"].as_str() {
            Some(key) if key != self.config.id_field => Err(self.server.unavailable(&format!(
                "documents are known by the field {key:?} there; set id_field={key}"
            ))),
            _ => Ok(()),
        }
    }

    fn wants(&self) -> Wants {
        Wants::Facts
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, Unavailable> {
        let mut gone: Vec<&str> = Vec::new();
        for operation in operations {
            gone.extend(
                operation.stale.iter().filter(|uri| **uri != operation.uri).map(String::as_str),
            );
            if operation.content.is_none() {
                gone.push(&operation.uri);
            }
        }
        self.remove(&gone)?;
        let mut outcomes = vec![Outcome::Taken; operations.len()];
        let there: Vec<usize> =
            (0..operations.len()).filter(|at| operations[*at].content.is_some()).collect();
        let documents: Vec<String> =
            there.iter().filter_map(|at| self.document(&operations[*at])).collect();
        let mut rejected = Vec::new();
        for (at, outcome) in there.into_iter().zip(self.put(&documents)) {
            if matches!(outcome, Outcome::Rejected { .. }) {
                rejected.push(at);
            }
            outcomes[at] = outcome;
        }
        // What is rejected must not stay in an older version.
        let uris: Vec<&str> = rejected.iter().map(|at| operations[*at].uri.as_str()).collect();
        if let Err(unavailable) = self.remove(&uris) {
            rejected.iter().for_each(|at| outcomes[*at] = Outcome::Later(unavailable.clone()));
        }
        unless_unavailable(outcomes)
    }

    fn job_over(&mut self) -> Result<(), Unavailable> {
        if !self.config.commit {
            return Ok(());
        }
        let response = self.update(json!({"commit": {}}).to_string())?;
        self.server.check_done(&response)
    }
}

/// What Solr says is wrong, in its own words.
fn error_text(response: &ServerResponse) -> String {
    let json: Json = serde_json::from_slice(&response.body).unwrap_or_default();
    match json.pointer("/error/msg").and_then(Json::as_str) {
        Some(message) => format!("the server answers {}: {message}", response.status),
        None => format!("the server answers {}: {}", response.status, response.words()),
    }
}
