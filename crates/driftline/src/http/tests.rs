//! A server on a free port, and whoever calls it.

mod failures;
mod heads;
mod load;
mod requests;
mod roles;
mod secrets;
mod serving;
mod webindex;

use super::access::{ApiAccess, hash_of, new_token};
use super::dispatch::ApiState;
use super::log::Log;
use super::server::ApiServer;
use crate::verbs::context::VerbContext;
use reqwest::blocking::{Client, RequestBuilder, Response};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use store::Db;
use store::objects::{Location, Objects};
use store::tables::settings;
use store::tables::tokens::{self, Role, Token};

/// A server, and a token for each role.
struct Api {
    url: String,
    client: Client,
    tokens: Vec<(Role, String)>,
    served: Arc<ApiState>,
    log: Lines,
    serving: Option<ApiServer>,
    _folder: tempfile::TempDir,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// A token with a secret of its own.
fn given_token(db: &Db, id: i64, role: Role, areas: &[&str], expires_ms: Option<i64>) -> String {
    let secret = new_token().unwrap();
    let hash = hash_of(&secret);
    let token = Token {
        id,
        name: format!("t{id}"),
        role,
        areas: areas.iter().map(|it| (*it).to_owned()).collect(),
        created_ms: 1,
        expires_ms,
        used_ms: None,
        revoked_ms: None,
    };
    db.write(move |tx| tokens::create(tx, &token, &hash)).unwrap();
    secret
}

impl Api {
    /// Of rows that are there, and nothing else.
    fn of(db: &Db) -> Api {
        db.write(|tx| settings::freeze(tx, 4)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&Location::Directory(folder.path().join("objects"))).unwrap();
        Api::answering(VerbContext::of_database(db.clone(), Some(objects)), folder)
    }

    fn answering(context: VerbContext, folder: tempfile::TempDir) -> Api {
        let db = context.db.clone();
        let tokens = Role::ALL.into_iter().enumerate();
        let tokens = tokens
            .map(|(at, role)| (role, given_token(&db, i64::try_from(at).unwrap(), role, &[], None)))
            .collect();
        let log = Lines::default();
        let written = Arc::new(Log::to(Box::new(log.clone()), true));
        let access = ApiAccess::new(vec!["search.example".into()]);
        let served = Arc::new(ApiState::new(context, access, false, written, Box::new(|| ())));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let serving = ApiServer::start(listener, None, served.clone()).unwrap();
        let url = format!("http://{}", serving.address);
        let client = Client::new();
        Api { url, client, tokens, served, log, serving: Some(serving), _folder: folder }
    }

    fn token(&self, role: Role) -> &str {
        &self.tokens.iter().find(|it| it.0 == role).unwrap().1
    }

    fn request(&self, method: &str, path: &str, token: Option<&str>) -> RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, format!("{}{path}", self.url));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn send(&self, method: &str, path: &str, role: Role) -> Response {
        self.request(method, path, Some(self.token(role))).send().unwrap()
    }

    /// What an admin gets.
    fn get(&self, path: &str) -> (u16, Json) {
        status_and_json(self.send("GET", path, Role::Admin))
    }

    fn send_json(&self, method: &str, path: &str, body: &Json) -> (u16, Json) {
        let request = self.request(method, path, Some(self.token(Role::Admin)));
        let request = request.header("content-type", "application/json");
        status_and_json(request.body(body.to_string()).send().unwrap())
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.stop();
        }
    }
}

fn status_and_json(response: Response) -> (u16, Json) {
    let status = response.status().as_u16();
    let text = response.text().unwrap();
    (status, serde_json::from_str(&text).unwrap_or(json!(text)))
}
