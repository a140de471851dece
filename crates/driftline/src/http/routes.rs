//! The routes of the API: what each is for, who may call it, what it takes and answers.
//!
//! One table for the router, for the OpenAPI document and for the tests, so that a route
//! that is not described, or that nobody tests, cannot exist: [`reading`] what is, [`changing`]
//! it, [`twins`] of the original's routes, and [`own`] for the server itself. Invariant:
//! every parameter is bounded, and what a route does not name it refuses.

mod changing;
mod own;
mod reading;
mod twins;

use super::access::Caller;
use super::answering::Served;
use super::problem::Problem;
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use store::socket::Question;
use store::tables::jobs;
use store::tables::tokens::Role;

/// A route.
pub struct Route {
    /// How it is called.
    pub method: Method,
    /// Its path; `{name}` stands for a parameter.
    pub path: &'static str,
    /// Who may call it.
    pub gate: Gate,
    /// What it is for.
    pub about: &'static str,
    /// What it takes.
    pub params: &'static [Param],
    /// What its body must be, if it has one.
    pub body: Option<Shape>,
    /// What it answers.
    pub answer: Answer,
    /// Whether what is asked for may not be there.
    pub may_miss: bool,
}

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Everybody.
    Open,
    /// Whoever has a good token; what else they need depends on what they ask.
    Token,
    /// Whoever has what is needed.
    Needs(Needs),
}

/// What a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The least role.
    pub role: Role,
    /// What the token must be good for.
    pub area: Area,
}

/// A piece of the API that a token can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Search.
    Search,
    /// Links, pages, domains.
    Links,
    /// Jobs, their documents and hosts, reports, processes.
    Jobs,
    /// Connections, definitions, tokens, who changed what.
    Administration,
    /// What is counted, and the document of the API.
    Monitoring,
}

impl Area {
    /// All of them.
    pub const ALL: [Area; 5] =
        [Area::Search, Area::Links, Area::Jobs, Area::Administration, Area::Monitoring];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Area::Search => "search",
            Area::Links => "links",
            Area::Jobs => "jobs",
            Area::Administration => "administration",
            Area::Monitoring => "monitoring",
        }
    }
}

/// How a route is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// What JSON looks like.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// How a route answers.
#[derive(Clone, Copy)]
pub enum Answer {
    /// In JSON.
    Json(Shape, fn(&Call<'_>) -> Result<Json, Problem>),
    /// In text of a kind.
    Text(&'static str, fn(&Call<'_>) -> Result<String, Problem>),
}

/// A parameter.
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// Whether it must be there.
    pub is_required: bool,
}

/// What a parameter can be.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Kind {
    Text,
    Number {
        least: i64,
        most: i64,
    },
    Choice(&'static [&'static str]),
    Flag,
    /// Texts, given several times.
    Texts,
}

/// What was given, checked.
pub type Values = Map<String, Json>;

/// Characters of a parameter.
pub const TEXT_CHARS_MAX: usize = 4_096;
/// How often a parameter may be given that may be given several times.
pub const TEXTS_MAX: usize = 100;

/// A call of a route by somebody who may.
pub struct Call<'a> {
    /// What is served.
    pub served: &'a Served,
    /// Who calls; nobody where everybody may.
    pub caller: Option<&'a Caller>,
    /// What was given.
    pub values: &'a Values,
    /// What was sent.
    pub body: &'a Json,
}

impl Call<'_> {
    /// Asks a verb, or has it carry something out in the caller's name.
    pub fn ask(&self, verb: &str, args: Json) -> Result<Json, Problem> {
        if let Some(caller) = self.caller {
            caller.check_change(verb, &args)?;
        }
        let question = Question { verb: verb.to_owned(), args };
        self.served.ask(&question, self.caller.map_or("nobody", |it| it.name.as_str()))
    }

    /// What was given for a parameter; null if nothing was.
    pub fn of(&self, name: &str) -> Json {
        self.values.get(name).cloned().unwrap_or(Json::Null)
    }

    /// What was given for a parameter, or what is usual.
    pub fn or(&self, name: &str, usual: impl Into<Json>) -> Json {
        self.values.get(name).cloned().unwrap_or_else(|| usual.into())
    }

    /// The text that was given for a parameter.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Json::as_str)
    }

    /// What was sent, if it is what it should be.
    fn sent<T: DeserializeOwned>(&self, what: &str) -> Result<T, Problem> {
        serde_json::from_value(self.body.clone())
            .map_err(|error| Problem::bad(format!("the body is no {what}: {error}")))
    }

    /// Refuses to go on with a job that is not there.
    fn job_is_there(&self) -> Result<(), Problem> {
        let name = self.text("name").unwrap_or_default().to_owned();
        let found = self.served.answers.db.read(move |tx| jobs::find(tx, &name));
        match found.map_err(|error| Problem::of(&anyhow::Error::new(error)))? {
            Some(_) => Ok(()),
            None => Err(Problem::missing("there is no job of this name")),
        }
    }
}

const fn text(name: &'static str, about: &'static str) -> Param {
    Param { name, about, kind: Kind::Text, is_required: false }
}

const fn needed(name: &'static str, about: &'static str) -> Param {
    Param { name, about, kind: Kind::Text, is_required: true }
}

const fn number(name: &'static str, (least, most): (i64, i64), about: &'static str) -> Param {
    Param { name, about, kind: Kind::Number { least, most }, is_required: false }
}

const fn choice(name: &'static str, of: &'static [&'static str], about: &'static str) -> Param {
    Param { name, about, kind: Kind::Choice(of), is_required: false }
}

const fn flag(name: &'static str, about: &'static str) -> Param {
    Param { name, about, kind: Kind::Flag, is_required: false }
}

const fn texts(name: &'static str, about: &'static str) -> Param {
    Param { name, about, kind: Kind::Texts, is_required: false }
}

const LIMIT: Param = number("limit", (1, 1_000), "how many at most");
const CURSOR: Param = text("cursor", "where to go on, as an earlier answer says");
const URL: Param = needed("url", "the page's URL");
const NAME: Param = needed("name", "the job's name");
/// Times are milliseconds since 1970, up to the year 9999.
const TIMES: (i64, i64) = (0, 253_402_300_799_999);

/// A route that reads.
const fn reads(
    (path, area): (&'static str, Area),
    about: &'static str,
    params: &'static [Param],
    shape: Shape,
    run: fn(&Call<'_>) -> Result<Json, Problem>,
) -> Route {
    let gate = Gate::Needs(Needs { role: Role::Viewer, area });
    let (method, answer) = (Method::Get, Answer::Json(shape, run));
    Route { method, path, gate, about, params, body: None, answer, may_miss: false }
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Route> {
    reading::ROUTES.iter().chain(changing::ROUTES).chain(twins::ROUTES).chain(own::ROUTES)
}

/// What a caller needs for a verb that the program itself asks for with `--server`. What is
/// not named here is not asked for from outside.
pub fn needs_of(verb: &str) -> Option<Needs> {
    let (role, area) = match verb {
        "search" => (Role::Viewer, Area::Search),
        "links" | "page" | "top" | "domains" => (Role::Viewer, Area::Links),
        "status" | "jobs" | "urls" | "why" | "hosts" | "report" | "nodes" => {
            (Role::Viewer, Area::Jobs)
        }
        "job" => (Role::Operator, Area::Jobs),
        "authorities" | "authgroup" | "authdomain" | "connections" | "connection"
        | "connectors" | "connector" | "export" | "import" | "lost-links" | "tokens" | "token"
        | "audit" => (Role::Admin, Area::Administration),
        _ => return None,
    };
    Some(Needs { role, area })
}
