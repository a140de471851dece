//! Settings of connections under another key, or without theirs.
//!
//! Invariant: what is sealed anew says what it said, so nobody is told of a change.

use super::{ConnectionKind, change};
use crate::ids::ConnectionId;
use crate::sealing::Keys;
use crate::tables::sessions;
use crate::{Error, Result, Tx};

/// Connections of a kind whose settings are looked at when a key is lost.
const LOCKED_MAX: i64 = 10_000;
/// Connections that are sealed anew at a time.
const RESEALED_STEP: i64 = 100;

/// Takes the settings away from connections that are sealed with a key that is not here, and
/// their sessions. Returns which.
pub fn forget_locked(tx: &mut Tx<'_>, now_ms: i64) -> Result<Vec<(ConnectionKind, String)>> {
    let keys = tx.keys();
    let mut forgotten = Vec::new();
    for kind in ConnectionKind::ALL {
        let found: Vec<(ConnectionId, String, String)> = tx.query(
            "SELECT id, connectionname, config FROM connections WHERE kind = $1
             ORDER BY connectionname LIMIT $2",
            &[kind.name().into(), LOCKED_MAX.into()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        for (id, name, stored) in found {
            if !matches!(keys.open(stored), Err(Error::Refused(_))) {
                continue;
            }
            change(tx, id, |tx| {
                tx.execute(
                    "UPDATE connections SET config = '{}', version = version + 1, changed_ms = $2
                     WHERE id = $1",
                    &[id.into(), now_ms.into()],
                )
            })?;
            sessions::forget(tx, id)?;
            forgotten.push((kind, name));
        }
    }
    Ok(forgotten)
}

/// Seals the settings of all connections and the cookies of their sessions anew, as this
/// transaction's keys do it; `old` are those they were sealed with. Returns how many were
/// others.
pub fn reseal(tx: &mut Tx<'_>, old: &Keys) -> Result<u64> {
    let keys = tx.keys();
    let mut count = 0;
    let mut after = i64::MIN;
    loop {
        let found: Vec<(i64, String)> = tx.query(
            "SELECT id, config FROM connections WHERE id > $1 ORDER BY id LIMIT $2",
            &[after.into(), RESEALED_STEP.into()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let Some((last, _)) = found.last() else { break };
        after = *last;
        for (id, stored) in found {
            let Some(config) = keys.resealed(old, stored)? else { continue };
            // Nothing that anybody is told of: it says what it said.
            let values = [id.into(), config.as_str().into()];
            count += change(tx, ConnectionId(id), |tx| {
                tx.execute("UPDATE connections SET config = $2 WHERE id = $1", &values)
            })?;
        }
    }
    Ok(count + sessions::reseal(tx, old)?)
}
