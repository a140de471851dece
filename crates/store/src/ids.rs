//! Numbers that name things in tables, each its own type, and the maker of new ones.
//!
//! Invariant: an id is made once in the life of a database, without asking it. The
//! upper bits are the node's number, which is new for every start of a process; so
//! ids need no clock, increase within a process, and rows lie in order of arrival.

use crate::value::{FromColumn, Row, Value};
use crate::{Error, Result};
use std::sync::atomic::{AtomicI64, Ordering};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub i64);

            impl From<$name> for Value<'_> {
                fn from(id: $name) -> Self { Value::Int(id.0) }
            }
            impl FromColumn for $name {
                fn from_column(row: &Row<'_>, index: usize) -> Result<$name> {
                    row.get(index).map($name)
                }
            }
            impl FromColumn for Option<$name> {
                fn from_column(row: &Row<'_>, index: usize) -> Result<Option<$name>> {
                    Ok(row.get::<Option<i64>>(index)?.map($name))
                }
            }
            impl std::fmt::Display for $name {
                fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    self.0.fmt(out)
                }
            }
        )*
    };
}

ids! {
    /// The unit of distribution: what a lease is about.
    Part;
    /// One start of one process.
    NodeId;
    /// A job, whatever its name is.
    JobId;
    /// A connection, whatever its name is.
    ConnectionId;
    /// A run of a job, counted from 1. Older is smaller.
    Run;
    /// A row of the queue: one document of one job.
    QueueId;
    /// What politeness counts by: for the web, a host.
    BinId;
    /// A chunk, before and after it is committed.
    ChunkId;
    /// A document of a repository connection.
    DocumentId;
    /// An object in the object store.
    ObjectId;
    /// The place of a commit in its part's order, counted from 1 without a gap.
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    CommitNumber;
}

impl Part {
    /// The parts of a database that has so many.
    pub fn all(count: u32) -> impl Iterator<Item = Part> + Clone {
        (0..i64::from(count)).map(Part)
    }
}

impl CommitNumber {
    /// Before the first commit of a part: where one stands who has applied nothing.
    pub const NONE: CommitNumber = CommitNumber(0);
    /// Behind every commit that there can be.
    pub const LAST: CommitNumber = CommitNumber(i64::MAX);

    /// The number of the commit after this one.
    pub fn next(self) -> CommitNumber {
        CommitNumber(self.0 + 1)
    }

    /// How many commits one who stands here lacks up to `head`.
    pub fn behind(self, head: CommitNumber) -> i64 {
        (head.0 - self.0).max(0)
    }
}

/// How many bits of an id its maker counts in: 1.1 trillion ids for each start.
const COUNT_BITS: u32 = 40;
/// Starts of processes that a database can number: 8.4 million.
pub const NODES_MAX: i64 = (1 << (63 - COUNT_BITS)) - 1;

/// Makes ids for one node.
#[derive(Debug)]
pub struct IdMaker {
    node: NodeId,
    count: AtomicI64,
}

impl IdMaker {
    /// The maker of a node that has just been registered.
    pub fn new(node: NodeId) -> Result<IdMaker> {
        if !(1..=NODES_MAX).contains(&node.0) {
            return Err(Error::Refused(format!(
                "node number {node} is out of range; after {NODES_MAX} starts of a process the \
                 database must be copied into a new one"
            )));
        }
        Ok(IdMaker { node, count: AtomicI64::new(0) })
    }

    /// The node whose ids these are.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// A number nobody has had.
    pub fn next(&self) -> i64 {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        assert!(count < 1 << COUNT_BITS, "a process makes fewer than 2^40 ids");
        (self.node.0 << COUNT_BITS) | count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_within_a_node_and_from_start_to_start() {
        let first = IdMaker::new(NodeId(1)).unwrap();
        let second = IdMaker::new(NodeId(2)).unwrap();
        let made: Vec<i64> = (0..3).map(|_| first.next()).chain([second.next()]).collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
    }

    #[test]
    fn a_node_number_that_would_overflow_is_refused() {
        assert!(IdMaker::new(NodeId(NODES_MAX)).unwrap().next() > 0);
        assert!(IdMaker::new(NodeId(NODES_MAX + 1)).is_err());
        assert!(IdMaker::new(NodeId(0)).is_err());
    }
}
