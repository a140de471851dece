//! `serve` and `work` started by root: they say so, and `--user` leaves root for good.

use super::{Home, Running, assert_trouble, text};
use crate::extract::pdf_of;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use store::testing::skipped;

/// A user and a group that need not be in /etc/passwd.
const NOBODY: u32 = 65_534;
const NUMBERS: &str = "65534:65534";
const WARNING: &str = "runs as root";

/// Whether the tests run as root; otherwise a word in the summary.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skipped("--user: only root can go on as another user");
    }
    is_root
}

/// Gives what is there to somebody else.
fn give_away(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap(),
            }
        }
    }
}

/// Asserts that no thread of a process has any right of root.
#[track_caller]
fn assert_left_root(id: u32) {
    let mut threads = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task")).unwrap() {
        let status = thread.unwrap().path().join("status");
        // It may have ended meanwhile.
        let Ok(status) = std::fs::read_to_string(status) else { continue };
        let line = |name: &str| {
            let found = status.lines().find_map(|it| it.strip_prefix(name));
            found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("Uid:"), "65534 65534 65534 65534");
        assert_eq!(line("Gid:"), "65534 65534 65534 65534");
        assert_eq!(line("Groups:"), "");
        assert_eq!(line("CapEff:"), "0000000000000000");
        threads += 1;
    }
    assert!(threads > 1, "{threads}");
}

#[test]
fn root_is_warned_once_when_it_works_or_serves() {
    if !is_root() {
        return;
    }
    let home = Home::directory();
    let worked = home.command(&["work", "--until-idle"]).output().unwrap();
    let said = text(&worked.stderr);
    assert!(worked.status.success(), "{said}");
    assert_eq!(said.matches(WARNING).count(), 1, "{said}");
    assert!(said.contains("--user NAME"), "{said}");
    let server = Running::start(home.command(&["serve", "--json", "--listen", "127.0.0.1:0"]));
    server.prints("}\n");
    server.signal("TERM");
    let said = text(&server.ended().stderr);
    assert_eq!(said.matches(WARNING).count(), 1, "{said}");
}

#[test]
fn a_server_that_root_starts_for_another_user_has_left_root_in_every_thread() {
    if !is_root() {
        return;
    }
    let home = Home::directory();
    give_away(home.folder.path());
    let flags = ["serve", "--json", "--listen", "127.0.0.1:0", "--user", NUMBERS];
    let server = Running::start(home.command(&flags));
    server.prints("}\n");
    assert_left_root(server.id());
    server.signal("TERM");
    let ended = server.ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(!text(&ended.stderr).contains(WARNING), "{}", text(&ended.stderr));
}

#[test]
fn documents_are_read_for_a_user_that_root_has_named() {
    if !is_root() {
        return;
    }
    let home = Home::directory();
    let docs = home.folder.path().join("docs");
    std::fs::create_dir(&docs).unwrap();
    std::fs::write(docs.join("tide.pdf"), pdf_of("Hello tide", "http://a.example/x")).unwrap();
    let roots = format!("roots={}", docs.display());
    for command in [
        ["init"].as_slice(),
        &["connection", "create", "disk", "--connector", "files", "--kind", "repository"],
        &["job", "create", "docs", "--connection", "disk", &roots],
        &["job", "start", "docs"],
    ] {
        let output = home.command(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    }
    give_away(home.folder.path());
    let worked = home.command(&["work", "--until-idle", "--user", NUMBERS]).output().unwrap();
    let said = text(&worked.stderr);
    assert!(worked.status.success() && !said.contains(WARNING), "{said}");
    let found = home.command(&["search", "tide", "--json"]).output().unwrap();
    assert!(text(&found.stdout).contains("\"total\":1"), "{}", text(&found.stdout));
}

#[test]
fn a_user_that_cannot_be_had_is_refused_before_anything_is_made() {
    let home = Home::directory();
    for verb in ["serve", "work"] {
        let refused = |command: &mut Command, words: &[&str]| {
            assert_trouble(&command.output().unwrap(), words);
        };
        let command = |user: &str| home.command(&[verb, "--user", user]);
        if is_root() {
            refused(&mut command("no-such-user"), &["there is no user no-such-user"]);
            refused(&mut command("root"), &["a user other than root"]);
            refused(&mut command("3999999999"), &["3999999999:GID"]);
            refused(command(NUMBERS).uid(NOBODY).gid(NOBODY), &["only root", "65534"]);
        } else {
            refused(&mut command(NUMBERS), &["only root"]);
        }
    }
    assert!(!home.data().exists());
}
