//! Notices that arrive, that must be tried again, and that are given up.

use super::*;
use crate::notifications::webhook;
use crate::testing::receiver::Receiver;
use crate::testing::{Fault, Shelf};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::jobs::Job;
use store::tables::nodes::{self, NewNode};
use store::tables::notifications::Notification as Row;
use store::tables::registrations;
use store::testing::both_databases;

const JOB: JobId = JobId(7);
const REPOSITORY: ConnectionId = ConnectionId(1);

/// A job that tells receivers, each with its settings.
fn context(db: &Db, settings: &[String]) -> Result<NotifierContext> {
    let node =
        NewNode { name: "one".into(), roles: "crawl".into(), address: None, version: "0".into() };
    let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    let settings = settings.to_vec();
    db.write(move |tx| {
        registrations::register(tx, &webhook::CONNECTOR, 1)?;
        let web = Connection::new(REPOSITORY, "web", "web");
        connections::save(tx, ConnectionKind::Repository, &web, 1)?;
        jobs::save(tx, &Job::new(JOB, "docs", REPOSITORY), 1)?;
        let mut rows = Vec::new();
        for (config, id) in settings.iter().zip(10..) {
            let connection = ConnectionId(id);
            let it = Connection::new(connection, &format!("note{id}"), "webhook");
            let it = Connection { config: config.clone(), ..it };
            connections::save(tx, ConnectionKind::Notification, &it, 1)?;
            rows.push(Row { connection, description: None, spec: "{}".into() });
        }
        notifications::replace(tx, JOB, &rows, 1)
    })?;
    let ids = Arc::new(IdMaker::new(node)?);
    Ok(NotifierContext { db: db.clone(), ids, waits_ms: vec![5, 5] })
}

fn url(receiver: &Receiver) -> String {
    serde_json::json!({"url": receiver.server.url(), "timeout_ms": 2000}).to_string()
}

/// What the history says: results by connection.
fn results(db: &Db) -> Result<Vec<String>> {
    let walk = history::ActivityQuery::all(REPOSITORY);
    let found = db.read(move |tx| history::page(tx, &walk, walk.start(), 100))?;
    let mut found: Vec<String> = found
        .into_iter()
        .map(|it| format!("{} {} {}", it.kind, it.entity, it.result.unwrap_or_default()))
        .collect();
    found.sort();
    Ok(found)
}

#[test]
fn everybody_is_told_and_tried_again_and_nobody_waits_for_another() {
    both_databases(|db| {
        let (good, bad) = (Receiver::start(), Receiver::start());
        let picky = Receiver::start();
        let only = serde_json::json!({"url": picky.server.url(), "events": ["restart"]});
        let context = context(db, &[url(&bad), url(&good), only.to_string()])?;
        bad.shelf.fail([Fault::Status(500), Fault::Lost]);
        let ready = ready();
        let board = ready.board();
        // Before it begins, too.
        board.leave(JOB, Occasion::End, &JobState::default());
        let teller = ready.start(context)?;
        bad.shelf.wait("it was tried three times", |kept| kept.updates == 3);
        good.shelf.wait("it was told", |kept| kept.updates == 1);
        teller.stop();
        assert_eq!(good.messages()[0]["event"], "end");
        assert_eq!(good.messages()[0]["job"], "docs");
        assert_eq!(bad.messages().len(), 2, "one answer was lost");
        assert_eq!(picky.messages().len(), 0);
        let expected = ["notification (note10) docs: end OK", "notification (note11) docs: end OK"];
        assert_eq!(results(db)?, expected);
        Ok(())
    });
}

#[test]
fn one_that_cannot_be_told_is_given_up_and_the_history_says_so() {
    both_databases(|db| {
        let bad = Receiver::start();
        let context = context(db, &[url(&bad)])?;
        bad.shelf.fail(vec![Fault::Status(500); 3]);
        let ready = ready();
        ready.board().leave(JOB, Occasion::ErrorAbort, &JobState::default());
        let teller = ready.start(context)?;
        bad.shelf.wait("it was tried three times", |kept| kept.updates == 3);
        teller.stop();
        assert_eq!(results(db)?, ["notification (note10) docs: error abort FAILED"]);
        Ok(())
    });
}

/// Whatever waits when the work ends is tried once more, and no longer.
#[test]
fn the_end_of_the_work_does_not_wait_for_tries() {
    both_databases(|db| {
        let shelf = Shelf::default();
        let bad = Receiver::at(0, shelf.clone(), None);
        let context =
            NotifierContext { waits_ms: vec![3_600_000; 3], ..context(db, &[url(&bad)])? };
        shelf.fail([Fault::Status(503)]);
        let ready = ready();
        let board = ready.board();
        board.leave(JOB, Occasion::ManualAbort, &JobState::default());
        let teller = ready.start(context)?;
        shelf.wait("it was tried", |kept| kept.updates == 1);
        board.leave(JobId(99), Occasion::End, &JobState::default());
        teller.stop();
        assert_eq!(shelf.kept().updates, 2);
        assert_eq!(results(db)?, ["notification (note10) docs: manual abort OK"]);
        Ok(())
    });
}
