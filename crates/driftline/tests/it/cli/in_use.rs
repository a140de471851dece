//! A directory that somebody holds: who may do what, and what a killed holder leaves.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Db, socket};

use super::{PROGRAM, Place, assert_trouble, said, text};

/// How long a process may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than a process takes to try for the directory, shorter than it tries.
const MOMENT: Duration = Duration::from_millis(500);

#[test]
fn verbs_that_write_name_the_holder_and_verbs_that_read_go_on() {
    let place = Place::filled();
    let _held = place.hold();
    let holder = format!("in use by process {}", std::process::id());
    for verb in ["init", "gc"] {
        assert_trouble(&place.run(&[verb]), &[&holder, "stop it first"]);
    }
    let (copy, archive) = (place.path("copy"), place.path("a.warc.gz"));
    for args in [
        vec!["status"],
        vec!["verify"],
        vec!["backup", text(&copy)],
        vec!["export", "warc", text(&archive)],
    ] {
        place.succeeds(&args);
    }
}

#[test]
fn the_holder_answers_status_through_its_socket() {
    let place = Place::filled();
    let held = place.hold();
    let answer = serde_json::json!({
        "holder": {"process": 4711, "doing": "dancing\u{1b}[2J"},
        "overview": {"parts": 99, "schema": 1, "commits": 12345, "jobs": []},
    });
    let answering = {
        let answer = answer.clone();
        move |question: socket::SocketRequest| match question.verb.as_str() {
            "status" => Ok(answer.clone()),
            verb => Err(format!("there is no verb {verb:?}")),
        }
    };
    let listening = socket::listen(held.layout(), Arc::new(answering)).unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&place.succeeds(&["status", "--json"])).unwrap();
    assert_eq!(json, answer);
    let shown = place.succeeds(&["status"]);
    assert!(shown.contains("99 parts") && shown.contains("12345 chunks"), "{shown}");
    assert!(shown.contains("held by process 4711 (dancing\\u{1b}[2J)"), "{shown}");
    drop(listening);
    assert!(place.succeeds(&["status"]).contains("4 parts"), "then it reads by itself");
}

/// A `driftline gc` that has the directory but waits for the rows, which this
/// process keeps from it; then it is killed.
#[test]
fn a_killed_holder_leaves_a_directory_that_the_next_one_takes_at_once() {
    let place = Place::filled();
    let db = Db::open_sqlite(&place.layout().database()).unwrap();
    let (data, lock) = (place.data.clone(), place.layout().lock());
    let (refused, killed) = db
        .write(move |_| {
            let gc = || {
                let mut command = Command::new(PROGRAM);
                command.arg("gc").arg("--data").arg(&data);
                command
            };
            let mut holder = Killed(gc().stdout(Stdio::null()).spawn().unwrap());
            let number = holder.0.id().to_string();
            let started = Instant::now();
            while std::fs::read_to_string(&lock).unwrap().trim() != number {
                assert!(started.elapsed() < PATIENCE, "the holder does not take the directory");
                assert_eq!(holder.0.try_wait().unwrap(), None, "the holder has ended");
                std::thread::yield_now();
            }
            let refused = gc().output().unwrap();
            holder.0.kill().unwrap();
            let ended = holder.0.wait().unwrap();
            assert_eq!(ended.code(), None, "it ended by a signal");
            Ok((refused, number))
        })
        .unwrap();
    assert_trouble(&refused, &[&format!("in use by process {killed}")]);
    drop(db);
    said(&place.run(&["gc"]));
    said(&place.run(&["verify"]));
}

/// Verbs hold a directory while they change something; `work` must not die of that.
#[test]
fn a_process_that_is_to_work_waits_for_a_verb_that_has_the_directory_for_a_moment() {
    let place = Place::filled();
    let held = place.hold();
    let mut command = Command::new(PROGRAM);
    command.args(["work", "--until-idle"]).arg("--data").arg(&place.data).stdout(Stdio::null());
    let mut work = Killed(command.spawn().unwrap());
    let deadline = Instant::now() + MOMENT;
    while Instant::now() < deadline {
        assert_eq!(work.0.try_wait().unwrap(), None, "it waits");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    drop(held);
    assert_eq!(work.0.wait().unwrap().code(), Some(0));
}

/// A process that does not outlive a test that fails.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
