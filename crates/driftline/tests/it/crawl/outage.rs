//! What a crawl needs goes away while it runs: the database, the room on the disk. It
//! says so, waits, and goes on by itself.
//!
//! The disk is made for one test and is gone with it, also when the test is killed: only a
//! child and those who join it can see it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use store::testing::skipped;

use super::server::Server;
use super::{Home, PROGRAM, Running, Summary, text, until, words};
use crate::site::{Served, Site};

const PAGES: usize = 700;
/// Documents that a process has claimed and not committed at most.
const CLAIMED_MAX: usize = 200;

fn slow_site() -> Served {
    Site::with_pages(PAGES).hosts(4).answering_after(Duration::from_millis(5)).serve()
}

#[track_caller]
fn is_whole(home: &Home, site: &Served) {
    home.verify();
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
}

#[test]
fn a_database_that_goes_away_is_waited_for() {
    let Some(mut server) = Server::start() else { return };
    let (home, site) = (Home::at(&server.url()), slow_site());
    let seeds = site.seeds();
    let args = words(&seeds, &["--concurrency", "8", "--node", "a"]);
    let running = Running::start(home.crawl(&args));
    // Away until the crawl has noticed, twice: once without warning, once in order.
    for signal in ["QUIT", "INT"] {
        let visits = site.web().visits_count() + 60;
        until(&site, "it works", || site.web().visits_count() > visits);
        server.stop(signal);
        running.says("retrying until it succeeds");
        server.resume();
    }
    // And a restart that it may not even notice.
    let visits = site.web().visits_count() + 60;
    until(&site, "it works again", || site.web().visits_count() > visits);
    server.stop("INT");
    server.resume();
    let summary = Summary::of(&running.ended());
    assert_eq!(summary.count("/documents/done"), PAGES as u64);
    is_whole(&home, &site);
    assert!(site.traffic().repeats_count() <= 3 * CLAIMED_MAX);
}

#[test]
fn a_crawl_whose_database_is_away_can_be_stopped() {
    let Some(mut server) = Server::start() else { return };
    let (home, site) = (Home::at(&server.url()), slow_site());
    let seeds = site.seeds();
    let args = words(&seeds, &["--concurrency", "8", "--node", "a"]);
    let running = Running::start(home.crawl(&args));
    until(&site, "it works", || site.web().visits_count() > 60);
    server.stop("QUIT");
    running.says("retrying until it succeeds");
    running.signal("INT");
    let ended = running.ended();
    assert!(matches!(ended.status.code(), Some(1 | 2)), "{ended:?}");
    server.resume();
    home.crawled(&args);
    is_whole(&home, &site);
}

/// A small disk that only its holder and those who join it can see.
struct SmallDisk {
    holder: Child,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// An empty disk of so many MiB, or a line that says why there is none.
    fn new(mebibytes: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("mount -t tmpfs -o size={mebibytes}m none . && echo && exec cat");
        let spawned = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut line = [0];
        let ready = spawned.ok().and_then(|mut holder| {
            use std::io::Read;
            let read = holder.stdout.as_mut().map(|it| it.read_exact(&mut line));
            match read {
                Some(Ok(())) => Some(SmallDisk { holder, folder }),
                _ => {
                    let _ = holder.wait();
                    None
                }
            }
        });
        if ready.is_none() {
            skipped("a full disk: this user may not mount one");
        }
        ready
    }

    /// A command that sees the disk, and nothing else of it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), program]);
        command.stdin(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Leaves room for so many KiB.
    fn fill_up_to(&self, kibibytes: u32) {
        let script = format!(
            "left=$(df -k --output=avail . | tail -1); dd if=/dev/zero of=filler bs=1k \
             count=$((left - {kibibytes})) 2>/dev/null || true"
        );
        let shell = ["-c", &format!("cd {} && {script}", self.folder.path().display())];
        assert!(self.command("sh").args(shell).status().unwrap().success());
    }

    fn make_room(&self) {
        assert!(self.command("rm").arg(self.path("filler")).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn crawl_onto(disk: &SmallDisk, seeds: &[String]) -> Command {
    let mut command = disk.command(PROGRAM);
    command.args(["crawl", "--json", "--allow-private", "--delay", "0", "--concurrency", "8"]);
    command.args(["--job", "site", "--lease", "1", "--retry-wait", "0.2", "--data"]);
    command.arg(disk.path("data")).args(seeds);
    command
}

/// The same, until the disk is really full.
fn fill_with_crawl(disk: &SmallDisk, seeds: &[String]) -> Command {
    let mut command = crawl_onto(disk, seeds);
    command.args(["--min-free", "0"]);
    command
}

#[test]
fn a_crawl_on_a_small_disk_pauses_before_the_log_fills_it() {
    let Some(disk) = SmallDisk::new(64) else { return };
    let site = slow_site();
    let mut running = Running::start(crawl_onto(&disk, &site.seeds()));
    // More than 5 % are free, but that is less than the log alone may take.
    running.says("895 MB are needed");
    assert_eq!(site.web().visits_count(), 0);
    running.kill();
}

#[test]
fn a_disk_that_fills_up_pauses_the_crawl_until_there_is_room() {
    let Some(disk) = SmallDisk::new(64) else { return };
    let site = slow_site();
    let running = Running::start(fill_with_crawl(&disk, &site.seeds()));
    for _ in 0..2 {
        let visits = site.web().visits_count() + 60;
        until(&site, "it works", || site.web().visits_count() > visits);
        disk.fill_up_to(0);
        running.says("no space left");
        disk.make_room();
    }
    let summary = Summary::of(&running.ended());
    assert_eq!(summary.count("/documents/done"), PAGES as u64);
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
    assert_eq!(site.traffic().repeats_count(), 0, "a pause repeats nothing");
    // The indexes have gone on, too, in the same process.
    for verb in [&["verify"][..], &["links", "verify"], &["search", "verify"]] {
        let mut command = disk.command(PROGRAM);
        let verified = command.args(verb).arg("--data").arg(disk.path("data")).output().unwrap();
        assert!(verified.status.success(), "{verb:?} {}", text(&verified.stdout));
    }
}

#[test]
fn a_crawl_that_is_killed_on_a_full_disk_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::new(64) else { return };
    let site = slow_site();
    let mut running = Running::start(fill_with_crawl(&disk, &site.seeds()));
    until(&site, "it works", || site.web().visits_count() > 60);
    disk.fill_up_to(0);
    running.says("no space left");
    running.kill();
    let refused = Running::start(fill_with_crawl(&disk, &site.seeds())).ended();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("no space left"), "{}", text(&refused.stderr));
    disk.make_room();
    Summary::of(&Running::start(fill_with_crawl(&disk, &site.seeds())).ended());
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
    assert!(site.traffic().repeats_count() <= CLAIMED_MAX);
    let data = disk.path("data");
    let verified = disk.command(PROGRAM).arg("verify").arg("--data").arg(data).output().unwrap();
    assert!(verified.status.success(), "{}", text(&verified.stdout));
}

/// Objects are elsewhere, and that place can be full or away by itself.
#[test]
fn a_place_for_objects_that_goes_away_is_waited_for() {
    let Some(home) = Home::database() else { return };
    let site = slow_site();
    let seeds = site.seeds();
    let args: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let running = Running::start(home.crawl(&args));
    until(&site, "it works", || site.web().visits_count() > 60);
    // A file stands where the directory was.
    let (here, away) = (home.data(), home.folder.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    std::fs::write(&here, "").unwrap();
    running.says("retrying until it succeeds");
    std::fs::remove_file(&here).unwrap();
    std::fs::rename(&away, &here).unwrap();
    let summary = Summary::of(&running.ended());
    assert_eq!(summary.count("/documents/done"), PAGES as u64);
    home.verify();
}

/// A data directory as a process sees it that has it mounted read-only, with each way a process
/// can have left it: in order, and killed, with a log that was not carried over.
#[test]
fn a_directory_that_is_mounted_read_only_is_asked_like_any_other() {
    let home = Home::directory();
    let site = slow_site();
    let mut running = Running::start(home.crawl(&words(&site.seeds(), &[])));
    until(&site, "it works", || site.web().visits_count() > 60);
    running.kill();
    // The log is there. Nobody may write, so nobody can carry it over.
    let Some(killed) = read_only(&home, &["status", "documents"]) else { return };
    assert!(killed.iter().all(|it| it.status.success()), "{killed:?}");
    Summary::of(&Running::start(home.crawl(&words(&site.seeds(), &[]))).ended());
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(home.data()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    let question = site.page_url(1);
    let verbs = [
        "status",
        "documents",
        "search page",
        "top",
        "domains",
        &format!("links {question}"),
        &format!("page {question}"),
    ];
    for (verb, answer) in verbs.iter().zip(read_only(&home, &verbs).unwrap()) {
        let (said, errors) = (text(&answer.stdout), text(&answer.stderr));
        assert!(answer.status.success() && errors.is_empty(), "{verb}: {said}{errors}");
        let usual = home.command(&verb.split(' ').collect::<Vec<_>>()).output().unwrap();
        let lines = |said: &str| said.lines().count();
        assert_eq!(lines(&said), lines(&text(&usual.stdout)), "{verb}: {said}");
    }
    assert_eq!(files(), before, "nothing was left there");
    let refused = read_only(&home, &["job pause site"]).unwrap();
    assert!(text(&refused[0].stderr).contains("ead-only file system"), "{refused:?}");
}

/// Asks questions where the data directory is mounted read-only; `None` if this user may not
/// mount it so.
fn read_only(home: &Home, verbs: &[&str]) -> Option<Vec<std::process::Output>> {
    let data = home.data().display().to_string();
    let mount = format!("mount --bind {data} {data} && mount -o remount,ro,bind {data} && ");
    let can =
        Command::new("unshare").args(["--mount", "sh", "-c", &format!("{mount} true")]).output();
    if !can.is_ok_and(|it| it.status.success()) {
        skipped("a read-only mount: this user may not mount one");
        return None;
    }
    let ask = |verb: &&str| {
        let script = format!("{mount} exec {PROGRAM} {verb} --data {data}");
        Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap()
    };
    Some(verbs.iter().map(ask).collect())
}
