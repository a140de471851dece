//! A receiver of messages: documents one by one or in batches, removals by message or by
//! DELETE, signatures that are checked, and the ways in which it fails.

use super::server::{Reply, Request, Server};
use super::{Fault, ServerState, Shelf, UNACCEPTABLE};
use crate::connectors::webhook::signature::{SIGNATURE, TIMESTAMP, signature};
use serde_json::{Value as Json, json};

/// Such a server.
#[allow(missing_docs)]
pub struct Receiver {
    pub server: Server,
    /// What it keeps. Messages that are about no document are kept by their number.
    pub shelf: Shelf,
}

impl Receiver {
    /// Starts one that asks for no signature.
    pub fn start() -> Receiver {
        Receiver::at(0, Shelf::default(), None)
    }

    /// Starts one at a port, with what another has kept, and a secret that requests must
    /// be signed with.
    pub fn at(port: u16, shelf: Shelf, secret: Option<&str>) -> Receiver {
        let (mine, secret) = (shelf.clone(), secret.map(str::to_owned));
        let server = Server::at(port, move |request| {
            let reply = answer(&mut mine.kept(), request, secret.as_deref());
            mine.changed();
            reply
        });
        Receiver { server, shelf }
    }

    /// The messages that are about no document, in order.
    pub fn messages(&self) -> Vec<Json> {
        self.shelf.kept().documents.values().cloned().collect()
    }
}

fn is_signed(request: &Request, secret: &str) -> bool {
    let time = request.header(TIMESTAMP).unwrap_or_default();
    let expected = signature(secret, [time, &request.method, &request.target], &request.body);
    request.header(SIGNATURE) == Some(&format!("sha256={expected}"))
}

fn answer(kept: &mut ServerState, request: &Request, secret: Option<&str>) -> Reply {
    if request.method == "OPTIONS" {
        return Reply::status(204);
    }
    if secret.is_some_and(|secret| !is_signed(request, secret)) {
        return Reply::json(401, &json!("not signed"));
    }
    if kept.authorization.is_some()
        && request.header("authorization") != kept.authorization.as_deref()
    {
        return Reply::status(401);
    }
    kept.updates += 1;
    let fault = kept.faults.pop_front();
    match &fault {
        Some(Fault::Busy(seconds)) => {
            return Reply::status(429).with("retry-after", seconds.to_string());
        }
        Some(Fault::Status(status)) => return Reply::status(*status),
        _ => {}
    }
    if request.method == "DELETE" {
        let uri = request.query("uri").unwrap_or_else(|| request.path().to_owned());
        if kept.documents.remove(&uri).is_none() {
            return Reply::status(404);
        }
    } else {
        let said: Json = serde_json::from_slice(&request.body).unwrap();
        let changes = match said["changes"].as_array() {
            Some(changes) => changes.clone(),
            None => vec![said],
        };
        if changes.iter().any(|it| it.to_string().contains(UNACCEPTABLE)) {
            return Reply::json(422, &json!({"error": "unacceptable"}));
        }
        for change in &changes {
            take(kept, change);
        }
    }
    match fault {
        Some(Fault::Half) => Reply::Half,
        Some(Fault::Lost) => Reply::Close,
        _ => Reply::status(202),
    }
}

fn take(kept: &mut ServerState, change: &Json) {
    let uri = change["uri"].as_str().unwrap_or_default().to_owned();
    match change["action"].as_str() {
        Some("put") => {
            kept.documents.insert(uri, change["document"].clone());
        }
        Some("remove") => {
            kept.documents.remove(&uri);
        }
        _ => {
            let number = format!("{:06}", kept.documents.len());
            kept.documents.insert(number, change.clone());
        }
    }
}
