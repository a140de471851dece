//! Outages from their first failed attempt to their end, on both databases.

use super::*;
use crate::Db;
use crate::ids::CommitNumber;
use crate::tables::connections::{self, Connection, ConnectionKind};
use crate::tables::ingests::{Decision, Ingest, Move, PendingDecision};
use crate::tables::jobs::{self, Job};
use crate::tables::nodes::{self, NewNode};
use crate::tables::pipelines::{self, PipelineStage, StageKind};
use crate::testing::both_databases;
use page::ids::DocHash;

const REPOSITORY: ConnectionId = ConnectionId(1);
const OUTPUT: ConnectionId = ConnectionId(5);
const JOB: JobId = JobId(7);

fn node(db: &Db, name: &str, now_ms: i64) -> Result<NodeId> {
    let (roles, version) = ("crawl".to_owned(), "0".to_owned());
    let node = NewNode { name: name.to_owned(), roles, address: None, version };
    db.write(move |tx| nodes::register(tx, &node, now_ms))
}

/// A job that sends documents to an output, three of which wait there.
fn defined(db: &Db) -> Result<()> {
    db.write(|tx| {
        let handbook = Connection::new(REPOSITORY, "handbook", "files");
        connections::save(tx, ConnectionKind::Repository, &handbook, 1)?;
        connections::save(tx, ConnectionKind::Output, &Connection::new(OUTPUT, "copy", "null"), 1)?;
        jobs::save(tx, &Job::new(JOB, "docs", REPOSITORY), 1)?;
        let stage = PipelineStage {
            prerequisite: None,
            kind: StageKind::Output,
            connection: OUTPUT,
            description: None,
            spec: "{}".to_owned(),
        };
        pipelines::replace(tx, JOB, &[stage], 1)?;
        for number in 0..3 {
            let row = Ingest {
                pending: Some(PendingDecision::new(Decision::Add, CommitNumber(1), JOB)),
                ..Ingest::new(number + 1, REPOSITORY, DocHash::of(&number.to_string()))
            };
            let moves = [Move { before: None, after: Some(row) }];
            ingests::save(tx, Part(number % 2), OUTPUT, &moves)?;
        }
        Ok(())
    })
}

fn fail(db: &Db, what: Unreachable, (node, why): (NodeId, &str), now_ms: i64) -> Result<()> {
    let failure = Failure { what, node, since_ms: now_ms, why: why.to_owned() };
    db.write(move |tx| record(tx, &failure, now_ms))
}

#[test]
fn an_output_that_cannot_be_reached_is_named_with_what_waits_for_it() {
    both_databases(|db| {
        defined(db)?;
        let (one, two) = (node(db, "one", 100)?, node(db, "two", 100)?);
        let what = Unreachable::Output(OUTPUT);
        fail(db, what, (one, "refused"), 110)?;
        fail(db, what, (one, "refused\0again"), 130)?;
        fail(db, what, (two, "no route"), 120)?;
        let all = || db.read(|tx| list(tx, 140));
        let outage = Outage {
            kind: OutageKind::Output,
            connection: "copy".into(),
            jobs: vec!["docs".into()],
            since_ms: 110,
            tried_ms: 130,
            attempts: 3,
            why: "refused again".into(),
            waiting: 3,
            waiting_more: false,
        };
        assert_eq!(all()?, [outage]);
        db.write(move |tx| clear_output(tx, OUTPUT, one))?;
        assert_eq!(all()?[0].why, "no route", "the other process still cannot reach it");
        db.write(move |tx| nodes::stop(tx, two, 150))?;
        assert_eq!(all()?, [], "it went with its node");
        Ok(())
    });
}

#[test]
fn a_process_that_was_killed_does_not_leave_an_outage_behind() {
    both_databases(|db| {
        defined(db)?;
        let killed = node(db, "one", 100)?;
        fail(db, Unreachable::Output(OUTPUT), (killed, "refused"), 110)?;
        assert_eq!(db.read(|tx| list(tx, 100 + SILENCE_MS))?.len(), 1);
        assert_eq!(db.read(|tx| list(tx, 101 + SILENCE_MS))?, [], "nothing is heard of it");
        node(db, "one", 120)?;
        let rows = db.read(|tx| {
            tx.query_one("SELECT COUNT(*) FROM outages", &[], |row| row.get::<i64>(0))
        })?;
        assert_eq!(rows, 0, "the next start forgets it");
        Ok(())
    });
}

#[test]
fn a_repository_is_named_for_each_job_until_the_job_goes_on() {
    both_databases(|db| {
        defined(db)?;
        db.write(|tx| counters::add(tx, Part(0), JOB, &[("ready", 2), ("done", 9)]))?;
        let one = node(db, "one", 100)?;
        fail(db, Unreachable::Repository(REPOSITORY, JOB), (one, "not mounted"), 110)?;
        fail(db, Unreachable::RunEnd(JOB), (one, "output copy is away"), 120)?;
        let found = db.read(|tx| list(tx, 130))?;
        let told: Vec<_> =
            found.iter().map(|it| (it.kind, it.connection.as_str(), it.waiting)).collect();
        let expected = [(OutageKind::RunEnd, "", 0), (OutageKind::Repository, "handbook", 2)];
        assert_eq!(told, expected);
        assert!(found.iter().all(|it| it.jobs == ["docs"]));
        db.write(|tx| clear_job(tx, JOB))?;
        assert_eq!(db.read(|tx| list(tx, 130))?, []);
        Ok(())
    });
}
