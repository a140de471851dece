//! Generations: listed, compared, shown, gone back to, checked out, swept.

use super::site::*;
use crate::mirror::generations::{checkout, compare, list, rollback, show};
use crate::mirror::sweep::{Swept, sweep};
use crate::mirror::{Mirror, MirrorSettings, check};
use page::mirror::names::HashName;

fn state(version: i64) -> Site {
    site(&[
        ("", page(&format!("<link rel=stylesheet href=s.css>{version}"))),
        ("b.html", page("<a href=/>b</a>")),
        ("s.css", style(&format!("/* {version} */"))),
    ])
}

/// A mirror with the states 1 to `count`, each published at its own number.
fn mirror_of(place: &std::path::Path, settings: &MirrorSettings, count: i64) -> Mirror {
    let mirror = Mirror::open(place, settings).unwrap();
    let mut before = Site::new();
    for version in 1..=count {
        bring(&mirror, &delta(&before, &state(version)), version).unwrap();
        before = state(version);
    }
    mirror
}

#[test]
fn old_generations_are_listed_shown_and_gone_back_to() {
    let place = tempfile::tempdir().unwrap();
    let mirror = mirror_of(place.path(), &settings(), 3);
    let trees: Vec<Tree> = (1..=3).map(|it| from_scratch(&state(it), &settings())).collect();
    let numbers: Vec<u64> = list(&mirror).unwrap().iter().map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let home = HashName::of(&url("")).path(".html");
    assert_eq!(show(&mirror, 1, &home).unwrap(), trees[0][&home]);
    assert!(show(&mirror, 1, "../lock").is_err());
    assert!(show(&mirror, 9, &home).unwrap_err().to_string().contains("no generation 9"));
    rollback(&mirror, 1).unwrap();
    assert_eq!(webroot(place.path()), trees[0]);
    assert!(list(&mirror).unwrap()[0].is_shown);
    follow(&mirror, 9).unwrap();
    assert_eq!(webroot(place.path()), trees[0], "until the next is assembled");
    bring(&mirror, &delta(&state(3), &state(4)), 9).unwrap();
    assert_eq!(webroot(place.path()), from_scratch(&state(4), &settings()));
}

#[test]
fn comparing_names_the_paths_that_differ() {
    let place = tempfile::tempdir().unwrap();
    let mirror = mirror_of(place.path(), &settings(), 2);
    let comparison = compare(&mirror, 1, 2).unwrap();
    let home = HashName::of(&url("")).path(".html");
    let names: Vec<&str> = comparison.paths.iter().map(|it| &*it.path).collect();
    assert!(names.contains(&&*home) && names.contains(&"dir.xml"), "{names:?}");
    assert_eq!((comparison.added, comparison.removed), (1, 1), "the style sheet by its digest");
    assert_eq!(compare(&mirror, 2, 2).unwrap(), Default::default());
}

#[test]
fn a_checkout_is_a_plain_copy_that_follows() {
    let (place, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mirror = mirror_of(place.path(), &settings(), 2);
    std::fs::write(copy.path().join("mine.txt"), "mine").unwrap();
    let first = checkout(&mirror, 1, copy.path()).unwrap();
    assert_eq!(first.written, 5);
    let second = checkout(&mirror, 2, copy.path()).unwrap();
    assert!(second.written < first.written && second.removed == 1, "{second:?}");
    let mut tree = tree(copy.path());
    assert_eq!(tree.remove("mine.txt").unwrap(), b"mine");
    tree.remove(".driftline-checkout").unwrap();
    assert_eq!(tree, from_scratch(&state(2), &settings()));
    assert_eq!(checkout(&mirror, 2, copy.path()).unwrap().written, 0);
}

#[test]
fn what_no_generation_needs_any_more_is_swept() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { keep: 2, ..settings() };
    let mirror = mirror_of(place.path(), &settings, 5);
    let swept = sweep(&mirror, 5).unwrap();
    assert_eq!((swept.generations, swept.x_files), (3, 0), "a snapshot comes first");
    assert!(swept.buckets > 0, "{swept:?}");
    assert_eq!(sweep(&mirror, 5).unwrap(), Swept::default(), "all of it at once");
    assert_eq!(check::check(&mirror).unwrap().problems, Vec::<String>::new());
    assert_eq!(webroot(place.path()), from_scratch(&state(5), &settings));
    rollback(&mirror, 4).unwrap();
    assert_eq!(webroot(place.path()), from_scratch(&state(4), &settings));
    for version in 6..=7 {
        bring(&mirror, &delta(&state(version - 1), &state(version)), version).unwrap();
    }
    assert_eq!(webroot(place.path()), from_scratch(&state(7), &settings));
    let swept = sweep(&mirror, 7).unwrap();
    assert_eq!((swept.generations, swept.x_files), (2, 4));
    assert!(swept.blobs > 0, "{swept:?}");
    let numbers: Vec<u64> = list(&mirror).unwrap().iter().map(|it| it.number).collect();
    assert_eq!(numbers, [6, 7]);
    assert_eq!(check::check(&mirror).unwrap().problems, Vec::<String>::new());
}

#[test]
fn who_begins_after_x_files_were_swept_begins_with_a_snapshot() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { keep: 1, ..settings() };
    let mirror = mirror_of(place.path(), &settings, 3);
    sweep(&mirror, 3).unwrap();
    bring(&mirror, &delta(&state(3), &state(4)), 4).unwrap();
    sweep(&mirror, 4).unwrap();
    bring(&mirror, &delta(&state(4), &state(5)), 5).unwrap();
    assert!(!place.path().join("x/00000000000000000001.xml").exists());
    let other = tempfile::tempdir().unwrap();
    for dir in ["x", "blobs"] {
        copy(&place.path().join(dir), &other.path().join(dir));
    }
    let fresh = Mirror::open(other.path(), &settings).unwrap();
    follow(&fresh, 9).unwrap();
    assert_eq!(webroot(other.path()), from_scratch(&state(5), &settings));
}

#[test]
fn generations_that_are_too_old_go_but_never_the_newest() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { keep_ms: Some(10), ..settings() };
    let mirror = mirror_of(place.path(), &settings, 3);
    assert_eq!(sweep(&mirror, 1_000).unwrap().generations, 2);
    assert_eq!(webroot(place.path()), from_scratch(&state(3), &settings));
}

#[test]
fn a_requisite_that_no_page_needs_stays_for_its_grace() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { grace_ms: 100, ..settings() };
    let mirror = mirror_of(place.path(), &settings, 2);
    let assets = |at: &std::path::Path| {
        webroot(at).keys().filter(|path| path.starts_with("assets/")).count()
    };
    assert_eq!(assets(place.path()), 2, "the old one is in its grace");
    bring(&mirror, &delta(&state(2), &state(1)), 50).unwrap();
    assert_eq!(assets(place.path()), 2, "the first is back, the second leaves");
    bring(&mirror, &delta(&state(1), &state(7)), 120).unwrap();
    bring(&mirror, &delta(&state(7), &state(8)), 151).unwrap();
    assert_eq!(assets(place.path()), 3, "the second is gone");
    let first = from_scratch(&state(1), &settings);
    assert!(first.keys().all(|path| webroot(place.path()).contains_key(path)), "the first is not");
}

#[test]
fn a_second_process_is_told_who_works_on_the_mirror() {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    let refused = Mirror::open(place.path(), &settings()).err().unwrap().to_string();
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
    drop(mirror);
    Mirror::open(place.path(), &settings()).unwrap();
}
