//! A crawl of a directory that another process works on: that process crawls, and the command
//! shows what comes of it; and what `work` says at its end.

use std::time::Duration;

use serde_json::Value;
use store::tables::jobs::{self, OnFailure};

use super::{Home, Running, Summary, assert_trouble, text, until};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

const PAGES: usize = 60;

/// A process that works on the directory.
fn works(home: &Home, verb: &[&str]) -> Running {
    let mut command = home.command(verb);
    command.args(["--lease", "1"]);
    let running = Running::start(command);
    let layout = store::datadir::Layout::new(home.data());
    let began = std::time::Instant::now();
    while !layout.socket().exists() {
        assert!(began.elapsed() < super::PATIENCE, "it does not listen");
        std::thread::park_timeout(super::GLANCE);
    }
    running
}

fn slow_site() -> Served {
    Site::with_pages(PAGES).answering_after(Duration::from_millis(20)).serve()
}

/// What the audit log says of crawls, the newest first.
fn audited(home: &Home) -> Vec<(String, String)> {
    let output = home.command(&["audit", "--json"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let entries = answer["entries"].as_array().unwrap();
    let crawls = entries.iter().filter(|entry| entry["verb"] == "crawl");
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    crawls.map(|entry| (word(entry, "outcome"), word(entry, "changes"))).collect()
}

fn is_carried_out_by(verb: &[&str]) {
    let (home, site) = (Home::directory(), Site::with_pages(PAGES).serve());
    let holder = works(&home, verb);
    let first = home.crawled(&[&site.seed(), "--max-pages", "20"]);
    assert_eq!((first.count("/run"), first.changes()), (1, [20, 0, 0, 0]), "{first:?}");
    assert!(first.count("/did/requests") >= 20 && first.count("/documents/done") == 20);
    let second = home.crawled(&["--max-pages", "0"]);
    assert_eq!((second.count("/run"), second.count("/documents/done")), (2, PAGES as u64));
    let audited = audited(&home);
    assert_eq!(audited.len(), 2, "{audited:?}");
    assert!(audited.iter().all(|(outcome, _)| outcome == "done"), "{audited:?}");
    assert!(audited[0].1.contains("pages_max") && audited[1].1.contains("site"), "{audited:?}");
    holder.signal("TERM");
    assert_eq!(holder.ended().status.code(), Some(0));
    home.verify();
}

#[test]
fn a_crawl_while_work_has_the_directory_is_carried_out_by_work() {
    is_carried_out_by(&["work"]);
}

#[test]
fn a_crawl_while_serve_has_the_directory_is_carried_out_by_serve() {
    is_carried_out_by(&["serve", "--listen", "127.0.0.1:0"]);
}

#[test]
fn a_crawl_that_is_carried_out_elsewhere_looks_like_any_other() {
    let (home, site) = (Home::directory(), Site::with_pages(5).serve());
    let mut command = home.command(&["crawl", "--allow-private", "--delay", "0", "--job", "site"]);
    command.arg(site.seed());
    let holder = works(&home, &["work"]);
    let ended = Running::start(command).ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let said = text(&ended.stdout);
    let told = format!("process {} (work) holds the directory and runs the crawl", holder.id());
    for words in
        [told.as_str(), "job site, run 1: the first crawl", "5 added", "the job has 5 done"]
    {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
}

/// Begins a crawl that another process carries out, and waits until it has got somewhere.
fn begun(home: &Home, site: &Served) -> Running {
    let running = Running::start(home.crawl(&[&site.seed(), "--concurrency", "2"]));
    until(site, "it begins", || site.web().visits_count() > 5);
    running
}

#[track_caller]
fn is_stopped_by_ctrl_c(home: &Home, site: &Served) {
    let running = begun(home, site);
    running.signal("INT");
    let ended = running.ended();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
    assert_eq!(Summary::printed(&ended).0["ended"], "stopped");
    assert!(
        text(&ended.stderr).contains("run the same command to continue"),
        "{}",
        text(&ended.stderr)
    );
    assert_eq!(home.texts("SELECT status FROM jobs").first().unwrap(), "PAUSED");
    assert_eq!(home.active().len(), 0);
}

#[test]
fn ctrl_c_of_a_crawl_pauses_its_job_elsewhere_and_the_same_command_goes_on() {
    let (home, site) = (Home::directory(), slow_site());
    let holder = works(&home, &["work", "--concurrency", "2", "--json"]);
    is_stopped_by_ctrl_c(&home, &site);
    let summary = home.crawled(&[&site.seed()]);
    assert_eq!((summary.count("/run"), summary.count("/documents/done")), (1, PAGES as u64));
    assert_eq!(site.traffic().repeats().len(), 0, "what was fetched was committed");
    holder.signal("INT");
    let ended = holder.ended();
    let worked: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(worked["ended"], "stopped");
    assert_eq!(worked["runs"].as_array().unwrap().len(), 1, "{worked}");
    assert_eq!(worked["did"]["added"], PAGES);
}

#[test]
fn a_crawl_that_was_stopped_elsewhere_goes_on_when_nobody_has_the_directory() {
    let (home, site) = (Home::directory(), slow_site());
    let holder = works(&home, &["work", "--concurrency", "2"]);
    is_stopped_by_ctrl_c(&home, &site);
    holder.signal("INT");
    assert_eq!(holder.ended().status.code(), Some(0));
    let summary = home.crawled(&[&site.seed()]);
    assert_eq!((summary.count("/run"), summary.count("/documents/done")), (1, PAGES as u64));
}

#[test]
fn a_crawl_whose_process_dies_says_so_and_the_same_command_goes_on() {
    let (home, site) = (Home::directory(), slow_site());
    let mut holder = works(&home, &["work", "--concurrency", "2"]);
    let running = begun(&home, &site);
    holder.kill();
    let ended = running.ended();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
    assert_eq!(Summary::printed(&ended).0["ended"], "stopped");
    let said = text(&ended.stderr);
    assert!(said.contains("ended before the run was over; run the same command"), "{said}");
    let summary = home.crawled(&[&site.seed()]);
    assert_eq!((summary.count("/run"), summary.count("/documents/done")), (1, PAGES as u64));
}

#[test]
fn what_another_process_cannot_be_told_is_refused() {
    let (home, site) = (Home::directory(), Site::with_pages(2).serve());
    let _holder = works(&home, &["work"]);
    let refused = home.crawl(&[&site.seed(), "--resolve", "a.example=127.0.0.1"]).output().unwrap();
    assert_trouble(&refused, &["--resolve", "stop that one first"]);
    let unknown = home.crawl(&["--job", "nobody"]).output().unwrap();
    assert_trouble(&unknown, &["no job nobody", "give the URL"]);
}

fn a_failed_run_is_told_by_the_exit_code_of_work(home: &Home) {
    let site = Site::with_pages(PAGES).serve();
    home.crawled(&[&site.seed(), "--max-pages", "1"]);
    let works = || {
        let started = home.command(&["job", "start", "site"]).output().unwrap();
        assert!(started.status.success(), "{}", text(&started.stderr));
        let args = ["work", "--until-idle", "--lease", "1", "--json"];
        let ended = Running::start(home.command(&args)).ended();
        let said: Value = serde_json::from_slice(&ended.stdout).unwrap();
        (ended.status.code(), said)
    };
    let (code, said) = works();
    assert_eq!((code, &said["ended"]), (Some(0), &Value::from("idle")), "{said}");
    assert_eq!(said["runs"][0]["outcome"], "done", "{said}");
    home.rows()
        .write(|tx| {
            let mut job = jobs::find(tx, "site")?.expect("it was crawled");
            job.on_failure = OnFailure::Abort;
            job.docspec = job.docspec.replace("\"retries\":3", "\"retries\":0");
            jobs::save(tx, &job, 1)
        })
        .unwrap();
    site.intercept(|_| Some(Answer::status(500)));
    let (code, said) = works();
    assert_eq!((code, &said["failed_runs"]), (Some(1), &Value::from(1)), "{said}");
    let error = said["runs"][0]["error"].as_str().unwrap();
    assert!(error.contains("has failed for good"), "{said}");
}

#[test]
fn a_failed_run_is_told_by_the_exit_code_of_work_on_sqlite() {
    a_failed_run_is_told_by_the_exit_code_of_work(&Home::directory());
}

#[test]
fn a_failed_run_is_told_by_the_exit_code_of_work_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_failed_run_is_told_by_the_exit_code_of_work(&home);
}

#[test]
fn work_says_at_its_end_what_came_of_it() {
    let (home, site) = (Home::directory(), Site::with_pages(5).serve());
    home.crawled(&[&site.seed(), "--max-pages", "1"]);
    let holder = works(&home, &["work"]);
    home.crawled(&["--max-pages", "0"]);
    holder.signal("INT");
    let ended = holder.ended();
    assert_eq!(ended.status.code(), Some(0));
    let said = text(&ended.stdout);
    for words in ["working on all jobs", "1 run ended\n", "documents: 4 added, 0 updated"] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
}
