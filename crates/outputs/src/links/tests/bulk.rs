//! The index computed in bulk: what it is rebuilt as, and what it is compared with.

use super::model::{Cells, Model};
use super::{PARTS, each_engine, history};
use crate::links::changes::{ChangeBatch, PageChange, PageContent, What};
use crate::links::index::LinkIndex;
use crate::links::inlinks::WIDE_MIN;
use crate::links::node::{Inlinks, Node};
use crate::links::{keys, queries, rebuild, verify};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use store::sorted::{Row, Span};

fn differences(index: &LinkIndex) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    let verified =
        verify::verify(index, scratch.path(), &mut |what| found.push(what.to_owned())).unwrap();
    assert_eq!(verified.differences, found.len() as u64);
    found
}

#[test]
fn a_rebuilt_index_is_the_same_and_goes_on() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        let scratch = tempfile::tempdir().unwrap();
        let model = std::cell::RefCell::new(Model::default());
        let mut runner = TestRunner::new(Config { cases: 6, ..Config::default() });
        let outcome = runner.run(&history(), |changes| {
            let mut model = model.borrow_mut();
            changes.iter().for_each(|change| model.apply(change));
            index.apply(ChangeBatch { changes, marks: vec![] }, &[]).unwrap();
            assert_eq!(differences(&index), Vec::<String>::new());
            let computed = rebuild::rebuild(&index, scratch.path(), &[]).unwrap();
            let cells = Cells::of(&index);
            assert_eq!(cells, model.cells());
            let count =
                |start: &str| cells.0.iter().filter(|it| it.starts_with(start)).count() as u64;
            let counted = (computed.pages, computed.links, computed.uris, computed.domains);
            assert_eq!(
                counted,
                (
                    count("page "),
                    count("in "),
                    count("node "),
                    count("domain ") - count("domain rank")
                )
            );
            assert_eq!(differences(&index), Vec::<String>::new());
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    });
}

fn uri(number: u64) -> String {
    format!("com.s{}>>o>/{number}", number % 5)
}

/// Pages that all link to one, and to some of each other.
fn pages(from: u64, to: u64, target: &str) -> ChangeBatch {
    let link = |uri: String| OutLink {
        uri,
        anchor: "home".into(),
        kind: LinkKind::A,
        rel: Rel::default(),
    };
    let change = |number: u64| {
        let mut links = vec![link(target.to_owned()), link(uri(number / 100))];
        links.sort_by(|one, other| one.uri.cmp(&other.uri));
        PageChange {
            uri: uri(number),
            date_ms: 1_000,
            job: 1,
            in_order: true,
            what: What::Page(Box::new(PageContent { links, ..PageContent::default() })),
        }
    };
    ChangeBatch { changes: (from..to).map(change).collect(), marks: vec![] }
}

fn node(index: &LinkIndex, uri: &str) -> Option<Node> {
    let (part, uri) = (index.part_of(uri), uri.to_owned());
    index.read(move |view| Ok(queries::find(view, part, &uri)?.map(|it| it.node))).unwrap()
}

#[test]
fn a_list_that_grows_takes_every_form_and_shrinks_to_nothing() {
    let target = "com.t>>o>/";
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        let scratch = tempfile::tempdir().unwrap();
        let (mut from, mut forms) = (0, Vec::new());
        for to in [3, 40, 200, 300, WIDE_MIN, WIDE_MIN + 500] {
            index.apply(pages(from, to, target), &[]).unwrap();
            from = to;
            let node = node(&index, target).unwrap();
            assert_eq!(node.incount, to);
            forms.push(match node.inlinks {
                Inlinks::Here(_) => 'h',
                Inlinks::Blocks(_) => 'b',
                Inlinks::Wide => 'w',
            });
            assert_eq!(differences(&index), Vec::<String>::new(), "{to}");
        }
        assert_eq!(forms, ['h', 'h', 'b', 'b', 'b', 'w']);
        rebuild::rebuild(&index, scratch.path(), &[]).unwrap();
        assert_eq!(differences(&index), Vec::<String>::new());
        assert_eq!(node(&index, target).unwrap().inlinks, Inlinks::Wide);
        for numbers in [0..600, 600..WIDE_MIN + 500] {
            let gone = |number: u64| PageChange {
                uri: uri(number),
                date_ms: 2_000,
                job: 1,
                in_order: true,
                what: What::Gone("gone".into()),
            };
            let changes = numbers.map(gone).collect();
            index.apply(ChangeBatch { changes, marks: vec![] }, &[]).unwrap();
            assert_eq!(differences(&index), Vec::<String>::new());
        }
        assert_eq!(node(&index, target), None);
    });
}

#[test]
fn many_small_changes_of_one_list_are_merged() {
    let target = "com.t>>o>/";
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        for number in 0..120 {
            index.apply(pages(number, number + 1, target), &[]).unwrap();
        }
        let node = node(&index, target).unwrap();
        assert_eq!(node.incount, 120);
        let Inlinks::Blocks(blocks) = node.inlinks else { panic!("{node:?}") };
        assert!(blocks <= crate::links::inlinks::blocks_max(120), "{blocks}");
        assert_eq!(differences(&index), Vec::<String>::new());
    });
}

#[test]
fn every_difference_is_named() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        index.apply(pages(0, 200, "com.t>>o>/"), &[]).unwrap();
        let part = index.part_of("com.t>>o>/");
        let hash = keys::hash("com.t>>o>/");
        let rows = index.read(move |view| view.scan(part, &Span::prefix(&keys::inlinks(hash)), 9));
        let (base, block) = rows.unwrap().remove(0);
        let rank = keys::rank(keys::RankingList::Linked, 200, "com.t>>o>/");
        let stray = keys::inlinks_in(keys::hash("nobody"), keys::InlinkForm::Base);
        let row = move |key: &[u8], value: Option<&[u8]>| Row {
            part,
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        };
        let write = |rows: Vec<Row>| {
            index.map().change(part, None, Arc::new(move |_| Ok(rows.clone()))).unwrap();
        };
        let ghost = Node { uri: "com.t>>o>/ghost".into(), incount: 1, ..Node::default() };
        let damages: Vec<(Vec<Row>, Vec<Row>, &str)> = vec![
            (vec![row(&rank, None)], vec![row(&rank, Some(b""))], "is not ranked"),
            (
                vec![row(&base, Some(&crate::links::inlinks::encode(&[])))],
                vec![row(&base, Some(&block))],
                "is missing",
            ),
            (vec![row(&stray, Some(&block))], vec![row(&stray, None)], "not in the index"),
            (
                vec![row(&keys::node(keys::hash(&ghost.uri)), Some(&ghost.encode()))],
                vec![row(&keys::node(keys::hash(&ghost.uri)), None)],
                "no page is it",
            ),
            (
                vec![row(&keys::rank(keys::RankingList::Crawled, 3, "com.t>>o>/x"), Some(b""))],
                vec![row(&keys::rank(keys::RankingList::Crawled, 3, "com.t>>o>/x"), None)],
                "should not be",
            ),
            (
                vec![row(&keys::domain("com.t"), Some(&crate::links::fold::encode_domain(9, 0)))],
                vec![row(&keys::domain("com.t"), Some(&crate::links::fold::encode_domain(1, 0)))],
                "has 9 pages; it should have 1",
            ),
        ];
        for (damage, repair, expected) in damages {
            write(damage);
            let found = differences(&index);
            assert!(found.iter().any(|it| it.contains(expected)), "{expected}: {found:?}");
            write(repair);
            assert_eq!(differences(&index), Vec::<String>::new(), "{expected}");
        }
    });
}

#[test]
fn a_list_whose_rows_are_of_the_wrong_form_is_called_corrupt() {
    let target = "com.t>>o>/";
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        index.apply(pages(0, 200, target), &[]).unwrap();
        let (part, hash) = (index.part_of(target), keys::hash(target));
        assert!(matches!(node(&index, target).unwrap().inlinks, Inlinks::Blocks(_)));
        // As many rows as are read at a time, none of which is a block.
        let link = crate::links::inlinks::Inlink {
            anchor: "home".into(),
            kind: LinkKind::A,
            rel: Rel::default(),
            first_s: 1,
            seq: 1,
        };
        let value = crate::links::inlinks::encode_wide(&link);
        let wide = |number: u64| Row {
            part,
            key: keys::wide(hash, keys::PageRef { part: store::ids::Part(0), number }),
            value: Some(value.clone()),
        };
        let base = Row { part, key: keys::inlinks_in(hash, keys::InlinkForm::Base), value: None };
        for count in [5_000, 10] {
            let mut rows: Vec<Row> = (0..count).map(wide).chain([base.clone()]).collect();
            rows.extend((count..5_000).map(|number| Row { value: None, ..wide(number) }));
            index.map().change(part, None, Arc::new(move |_| Ok(rows.clone()))).unwrap();
            let scratch = tempfile::tempdir().unwrap();
            let told = verify::verify(&index, scratch.path(), &mut |_| {}).unwrap_err();
            let told = told.to_string();
            assert!(told.contains("corrupt") && told.contains(target), "{told}");
            let changed = index.apply(pages(200, 260, target), &[]).map(|_| ());
            let read = index.read(move |view| {
                let known = queries::find(view, part, target)?.unwrap();
                crate::links::inlinks::list(view, part, hash, &known.node)
            });
            assert!(read.unwrap_err().to_string().contains(target), "{changed:?}");
        }
        rebuild::rebuild(&index, tempfile::tempdir().unwrap().path(), &[]).unwrap();
        assert_eq!(differences(&index), Vec::<String>::new());
    });
}
