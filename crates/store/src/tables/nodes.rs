//! Processes that work on this database: one row for each start.
//!
//! Invariants: a node's number is given once; ids are made from it (see `ids`). What it
//! had begun as events ends with it, and what it could not reach is forgotten with it.

use crate::ids::NodeId;
use crate::names::names;
use crate::tables::{events, outages};
use crate::value::{Row, column};
use crate::{Result, Tx, Value};

/// What a process says of itself when it starts.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct NewNode {
    /// The same after a restart, different for processes that run side by side.
    pub name: String,
    /// What it does, such as `crawl links search`.
    pub roles: String,
    /// Where its API listens, if it does.
    pub address: Option<String>,
    pub version: String,
}

/// Whether a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// It has been registered and does not work yet.
    Joining,
    /// The process runs and works.
    Ready,
    /// It ends what it has begun.
    Draining,
    /// It was heard of too long ago.
    Absent,
    /// The process has ended in good order.
    Stopped,
}

names!(NodeState of "a row of nodes" {
    Joining = "joining",
    Ready = "ready",
    Draining = "draining",
    Absent = "absent",
    Stopped = "stopped",
});

/// A node as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Node {
    pub id: NodeId,
    pub name: String,
    pub roles: String,
    pub address: Option<String>,
    pub version: String,
    pub state: NodeState,
    pub health: String,
    pub started_ms: i64,
    pub heartbeat_ms: i64,
    pub stopped_ms: Option<i64>,
}

/// Registers a start. Earlier starts under the same name are over.
pub fn register(tx: &mut Tx<'_>, node: &NewNode, now_ms: i64) -> Result<NodeId> {
    tx.execute(
        "UPDATE nodes SET state = 'stopped', stopped_ms = $2
         WHERE name = $1 AND state <> 'stopped'",
        &[(&node.name).into(), now_ms.into()],
    )?;
    // The number comes from a counter and not from the rows, so that it is never
    // given twice even when old rows have been cleared away.
    let id: NodeId = tx.query_one(
        "INSERT INTO counters (part, jobid, name, value) VALUES (0, 0, 'nodes', 1)
         ON CONFLICT (part, jobid, name) DO UPDATE SET value = counters.value + 1
         RETURNING value",
        &[],
        |row| row.get(0),
    )?;
    tx.execute(
        "INSERT INTO nodes (id, name, roles, address, version, state, health, started_ms, heartbeat_ms)
         VALUES ($1, $2, $3, $4, $5, 'ready', 'healthy', $6, $7)",
        &[
            id.into(),
            (&node.name).into(),
            (&node.roles).into(),
            (&node.address).into(),
            (&node.version).into(),
            now_ms.into(),
            now_ms.into(),
        ],
    )?;
    end_of_the_gone(tx)?;
    Ok(id)
}

/// Says that the node is alive. False when it has been declared absent or stopped.
pub fn heartbeat(tx: &mut Tx<'_>, node: NodeId, now_ms: i64) -> Result<bool> {
    let touched = tx.execute(
        "UPDATE nodes SET heartbeat_ms = $2 WHERE id = $1 AND state IN ('joining', 'ready', 'draining')",
        &[node.into(), now_ms.into()],
    )?;
    Ok(touched == 1)
}

/// A node that was declared absent is heard of again. False when it has been stopped:
/// a newer start goes by its name.
pub fn rejoin(tx: &mut Tx<'_>, node: NodeId, now_ms: i64) -> Result<bool> {
    let touched = tx.execute(
        "UPDATE nodes SET state = 'ready', health = 'probation', heartbeat_ms = $2
         WHERE id = $1 AND state = 'absent'",
        &[node.into(), now_ms.into()],
    )?;
    Ok(touched == 1)
}

/// Nodes of a role that were heard of since a time.
pub fn live(tx: &mut Tx<'_>, role: &str, heard_since_ms: i64, limit: u32) -> Result<Vec<NodeId>> {
    tx.query(
        "SELECT id FROM nodes
         WHERE state IN ('joining', 'ready', 'draining') AND heartbeat_ms >= $2
           AND ' ' || roles || ' ' LIKE '% ' || $1 || ' %'
         ORDER BY id LIMIT $3",
        &[role.into(), heard_since_ms.into(), limit.into()],
        |row| row.get(0),
    )
}

/// Whether a node has been heard of since a time and has not ended.
pub fn is_live(tx: &mut Tx<'_>, node: NodeId, heard_since_ms: i64) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT 1 FROM nodes WHERE id = $1 AND heartbeat_ms >= $2
           AND state IN ('joining', 'ready', 'draining')",
        &[node.into(), heard_since_ms.into()],
        |row| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

/// The node ended in good order.
pub fn stop(tx: &mut Tx<'_>, node: NodeId, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE nodes SET state = 'stopped', stopped_ms = $2 WHERE id = $1",
        &[node.into(), now_ms.into()],
    )?;
    end_of_the_gone(tx)?;
    Ok(())
}

/// Declares nodes absent that have not been heard of since `before_ms`.
pub fn mark_absent(tx: &mut Tx<'_>, before_ms: i64) -> Result<Vec<NodeId>> {
    let absent = tx.query(
        "UPDATE nodes SET state = 'absent', health = 'failure'
         WHERE state IN ('joining', 'ready', 'draining') AND heartbeat_ms < $1
         RETURNING id",
        &[before_ms.into()],
        |row| row.get(0),
    )?;
    if !absent.is_empty() {
        end_of_the_gone(tx)?;
    }
    Ok(absent)
}

/// What nodes had begun or recorded that do not run any more.
fn end_of_the_gone(tx: &mut Tx<'_>) -> Result<()> {
    events::end_of_the_gone(tx)?;
    outages::clear_gone(tx)
}

const NODE: &str = "id, name, roles, address, version, state, health, started_ms, heartbeat_ms, \
                    stopped_ms";

impl Node {
    fn from_row(row: &Row<'_>) -> Result<Node> {
        Ok(Node {
            id: row.get(column!(NODE, "id"))?,
            name: row.get(column!(NODE, "name"))?,
            roles: row.get(column!(NODE, "roles"))?,
            address: row.get(column!(NODE, "address"))?,
            version: row.get(column!(NODE, "version"))?,
            state: row.get(column!(NODE, "state"))?,
            health: row.get(column!(NODE, "health"))?,
            started_ms: row.get(column!(NODE, "started_ms"))?,
            heartbeat_ms: row.get(column!(NODE, "heartbeat_ms"))?,
            stopped_ms: row.get(column!(NODE, "stopped_ms"))?,
        })
    }
}

/// Nodes from the newest start on.
pub fn list(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<Node>> {
    tx.query(
        &format!("SELECT {NODE} FROM nodes ORDER BY id DESC LIMIT $1"),
        &[Value::from(limit)],
        Node::from_row,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    fn node(name: &str) -> NewNode {
        NewNode { name: name.into(), roles: "crawl".into(), address: None, version: "test".into() }
    }

    #[test]
    fn every_start_has_its_own_number_and_ends_the_one_before() {
        both_databases(|db| {
            let first = db.write(|tx| register(tx, &node("a"), 1))?;
            let again = db.write(|tx| register(tx, &node("a"), 2))?;
            let other = db.write(|tx| register(tx, &node("b"), 3))?;
            assert!(first < again && again < other);
            assert!(!db.write(move |tx| heartbeat(tx, first, 4))?, "the first start is over");
            assert!(db.write(move |tx| heartbeat(tx, again, 4))?);
            let states: Vec<String> = db
                .read(|tx| list(tx, 10))?
                .into_iter()
                .map(|node| node.state.name().to_owned())
                .collect();
            assert_eq!(states, ["ready", "ready", "stopped"]);
            Ok(())
        });
    }

    #[test]
    fn a_silent_node_becomes_absent_once() {
        both_databases(|db| {
            let silent = db.write(|tx| register(tx, &node("silent"), 10))?;
            let alive = db.write(|tx| register(tx, &node("alive"), 10))?;
            db.write(move |tx| heartbeat(tx, alive, 50))?;
            assert_eq!(db.write(|tx| mark_absent(tx, 40))?, [silent]);
            assert_eq!(db.write(|tx| mark_absent(tx, 40))?, []);
            assert!(!db.write(move |tx| heartbeat(tx, silent, 60))?);
            let live = |role: &'static str| db.read(move |tx| super::live(tx, role, 40, 9));
            assert_eq!((live("crawl")?, live("raw")?), (vec![alive], vec![]));
            assert!(db.write(move |tx| rejoin(tx, silent, 61))?);
            assert_eq!(live("crawl")?, [silent, alive]);
            assert!(!db.write(move |tx| rejoin(tx, alive, 61))?, "it was never away");
            Ok(())
        });
    }
}
