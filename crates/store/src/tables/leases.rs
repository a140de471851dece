//! The right to work on a part in a role: owner, token, deadline, commit number.
//!
//! Invariants: at any moment at most one token of a `(part, role)` can write, since
//! every write of a holder starts with [`fence`] or [`number_commit`], which fail
//! for any token but the newest. Commit numbers of a part have no gaps that a
//! reader could mistake for the future: a number is given inside the transaction
//! that commits.

use crate::ids::{CommitNumber, NodeId, Part};
use crate::{Error, Result, Tx};

/// A lease that was granted. It is proof only together with the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Lease {
    pub part: Part,
    /// What is done with it: `crawl`, `links`, `search` …
    pub role: String,
    pub node: NodeId,
    /// Grows with every grant; the newest is the only one that can write.
    pub token: i64,
    /// When others may take it.
    pub deadline_ms: i64,
}

/// Who asks, and when.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct LeaseRequest {
    pub node: NodeId,
    /// Its name: after a restart it takes its own leases back at once.
    pub node_name: String,
    /// The time by the asker's clock.
    pub now_ms: i64,
    /// How long the lease shall last.
    pub lease_ms: i64,
    /// How far clocks may differ: a foreign lease is judged over only this much later.
    pub skew_ms: i64,
}

/// Takes the lease if it is free, over, or was this node's own before a restart.
///
/// A start is newer if its number is larger. So of two processes that share a name by
/// mistake the newer one wins once and for all, instead of taking turns; and a start
/// does not take from itself what it has.
pub fn take(
    tx: &mut Tx<'_>,
    part: Part,
    role: &str,
    asking: &LeaseRequest,
) -> Result<Option<Lease>> {
    let deadline_ms = asking.now_ms + asking.lease_ms;
    let token = tx.query_opt(
        "INSERT INTO leases (part, role, node, node_name, token, deadline_ms, taken_ms, seq)
         VALUES ($1, $2, $3, $4, 1, $5, $6, 0)
         ON CONFLICT (part, role) DO UPDATE SET
             node = excluded.node, node_name = excluded.node_name, token = leases.token + 1,
             deadline_ms = excluded.deadline_ms, taken_ms = excluded.taken_ms
         WHERE leases.deadline_ms <= $7
            OR (leases.node_name = excluded.node_name AND leases.node < excluded.node)
         RETURNING token",
        &[
            part.into(),
            role.into(),
            asking.node.into(),
            (&asking.node_name).into(),
            deadline_ms.into(),
            asking.now_ms.into(),
            (asking.now_ms - asking.skew_ms).into(),
        ],
        |row| row.get(0),
    )?;
    Ok(token.map(|token| Lease { part, role: role.into(), node: asking.node, token, deadline_ms }))
}

/// Parts whose lease [`take`] would refuse: looked up without waiting for whoever has one
/// locked.
pub fn not_to_be_had(
    tx: &mut Tx<'_>,
    role: &str,
    asking: &LeaseRequest,
    limit: u32,
) -> Result<Vec<Part>> {
    tx.query(
        "SELECT part FROM leases
         WHERE role = $1 AND deadline_ms > $2 AND NOT (node_name = $3 AND node < $4)
         ORDER BY part LIMIT $5",
        &[
            role.into(),
            (asking.now_ms - asking.skew_ms).into(),
            (&asking.node_name).into(),
            asking.node.into(),
            limit.into(),
        ],
        |row| row.get(0),
    )
}

/// Whether nobody holds the lease, and whoever held it last gave it back in good
/// order: then nothing happened that is not in the tables.
pub fn is_vacant(tx: &mut Tx<'_>, part: Part, role: &str) -> Result<bool> {
    let deadline_ms: Option<i64> = tx.query_opt(
        "SELECT deadline_ms FROM leases WHERE part = $1 AND role = $2",
        &[part.into(), role.into()],
        |row| row.get(0),
    )?;
    Ok(deadline_ms.unwrap_or(0) == 0)
}

/// The lease that a node has, if it has it.
pub fn held_by(tx: &mut Tx<'_>, part: Part, role: &str, node: NodeId) -> Result<Option<Lease>> {
    tx.query_opt(
        "SELECT token, deadline_ms FROM leases
         WHERE part = $1 AND role = $2 AND node = $3 AND deadline_ms > 1",
        &[part.into(), role.into(), node.into()],
        |row| {
            let (token, deadline_ms) = (row.get(0)?, row.get(1)?);
            Ok(Lease { part, role: role.into(), node, token, deadline_ms })
        },
    )
}

/// Moves the deadline on.
pub fn renew(tx: &mut Tx<'_>, lease: &Lease, deadline_ms: i64) -> Result<()> {
    let touched = tx.execute(
        "UPDATE leases SET deadline_ms = $4 WHERE part = $1 AND role = $2 AND token = $3",
        &[lease.part.into(), (&lease.role).into(), lease.token.into(), deadline_ms.into()],
    )?;
    require_held(lease, touched)
}

/// Gives the lease back. Harmless when it is already somebody else's. `in_order` says
/// that all the holder did is in the tables; otherwise the lease only runs out at once.
pub fn release(tx: &mut Tx<'_>, lease: &Lease, in_order: bool) -> Result<()> {
    let deadline_ms = i64::from(!in_order);
    tx.execute(
        "UPDATE leases SET deadline_ms = $4 WHERE part = $1 AND role = $2 AND token = $3",
        &[lease.part.into(), (&lease.role).into(), lease.token.into(), deadline_ms.into()],
    )?;
    Ok(())
}

/// Leases whose deadline lies after a time, which is later than anybody would set it now.
pub fn ahead(tx: &mut Tx<'_>, latest_ms: i64, limit: u32) -> Result<Vec<Lease>> {
    tx.query(
        "SELECT part, role, node, token, deadline_ms FROM leases WHERE deadline_ms > $1
         ORDER BY part, role LIMIT $2",
        &[latest_ms.into(), limit.into()],
        |row| {
            let (part, role, node) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Lease { part, role, node, token: row.get(3)?, deadline_ms: row.get(4)? })
        },
    )
}

/// Ends a lease of somebody who is gone, if it is as it was seen.
pub fn end(tx: &mut Tx<'_>, seen: &Lease) -> Result<()> {
    tx.execute(
        "UPDATE leases SET deadline_ms = 1
         WHERE part = $1 AND role = $2 AND token = $3 AND deadline_ms = $4",
        &[seen.part.into(), (&seen.role).into(), seen.token.into(), seen.deadline_ms.into()],
    )?;
    Ok(())
}

/// Locks the lease for the rest of the transaction and fails if it is lost. The
/// first statement of every write that is not a commit.
pub fn fence(tx: &mut Tx<'_>, lease: &Lease) -> Result<()> {
    let touched = tx.execute(
        "UPDATE leases SET token = token WHERE part = $1 AND role = $2 AND token = $3",
        &[lease.part.into(), (&lease.role).into(), lease.token.into()],
    )?;
    require_held(lease, touched)
}

/// The number of the commit that this transaction is; fails if the lease is lost.
/// The first statement of every commit.
pub fn number_commit(tx: &mut Tx<'_>, lease: &Lease) -> Result<CommitNumber> {
    let seq = tx.query_opt(
        "UPDATE leases SET seq = seq + 1 WHERE part = $1 AND role = $2 AND token = $3 RETURNING seq",
        &[lease.part.into(), (&lease.role).into(), lease.token.into()],
        |row| row.get(0),
    )?;
    seq.ok_or_else(|| lost(lease))
}

/// The number of the part's last commit in a role.
pub fn last_commit(tx: &mut Tx<'_>, part: Part, role: &str) -> Result<CommitNumber> {
    let seq = tx.query_opt(
        "SELECT seq FROM leases WHERE part = $1 AND role = $2",
        &[part.into(), role.into()],
        |row| row.get(0),
    )?;
    Ok(seq.unwrap_or(CommitNumber::NONE))
}

/// The number of every part's last commit in a role, of up to `limit` parts.
pub fn last_commits(tx: &mut Tx<'_>, role: &str, limit: u32) -> Result<Vec<(Part, CommitNumber)>> {
    tx.query(
        "SELECT part, seq FROM leases WHERE role = $1 ORDER BY part LIMIT $2",
        &[role.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn require_held(lease: &Lease, touched: u64) -> Result<()> {
    if touched == 1 { Ok(()) } else { Err(lost(lease)) }
}

fn lost(lease: &Lease) -> Error {
    Error::LeaseLost { part: lease.part.0, role: lease.role.clone() }
}

#[cfg(test)]
mod tests;
