//! Who may ask what: roles, areas, and the caller that a token stands for.
//!
//! Invariant: a caller with a limited token cannot get around its limits, by whatever face it asks.

use std::fmt;
use store::tables::tokens::{Role, Token};

/// What a caller of a server needs for a verb or a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    pub role: Role,
    pub area: Area,
}

impl Needs {
    pub const fn viewer(area: Area) -> Needs {
        Needs { role: Role::Viewer, area }
    }

    pub const fn operator(area: Area) -> Needs {
        Needs { role: Role::Operator, area }
    }

    pub const fn admin(area: Area) -> Needs {
        Needs { role: Role::Admin, area }
    }
}

/// A part of the API that a token can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    Search,
    Links,
    /// Jobs, their documents and hosts, reports, processes.
    Jobs,
    /// Connections, definitions, tokens, the audit log.
    Administration,
    /// Metrics, and the document of the API.
    Monitoring,
}

impl Area {
    pub const ALL: [Area; 5] =
        [Area::Search, Area::Links, Area::Jobs, Area::Administration, Area::Monitoring];

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

/// Somebody who calls through a server, as their token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The number of the token.
    pub id: i64,
    /// The name of the token.
    pub name: String,
    pub role: Role,
    /// The areas the token is limited to; none if it is good for all.
    pub areas: Vec<String>,
    pub expires_ms: Option<i64>,
}

impl Caller {
    pub fn of(token: Token) -> Caller {
        let Token { id, name, role, areas, expires_ms, .. } = token;
        Caller { id, name, role, areas, expires_ms }
    }

    /// Refuses who has not the role or not the area.
    pub fn check(&self, needs: Needs) -> Result<(), TokenForbids> {
        if !self.role.includes(needs.role) {
            let (needed, own) = (needs.role.name(), self.role.name());
            return Err(TokenForbids(format!("this requires the role {needed}; yours is {own}")));
        }
        let area = needs.area.name();
        if !self.is_for(area) {
            let own = self.areas.join(", ");
            return Err(TokenForbids(format!(
                "this token is not valid for {area}; it is valid for {own}"
            )));
        }
        Ok(())
    }

    /// Whether the token is good for an area.
    pub fn is_for(&self, area: &str) -> bool {
        self.areas.is_empty() || self.areas.iter().any(|it| it == area)
    }
}

/// A request that the caller's token does not allow. The text is for the caller.
#[derive(Debug)]
pub struct TokenForbids(pub String);

impl fmt::Display for TokenForbids {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TokenForbids {}

/// Who asks a verb or makes a change.
#[derive(Clone, Copy)]
pub enum Asker<'a> {
    /// Somebody who uses the command line where the data is.
    CommandLine,
    /// Somebody who calls through a server.
    Caller(&'a Caller),
}

/// The name of whoever uses the command line, in the audit log.
pub const COMMAND_LINE: &str = "command line";

impl<'a> Asker<'a> {
    /// The name that the audit log has.
    pub fn name(self) -> &'a str {
        match self {
            Asker::CommandLine => COMMAND_LINE,
            Asker::Caller(caller) => &caller.name,
        }
    }
}
