//! Damaged files are named, and nothing that is wrong is shown.

use super::site::*;
use crate::mirror::check::check;
use crate::mirror::{Digest, Mirror};
use std::path::{Path, PathBuf};

fn first() -> Site {
    site(&[
        ("", page("<link rel=stylesheet href=s.css><a href=b.html>b</a>")),
        ("b.html", page("<title>b</title>")),
        ("s.css", style("a {}")),
    ])
}

fn second() -> Site {
    let mut site = first();
    site.insert(url("b.html"), page("<title>c</title>"));
    site.insert(url("s.css"), style("b {}"));
    site
}

/// The files below a directory of the mirror.
fn files(dir: &Path, below: &str) -> Vec<PathBuf> {
    tree(&dir.join(below)).keys().map(|path| dir.join(below).join(path)).collect()
}

/// Changes a byte, in a file of its own: other names of the file keep their bytes.
fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn mirror_of(site: &Site) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    bring(&mirror, &delta(&Site::new(), site), 1).unwrap();
    place
}

#[test]
fn whatever_is_damaged_is_named_by_a_check() {
    let base = mirror_of(&first());
    let places = [
        "blobs",
        "x",
        "listings",
        "worker/spider/members",
        "worker/spider/cursor",
        "worker/reactor/cursor",
        "worker/reactor/members",
        "worker/reactor/sheets",
        "worker/parser/cursor",
        "worker/assembler/cursor",
    ];
    for below in places {
        let count = files(base.path(), below).len().max(1);
        for at in 0..count {
            let place = tempfile::tempdir().unwrap();
            copy(base.path(), place.path());
            let all = files(place.path(), below);
            let path = all.get(at).cloned().unwrap_or_else(|| place.path().join(below));
            damage(&path);
            let mirror = Mirror::open(place.path(), &settings()).unwrap();
            let problems = check(&mirror).unwrap().problems;
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(problems.iter().any(|it| it.contains(name)), "{path:?}: {problems:?}");
        }
    }
    let mirror = Mirror::open(base.path(), &settings()).unwrap();
    assert_eq!(check(&mirror).unwrap().problems, Vec::<String>::new());
}

#[test]
fn an_update_of_a_damaged_mirror_shows_the_old_state_or_the_right_one() {
    let base = mirror_of(&first());
    let (old, new) = (webroot(base.path()), from_scratch(&second(), &settings()));
    for below in ["blobs", "x", "listings", "worker/spider", "worker/reactor", "worker/assembler"] {
        for at in 0..files(base.path(), below).len() {
            let place = tempfile::tempdir().unwrap();
            copy(base.path(), place.path());
            let path = files(place.path(), below)[at].clone();
            damage(&path);
            let mirror = Mirror::open(place.path(), &settings()).unwrap();
            let outcome = bring(&mirror, &delta(&first(), &second()), 2);
            let left = webroot(place.path());
            if let Err(error) = outcome {
                assert!(error.to_string().contains("corrupt"), "{path:?}: {error}");
                assert_eq!(left, old, "{path:?}");
            } else {
                let difference = difference(&left, &new);
                assert!(difference.is_empty(), "{path:?}: {}", difference.join("\n"));
            }
        }
    }
}

#[test]
fn missing_blobs_folders_and_x_files_are_named() {
    let place = mirror_of(&first());
    let blob = files(place.path(), "blobs").swap_remove(0);
    std::fs::remove_file(&blob).unwrap();
    let bucket = std::fs::read_dir(place.path().join("buckets")).unwrap().next().unwrap().unwrap();
    std::fs::rename(bucket.path(), place.path().join("elsewhere")).unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    let problems = check(&mirror).unwrap().problems.join("\n");
    assert!(problems.contains(bucket.file_name().to_str().unwrap()), "{problems}");
    assert_eq!(Digest::parse("x"), None);
}
