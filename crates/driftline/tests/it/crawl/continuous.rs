//! Continuous jobs: documents are looked at again, expire and come back, and the job ends
//! by itself when nothing is left and nothing can come.
//!
//! Times are short, and every test waits for what the tables say.

use std::path::PathBuf;
use std::time::Instant;

use ::crawl::conduct;
use ::crawl::lifecycle::JobEvent;
use store::ids::JobId;
use store::tables::jobs::{self, Job, Refetch};

use super::{GLANCE, Home, PATIENCE, Running, text};
use crate::site::Site;

/// A continuous files job over a small tree, and the process that works on it.
struct Tree {
    home: Home,
    root: PathBuf,
}

/// ManifoldCF's tree: two files, a directory with one, and in it a directory with one.
const FILES: [&str; 4] =
    ["test1.txt", "test2.txt", "testdir/test3.txt", "testdir/seconddir/test4.txt"];
/// With their directories and the root.
const DOCUMENTS: i64 = 7;

const WAITING: &str = "SELECT COUNT(*) FROM queue WHERE state = 'waiting' AND done_run IS NOT NULL";
const ROWS: &str = "SELECT COUNT(*) FROM queue";
const LOOKS: &str = "SELECT COUNT(*) FROM history WHERE activitytype = 'read document'";
const ENDS: &str = "SELECT COUNT(*) FROM history WHERE resultdesc = 'expired'";
const LIVE: &str = "SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL";

impl Tree {
    fn new(home: Home, settings: &str) -> Tree {
        let root = home.folder.path().join("testdata");
        std::fs::create_dir_all(root.join("testdir/seconddir")).unwrap();
        let tree = Tree { home, root };
        for name in FILES {
            tree.write(name, "This is a test file");
        }
        let definitions = format!(
            "[connections.repository.disk]\nconnector = \"files\"\n\
             [jobs.docs]\nconnection = \"disk\"\nspec.roots = [{:?}]\n\
             type = \"continuous\"\nrefetch = \"fixed\"\n{settings}\n",
            tree.root.display().to_string()
        );
        let file = tree.home.folder.path().join("docs.toml");
        std::fs::write(&file, definitions).unwrap();
        tree.says(&["init"]);
        tree.says(&["import", file.to_str().unwrap()]);
        tree
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.root.join(name), content).unwrap();
    }

    /// Runs a verb that must succeed.
    fn says(&self, args: &[&str]) -> String {
        let output = self.home.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn change(&self, event: JobEvent) {
        change(&self.home, "docs", event);
    }

    fn edit(&self, edit: impl Fn(&mut Job) + Send + 'static) {
        edit_job(&self.home, "docs", edit);
    }

    fn work(&self) -> Running {
        Running::start(self.home.command(&["work", "--until-idle", "--lease", "1"]))
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        until(what, holds);
    }

    fn state(&self) -> String {
        self.home.texts("SELECT status FROM jobs").into_iter().next().unwrap()
    }
}

fn change(home: &Home, name: &'static str, event: JobEvent) -> JobId {
    home.rows()
        .write(move |tx| {
            let job = jobs::find(tx, name)?.expect("it was defined").id;
            conduct::change(tx, job, &event, store::clock::now_ms())?;
            Ok(job)
        })
        .unwrap()
}

fn edit_job(home: &Home, name: &'static str, edit: impl Fn(&mut Job) + Send + 'static) {
    home.rows()
        .write(move |tx| {
            let mut job = jobs::find(tx, name)?.expect("it was defined");
            edit(&mut job);
            jobs::save(tx, &job, 2)
        })
        .unwrap();
}

/// Looks again and again until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::park_timeout(GLANCE);
    }
}

/// ManifoldCF's scenario: 7 documents, then 0, and the job ends by itself.
fn documents_expire_and_the_job_ends_by_itself(home: Home) {
    let tree = Tree::new(home, "expiration_ms = 2500");
    tree.change(JobEvent::Start { minimal: false });
    let work = tree.work();
    tree.until("all are processed", || tree.home.number(WAITING) == DOCUMENTS);
    assert_eq!(tree.state(), "ACTIVE", "a job with documents that wait does not end");
    let ended = work.ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!((tree.state().as_str(), tree.home.number(ROWS)), ("INACTIVE", 0));
    assert_eq!(tree.home.number(LOOKS), DOCUMENTS, "what expires is not looked at");
    assert_eq!((tree.home.number(LIVE), tree.home.number(ENDS)), (0, 4), "outputs hear of it");
    let shown: serde_json::Value =
        serde_json::from_str(&tree.says(&["job", "show", "docs", "--json"])).unwrap();
    assert_eq!((&shown["word"], &shown["processed"]), (&"done".into(), &0.into()));
    tree.home.verify();
}

#[test]
fn documents_expire_and_the_job_ends_by_itself_on_sqlite() {
    documents_expire_and_the_job_ends_by_itself(Home::directory());
}

#[test]
fn documents_expire_and_the_job_ends_by_itself_on_postgres() {
    let Some(home) = Home::database() else { return };
    documents_expire_and_the_job_ends_by_itself(home);
}

#[test]
fn what_another_job_keeps_expires_for_one_job_only() {
    let tree = Tree::new(Home::directory(), "expiration_ms = 300");
    let roots = format!("roots={}", tree.root.display());
    tree.says(&["job", "create", "other", "--connection", "disk", &roots]);
    change(&tree.home, "other", JobEvent::Start { minimal: false });
    assert_eq!(tree.work().ended().status.code(), Some(0));
    tree.change(JobEvent::Start { minimal: false });
    assert_eq!(tree.work().ended().status.code(), Some(0));
    let kept = "SELECT COUNT(*) FROM queue WHERE state = 'done'";
    assert_eq!((tree.home.number(ROWS), tree.home.number(kept)), (DOCUMENTS, DOCUMENTS));
    assert_eq!((tree.home.number(LIVE), tree.home.number(ENDS)), (4, 0), "outputs keep it");
}

/// Files are changed, added and removed while the job runs; at the same time a look goes
/// before an end.
fn a_continuous_job_follows_what_changes(home: Home) {
    let tree = Tree::new(home, "recrawl_ms = 200\nexpiration_ms = 200");
    tree.change(JobEvent::Start { minimal: false });
    let work = tree.work();
    tree.until("all are live", || tree.home.number(LIVE) == 4);
    tree.write("test1.txt", "Modified contents");
    let changed = "SELECT COUNT(*) FROM documents WHERE changes = 1 AND restless_ms > 0";
    tree.until("the change is seen", || tree.home.number(changed) == 1);
    tree.write("testdir/test5.txt", "Added file");
    tree.until("the new file is found", || tree.home.number(LIVE) == 5);
    std::fs::remove_file(tree.root.join("test2.txt")).unwrap();
    tree.until("the file is missed", || tree.home.number(LIVE) == 4);
    tree.write("test2.txt", "It is back");
    tree.until("and found again", || tree.home.number(LIVE) == 5);
    let quiet = "SELECT COUNT(*) FROM looks WHERE quiet_ms > 0 AND checks > 2";
    tree.until("time passes", || tree.home.number(quiet) == 5);
    assert_eq!((tree.home.number(ENDS), tree.state().as_str()), (0, "ACTIVE"));
    tree.change(JobEvent::Abort);
    assert_eq!(work.ended().status.code(), Some(0));
    assert_eq!(tree.home.number(LIVE), 5, "an abort removes nothing");
    tree.home.verify();
}

#[test]
fn a_continuous_job_follows_what_changes_on_sqlite() {
    a_continuous_job_follows_what_changes(Home::directory());
}

#[test]
fn a_continuous_job_follows_what_changes_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_continuous_job_follows_what_changes(home);
}

/// Everything expires, and seeds bring it back: a job that is reseeded does not end.
fn seeds_bring_back_what_has_expired(home: Home) {
    let tree = Tree::new(home, "expiration_ms = 600\nreseed_ms = 1500");
    tree.change(JobEvent::Start { minimal: false });
    let work = tree.work();
    for round in 1..=2 {
        tree.until("all have expired", || tree.home.number(ENDS) >= 4 * round);
        tree.until("and are back", || tree.home.number(LOOKS) >= DOCUMENTS * (round + 1));
    }
    assert!(matches!(tree.state().as_str(), "ACTIVE" | "ACTIVESEEDING"), "{}", tree.state());
    tree.edit(|job| job.reseed_ms = None);
    let ended = work.ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!((tree.state().as_str(), tree.home.number(ROWS)), ("INACTIVE", 0));
}

#[test]
fn seeds_bring_back_what_has_expired_on_sqlite() {
    seeds_bring_back_what_has_expired(Home::directory());
}

#[test]
fn seeds_bring_back_what_has_expired_on_postgres() {
    let Some(home) = Home::database() else { return };
    seeds_bring_back_what_has_expired(home);
}

#[test]
fn a_restarted_job_looks_at_everything_and_one_that_scans_once_again_ends() {
    let tree = Tree::new(Home::directory(), "recrawl_ms = 3600000");
    tree.change(JobEvent::Start { minimal: false });
    let work = tree.work();
    tree.until("all wait", || tree.home.number(WAITING) == DOCUMENTS);
    tree.change(JobEvent::Restart { minimal: false });
    tree.until("all are looked at again", || tree.home.number(LOOKS) == 2 * DOCUMENTS);
    tree.until("and wait again", || tree.home.number(WAITING) == DOCUMENTS);
    tree.change(JobEvent::Abort);
    assert_eq!(work.ended().status.code(), Some(0));
    std::fs::remove_file(tree.root.join("test2.txt")).unwrap();
    tree.says(&["job", "edit", "docs", "--type", "scan-once", "--interval", ""]);
    tree.change(JobEvent::Start { minimal: false });
    let ended = tree.work().ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let done = "SELECT COUNT(*) FROM queue WHERE state = 'done'";
    assert_eq!((tree.home.number(done), tree.home.number(ROWS)), (DOCUMENTS - 1, DOCUMENTS - 1));
    assert_eq!((tree.state().as_str(), tree.home.number(LIVE)), ("INACTIVE", 3));
    tree.home.verify();
}

/// On the web, what has not changed is asked for conditionally, and trouble only postpones
/// the next look.
#[test]
fn pages_are_looked_at_again_and_survive_trouble() {
    let (home, site) = (Home::directory(), Site::with_pages(5).serve());
    home.crawled(&[&site.seed(), "--retries", "0"]);
    edit_job(&home, "site", |job| {
        (job.continuous, job.interval_ms, job.refetch) = (true, Some(200), Refetch::Estimate);
        (job.interval_max_ms, job.fetches_per_day) = (Some(400), Some(1_000_000));
    });
    change(&home, "site", JobEvent::Start { minimal: false });
    let work = Running::start(home.command(&["work", "--lease", "1"]));
    let looked = "SELECT COUNT(*) FROM looks WHERE checks > 3 AND quiet_ms > 0";
    until("all are looked at again", || home.number(looked) == 5);
    let learned = "SELECT COUNT(*) FROM job_states WHERE refetch IS NOT NULL";
    until("what was learned is kept", || home.number(learned) == 1);
    site.intercept(|_| Some(driftline::loopback_web::Answer::status(500)));
    let troubled = "SELECT COUNT(*) FROM looks WHERE httpstatus = 500";
    until("there is trouble", || home.number(troubled) > 0);
    site.intercept(|_| None);
    until("it is over", || home.number(troubled) == 0);
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE removed_ms IS NOT NULL"), 0);
    work.signal("INT");
    assert_eq!(work.ended().status.code(), Some(0));
    home.verify();
}
