//! A crawl whose reader fails: the document is done all the same, the next run reads what was
//! the reader's fault again, and only that.

use super::*;
use crate::begin;
use crate::conduct::{self, Attends, NoObserver};
use crate::connectors::files;
use crate::definitions::WebSpec;
use crate::lifecycle::JobEvent;
use crate::worker::progress::Progress;
use crate::worker::{Worker, WorkerDeps, WorkerSettings};
use std::path::Path;
use std::sync::Arc;
use store::ids::{ConnectionId, IdMaker, JobId};
use store::objects::{Location, Objects};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::jobs::{self, Job};
use store::tables::nodes::{self, NewNode};
use store::tables::{registrations, settings};
use store::testing::both_databases;
use store::{Db, clock};

const JOB: JobId = JobId(1);

fn define(db: &Db, root: &Path) -> store::Result<()> {
    let docspec = serde_json::json!({"roots": [root]}).to_string();
    let docspec = (files::CONNECTOR.check_spec)(&docspec).unwrap();
    db.write(move |tx| {
        settings::freeze(tx, 4)?;
        registrations::register(tx, &files::CONNECTOR, 0)?;
        let connection = Connection::new(ConnectionId(1), "disk", "files");
        connections::save(tx, ConnectionKind::Repository, &connection, 0)?;
        let job = Job::new(JOB, "docs", ConnectionId(1));
        jobs::save(tx, &Job { docspec: docspec.clone(), ..job }, 0)?;
        Ok(())
    })
}

/// Runs the job to its end with a script that reads, and gives each file's name and outcome.
fn run((db, objects): (&Db, &Objects), script: &str) -> store::Result<Vec<(String, String)>> {
    let node =
        NewNode { name: "one".into(), roles: "crawl".into(), address: None, version: "0".into() };
    let node = db.write(move |tx| {
        conduct::change(tx, JOB, &JobEvent::Start { minimal: false }, clock::now_ms())?;
        nodes::register(tx, &node, clock::now_ms())
    })?;
    let arguments = ["-c", script, "sh"].map(str::to_owned).into();
    let mut shared = begin::shared(db, Vec::new())?;
    shared.extractor = Arc::new(Extractor::new(Program { path: "/bin/sh".into(), arguments }));
    let deps = WorkerDeps {
        db: db.clone(),
        objects: objects.clone(),
        ids: Arc::new(IdMaker::new(node)?),
        shared,
        progress: Arc::new(Progress::default()),
        observer: Arc::new(NoObserver),
    };
    let mut settings = WorkerSettings::new("one", 4).with_lease(1_000);
    settings.until_idle = true;
    let usual = WebSpec::default();
    (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
    let (worker, _stopper) = Worker::start(deps, settings, Attends::All)?;
    worker.run()?;
    db.read(|tx| {
        let sql = "SELECT d.title, COALESCE(l.outcome, d.outcome) FROM documents d
                   LEFT JOIN looks l ON l.part = d.part AND l.id = d.id AND l.base = d.checksum
                   WHERE d.removed_ms IS NULL ORDER BY d.docid";
        tx.query(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))
    })
}

#[test]
fn what_was_the_readers_fault_is_read_again_by_the_next_run() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("docs");
        std::fs::create_dir(&root).expect("a folder");
        for name in ["a", "b"] {
            let text = format!("%PDF-{name}");
            std::fs::write(root.join(format!("{name}.pdf")), text).expect("a file");
        }
        let objects = Objects::open(&Location::Directory(folder.path().join("objects")))?;
        define(db, &root)?;
        let told = |a: (&str, &str), b: (&str, &str)| {
            [a, b].map(|(title, outcome)| (title.to_owned(), outcome.to_owned()))
        };
        // One document has its reader killed, for another it does not start.
        let fails = r#"[ "$(cat)" = %PDF-a ] && kill -SEGV $$; exit 2"#;
        let first = run((db, &objects), fails)?;
        assert_eq!(first, told(("a.pdf", "unread-crash"), ("b.pdf", "unread-program")));
        let reads = r#"cat > /dev/null; echo '{"Ok": {"title": "Read", "text": "words"}}'"#;
        let second = run((db, &objects), reads)?;
        assert_eq!(second, told(("a.pdf", "unread-crash"), ("Read", "ok")));
        // When it changes, it is read, whatever was the matter before.
        std::fs::write(root.join("a.pdf"), "%PDF-a, mended").expect("a file");
        let third = run((db, &objects), reads)?;
        assert_eq!(third, told(("Read", "ok"), ("Read", "not modified")));
        Ok(())
    });
}
