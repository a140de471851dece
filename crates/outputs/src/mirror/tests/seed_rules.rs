//! The rules of the seed, one test each.

use super::site::*;
use crate::mirror::spider::{Announced, announce, deliver, publish};
use crate::mirror::{Mirror, MirrorSettings, assembler, parser, reactor};
use page::mirror::xfile::{Node, NodeKind, Operation, Outcome, Stage, WebSite, read};
use std::path::Path;

fn x_file(dir: &Path, number: u64) -> WebSite {
    let bytes = std::fs::read(dir.join(format!("x/{number:020}.xml"))).unwrap();
    read(&*bytes).unwrap()
}

/// All nodes of an x-file.
fn nodes(site: &WebSite) -> Vec<&Node> {
    let mut nodes = vec![&site.node];
    let mut at = 0;
    while at < nodes.len() {
        nodes.extend(&nodes[at].node_list);
        at += 1;
    }
    nodes
}

fn operations(site: &WebSite) -> Vec<(String, Operation)> {
    let articles = nodes(site).into_iter().filter(|it| it.kind != Some(NodeKind::Column));
    let mut all: Vec<_> = articles.map(|it| (it.url.clone(), it.operation)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn dated(title: &str, last_modified_ms: i64) -> Document {
    let last_modified_ms = Some(last_modified_ms);
    Document { last_modified_ms, ..page(&format!("<title>{title}</title>")) }
}

fn news() -> Site {
    site(&[
        ("news/1.html", dated("one", 1)),
        ("news/2.html", dated("two", 2)),
        ("sport/1.html", dated("match", 3)),
        ("s.css", style("a {}")),
    ])
}

struct Followed {
    place: tempfile::TempDir,
    mirror: Mirror,
}

/// A mirror that has followed these states, published at 1, 2, ….
fn followed(states: &[Site]) -> Followed {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    let mut before = &Site::new();
    for (at, state) in states.iter().enumerate() {
        bring(&mirror, &delta(before, state), at as i64 + 1).unwrap();
        before = state;
    }
    Followed { place, mirror }
}

fn with(mut site: Site, path: &str, document: Document) -> Site {
    site.insert(url(path), document);
    site
}

#[test]
fn the_smallest_unit_is_one_article() {
    let it = followed(&[news(), with(news(), "news/2.html", dated("new", 4))]);
    let changed = operations(&x_file(it.place.path(), 2));
    let updates: Vec<_> = changed.iter().filter(|it| it.1 != Operation::Keep).collect();
    assert_eq!(updates, [&(url("news/2.html"), Operation::Update)]);
}

#[test]
fn modules_talk_through_x_files_only() {
    let it = followed(&[news()]);
    let other = tempfile::tempdir().unwrap();
    for dir in ["x", "blobs"] {
        copy(&it.place.path().join(dir), &other.path().join(dir));
    }
    let mirror = Mirror::open(other.path(), &settings()).unwrap();
    assert_eq!(parser::run(&mirror).unwrap().number, 1);
    assert_eq!(reactor::run(&mirror, false).unwrap().number, 1);
    assert_eq!(assembler::run(&mirror, 1).unwrap().number, 1);
    assert_eq!(webroot(other.path()), webroot(it.place.path()));
}

#[test]
fn every_x_file_has_the_same_structure() {
    let it = followed(&[news(), with(news(), "news/3.html", dated("three", 4))]);
    for number in [1, 2] {
        let site = x_file(it.place.path(), number);
        let publication = site.header.publication.as_ref().unwrap();
        assert_eq!((publication.number, publication.stage), (number, Stage::Published));
        let columns = nodes(&site).into_iter().filter(|it| it.kind == Some(NodeKind::Column));
        let mut columns: Vec<&str> = columns.map(|it| &*it.url).collect();
        columns.sort_unstable();
        assert_eq!(columns, [&url(""), &url("news/"), &url("sport/")].map(String::as_str));
    }
}

#[test]
fn numbers_increase_without_a_gap_and_each_names_the_one_before() {
    let states: Vec<Site> =
        (1..5).map(|at| with(news(), "news/1.html", dated("one", at))).collect();
    let states: Vec<Site> = states
        .into_iter()
        .enumerate()
        .map(|(at, site)| with(site, "news/9.html", dated(&at.to_string(), 9)))
        .collect();
    let it = followed(&states);
    for number in 2..=4 {
        let before = std::fs::read(it.place.path().join(format!("x/{:020}.xml", number - 1)));
        let previous =
            x_file(it.place.path(), number).header.publication.unwrap().previous.unwrap();
        assert_eq!(previous.number, number - 1);
        assert_eq!(previous.sha256, page::mirror::ContentDigest::of(&before.unwrap()));
    }
}

#[test]
fn the_configuration_is_never_written_and_may_be_read_only() {
    let place = tempfile::tempdir().unwrap();
    let rules = place.path().join("rules.toml");
    std::fs::write(&rules, "editor = \"me\"\n").unwrap();
    let before = std::fs::metadata(&rules).unwrap().modified().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    bring(&mirror, &delta(&Site::new(), &news()), 1).unwrap();
    assert_eq!(std::fs::read_to_string(&rules).unwrap(), "editor = \"me\"\n");
    assert_eq!(std::fs::metadata(&rules).unwrap().modified().unwrap(), before);
}

#[test]
fn the_previous_x_file_is_only_read() {
    let it = followed(&[news()]);
    let path = it.place.path().join("x/00000000000000000001.xml");
    let (bytes, before) = (std::fs::read(&path).unwrap(), std::fs::metadata(&path).unwrap());
    bring(&it.mirror, &delta(&news(), &with(news(), "x.html", page("x"))), 2).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
}

#[test]
fn the_first_x_file_adds_everything() {
    let it = followed(&[news()]);
    let site = x_file(it.place.path(), 1);
    assert!(nodes(&site).iter().all(|node| node.operation == Operation::Add));
    assert_eq!(operations(&site).len(), 4);
}

#[test]
fn later_x_files_have_what_is_newer_by_last_modified_first() {
    let newer = with(news(), "news/3.html", dated("three", 9));
    let it = followed(&[news(), with(newer, "news/4.html", dated("four", 8))]);
    let site = x_file(it.place.path(), 2);
    let column = nodes(&site).into_iter().find(|it| it.url == url("news/")).unwrap();
    let listed: Vec<&str> = column.node_list.iter().map(|it| &*it.name).collect();
    assert_eq!(listed, ["three", "four"]);
}

#[test]
fn without_last_modified_title_and_url_say_what_is_new() {
    let plain =
        site(&[("n/1.html", page("<title>a</title>")), ("n/2.html", page("<title>b</title>"))]);
    let more = with(plain.clone(), "n/3.html", page("<title>b</title>"));
    let it = followed(&[plain, with(more, "n/1.html", page("<title>c</title>"))]);
    let (update, add) = (Operation::Update, Operation::Add);
    let expected = [(url("n/1.html"), update), (url("n/3.html"), add)];
    assert_eq!(operations(&x_file(it.place.path(), 2)), expected);
}

#[test]
fn nothing_of_the_x_file_before_is_repeated() {
    let it = followed(&[news(), with(news(), "news/3.html", dated("three", 9))]);
    // All of it is delivered again.
    let all = with(news(), "news/3.html", dated("three", 9));
    let all = with(all, "news/4.html", dated("four", 10));
    bring(&it.mirror, &delta(&Site::new(), &all), 3).unwrap();
    let third = operations(&x_file(it.place.path(), 3));
    let changed: Vec<_> = third.iter().filter(|it| it.1 != Operation::Keep).collect();
    assert_eq!(changed, [&(url("news/4.html"), Operation::Add)]);
}

#[test]
fn every_column_has_at_least_one_node_which_is_its_newest() {
    let it = followed(&[news(), with(news(), "x.html", page("x"))]);
    let second = operations(&x_file(it.place.path(), 2));
    let kept: Vec<_> = second.iter().filter(|it| it.1 == Operation::Keep).collect();
    let keep = Operation::Keep;
    assert_eq!(kept, [&(url("news/2.html"), keep), &(url("sport/1.html"), keep)]);
}

#[test]
fn what_a_run_is_about_to_bring_is_announced_and_stays_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &settings()).unwrap();
    let coming = [Announced { url: url("news/1.html"), name: "one".to_owned() }];
    assert_eq!(announce(&mirror, &coming, 5).unwrap(), Some(1));
    let path = place.path().join("x/00000000000000000001.announced.xml");
    let bytes = std::fs::read(&path).unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("content=\"pending\""));
    assert_eq!(announce(&mirror, &[], 6).unwrap(), Some(1));
    bring(&mirror, &delta(&Site::new(), &news()), 7).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let publication = x_file(place.path(), 1).header.publication.unwrap();
    assert_eq!((publication.started_ms, publication.completed_ms), (5, Some(7)));
}

#[test]
fn a_run_that_was_aborted_is_published_as_partial_and_leaves_no_gap() {
    let it = followed(&[news()]);
    let coming = [Announced { url: url("news/9.html"), name: "nine".to_owned() }];
    announce(&it.mirror, &coming, 5).unwrap();
    assert_eq!(publish(&it.mirror, Outcome::Partial, 6).unwrap(), Some(2));
    let site = x_file(it.place.path(), 2);
    assert_eq!(site.header.publication.as_ref().unwrap().outcome, Outcome::Partial);
    assert!(
        nodes(&site).iter().all(|node| node.operation == Operation::Keep),
        "nothing is removed"
    );
    follow(&it.mirror, 7).unwrap();
    assert_eq!(webroot(it.place.path()), from_scratch(&news(), &settings()));
}

#[test]
fn documents_are_taken_in_while_modules_are_at_work() {
    let it = followed(&[news()]);
    let more = with(news(), "news/5.html", dated("five", 5));
    std::thread::scope(|scope| {
        let deliveries = scope.spawn(|| deliver(&it.mirror, &delta(&news(), &more)).unwrap());
        follow(&it.mirror, 2).unwrap();
        deliveries.join().unwrap();
    });
    assert_eq!(webroot(it.place.path()), from_scratch(&news(), &settings()), "not published yet");
    bring(&it.mirror, &[], 3).unwrap();
    assert_eq!(webroot(it.place.path()), from_scratch(&more, &settings()));
}

#[test]
fn the_parser_reads_x_files_and_writes_its_own_folder_only() {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), &MirrorSettings { threads: 2, ..settings() }).unwrap();
    deliver(&mirror, &delta(&Site::new(), &news())).unwrap();
    publish(&mirror, Outcome::Complete, 1).unwrap();
    let before = tree(place.path());
    parser::run(&mirror).unwrap();
    let after = tree(place.path());
    let changed = difference(&before, &after);
    assert_eq!(changed.len(), 4, "three articles and the cursor: {changed:?}");
    assert!(changed.iter().all(|it| it.starts_with("worker/parser/")), "{changed:?}");
    parser::run(&mirror).unwrap();
    assert_eq!(tree(place.path()), after, "once more changes nothing");
}
