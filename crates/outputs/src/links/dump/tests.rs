//! Lines stay whole and in order, however long, however many and whatever they hold.

use super::*;
use crate::links::inlinks::WIDE_MIN;
use crate::links::{ChangeBatch, PageChange, PageContent, What};
use page::facts::{LINKS_MAX, LinkKind, Rel};
use page::outlinks::OutLink;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::sorted::{EmbeddedMap, MapLocation, Row};

const PARTS: u32 = 3;

/// An index in files, which go with the folder.
fn index() -> (tempfile::TempDir, LinkIndex) {
    let folder = tempfile::tempdir().unwrap();
    let place = MapLocation { path: folder.path().join("links"), families: keys::FAMILIES };
    let index = LinkIndex::new(Arc::new(EmbeddedMap::open(&place).unwrap()), PARTS);
    (folder, index)
}

fn link(uri: String, anchor: &str) -> OutLink {
    OutLink { uri, anchor: anchor.to_owned(), kind: LinkKind::A, rel: Rel::default() }
}

fn page(uri: &str, links: Vec<OutLink>) -> PageChange {
    let content = PageContent { status: 200, links, ..PageContent::default() };
    let what = What::Page(Box::new(content));
    PageChange { uri: uri.to_owned(), date_ms: 1_438_052_777_999, job: 1, in_order: true, what }
}

fn told(index: &LinkIndex, changes: Vec<PageChange>) {
    index.apply(ChangeBatch { changes, marks: vec![] }, &[]).unwrap();
}

/// What is printed when so many bytes are sorted at a time.
fn lines(index: &LinkIndex, bytes: usize) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let scratch = Scratch { directory: folder.path().to_owned(), bytes };
    let mut lines = Vec::new();
    let mut take = |line: &str| {
        lines.push(line.to_owned());
        Ok(())
    };
    Dump::default().write_sorted(index, scratch, &mut take).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
    lines
}

#[test]
fn a_layout_is_found_by_its_name() {
    for layout in Layout::ALL {
        assert_eq!(Layout::parse(layout.name()), Some(layout));
    }
    assert_eq!(Layout::parse("seed 003"), None);
}

#[test]
fn a_page_with_very_many_links_is_one_line() {
    let (_folder, index) = index();
    let path = "x".repeat(200);
    let links: Vec<OutLink> =
        (0..LINKS_MAX).map(|at| link(format!("com.b>>o>/{path}{at:05}"), "words")).collect();
    told(&index, vec![page("com.a>>o>/", links)]);
    for bytes in [1 << 20, SORT_BYTES] {
        let lines = lines(&index, bytes);
        assert_eq!(lines.len(), 2 + 1 + 3 + 4 * LINKS_MAX);
        let json = lines.iter().find_map(|line| line.strip_prefix("p:com.a>>o>/|page|cur|"));
        let json = json.unwrap();
        assert!(json.len() > 10 * PIECE_BYTES);
        let page: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(page["numOutbound"], LINKS_MAX);
        assert_eq!(page["outboundLinks"].as_array().unwrap().len(), LINKS_MAX);
        assert_eq!(page["crawlDate"], "2015-07-28T03:06:17Z");
        assert_eq!((page.get("server"), page.get("title")), (None, None));
    }
}

#[test]
fn a_target_with_very_many_in_links_has_a_line_for_each() {
    let (_folder, index) = index();
    let sources = WIDE_MIN + 500;
    let target = "com.b>>o>/";
    let source = |at: u64| {
        let domain = ["com.a", "org.c", "net.d"][(at % 3) as usize];
        page(&format!("{domain}>>o>/{at}"), vec![link(target.into(), &at.to_string())])
    };
    told(&index, (0..sources).map(source).collect());
    let part = index.part_of(target);
    let key = keys::node(keys::hash(target));
    let node = index.read(move |view| view.get(part, &key)).unwrap().unwrap();
    let node = Node::decode(&node).unwrap();
    assert_eq!(node.inlinks, crate::links::node::Inlinks::Wide);
    let lines = lines(&index, 20_000);
    assert!(lines.contains(&format!("p:{target}|page|incount|{sources}")));
    let inlinks = lines.iter().filter_map(|line| line.strip_prefix("p:com.b>>o>/|inlinks|"));
    let mut count = 0;
    for line in inlinks {
        let (source, anchor) = line.split_once('|').unwrap();
        assert_eq!(source.rsplit_once('/').unwrap().1, anchor, "its own words");
        count += 1;
    }
    assert_eq!(count, sources);
}

#[test]
fn what_is_sorted_in_files_is_printed_as_what_is_sorted_in_memory() {
    let (_folder, index) = index();
    let pages = (0..200).map(|at: u64| {
        let links = (at % 7..40).step_by(3);
        let links = links.map(|to| link(format!("org.c>>o>/{to:02}"), &"w".repeat(to as usize)));
        page(&format!("com.a{}>>o>/{at}", at % 5), links.collect())
    });
    told(&index, pages.collect());
    let in_memory = lines(&index, SORT_BYTES);
    assert!(in_memory.len() > 2_000);
    for bytes in [5_000, 50_000] {
        assert!(lines(&index, bytes) == in_memory);
    }
}

#[test]
fn whatever_pages_say_a_line_is_one_line_and_a_field_one_field() {
    let (_folder, index) = index();
    // Webindex takes URLs as they are written. `|` and `%7C` are two of them, and so are
    // a line's end and the letters that stand for it.
    let targets = ["/a%7Cb", "/a\\nb", "/a\nb", "/a|b"];
    let mut links: Vec<OutLink> = targets
        .iter()
        .map(|path| link(format!("com.b>>o>{path}"), "one | two\\\r\n|three"))
        .collect();
    links.sort_by(|one, other| one.uri.cmp(&other.uri));
    told(&index, vec![page("com.a>>o>/x|y", links)]);
    let lines = lines(&index, SORT_BYTES);
    assert!(lines.iter().all(|line| !line.contains(['\n', '\r', '\0'])));
    assert_eq!(lines.len(), 2 + 1 + 3 + 4 * targets.len());
    let mut cells = BTreeMap::new();
    for line in &lines {
        let fields: Vec<&str> = line.splitn(4, '|').collect();
        assert!(cells.insert(fields[..3].to_vec(), fields[3]).is_none(), "{line}");
    }
    for path in ["/a%7Cb", "/a\\\\nb", "/a\\nb", "/a\\x7cb"] {
        let row = format!("p:com.b>>o>{path}");
        let key = vec![&row, "inlinks", "com.a>>o>/x\\x7cy"];
        assert_eq!(cells.get(&key), Some(&"one | two\\\\\\r\\n|three"), "{key:?}");
    }
    let json = cells[&vec!["p:com.a>>o>/x\\x7cy", "page", "cur"]];
    let page: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(page["outboundLinks"][0]["anchorText"], "one | two\\\r\n|three");
}

#[test]
fn an_in_link_whose_page_has_not_come_is_named_by_its_place() {
    let (_folder, index) = index();
    told(&index, vec![page("com.a>>o>/", vec![link("com.b>>o>/".into(), "x")])]);
    let part = index.part_of("com.a>>o>/");
    let row = Row { part, key: keys::page(0), value: None };
    index.map().change(part, None, Arc::new(move |_| Ok(vec![row.clone()]))).unwrap();
    let lines = lines(&index, SORT_BYTES);
    let expected = format!("p:com.b>>o>/|inlinks|?{part}:0|x");
    assert!(lines.contains(&expected), "{expected} in {lines:#?}");
}

#[test]
fn trouble_with_printing_ends_it() {
    let (_folder, index) = index();
    told(&index, vec![page("com.a>>o>/", vec![])]);
    let folder = tempfile::tempdir().unwrap();
    let mut refuse = |_: &str| Err(Error::Refused("nobody reads".into()));
    let outcome = Dump::default().write(&index, folder.path(), &mut refuse);
    assert_eq!(outcome.unwrap_err().to_string(), "nobody reads");
}
