//! Routes of the server itself: whether it is alive, what it counts, what can be called, and
//! the door of the command line.

use super::{Answer, Area, Call, Gate, Method, Needs, Route, needs_of, reads};
use crate::http::answering::{HEALTH, READY};
use crate::http::openapi;
use crate::http::problem::Problem;
use axum::http::StatusCode;
use serde_json::Value as Json;
use store::tables::settings;
use store::tables::tokens::Role;

pub(super) static ROUTES: &[Route] = &[
    Route {
        gate: Gate::Open,
        ..says(HEALTH, "Whether the process is alive", |_| Ok("alive\n".into()))
    },
    Route { gate: Gate::Open, ..says(READY, "Whether it can answer", ready) },
    says("/metrics", "What is counted, as Prometheus reads it", |call| {
        let status = call.ask("status", Json::Null)?;
        let (under_way, waiting) = (call.served.under_way(), call.served.pool.waiting());
        Ok(call.served.metrics.text(&status, (under_way, waiting)))
    }),
    reads(
        ("/api/v1/openapi.json", Area::Monitoring),
        "This document",
        &[],
        |it| it.subschema_for::<serde_json::Map<String, Json>>(),
        |_| Ok(openapi::document().clone()),
    ),
    Route {
        method: Method::Post,
        gate: Gate::Token,
        body: Some(|it| it.subschema_for::<Asked>()),
        ..reads(
            ("/api/v1/ask", Area::Monitoring),
            "A verb's question as the command line asks it with --server; what it needs depends on the verb",
            &[],
            |it| it.subschema_for::<Json>(),
            ask,
        )
    },
];

/// A question of the command line. Its form belongs to one version of the program.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// The verb.
    verb: String,
    /// What it is asked.
    #[serde(default)]
    args: Json,
}

const fn says(
    path: &'static str,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<String, Problem>,
) -> Route {
    let gate = Gate::Needs(Needs { role: Role::Viewer, area: Area::Monitoring });
    let answer = Answer::Text("text/plain; version=0.0.4; charset=utf-8", run);
    let (method, params, body) = (Method::Get, &[], None);
    Route { method, path, gate, about, params, body, answer, may_miss: false }
}

fn ready(call: &Call<'_>) -> Result<String, Problem> {
    let not = |why: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why);
    if call.served.is_ending() {
        return Err(not("it is ending"));
    }
    let reached = call.served.answers.db.read(settings::parts);
    reached.map_err(|error| Problem {
        cause: Some(error.to_string()),
        ..not("the data cannot be reached now")
    })?;
    Ok("ready\n".into())
}

/// The door of the command line: deny by default, then what the verb needs.
fn ask(call: &Call<'_>) -> Result<Json, Problem> {
    let asked: Asked = call.sent("question")?;
    let Some(needs) = needs_of(&asked.verb) else {
        return Err(Problem::missing("this is done where the data is, and not through a server"));
    };
    if let Some(caller) = call.caller {
        caller.check(needs)?;
    }
    if asked.verb == "export" && asked.args["secrets"] != Json::Bool(false) {
        let why = "secrets do not leave through a server; export them where the data is";
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    if asked.verb == "report" && asked.args["whole"] == Json::Bool(true) {
        let why = "a report over everything may take long, and is made where the data is";
        return Err(Problem::bad(why));
    }
    call.ask(&asked.verb, asked.args)
}
