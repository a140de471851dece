//! A mirror with a rules file: structure, titles and clean-up are what the rules say.

use super::site::*;
use crate::mirror::{Mirror, reactor};
use page::mirror::names::HashName;
use page::mirror::xfile::{Node, Operation, read};
use std::path::Path;

const RULES: &str = r#"
editor = "a person"
info = "an example"

[[column]]
url = "https://a.example/"
name = "The site"
items = "nav a"

[[list]]
pattern = "^https://a\\.example/(news|sport)/$"
items = "li a"

[[article]]
pattern = "^https://a\\.example/2026/"
title = "h1"
"#;

fn first() -> Site {
    let list = |title: &str, items: &str| page(&format!("<title>{title}</title>{items}"));
    let article =
        |title: &str| page(&format!("<title>Site: {title}</title><h1>{title}</h1><i>x</i>"));
    site(&[
        ("", page("<nav><a href=news/>News</a><a href=sport/>Sport</a></nav>")),
        ("news/", list("News", "<li><a href=/2026/1.html>1</a><li><a href=/2026/2.html>2</a>")),
        ("sport/", list("Sport", "<li><a href=/2026/2.html>2</a>")),
        ("2026/1.html", article("One")),
        ("2026/2.html", article("Two")),
        ("2026/3.html", article("Three")),
    ])
}

fn mirror_with(dir: &Path, rules: &str) -> Mirror {
    std::fs::write(dir.join("rules.toml"), rules).unwrap();
    Mirror::open(dir, &settings()).unwrap()
}

/// Every node as `title` or `above > title`, with what happened to it.
fn structure(dir: &Path, number: u64) -> Vec<(String, Operation)> {
    let bytes = std::fs::read(dir.join(format!("x/{number:020}.xml"))).unwrap();
    let site = read(&*bytes).unwrap();
    assert_eq!((&*site.header.editor, &*site.header.info), ("a person", "an example"));
    let mut all = Vec::new();
    let mut open: Vec<(String, &Node)> = vec![(site.node.name.clone(), &site.node)];
    while let Some((path, node)) = open.pop() {
        let below = node.node_list.iter().map(|it| (format!("{path} > {}", it.name), it));
        open.extend(below);
        all.push((path, node.operation));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn columns_lists_and_titles_are_those_of_the_rules() {
    let place = tempfile::tempdir().unwrap();
    let mirror = mirror_with(place.path(), RULES);
    bring(&mirror, &delta(&Site::new(), &first()), 1).unwrap();
    let structure = structure(place.path(), 1);
    let paths: Vec<&str> = structure.iter().map(|it| &*it.0).collect();
    // A page of two lists stands in one of them; which one is the same every time.
    let of_both = match paths.contains(&"The site > News > Two") {
        true => "The site > News > Two",
        false => "The site > Sport > Two",
    };
    let mut expected = [
        "The site",
        "The site > News",
        "The site > News > One",
        of_both,
        "The site > Sport",
        "The site > Three",
    ];
    expected.sort_unstable();
    assert_eq!(paths, expected);
    let article = format!("worker/parser/{}", HashName::of(&url("2026/1.html")).path(".xml"));
    let xml = std::fs::read_to_string(place.path().join(article)).unwrap();
    assert!(xml.contains("<title>One</title>"), "{xml}");
}

#[test]
fn other_rules_place_every_page_anew() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    bring(&mirror_with(place.path(), RULES), &delta(&Site::new(), &first()), 1).unwrap();
    let rules = RULES.replace("(news|sport)", "news").replace("The site", "Home");
    let mirror = mirror_with(place.path(), &rules);
    assert_eq!(bring(&mirror, &[], 2).unwrap(), Some(2), "though nothing was delivered");
    let scratch = mirror_with(other.path(), &rules);
    bring(&scratch, &delta(&Site::new(), &first()), 1).unwrap();
    let difference = difference(&webroot(place.path()), &webroot(other.path()));
    assert!(difference.is_empty(), "{}", difference.join("\n"));
    let names: Vec<String> = structure(place.path(), 2).into_iter().map(|it| it.0).collect();
    assert!(names.contains(&"Home > Sport".to_owned()), "an article now: {names:?}");
    assert_eq!(bring(&mirror, &[], 3).unwrap(), None);
}

#[test]
fn rules_for_the_reactor_are_applied_to_all_pages_when_they_change() {
    let place = tempfile::tempdir().unwrap();
    let shown = || {
        let path = HashName::of(&url("2026/1.html")).path(".html");
        String::from_utf8(webroot(place.path())[&path].clone()).unwrap()
    };
    bring(&mirror_with(place.path(), RULES), &delta(&Site::new(), &first()), 1).unwrap();
    assert!(shown().contains("<i>x</i>"), "{}", shown());
    let rules = format!("{RULES}\n[reactor]\nsemantic_tags = true\n");
    let mirror = mirror_with(place.path(), &rules);
    follow(&mirror, 2).unwrap();
    assert!(shown().contains("<em>x</em>"), "{}", shown());
    assert_eq!(reactor::run(&mirror, false).unwrap().changed, 0, "once");
}

#[test]
fn rules_that_cannot_be_meant_so_are_refused_and_nothing_changes() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("rules.toml"), "colum = 1").unwrap();
    let refused = Mirror::open(place.path(), &settings()).err().unwrap().to_string();
    assert!(refused.contains("rules.toml") && refused.contains("colum"), "{refused}");
}
