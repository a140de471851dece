//! The routes of the API: what each is for, who may call it, what it takes and answers.
//!
//! One table for the router, for the OpenAPI document and for the tests, so that a route
//! that is not described, or that nobody tests, cannot exist: [`reads`] what is, [`changes`]
//! it, [`webindex`] in the forms of the Webindex API, and [`own`] for the server itself. A verb whose
//! request is its parameters has its route in its line of the table of verbs.
//! Invariant: every parameter is bounded, and what a route does not name it refuses.

mod changes;
mod own;
mod reads;
mod webindex;

use super::dispatch::ApiState;
use super::params::{self, Param};
use super::problem::Problem;
use crate::verbs::access::{Asker, Caller, Needs};
use crate::verbs::registry::{RegisteredVerb, Shape};
use crate::verbs::{self, Change, Verb, wire};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::sync::LazyLock;
use store::tables::jobs;

pub struct Route {
    pub method: Method,
    /// Its path; `{name}` stands for a parameter.
    pub path: &'static str,
    pub gate: Gate,
    /// What it is for.
    pub about: &'static str,
    pub params: Vec<Param>,
    /// What its body must be, if it has one.
    pub body: Option<Shape>,
    pub answer: RouteAnswer,
    /// Whether what is asked for may not be there.
    pub may_miss: bool,
}

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// Whoever has a good token; what else they need depends on what they ask.
    Token,
    /// Whoever has what is needed.
    Needs(Needs),
}

/// How a route is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// What answers a call.
type Handler<T> = Box<dyn Fn(&Call<'_>) -> Result<T, Problem> + Send + Sync>;

/// How a route answers.
pub enum RouteAnswer {
    Json(Shape, Handler<Json>),
    /// Text of a media type.
    Text(&'static str, Handler<String>),
}

/// What was given for parameters, checked.
pub type Values = Map<String, Json>;

/// The parameters of a route that has none.
#[derive(Deserialize, JsonSchema)]
pub struct NoParams {}

/// The job that a path names.
#[derive(Deserialize, JsonSchema)]
struct JobName {
    /// The job's name
    name: String,
}

/// A call of a route by somebody who may.
pub struct Call<'a> {
    pub served: &'a ApiState,
    /// Who calls; nobody where everybody may.
    pub caller: Option<&'a Caller>,
    pub values: &'a Values,
    pub body: &'a Json,
}

impl Call<'_> {
    pub fn ask<V: Verb>(&self, request: V::Request) -> Result<V::Response, Problem> {
        self.served.ask::<V>(self.asker()?, request)
    }

    /// Makes a change in the caller's name.
    pub fn change<C: Change>(&self, request: C::Request) -> Result<C::Response, Problem> {
        self.served.change::<C>(self.asker()?, request)
    }

    /// Who asks, which is somebody with a token.
    pub fn asker(&self) -> Result<Asker<'_>, Problem> {
        let open = || Problem::internal("a route that is open to everybody asks a verb".to_owned());
        self.caller.map(Asker::Caller).ok_or_else(open)
    }

    /// The parameters, which were checked against the schema of this type.
    fn params<P: DeserializeOwned>(&self) -> Result<P, Problem> {
        serde_json::from_value(Json::Object(self.values.clone()))
            .map_err(|error| Problem::bad(format!("the parameters cannot be read: {error}")))
    }

    /// What was sent, if it is what it should be.
    fn sent<T: DeserializeOwned>(&self, what: &str) -> Result<T, Problem> {
        serde_json::from_value(self.body.clone())
            .map_err(|error| Problem::bad(format!("the body is not a valid {what}: {error}")))
    }

    /// Refuses to go on with a job that is not there.
    fn job_is_there(&self, name: &str) -> Result<(), Problem> {
        let name = name.to_owned();
        let found = self.served.context.db.read(move |tx| jobs::find(tx, &name));
        match found.map_err(|error| Problem::of(&anyhow::Error::new(error)))? {
            Some(_) => Ok(()),
            None => Err(Problem::missing("there is no job of this name")),
        }
    }
}

impl Route {
    /// A route with parameters and an answer of these types.
    fn of<P, R>(
        method: Method,
        path: &'static str,
        gate: Gate,
        about: &'static str,
        run: impl Fn(&Call<'_>, P) -> Result<R, Problem> + Send + Sync + 'static,
    ) -> Route
    where
        P: JsonSchema + DeserializeOwned,
        R: JsonSchema + Serialize,
    {
        let handler = move |call: &Call<'_>| {
            let answer = run(call, call.params()?)?;
            wire::encode(&answer).map_err(|error| Problem::internal(error.to_string()))
        };
        Route {
            method,
            path,
            gate,
            about,
            params: params::of(|it| it.subschema_for::<P>()),
            body: None,
            answer: RouteAnswer::Json(|it| it.subschema_for::<R>(), Box::new(handler)),
            may_miss: false,
        }
    }

    /// The same, with a body of this type, which a message calls `what`.
    fn with_body<P, B, R>(
        method: Method,
        path: &'static str,
        gate: Gate,
        about: &'static str,
        what: &'static str,
        run: impl Fn(&Call<'_>, P, B) -> Result<R, Problem> + Send + Sync + 'static,
    ) -> Route
    where
        P: JsonSchema + DeserializeOwned,
        B: JsonSchema + DeserializeOwned,
        R: JsonSchema + Serialize,
    {
        let run = move |call: &Call<'_>, params: P| {
            let body = call.sent::<B>(what)?;
            run(call, params, body)
        };
        let route = Route::of(method, path, gate, about, run);
        Route { body: Some(|it| it.subschema_for::<B>()), ..route }
    }

    /// A route whose answer may not be there.
    fn or_missing(self) -> Route {
        Route { may_miss: true, ..self }
    }

    /// A route that takes only some of the parameters of its type.
    fn only(mut self, names: &[&str]) -> Route {
        self.params.retain(|it| names.contains(&it.name.as_str()));
        assert_eq!(self.params.len(), names.len(), "{} has all of {names:?}", self.path);
        self
    }
}

/// What a verb's route needs. A verb that is asked only where the data is has no route.
fn gate(name: &str, needs: Option<Needs>) -> Gate {
    Gate::Needs(needs.unwrap_or_else(|| panic!("{name} is not for callers, and has no route")))
}

/// The route that stands in a verb's line.
fn of_verb(verb: &'static RegisteredVerb) -> Option<Route> {
    let route = verb.route.as_ref()?;
    let handler = move |call: &Call<'_>| {
        call.served.answer_verb(verb, call.asker()?, Json::Object(call.values.clone()))
    };
    Some(Route {
        method: Method::Get,
        path: route.path,
        gate: gate(verb.name, verb.needs),
        about: route.about,
        params: params::of(route.request),
        body: None,
        answer: RouteAnswer::Json(route.response, Box::new(handler)),
        may_miss: false,
    })
}

/// A route that asks a verb that is asked nothing else.
fn get_plain<V: Verb<Request = ()>>(path: &'static str, about: &'static str) -> Route
where
    V::Response: JsonSchema,
{
    let gate = gate(V::NAME, V::NEEDS);
    Route::of(Method::Get, path, gate, about, |call, _: NoParams| call.ask::<V>(()))
}

/// A route that makes a change; its parameters are the change's request.
fn change<C: Change>(method: Method, path: &'static str, about: &'static str) -> Route
where
    C::Request: JsonSchema,
    C::Response: JsonSchema,
{
    let gate = gate(C::NAME, C::NEEDS);
    Route::of(method, path, gate, about, |call, request| call.change::<C>(request))
}

/// The table, made once.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let rooms = [reads::routes(), changes::routes(), webindex::routes(), own::routes()];
    let of_verbs = verbs::all().filter_map(of_verb);
    of_verbs.chain(rooms.into_iter().flatten()).collect()
});

pub fn all() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter()
}
