//! A process that ends at any step leaves the old state or the new one, and the next goes on.

use super::site::*;
use crate::mirror::spider::Delivered;
use crate::mirror::sweep::sweep;
use crate::mirror::{Mirror, MirrorSettings};
use std::path::Path;
use store::Error;

fn first() -> Site {
    site(&[
        ("", page("<title>Start</title><link rel=stylesheet href=s.css><a href=n/1.html>1</a>")),
        ("n/1.html", page("<title>One</title><a href=2.html>2</a><img src=/i.png>")),
        ("n/3.html", page("<title>Three</title><a href=1.html>1</a>")),
        ("s.css", style("@import 't.css'; a { background: url(i.png) }")),
        ("t.css", style("b {}")),
        ("i.png", image("1")),
    ])
}

fn second() -> Site {
    let mut site = first();
    site.insert(url("n/2.html"), page("<title>Two</title><a href=3.html>3</a>"));
    site.insert(url("i.png"), image("2"));
    site.remove(&url("n/3.html"));
    site
}

struct Scenario {
    base: tempfile::TempDir,
    delta: Vec<Delivered>,
    old: Tree,
    new: Tree,
    /// The bytes of the x-file that comes.
    x_file: Vec<u8>,
}

fn x_file(dir: &Path) -> Vec<u8> {
    std::fs::read(dir.join("x/00000000000000000002.xml")).unwrap()
}

fn scenario() -> Scenario {
    let base = tempfile::tempdir().unwrap();
    let delta_ = delta(&first(), &second());
    let old = {
        let mirror = Mirror::open(base.path(), &settings()).unwrap();
        bring(&mirror, &delta(&Site::new(), &first()), 1).unwrap();
        webroot(base.path())
    };
    let done = tempfile::tempdir().unwrap();
    copy(base.path(), done.path());
    let mirror = Mirror::open(done.path(), &settings()).unwrap();
    bring(&mirror, &delta_, 2).unwrap();
    let (new, x_file) = (webroot(done.path()), x_file(done.path()));
    assert!(!difference(&old, &new).is_empty());
    Scenario { base, delta: delta_, old, new, x_file }
}

/// Tries the steps, one of so many. Returns how many there were.
fn fail_at_steps(one_of: usize, fault: impl Fn(&Mirror), is_it: impl Fn(&Error) -> bool) -> u64 {
    let scenario = scenario();
    for step in (1..).step_by(one_of) {
        let place = tempfile::tempdir().unwrap();
        copy(scenario.base.path(), place.path());
        let mirror = Mirror::open(place.path(), &settings()).unwrap();
        mirror.disk.faults.fail_from(step);
        fault(&mirror);
        let outcome = bring(&mirror, &scenario.delta, 2).and_then(|_| sweep(&mirror, 2));
        drop(mirror);
        let left = webroot(place.path());
        assert!(left == scenario.old || left == scenario.new, "mixed after step {step}");
        let Err(error) = outcome else {
            assert_eq!(left, scenario.new);
            return step - 1;
        };
        assert!(is_it(&error), "step {step}: {error}");
        let mirror = Mirror::open(place.path(), &settings()).unwrap();
        bring(&mirror, &scenario.delta, 2).unwrap();
        sweep(&mirror, 2).unwrap();
        let difference = difference(&webroot(place.path()), &scenario.new);
        assert!(difference.is_empty(), "after step {step}:\n{}", difference.join("\n"));
        assert_eq!(x_file(place.path()), scenario.x_file, "after step {step}");
        let checked = crate::mirror::check::check(&mirror).unwrap();
        assert_eq!(checked.problems, Vec::<String>::new(), "after step {step}");
        assert!(!place.path().join("x/00000000000000000003.xml").exists(), "after step {step}");
    }
    unreachable!("the steps come to an end")
}

#[test]
fn a_process_that_ends_at_any_step_is_followed_by_one_that_goes_on() {
    let steps = fail_at_steps(1, |_| {}, |error| error.to_string().contains("the fault"));
    assert!(steps > 60, "{steps} steps were tried");
}

#[test]
fn a_full_disk_is_told_and_leaves_the_webroot_as_it_was() {
    let full = |error: &Error| matches!(error, Error::Full { .. });
    fail_at_steps(7, |mirror| mirror.disk.faults.be_full(), full);
}

#[test]
fn what_was_delivered_is_not_lost_when_the_process_ends_before_it_publishes() {
    let place = tempfile::tempdir().unwrap();
    {
        let mirror = Mirror::open(place.path(), &settings()).unwrap();
        crate::mirror::spider::deliver(&mirror, &delta(&Site::new(), &first())).unwrap();
    }
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    assert_eq!(bring(&mirror, &[], 1).unwrap(), Some(1));
    assert_eq!(webroot(place.path()), from_scratch(&first(), &settings()));
}

#[test]
fn a_blob_that_a_loss_of_power_cut_short_is_written_again() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { keep: 1, ..settings() };
    let mirror = Mirror::open(place.path(), &settings).unwrap();
    let blobs = place.path().join("blobs");
    let all = delta(&Site::new(), &first());
    crate::mirror::spider::deliver(&mirror, &all).unwrap();
    for (path, _) in tree(&blobs) {
        std::fs::write(blobs.join(path), "").unwrap();
    }
    bring(&mirror, &all, 1).unwrap();
    assert_eq!(webroot(place.path()), from_scratch(&first(), &settings));
}
