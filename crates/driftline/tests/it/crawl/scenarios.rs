//! ManifoldCF's own scenarios of several processes, changed definitions, connectors
//! that go and processes that die, with its numbers, through the program alone.
//!
//! Jobs are defined, started and edited by verbs beside `driftline work`. Invariant: every
//! step is waited for in what the program says, never for time to pass.

mod archives;
mod bins;
mod cycle;
mod deregistered;
mod documents;
mod edited;
mod ending;
mod excluded;
mod feeds;
mod hops;
mod hostile;
mod logins;
mod removals;
mod rows;
mod unsteady;

use std::path::Path;
use std::time::Instant;

use super::{GLANCE, Home, PATIENCE, Running, text};

/// Runs a verb that must succeed, and gives what it said.
#[track_caller]
fn told(home: &Home, args: &[&str]) -> String {
    let output = home.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// How the only job stands, as `job list` says; `None` when it is gone.
#[track_caller]
fn listed(home: &Home) -> Option<serde_json::Value> {
    let said = told(home, &["job", "list", "--json"]);
    let mut lines: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    lines.pop()
}

/// The name of its state; `GONE` when there is no job.
#[track_caller]
fn state(home: &Home) -> String {
    let line = listed(home);
    line.map_or("GONE".to_owned(), |line| line["state"].as_str().unwrap().to_owned())
}

/// Looks again and again until something holds.
#[track_caller]
fn comes(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::park_timeout(GLANCE);
    }
}

/// A process that works on all jobs until there is nothing to do.
fn work(home: &Home, more: &[&str]) -> Running {
    let args = [&["work", "--until-idle", "--lease", "1"], more].concat();
    Running::start(home.command(&args))
}

/// Waits for the end of such a process, which must be a good one.
#[track_caller]
fn ends_well(work: Running) {
    let ended = work.ended();
    assert_eq!(ended.status.code(), Some(0), "{}{}", text(&ended.stdout), text(&ended.stderr));
}

/// Makes a job of the web, with these flags and settings.
fn web_job(home: &Home, seeds: &[String], more: &[&str]) {
    told(home, &["init"]);
    told(home, &["connection", "create", "web", "--connector", "web"]);
    let seeds: Vec<String> = seeds.iter().map(|seed| format!("seeds={seed}")).collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let create = ["job", "create", "site", "--connection", "web", "allow_private=yes"];
    told(home, &[&create[..], more, &seeds].concat());
}

/// Makes a connection for files in a directory, as an output.
fn output(home: &Home, directory: &Path) {
    let directory = format!("directory={}", directory.display());
    let create = ["connection", "create", "copy", "--connector", "files", "--kind", "output"];
    told(home, &[&create[..], &[&directory]].concat());
}

/// Makes a job that copies files, with flags for the connection it reads from.
fn files_job(home: &Home, (root, out): (&Path, &Path), more: &[&str]) {
    told(home, &["init"]);
    let create = ["connection", "create", "disk", "--connector", "files", "--kind", "repository"];
    told(home, &[&create[..], more].concat());
    output(home, out);
    let roots = format!("roots={}", root.display());
    let create = ["job", "create", "docs", "--connection", "disk", "--pipeline", "copy"];
    told(home, &[&create[..], &[&roots]].concat());
}
