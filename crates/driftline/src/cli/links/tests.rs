//! A small web whose links come and go, and what is told of it.

use super::*;
use crate::cli::linked::Linked;
use clap::Parser;
use outputs::links::{Batch, Change, Content, LinkIndex, What, keys};
use page::facts::LinkKind;
use page::outlinks::OutLink;
use std::sync::Arc;
use store::datadir::DataDir;
use store::ids::{ConnectionId, JobId};
use store::sorted::{Embedded, Place as Files};
use store::tables::jobs::{self, Job};

/// Noon of 2026-01-31, when most of it was crawled.
pub const FIRST_MS: i64 = 1_769_860_800_000;
const HOUR_MS: i64 = 3_600_000;
/// A day later something had changed.
pub const SECOND_MS: i64 = FIRST_MS + 24 * HOUR_MS;
/// Two days later somebody asks.
pub const NOW_MS: i64 = FIRST_MS + 48 * HOUR_MS;
/// The job that crawled it; job 9 did too, and is deleted.
const JOB: i64 = 7;

/// A directory with a link index that has this:
///
/// | page | links to |
/// |---|---|
/// | `a.example/1` | `b.example/`, `b.example/x` (nofollow) |
/// | `a.example/2` | `c.example/`, at first also `b.example/` (an area) |
/// | `a.example/3`, loaded on the second day | `b.example/` |
/// | `a.example/4`, gone on the second day | `b.example/` |
/// | `b.example/` | `a.example/1` |
pub struct Scene {
    pub answers: Answers,
    // Dropped behind what uses them.
    _directory: DataDir,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDir::open(&folder.path().join("data"), 4, 0).unwrap();
        let db = directory.db().clone();
        let job = Job::new(JobId(JOB), "news", ConnectionId(1));
        db.write(move |tx| jobs::save(tx, &job, 1)).unwrap();
        let files = Files { path: folder.path().join("links"), families: keys::FAMILIES };
        let index = LinkIndex::new(Arc::new(Embedded::open(&files).unwrap()), 4);
        for changes in [first(), second()] {
            index.apply(Batch { changes, marks: Vec::new() }, &[]).unwrap();
        }
        let links = Arc::new(Linked::opened(&db, index));
        Scene {
            answers: Answers { links, ..Answers::of_rows(db) },
            _directory: directory,
            _folder: folder,
        }
    }

    /// One more page, with links to so many others.
    pub fn add_many_links(&self, count: usize) {
        let links = (0..count).map(|at| link(&format!("example.d>>s>/{at}"), "many")).collect();
        let changes = vec![page("example.d>>s>/", "Many", links)];
        let index = self.answers.links.open().unwrap();
        index.apply(Batch { changes, marks: Vec::new() }, &[]).unwrap();
    }
}

fn first() -> Vec<Change> {
    let home = || link("example.b>>s>/", "Home");
    let nofollow = OutLink { rel: Rel::NOFOLLOW, ..link("example.b>>s>/x", "See\u{1b}[2J also") };
    let area = OutLink { kind: LinkKind::Area, ..link("example.b>>s>/", "=cmd(), \"x\"") };
    let long = link("example.c>>s>/", &"long ".repeat(20));
    vec![
        page("example.a>>s>/1", "One", vec![home(), nofollow]),
        page("example.a>>s>/2", "Two", vec![area, long]),
        page("example.a>>s>/4", "Four", vec![link("example.b>>s>/", "four")]),
        page("example.b>>s>/", "B", vec![link("example.a>>s>/1", "back")]),
        Change { job: 9, ..page("example.b>>s>/", "B", vec![link("example.a>>s>/1", "back")]) },
    ]
}

fn second() -> Vec<Change> {
    let third = page("example.a>>s>/3", "Three", vec![link("example.b>>s>/", "third")]);
    let two = page("example.a>>s>/2", "Two", vec![link("example.c>>s>/", &"long ".repeat(20))]);
    let four = page("example.a>>s>/4", "", Vec::new());
    vec![
        Change { job: 0, in_order: false, date_ms: SECOND_MS, ..third },
        Change { date_ms: SECOND_MS, ..two },
        Change { date_ms: SECOND_MS + HOUR_MS, what: What::Gone("http-404".into()), ..four },
    ]
}

fn link(uri: &str, anchor: &str) -> OutLink {
    OutLink { uri: uri.into(), anchor: anchor.into(), kind: LinkKind::A, rel: Rel::default() }
}

fn page(uri: &str, title: &str, links: Vec<OutLink>) -> Change {
    let (title, server) = (title.to_owned(), "nginx".to_owned());
    let content = Content { status: 200, title, server, links };
    Change {
        uri: uri.to_owned(),
        date_ms: FIRST_MS,
        job: JOB,
        in_order: true,
        what: What::Page(Box::new(content)),
    }
}

/// A command line, beginning with the verb.
pub fn parsed<T: Parser>(words: &[&str]) -> T {
    T::try_parse_from(words).map_err(|error| error.to_string()).unwrap()
}

/// The command line that a line suggests.
pub fn suggested(line: &str) -> Vec<&str> {
    line.split_once("with: driftline ").unwrap().1.split_whitespace().collect()
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn looking(words: &[&str]) -> Looking {
    parsed::<Command>(words).args.looking
}

fn asked(scene: &Scene, words: &[&str]) -> Json {
    answer(&scene.answers, looking(words).ask(NOW_MS).unwrap()).unwrap()
}

fn told(scene: &Scene, words: &[&str]) -> Vec<String> {
    showing::lines(&looking(words), &read(asked(scene, words)).unwrap(), NOW_MS)
}

#[test]
fn a_page_is_shown_with_who_links_to_it_and_what_it_links_to() {
    let scene = Scene::new();
    let expected = [
        "https://b.example/",
        "    2 in-links, 1 out-link, crawled 2 days ago (2026-01-31 12:00 UTC)",
        "",
        "in-links:",
        "first seen (UTC)  last seen (UTC)   kind  nofollow  anchor  source",
        "2026-01-31 12:00  2026-01-31 12:00  a     no        Home    https://a.example/1",
        "2026-02-01 12:00  2026-02-01 12:00  a     no        third   https://a.example/3",
        "",
        "out-links:",
        "first seen (UTC)  last seen (UTC)   kind  nofollow  anchor  target",
        "2026-01-31 12:00  2026-01-31 12:00  a     no        back    https://a.example/1",
    ];
    for url in ["https://b.example/", "B.example", "example.b>>s>/", "https://b.example/#top"] {
        assert_eq!(told(&scene, &["links", url]), expected, "{url}");
    }
}

#[test]
fn what_is_new_and_what_is_lost_since_then_is_told_with_the_reason() {
    let scene = Scene::new();
    let expected = [
        "new in-links since 2026-02-01 00:00 UTC:",
        "first seen (UTC)  last seen (UTC)   kind  nofollow  anchor  source",
        "2026-02-01 12:00  2026-02-01 12:00  a     no        third   https://a.example/3",
        "",
        "lost in-links since 2026-02-01 00:00 UTC:",
        "lost (UTC)        first seen (UTC)  reason        kind  nofollow  anchor       source",
        "2026-02-01 13:00  2026-01-31 12:00  page gone     a     no        four         https://a.example/4",
        "2026-02-01 12:00  2026-01-31 12:00  page changed  area  no        =cmd(), \"x\"  https://a.example/2",
        "",
        "new out-links since 2026-02-01 00:00 UTC: none",
    ];
    let words = ["links", "b.example", "--since", "2026-02-01"];
    assert_eq!(told(&scene, &words)[3..], expected);
    let areas = told(&scene, &[&words[..], &["--kind", "area"]].concat());
    assert_eq!(areas[3], "new in-links since 2026-02-01 00:00 UTC: none");
    assert!(areas.iter().any(|line| line.contains("page changed")), "{areas:?}");
    assert!(!areas.iter().any(|line| line.contains("page gone")), "{areas:?}");
}

#[test]
fn pages_that_are_gone_or_only_linked_to_are_told_apart() {
    let scene = Scene::new();
    let gone = told(&scene, &["links", "a.example/4"]);
    assert_eq!(gone[1], "    0 in-links, gone (http-404) 23 h ago");
    let linked = told(&scene, &["links", "b.example/x"]);
    assert_eq!(linked[1], "    1 in-link, not crawled");
    assert!(
        linked[5].contains("  yes       See\\u{1b}[2J also  https://a.example/1"),
        "{linked:?}"
    );
    assert_eq!(linked[7], "out-links: not known, because the page is not crawled");
    let long = told(&scene, &["links", "c.example", "--in"]);
    assert!(long[5].contains("long long…  https://a.example/2"), "{long:?}");
    let unknown = told(&scene, &["links", "https://nobody.example/?a=1&b=2"]);
    assert_eq!(unknown.len(), 1);
    let why = "driftline why 'https://nobody.example/?a=1&b=2'";
    assert!(
        unknown[0].starts_with("nothing is known of https://nobody") && unknown[0].ends_with(why)
    );
}

#[test]
fn a_list_is_walked_both_ways_by_the_commands_that_it_suggests() {
    let scene = Scene::new();
    for list in ["--in", "--lost"] {
        let words = ["links", "b.example", list, "--limit", "1"];
        let first = told(&scene, &words);
        assert_eq!(first.len(), 7, "{first:?}");
        assert!(first[6].starts_with("go on with: driftline links b.example "), "{first:?}");
        let second = told(&scene, &suggested(&first[6]));
        assert_eq!(second.len(), 7, "{second:?}");
        assert!(second[6].starts_with("go back with: "), "{second:?}");
        assert_ne!(first[5], second[5]);
        let again = told(&scene, &suggested(&second[6]));
        assert_eq!(again[5], first[5]);
    }
}

#[test]
fn filters_hold_for_every_list() {
    let scene = Scene::new();
    let count =
        |words: &[&str], list: &str| asked(&scene, words)[list]["items"].as_array().unwrap().len();
    assert_eq!(count(&["links", "b.example/x", "--nofollow", "yes"], "in"), 1);
    assert_eq!(count(&["links", "b.example/x", "--nofollow", "no"], "in"), 0);
    assert_eq!(count(&["links", "a.example/1", "--nofollow", "yes"], "out"), 1);
    assert_eq!(count(&["links", "a.example/1", "--out", "--kind", "area"], "out"), 0);
    assert_eq!(count(&["links", "a.example/1", "--out", "--since", "2026-02-01"], "out"), 0);
    assert_eq!(count(&["links", "b.example", "--lost", "--since", "47h"], "lost"), 2);
    assert_eq!(count(&["links", "b.example", "--lost", "--since", "23h"], "lost"), 1);
}

#[test]
fn a_page_that_nobody_links_to_any_more_is_still_told_of() {
    let scene = Scene::new();
    let index = scene.answers.links.open().unwrap();
    let what = What::Page(Box::default());
    let empty = Change { date_ms: SECOND_MS, what, ..page("example.a>>s>/1", "", Vec::new()) };
    index.apply(Batch { changes: vec![empty], marks: Vec::new() }, &[]).unwrap();
    let lost = told(&scene, &["links", "b.example/x", "--lost"]);
    assert_eq!(lost[1], "    0 in-links, not crawled");
    assert!(lost[5].contains("page changed"), "{lost:?}");
}

#[test]
fn scripts_rely_on_these_keys() {
    let scene = Scene::new();
    let json = asked(&scene, &["links", "b.example", "--in", "--limit", "1"]);
    let next = json["in"]["next"].clone();
    assert!(next.is_string());
    let expected = serde_json::json!({
        "asked": "b.example",
        "page": {
            "url": "https://b.example/", "uri": "example.b>>s>/", "incount": 2, "outcount": 1,
            "crawled": true, "last_seen_ms": FIRST_MS, "gone": null, "gone_ms": null
        },
        "since_ms": null,
        "in": {
            "items": [{
                "url": "https://a.example/1", "uri": "example.a>>s>/1", "anchor": "Home",
                "kind": "a", "nofollow": false, "rel": [], "first_seen_ms": FIRST_MS,
                "last_seen_ms": FIRST_MS, "lost_ms": null, "reason": null
            }],
            "next": next, "previous": null
        },
        "out": null, "lost": null
    });
    assert_eq!(json, expected);
    let unknown = asked(&scene, &["links", "https://nobody.example/"]);
    assert_eq!((&unknown["page"], &unknown["in"]), (&Json::Null, &Json::Null));
}
