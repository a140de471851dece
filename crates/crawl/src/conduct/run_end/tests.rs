//! What the end of a run cleans up, and what it leaves alone.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use super::*;
use store::Db;
use store::ids::{ChunkId, ConnectionId, NodeId};
use store::tables::chunks;
use store::tables::connections::{Connection, ConnectionKind};
use store::tables::jobs::Job;
use store::tables::leases::{self, LeaseRequest};
use store::tables::queue::{self, AddContext, Reason, SettledDocument, Settlement};
use store::testing::{both_databases, candidate};

const PLACE: Place = Place { part: Part(0), job: JobId(1) };

/// A job of a connector whose only document could not be looked at.
fn failed(db: &Db, connector: &'static str) -> Result<()> {
    db.write(move |tx| {
        let connection = Connection::new(ConnectionId(1), "source", connector);
        connections::save(tx, ConnectionKind::Repository, &connection, 0)?;
        jobs::save(tx, &Job::new(PLACE.job, "a", ConnectionId(1)), 0)?;
        let adding = AddContext {
            place: PLACE,
            run: Run(1),
            now_ms: 0,
            room: None,
            requisites: Default::default(),
        };
        queue::add(tx, adding, &[candidate(1, "/share/below", "")])?;
        let asking = LeaseRequest {
            node: NodeId(1),
            node_name: "n".into(),
            now_ms: 0,
            lease_ms: 1_000,
            skew_ms: 0,
        };
        let lease = leases::take(tx, PLACE.part, "crawl", &asking)?.unwrap();
        chunks::open(tx, &lease, ChunkId(1), PLACE.job, Run(1), 0)?;
        let peeked = queue::load(tx, PLACE, &[QueueId(1)])?;
        queue::claim(tx, PLACE, ChunkId(1), peeked)?;
        let to = Settlement::Failed(Reason::new("read", None));
        let settled = [SettledDocument { id: QueueId(1), generation: 1, to }];
        queue::settle(tx, PLACE, ChunkId(1), Run(1), &settled)
    })
}

#[test]
fn what_is_in_a_directory_that_could_not_be_listed_is_not_cleaned_up() {
    for (connector, expected) in [("files", false), ("web", true), ("sql", true)] {
        both_databases(|db| {
            failed(db, connector)?;
            let cleans_in = |run| {
                let it = JobRun { job: PLACE.job, run: Run(run), kind: RunKind::Full };
                db.read(move |tx| cleans(tx, &it))
            };
            assert_eq!(cleans_in(1)?, expected, "{connector}");
            assert!(cleans_in(2)?, "{connector}: another run has listed it");
            Ok(())
        });
    }
}
