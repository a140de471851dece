//! Routes of the server itself: whether it is alive, what it counts, what can be called, and
//! the route that the command line calls with `--server`.

use super::{Call, Gate, Method, NoParams, Route, RouteAnswer};
use crate::http::dispatch::{HEALTH, READY};
use crate::http::openapi;
use crate::http::problem::Problem;
use crate::verbs::access::{Area, Needs};
use crate::verbs::status::Status;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use store::tables::settings;

/// The media type of what Prometheus reads.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const MONITORING: Gate = Gate::Needs(Needs::viewer(Area::Monitoring));

/// A verb's request, as the command line sends it. Its form belongs to one version of the
/// program.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerbCall {
    verb: String,
    #[serde(default)]
    args: Json,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        text(HEALTH, Gate::Open, "Whether the process is alive", |_| Ok("alive\n".into())),
        text(READY, Gate::Open, "Whether it can answer", ready),
        text("/metrics", MONITORING, "Metrics in the format of Prometheus", |call| {
            let status = call.ask::<Status>(())?;
            let (under_way, waiting) = (call.served.under_way(), call.served.pool.waiting());
            Ok(call.served.metrics.text(&status, under_way, waiting))
        }),
        Route::of(
            Method::Get,
            "/api/v1/openapi.json",
            MONITORING,
            "This document",
            |_, _: NoParams| Ok::<Map<String, Json>, Problem>(openapi::document().clone()),
        ),
        Route::with_body(
            Method::Post,
            "/api/v1/ask",
            Gate::Token,
            "A verb's request as the command line sends it with --server; what it needs depends on \
             the verb",
            "question",
            |call, _: NoParams, asked: VerbCall| {
                call.served.answer(call.caller, &asked.verb, asked.args)
            },
        ),
    ]
}

fn text(
    path: &'static str,
    gate: Gate,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<String, Problem>,
) -> Route {
    let answer = RouteAnswer::Text(TEXT, Box::new(run));
    let (method, params, body) = (Method::Get, Vec::new(), None);
    Route { method, path, gate, about, params, body, answer, may_miss: false }
}

fn ready(call: &Call<'_>) -> Result<String, Problem> {
    let not = |why: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why);
    if call.served.is_ending() {
        return Err(not("it is ending"));
    }
    let reached = call.served.context.db.read(settings::parts);
    reached.map_err(|error| Problem {
        cause: Some(error.to_string()),
        ..not("the data cannot be reached now")
    })?;
    Ok("ready\n".into())
}
