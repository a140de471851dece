//! Lost links within their limits, against all links that ever were lost.
//!
//! From scratch means: an index that was told the same and never pruned has every loss; of
//! those the limits, applied once at the end, leave what an index must have that was pruned
//! at any moments on the way.

use super::faults::memory::in_memory;
use super::model::{Cells, Model};
use super::{PARTS, each_engine, history, uri};
use crate::links::changes::{ChangeBatch, PageChange, PageContent, What};
use crate::links::index::LinkIndex;
use crate::links::paging::Paging;
use crate::links::prune::{self, Bounds, SWEEP_EVERY_MS};
use crate::links::queries::{self, Filter};
use crate::links::{keys, rebuild, verify};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::{Cell, RefCell};
use store::ids::Part;
use store::sorted::{Pair, Span};
use store::tables::settings::LostLinks;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn parts() -> impl Iterator<Item = Part> {
    (0..PARTS).map(|part| Part(part.into()))
}

/// All lost links, by part and in order.
fn lost(index: &LinkIndex) -> Vec<(Part, Pair)> {
    let rows = |part: Part| {
        let span = Span::prefix(&[keys::LOST.byte]);
        let rows = index.read(move |view| view.scan(part, &span, 100_000)).unwrap();
        rows.into_iter().map(move |pair| (part, pair))
    };
    parts().flat_map(rows).collect()
}

/// Sweeps to the end, a few rows at a time.
fn swept(index: &LinkIndex, setting: LostLinks, now_ms: i64) {
    for part in parts() {
        while prune::step_of(index, part, None, setting, now_ms, 3).unwrap() {}
    }
}

/// What the limits leave of all that was lost.
fn bounded(all: Vec<(Part, Pair)>, setting: LostLinks, now_ms: i64) -> Vec<(Part, Pair)> {
    let bounds = Bounds::at(setting, now_ms);
    let (mut target, mut later) = (Vec::new(), 0);
    let stays = |(_, (key, _)): &(Part, Pair)| {
        if target != keys::target_of(key) {
            (target, later) = (keys::target_of(key).to_vec(), 0);
        }
        let stays = bounds.take(keys::read_lost(key).unwrap().0, later);
        later += u64::from(stays);
        stays
    };
    all.into_iter().filter(stays).collect()
}

fn differences(index: &LinkIndex) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    verify::verify(index, scratch.path(), &mut |what| found.push(what.to_owned())).unwrap();
    found
}

#[test]
fn lost_links_pruned_on_the_way_are_what_is_left_of_all_that_ever_were() {
    each_engine(|map| {
        let whole = LinkIndex::new(in_memory(map.spans_parts()), PARTS);
        let (index, now_ms) = (LinkIndex::new(map, PARTS), Cell::new(30 * DAY_MS));
        let model = RefCell::new(Model::default());
        // What was forgotten once stays forgotten, so the limits are the same throughout.
        let setting = LostLinks { days: 20, per_target: 3 };
        let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
        let outcome = runner.run(&(history(), 1usize..9, any::<u8>()), |(changes, size, when)| {
            let mut model = model.borrow_mut();
            for (at, batch) in changes.chunks(size).enumerate() {
                let later =
                    |it: &PageChange| PageChange { date_ms: it.date_ms * 86_400, ..it.clone() };
                let changes: Vec<PageChange> = batch.iter().map(later).collect();
                changes.iter().for_each(|change| model.apply(change));
                for told in [&index, &whole] {
                    told.apply(ChangeBatch { changes: changes.clone(), marks: vec![] }, &[])
                        .unwrap();
                }
                now_ms.set(now_ms.get() + DAY_MS / 24);
                if when >> (at % 8) & 1 == 1 {
                    // A sweep that is cut off somewhere, or is not even due.
                    let part = Part(i64::from(when) % i64::from(PARTS));
                    prune::step_of(&index, part, None, setting, now_ms.get(), 2).unwrap();
                }
            }
            // Whatever was under way is finished, and a whole one follows.
            swept(&index, setting, now_ms.get());
            now_ms.set(now_ms.get() + SWEEP_EVERY_MS);
            swept(&index, setting, now_ms.get());
            prop_assert_eq!(lost(&index), bounded(lost(&whole), setting, now_ms.get()));
            // Nothing else is touched.
            prop_assert_eq!(Cells::of(&index), model.cells());
            prop_assert_eq!(differences(&index), Vec::<String>::new());
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
        let kept = lost(&index);
        let scratch = tempfile::tempdir().unwrap();
        rebuild::rebuild(&index, scratch.path(), &[]).unwrap();
        assert_eq!(lost(&index), kept, "a rebuild keeps what is kept");
    });
}

fn links_to(from: u8, targets: &[u8], date_ms: i64) -> PageChange {
    let link = |to: &u8| OutLink {
        uri: uri(*to),
        anchor: "there".into(),
        kind: LinkKind::A,
        rel: Rel::default(),
    };
    let mut links: Vec<OutLink> = targets.iter().map(link).collect();
    links.sort_by(|one, other| one.uri.cmp(&other.uri));
    let what = What::Page(Box::new(PageContent { links, ..PageContent::default() }));
    PageChange { uri: uri(from), date_ms, job: 1, in_order: true, what }
}

#[test]
fn a_page_that_loses_links_every_day_shows_the_latest_ones() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        let setting = LostLinks { days: 10, per_target: 6 };
        let shown = |limit| {
            let part = index.part_of(&uri(1));
            let lost = index.read(move |view| {
                let known = queries::find(view, part, &uri(1))?.expect("it is linked to");
                let paging = Paging::new(limit, None).unwrap();
                Ok(queries::lost(view, &known, &Filter::default(), &paging)?.items)
            });
            lost.unwrap().iter().map(|it| it.lost_ms.unwrap() / DAY_MS).collect::<Vec<_>>()
        };
        // Page 2 keeps linking to it, so that it is there.
        index
            .apply(ChangeBatch { changes: vec![links_to(2, &[1], 0)], marks: vec![] }, &[])
            .unwrap();
        for day in 1..=40 {
            let targets: &[u8] = if day % 2 == 1 { &[1, 3] } else { &[3] };
            let change = links_to(4, targets, day * DAY_MS);
            index.apply(ChangeBatch { changes: vec![change], marks: vec![] }, &[]).unwrap();
            swept(&index, setting, day * DAY_MS);
        }
        assert_eq!(shown(100), [40, 38, 36, 34, 32, 30], "of the last ten days, at most six");
        swept(&index, LostLinks { days: 10, per_target: 2 }, 41 * DAY_MS);
        assert_eq!(shown(100), [40, 38]);
        // Without limits nothing goes.
        swept(&index, LostLinks { days: 0, per_target: 0 }, 900 * DAY_MS);
        assert_eq!(shown(100), [40, 38]);
        swept(&index, LostLinks { days: 10, per_target: 0 }, 901 * DAY_MS);
        assert_eq!(shown(100), [0; 0]);
        assert_eq!(differences(&index), Vec::<String>::new());
    });
}
