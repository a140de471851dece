//! Documents reach the outputs of their job: once, whole, and whatever happens.

use super::files::Tree;
use super::{Home, Running, Summary, text, words};
use crate::site::{Served, Site};
use ::crawl::lifecycle::JobEvent;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A files job whose documents go into a directory, and nowhere.
struct Piped {
    tree: Tree,
    out: PathBuf,
}

impl Piped {
    fn new(home: Home) -> Piped {
        let out = home.folder.path().join("out");
        let more = format!(
            "[[jobs.docs.pipeline]]\noutput = \"copy\"\n[[jobs.docs.pipeline]]\noutput = \"away\"\n\
             [connections.output.copy]\nconnector = \"files\"\nsettings.directory = {:?}\n\
             [connections.output.away]\nconnector = \"null\"\n",
            out.display().to_string()
        );
        Piped { tree: Tree::with(home, &more), out }
    }

    /// What the directory has: names below the tree's root, and what they say.
    fn copied(&self) -> BTreeMap<String, String> {
        let root = self.tree.root.display().to_string();
        let below = self.out.join(format!("file/%nil{root}"));
        let mut found = BTreeMap::new();
        collect(&below, "", &mut found);
        found
    }

    /// What the tree has.
    fn there(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(&self.tree.root, "", &mut found);
        found
    }

    /// How often the directory was told something, by what the history calls it.
    fn told(&self, kind: &'static str) -> i64 {
        let sql = match kind {
            "ingest" => {
                "SELECT COUNT(*) FROM history WHERE activitytype = 'document ingest (copy)'"
            }
            _ => "SELECT COUNT(*) FROM history WHERE activitytype = 'document deletion (copy)'",
        };
        self.tree.home.number(sql)
    }

    fn do_(&self, args: &[&str]) {
        let done = self.tree.home.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
    }
}

/// All files under a directory, by their names below it, with what they say.
pub(super) fn collect(at: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => collect(&entry.path(), &format!("{name}/"), found),
            false => {
                found.insert(name, std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
}

/// An output has what there is, hears of a change once, and of nothing else.
fn outputs_hear_of_changes_only(home: Home) {
    let piped = Piped::new(home);
    piped.tree.run(false);
    assert_eq!(piped.copied(), piped.there());
    assert_eq!((piped.copied().len(), piped.told("ingest")), (3, 3));
    piped.tree.run(false);
    assert_eq!(piped.told("ingest"), 3, "nothing has changed");
    piped.tree.write("test1.txt", "Modified contents");
    piped.tree.write("testdir/test4.txt", "Added file");
    std::fs::remove_file(piped.tree.root.join("test2.txt")).unwrap();
    piped.tree.run(false);
    assert_eq!(piped.copied(), piped.there());
    assert_eq!((piped.told("ingest"), piped.told("deletion")), (5, 1));
    let status = "SELECT CAST(SUM(changecount) AS BIGINT) FROM ingeststatus
                  WHERE connectionname = 'copy' AND firstingest <= lastingest";
    assert_eq!(piped.tree.home.number(status), 4, "one of the three has changed");
    assert_eq!(piped.tree.home.number("SELECT COUNT(*) FROM ingests"), 6, "for two outputs");

    // A file that is touched says what it said.
    piped.tree.write("test1.txt", "Modified contents");
    piped.tree.run(false);
    assert_eq!(piped.told("ingest"), 5);

    // Everything again; and everything as if for the first time.
    std::fs::remove_dir_all(&piped.out).unwrap();
    piped.do_(&["connection", "reindex", "copy"]);
    piped.tree.run(true);
    assert_eq!(piped.copied(), piped.there());
    assert_eq!(piped.told("ingest"), 8);
    std::fs::remove_dir_all(&piped.out).unwrap();
    piped.do_(&["connection", "forget", "copy"]);
    piped.tree.run(false);
    assert_eq!(piped.copied(), piped.there());

    piped.tree.change(JobEvent::Delete);
    piped.tree.work();
    assert_eq!(piped.copied(), BTreeMap::new(), "what leaves is removed");
    assert_eq!(piped.tree.home.number("SELECT COUNT(*) FROM ingests"), 0);
    assert_eq!(piped.tree.home.number("SELECT COUNT(*) FROM job_definitions"), 0);
}

#[test]
fn outputs_hear_of_changes_only_on_sqlite() {
    outputs_hear_of_changes_only(Home::directory());
}

#[test]
fn outputs_hear_of_changes_only_on_postgres() {
    let Some(home) = Home::database() else { return };
    outputs_hear_of_changes_only(home);
}

/// A job whose output cannot be used waits for it, says so, and blames no document.
#[test]
fn a_job_ends_only_when_its_outputs_have_caught_up() {
    let piped = Piped::new(Home::directory());
    std::fs::write(&piped.out, "in the way").unwrap();
    let job = piped.tree.change(JobEvent::Start { minimal: false });
    let args = ["work", "--until-idle", "--lease", "1"];
    let running = Running::start(piped.tree.home.command(&args));
    running.prints("SHUTTINGDOWN");
    running.prints("cannot be used");
    std::fs::remove_file(&piped.out).unwrap();
    let ended = running.ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(piped.copied(), piped.there(), "job {job}");
    let failed = "SELECT COUNT(*) FROM history WHERE resultcode = 'IO'";
    assert_eq!(piped.tree.home.number(failed), 0);
    piped.tree.home.verify();
}

/// A crawled site whose documents are sent to a directory later.
struct Crawled {
    home: Home,
    site: Served,
    out: PathBuf,
}

impl Crawled {
    fn new(home: Home) -> Crawled {
        let site = Site::with_pages(PAGES).serve();
        home.crawled(&words(&[site.seed()], &[]));
        let out = home.folder.path().join("out");
        let crawled = Crawled { home, site, out };
        let directory = format!("directory={}", crawled.out.display());
        let create = ["create", "copy", "--connector", "files", "--kind", "output", &directory];
        crawled.told(&[&["connection"][..], &create].concat());
        crawled.told(&["job", "edit", "site", "--pipeline", "copy"]);
        crawled
    }

    fn told(&self, args: &[&str]) -> String {
        let done = self.home.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    fn again(&self) -> Summary {
        let args = ["--job", "site", "--retries", "1", "--retry-wait", "0.05"];
        self.home.crawled(&args)
    }

    /// The pages that the directory has.
    fn copied(&self) -> Vec<String> {
        let mut found = BTreeMap::new();
        collect(&self.out.join("http"), "", &mut found);
        let page = |name: String| Some(name.split_once("/p/")?.1.to_owned());
        found.into_keys().filter_map(page).collect()
    }
}

const PAGES: usize = 10;

/// A new output gets what was crawled before, out of the store: nothing is sent again by
/// the site. What an output cannot take is given up by the job's own policy, listed, and
/// tried again when somebody says so.
fn what_an_output_cannot_take_is_a_dead_letter(home: Home) {
    let crawled = Crawled::new(home);
    let host = crawled.site.seed().split('/').nth(2).unwrap().to_owned();
    let in_the_way = crawled.out.join(format!("http/{host}/p/7%unfinished"));
    std::fs::create_dir_all(&in_the_way).unwrap();
    let summary = crawled.again();
    assert_eq!(summary.changes(), [0, 0, PAGES as u64, 0], "{summary:?}");
    assert_eq!(summary.count("/did/not_modified"), PAGES as u64);
    assert_eq!(crawled.copied().len(), PAGES - 1, "one failed");
    let failed = crawled.told(&["job", "failed", "site"]);
    assert!(failed.contains("output") && failed.contains("/p/7"), "{failed}");
    assert!(crawled.told(&["job", "show", "site"]).contains("rejected by an output"));
    crawled.home.verify();

    std::fs::remove_dir_all(&in_the_way).unwrap();
    let url = format!("http://{host}/p/7");
    let retried = crawled.told(&["job", "retry", "site", &url]);
    assert!(retried.contains("1 document"), "{retried}");
    let ended = Running::start(crawled.home.command(&["work", "--until-idle"])).ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(crawled.copied().len(), PAGES);
    assert!(crawled.told(&["job", "failed", "site"]).contains("no document"));
    crawled.home.verify();
}

#[test]
fn what_an_output_cannot_take_is_a_dead_letter_on_sqlite() {
    what_an_output_cannot_take_is_a_dead_letter(Home::directory());
}

#[test]
fn what_an_output_cannot_take_is_a_dead_letter_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_an_output_cannot_take_is_a_dead_letter(home);
}

/// A job that says so is aborted by one document that an output cannot take.
#[test]
fn a_job_that_says_so_is_aborted_by_its_output() {
    let crawled = Crawled::new(Home::directory());
    crawled.told(&["job", "edit", "site", "--on-failure", "abort"]);
    let host = crawled.site.seed().split('/').nth(2).unwrap().to_owned();
    let in_the_way = crawled.out.join(format!("http/{host}/p/7%unfinished"));
    std::fs::create_dir_all(&in_the_way).unwrap();
    let args = ["--job", "site", "--retries", "0"];
    let ended = Running::start(crawled.home.crawl(&args)).ended();
    assert_eq!(ended.status.code(), Some(2), "{}", text(&ended.stdout));
    let said = text(&ended.stdout) + &text(&ended.stderr);
    assert!(said.contains("output copy could not take"), "{said}");
}

/// Two jobs have the same documents; only one of them sends these to an output. When that
/// job goes, the output loses them, and the other job keeps them.
#[test]
fn an_output_loses_what_only_one_of_two_jobs_sent_to_it() {
    let piped = Piped::new(Home::directory());
    let file = piped.tree.home.folder.path().join("more.toml");
    let root = piped.tree.root.display().to_string();
    let more = format!("[jobs.more]\nconnection = \"disk\"\nspec.roots = [{root:?}]\n");
    std::fs::write(&file, more).unwrap();
    piped.do_(&["import", file.to_str().unwrap()]);
    piped.do_(&["job", "start", "more"]);
    piped.tree.run(false);
    assert_eq!(piped.copied(), piped.there());
    piped.tree.change(JobEvent::Delete);
    piped.tree.work();
    assert_eq!(piped.copied(), BTreeMap::new());
    let live = "SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL";
    assert_eq!(piped.tree.home.number(live), 3, "the other job has them");
}

/// Killed again and again while it delivers: in the end everything has arrived.
fn deliveries_survive_kills(home: Home) {
    let piped = Piped::new(home);
    for number in 0..300 {
        piped.tree.write(&format!("testdir/more{number}.txt"), &format!("text {number}"));
    }
    piped.tree.change(JobEvent::Start { minimal: false });
    piped.tree.work_through_kills();
    assert_eq!(piped.copied(), piped.there());
    let undelivered = "SELECT COUNT(*) FROM ingests WHERE decision IS NOT NULL";
    assert_eq!(piped.tree.home.number(undelivered), 0);
    piped.tree.home.verify();
}

#[test]
fn deliveries_survive_kills_on_sqlite() {
    deliveries_survive_kills(Home::directory());
}

#[test]
fn deliveries_survive_kills_on_postgres() {
    let Some(home) = Home::database() else { return };
    deliveries_survive_kills(home);
}

/// A check tries the output, and says why it cannot be used.
#[test]
fn a_connection_is_checked_by_using_it() {
    let piped = Piped::new(Home::directory());
    piped.do_(&["connection", "check", "copy"]);
    std::fs::remove_dir_all(&piped.out).unwrap();
    std::fs::write(&piped.out, "in the way").unwrap();
    let checked = piped.tree.home.command(&["connection", "check", "copy"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stdout).contains("cannot be used"), "{}", text(&checked.stdout));
}
