//! A Solr of one core: adds that are taken whole or not at all, deletions by id, commits,
//! and the ways in which it fails.

use super::server::{Reply, Request, Server};
use super::{Fault, ServerState, Shelf, UNACCEPTABLE};
use serde_json::{Value as Json, json};

/// Such a server.
#[allow(missing_docs)]
pub struct Solr {
    pub server: Server,
    /// What it keeps.
    pub shelf: Shelf,
}

impl Solr {
    /// Starts one, empty.
    pub fn start() -> Solr {
        Solr::at(0, Shelf::default())
    }

    /// Starts one at a port, with what another has kept.
    pub fn at(port: u16, shelf: Shelf) -> Solr {
        let mine = shelf.clone();
        let server = Server::at(port, move |request| {
            let reply = answer(&mut mine.kept(), request);
            mine.changed();
            reply
        });
        Solr { server, shelf }
    }

    /// The address of its core.
    pub fn url(&self) -> String {
        format!("{}/solr/web", self.server.url())
    }
}

fn done() -> Reply {
    Reply::json(200, &json!({"responseHeader": {"status": 0, "QTime": 1}}))
}

fn refuse(status: u16, message: &str) -> Reply {
    let error =
        json!({"metadata": ["error-class", "SolrException"], "msg": message, "code": status});
    Reply::json(status, &json!({"responseHeader": {"status": status}, "error": error}))
}

fn answer(kept: &mut ServerState, request: &Request) -> Reply {
    if kept.authorization.is_some()
        && request.header("authorization") != kept.authorization.as_deref()
    {
        return refuse(401, "Authentication required");
    }
    match (request.method.as_str(), request.path()) {
        ("GET", "/solr/web/schema/uniquekey") => Reply::json(200, &json!({"uniqueKey": "id"})),
        ("POST", "/solr/web/update") => update(kept, request),
        _ => refuse(404, "no such core"),
    }
}

fn update(kept: &mut ServerState, request: &Request) -> Reply {
    assert_eq!(request.header("content-type"), Some("application/json"));
    let said: Json = serde_json::from_slice(&request.body).unwrap();
    if said["commit"].is_object() {
        kept.commits += 1;
        return done();
    }
    kept.updates += 1;
    let fault = kept.faults.pop_front();
    match &fault {
        Some(Fault::Busy(seconds)) => {
            return refuse(503, "overloaded").with("retry-after", seconds.to_string());
        }
        Some(Fault::Status(status)) => return refuse(*status, "it failed"),
        Some(Fault::Conflict) => return refuse(409, "version conflict"),
        _ => {}
    }
    if let Some(documents) = said.as_array() {
        if let Some(bad) = documents.iter().find(|it| it.to_string().contains(UNACCEPTABLE)) {
            let message = format!("ERROR: [doc={}] Error adding field 'text'", bad["id"]);
            return refuse(400, &message);
        }
        for document in documents {
            let id = document["id"].as_str().unwrap().to_owned();
            kept.documents.insert(id, document.clone());
        }
    } else if let Some(ids) = said["delete"].as_array() {
        for id in ids {
            kept.documents.remove(id.as_str().unwrap());
        }
    }
    match fault {
        Some(Fault::Half) => Reply::Half,
        Some(Fault::Lost) => Reply::Close,
        _ => done(),
    }
}
