//! What went wrong, as RFC 9457 says it: problem+json, with a number to ask for and no
//! internals.
//!
//! Invariant: what the caller is told is a sentence about the request: 400, 404, 409 and the
//! like, with the text of the [refusal](crate::refusal). Every other error is ours: 500 or 503,
//! and what it is about goes to the log, whole, under the number that the caller has.

use crate::refusal;
use crate::verbs::access::{Caller, TokenForbids};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use store::clock;

/// Problems of this process, numbered.
static NUMBER: AtomicU64 = AtomicU64::new(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// A sentence for people.
    pub detail: String,
    /// What the caller is not told.
    pub cause: Option<String>,
    /// Who it is, if that is known.
    pub caller: Option<Box<Caller>>,
}

/// What of a problem is for the log.
#[derive(Debug, Clone)]
pub struct LoggedProblem {
    /// The number that the caller has.
    pub number: String,
    /// What the caller is not told.
    pub cause: Option<String>,
}

/// Tells the problems of this process from those of others.
fn process() -> &'static str {
    static PROCESS: OnceLock<String> = OnceLock::new();
    PROCESS.get_or_init(|| format!("{:x}", clock::now_ms()))
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem { status, detail: detail.into(), cause: None, caller: None }
    }

    /// The same, of somebody.
    pub fn with_caller(mut self, caller: &Caller) -> Problem {
        self.caller = Some(Box::new(caller.clone()));
        self
    }

    /// The request cannot be understood.
    pub fn bad(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// There is no such thing.
    pub fn missing(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// What became of a question that was not answered. Only a refusal is about the question,
    /// and its text is for the caller; what nobody classified is a bug or damage on our side.
    pub fn of(error: &anyhow::Error) -> Problem {
        if let Some(why) = refusal::message(error) {
            return Problem::bad(why);
        }
        if let Some(forbidden) = error.downcast_ref::<TokenForbids>() {
            return Problem::from(forbidden);
        }
        let cause = format!("{error:#}");
        match error.chain().find_map(|it| it.downcast_ref::<store::Error>()) {
            Some(it) if it.passes() => Problem::unavailable(cause),
            _ => Problem::internal(cause),
        }
    }

    /// The data is away, busy or full; the same may be done later.
    pub fn unavailable(cause: String) -> Problem {
        let detail = "the data cannot be reached now; try again later";
        Problem { cause: Some(cause), ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    /// An error on our side. The caller is told its number and nothing else.
    pub fn internal(cause: String) -> Problem {
        let detail = "an internal error occurred";
        Problem { cause: Some(cause), ..Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail) }
    }

    /// The sentence for the caller; with the number to look for where the log has more.
    fn detail(&self, number: &str) -> String {
        match self.cause {
            Some(_) => format!("{} (number {number} in the server's log)", self.detail),
            None => self.detail.clone(),
        }
    }
}

impl From<&TokenForbids> for Problem {
    fn from(forbidden: &TokenForbids) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, forbidden.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let number = format!("{}-{}", process(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let body = json!({
            "type": "about:blank",
            "title": title,
            "status": self.status.as_u16(),
            "detail": self.detail(&number),
            "instance": format!("urn:driftline:problem:{number}"),
        });
        let kind = HeaderValue::from_static("application/problem+json");
        let head = [(header::CONTENT_TYPE, kind)];
        let mut response = (self.status, head, body.to_string()).into_response();
        let more = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Some((header::RETRY_AFTER, "1"))
            }
            _ => None,
        };
        if let Some((name, value)) = more {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response.extensions_mut().insert(LoggedProblem { number, cause: self.cause });
        if let Some(caller) = self.caller {
            response.extensions_mut().insert(*caller);
        }
        response
    }
}
