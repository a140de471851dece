//! Readers beside updates.

use super::site::*;
use crate::mirror::sweep::sweep;
use crate::mirror::{Mirror, MirrorSettings};
use page::mirror::names::HashName;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const UPDATES: u32 = 100;

fn state(version: u32) -> Site {
    site(&[
        (
            "",
            page(&format!(
                "<!--v{version}.--><link rel=stylesheet href=s.css><a href=n.html>n</a>"
            )),
        ),
        ("n.html", page(&format!("<!--v{version}.--><link rel=stylesheet href=s.css>"))),
        ("s.css", style(&format!("@import 't.css'; /*v{version}.*/"))),
        ("t.css", style(&format!("a {{}} /*v{version}.*/"))),
    ])
}

/// The version that a file says it is of.
fn version(text: &str) -> &str {
    text.split_once("v").and_then(|(_, rest)| rest.split_once('.')).expect("a version").0
}

/// Loads a file that another refers to, as a browser does: `..` takes a folder off the address.
fn load(root: &Path, from: &str, reference: &str) -> Loaded {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in reference.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    let text = std::fs::read_to_string(root.join(&path));
    let text = text.unwrap_or_else(|error| panic!("{path}: {error}"));
    Loaded { path, text }
}

struct Loaded {
    path: String,
    text: String,
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    text.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).expect("a reference").0
}

/// Loads a page and all that it needs; everything must be of one version.
fn load_page(root: &Path, path: &str) {
    let page = load(root, "", path);
    let sheet = load(root, &page.path, between(&page.text, "stylesheet href=\"", "\""));
    let imported = load(root, &sheet.path, between(&sheet.text, "@import \"", "\""));
    assert_eq!(version(&sheet.text), version(&page.text));
    assert_eq!(version(&imported.text), version(&page.text));
}

#[test]
fn a_reader_never_sees_a_missing_or_mixed_page_during_100_updates() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { keep: 2, grace_ms: 1_000_000, ..settings() };
    let mirror = Mirror::open(place.path(), &settings).unwrap();
    let mut before = state(0);
    bring(&mirror, &delta(&Site::new(), &before), 0).unwrap();
    let (is_over, loads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let root = place.path().join("webroot");
            while !is_over.load(Ordering::Relaxed) {
                for path in ["", "n.html"] {
                    load_page(&root, &HashName::of(&url(path)).path(".html"));
                }
                assert!(root.join("dir.xml").is_file() && root.join("index.html").is_file());
                loads.fetch_add(1, Ordering::Relaxed);
            }
        });
        for version in 1..=UPDATES {
            let after = state(version);
            bring(&mirror, &delta(&before, &after), i64::from(version)).unwrap();
            sweep(&mirror, i64::from(version)).unwrap();
            before = after;
            // At least one load an update, as long as the reader is well.
            let seen = loads.load(Ordering::Relaxed);
            while loads.load(Ordering::Relaxed) == seen && !reader.is_finished() {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(loads.into_inner() >= u64::from(UPDATES));
}
