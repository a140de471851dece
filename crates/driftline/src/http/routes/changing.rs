//! Routes that change something: what jobs do, what is defined, who may call.
//!
//! Invariant: what is refused changes nothing, and the answer says why.

use super::{
    Answer, Area, CURSOR, Call, Gate, LIMIT, Method, NAME, Needs, Param, Route, Shape, flag,
    needed, reads,
};
use crate::cli::changes::Changed;
use crate::cli::{audit, connection, job, token};
use crate::definitions::{ConnectionForm, Definitions, JobForm};
use crate::http::problem::Problem;
use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use store::tables::tokens::Role;

const KIND: Param = Param {
    name: "kind",
    about: "what kind of connection it is",
    kind: super::Kind::Choice(&[
        "repository",
        "output",
        "transformation",
        "authority",
        "mapping",
        "notification",
    ]),
    is_required: true,
};
const CONNECTION: Param = needed("name", "the connection's name");
const TOKEN: Param = needed("name", "the token's name");
const DRY_RUN: Param = flag("dry_run", "only tell what would change");

pub(super) static ROUTES: &[Route] = &[
    deed("/api/v1/jobs/{name}/start", "Starts a job", |call| act(call, "start")),
    deed(
        "/api/v1/jobs/{name}/start-minimal",
        "Starts a job that asks only for what changed",
        |call| act(call, "start_minimal"),
    ),
    deed("/api/v1/jobs/{name}/pause", "Lets a job rest", |call| act(call, "pause")),
    deed("/api/v1/jobs/{name}/resume", "Lets a paused job go on", |call| act(call, "resume")),
    deed("/api/v1/jobs/{name}/abort", "Ends a job's run before its time", |call| {
        act(call, "abort")
    }),
    deed("/api/v1/jobs/{name}/restart", "Ends a job's run and starts another", |call| {
        act(call, "restart")
    }),
    decides("/api/v1/jobs/{name}/removals/approve", "Lets a job lose what is held", |call| {
        decide(call, "approve")
    }),
    decides(
        "/api/v1/jobs/{name}/removals/reject",
        "Keeps what is held; to be repeated until it is done",
        |call| decide(call, "reject"),
    ),
    Route {
        method: Method::Delete,
        ..deed(
            "/api/v1/jobs/{name}",
            "Deletes a job that is inactive, with its documents",
            |call| act(call, "delete"),
        )
    },
    Route {
        body: Some(|it| it.subschema_for::<JobForm>()),
        params: &[NAME, DRY_RUN],
        ..changes(
            (Method::Put, "/api/v1/jobs/{name}"),
            Needs { role: Role::Operator, area: Area::Jobs },
            "Makes a job, or makes it what the body says; a secret written as *** stays as it is",
            |call| {
                let _: JobForm = call.sent("job")?;
                let name = call.text("name").unwrap_or_default();
                define(call, json!({"jobs": {name: call.body}}))
            },
        )
    },
    admin_reads(
        "/api/v1/connections",
        "Connections of every kind, without their secrets",
        &[],
        |it| it.subschema_for::<Vec<connection::showing::Shown>>(),
        |call| call.ask("connections", json!({"name": null, "kind": null, "opens": false})),
    ),
    Route {
        body: Some(|it| it.subschema_for::<ConnectionForm>()),
        params: &[KIND, CONNECTION, DRY_RUN],
        ..changes(
            (Method::Put, "/api/v1/connections/{kind}/{name}"),
            ADMIN,
            "Makes a connection, or makes it what the body says; a secret written as *** stays as it is",
            |call| {
                let _: ConnectionForm = call.sent("connection")?;
                let (kind, name) = (call.text("kind"), call.text("name"));
                let (kind, name) = (kind.unwrap_or_default(), name.unwrap_or_default());
                define(call, json!({"connections": {kind: {name: call.body}}}))
            },
        )
    },
    Route {
        params: &[KIND, CONNECTION],
        ..changes(
            (Method::Delete, "/api/v1/connections/{kind}/{name}"),
            ADMIN,
            "Deletes a connection that no job uses",
            |call| {
                let one = json!({"name": call.of("name"), "kind": call.of("kind")});
                call.ask("connection", json!({"delete": {"one": one}}))
            },
        )
    },
    admin_reads(
        "/api/v1/definitions",
        "Everything that is defined, as one document, without secrets",
        &[],
        |it| it.subschema_for::<Definitions>(),
        |call| call.ask("export", json!({"secrets": false})),
    ),
    Route {
        body: Some(|it| it.subschema_for::<Definitions>()),
        params: &[DRY_RUN],
        ..changes(
            (Method::Post, "/api/v1/definitions"),
            ADMIN,
            "Makes what the body names what the body says; what it does not name stays as it is",
            |call| {
                let _: Definitions = call.sent("document of definitions")?;
                define(call, call.body.clone())
            },
        )
    },
    admin_reads(
        "/api/v1/tokens",
        "Tokens that were made, the newest first",
        &[],
        |it| it.subschema_for::<Vec<token::Line>>(),
        |call| call.ask("tokens", Json::Null),
    ),
    Route {
        body: Some(|it| it.subschema_for::<token::New>()),
        params: &[],
        answer: Answer::Json(
            |it| it.subschema_for::<token::Made>(),
            |call| {
                let _: token::New = call.sent("token")?;
                call.ask("token", json!({"create": call.body}))
            },
        ),
        ..changes(
            (Method::Post, "/api/v1/tokens"),
            ADMIN,
            "Makes a token, and shows it this once",
            |_| Ok(Json::Null),
        )
    },
    Route {
        params: &[TOKEN],
        ..changes((Method::Delete, "/api/v1/tokens/{name}"), ADMIN, "Takes a token back", |call| {
            call.ask("token", json!({"revoke": {"name": call.of("name")}}))
        })
    },
    admin_reads(
        "/api/v1/audit",
        "Who changed what, the newest first",
        &[LIMIT, CURSOR],
        |it| it.subschema_for::<audit::Answer>(),
        |call| {
            let (limit, cursor) = (call.or("limit", 100), call.of("cursor"));
            call.ask("audit", json!({"limit": limit, "cursor": cursor}))
        },
    ),
];

const ADMIN: Needs = Needs { role: Role::Admin, area: Area::Administration };

const fn admin_reads(
    path: &'static str,
    about: &'static str,
    params: &'static [Param],
    shape: Shape,
    run: fn(&Call<'_>) -> Result<Json, Problem>,
) -> Route {
    let gate = Gate::Needs(ADMIN);
    Route { gate, ..reads((path, Area::Administration), about, params, shape, run) }
}

/// A route that changes what is defined.
const fn changes(
    (method, path): (Method, &'static str),
    needs: Needs,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<Json, Problem>,
) -> Route {
    let answer = Answer::Json(|it| it.subschema_for::<Changed>(), run);
    let (gate, params, body) = (Gate::Needs(needs), &[], None);
    Route { method, path, gate, about, params, body, answer, may_miss: false }
}

/// A route that tells a job something.
const fn deed(
    path: &'static str,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<Json, Problem>,
) -> Route {
    let (method, params, body) = (Method::Post, &[NAME], None);
    let gate = Gate::Needs(Needs { role: Role::Operator, area: Area::Jobs });
    let answer = Answer::Json(|it| it.subschema_for::<job::acting::Acted>(), run);
    Route { method, path, gate, about, params, body, answer, may_miss: true }
}

/// A route that decides about removals that are held.
const fn decides(
    path: &'static str,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<Json, Problem>,
) -> Route {
    let answer = Answer::Json(|it| it.subschema_for::<job::removals::Decided>(), run);
    Route { answer, ..deed(path, about, run) }
}

fn act(call: &Call<'_>, deed: &str) -> Result<Json, Problem> {
    tell(call, json!({"act": {"name": call.of("name"), "deed": deed}}))
}

fn decide(call: &Call<'_>, decision: &str) -> Result<Json, Problem> {
    tell(call, json!({"removals": {"name": call.of("name"), "decision": decision}}))
}

fn tell(call: &Call<'_>, change: Json) -> Result<Json, Problem> {
    call.job_is_there()?;
    let acted = call.ask("job", change);
    acted.map_err(|problem| match problem.status {
        // The request is understood; it is the job that stands otherwise.
        StatusCode::BAD_REQUEST => Problem { status: StatusCode::CONFLICT, ..problem },
        _ => problem,
    })
}

fn define(call: &Call<'_>, definitions: Json) -> Result<Json, Problem> {
    let dry_run = call.or("dry_run", false);
    call.ask("import", json!({"definitions": definitions, "dry_run": dry_run}))
}
