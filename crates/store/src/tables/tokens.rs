//! Tokens of the HTTP API: who may call it, and as what.
//!
//! Invariants: a token itself is nowhere, only its hash; a name that is in use is given
//! once; a token that is revoked or has expired is as good as none.

use crate::value::column;
use crate::{Result, Tx};
use serde::{Deserialize, Serialize};

/// Tokens that are listed.
const LISTED_MAX: u32 = 1_000;
/// How often it is written down that a token was used.
const USED_EVERY_MS: i64 = 60_000;

/// What a caller may do.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read what is published for others to take, and nothing else.
    Publisher,
    /// May search and read.
    Viewer,
    /// Also start, stop and edit jobs.
    Operator,
    /// Also everything else: connections, connectors, what has secrets in it.
    Admin,
}

impl Role {
    /// All roles, in the order in which help lists them.
    pub const ALL: [Role; 4] = [Role::Publisher, Role::Viewer, Role::Operator, Role::Admin];

    /// The role as tables and flags name it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Publisher => "publisher",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// The role of this name.
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether it may do what another may. A publisher's token is for publications alone.
    pub fn includes(self, other: Role) -> bool {
        match other {
            Role::Publisher => matches!(self, Role::Publisher | Role::Admin),
            _ => self != Role::Publisher && self >= other,
        }
    }
}

/// A token, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Token {
    pub id: i64,
    pub name: String,
    pub role: Role,
    /// What of the API it is good for; all of it if nothing is named.
    pub areas: Vec<String>,
    pub created_ms: i64,
    pub expires_ms: Option<i64>,
    pub used_ms: Option<i64>,
    pub revoked_ms: Option<i64>,
}

impl Token {
    /// Whether it is to be written down that it was used: now and then is enough.
    pub fn is_use_due(&self, now_ms: i64) -> bool {
        self.used_ms.is_none_or(|used_ms| now_ms - used_ms >= USED_EVERY_MS)
    }
}

const COLUMNS: &str = "id, name, role, areas, created_ms, expires_ms, used_ms, revoked_ms";

fn from_row(row: &crate::value::Row<'_>) -> Result<Token> {
    let (role, areas): (String, Option<String>) =
        (row.get(column!(COLUMNS, "role"))?, row.get(column!(COLUMNS, "areas"))?);
    Ok(Token {
        id: row.get(column!(COLUMNS, "id"))?,
        name: row.get(column!(COLUMNS, "name"))?,
        // Nobody writes another; one that is not known may do the least.
        role: Role::parse(&role).unwrap_or(Role::Publisher),
        areas: areas.iter().flat_map(|it| it.split_whitespace()).map(str::to_owned).collect(),
        created_ms: row.get(column!(COLUMNS, "created_ms"))?,
        expires_ms: row.get(column!(COLUMNS, "expires_ms"))?,
        used_ms: row.get(column!(COLUMNS, "used_ms"))?,
        revoked_ms: row.get(column!(COLUMNS, "revoked_ms"))?,
    })
}

/// Makes a token. A name that is in use is a duplicate.
pub fn create(tx: &mut Tx<'_>, token: &Token, hash: &[u8; 32]) -> Result<()> {
    let areas = (!token.areas.is_empty()).then(|| token.areas.join(" "));
    tx.execute(
        "INSERT INTO api_tokens (id, name, hash, role, areas, created_ms, expires_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            token.id.into(),
            token.name.as_str().into(),
            hash.into(),
            token.role.name().into(),
            areas.as_deref().into(),
            token.created_ms.into(),
            token.expires_ms.into(),
        ],
    )?;
    Ok(())
}

/// The token of a hash, if it is good now.
pub fn find(tx: &mut Tx<'_>, hash: &[u8; 32], now_ms: i64) -> Result<Option<Token>> {
    tx.query_opt(
        &format!(
            "SELECT {COLUMNS} FROM api_tokens
             WHERE hash = $1 AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > $2)"
        ),
        &[hash.into(), now_ms.into()],
        from_row,
    )
}

/// Writes down that a token was used.
pub fn used(tx: &mut Tx<'_>, id: i64, now_ms: i64) -> Result<()> {
    tx.execute("UPDATE api_tokens SET used_ms = $2 WHERE id = $1", &[id.into(), now_ms.into()])?;
    Ok(())
}

/// All of them, those that were revoked too, the newest first.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<Token>> {
    tx.query(
        &format!("SELECT {COLUMNS} FROM api_tokens ORDER BY created_ms DESC, id DESC LIMIT $1"),
        &[LISTED_MAX.into()],
        from_row,
    )
}

/// Revokes a token by its name. False if there is none that is good.
pub fn revoke(tx: &mut Tx<'_>, name: &str, now_ms: i64) -> Result<bool> {
    let touched = tx.execute(
        "UPDATE api_tokens SET revoked_ms = $2 WHERE name = $1 AND revoked_ms IS NULL",
        &[name.into(), now_ms.into()],
    )?;
    Ok(touched == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::testing::both_databases;

    fn token(id: i64, name: &str, expires_ms: Option<i64>) -> Token {
        let areas = if id == 2 { vec!["search".into(), "links".into()] } else { Vec::new() };
        let (created_ms, used_ms, revoked_ms) = (id, None, None);
        let (name, role) = (name.into(), Role::Viewer);
        Token { id, name, role, areas, created_ms, expires_ms, used_ms, revoked_ms }
    }

    #[test]
    fn a_token_is_good_until_it_expires_or_is_revoked() {
        both_databases(|db| {
            db.write(|tx| create(tx, &token(1, "me", None), &[1; 32]))?;
            db.write(|tx| create(tx, &token(2, "guest", Some(50)), &[2; 32]))?;
            let again = db.write(|tx| create(tx, &token(3, "me", None), &[3; 32]));
            assert!(matches!(again, Err(Error::Duplicate { .. })), "{again:?}");
            let good = |hash: u8, now_ms| {
                let found = db.read(move |tx| find(tx, &[hash; 32], now_ms)).unwrap();
                found.map(|it| it.name)
            };
            assert_eq!(good(1, 99).as_deref(), Some("me"));
            assert_eq!(
                (good(2, 49).as_deref(), good(2, 50), good(9, 0)),
                (Some("guest"), None, None)
            );
            let areas: Vec<Vec<String>> = db.read(list)?.into_iter().map(|it| it.areas).collect();
            assert_eq!(areas, [vec!["search", "links"], vec![]]);
            assert!(db.write(|tx| revoke(tx, "me", 60))?);
            assert!(!db.write(|tx| revoke(tx, "me", 61))?);
            assert_eq!(good(1, 99), None);
            db.write(|tx| create(tx, &token(4, "me", None), &[4; 32]))?;
            let names: Vec<String> = db.read(list)?.into_iter().map(|it| it.name).collect();
            assert_eq!(names, ["me", "guest", "me"], "who was there is told");
            Ok(())
        });
    }

    #[test]
    fn use_is_written_down_now_and_then() {
        both_databases(|db| {
            db.write(|tx| create(tx, &token(1, "me", None), &[1; 32]))?;
            for (now_ms, expected) in [(100, 100), (200, 100), (70_000, 70_000)] {
                db.write(move |tx| {
                    let found = find(tx, &[1; 32], now_ms)?.expect("it is good");
                    if found.is_use_due(now_ms) { used(tx, 1, now_ms) } else { Ok(()) }
                })?;
                assert_eq!(db.read(list)?[0].used_ms, Some(expected));
            }
            Ok(())
        });
    }

    #[test]
    fn roles_include_those_below_and_a_publisher_only_its_own() {
        let may = |role: Role| Role::ALL.map(|other| role.includes(other));
        assert_eq!(may(Role::Admin), [true; 4]);
        assert_eq!(may(Role::Operator), [false, true, true, false]);
        assert_eq!(may(Role::Viewer), [false, true, false, false]);
        assert_eq!(may(Role::Publisher), [true, false, false, false]);
    }
}
