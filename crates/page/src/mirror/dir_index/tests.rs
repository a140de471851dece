//! Directory indexes: files, x-files applied, and that both ways lead to the same.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::mirror::Error;
use crate::mirror::xfile::{
    self, Header, Operation, Outcome, Previous, Publication, Reader, Stage, Stored, WebSite,
};

const ROOT: &str = "https://a.example/";

fn empty() -> DirIndex {
    DirIndex::new(IndexHeader { codec: "UTF-8".to_owned(), ..IndexHeader::default() })
}

fn written(index: &DirIndex) -> String {
    String::from_utf8(index.write(Vec::new()).unwrap()).unwrap()
}

fn apply(index: DirIndex, site: &WebSite) -> Result<DirIndex, Error> {
    let bytes = xfile::write(site, Vec::new())?;
    index.apply(Reader::new(&*bytes)?, ContentDigest::of(&bytes))
}

fn plain(node: Node) -> WebSite {
    WebSite { header: Header::default(), node }
}

fn numbered(node: Node, number: u64, previous: Option<Previous>) -> WebSite {
    let publication = Publication {
        epoch: "e".to_owned(),
        number,
        stage: Stage::Published,
        previous,
        base: 1,
        oldest: 1,
        started_ms: 0,
        completed_ms: None,
        producer: "test".to_owned(),
        rules: None,
        outcome: Outcome::Complete,
        cut: Vec::new(),
    };
    let publication = Some(publication);
    WebSite { header: Header { publication, ..Header::default() }, node }
}

fn node(path: &str, operation: Operation, node_list: Vec<Node>) -> Node {
    Node { node_list, ..Node::new(&format!("{ROOT}{path}"), path, operation) }
}

/// A root with a column that has two articles.
fn small() -> DirIndex {
    let articles = ["c/1", "c/2"].map(|path| node(path, Operation::Add, vec![]));
    let column = node("c", Operation::Add, articles.to_vec());
    apply(empty(), &plain(node("", Operation::Add, vec![column]))).unwrap()
}

fn outline(index: &DirIndex) -> Vec<String> {
    let line = |it: Visited<'_>| format!("{}{}", ".".repeat(it.level), it.node.name);
    index.walk().map(line).collect()
}

fn kept(node_list: Vec<Node>) -> WebSite {
    plain(node("", Operation::Keep, node_list))
}

#[test]
fn an_index_is_written_as_described_and_read_again() {
    let index = small();
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<website format=\"1\">
  <editor></editor>
  <info></info>
  <codec>UTF-8</codec>
  <node order=\"0\">
    <title></title>
    <name></name>
    <url>https://a.example/</url>
    <refreshRate></refreshRate>
    <hashName>e2d259d7a2eb32a902a81543a57b58e7</hashName>
    <level>0</level>
    <nodeList>
      <node order=\"0\">
        <title>c</title>";
    assert!(written(&index).starts_with(xml), "{}", written(&index));
    let again = DirIndex::read(written(&index).as_bytes()).unwrap();
    assert_eq!((&again, written(&again)), (&index, written(&index)));
    assert_eq!(again.len(), 4);
}

#[test]
fn an_index_of_others_is_read_with_its_order() {
    let xml = "<website><editor>e</editor><info>i</info><codec>GB2312</codec><node>
        <title>T</title><url>u</url><refreshRate>60</refreshRate><nodeList>
        <node><name>B</name><url>b</url><level>9</level></node>
        <node><name>A</name><url>a</url></node></nodeList></node></website>";
    let index = DirIndex::read(xml.as_bytes()).unwrap();
    assert_eq!(index.header.codec, "GB2312");
    assert_eq!(outline(&index), ["T", ".B", ".A"]);
    assert_eq!(index.get(HashName::of("u")).and_then(|it| it.refresh_rate_s), Some(60));
    assert_eq!(DirIndex::read(written(&index).as_bytes()).unwrap(), index);
    for wrong in [
        xml.replace("<url>a</url>", "<url>b</url>"),
        xml.replace("<url>a</url>", ""),
        xml.replace("<url>a</url>", "<url>a</url><hashName>b</hashName>"),
        xml.replace("<website>", "<website format='2'>"),
        xml.replace("<website>", "<website epoch='e'>"),
        xml.replace("</website>", ""),
    ] {
        assert!(DirIndex::read(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn nodes_are_added_changed_moved_and_removed() {
    let index = small();
    let changed = Node { name: "one".to_owned(), ..node("c/1", Operation::Update, vec![]) };
    let first = Node { order: Some(-1), ..node("c/3", Operation::Add, vec![]) };
    let removed = node("c/2", Operation::Remove, vec![]);
    let column = node("c", Operation::Keep, vec![first, changed, removed]);
    let index = apply(index, &kept(vec![column])).unwrap();
    assert_eq!(outline(&index), ["", ".c", "..c/3", "..one"]);

    let moved = node("c/1", Operation::Update, vec![]);
    let index = apply(index, &kept(vec![node("d", Operation::Add, vec![moved])])).unwrap();
    assert_eq!(outline(&index), ["", ".c", "..c/3", ".d", "..c/1"]);

    let previous_url = Some(format!("{ROOT}d"));
    let renamed = Node { previous_url, ..node("e", Operation::Update, vec![]) };
    let index = apply(index, &kept(vec![renamed.clone()])).unwrap();
    assert_eq!(outline(&index), ["", ".c", "..c/3", ".e", "..c/1"]);
    assert_eq!(apply(index.clone(), &kept(vec![renamed])).unwrap(), index, "moved already");

    let gone = node("c/3", Operation::Remove, vec![]);
    let column = node("c", Operation::Remove, vec![gone]);
    let requisite = Node { kind: Some(NodeKind::Requisite), ..node("s", Operation::Add, vec![]) };
    let index = apply(index, &kept(vec![column, requisite])).unwrap();
    assert_eq!(outline(&index), ["", ".e", "..c/1"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let pending = Node { content: Content::Pending, ..node("x", Operation::Add, vec![]) };
    let article = |operation| node("c/1", operation, vec![]);
    for (list, why) in [
        (vec![node("x", Operation::Keep, vec![])], "not there"),
        (vec![article(Operation::Keep)], "elsewhere"),
        (vec![article(Operation::Update), article(Operation::Update)], "twice"),
        (vec![node("c", Operation::Remove, vec![])], "not what is below"),
        (vec![node("c", Operation::Remove, vec![article(Operation::Keep)])], "below something"),
        (vec![node("c/1", Operation::Remove, vec![node("c", Operation::Update, vec![])])], "below"),
        (vec![pending], "pending"),
    ] {
        let error = apply(small(), &kept(list)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let other_root = apply(small(), &plain(node("r", Operation::Add, vec![]))).unwrap_err();
    assert!(other_root.to_string().contains("second root"), "{other_root}");
}

#[test]
fn numbers_have_no_gap_and_no_fork_and_nothing_is_applied_twice() {
    let sha256 = |site: &WebSite| ContentDigest::of(&xfile::write(site, Vec::new()).unwrap());
    let first = numbered(node("", Operation::Add, vec![]), 1, None);
    let after = |number, sha256| Some(Previous { number, sha256 });
    let add = |path| node("", Operation::Keep, vec![node(path, Operation::Add, vec![])]);
    let second = numbered(add("a"), 2, after(1, sha256(&first)));
    let third = numbered(add("b"), 3, after(2, sha256(&second)));

    let one = apply(empty(), &first).unwrap();
    let two = apply(one.clone(), &second).unwrap();
    let three = apply(two.clone(), &third).unwrap();
    assert_eq!(outline(&three), ["", ".a", ".b"]);
    assert_eq!(apply(three.clone(), &second).unwrap(), three, "older");
    assert_eq!(apply(three.clone(), &third).unwrap(), three, "the same");
    assert!(matches!(apply(one.clone(), &third), Err(Error::Gap { last: 1, found: 3 })));
    assert!(matches!(apply(empty(), &second), Err(Error::Gap { last: 0, found: 2 })));
    let fork = numbered(add("c"), 3, after(2, sha256(&first)));
    assert!(matches!(apply(two.clone(), &fork), Err(Error::Contradiction { .. })));

    let mut rebuilt = first.clone();
    let mut announced = second.clone();
    if let Some(publication) = &mut rebuilt.header.publication {
        publication.epoch = "f".to_owned();
    }
    if let Some(publication) = &mut announced.header.publication {
        publication.stage = Stage::Announced;
    }
    assert!(matches!(apply(two, &rebuilt), Err(Error::OtherEpoch { .. })));
    assert!(matches!(apply(one, &announced), Err(Error::Contradiction { .. })));
    assert_eq!(DirIndex::read(written(&three).as_bytes()).unwrap(), three, "the position too");
}

/// A state of a site: for each of some pages whether it is there, below which, and how it is.
#[derive(Debug, Clone)]
struct Page {
    is_there: bool,
    below: usize,
    order: i64,
    version: u8,
}

const PAGES: usize = 9;

fn any_state() -> impl Strategy<Value = Vec<Page>> {
    let page = (any::<bool>(), 0..PAGES, -1..2_i64, 0..2_u8)
        .prop_map(|(is_there, below, order, version)| Page { is_there, below, order, version });
    vec(page, PAGES)
}

/// The index of a state, built from nothing. `first` says which page is the root.
fn built(state: &[Page], first: usize) -> DirIndex {
    let mut index = empty();
    let mut ids = Vec::new();
    for step in 0..PAGES {
        let number = (first + step) % PAGES;
        let page = &state[number];
        if !page.is_there && step > 0 {
            continue;
        }
        let parent = (!ids.is_empty()).then(|| ids[page.below % ids.len()]);
        let stored = Stored {
            sha256: ContentDigest::of(&[page.version]),
            length: 1,
            media_type: "text/html".to_owned(),
            charset: None,
            status: None,
            fetched_ms: None,
        };
        let url = format!("{ROOT}{number}");
        let node = Node {
            content: Content::Stored(Box::new(stored)),
            ..Node::new(&url, "n", Operation::Add)
        };
        ids.push(index.insert(IndexNode::of(&node, page.order), parent));
    }
    index
}

proptest! {
    #[test]
    fn deltas_in_order_give_what_is_built_from_the_last_state(
        states in vec((any_state(), 0..2_usize), 1..5),
    ) {
        let mut index = empty();
        let mut previous = None;
        for (at, (state, first)) in states.iter().enumerate() {
            let expected = built(state, *first);
            let site = numbered(delta(&index, &expected).unwrap(), at as u64 + 1, previous);
            let bytes = xfile::write(&site, Vec::new()).unwrap();
            let sha256 = ContentDigest::of(&bytes);
            index = index.apply(Reader::new(&*bytes).unwrap(), sha256).unwrap();
            previous = Some(Previous { number: at as u64 + 1, sha256 });
            let again = index.clone().apply(Reader::new(&*bytes).unwrap(), sha256).unwrap();
            prop_assert_eq!(&again, &index);
            let mut expected = expected;
            expected.header.position = index.header.position.clone();
            prop_assert_eq!(written(&index), written(&expected));
            prop_assert_eq!(index.len(), index.walk().count());
            prop_assert_eq!(&DirIndex::read(written(&index).as_bytes()).unwrap(), &index);
        }
    }

    #[test]
    fn a_delta_applied_twice_changes_nothing_even_without_numbers(
        old in any_state(), new in any_state(), roots in (0..2_usize, 0..2_usize),
    ) {
        let (old, new) = (built(&old, roots.0), built(&new, roots.1));
        let site = plain(delta(&old, &new).unwrap());
        let once = apply(old, &site).unwrap();
        prop_assert_eq!(&once, &new);
        prop_assert_eq!(apply(once, &site).unwrap(), new);
    }

    #[test]
    fn nothing_changed_is_the_root_alone(state in any_state()) {
        let index = built(&state, 0);
        let node = delta(&index, &index).unwrap();
        prop_assert_eq!((node.operation, node.node_list.len()), (Operation::Keep, 0));
    }

    #[test]
    fn whatever_x_files_say_an_index_stays_whole(
        state in any_state(),
        operations in vec((select(Operation::ALL), 0..PAGES, 0..3_usize), 1..12),
    ) {
        // A tree of nodes in which each stands some levels above the one before.
        let mut open = vec![node("0", Operation::Keep, vec![])];
        let close = |open: &mut Vec<Node>| {
            let last = open.pop().expect("there are two");
            open.last_mut().expect("the root").node_list.push(last);
        };
        for (operation, number, up) in operations {
            for _ in 0..up.min(open.len() - 1) {
                close(&mut open);
            }
            open.push(node(&number.to_string(), operation, vec![]));
        }
        while open.len() > 1 {
            close(&mut open);
        }
        if let Ok(index) = apply(built(&state, 0), &plain(open.remove(0))) {
            prop_assert_eq!(index.len(), index.walk().count());
            prop_assert_eq!(&DirIndex::read(written(&index).as_bytes()).unwrap(), &index);
        }
    }
}
