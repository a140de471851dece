//! Real feeds that others have collected: the fixtures of feed-rs, which come with its
//! source. They are read where Cargo keeps them, and are no part of the project.
//!
//! The answer that counts is feed-rs's own, of the whole document: [`super::slim`] must
//! not cut away what is asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

/// Feeds there are at least, so that a folder that is half there does not pass.
const FEEDS_MIN: usize = 60;
/// Places where each feed is cut off or damaged.
const WOUNDS: usize = 12;

/// The feeds with their names; none where the source of feed-rs is not at hand.
fn feeds() -> Vec<(String, Vec<u8>)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|it| it.join(".cargo")));
    let folders = |at: &Path| -> Vec<PathBuf> {
        let found = std::fs::read_dir(at).into_iter().flatten().flatten();
        found.map(|it| it.path()).collect()
    };
    let is_of_feed_rs = |it: &PathBuf| {
        it.file_name().is_some_and(|name| name.to_string_lossy().starts_with("feed-rs-"))
    };
    let mut sources: Vec<PathBuf> = home
        .iter()
        .flat_map(|home| folders(&home.join("registry/src")))
        .flat_map(|registry| folders(&registry))
        .filter(is_of_feed_rs)
        .collect();
    sources.sort();
    let mut found = Vec::new();
    for folder in sources.iter().rev().take(1).flat_map(|it| folders(&it.join("fixture"))) {
        for file in folders(&folder) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.ends_with(".serde.json") {
                found.push((name, std::fs::read(&file).unwrap()));
            }
        }
    }
    found.sort();
    if found.is_empty() {
        println!("SKIPPED: a corpus of feeds: the source of feed-rs is not in Cargo's registry");
    }
    found
}

/// The addresses of entries; feed-rs writes the slash after a host.
fn addresses(entries: impl Iterator<Item = FeedEntry>) -> BTreeSet<String> {
    entries.map(|it| it.url.trim_end_matches('/').to_owned()).collect()
}

/// The addresses that feed-rs finds in the whole document; none if it refuses it.
fn oracle(bytes: &[u8]) -> BTreeSet<String> {
    let parser = feed_rs::parser::Builder::new().sanitize_content(false).build();
    let entries = parser.parse(bytes).map(|feed| feed.entries).unwrap_or_default();
    addresses(entries.iter().filter_map(entry_of))
}

#[test]
fn every_feed_of_the_corpus_announces_what_its_oracle_finds() {
    let feeds = feeds();
    let mut wrong = Vec::new();
    for (name, bytes) in &feeds {
        let ours = addresses(read(bytes).into_iter().flat_map(|feed| feed.entries));
        if ours != oracle(bytes) {
            wrong.push((name, ours, oracle(bytes)));
        }
    }
    assert!(feeds.is_empty() || feeds.len() >= FEEDS_MIN, "only {} feeds", feeds.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_feed_of_the_corpus_does_harm_when_it_is_cut_off_or_damaged() {
    for (name, bytes) in feeds() {
        let whole = read(&bytes).map_or(0, |feed| feed.entries.len());
        for wound in 0..WOUNDS {
            let at = bytes.len() * wound / WOUNDS;
            if let Some(feed) = read(&bytes[..at]) {
                assert!(feed.entries.len() <= whole, "{name} has more when it is cut at {at}");
            }
            // Bytes that no UTF-8 has, a NUL, a tag that opens nothing, an entity without end.
            for harm in [&b"\xff\xc0\xfe"[..], b"\0", b"<", b"&", b"]]>", b"<!DOCTYPE x ["] {
                let mut hurt = bytes.clone();
                hurt.splice(at..at, harm.iter().copied());
                let feed = read(&hurt);
                let count = feed.map_or(0, |feed| feed.entries.len());
                assert!(count <= whole + 1, "{name} has {count} with {harm:?} at {at}");
            }
        }
    }
}
