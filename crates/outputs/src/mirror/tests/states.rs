//! A mirror that follows a site is, byte for byte, the one that is built from scratch.

use super::site::*;
use crate::mirror::{Mirror, MirrorSettings, Names, reactor};
use proptest::prelude::*;
use proptest::sample::subsequence;
use std::path::Path;

const PAGES: usize = 6;
const STYLES: usize = 4;
const IMAGES: usize = 3;

/// What a generated page or style sheet is made of.
#[derive(Debug, Clone)]
struct Parts {
    version: u8,
    pages: Vec<usize>,
    styles: Vec<usize>,
    images: Vec<usize>,
}

fn parts() -> impl Strategy<Value = Parts> {
    let some = |count: usize| subsequence((0..count).collect::<Vec<_>>(), 0..=count.min(3));
    (0..3_u8, some(PAGES), some(STYLES), some(IMAGES))
        .prop_map(|(version, pages, styles, images)| Parts { version, pages, styles, images })
}

fn page_path(at: usize) -> String {
    // Folders of several depths, a query, a fragment, and capitals.
    ["", "a/", "a/b/x.html?q=1", "A/c.html#part", "a/b/", "a/b/d/e.html"][at].to_owned()
}

fn html(parts: &Parts) -> Document {
    let mut body = format!("<title>v{}</title>", parts.version);
    for it in &parts.styles {
        body += &format!("<link rel=stylesheet href=\"/s/{it}.css\">");
    }
    for it in &parts.images {
        body += &format!("<img src='/i/{it}.png'>");
    }
    for it in &parts.pages {
        body += &format!(
            "<a href=\"/{}\">x</a><iframe src=\"/{}\"></iframe>",
            page_path(*it),
            page_path(*it)
        );
    }
    Document { last_modified_ms: Some(i64::from(parts.version)), ..page(&body) }
}

fn css(parts: &Parts) -> Document {
    let mut body = String::new();
    for it in &parts.styles {
        body += &format!("@import \"{it}.css\";\n");
    }
    for it in &parts.images {
        body += &format!("a {{ background: url(../i/{it}.png) }}\n");
    }
    style(&format!("{body}/* {} */", parts.version))
}

fn state() -> impl Strategy<Value = Site> {
    let pages = prop::collection::vec(prop::option::weighted(0.8, parts()), PAGES);
    let styles = prop::collection::vec(prop::option::weighted(0.8, parts()), STYLES);
    let images = prop::collection::vec(prop::option::weighted(0.8, 0..2_u8), IMAGES);
    (pages, styles, images).prop_map(|(pages, styles, images)| {
        let mut site = Site::new();
        for (at, parts) in pages.iter().enumerate() {
            site.extend(parts.as_ref().map(|it| (url(&page_path(at)), html(it))));
        }
        for (at, parts) in styles.iter().enumerate() {
            site.extend(parts.as_ref().map(|it| (url(&format!("s/{at}.css")), css(it))));
        }
        for (at, version) in images.iter().enumerate() {
            let picture = version.map(|it| image(&format!("picture {it}")));
            site.extend(picture.map(|it| (url(&format!("i/{at}.png")), it)));
        }
        site
    })
}

/// A mirror with the x-files up to a number, and nothing that a module has made of them.
fn with_x_files(from: &Path, to: &Path, through: u64) {
    copy(&from.join("blobs"), &to.join("blobs"));
    copy(&from.join("x"), &to.join("x"));
    for entry in std::fs::read_dir(to.join("x")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.split('.').next().unwrap().parse::<u64>().unwrap() > through {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn assert_same(left: &Tree, right: &Tree, what: &str) {
    let difference = difference(left, right);
    assert!(difference.is_empty(), "{what}:\n{}", difference.join("\n"));
}

fn follow_states(states: &[Site], settings: &MirrorSettings) {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), settings).unwrap();
    let mut before = Site::new();
    let mut shown: Vec<(u64, Tree)> = Vec::new();
    for (at, site) in states.iter().enumerate() {
        let now_ms = 1_000 * (at as i64 + 1);
        let number = bring(&mirror, &delta(&before, site), now_ms).unwrap();
        if !site.is_empty() {
            let scratch = from_scratch(site, settings);
            assert_same(&webroot(place.path()), &scratch, &format!("state {at}"));
        }
        shown.extend(number.map(|number| (number, webroot(place.path()))));
        before.clone_from(site);
    }
    // The same once more says nothing new.
    let last = delta(&Site::new(), &before);
    assert_eq!(bring(&mirror, &last, 99_000).unwrap(), None, "nothing is repeated");
    for (number, tree) in &shown {
        let other = tempfile::tempdir().unwrap();
        with_x_files(place.path(), other.path(), *number);
        let fresh = Mirror::open(other.path(), settings).unwrap();
        follow(&fresh, 1).unwrap();
        assert_same(&webroot(other.path()), tree, &format!("x-files up to {number}"));
        reactor::run(&fresh, true).unwrap();
        follow(&fresh, 2).unwrap();
        assert_same(&webroot(other.path()), tree, "all made anew");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_mirror_that_follows_a_site_is_the_one_built_from_scratch(
        states in prop::collection::vec(state(), 1..5),
        by_path in any::<bool>(),
    ) {
        let names = if by_path { Names::Path } else { Names::Hash };
        follow_states(&states, &MirrorSettings { names, ..settings() });
    }
}

#[test]
fn style_sheets_that_import_each_other_in_a_circle_are_followed() {
    let pages = |a: &str, b: &str, image_: &str| {
        site(&[
            ("", page("<link rel=stylesheet href=a.css>")),
            ("a.css", style(&format!("@import 'b.css'; {a}"))),
            ("b.css", style(&format!("@import url(a.css); i {{ background: url(i.png) }} {b}"))),
            ("own.css", style("@import 'own.css'; x {}")),
            ("i.png", image(image_)),
        ])
    };
    let states =
        [pages("p {}", "q {}", "1"), pages("p {}", "q {}", "2"), pages("r {}", "q {}", "2")];
    follow_states(&states, &settings());
}

#[test]
fn names_and_threads_can_change_and_the_mirror_follows() {
    let site = site(&[("", page("<a href=b.html>b</a>")), ("b.html", page("<a href=/>a</a>"))]);
    let place = tempfile::tempdir().unwrap();
    let by_path = MirrorSettings { names: Names::Path, threads: 2, ..settings() };
    {
        let mirror = Mirror::open(place.path(), &settings()).unwrap();
        bring(&mirror, &delta(&Site::new(), &site), 1).unwrap();
    }
    let mirror = Mirror::open(place.path(), &by_path).unwrap();
    follow(&mirror, 2).unwrap();
    let tree = webroot(place.path());
    assert_same(&tree, &from_scratch(&site, &by_path), "other names");
    let text = String::from_utf8(tree["a.example/index.html"].clone()).unwrap();
    assert_eq!(text, "<a href=\"b.html\">b</a>");
}
