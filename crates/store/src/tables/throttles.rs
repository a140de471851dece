//! How fast the bins of a repository connection may be asked (table 11.10), and the two
//! limits that the web needs beside it: connections and bytes a second.
//!
//! A throttle applies to the bins whose name its expression matches; of several the
//! slowest counts. Invariants: a connection's throttles are replaced together, and
//! whoever uses the connection can tell by its version.

use crate::checksums::coverage::THROTTLES;
use crate::ids::ConnectionId;
use crate::tables::connections;
use crate::{Error, Result, Tx, checksums};

/// Throttles of one connection.
pub const THROTTLES_MAX: usize = 1_000;
/// Bytes of an expression.
pub const MATCH_BYTES_MAX: usize = 4_096;

/// One throttle. What is `None` is not limited.
#[derive(Debug, Clone, PartialEq)]
pub struct Throttle {
    /// The expression that a bin's name must match; unique within its connection.
    pub matches: String,
    /// What it is for.
    pub description: Option<String>,
    /// Documents a millisecond, on average.
    pub per_ms: Option<f64>,
    /// Connections open at once.
    pub connections_max: Option<i64>,
    /// Bytes a second.
    pub bytes_per_s_max: Option<i64>,
}

impl Throttle {
    fn check(&self) -> Result<()> {
        let refused = |reason: &str| {
            Err(Error::Refused(format!("throttle {:?} cannot be used: {reason}", self.matches)))
        };
        if self.matches.len() > MATCH_BYTES_MAX {
            return refused("its expression is too long");
        }
        if self.per_ms.is_some_and(|rate| !(rate.is_finite() && rate >= 0.0)) {
            return refused("a rate is a number from 0 on");
        }
        if self.connections_max.is_some_and(|most| most < 1) {
            return refused("at least one connection must be allowed");
        }
        if self.bytes_per_s_max.is_some_and(|most| most < 1) {
            return refused("at least one byte a second must be allowed");
        }
        Ok(())
    }
}

/// Gives a connection these throttles instead of those it had. If they are the same,
/// nothing is written.
pub fn replace(tx: &mut Tx<'_>, owner: ConnectionId, throttles: &[Throttle]) -> Result<()> {
    if throttles.len() > THROTTLES_MAX {
        return Err(Error::Refused(format!(
            "a connection has at most {THROTTLES_MAX} throttles, not {}",
            throttles.len()
        )));
    }
    let mut seen = std::collections::HashSet::new();
    for throttle in throttles {
        throttle.check()?;
        if !seen.insert(&throttle.matches) {
            let matches = &throttle.matches;
            return Err(Error::Refused(format!("there are two throttles for {matches:?}")));
        }
    }
    let mut sorted = throttles.to_vec();
    sorted.sort_by(|one, other| one.matches.cmp(&other.matches));
    let is_whole = checksums::are_whole(tx, &THROTTLES, "ownerid", owner.into())?;
    if load(tx, owner)? == sorted && is_whole {
        return Ok(());
    }
    connections::changed(tx, owner)?;
    tx.execute("DELETE FROM throttles WHERE ownerid = $1", &[owner.into()])?;
    let places = THROTTLES.places(THROTTLES.covered);
    let rows: Vec<_> = throttles
        .iter()
        .map(|it| {
            places.with_checksum(vec![
                owner.into(),
                (&it.matches).into(),
                (&it.description).into(),
                it.per_ms.into(),
                it.connections_max.into(),
                it.bytes_per_s_max.into(),
            ])
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO throttles (ownerid, matchstring, description, throttle, connections_max,
             bytes_per_s_max, checksum)",
        &rows,
        "",
    )?;
    Ok(())
}

/// The throttles of a connection.
pub fn load(tx: &mut Tx<'_>, owner: ConnectionId) -> Result<Vec<Throttle>> {
    tx.query(
        "SELECT matchstring, description, throttle, connections_max, bytes_per_s_max
         FROM throttles WHERE ownerid = $1 ORDER BY matchstring LIMIT $2",
        &[owner.into(), (THROTTLES_MAX as i64).into()],
        |row| {
            Ok(Throttle {
                matches: row.get(0)?,
                description: row.get(1)?,
                per_ms: row.get(2)?,
                connections_max: row.get(3)?,
                bytes_per_s_max: row.get(4)?,
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    fn throttle(matches: &str) -> Throttle {
        Throttle {
            matches: matches.into(),
            description: Some("gently".into()),
            per_ms: Some(12.0 / 60_000.0),
            connections_max: Some(2),
            bytes_per_s_max: None,
        }
    }

    #[test]
    fn throttles_are_replaced_together() {
        both_databases(|db| {
            let owner = ConnectionId(1);
            let replace =
                |list: Vec<Throttle>| db.write(move |tx| super::replace(tx, owner, &list));
            replace(vec![throttle("b"), throttle("a")])?;
            assert_eq!(db.read(move |tx| load(tx, owner))?, [throttle("a"), throttle("b")]);
            let unlimited = Throttle { per_ms: None, connections_max: None, ..throttle("c") };
            replace(vec![unlimited.clone()])?;
            assert_eq!(db.read(move |tx| load(tx, owner))?, [unlimited]);
            assert_eq!(db.read(|tx| load(tx, ConnectionId(2)))?, []);
            replace(Vec::new())?;
            assert_eq!(db.read(move |tx| load(tx, owner))?, []);
            Ok(())
        });
    }

    #[test]
    fn other_throttles_are_another_version_of_their_connection() {
        both_databases(|db| {
            let (owner, kind) = (ConnectionId(1), connections::ConnectionKind::Repository);
            let web = connections::Connection::new(owner, "web", "web");
            db.write(move |tx| connections::save(tx, kind, &web, 0))?;
            let replace =
                |list: Vec<Throttle>| db.write(move |tx| super::replace(tx, owner, &list));
            let terms = || db.read(move |tx| connections::terms(tx, &[owner, ConnectionId(2)]));
            let before = terms()?;
            assert_eq!(before.len(), 1, "there is no other");
            replace(vec![throttle("b"), throttle("a")])?;
            assert_eq!(terms()?[0].version, before[0].version + 1);
            replace(vec![throttle("a"), throttle("b")])?;
            assert_eq!(terms()?[0].version, before[0].version + 1, "they are the same");
            replace(Vec::new())?;
            assert_eq!(terms()?[0].version, before[0].version + 2);
            Ok(())
        });
    }

    #[test]
    fn what_cannot_be_held_is_refused_by_name() {
        both_databases(|db| {
            let refused = |list: Vec<Throttle>| {
                let outcome = db.write(move |tx| super::replace(tx, ConnectionId(1), &list));
                outcome.expect_err("it cannot be held").to_string()
            };
            let bad = |rate| vec![Throttle { per_ms: Some(rate), ..throttle("slow") }];
            assert!(refused(bad(-1.0)).contains("slow"));
            assert!(refused(bad(f64::NAN)).contains("slow"));
            assert!(refused(vec![throttle("x"), throttle("x")]).contains("two throttles"));
            assert!(refused(vec![throttle("x"); THROTTLES_MAX + 1]).contains("at most"));
            Ok(())
        });
    }
}
