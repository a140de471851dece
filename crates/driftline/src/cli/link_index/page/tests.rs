//! One page with all that is known of it, whatever became of it.

use super::*;
use crate::verbs::links::scene::{FIRST_MS, NOW_MS, SECOND_MS, Scene, parsed};
use crate::verbs::{Verb, wire};
use clap::Parser;
use serde_json::Value as Json;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn asked(scene: &Scene, url: &str) -> Json {
    let request = PageRequest { url: url.to_owned() };
    wire::encode(&Page::answer(&scene.context, request).unwrap()).unwrap()
}

fn told(scene: &Scene, url: &str) -> Vec<String> {
    let args = parsed::<Command>(&["page", url]).args;
    lines(&args, &wire::response(asked(scene, url)).unwrap(), NOW_MS)
}

#[test]
fn a_page_is_told_with_its_jobs_and_times() {
    let scene = Scene::new();
    let expected = [
        "https://b.example/",
        "    2 in-links, 1 out-link, crawled 2 days ago (2026-01-31 12:00 UTC)",
        "    title            B",
        "    status           200",
        "    server           nginx",
        "    score            3",
        "    first seen       2026-01-31 12:00 UTC",
        "    unchanged since  2026-01-31 12:00 UTC",
        "    last seen        2026-01-31 12:00 UTC",
        "    jobs             news, (9, deleted)",
        "    domain           b.example",
        "    row              example.b>>s>/",
        "    its links: driftline links b.example",
    ];
    assert_eq!(told(&scene, "b.example"), expected);
    let loaded = told(&scene, "a.example/3");
    assert!(loaded.contains(&"    jobs             (loaded)".to_owned()), "{loaded:?}");
}

#[test]
fn a_page_that_is_gone_says_why_and_since_when() {
    let scene = Scene::new();
    let gone = told(&scene, "a.example/4");
    assert_eq!(gone[1], "    0 in-links, gone (http-404) 23 h ago");
    assert!(gone.contains(&"    gone since       2026-02-01 13:00 UTC".to_owned()), "{gone:?}");
    assert!(!gone.iter().any(|line| line.contains("jobs") || line.contains("last seen")));
    let linked = told(&scene, "b.example/x");
    assert_eq!(linked[1..3], ["    1 in-link, not crawled", "    score            1"]);
}

#[test]
fn a_page_that_is_not_known_is_no_empty_page() {
    let scene = Scene::new();
    let unknown = told(&scene, "https://nobody.example/");
    assert!(unknown.len() == 1 && unknown[0].starts_with("nothing is known about"), "{unknown:?}");
    let json = asked(&scene, "https://nobody.example/");
    assert_eq!(json, serde_json::json!({"asked": "https://nobody.example/", "page": null}));
    let request = PageRequest { url: "hello".into() };
    let refused = Page::answer(&scene.context, request).unwrap_err();
    assert!(format!("{refused:#}").contains("https://example.com/page"), "{refused:#}");
}

#[test]
fn scripts_rely_on_these_keys() {
    let scene = Scene::new();
    let expected = serde_json::json!({
        "asked": "a.example/4",
        "page": {
            "url": "https://a.example/4", "uri": "example.a>>s>/4", "domain": "a.example",
            "incount": 0, "score": 0, "outcount": 0, "crawled": false, "last_seen_ms": null,
            "gone": "http-404", "gone_ms": SECOND_MS + 3_600_000, "title": "Four",
            "status": 200, "server": "nginx", "first_seen_ms": FIRST_MS, "version_ms": null,
            "jobs": []
        }
    });
    assert_eq!(asked(&scene, "a.example/4"), expected);
    let jobs = asked(&scene, "b.example")["page"]["jobs"].clone();
    assert_eq!(jobs, serde_json::json!([{"id": 7, "name": "news"}, {"id": 9, "name": null}]));
}
