//! A request on its way to its answer.
//!
//! In this order: the name the caller asked for, the route, room, the caller's token and what
//! it may do, the body, the parameters, the verb. Invariants: nothing is answered to a caller
//! who may not ask it; nothing is read from one before that is known; no problem tells of
//! internals; whatever the number of callers, [`REQUESTS_MAX`] are served at a time, also
//! those whose caller has gone, and none is begun [`TIME_MAX`] after it came.

use super::access::{Access, Caller};
use super::log::Log;
use super::metrics::Metrics;
use super::params;
use super::problem::{Problem, Told};
use super::routes::{self, Answer, Call, Gate, Method, Route};
use crate::cli::answers::Answers;
use crate::cli::changes::Changes;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::socket::Question;
use tokio::sync::Semaphore;

/// Requests that are served at a time.
pub const REQUESTS_MAX: usize = 64;
/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// The longest a request may take.
pub const TIME_MAX: Duration = Duration::from_secs(60);
/// What everybody may ask however much there is to do.
pub const HEALTH: &str = "/healthz";
/// Answers shorter than this are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 1_024;

/// Headers of every answer.
pub const HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// What is served.
pub struct Served {
    /// Answers questions.
    pub answers: Answers,
    /// Who may call.
    pub access: Access,
    /// What was counted.
    pub metrics: Metrics,
    /// What is written down.
    pub log: Arc<Log>,
    /// Called after every change.
    changed: Box<dyn Fn() + Send + Sync>,
    /// Whether callers reach it through TLS.
    is_secure: bool,
    room: Arc<Semaphore>,
    ending: AtomicBool,
}

impl Served {
    /// What is to be served.
    pub fn new(
        answers: Answers,
        (access, is_secure): (Access, bool),
        log: Arc<Log>,
        changed: Box<dyn Fn() + Send + Sync>,
    ) -> Served {
        let (metrics, room) = (Metrics::default(), Arc::new(Semaphore::new(REQUESTS_MAX)));
        let ending = AtomicBool::new(false);
        Served { answers, access, metrics, log, changed, is_secure, room, ending }
    }

    /// Says that it is not ready any more.
    pub fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Whether it is ending.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Requests that are being answered.
    pub fn under_way(&self) -> usize {
        REQUESTS_MAX - self.room.available_permits()
    }

    /// Asks a verb, or has it carry something out in somebody's name.
    pub fn ask(&self, question: &Question, who: &str) -> Result<Json, Problem> {
        if !Changes::knows(&question.verb) {
            return self.answers.dispatch(question).map_err(|error| Problem::of(&error));
        }
        let changes = Changes::new(self.answers.db.clone(), who);
        let done = changes.carry_out(question).map_err(|error| Problem::of(&error));
        (self.changed)();
        done
    }

    /// Who calls, if they may call a route.
    fn admit(&self, gate: Gate, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        if gate == Gate::Open {
            return Ok(None);
        }
        let caller = self.access.caller(&self.answers.db, headers)?;
        if let Gate::Needs(needs) = gate {
            caller.check(needs).map_err(|problem| problem.with_caller(&caller))?;
        }
        Ok(Some(caller))
    }
}

/// The routes, and what every request goes through.
pub fn router(served: Arc<Served>) -> Router {
    let mut paths: Vec<(&str, MethodRouter<Arc<Served>>)> = Vec::new();
    for route in routes::all() {
        let handler = move |State(served): State<Arc<Served>>, request: Request| async move {
            answer(served, route, request).await
        };
        let filter = match route.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
        };
        let at = paths.iter().position(|(path, _)| *path == route.path);
        let methods = at.map_or_else(MethodRouter::new, |at| paths.swap_remove(at).1);
        paths.push((route.path, methods.merge(on(filter, handler))));
    }
    let routed =
        paths.into_iter().fold(Router::new(), |all, (path, methods)| all.route(path, methods));
    routed
        .fallback(|| async {
            Problem::missing("there is no such route; /api/v1/openapi.json lists them")
        })
        .method_not_allowed_fallback(|| async {
            let why = "this route is not called so; /api/v1/openapi.json says how";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, why)
        })
        .layer(middleware::from_fn_with_state(served.clone(), guard))
        .with_state(served)
}

/// What every request goes through: the name it asks for, time, headers, and the log.
async fn guard(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match let_in(&served, &request) {
        Err(problem) => problem.into_response(),
        Ok(()) => match tokio::time::timeout(TIME_MAX, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let why = "this took too long; ask for less at a time";
                Problem::new(StatusCode::GATEWAY_TIMEOUT, why).into_response()
            }
        },
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if served.is_secure {
        let value = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    let (status, took) = (response.status().as_u16(), began.elapsed());
    served.metrics.request(status, took);
    let who = response.extensions().get::<Caller>().map(|it| it.name.as_str());
    let mut facts = json!({
        "method": method.as_str(),
        "path": path,
        "status": status,
        "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "caller": who,
    });
    let mut level = "info";
    if let Some(told) = response.extensions().get::<Told>() {
        facts["problem"] = json!(told.number);
        if let Some(cause) = &told.cause {
            facts["cause"] = json!(cause);
            level = "error";
        }
    }
    served.log.event(level, "request", facts);
    response
}

/// Refuses a request that nobody here is meant by, or that another site's page sends.
fn let_in(served: &Served, request: &Request) -> Result<(), Problem> {
    let header = |name| request.headers().get(name).and_then(|it| it.to_str().ok());
    let host = header(header::HOST).or_else(|| request.uri().host()).unwrap_or_default();
    if !served.access.knows_host(host) {
        let why = "this server is not known by that name; --host NAME adds one";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, why));
    }
    let is_foreign = request.headers().get("sec-fetch-site").is_some_and(|it| it == "cross-site");
    if is_foreign && request.method() != axum::http::Method::GET {
        let why = "a page of another site may not change anything here";
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    Ok(())
}

async fn answer(served: Arc<Served>, route: &'static Route, request: Request) -> Response {
    let began = Instant::now();
    let given = given(route, &request);
    if route.path == HEALTH {
        // It is told however much there is to do, and without waiting for a thread.
        let alive = carried_out(&served, (route, None), &given, (request.headers(), &[]));
        return alive.unwrap_or_else(IntoResponse::into_response);
    }
    let Ok(place) = served.room.clone().try_acquire_owned() else {
        let full = "there is too much to do; try again";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, full).into_response();
    };
    let (parts, body) = request.into_parts();
    let headers = Arc::new(parts.headers);
    let (admitting, shown) = (served.clone(), headers.clone());
    let admitted = blocking(move || admitting.admit(route.gate, &shown)).await;
    let caller = match admitted.unwrap_or_else(Err) {
        Ok(caller) => caller,
        Err(refused) => return refused.into_response(),
    };
    let body = match route.body {
        None => Vec::new(),
        Some(_) => match axum::body::to_bytes(body, BODY_BYTES_MAX).await {
            Ok(bytes) => bytes.to_vec(),
            Err(_) => {
                let why = format!("the body has more than {BODY_BYTES_MAX} bytes, or did not come");
                return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why).into_response();
            }
        },
    };
    let who = caller.clone();
    let answered = blocking(move || {
        // As long as it is worked on it has its place, whether somebody waits for it or not.
        let _place = place;
        if began.elapsed() >= TIME_MAX {
            return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "its time was up"));
        }
        carried_out(&served, (route, caller.as_ref()), &given, (&headers, &body))
    });
    let answered = answered.await.unwrap_or_else(Err);
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    if let Some(who) = who {
        response.extensions_mut().insert(who);
    }
    response
}

/// Does something that waits for a database or a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<Result<T, Problem>, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::internal(error.to_string()))
}

fn carried_out(
    served: &Served,
    (route, caller): (&Route, Option<&Caller>),
    given: &Result<Vec<(String, String)>, Problem>,
    (headers, body): (&HeaderMap, &[u8]),
) -> Result<Response, Problem> {
    let values = &params::read(route, given.as_ref().map_err(Clone::clone)?)?;
    let body = &match route.body {
        None => Json::Null,
        Some(_) => params::body(headers, body)?,
    };
    let is_read = route.method == Method::Get;
    if !is_read && headers.contains_key(header::IF_NONE_MATCH) {
        let why = "a change is made or refused whatever the caller has; leave If-None-Match out";
        return Err(Problem::bad(why));
    }
    let call = Call { served, caller, values, body };
    let (kind, text) = match route.answer {
        Answer::Json(_, run) => ("application/json", run(&call)?.to_string()),
        Answer::Text(kind, run) => (kind, run(&call)?),
    };
    Ok(finished(headers, kind, text))
}

/// An answer with its tag, compressed for who takes it so; without its body for who has it
/// already.
fn finished(asked: &HeaderMap, kind: &'static str, text: String) -> Response {
    let header = |name| asked.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    // Weak: what it says is the same, compressed or not.
    let tag = format!("W/\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]);
    let is_known = header(header::IF_NONE_MATCH)
        .is_some_and(|it| it.split(',').map(str::trim).any(|it| it == "*" || it == tag));
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding, authorization"));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let takes_gzip = header(header::ACCEPT_ENCODING).is_some_and(params::takes_gzip);
    let packed = if takes_gzip { compressed(&text) } else { None };
    let bytes = match packed {
        Some(bytes) => {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            bytes
        }
        None => text.into_bytes(),
    };
    *response.body_mut() = Body::from(bytes);
    response
}

fn compressed(text: &str) -> Option<Vec<u8>> {
    if text.len() < COMPRESSED_BYTES_MIN {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).ok()?;
    encoder.finish().ok()
}

/// What was given for parameters: in the path, and behind the question mark.
fn given(route: &Route, request: &Request) -> Result<Vec<(String, String)>, Problem> {
    let mut given = Vec::new();
    let no_text = || Problem::bad("what stands for a parameter in the path is no text in UTF-8");
    let path = request.uri().path();
    for (pattern, piece) in route.path.split('/').zip(path.split('/')) {
        if let Some(name) = pattern.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            let piece = percent_encoding::percent_decode_str(piece).decode_utf8();
            given.push((name.to_owned(), piece.map_err(|_| no_text())?.into_owned()));
        }
    }
    let query = request.uri().query().unwrap_or_default();
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    given.extend(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())));
    Ok(given)
}
