//! The list of connectors, and the guide to writing one: its example is compiled, listed
//! and run as any other connector is.

use super::*;
use crate::begin;
use crate::conduct::{self, Attends, Observer};
use crate::definitions::WebSpec;
use crate::lifecycle::JobEvent;
use crate::worker::progress::Progress;
use crate::worker::{Worker, WorkerDeps, WorkerSettings};
use std::sync::atomic::{AtomicUsize, Ordering};
use store::ids::{ConnectionId, IdMaker, JobId};
use store::objects::{Location, Objects};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::jobs::{self, Job};
use store::tables::nodes::{self, NewNode};
use store::tables::{job_states, registrations, settings};
use store::testing::both_databases;
use store::{Db, clock};

#[test]
fn every_connector_has_a_name_of_its_own() {
    let mut names: Vec<&str> = ALL.iter().map(|it| it.0.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}

#[test]
fn what_cannot_be_read_is_told_with_its_field_and_no_column() {
    let refused = (web::CONNECTOR.check_spec)(r#"{"sedes": []}"#).unwrap_err();
    assert!(refused.contains("`sedes`") && !refused.contains("column"), "{refused}");
    let refused = (web::CONNECTOR.check_config)(r#"{"x": 1}"#).unwrap_err();
    assert!(refused.contains("`x`"), "{refused}");
}

const GUIDE: &str = include_str!("../../../../docs/guide/connectors.md");

#[test]
fn the_guide_shows_the_example_as_it_is() {
    let (_, after) = GUIDE.split_once("```rust\n").unwrap();
    let (shown, _) = after.split_once("```\n").unwrap();
    assert!(shown == include_str!("example.rs"), "docs/guide/connectors.md shows another example");
    let line = "    (example::CONNECTOR, Some(example::repository), None),\n";
    assert!(GUIDE.contains(line) && include_str!("../connectors.rs").contains(line));
}

const JOB: JobId = JobId(1);

/// Counts what it is told.
#[derive(Default)]
struct Counting {
    committed: AtomicUsize,
    decided: AtomicUsize,
}

impl Observer for Counting {
    fn on_commit(&self) {
        self.committed.fetch_add(1, Ordering::SeqCst);
    }

    fn on_decisions(&self) {
        self.decided.fetch_add(1, Ordering::SeqCst);
    }

    fn on_run_end(&self, _job: JobId) -> store::Result<()> {
        Ok(())
    }
}

/// Says what the example's job holds, and runs it to its end.
fn run((db, objects): (&Db, &Objects), (author, notes): (&str, &[&str])) -> store::Result<()> {
    let config = serde_json::json!({"author": author}).to_string();
    let docspec = serde_json::json!({"notes": notes}).to_string();
    let config = (example::CONNECTOR.check_config)(&config).unwrap();
    let docspec = (example::CONNECTOR.check_spec)(&docspec).unwrap();
    let node =
        NewNode { name: "one".into(), roles: "crawl".into(), address: None, version: "0".into() };
    let node = db.write(move |tx| {
        let connection = Connection::new(ConnectionId(1), "notes", "example");
        let connection = Connection { config: config.clone(), ..connection };
        connections::save(tx, ConnectionKind::Repository, &connection, clock::now_ms())?;
        let job = Job::new(JOB, "notes", ConnectionId(1));
        jobs::save(tx, &Job { docspec: docspec.clone(), ..job }, clock::now_ms())?;
        conduct::change(tx, JOB, &JobEvent::Start { minimal: false }, clock::now_ms())?;
        nodes::register(tx, &node, clock::now_ms())
    })?;
    let observer = Arc::new(Counting::default());
    let deps = WorkerDeps {
        db: db.clone(),
        objects: objects.clone(),
        ids: Arc::new(IdMaker::new(node)?),
        shared: begin::shared(db, Vec::new())?,
        progress: Arc::new(Progress::default()),
        observer: observer.clone(),
    };
    let mut settings = WorkerSettings::new("one", 4).with_lease(1_000);
    settings.until_idle = true;
    let usual = WebSpec::default();
    (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
    let (worker, _stopper) = Worker::start(deps, settings, Attends::All)?;
    worker.run()?;
    let state = db.read(|tx| job_states::state(tx, JOB))?;
    assert_eq!((state.name().as_str(), state.error), ("INACTIVE", None));
    let told = (&observer.committed, &observer.decided);
    let (committed, decided) = (told.0.load(Ordering::SeqCst), told.1.load(Ordering::SeqCst));
    assert!(committed > 0, "whoever consumes chunks hears of every commit");
    assert_eq!(decided, 0, "there is no output that could be told something");
    Ok(())
}

/// The first column of rows.
fn texts(db: &Db, sql: &'static str) -> store::Result<Vec<String>> {
    db.read(move |tx| tx.query(sql, &[], |row| row.get(0)))
}

#[test]
fn the_example_is_crawled_like_any_other() {
    both_databases(|db| {
        db.write(|tx| {
            settings::freeze(tx, 4)?;
            registrations::register(tx, &example::CONNECTOR, 0)
        })?;
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::open(&Location::Directory(folder.path().to_owned()))?;
        let at = (db, &objects);
        let titles = "SELECT title FROM documents WHERE removed_ms IS NULL ORDER BY title";
        let updated = "SELECT title FROM documents WHERE changes > 0 ORDER BY title";
        let handed = "SELECT datavalue FROM carrydowns ORDER BY datavalue";
        let garden = "garden | Roses |";
        let notes = [
            "home | Welcome | garden shed",
            garden,
            "shed | Tools |",
            "attic | Nobody comes here |",
        ];
        run(at, ("Ada", &notes))?;
        assert_eq!(texts(db, titles)?, ["garden", "home", "shed"]);
        assert_eq!(texts(db, handed)?, ["home", "home"]);
        run(at, ("Ada", &notes))?;
        assert_eq!(texts(db, updated)?, [""; 0], "nothing has changed");
        // A text changes, and a note is not mentioned any more.
        run(at, ("Ada", &["home | Welcome | shed", "shed | Old tools |", garden]))?;
        assert_eq!(texts(db, titles)?, ["home", "shed"]);
        assert_eq!(texts(db, updated)?, ["shed"]);
        assert_eq!(texts(db, handed)?, ["home"]);
        // What the connection says counts, too.
        run(at, ("Eve", &["home | Welcome | shed", "shed | Old tools |"]))?;
        assert_eq!(texts(db, updated)?, ["home", "shed"]);
        Ok(())
    });
}
