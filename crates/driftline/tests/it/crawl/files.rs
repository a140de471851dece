//! Files as documents: ManifoldCF's own scenario with its numbers, job by job through
//! `driftline work`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::crawl::conduct;
use ::crawl::lifecycle::JobEvent;
use store::ids::JobId;
use store::tables::job_states;
use store::tables::jobs;

use super::{Home, Running, text};

/// A files job over a small tree: two files, and a directory with one.
pub(super) struct Tree {
    pub home: Home,
    pub root: PathBuf,
}

impl Tree {
    fn new(home: Home) -> Tree {
        Tree::with(home, "")
    }

    /// The same with more definitions, after those of the job.
    pub fn with(home: Home, more: &str) -> Tree {
        let root = home.folder.path().join("testdata");
        std::fs::create_dir_all(root.join("testdir")).unwrap();
        let tree = Tree { home, root };
        for name in ["test1.txt", "test2.txt", "testdir/test3.txt"] {
            tree.write(name, "This is a test file");
        }
        tree.define(more);
        tree
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.root.join(name), content).unwrap();
    }

    fn define(&self, more: &str) {
        let init = self.home.command(&["init"]).output().unwrap();
        assert!(init.status.success(), "{}", text(&init.stderr));
        let definitions = format!(
            "[connections.repository.disk]\nconnector = \"files\"\n\
             [jobs.docs]\nconnection = \"disk\"\nspec.roots = [{:?}]\n{more}",
            self.root.display().to_string()
        );
        let file = self.home.folder.path().join("docs.toml");
        std::fs::write(&file, definitions).unwrap();
        let imported = self.home.command(&["import", file.to_str().unwrap()]).output().unwrap();
        assert!(imported.status.success(), "{}", text(&imported.stderr));
    }

    pub fn change(&self, event: JobEvent) -> JobId {
        self.home
            .rows()
            .write(move |tx| {
                let job = jobs::find(tx, "docs")?.expect("it was defined").id;
                conduct::change(tx, job, &event, store::clock::now_ms())?;
                Ok(job)
            })
            .unwrap()
    }

    pub fn work(&self) {
        let ended = Running::start(self.home.command(&["work", "--until-idle", "--lease", "1"]));
        let ended = ended.ended();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        self.home.verify();
    }

    /// Works to the end, killed again and again on the way there. Each process lives half as long
    /// again as the one before, so that a fast machine is killed as often as a slow one.
    pub fn work_through_kills(&self) {
        let mut kills = 0;
        let mut lifetime = Duration::from_millis(5);
        loop {
            let args = ["work", "--until-idle", "--lease", "1"];
            let mut running = Running::start(self.home.command(&args));
            let deadline = Instant::now() + lifetime;
            while !running.has_ended() && Instant::now() < deadline {
                std::thread::park_timeout(Duration::from_millis(2));
            }
            if running.has_ended() {
                let ended = running.ended();
                assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
                break;
            }
            running.kill();
            kills += 1;
            lifetime = lifetime * 3 / 2;
        }
        assert!(kills > 2, "it was done before it could be killed");
    }

    /// Runs the job once. Returns how many documents it has processed, in all.
    pub fn run(&self, minimal: bool) -> i64 {
        let job = self.change(JobEvent::Start { minimal });
        self.work();
        let state = self.home.rows().read(move |tx| job_states::state(tx, job)).unwrap();
        assert_eq!((state.name().as_str(), &state.error), ("INACTIVE", &None));
        self.home.number("SELECT COUNT(*) FROM queue WHERE state = 'done'")
    }

    fn live(&self) -> i64 {
        self.home.number("SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL")
    }
}

/// 5, 6, 6, 6, 5: full; a file is added, changed, deleted, each with a minimal run; full.
fn the_original_scenario_gives_its_numbers(home: Home) {
    let tree = Tree::new(home);
    assert_eq!(tree.run(false), 5, "three files and two directories");
    assert_eq!(tree.live(), 3);
    tree.write("testdir/test4.txt", "Added file");
    assert_eq!(tree.run(true), 6);
    tree.write("test1.txt", "Modified contents");
    assert_eq!(tree.run(true), 6);
    let updates = "SELECT COUNT(*) FROM documents WHERE changes = 1";
    assert_eq!(tree.home.number(updates), 1, "the change was seen");
    std::fs::remove_file(tree.root.join("test2.txt")).unwrap();
    assert_eq!(tree.run(true), 6, "a minimal run cleans nothing up");
    assert_eq!(tree.run(false), 5);
    assert_eq!(tree.live(), 3);
    let job = tree.change(JobEvent::Delete);
    tree.work();
    assert_eq!(tree.home.number("SELECT COUNT(*) FROM queue"), 0);
    assert_eq!(tree.home.number("SELECT COUNT(*) FROM job_definitions"), 0, "job {job} is gone");
    assert_eq!(tree.home.number("SELECT COUNT(*) FROM counters WHERE jobid <> 0"), 0);
    assert_eq!(tree.live(), 0, "and its documents with it");
    let reasons = tree.home.texts("SELECT DISTINCT reason FROM documents");
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["gone", "job deleted"]);
}

#[test]
fn the_original_scenario_gives_its_numbers_on_sqlite() {
    the_original_scenario_gives_its_numbers(Home::directory());
}

#[test]
fn the_original_scenario_gives_its_numbers_on_postgres() {
    let Some(home) = Home::database() else { return };
    the_original_scenario_gives_its_numbers(home);
}

/// A tenth of ManifoldCF's large crawl: 1,111 directories with 10,000 files, twice.
#[test]
fn eleven_thousand_files_are_crawled_twice_in_a_row() {
    let tree = Tree::new(Home::directory());
    std::fs::remove_dir_all(&tree.root).unwrap();
    for number in 0..1_000 {
        let path = format!("{}/{}/{}", number / 100, number / 10 % 10, number % 10);
        let directory = tree.root.join(path);
        std::fs::create_dir_all(&directory).unwrap();
        for file in 0..10 {
            let text = format!("file {file} of directory {number}");
            std::fs::write(directory.join(format!("{file}.txt")), text).unwrap();
        }
    }
    assert_eq!(tree.run(false), 11_111);
    assert_eq!(tree.run(false), 11_111);
    assert_eq!(tree.live(), 10_000);
    let changed = "SELECT COUNT(*) FROM documents WHERE changes > 0 OR removed_ms IS NOT NULL";
    assert_eq!(tree.home.number(changed), 0);
}

#[test]
fn the_programs_own_data_is_never_a_source() {
    let tree = Tree::new(Home::directory());
    let layout = store::datadir::Layout::new(tree.home.folder.path().join("data"));
    let (data, key) = (layout.root().to_owned(), layout.secrets_key());
    assert!(layout.exists());
    std::fs::write(&key, "7f".repeat(32)).unwrap();
    // A link into it, and it itself beside the documents.
    std::os::unix::fs::symlink(&data, tree.root.join("link")).unwrap();
    let above = tree.home.folder.path().display().to_string();
    let roots = [
        format!("roots={}", tree.root.display()),
        format!("roots={}", data.display()),
        format!("roots={}", data.join("objects").display()),
        format!("roots={}/../{}", data.display(), data.file_name().unwrap().display()),
        format!("roots={above}"),
    ];
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let edit = [&["job", "edit", "docs", "follow_links=yes"][..], &roots].concat();
    let edited = tree.home.command(&edit).output().unwrap();
    assert!(edited.status.success(), "{}", text(&edited.stderr));
    tree.change(JobEvent::Start { minimal: false });
    let worked = tree.home.command(&["work", "--until-idle"]).output().unwrap();
    let inside = tree.home.number(
        "SELECT COUNT(*) FROM documents WHERE docid LIKE '%secrets.key%' OR docid LIKE '%.sqlite%'",
    );
    assert_eq!(inside, 0, "{}", text(&worked.stdout));
    let found = tree.home.number("SELECT COUNT(*) FROM documents WHERE docid LIKE '%test1.txt'");
    assert!(found > 0, "the rest is crawled: {}", text(&worked.stderr));
    let failed = tree.home.command(&["job", "failed", "docs"]).output().unwrap();
    assert!(text(&failed.stdout).contains("own-data"), "{}", text(&failed.stdout));
}
