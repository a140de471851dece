//! What commands about the data as a whole print.

use serde_json::Value;

use super::crawled::Copy;
use super::redacted::{Varying, redacted};
use super::{Screens, hold};

/// What is stored in how many rows, chunks and bytes depends on where commits happened to be.
const STORED: Varying = Varying {
    texts: &[
        (r"\b\d+ (rows|chunks|objects|files|records)\b", "[n] $1"),
        (r"\b\d+(\.\d+)? ([kM]B|bytes)\b", "[size]"),
        (r"SQLite [0-9.]+", "SQLite [version]"),
    ],
    fields: &["bytes", "chunks", "commits", "files", "objects", "records", "rows"],
};
/// Checks of `doctor` that say something else on every machine.
const OF_MACHINE: [&str; 13] = [
    "memory",
    "open files",
    "time zone",
    "name servers",
    "user",
    "document reader",
    "reader sandbox",
    "permissions",
    "disk space",
    "inodes",
    "sync time",
    "file times",
    "socket",
];

#[test]
fn status() {
    let copy = Copy::new();
    Screens::of(&copy.data()).varying(STORED).both(&["status"]).hold("status");
}

#[test]
fn verify() {
    let copy = Copy::new();
    let data = copy.data();
    Screens::of(&data)
        .varying(STORED)
        .both(&["verify"])
        .both(&["verify", "--quick"])
        .hold("verify");
}

#[test]
fn gc() {
    let copy = Copy::new();
    Screens::of(&copy.data()).both(&["gc"]).hold("gc");
}

#[test]
fn whole_directories() {
    let copy = Copy::new();
    let data = copy.data();
    let path = |name: &str| data.with_file_name(name).to_str().unwrap().to_owned();
    let (first, second) = (path("first"), path("second"));
    let (one, two) = (path("one.warc.gz"), path("two.warc.gz"));
    Screens::of(&data)
        .varying(STORED)
        .text(&["init"])
        .json(&["init"])
        .text(&["backup", &first])
        .json(&["backup", &second])
        .text(&["export", "warc", &one])
        .json(&["export", "warc", &two])
        .hold("whole-directories");
    let restored = path("restored");
    Screens::of(restored.as_ref())
        .varying(STORED)
        .text(&["status"])
        .text(&["restore", &first])
        .text(&["restore", &second])
        .hold("restore");
    let restored = path("restored-too");
    Screens::of(restored.as_ref()).varying(STORED).json(&["restore", &second]).hold("restore-json");
}

#[test]
fn doctor() {
    let copy = Copy::new();
    let data = copy.data();
    let screens = Screens::of(&data);
    let printed = screens.run(&["doctor"]);
    let mut lines: Vec<String> = Vec::new();
    let mut is_of_machine = false;
    for line in printed.lines() {
        let name = line.get(6..).map(|it| it.split("  ").next().unwrap_or_default());
        let begins = !line.starts_with(' ');
        is_of_machine = name.is_some_and(|it| OF_MACHINE.contains(&it)) || is_of_machine && !begins;
        match (is_of_machine, begins) {
            (true, true) => lines.push(format!("      {}", name.unwrap())),
            (true, false) => {}
            (false, _) => lines.push(line.to_owned()),
        }
    }
    assert!(lines.pop().unwrap().contains(" 0 failed, "), "{printed}");
    let text = redacted(&lines.join("\n"), &data, STORED);
    let answer: Value = serde_json::from_str(&screens.run(&["doctor", "--json"])).unwrap();
    let last = redacted(&format!("{:#}", answer["checks"][31]), &data, STORED);
    hold("doctor", &format!("$ driftline doctor\n{text}\n\nthe last check in JSON:\n{last}\n"));
}
