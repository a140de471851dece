//! Events in play: while one is, documents that depend on it wait (tables 11.22 and
//! 11.23). Somebody logs in to a site, once, and whatever needs the session waits for it.
//!
//! Invariants: an event is begun by one process at a time, whoever else tries hears so;
//! it ends when that process says so, or with the process; documents that wait never
//! leave the queue, so nothing has to be done for them when it ends.

use crate::ids::{ConnectionId, JobId, NodeId, Part, QueueId};
use crate::{Result, Tx, Value};

/// Bytes of an event's name, which is part of keys.
pub const NAME_BYTES_MAX: usize = 200;

/// Whose events share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventScope {
    /// Events that all jobs share.
    Global,
    /// Those of the jobs of a connection.
    Connection(ConnectionId),
    /// Those of one job.
    Job(JobId),
}

impl EventScope {
    /// The whole name of an event of this scope.
    pub fn event(self, name: &str) -> String {
        let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        match self {
            EventScope::Global => format!("all:{name}"),
            EventScope::Connection(id) => format!("connection {id}:{name}"),
            EventScope::Job(id) => format!("job {id}:{name}"),
        }
    }
}

/// Begins an event. False when it is in play already.
pub fn begin(tx: &mut Tx<'_>, event: &str, node: NodeId, now_ms: i64) -> Result<bool> {
    let begun = tx.execute(
        "INSERT INTO events (name, node, begun_ms) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO NOTHING",
        &[event.into(), node.into(), now_ms.into()],
    )?;
    Ok(begun == 1)
}

/// Ends an event that this process began. False when it has ended before.
pub fn complete(tx: &mut Tx<'_>, event: &str, node: NodeId) -> Result<bool> {
    let ended = tx.execute(
        "DELETE FROM events WHERE name = $1 AND node = $2",
        &[event.into(), node.into()],
    )?;
    Ok(ended == 1)
}

/// Ends the events of processes that are not there any more. Returns how many.
pub fn end_of_the_gone(tx: &mut Tx<'_>) -> Result<u64> {
    tx.execute(
        "DELETE FROM events WHERE NOT EXISTS
             (SELECT 1 FROM nodes n WHERE n.id = events.node
                AND n.state IN ('joining', 'ready', 'draining'))",
        &[],
    )
}

/// Whether any event is in play.
pub fn is_any(tx: &mut Tx<'_>) -> Result<bool> {
    let found = tx.query_opt("SELECT 1 FROM events LIMIT 1", &[], |row| row.get::<i64>(0))?;
    Ok(found.is_some())
}

/// Documents of a part depend on events from now on, too.
pub fn depend(tx: &mut Tx<'_>, part: Part, on: &[(QueueId, &str)]) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> =
        on.iter().map(|(id, event)| vec![part.into(), (*id).into(), (*event).into()]).collect();
    tx.insert_rows(
        "INSERT INTO prereqevents (part, owner, eventname)",
        &rows,
        "ON CONFLICT (part, owner, eventname) DO NOTHING",
    )?;
    Ok(())
}

/// Rows of the queue have gone, and what they depended on with them.
pub(crate) fn forget(tx: &mut Tx<'_>, part: Part, gone: &[Value<'_>]) -> Result<()> {
    tx.query_in(
        "DELETE FROM prereqevents WHERE part = $1 AND owner IN ($keys)
         RETURNING owner",
        &[part.into()],
        gone,
        |_| Ok(()),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::nodes::{self, NewNode};
    use crate::testing::both_databases;

    fn node(name: &str) -> NewNode {
        NewNode { name: name.into(), roles: "crawl".into(), address: None, version: "test".into() }
    }

    #[test]
    fn an_event_is_begun_once_and_ended_by_whoever_began_it() {
        both_databases(|db| {
            let event = EventScope::Connection(ConnectionId(7)).event("login");
            assert_eq!(event, "connection 7:login");
            let names = [
                EventScope::Global.event("x"),
                EventScope::Job(JobId(7)).event("x"),
                event.clone(),
            ];
            db.write(move |tx| {
                for name in &names {
                    assert!(begin(tx, name, NodeId(1), 5)?, "{name} is its own event");
                }
                assert!(!begin(tx, &event, NodeId(2), 6)?, "somebody is at it");
                assert!(!complete(tx, &event, NodeId(2))?, "it is not theirs");
                assert!(is_any(tx)? && complete(tx, &event, NodeId(1))?);
                assert!(!complete(tx, &event, NodeId(1))?);
                assert!(begin(tx, &event, NodeId(2), 7)?, "the next one can have it");
                Ok(())
            })
        });
    }

    #[test]
    fn events_end_with_their_process() {
        both_databases(|db| {
            let [killed, lost, stopped] = ["killed", "lost", "stopped"].map(|name| {
                let id = db.write(move |tx| {
                    let id = nodes::register(tx, &node(name), 10)?;
                    assert!(begin(tx, name, id, 10)?);
                    Ok(id)
                });
                id.unwrap()
            });
            let ends = |name: &'static str| db.write(move |tx| begin(tx, name, NodeId(99), 30));
            db.write(move |tx| {
                nodes::heartbeat(tx, killed, 25)?;
                nodes::heartbeat(tx, stopped, 25)
            })?;
            assert_eq!(db.write(|tx| nodes::mark_absent(tx, 20))?, [lost]);
            assert!(ends("lost")? && !ends("killed")? && !ends("stopped")?);
            db.write(move |tx| nodes::stop(tx, stopped, 26))?;
            assert!(ends("stopped")? && !ends("killed")?);
            db.write(|tx| nodes::register(tx, &node("killed"), 27))?;
            assert!(ends("killed")?, "another start under its name says that it is over");
            Ok(())
        });
    }
}
