//! The walls around `driftline extract`: what it tries is refused, and what it must read is read.

use super::{PROGRAM, answer, comes, of_process, pdf, pdf_of, read, start};
use serde_json::Value as Json;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use store::testing::skipped;

/// The signal of a process that the filter of system calls ends.
const SIGSYS: i32 = 31;
/// The signal of a process that gives up.
const SIGABRT: i32 = 6;
const REFUSED: &str = "Operation not permitted (os error 1)";
const OFFICE: &str = "application/vnd.openxmlformats-officedocument";

fn attempt(name: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["extract", "--attempt", name]).stdin(Stdio::null());
    command.output().unwrap()
}

/// The walls that a reader says it has, and what it says of its attempt.
fn said(output: &Output) -> (Json, Option<Json>) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(|it| serde_json::from_str(it).unwrap_or(Json::Null));
    (lines.next().unwrap(), lines.next())
}

/// Whether the filter has a list for this machine.
fn is_filtered() -> bool {
    let is_listed = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if !is_listed {
        skipped("seccomp: there is no list of system calls for this architecture");
    }
    is_listed
}

#[test]
fn a_reader_opens_no_file_and_no_connection_and_starts_nothing() {
    if !is_filtered() {
        return;
    }
    for name in ["open-file", "start-process"] {
        let (_, outcome) = said(&attempt(name));
        assert_eq!(outcome.unwrap()["refused"], REFUSED, "{name}");
    }
    for name in ["connect", "run-program"] {
        let output = attempt(name);
        assert_eq!(output.status.signal(), Some(SIGSYS), "{name}: {output:?}");
        assert_eq!(said(&output).1, None, "{name}");
    }
}

#[test]
fn each_wall_refuses_by_itself_what_it_is_there_for() {
    let (walls, _) = said(&attempt("open-file"));
    assert_eq!(walls["no_new_privileges"]["stands"], "full", "{walls}");
    if is_filtered() {
        assert_eq!(walls["seccomp"]["stands"], "full", "{walls}");
    }
    for name in ["landlock", "network_namespace"] {
        let why = walls[name]["why"].as_str().unwrap_or_default();
        assert!(!why.contains("blocks nothing"), "{walls}");
        if walls[name]["stands"] == "no" {
            skipped(&format!("{name}: {why}"));
        }
    }
}

#[test]
fn the_walls_stand_before_a_document_is_read() {
    let child = start("application/pdf");
    let status = of_process(child.id(), "status");
    if is_filtered() {
        comes("it has its walls", || {
            let text = std::fs::read_to_string(&status).ok()?;
            let has = |line: &str| text.lines().any(|it| it == line);
            (has("NoNewPrivs:\t1") && has("Seccomp:\t2")).then_some(())
        });
        let own_network = std::fs::read_link("/proc/self/ns/net").unwrap();
        let network = std::fs::read_link(of_process(child.id(), "ns/net")).unwrap();
        let (walls, _) = said(&attempt("open-file"));
        let is_apart = walls["network_namespace"]["stands"] == "full";
        assert_eq!(network != own_network, is_apart, "{walls}");
    }
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn documents_of_every_kind_are_read_inside_the_walls_as_outside() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/office");
    let mut documents = vec![("application/pdf", pdf_of("Hello tide", "http://a.example/x"))];
    for entry in std::fs::read_dir(corpus).unwrap() {
        documents.push((OFFICE, std::fs::read(entry.unwrap().path()).unwrap()));
    }
    // A font that is not there makes the library panic.
    let text = String::from_utf8(documents[0].1.clone()).unwrap();
    documents.push(("application/pdf", text.replace("BT /F1", "BT /F9").into_bytes()));
    assert!(documents.len() > 10, "{}", documents.len());
    for (media_type, document) in documents {
        let kind = page::sniff::kind_of(media_type);
        let outside = serde_json::to_value(page::extract::extract(kind, &document)).unwrap();
        assert_eq!(answer(media_type, &document), outside);
    }
}

#[test]
fn a_stack_that_overflows_is_told_inside_the_walls() {
    // A form that draws itself.
    let form =
        "/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /X1 4 0 R >> >>";
    let document = String::from_utf8(pdf(b"/X1 Do", form, "http://a.example/")).unwrap();
    let (fonts, forms) = ("/Font << /F1 5 0 R >>", "/XObject<</X1 4 0 R>>");
    assert_eq!(fonts.len(), forms.len(), "places in the file stay what they are");
    let output = read("application/pdf", document.replace(fonts, forms).as_bytes());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("has overflowed its stack"), "{output:?}");
    assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
}

#[test]
fn doctor_tries_the_walls_and_says_which_stand() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = |more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("doctor").arg("--data").arg(folder.path().join("data")).args(more);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let told = doctor(&[]);
    let answer: Json = serde_json::from_str(&doctor(&["--json"])).unwrap();
    let (walls, _) = said(&attempt("open-file"));
    assert_eq!(answer["readers"]["walls"], walls);
    assert_eq!(answer["readers"]["attempts"].as_array().unwrap().len(), 4, "{answer}");
    if is_filtered() {
        let refused = "blocked, as tested: open files, open connections, start processes, run";
        assert!(told.contains(refused), "{told}");
        assert!(told.contains("ok    reader sandbox   seccomp"), "{told}");
        let is_done = |it: &Json| it["outcome"] == "done";
        assert!(!answer["readers"]["attempts"].as_array().unwrap().iter().any(is_done));
    }
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(told.contains("warn  user"), is_root, "{told}");
}
