//! What others put into URLs, pages and the mirror's own directory (T20).

use super::site::*;
use crate::mirror::spider::deliver;
use crate::mirror::{Mirror, MirrorSettings, Names};
use crate::output::Outcome;
use std::os::unix::fs::symlink;

const HOSTILE: &[&str] = &[
    "https://a.example/../../../../etc/passwd",
    "https://a.example/%2e%2e/%2e%2e/etc/passwd",
    "https://a.example/..%2f..%2fetc%2fpasswd",
    "https://a.example/a/./b/../../../x",
    "https://../",
    "file:///etc/passwd",
    "../../etc/passwd",
    "/etc/passwd",
    "https://a.example/\\..\\..\\x",
    "https://index.html/",
    "https://dir.xml/x.html",
    "https://assets/ab/x.css",
    "https://a.example/con",
    "https://a.example/%00",
    "javascript:alert(1)",
    "https://a.example/?q=<script>",
    "https://a.example/.driftline-checkout",
];

#[test]
fn hostile_urls_never_leave_the_directory() {
    for names in [Names::Hash, Names::Path] {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("mirror");
        let mirror = Mirror::open(&dir, &MirrorSettings { names, ..settings() }).unwrap();
        let links: String = HOSTILE.iter().map(|it| format!("<a href='{it}'>x</a>")).collect();
        let document = page(&links);
        let all: Vec<_> = HOSTILE.iter().map(|url| delivered(url, Some(&document))).collect();
        bring(&mirror, &all, 1).unwrap();
        let outside: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(outside.len(), 1, "only the mirror");
        let tree = webroot(&dir);
        assert_eq!(tree.len(), HOSTILE.len() + 2, "each has a file of its own: {:?}", tree.keys());
        assert!(tree.contains_key("dir.xml") && tree.contains_key("index.html"));
        let removed: Vec<_> = HOSTILE.iter().map(|url| delivered(url, None)).collect();
        bring(&mirror, &removed, 2).unwrap();
        assert_eq!(webroot(&dir).len(), 2);
    }
}

#[test]
fn a_url_that_no_file_of_a_mirror_could_hold_is_rejected() {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    let long = format!("https://a.example/{}", "x".repeat(20_000));
    for url in ["", "https://a.example/\u{1}", "https://a.example/\n", &long] {
        let outcomes = deliver(&mirror, &[delivered(url, Some(&page("x")))]).unwrap();
        assert!(matches!(outcomes[..], [Outcome::Rejected { .. }]), "{url:?}");
    }
    assert_eq!(bring(&mirror, &[], 1).unwrap(), None);
}

#[test]
fn a_link_that_somebody_planted_is_not_followed() {
    let all = delta(&Site::new(), &site(&[("", page("<img src=i.png>")), ("i.png", image("i"))]));
    let planted = [
        "journal",
        "blobs",
        "writing",
        "x",
        "worker",
        "worker/spider/members",
        "worker/reactor",
        "worker/reactor/lists",
        "listings",
        "buckets",
        "generations",
    ];
    for name in planted {
        let place = tempfile::tempdir().unwrap();
        let (dir, outside) = (place.path().join("mirror"), place.path().join("outside"));
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        symlink(&outside, dir.join(name)).unwrap();
        let outcome = Mirror::open(&dir, &settings()).and_then(|mirror| bring(&mirror, &all, 1));
        let refused = outcome.err().unwrap_or_else(|| panic!("{name} was followed")).to_string();
        assert!(refused.contains("link"), "{name}: {refused}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_link_in_the_place_of_a_blob_is_neither_read_nor_shown() {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    let document = image("i");
    let secret = place.path().join("secret");
    std::fs::write(&secret, "i").unwrap();
    let digest = crate::mirror::Digest::of(b"i");
    let blob = place.path().join("blobs").join(digest.path());
    std::fs::create_dir_all(blob.parent().unwrap()).unwrap();
    symlink(&secret, &blob).unwrap();
    let refused = bring(&mirror, &[delivered(&url("i.png"), Some(&document))], 1).unwrap_err();
    assert!(refused.to_string().contains("is no file"), "{refused}");
}
