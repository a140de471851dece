//! A request on its way to its answer.
//!
//! In this order: the name the caller asked for, the route, the caller's token and what it may
//! do, the body, a place among the answers, the parameters, the verb. Invariants: nothing is
//! answered to a caller who may not ask it; nothing is read from one before that is known; no
//! problem tells of internals; an answer waits for a thread of the [pool](super::answer_pool)
//! once all of its request is there, and none is begun [`TIME_MAX`] after it came, or when its
//! caller has gone; what tells how the server is waits for no answer.

use super::access::ApiAccess;
use super::answer_pool::{self, AnswerPool, CallerId};
use super::bodies::{Bodies, HeldBody};
use super::entrance::let_in;
use super::log::Log;
use super::metrics::Metrics;
use super::problem::{LoggedProblem, Problem};
use super::routes::{self, Call, Gate, Method, Route, RouteAnswer};
use super::{params, reply};
use crate::verbs::access::{Asker, Caller};
use crate::verbs::changes::ChangeContext;
use crate::verbs::context::VerbContext;
use crate::verbs::{self, Change, RegisteredVerb, Run, Verb, audit_trail};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::panics;
use tokio::sync::oneshot;

/// The longest a request may take.
pub const TIME_MAX: Duration = Duration::from_secs(60);
/// What everybody may ask however much there is to do: whether the process is alive,
pub const HEALTH: &str = "/healthz";
/// and whether it can answer.
pub const READY: &str = "/readyz";
/// Whoever needs no token.
const NOBODY: CallerId = -1;

/// Headers of every answer.
pub const HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

pub struct ApiState {
    /// What verbs are answered from.
    pub context: VerbContext,
    pub access: ApiAccess,
    pub metrics: Metrics,
    /// What is written down.
    pub log: Arc<Log>,
    /// Called after every change.
    changed: Box<dyn Fn() + Send + Sync>,
    /// Whether callers reach it through TLS.
    is_secure: bool,
    pub pool: AnswerPool,
    /// Bodies that are in memory.
    pub bodies: Bodies,
    under_way: Arc<AtomicUsize>,
    ending: AtomicBool,
    /// What a test lets happen before a verb is asked.
    #[cfg(test)]
    pub before_verbs: std::sync::RwLock<Option<BeforeVerbs>>,
}

#[cfg(test)]
pub type BeforeVerbs = Arc<dyn Fn() -> anyhow::Result<()> + Send + Sync>;

/// A request from when it comes until it is answered, or would have been.
struct RequestInProgress(Arc<AtomicUsize>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ApiState {
    /// What is to be served.
    pub fn new(
        context: VerbContext,
        access: ApiAccess,
        is_secure: bool,
        log: Arc<Log>,
        changed: Box<dyn Fn() + Send + Sync>,
    ) -> ApiState {
        ApiState {
            context,
            access,
            metrics: Metrics::default(),
            log,
            changed,
            is_secure,
            pool: AnswerPool::new(answer_pool::beside_a_crawl()),
            bodies: Bodies::default(),
            under_way: Arc::default(),
            ending: AtomicBool::new(false),
            #[cfg(test)]
            before_verbs: std::sync::RwLock::default(),
        }
    }

    /// The same, with so many answers computed at a time.
    pub fn with_answers_at_once(self, at_once: usize) -> ApiState {
        ApiState { pool: AnswerPool::new(at_once), ..self }
    }

    /// Says that it is not ready any more.
    pub fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Whether it is ending.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Requests that are being answered, or wait for it.
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    fn begin(&self) -> RequestInProgress {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        RequestInProgress(self.under_way.clone())
    }

    pub fn ask<V: Verb>(
        &self,
        asker: Asker<'_>,
        request: V::Request,
    ) -> Result<V::Response, Problem> {
        self.before_verb()?;
        verbs::answer::<V>(&self.context, asker, request).map_err(|error| Problem::of(&error))
    }

    pub fn change<C: Change>(
        &self,
        asker: Asker<'_>,
        request: C::Request,
    ) -> Result<C::Response, Problem> {
        self.before_verb()?;
        let made = verbs::carry_out::<C>(&self.changes(), asker, request);
        (self.changed)();
        made.map_err(|error| Problem::of(&error))
    }

    /// Answers a verb that is known by its name, or makes the change: deny by default, then what
    /// the verb needs.
    pub fn answer(
        &self,
        caller: Option<&Caller>,
        name: &str,
        request: Json,
    ) -> Result<Json, Problem> {
        let unknown = || {
            Problem::missing(
                "this command does not work through a server; run it where the data is",
            )
        };
        let verb = verbs::find(name).ok_or_else(unknown)?;
        let needs = verb.needs.ok_or_else(unknown)?;
        let caller = caller.ok_or_else(unknown)?;
        caller.check(needs).map_err(|forbidden| Problem::from(&forbidden))?;
        self.answer_verb(verb, Asker::Caller(caller), request)
    }

    /// Answers a verb to somebody who may ask it, or makes the change.
    pub fn answer_verb(
        &self,
        verb: &RegisteredVerb,
        asker: Asker<'_>,
        request: Json,
    ) -> Result<Json, Problem> {
        self.before_verb()?;
        let answered = match verb.run {
            Run::Answer(answer) => answer(&self.context, asker, request),
            Run::CarryOut(carry_out) => {
                let made = carry_out(&self.changes(), asker, request);
                (self.changed)();
                made
            }
        };
        answered.map_err(|error| Problem::of(&error))
    }

    fn changes(&self) -> ChangeContext {
        ChangeContext::of_rows(self.context.db.clone())
    }

    #[cfg(not(test))]
    fn before_verb(&self) -> Result<(), Problem> {
        Ok(())
    }

    #[cfg(test)]
    fn before_verb(&self) -> Result<(), Problem> {
        let before = self.before_verbs.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = before.clone();
        before.map_or(Ok(()), |before| before()).map_err(|error| Problem::of(&error))
    }

    /// Who calls, if they may call a route.
    fn admit(&self, gate: Gate, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
        if gate == Gate::Open {
            return Ok(None);
        }
        let caller = self.access.caller(&self.context.db, headers)?;
        if let Gate::Needs(needs) = gate {
            caller
                .check(needs)
                .map_err(|forbidden| Problem::from(&forbidden).with_caller(&caller))?;
        }
        Ok(Some(caller))
    }
}

/// The routes, and what every request goes through.
pub fn router(served: Arc<ApiState>) -> Router {
    let mut paths: Vec<(&str, MethodRouter<Arc<ApiState>>)> = Vec::new();
    for route in routes::all() {
        let handler = move |State(served): State<Arc<ApiState>>, request: Request| async move {
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
            Problem::missing("there is no such route; /api/v1/openapi.json lists all routes")
        })
        .method_not_allowed_fallback(|| async {
            let why = "this route does not support the method; see /api/v1/openapi.json";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, why)
        })
        .layer(middleware::from_fn_with_state(served.clone(), guard))
        .with_state(served)
}

/// What every request goes through: the name it asks for, time, headers, and the log.
async fn guard(State(served): State<Arc<ApiState>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match let_in(&served.access, &request) {
        Err(problem) => problem.into_response(),
        Ok(()) => match tokio::time::timeout(TIME_MAX, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let why = "the request took too long; request less at a time";
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
    if let Some(told) = response.extensions().get::<LoggedProblem>() {
        facts["problem"] = json!(told.number);
        if let Some(cause) = &told.cause {
            facts["cause"] = json!(cause);
            level = "error";
        }
    }
    served.log.event(level, "request", facts);
    if let Some(head) = audit_trail::take_head() {
        served.log.event("info", "audit", json!({"head": head}));
    }
    response
}

async fn answer(served: Arc<ApiState>, route: &'static Route, request: Request) -> Response {
    let began = Instant::now();
    let given = request_params(route, &request);
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    if [HEALTH, READY].contains(&route.path) {
        let asked = ReceivedRequest { route, given, headers, body: None, caller: None, began };
        let answered = match route.path {
            // It is told however much there is to do, and without waiting for a thread.
            HEALTH => asked.answer(&served),
            _ => blocking(move || asked.answer(&served)).await,
        };
        return answered.unwrap_or_else(IntoResponse::into_response);
    }
    let under_way = served.begin();
    let (admitting, shown) = (served.clone(), headers.clone());
    let caller = match blocking(move || admitting.admit(route.gate, &shown)).await {
        Ok(caller) => caller,
        Err(refused) => return refused.into_response(),
    };
    let id = caller.as_ref().map_or(NOBODY, |it| it.id);
    let body = match route.body {
        None => Ok(None),
        Some(_) => served.bodies.read(id, body).await.map(Some),
    };
    let answered = match body {
        Err(problem) => Err(problem),
        Ok(body) => {
            let arrived =
                ReceivedRequest { route, given, headers, body, caller: caller.clone(), began };
            computed(&served, id, arrived, under_way).await
        }
    };
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    if let Some(caller) = caller {
        response.extensions_mut().insert(caller);
    }
    response
}

/// A request that is there as a whole, of somebody who may ask it.
struct ReceivedRequest {
    route: &'static Route,
    given: Result<Vec<(String, String)>, Problem>,
    headers: HeaderMap,
    body: Option<HeldBody>,
    caller: Option<Caller>,
    began: Instant,
}

/// The answer, by a thread of the pool when it is the caller's turn.
async fn computed(
    served: &Arc<ApiState>,
    id: CallerId,
    it: ReceivedRequest,
    under_way: RequestInProgress,
) -> Result<Response, Problem> {
    let (tell, told) = oneshot::channel();
    let answering = served.clone();
    let task = move || {
        // As long as it is worked on it counts, whether somebody waits for it or not.
        let _under_way = under_way;
        if tell.is_closed() || it.began.elapsed() >= TIME_MAX {
            return;
        }
        let answered = panics::caught(|| it.answer(&answering));
        let answered = answered.unwrap_or_else(|bug| Err(Problem::internal(bug.to_string())));
        // Whoever has gone is told nothing.
        let _ = tell.send(answered);
    };
    if !served.pool.submit(id, Box::new(task)) {
        let full = "the server is too busy; try again";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, full));
    }
    let late = || Problem::new(StatusCode::GATEWAY_TIMEOUT, "its time was up");
    told.await.unwrap_or_else(|_| Err(late()))
}

/// Does something that waits for a database or a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::internal(error.to_string())))
}

impl ReceivedRequest {
    /// What the route answers.
    fn answer(&self, served: &ApiState) -> Result<Response, Problem> {
        let route = self.route;
        let values = &params::read(route, self.given.as_ref().map_err(Clone::clone)?)?;
        let bytes = self.body.as_ref().map_or(&[][..], |body| &body.bytes);
        let body = &match route.body {
            None => Json::Null,
            Some(_) => params::body(&self.headers, bytes)?,
        };
        let is_read = route.method == Method::Get;
        if !is_read && self.headers.contains_key(header::IF_NONE_MATCH) {
            let why = "If-None-Match is not supported for changes; omit it";
            return Err(Problem::bad(why));
        }
        let call = Call { served, caller: self.caller.as_ref(), values, body };
        let (kind, text) = match &route.answer {
            RouteAnswer::Json(_, run) => ("application/json", run(&call)?.to_string()),
            RouteAnswer::Text(kind, run) => (*kind, run(&call)?),
        };
        Ok(reply::finished(&self.headers, kind, text))
    }
}

/// What was given for parameters: in the path, and behind the question mark.
fn request_params(route: &Route, request: &Request) -> Result<Vec<(String, String)>, Problem> {
    let mut given = Vec::new();
    let no_text = || Problem::bad("a path parameter is not valid UTF-8");
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
