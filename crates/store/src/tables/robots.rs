//! What robots.txt of each origin said when it was last asked: the web connector's
//! own table, in the part of the origin's domain. While that connector is not
//! registered there is no such table: nothing is found, and what is saved is lost.
//!
//! Kept so that a restart asks nobody again, so that the last good copy stays in
//! force while a host is in trouble, and so that `why` can name the line.

use crate::ids::Part;
use crate::owned::WEB;
use crate::value::{Row, column};
use crate::{Result, Tx};

/// Origins of one host that are shown, for each scheme.
const ORIGINS_MAX: u32 = 20;

/// An origin's robots.txt as it was fetched last, and how fetching it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRobots {
    /// Scheme, host and port.
    pub origin: String,
    /// The status of the last answer; `None` when there was none.
    pub status: Option<i64>,
    /// The last copy from a good answer.
    pub body: Option<Vec<u8>>,
    /// Without a copy: whether nothing is allowed, or everything.
    pub closed: bool,
    /// When it was last asked for.
    pub asked_ms: i64,
    /// When `body` was fetched.
    pub good_ms: Option<i64>,
    /// Since when there has been nothing but trouble.
    pub failing_ms: Option<i64>,
    /// When it must be asked for again.
    pub expires_ms: i64,
}

const COLUMNS: &str = "origin, status, body, closed, asked_ms, good_ms, failing_ms, expires_ms";

fn from_row(row: &Row<'_>) -> Result<StoredRobots> {
    Ok(StoredRobots {
        origin: row.get(column!(COLUMNS, "origin"))?,
        status: row.get(column!(COLUMNS, "status"))?,
        body: row.get(column!(COLUMNS, "body"))?,
        closed: row.get(column!(COLUMNS, "closed"))?,
        asked_ms: row.get(column!(COLUMNS, "asked_ms"))?,
        good_ms: row.get(column!(COLUMNS, "good_ms"))?,
        failing_ms: row.get(column!(COLUMNS, "failing_ms"))?,
        expires_ms: row.get(column!(COLUMNS, "expires_ms"))?,
    })
}

/// What an origin's robots.txt said, if it was ever asked for.
pub fn find(tx: &mut Tx<'_>, part: Part, origin: &str) -> Result<Option<StoredRobots>> {
    if !WEB.is_there(tx)? {
        return Ok(None);
    }
    let found = tx.query_opt(
        &format!("SELECT {COLUMNS} FROM robots WHERE part = $1 AND origin = $2"),
        &[part.into(), origin.into()],
        from_row,
    );
    WEB.explained(found)
}

/// What robots.txt said of the origins of a host: with each scheme, on each port.
pub fn of_host(tx: &mut Tx<'_>, part: Part, host: &str) -> Result<Vec<StoredRobots>> {
    let mut found = Vec::new();
    if !WEB.is_there(tx)? {
        return Ok(found);
    }
    for scheme in ["http", "https"] {
        // What comes behind the host is nothing or a colon, and `;` comes behind that.
        let (origin, end) = (format!("{scheme}://{host}"), format!("{scheme}://{host};"));
        let ports = format!("{origin}:");
        let rows = tx.query(
            &format!(
                "SELECT {COLUMNS} FROM robots
                 WHERE part = $1 AND (origin = $2 OR (origin >= $3 AND origin < $4))
                 ORDER BY origin LIMIT $5"
            ),
            &[part.into(), (&origin).into(), (&ports).into(), (&end).into(), ORIGINS_MAX.into()],
            from_row,
        );
        found.extend(WEB.explained(rows)?);
    }
    Ok(found)
}

/// Writes what an origin's robots.txt said.
pub fn save(tx: &mut Tx<'_>, part: Part, it: &StoredRobots) -> Result<()> {
    if !WEB.is_there(tx)? {
        return Ok(());
    }
    let saved = tx.insert_rows(
        &format!("INSERT INTO robots (part, {COLUMNS})"),
        &[vec![
            part.into(),
            (&it.origin).into(),
            it.status.into(),
            it.body.as_ref().into(),
            it.closed.into(),
            it.asked_ms.into(),
            it.good_ms.into(),
            it.failing_ms.into(),
            it.expires_ms.into(),
        ]],
        "ON CONFLICT (part, origin) DO UPDATE SET status = excluded.status, body = excluded.body,
             closed = excluded.closed, asked_ms = excluded.asked_ms, good_ms = excluded.good_ms,
             failing_ms = excluded.failing_ms, expires_ms = excluded.expires_ms",
    );
    WEB.explained(saved)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    #[test]
    fn all_origins_of_a_host_are_found_and_no_others() {
        both_databases(|db| {
            let origins = [
                "http://a.example",
                "http://a.example.b",
                "http://a.exampl",
                "http://a.example:81",
                "https://a.example:8443",
                "https://a.example",
            ];
            for origin in origins {
                let stored = StoredRobots {
                    origin: origin.into(),
                    status: Some(404),
                    body: None,
                    closed: false,
                    asked_ms: 0,
                    good_ms: None,
                    failing_ms: None,
                    expires_ms: 0,
                };
                db.write(move |tx| save(tx, Part(3), &stored))?;
            }
            let found = db.read(|tx| of_host(tx, Part(3), "a.example"))?;
            let found: Vec<&str> = found.iter().map(|it| it.origin.as_str()).collect();
            assert_eq!(found, [origins[0], origins[3], origins[5], origins[4]]);
            Ok(())
        });
    }

    #[test]
    fn an_answer_is_kept_whole_and_replaced_whole() {
        both_databases(|db| {
            let first = StoredRobots {
                origin: "https://a.example".into(),
                status: Some(200),
                body: Some(b"User-agent: *\nDisallow: /\xff".to_vec()),
                closed: false,
                asked_ms: 5,
                good_ms: Some(5),
                failing_ms: None,
                expires_ms: 10,
            };
            let second = StoredRobots {
                status: None,
                failing_ms: Some(11),
                expires_ms: 20,
                ..first.clone()
            };
            for stored in [first, second] {
                let saved = stored.clone();
                db.write(move |tx| save(tx, Part(3), &saved))?;
                let found = db.read(|tx| find(tx, Part(3), "https://a.example"))?;
                assert_eq!(found, Some(stored));
            }
            assert_eq!(db.read(|tx| find(tx, Part(3), "http://a.example"))?, None);
            Ok(())
        });
    }
}
