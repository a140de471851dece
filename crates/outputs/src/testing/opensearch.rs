//! An OpenSearch of one index: bulk actions with an item for each, refreshes, and the
//! ways in which it fails.

use super::server::{Reply, Request, Server};
use super::{Fault, ServerState, Shelf, UNACCEPTABLE};
use serde_json::{Value as Json, json};

/// Such a server.
#[allow(missing_docs)]
pub struct OpenSearch {
    pub server: Server,
    /// What it keeps.
    pub shelf: Shelf,
}

impl OpenSearch {
    /// Starts one, empty.
    pub fn start() -> OpenSearch {
        OpenSearch::at(0, Shelf::default())
    }

    /// Starts one at a port, with what another has kept.
    pub fn at(port: u16, shelf: Shelf) -> OpenSearch {
        let mine = shelf.clone();
        let server = Server::at(port, move |request| {
            let reply = answer(&mut mine.kept(), request);
            mine.changed();
            reply
        });
        OpenSearch { server, shelf }
    }
}

fn answer(kept: &mut ServerState, request: &Request) -> Reply {
    if kept.authorization.is_some()
        && request.header("authorization") != kept.authorization.as_deref()
    {
        return Reply::json(401, &json!({"error": {"type": "security_exception"}, "status": 401}));
    }
    let path = request.path();
    match (request.method.as_str(), path.rsplit('/').next().unwrap_or_default()) {
        ("POST", "_refresh") => {
            kept.commits += 1;
            Reply::json(200, &json!({"_shards": {"total": 1, "successful": 1, "failed": 0}}))
        }
        ("POST", "_bulk") => bulk(kept, request),
        ("GET", _) => Reply::json(404, &json!({"error": {"type": "index_not_found_exception"}})),
        _ => Reply::status(405),
    }
}

fn bulk(kept: &mut ServerState, request: &Request) -> Reply {
    kept.updates += 1;
    if kept.bytes_max.is_some_and(|most| request.body.len() > most) {
        return Reply::status(413);
    }
    assert_eq!(request.header("content-type"), Some("application/x-ndjson"));
    let fault = kept.faults.pop_front();
    match &fault {
        Some(Fault::Busy(seconds)) => {
            let error = json!({"error": {"type": "circuit_breaking_exception"}, "status": 429});
            return Reply::json(429, &error).with("retry-after", seconds.to_string());
        }
        Some(Fault::Status(status)) => return Reply::status(*status),
        _ => {}
    }
    let mut items = Vec::new();
    let text = request.text();
    assert!(text.ends_with('\n'), "the last line has its end");
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let action: Json = serde_json::from_str(line).unwrap();
        let (name, head) = action.as_object().unwrap().iter().next().unwrap();
        let id = head["_id"].as_str().unwrap().to_owned();
        assert!(id.len() <= 512, "an identifier has at most 512 bytes");
        let document = (name == "index").then(|| lines.next().unwrap());
        let refused = match &fault {
            Some(Fault::BusyAfter(count)) if items.len() >= *count => {
                Some((429, "es_rejected_execution_exception", "rejected execution of task"))
            }
            Some(Fault::Conflict) => {
                Some((409, "version_conflict_engine_exception", "version conflict"))
            }
            _ if document.is_some_and(|it| it.contains(UNACCEPTABLE)) => {
                Some((400, "mapper_parsing_exception", "failed to parse field [text]"))
            }
            _ => None,
        };
        let status = match (refused, document) {
            (Some((status, _, _)), _) => status,
            (None, Some(document)) => {
                let document = serde_json::from_str(document).unwrap();
                if kept.documents.insert(id.clone(), document).is_some() { 200 } else { 201 }
            }
            (None, None) if kept.documents.remove(&id).is_some() => 200,
            (None, None) => 404,
        };
        let mut item = json!({"_index": "web", "_id": id, "status": status});
        if let Some((_, kind, reason)) = refused {
            let cause = json!({"type": "illegal_argument_exception", "reason": "no such thing"});
            item["error"] = json!({"type": kind, "reason": reason, "caused_by": cause});
        }
        items.push(json!({ name: item }));
    }
    let has_errors = items.iter().any(|it| it.to_string().contains("\"error\""));
    match fault {
        Some(Fault::Half) => Reply::Half,
        Some(Fault::Lost) => Reply::Close,
        _ => Reply::json(200, &json!({"took": 3, "errors": has_errors, "items": items})),
    }
}
