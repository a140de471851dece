//! The routes of Webindex in its own forms, without its defects.

use super::*;
use crate::verbs::links::scene::Scene;

/// The server ends first, as it does in the program: it uses what the scene has open.
fn api() -> (Scene, Api) {
    let scene = Scene::new();
    let api = Api::answering(scene.context.clone(), tempfile::tempdir().unwrap());
    (scene, api)
}

#[test]
fn answers_have_the_original_forms() {
    let (_scene, api) = api();
    let (_, top) = api.get("/api/top");
    assert_eq!(top["results"][0], json!({"key": "https://b.example/", "value": 2}), "{top}");
    assert_eq!((&top["pageNum"], &top["next"]), (&json!(0), &Json::Null));
    let (_, pages) = api.get("/api/pages?domain=b.example");
    assert_eq!(pages["domain"], "b.example");
    assert_eq!(pages["pages"][0], json!({"url": "https://b.example/", "score": 3}), "{pages}");
    assert_eq!(pages["total"], 2);
    let (_, page) = api.get("/api/page?url=https://b.example/");
    assert_eq!((&page["numInbound"], &page["title"]), (&json!(2), &json!("B")), "{page}");
    assert_eq!((&page["uri"], &page["numOutbound"]), (&json!("example.b>>s>/"), &json!(1)));
    let (_, links) = api.get("/api/links?url=https://b.example/&linkType=in");
    assert_eq!(links["total"], 2);
    assert_eq!(
        links["links"][0],
        json!({"url": "https://a.example/1", "uri": "example.a>>s>/1", "anchorText": "Home"}),
        "{links}"
    );
    let (_, out) = api.get("/api/links?url=https://b.example/&linkType=out");
    assert_eq!(out["links"][0]["url"], "https://a.example/1");
}

#[test]
fn nothing_that_a_caller_writes_breaks_it() {
    let (_scene, api) = api();
    for (path, expected) in [
        // Behind the end Webindex failed.
        ("/api/top?pageNum=7", 200),
        ("/api/top?pageNum=41", 400),
        ("/api/top?pageNum=x", 400),
        ("/api/top?pageNum=-1", 400),
        ("/api/top?next=nonsense", 400),
        // A domain as people write it.
        ("/api/pages?domain=B.Example", 200),
        ("/api/pages?domain=nobody.example", 404),
        ("/api/pages", 400),
        ("/api/page?url=::::", 400),
        ("/api/page?url=https://nobody.example/", 404),
        ("/api/links?url=https://b.example/", 400),
        ("/api/links?url=https://b.example/&linkType=sideways", 400),
        ("/api/links?url=https://nobody.example/&linkType=in", 404),
    ] {
        let (status, answer) = api.get(path);
        assert_eq!(status, expected, "{path}: {answer}");
    }
    let (_, behind) = api.get("/api/top?pageNum=7");
    assert_eq!(behind, json!({"next": null, "pageNum": 7, "results": []}));
}

#[test]
fn pages_come_by_number_and_by_cursor_alike() {
    let (scene, api) = api();
    scene.add_many_links(60);
    let mut by_cursor = Vec::new();
    let (mut next, mut number) = (String::new(), 0);
    loop {
        let (_, page) = api.get(&format!("/api/top?pageNum={number}{next}"));
        let (_, same) = api.get(&format!("/api/top?pageNum={number}"));
        assert_eq!(page, same, "page {number}");
        by_cursor.extend(page["results"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(cursor) => next = format!("&next={cursor}"),
            None => break,
        }
        number += 1;
    }
    assert!(number >= 2, "{number}");
    let (_, whole) = api.get("/api/v1/top?limit=1000");
    assert_eq!(by_cursor.len(), whole["items"].as_array().unwrap().len());
}

#[test]
fn links_of_the_api_are_asked_for_by_kind() {
    let (_scene, api) = api();
    let lost = "/api/v1/links?url=https://b.example/&list=lost";
    for (kind, expected) in
        [("area", json!(["area"])), ("a", json!(["a"])), ("redirect", json!([]))]
    {
        let (status, answer) = api.get(&format!("{lost}&kind={kind}"));
        let items = answer["lost"]["items"].as_array().cloned().unwrap_or_default();
        let kinds: Vec<Json> = items.iter().map(|it| it["kind"].clone()).collect();
        assert_eq!((status, json!(kinds)), (200, expected), "{answer}");
    }
    let (status, answer) = api.get(&format!("{lost}&kind=sideways"));
    assert_eq!(status, 400, "{answer}");
}
