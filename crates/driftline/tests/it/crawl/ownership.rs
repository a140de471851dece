//! Several jobs send to one output: it has what some job now sends there, and nothing else.

use super::outputs::collect;
use super::{Home, Running, text, words};
use crate::site::Site;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::Db;

/// A home with directories as outputs.
struct Several {
    home: Home,
}

impl Several {
    fn new(home: Home) -> Several {
        let several = Several { home };
        several.told(&["init"]);
        several
    }

    fn told(&self, args: &[&str]) -> String {
        let done = self.home.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    fn work(&self) {
        let args = ["work", "--until-idle", "--lease", "1"];
        let ended = Running::start(self.home.command(&args)).ended();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        self.home.verify();
    }

    fn run(&self, jobs: &[&str]) {
        jobs.iter().for_each(|job| drop(self.told(&["job", "start", job])));
        self.work();
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.home.folder.path().join(name)
    }

    fn output(&self, name: &str) {
        let directory = format!("directory={}", self.folder(name).display());
        let create = ["create", name, "--connector", "files", "--kind", "output", &directory];
        self.told(&[&["connection"][..], &create].concat());
    }

    /// Files in directories of these names, and a connection to them.
    fn disk(&self, files: &[&str]) {
        self.told(&[
            "connection",
            "create",
            "disk",
            "--connector",
            "files",
            "--kind",
            "repository",
        ]);
        for file in files {
            let path = self.folder(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
    }

    /// A job for directories, with the ways that its documents take.
    fn job(&self, verb: &str, name: &str, ways: &[&str], roots: &[&str]) {
        let roots: Vec<String> =
            roots.iter().map(|root| format!("roots={}", self.folder(root).display())).collect();
        let mut args = vec!["job", verb, name];
        if verb == "create" {
            args.extend(["--connection", "disk"]);
        }
        args.extend(ways.iter().flat_map(|way| ["--pipeline", way]));
        args.extend(roots.iter().map(String::as_str));
        self.told(&args);
    }

    /// The names of the files that an output has.
    fn has(&self, output: &str) -> Vec<String> {
        let mut found = BTreeMap::new();
        collect(&self.folder(output), "", &mut found);
        found.into_keys().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect()
    }

    /// How often outputs were told something.
    fn deliveries(&self) -> i64 {
        self.home.number(
            "SELECT COUNT(*) FROM history
             WHERE activitytype LIKE 'document ingest (%' OR activitytype LIKE 'document deletion (%'",
        )
    }
}

/// A job does not name a directory any more. Another job has it, but sends it elsewhere.
fn a_file_that_no_job_sends_to_an_output_any_more_leaves_it(home: Home) {
    let several = Several::new(home);
    several.disk(&["s/s.txt", "a/a.txt", "b/b.txt"]);
    ["o1", "o2"].iter().for_each(|name| several.output(name));
    several.job("create", "A", &["o1"], &["s", "a"]);
    several.job("create", "B", &["o1"], &["b"]);
    several.job("create", "C", &["o2"], &["s"]);
    several.run(&["A", "B", "C"]);
    assert_eq!(several.has("o1"), ["a.txt", "b.txt", "s.txt"]);
    several.job("edit", "A", &[], &["a"]);
    several.run(&["A"]);
    assert_eq!(several.has("o1"), ["a.txt", "b.txt"], "no job sends s.txt there");
    assert_eq!(several.has("o2"), ["s.txt"]);

    // The source has lost it; only one of two jobs that have it looks.
    several.job("edit", "A", &[], &["a", "s"]);
    several.run(&["A"]);
    assert_eq!(several.has("o1"), ["a.txt", "b.txt", "s.txt"]);
    // (A directory without any file would be taken for a share that is not mounted.)
    std::fs::rename(several.folder("s/s.txt"), several.folder("s/t.txt")).unwrap();
    several.run(&["A"]);
    several.run(&["C"]);
    assert_eq!(several.has("o1"), ["a.txt", "b.txt", "t.txt"], "s.txt is gone for all");
    assert_eq!(several.has("o2"), ["t.txt"]);
}

#[test]
fn a_file_that_no_job_sends_to_an_output_any_more_leaves_it_on_sqlite() {
    a_file_that_no_job_sends_to_an_output_any_more_leaves_it(Home::directory());
}

#[test]
fn a_file_that_no_job_sends_to_an_output_any_more_leaves_it_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_file_that_no_job_sends_to_an_output_any_more_leaves_it(home);
}

/// A job sends to another output than before: the old one is cleaned up by the next run, or
/// by the end of the job; but what another job sends there stays.
#[test]
fn an_output_that_a_job_does_not_send_to_any_more_is_cleaned_up() {
    let several = Several::new(Home::directory());
    several.disk(&["c/c.txt", "d/d.txt"]);
    ["o1", "o2"].iter().for_each(|name| several.output(name));
    several.job("create", "C", &["o2"], &["c", "d"]);
    several.job("create", "D", &["o2"], &["d"]);
    several.run(&["C", "D"]);
    assert_eq!(several.has("o2"), ["c.txt", "d.txt"]);
    several.job("edit", "C", &["o1"], &[]);
    several.run(&["C"]);
    assert_eq!(
        (several.has("o1"), several.has("o2")),
        (vec!["c.txt".into(), "d.txt".into()], vec!["d.txt".to_owned()])
    );
    // Edited and deleted without a run in between.
    several.job("edit", "C", &["o2"], &[]);
    several.told(&["job", "delete", "C", "--yes"]);
    several.work();
    assert_eq!((several.has("o1").len(), several.has("o2")), (0, vec!["d.txt".to_owned()]));
    several.told(&["job", "delete", "D", "--yes"]);
    several.work();
    assert_eq!(several.has("o2").len(), 0);
    assert_eq!(several.home.number("SELECT COUNT(*) FROM claims"), 0);
}

/// Two jobs have the same files and one output; one of them lets only text through.
fn two_ways_to_one_output(ways: [&str; 2]) {
    let several = Several::new(Home::directory());
    several.disk(&["s/page.html", "s/note.txt"]);
    several.output("wh2");
    let only = ["create", "onlytxt", "--connector", "allowed", "types=text/plain"];
    several.told(&[&["connection"][..], &only].concat());
    several.job("create", "P", &[ways[0]], &["s"]);
    several.job("create", "Q", &[ways[1]], &["s"]);
    several.run(&["P"]);
    several.run(&["Q"]);
    assert_eq!(several.has("wh2"), ["note.txt", "page.html"]);
    several.run(&["P"]);
    let deliveries = several.deliveries();
    for job in ["Q", "P"] {
        several.run(&[job]);
        assert_eq!(several.has("wh2"), ["note.txt", "page.html"]);
    }
    assert_eq!(several.deliveries(), deliveries, "nothing has changed");
    let plain = if ways[0] == "wh2" { "P" } else { "Q" };
    several.told(&["job", "delete", plain, "--yes"]);
    several.work();
    assert_eq!(several.has("wh2"), ["note.txt"], "the other job sends only that");
}

#[test]
fn two_ways_to_one_output_do_not_undo_each_other() {
    two_ways_to_one_output(["wh2", "onlytxt,wh2"]);
}

#[test]
fn a_refusal_by_the_first_way_is_no_removal_while_the_second_takes_the_document() {
    two_ways_to_one_output(["onlytxt,wh2", "wh2"]);
}

const PAGES: usize = 3;

/// A web job and rows of a database have the same URIs in one output, and lie in different
/// parts. Whichever goes, the output keeps what the other sends.
fn a_uri_that_two_jobs_send_stays_when_one_of_them_goes(home: Home) {
    let site = Site::with_pages(PAGES).serve();
    home.crawled(&words(&[site.seed()], &[]));
    let several = Several { home };
    several.output("copy");
    several.told(&["job", "edit", "site", "--pipeline", "copy"]);
    several.run(&["site"]);
    let first = several.kept();
    assert_eq!(first.len(), PAGES);

    let shop = several.folder("shop.db");
    let db = Db::open_sqlite(&shop).unwrap();
    db.write(|tx| tx.execute("CREATE TABLE items (id BIGINT PRIMARY KEY)", &[])).unwrap();
    db.write(|tx| tx.execute("INSERT INTO items VALUES (0), (1), (2), (3), (4)", &[])).unwrap();
    let database = format!("database={}", shop.display());
    several.told(&["connection", "create", "shop", "--connector", "sql", &database]);
    let url = format!("url={}{{id}}", site.page_url(0).strip_suffix('0').unwrap());
    let document = "document=select 1 as version, 'a row' as content from items where id = $1";
    let rows = ["job", "create", "rows", "--connection", "shop", "--pipeline", "copy"];
    let rows = [&rows[..], &["ids=select id from items", document, &url]].concat();
    let rows_are_there = |is: bool| {
        let kept = several.kept();
        let of_rows = kept.values().filter(|text| *text == "a row").count();
        assert_eq!((kept.len(), of_rows), if is { (5, 5) } else { (PAGES, 0) }, "{kept:?}");
    };
    several.told(&rows);
    several.run(&["rows"]);
    rows_are_there(true);
    let deliveries = several.deliveries();
    several.run(&["site"]);
    several.run(&["rows"]);
    rows_are_there(true);
    assert_eq!(several.deliveries(), deliveries, "nothing has changed");

    several.told(&["job", "delete", "rows", "--yes"]);
    several.work();
    rows_are_there(false);
    assert_eq!(several.kept(), first);
    several.told(&rows);
    several.run(&["rows"]);
    rows_are_there(true);
    several.told(&["job", "delete", "site", "--yes"]);
    several.work();
    rows_are_there(true);
    several.told(&["job", "delete", "rows", "--yes"]);
    several.work();
    assert_eq!(several.kept(), BTreeMap::new());
    assert_eq!(several.home.number("SELECT COUNT(*) FROM claims"), 0);
}

impl Several {
    /// What the output `copy` has, and what it says.
    fn kept(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(&self.folder("copy"), "", &mut found);
        found
    }
}

#[test]
fn a_uri_that_two_jobs_send_stays_when_one_of_them_goes_on_sqlite() {
    a_uri_that_two_jobs_send_stays_when_one_of_them_goes(Home::directory());
}

#[test]
fn a_uri_that_two_jobs_send_stays_when_one_of_them_goes_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_uri_that_two_jobs_send_stays_when_one_of_them_goes(home);
}
