//! Who may call the API: by which name of the server, with which token, how often.
//!
//! Invariants: without a token a caller is nobody; a token is looked up by its hash, and
//! never in a URL; nobody calls more often than [`CALLS_A_SECOND`] for long.

use super::problem::Problem;
use crate::verbs::access::Caller;
use axum::http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use store::tables::tokens;
use store::{Db, clock};

/// Calls of a token in a second, in the long run.
pub const CALLS_A_SECOND: f64 = 500.0;
/// Calls of a token at once.
pub const CALLS_AT_ONCE: f64 = 1_000.0;
/// Tokens whose calls are counted; beyond it they are counted anew.
const CALLERS_MAX: usize = 10_000;
/// What a token of ours begins with, so that it is known when it is found somewhere.
pub const PREFIX: &str = "dl_";

/// Names of this machine for itself.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

#[derive(Default)]
pub struct ApiAccess {
    /// Names by which it may be called, beside those of this machine for itself.
    hosts: Vec<String>,
    calls: Mutex<HashMap<i64, (f64, Instant)>>,
}

impl ApiAccess {
    /// For a server that is known by these names, too.
    pub fn new(hosts: Vec<String>) -> ApiAccess {
        ApiAccess { hosts, calls: Mutex::default() }
    }

    /// Whether the server is known by a name. A page somewhere else that makes its own name
    /// lead here is not answered.
    pub fn knows_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
            _ => host,
        };
        let own = OWN_NAMES.into_iter().chain(self.hosts.iter().map(String::as_str));
        own.into_iter().any(|it| it.eq_ignore_ascii_case(name))
    }

    pub fn caller(&self, db: &Db, headers: &HeaderMap) -> Result<Caller, Problem> {
        let refused = |detail: &str| Problem::new(StatusCode::UNAUTHORIZED, detail);
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(refused(
                "a token is required: Authorization: Bearer TOKEN; create one with `driftline \
                 token create`",
            ));
        };
        let text = value.to_str().unwrap_or_default();
        let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(refused("send the token as: Authorization: Bearer TOKEN"));
        }
        let (hash, now_ms) = (hash_of(token.trim()), clock::now_ms());
        let found = db.read(move |tx| tokens::find(tx, &hash, now_ms));
        let found = found.map_err(|error| Problem::of(&anyhow::Error::new(error)))?;
        let found = found.ok_or_else(|| refused("the token is invalid, expired or revoked"))?;
        if !self.may_call(found.id, Instant::now()) {
            let often =
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests with this token");
            return Err(often.with_caller(&Caller::of(found)));
        }
        if found.is_use_due(now_ms) {
            let id = found.id;
            // If this cannot be written, the next call writes it.
            let _ = db.write(move |tx| tokens::used(tx, id, now_ms));
        }
        Ok(Caller::of(found))
    }

    /// Counts a call of a token; whether it is not one too many.
    pub fn may_call(&self, id: i64, now: Instant) -> bool {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= CALLERS_MAX {
            calls.clear();
        }
        let (left, at) = calls.entry(id).or_insert((CALLS_AT_ONCE, now));
        let earned = now.duration_since(*at).as_secs_f64() * CALLS_A_SECOND;
        (*left, *at) = ((*left + earned).min(CALLS_AT_ONCE), now);
        let may = *left >= 1.0;
        if may {
            *left -= 1.0;
        }
        may
    }
}

pub fn new_token() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(format!("{PREFIX}{}", data_encoding::BASE64URL_NOPAD.encode(&bytes)))
}

/// What is kept of a token.
pub fn hash_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
