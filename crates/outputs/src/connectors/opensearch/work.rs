//! Puts documents into an index, and removes them.
//!
//! Invariants: a document has one identifier for ever, so that whatever is sent may be
//! sent again; one that the index does not take is removed from it, so that no older
//! version stays; what a server has no room for is nobody's fault.

use super::OpenSearchConfig;
use super::bulk::{self, BulkAction};
use crate::connectors::isolation::unless_unavailable;
use crate::connectors::worst_of_each;
use crate::http::{Login, Method, ServerClient, ServerRequest, ServerResponse};
use crate::output::{Operation, Outcome, Output, Unavailable, Wants};

/// An OpenSearch output, open.
pub struct OpenSearch {
    server: ServerClient,
    config: OpenSearchConfig,
}

impl OpenSearch {
    /// Opens it; nothing is asked yet.
    pub fn open(config: &str) -> Result<OpenSearch, String> {
        let config = OpenSearchConfig::parse(config)?;
        let login = match &config.api_key {
            Some(key) => Login::Header(format!("ApiKey {key}")),
            None => config.login.login(),
        };
        Ok(OpenSearch { server: config.request.server(&config.url, login)?, config })
    }

    /// Sends actions, in order, and says what came of each. When the server is away, so
    /// it is for all that follow.
    fn send_all(&self, actions: &[BulkAction]) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(actions.len());
        // After a request that was too large, smaller ones are sent.
        let mut most = usize::MAX;
        while outcomes.len() < actions.len() {
            let rest = &actions[outcomes.len()..];
            let count = bulk::fitting(rest).min(most);
            match self.send(&rest[..count]) {
                Ok(BulkOutcome::Each(each)) => outcomes.extend(each),
                Ok(BulkOutcome::TooLarge) if count > 1 => most = count / 2,
                Ok(BulkOutcome::TooLarge) => {
                    let detail = "the server takes no request of this size".to_owned();
                    outcomes.push(Outcome::Rejected { code: "TOOLARGE", detail });
                }
                Err(unavailable) => {
                    let later = |_: &BulkAction| Outcome::Later(unavailable.clone());
                    outcomes.extend(rest.iter().map(later));
                }
            }
        }
        outcomes
    }

    fn send(&self, actions: &[BulkAction]) -> Result<BulkOutcome, Unavailable> {
        let lines: String = actions.iter().map(|it| it.lines.as_str()).collect();
        let url = self.server.at(&[&self.config.index, "_bulk"]);
        let request = ServerRequest {
            content_type: "application/x-ndjson",
            body: lines.into_bytes(),
            ..ServerRequest::new(Method::POST, url)
        };
        let response = self.server.send(request)?;
        match response.status {
            413 => Ok(BulkOutcome::TooLarge),
            // An index that is gone has nothing that could be removed.
            404 if is_no_index(&response) && actions.iter().all(|it| it.is_delete) => {
                Ok(BulkOutcome::Each(vec![Outcome::Taken; actions.len()]))
            }
            _ if response.is_done() => {
                let each = bulk::outcomes(&response.body, actions);
                let mut each = each.map_err(|why| self.server.unavailable(&why))?;
                for outcome in &mut each {
                    if let Outcome::Later(unavailable) = outcome {
                        let why = self.server.unavailable(&unavailable.why).why;
                        *outcome = Outcome::Later(Unavailable { why, retry_ms: response.retry_ms });
                    }
                }
                Ok(BulkOutcome::Each(each))
            }
            _ => Err(self.server.unexpected(&response)),
        }
    }
}

/// What came of a request.
enum BulkOutcome {
    /// This, of each action.
    Each(Vec<Outcome>),
    /// It is too large.
    TooLarge,
}

impl Output for OpenSearch {
    fn check(&mut self) -> Result<(), Unavailable> {
        let response = self
            .server
            .send(ServerRequest::new(Method::GET, self.server.at(&[&self.config.index])))?;
        // One that is not there yet is made by the first document.
        match response.is_done() || is_no_index(&response) {
            true => Ok(()),
            false => Err(self.server.unexpected(&response)),
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
        let (mut actions, mut ends) = (Vec::new(), Vec::new());
        for operation in operations {
            let stale = operation.stale.iter().filter(|uri| **uri != operation.uri);
            actions.extend(stale.map(|uri| BulkAction::delete(uri)));
            actions.push(match &operation.content {
                Some(content) => BulkAction::index(&operation.uri, content),
                None => BulkAction::delete(&operation.uri),
            });
            ends.push(actions.len());
        }
        let sent = self.send_all(&actions);
        let mut outcomes = worst_of_each(&sent, &ends);
        self.remove_rejected(operations, &mut outcomes);
        unless_unavailable(outcomes)
    }

    fn job_over(&mut self) -> Result<(), Unavailable> {
        if !self.config.refresh {
            return Ok(());
        }
        let url = self.server.at(&[&self.config.index, "_refresh"]);
        let response = self.server.send(ServerRequest::new(Method::POST, url))?;
        match response.is_done() || is_no_index(&response) {
            true => Ok(()),
            false => Err(self.server.unexpected(&response)),
        }
    }
}

impl OpenSearch {
    /// What is rejected must not stay in an older version.
    fn remove_rejected(&self, operations: &[Operation], outcomes: &mut [Outcome]) {
        let is_rejected = |it: &Outcome| matches!(it, Outcome::Rejected { .. });
        let rejected: Vec<usize> =
            (0..operations.len()).filter(|at| is_rejected(&outcomes[*at])).collect();
        let removals: Vec<BulkAction> =
            rejected.iter().map(|at| BulkAction::delete(&operations[*at].uri)).collect();
        for (at, removed) in rejected.into_iter().zip(self.send_all(&removals)) {
            if removed != Outcome::Taken {
                outcomes[at] = removed;
            }
        }
    }
}

fn is_no_index(response: &ServerResponse) -> bool {
    let body = String::from_utf8_lossy(&response.body);
    response.status == 404 && body.contains("index_not_found_exception")
}
