//! Connections that all processes together have open at once: for authorities and
//! mappings, whose number is a limit of the cluster.
//!
//! A slot that is taken is a row of its node's; it goes when it is given back, or with
//! the node. Who finds none, waits, which is a row, too, and asks again. Invariants: no
//! more slots are taken than there are, but for those that were taken when there were
//! more; whoever has less than its share of what all want is served before anybody gets
//! more than its own, in the order of asking; taking twice under one name takes one.

use crate::ids::{ConnectionId, NodeId};
use crate::{Result, Tx};
use std::collections::{BTreeMap, BTreeSet};

/// Slots that are looked at; more are never taken.
const SLOTS_MAX: i64 = 10_000;
/// Who has not asked for so long waits no longer.
pub const WAIT_MS: i64 = 10_000;

/// Who asks for a slot.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct SlotRequest {
    pub connection: ConnectionId,
    /// How many it allows.
    pub maxcount: i64,
    pub node: NodeId,
    /// An id of what is asked for: the same when it is asked again.
    pub claim: i64,
    /// Nodes that have not been heard of since then are gone, and their slots free.
    pub heard_since_ms: i64,
    pub now_ms: i64,
}

/// Takes a slot, if there is one for this node. Otherwise it waits: ask again, or
/// [`stop_waiting`].
pub fn take(tx: &mut Tx<'_>, asking: SlotRequest) -> Result<Option<i64>> {
    let SlotRequest { connection, node, claim, now_ms, .. } = asking;
    // Whoever takes slots of a connection does so one after the other.
    tx.execute(
        "INSERT INTO slot_waits (connectionid, node, since_ms, asked_ms) VALUES ($1, 0, 0, $2)
         ON CONFLICT (connectionid, node) DO UPDATE SET asked_ms = excluded.asked_ms",
        &[connection.into(), now_ms.into()],
    )?;
    forget_gone(tx, asking)?;
    let taken = taken_slots(tx, connection)?;
    if let Some((slot, ..)) = taken.iter().find(|(_, _, known)| *known == claim) {
        return Ok(Some(*slot));
    }
    tx.execute(
        "INSERT INTO slot_waits (connectionid, node, since_ms, asked_ms) VALUES ($1, $2, $3, $3)
         ON CONFLICT (connectionid, node) DO UPDATE SET asked_ms = excluded.asked_ms",
        &[connection.into(), node.into(), now_ms.into()],
    )?;
    let waiting = waiting(tx, connection)?;
    let holders: Vec<(i64, NodeId)> = taken.iter().map(|it| (it.0, it.1)).collect();
    let Some(slot) = choose(asking.maxcount.min(SLOTS_MAX), node, &holders, &waiting) else {
        return Ok(None);
    };
    tx.execute(
        "INSERT INTO slots (connectionid, slot, node, claim, taken_ms) VALUES ($1, $2, $3, $4, $5)",
        &[connection.into(), slot.into(), node.into(), claim.into(), now_ms.into()],
    )?;
    stop_waiting(tx, connection, node)?;
    Ok(Some(slot))
}

/// Gives a slot back. One that is not there any more was the node's that was gone.
pub fn give_back(tx: &mut Tx<'_>, connection: ConnectionId, claim: i64) -> Result<()> {
    tx.execute(
        "DELETE FROM slots WHERE connectionid = $1 AND claim = $2",
        &[connection.into(), claim.into()],
    )?;
    Ok(())
}

/// A node wants no slot any more.
pub fn stop_waiting(tx: &mut Tx<'_>, connection: ConnectionId, node: NodeId) -> Result<()> {
    tx.execute(
        "DELETE FROM slot_waits WHERE connectionid = $1 AND node = $2",
        &[connection.into(), node.into()],
    )?;
    Ok(())
}

/// Slots and waits of nodes that are gone go with them.
fn forget_gone(tx: &mut Tx<'_>, asking: SlotRequest) -> Result<()> {
    let SlotRequest { connection, heard_since_ms, now_ms, .. } = asking;
    let live = "SELECT id FROM nodes WHERE heartbeat_ms >= $2
                  AND state IN ('joining', 'ready', 'draining')";
    tx.execute(
        &format!("DELETE FROM slots WHERE connectionid = $1 AND node NOT IN ({live})"),
        &[connection.into(), heard_since_ms.into()],
    )?;
    tx.execute(
        &format!(
            "DELETE FROM slot_waits WHERE connectionid = $1 AND node <> 0
               AND (asked_ms < $3 OR node NOT IN ({live}))"
        ),
        &[connection.into(), heard_since_ms.into(), (now_ms - WAIT_MS).into()],
    )?;
    Ok(())
}

fn taken_slots(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<Vec<(i64, NodeId, i64)>> {
    tx.query(
        "SELECT slot, node, claim FROM slots WHERE connectionid = $1 ORDER BY slot LIMIT $2",
        &[connection.into(), SLOTS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

/// Nodes that wait, and since when.
fn waiting(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<Vec<(i64, NodeId)>> {
    tx.query(
        "SELECT since_ms, node FROM slot_waits WHERE connectionid = $1 AND node <> 0
         ORDER BY node LIMIT $2",
        &[connection.into(), SLOTS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The slot that a node may take, which is among those who wait.
fn choose(
    maxcount: i64,
    node: NodeId,
    holders: &[(i64, NodeId)],
    waiting: &[(i64, NodeId)],
) -> Option<i64> {
    let mut held: BTreeMap<NodeId, i64> = waiting.iter().map(|(_, node)| (*node, 0)).collect();
    for (_, holder) in holders {
        *held.entry(*holder).or_default() += 1;
    }
    let free = maxcount - holders.len() as i64;
    let share = (maxcount / (held.len() as i64).max(1)).max(1);
    let has = |node: NodeId| held.get(&node).copied().unwrap_or(0);
    // Those below their share first, then by the order of asking.
    let order = |(since_ms, node): &(i64, NodeId)| (has(*node) >= share, *since_ms, *node);
    let mine = waiting.iter().find(|(_, waits)| *waits == node).map(order)?;
    let ahead = waiting.iter().filter(|it| order(it) < mine).count();
    if ahead as i64 >= free {
        return None;
    }
    let used: BTreeSet<i64> = holders.iter().map(|(slot, _)| *slot).collect();
    (0..maxcount).find(|slot| !used.contains(slot))
}

#[cfg(test)]
mod tests;
