//! Routes that change something: what jobs do, what is defined, who may call.
//!
//! Invariant: what is refused changes nothing, and the answer says why.

use super::{Call, Gate, JobName, Method, NoParams, Route, change, get_plain};
use crate::definitions::{ConnectionForm, Connections as ConnectionForms, Definitions, JobForm};
use crate::http::problem::Problem;
use crate::verbs::Change;
use crate::verbs::access::{Area, Needs};
use crate::verbs::administration::connections::{
    ChangeConnection, ConnectionName, ConnectionRequest, Connections, ConnectionsRequest,
};
use crate::verbs::administration::definitions::{
    ExportDefinitions, ExportRequest, ImportDefinitions, ImportRequest,
};
use crate::verbs::administration::tokens::{CreateToken, NewToken, RevokeToken, Tokens};
use crate::verbs::changes::ChangeResult;
use crate::verbs::jobs::actions::{ActOnJob, ActRequest, JobAction};
use crate::verbs::jobs::removals::{DecideRemovals, DecideRequest, RemovalDecision};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use store::tables::connections::ConnectionKind;

const ADMIN: Gate = Gate::Needs(Needs::admin(Area::Administration));
const OPERATOR: Gate = Gate::Needs(Needs::operator(Area::Jobs));

/// Whether a change is only tried.
#[derive(Deserialize, JsonSchema)]
struct DryRun {
    /// Only tell what would change
    #[serde(default)]
    dry_run: bool,
}

/// A job that is to be defined.
#[derive(Deserialize, JsonSchema)]
struct PutJob {
    /// The job's name
    name: String,
    /// Only tell what would change
    #[serde(default)]
    dry_run: bool,
}

/// A connection that is to be deleted.
#[derive(Deserialize, JsonSchema)]
struct OneConnection {
    /// What kind of connection it is
    kind: KindName,
    /// The connection's name
    name: String,
}

/// A connection that is to be defined.
#[derive(Deserialize, JsonSchema)]
struct PutConnection {
    /// What kind of connection it is
    kind: KindName,
    /// The connection's name
    name: String,
    /// Only tell what would change
    #[serde(default)]
    dry_run: bool,
}

/// A kind of connections, as paths name it.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Repository,
    Output,
    Transformation,
    Authority,
    Mapping,
    Notification,
}

impl KindName {
    fn kind(self) -> ConnectionKind {
        match self {
            KindName::Repository => ConnectionKind::Repository,
            KindName::Output => ConnectionKind::Output,
            KindName::Transformation => ConnectionKind::Transformation,
            KindName::Authority => ConnectionKind::Authority,
            KindName::Mapping => ConnectionKind::Mapping,
            KindName::Notification => ConnectionKind::Notification,
        }
    }
}

pub(super) fn routes() -> Vec<Route> {
    let mut routes = job_routes();
    routes.extend(connection_routes());
    routes.extend(definition_routes());
    routes.extend(token_routes());
    routes
}

fn job_routes() -> Vec<Route> {
    use JobAction::{Abort, Delete, Pause, Restart, Resume, Start, StartMinimal};
    const JOB: &str = "/api/v1/jobs/{name}";
    vec![
        action(Method::Post, "/api/v1/jobs/{name}/start", Start, "Starts a job"),
        action(
            Method::Post,
            "/api/v1/jobs/{name}/start-minimal",
            StartMinimal,
            "Starts a minimal run, which processes only changed documents",
        ),
        action(Method::Post, "/api/v1/jobs/{name}/pause", Pause, "Pauses a job"),
        action(Method::Post, "/api/v1/jobs/{name}/resume", Resume, "Resumes a paused job"),
        action(Method::Post, "/api/v1/jobs/{name}/abort", Abort, "Aborts a job's run"),
        action(
            Method::Post,
            "/api/v1/jobs/{name}/restart",
            Restart,
            "Aborts a job's run and starts a new one",
        ),
        action(Method::Delete, JOB, Delete, "Deletes an inactive job and its documents"),
        decision(
            "/api/v1/jobs/{name}/removals/approve",
            RemovalDecision::Approve,
            "Approves the removals that are held",
        ),
        decision(
            "/api/v1/jobs/{name}/removals/reject",
            RemovalDecision::Reject,
            "Rejects the removals that are held; repeat until it is done",
        ),
        Route::with_body(
            Method::Put,
            JOB,
            OPERATOR,
            "Creates a job, or changes it to match the body; a secret written as *** keeps its \
             stored value",
            "job",
            |call, params: PutJob, form: JobForm| {
                let jobs = [(params.name, form)].into();
                define(call, Definitions { jobs, ..Definitions::default() }, params.dry_run)
            },
        ),
    ]
}

fn connection_routes() -> Vec<Route> {
    const ONE: &str = "/api/v1/connections/{kind}/{name}";
    vec![
        Route::of(
            Method::Get,
            "/api/v1/connections",
            ADMIN,
            "Connections of every kind, without their secrets",
            |call, _: NoParams| call.ask::<Connections>(ConnectionsRequest::default()),
        ),
        Route::with_body(
            Method::Put,
            ONE,
            ADMIN,
            "Creates a connection, or changes it to match the body; a secret written as *** keeps \
             its stored value",
            "connection",
            |call, params: PutConnection, form: ConnectionForm| {
                let mut connections = ConnectionForms::default();
                connections.of_mut(params.kind.kind()).insert(params.name, form);
                let definitions = Definitions { connections, ..Definitions::default() };
                define(call, definitions, params.dry_run)
            },
        ),
        Route::of(
            Method::Delete,
            ONE,
            ADMIN,
            "Deletes a connection that no job uses",
            |call, params: OneConnection| {
                let kind = Some(params.kind.kind().name().to_owned());
                let one = ConnectionName { name: params.name, kind };
                call.change::<ChangeConnection>(ConnectionRequest::Delete { one })
            },
        ),
    ]
}

fn definition_routes() -> Vec<Route> {
    vec![
        Route::of(
            Method::Get,
            "/api/v1/definitions",
            ADMIN,
            "All definitions as one document, without secrets",
            |call, _: NoParams| call.ask::<ExportDefinitions>(ExportRequest { secrets: false }),
        ),
        Route::with_body(
            Method::Post,
            "/api/v1/definitions",
            ADMIN,
            "Creates or changes everything in the body to match it; everything else stays as it is",
            "document of definitions",
            |call, params: DryRun, definitions: Definitions| {
                define(call, definitions, params.dry_run)
            },
        ),
    ]
}

fn token_routes() -> Vec<Route> {
    vec![
        get_plain::<Tokens>("/api/v1/tokens", "Tokens, newest first"),
        Route::with_body(
            Method::Post,
            "/api/v1/tokens",
            ADMIN,
            "Creates a token, which is shown only once",
            "token",
            |call, _: NoParams, new: NewToken| call.change::<CreateToken>(new),
        ),
        change::<RevokeToken>(Method::Delete, "/api/v1/tokens/{name}", "Takes a token back"),
    ]
}

/// A route that makes a job do something.
fn action(method: Method, path: &'static str, action: JobAction, about: &'static str) -> Route {
    let run = move |call: &Call<'_>, JobName { name }: JobName| {
        carry_out::<ActOnJob>(call, name.clone(), ActRequest { name, action })
    };
    Route::of(method, path, OPERATOR, about, run).or_missing()
}

/// A route that decides about removals that are held.
fn decision(path: &'static str, decision: RemovalDecision, about: &'static str) -> Route {
    let run = move |call: &Call<'_>, JobName { name }: JobName| {
        carry_out::<DecideRemovals>(call, name.clone(), DecideRequest { name, decision })
    };
    Route::of(Method::Post, path, OPERATOR, about, run).or_missing()
}

/// Makes a change of a job that is there.
fn carry_out<C: Change>(
    call: &Call<'_>,
    job: String,
    request: C::Request,
) -> Result<C::Response, Problem> {
    call.job_is_there(&job)?;
    call.change::<C>(request).map_err(|problem| match problem.status {
        // The request is understood; it is the job that stands otherwise.
        StatusCode::BAD_REQUEST => Problem { status: StatusCode::CONFLICT, ..problem },
        _ => problem,
    })
}

fn define(
    call: &Call<'_>,
    definitions: Definitions,
    dry_run: bool,
) -> Result<ChangeResult, Problem> {
    call.change::<ImportDefinitions>(ImportRequest { definitions, dry_run })
}
