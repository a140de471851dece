//! Pages come by their in-links or their score, of all or of a domain, in pages of any size.

use super::*;
use crate::verbs::links::scene::{Scene, parsed, suggested};
use crate::verbs::wire;
use clap::Parser;
use serde_json::Value as Json;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn asked(scene: &Scene, words: &[&str]) -> (Args, Json) {
    let args = parsed::<Command>(words).args;
    let response = Top::answer(&scene.context, args.request(false).unwrap()).unwrap();
    (args, wire::encode(&response).unwrap())
}

fn told(scene: &Scene, words: &[&str]) -> Vec<String> {
    let (args, json) = asked(scene, words);
    lines(&args, &wire::response(json).unwrap())
}

#[test]
fn the_most_linked_pages_come_first() {
    let scene = Scene::new();
    let expected = [
        "in-links  score  crawled  page",
        "       2      3  yes      https://b.example/",
        "       1      2  yes      https://a.example/1",
        "       1      1  no       https://b.example/x",
        "       1      1  no       https://c.example/",
        "       0      1  yes      https://a.example/2",
        "       0      1  yes      https://a.example/3",
    ];
    assert_eq!(told(&scene, &["top"]), expected);
    // By score what was crawled is one ahead, and equals come by row.
    let by_score = [1, 2, 5, 6, 3, 4].map(|at| expected[at]);
    assert_eq!(told(&scene, &["top", "--by", "score"])[1..], by_score);
}

#[test]
fn the_commands_that_are_suggested_walk_both_ways() {
    let scene = Scene::new();
    for by in ["incount", "score"] {
        let all = told(&scene, &["top", "--by", by]);
        let mut page = told(&scene, &["top", "--by", by, "--limit", "2"]);
        let mut seen = Vec::new();
        while let Some(on) = page.iter().find(|line| line.starts_with("next page")) {
            seen.extend(page[1..3].to_vec());
            page = told(&scene, &suggested(on));
        }
        seen.extend(page[1..3].to_vec());
        assert_eq!(seen, all[1..]);
        let back = page.iter().find(|line| line.starts_with("previous page")).unwrap();
        assert_eq!(told(&scene, &suggested(back))[1..3], all[3..5]);
    }
}

#[test]
fn a_domain_is_named_by_any_of_its_urls() {
    let scene = Scene::new();
    for name in ["b.example", "WWW.B.example", "https://b.example/x?y"] {
        let expected = [
            "b.example: 2 pages",
            "in-links  score  crawled  page",
            "       2      3  yes      https://b.example/",
            "       1      1  no       https://b.example/x",
        ];
        assert_eq!(told(&scene, &["top", "--domain", name]), expected);
    }
    let unknown = told(&scene, &["top", "--domain", "nobody.example"]);
    assert_eq!(
        unknown,
        ["no page of nobody.example is known; `driftline domains` lists the known domains"]
    );
}

#[test]
fn scripts_rely_on_these_keys() {
    let scene = Scene::new();
    let (_, json) = asked(&scene, &["top", "--domain", "c.example"]);
    let expected = serde_json::json!({
        "by": "incount", "domain": "c.example", "pages": 1,
        "items": [{
            "url": "https://c.example/", "uri": "example.c>>s>/", "incount": 1, "score": 1,
            "crawled": false
        }],
        "next": null, "previous": null
    });
    assert_eq!(json, expected);
    let (_, json) = asked(&scene, &["top", "--domain", "d.example"]);
    let expected = serde_json::json!({
        "by": "incount", "domain": "d.example", "pages": null, "items": [], "next": null,
        "previous": null
    });
    assert_eq!(json, expected);
}
