//! The index against a from-scratch computation, after anything that can happen, on every
//! engine.

mod bulk;
mod defects;
mod faults;
mod model;
mod prune;
mod seeds;
mod waiting;

use super::index::LinkIndex;
use super::keys;
use model::{Cells, Model};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use store::sorted::{EmbeddedMap, InRows, MapLocation, SortedMap};
use store::testing::both_databases;

use super::changes::{ChangeBatch, Mark, PageChange, PageContent, What};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use store::ids::{CommitNumber, Part};

/// Parts of the databases of these tests: few, so that links cross them often.
pub(super) const PARTS: u32 = 3;

/// Runs a test on an index in files, in SQLite and in PostgreSQL.
pub(super) fn each_engine(test: impl Fn(Arc<dyn SortedMap>)) {
    let place = tempfile::tempdir().unwrap();
    let place = MapLocation { path: place.path().join("links"), families: keys::FAMILIES };
    test(Arc::new(EmbeddedMap::open(&place).unwrap()));
    both_databases(|db| {
        test(Arc::new(InRows::new(db)));
        Ok(())
    });
}

/// A page of the tests: few of them, in few domains.
pub(super) fn uri(number: u8) -> String {
    let domain = ["com.a", "com.b", "org.c", "uk.co.d"][usize::from(number % 4)];
    format!("{domain}>>o>/{number}")
}

fn link() -> impl Strategy<Value = OutLink> {
    (0u8..14, prop::sample::select(vec!["", "x", "more"]), any::<bool>()).prop_map(
        |(number, anchor, nofollow)| OutLink {
            uri: uri(number),
            anchor: anchor.to_owned(),
            kind: LinkKind::A,
            rel: if nofollow { Rel::NOFOLLOW } else { Rel::default() },
        },
    )
}

/// A page that answers with a redirect: its one link.
fn redirect() -> impl Strategy<Value = What> {
    (0u8..14).prop_map(|number| {
        let (uri, kind) = (uri(number), LinkKind::Redirect);
        let links = vec![OutLink { uri, anchor: String::new(), kind, rel: Rel::default() }];
        What::Page(Box::new(PageContent { status: 301, links, ..PageContent::default() }))
    })
}

fn content() -> impl Strategy<Value = What> {
    (prop::collection::vec(link(), 0..8), prop::sample::select(vec!["", "t"])).prop_map(
        |(mut links, title)| {
            links.sort_by(|one, other| one.uri.cmp(&other.uri));
            links.dedup_by(|one, other| one.uri == other.uri);
            let title = title.to_owned();
            What::Page(Box::new(PageContent { status: 200, title, server: String::new(), links }))
        },
    )
}

/// Two jobs, whose changes come in order, and loads, whose captures come in any.
fn change() -> impl Strategy<Value = PageChange> {
    let what = prop_oneof![
        6 => content(),
        2 => redirect(),
        2 => Just(What::Gone("gone".into())),
        1 => Just(What::Missing { status: 404 }),
        1 => Just(What::Seen),
    ];
    (0u8..8, 0i64..40, 0i64..3, what).prop_map(|(number, date_s, job, what)| PageChange {
        uri: uri(number),
        date_ms: date_s * 1_000,
        job,
        in_order: job > 0,
        what,
    })
}

pub(super) fn history() -> impl Strategy<Value = Vec<PageChange>> {
    prop::collection::vec(change(), 1..40)
}

#[test]
fn the_index_equals_a_computation_from_scratch_whatever_happens() {
    each_engine(|map| {
        // Each case has a part of its own no more than each engine has; so it has rows of its
        // own instead: the index is emptied by telling that every page is gone.
        let index = LinkIndex::new(map, PARTS);
        let strategy = (history(), 1usize..9);
        let cases = if index.map().spans_parts() { 60 } else { 20 };
        let mut runner = TestRunner::new(Config { cases, ..Config::default() });
        let model = std::cell::RefCell::new(Model::default());
        let outcome = runner.run(&strategy, |(changes, size)| {
            let mut model = model.borrow_mut();
            for batch in changes.chunks(size) {
                let told = ChangeBatch { changes: batch.to_vec(), marks: vec![] };
                index.apply(told.clone(), &[]).unwrap();
                batch.iter().for_each(|change| model.apply(change));
                let cells = Cells::of(&index);
                prop_assert_eq!(&cells, &model.cells());
                // Told again, it changes nothing that anybody could see.
                if batch.len() % 3 == 0 && batch.iter().all(|it| it.in_order) {
                    let again =
                        ChangeBatch { changes: vec![batch[batch.len() - 1].clone()], ..told };
                    model.apply(&again.changes[0]);
                    index.apply(again, &[]).unwrap();
                    prop_assert_eq!(Cells::of(&index), model.cells());
                }
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    });
}

#[test]
fn a_cursor_comes_with_its_effect_and_never_goes_back() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        let at = |seq| {
            let mark = Mark::Cursor { part: Part(1), seq: CommitNumber(seq) };
            ChangeBatch { changes: vec![], marks: vec![mark] }
        };
        assert_eq!(index.cursor(Part(1)).unwrap(), CommitNumber::NONE);
        for (seq, expected) in [(3, 3), (7, 7), (5, 7)] {
            index.apply(at(seq), &[]).unwrap();
            assert_eq!(index.cursor(Part(1)).unwrap(), CommitNumber(expected));
        }
        assert_eq!(index.cursor(Part(0)).unwrap(), CommitNumber::NONE);
        let file = Mark::File { key: b"a".to_vec(), value: b"9".to_vec() };
        index.apply(ChangeBatch { changes: vec![], marks: vec![file] }, &[]).unwrap();
        assert_eq!(index.file_mark(b"a").unwrap().as_deref(), Some(&b"9"[..]));
        assert_eq!(index.file_mark(b"b").unwrap(), None);
    });
}
