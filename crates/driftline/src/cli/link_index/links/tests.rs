//! What is told of a small web whose links come and go.

use super::*;
use crate::verbs::links::scene::{FIRST_MS, NOW_MS, SECOND_MS, Scene, page, parsed, suggested};
use crate::verbs::wire;
use clap::Parser;
use outputs::links::{ChangeBatch, PageChange, What};
use serde_json::Value as Json;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn looking(words: &[&str]) -> LinksQueryArgs {
    parsed::<Command>(words).args.looking
}

fn asked(scene: &Scene, words: &[&str]) -> Json {
    let request = looking(words).request(NOW_MS).unwrap();
    wire::encode(&Links::answer(&scene.context, request).unwrap()).unwrap()
}

fn told(scene: &Scene, words: &[&str]) -> Vec<String> {
    let response = wire::response(asked(scene, words)).unwrap();
    show::lines(&looking(words), &response, NOW_MS)
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
    assert_eq!(linked[7], "out-links: unknown, because the page was not crawled");
    let long = told(&scene, &["links", "c.example", "--in"]);
    assert!(long[5].contains("long long…  https://a.example/2"), "{long:?}");
    let unknown = told(&scene, &["links", "https://nobody.example/?a=1&b=2"]);
    assert_eq!(unknown.len(), 1);
    let why = "driftline why 'https://nobody.example/?a=1&b=2'";
    assert!(
        unknown[0].starts_with("nothing is known about https://nobody")
            && unknown[0].ends_with(why)
    );
}

#[test]
fn a_list_is_walked_both_ways_by_the_commands_that_it_suggests() {
    let scene = Scene::new();
    for list in ["--in", "--lost"] {
        let words = ["links", "b.example", list, "--limit", "1"];
        let first = told(&scene, &words);
        assert_eq!(first.len(), 7, "{first:?}");
        assert!(first[6].starts_with("next page: driftline links b.example "), "{first:?}");
        let second = told(&scene, &suggested(&first[6]));
        assert_eq!(second.len(), 7, "{second:?}");
        assert!(second[6].starts_with("previous page: "), "{second:?}");
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
    let index = scene.context.link_index.open().unwrap();
    let what = What::Page(Box::default());
    let empty = PageChange { date_ms: SECOND_MS, what, ..page("example.a>>s>/1", "", Vec::new()) };
    index.apply(ChangeBatch { changes: vec![empty], marks: Vec::new() }, &[]).unwrap();
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
