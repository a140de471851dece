//! The index when writing breaks off: at every write there is, and on every engine.
//!
//! A process that dies leaves what its last write left. So [`Failing`] is a map that does not
//! answer from a write on, and what comes after begins anew on the map behind it. It is told
//! again what it was told: by the follower from its cursor on, by a loader the whole batch.

pub(super) mod memory;

use super::model::{Cells, Model};
use super::{PARTS, change, each_engine};
use crate::links::changes::{ChangeBatch, Mark, PageChange};
use crate::links::index::LinkIndex;
use memory::in_memory;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::ids::{CommitNumber, Part};
use store::sorted::{BulkReplacement, SortedMap, SortedRows, ViewReader, Work};
use store::tables::leases::Lease;
use store::{Error, Result};

/// A map whose writing fails from a change on; then nothing can be read from it either.
pub(super) struct Failing {
    inner: Arc<dyn SortedMap>,
    fail_at: u64,
    /// Whether the change that fails is written all the same, and only its answer is lost.
    is_written: bool,
    changes: AtomicU64,
}

impl Failing {
    /// The change with this number, counted from 1, fails and is not written.
    pub(super) fn new(inner: Arc<dyn SortedMap>, fail_at: u64) -> Failing {
        Failing { inner, fail_at, is_written: false, changes: AtomicU64::new(0) }
    }

    /// The change is written, but whoever asked for it does not hear of that.
    pub(super) fn unheard(self) -> Failing {
        Failing { is_written: true, ..self }
    }

    fn is_dead(&self) -> bool {
        self.changes.load(Ordering::SeqCst) >= self.fail_at
    }
}

fn dead() -> Error {
    Error::Unavailable { what: "the map".into(), reason: "the test ends it here".into() }
}

impl SortedMap for Failing {
    fn spans_parts(&self) -> bool {
        self.inner.spans_parts()
    }

    fn change(&self, part: Part, lease: Option<&Lease>, work: Work) -> Result<()> {
        let number = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
        if number < self.fail_at {
            return self.inner.change(part, lease, work);
        }
        if number == self.fail_at && self.is_written {
            self.inner.change(part, lease, work)?;
        }
        Err(dead())
    }

    fn look(&self, look: ViewReader) -> Result<()> {
        if self.is_dead() { Err(dead()) } else { self.inner.look(look) }
    }

    fn replace(&self, what: &BulkReplacement<'_>, rows: &mut SortedRows<'_>) -> Result<()> {
        if self.is_dead() { Err(dead()) } else { self.inner.replace(what, rows) }
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.inner.disk_bytes()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }
}

/// The index of whoever comes next: what was cut off is finished.
pub(super) fn recovered(map: &Arc<dyn SortedMap>) -> LinkIndex {
    let index = LinkIndex::new(map.clone(), PARTS);
    recover(&index).unwrap();
    index
}

fn recover(index: &LinkIndex) -> Result<()> {
    let mut parts = (0..PARTS).map(|part| Part(part.into()));
    parts.try_for_each(|part| index.recover(part, None))
}

/// Whether every link of a page is an in-link of its target, and the other way round. That
/// counts are the lengths of lists is checked when cells are read.
fn agree(cells: &Cells) -> bool {
    let ends = |start: &'static str| {
        cells.0.iter().filter_map(move |cell| {
            let (one, rest) = cell.strip_prefix(start)?.split_once(' ')?;
            let (other, said) = rest.split_once(' ')?;
            Some((one, other, said))
        })
    };
    let from: BTreeSet<_> = ends("out ").collect();
    let to: BTreeSet<_> =
        ends("in ").map(|(target, source, said)| (source, target, said)).collect();
    from == to
}

/// A batch as one of the two makes it that change the index: the follower's is in order, and
/// a loader's by date. `number` is the commit that it brings the follower to.
struct FaultBatch {
    number: i64,
    changes: Vec<PageChange>,
}

impl FaultBatch {
    /// What is left of it, when it is told to an index that may have had it.
    fn batch(&self, index: &LinkIndex) -> ChangeBatch {
        let is_new = |it: &&PageChange| {
            !it.in_order || index.cursor(index.part_of(&it.uri)).unwrap().0 < self.number
        };
        let mark =
            |part: u32| Mark::Cursor { part: Part(part.into()), seq: CommitNumber(self.number) };
        let is_followed = self.changes.iter().any(|it| it.in_order);
        let marks = if is_followed { (0..PARTS).map(mark).collect() } else { Vec::new() };
        ChangeBatch { changes: self.changes.iter().filter(is_new).cloned().collect(), marks }
    }
}

/// Batches out of changes, so many of which come together; numbers and dates go on from a
/// round to the next.
fn batches(changes: &[PageChange], size: usize, round: i64) -> Vec<FaultBatch> {
    let mut batches = Vec::new();
    for together in changes.chunks(size) {
        let later =
            |it: &PageChange| PageChange { date_ms: it.date_ms + round * 40_000, ..it.clone() };
        let (followed, mut loaded): (Vec<PageChange>, Vec<PageChange>) =
            together.iter().map(later).partition(|it| it.in_order);
        loaded.sort_by_key(|it| it.date_ms);
        for changes in [followed, loaded] {
            let number = round * 1_000 + batches.len() as i64 + 1;
            batches.push(FaultBatch { number, changes });
        }
    }
    batches
}

/// Tells batches to a map that fails once on the way. Returns whether it failed.
fn tell_through(
    failing: Failing,
    batches: &[FaultBatch],
    model: &mut Model,
) -> std::result::Result<bool, TestCaseError> {
    let inner = failing.inner.clone();
    let mut index = LinkIndex::new(Arc::new(failing), PARTS);
    let mut has_failed = false;
    for told in batches {
        let batch = told.batch(&LinkIndex::new(inner.clone(), PARTS));
        let outcome = index.apply(batch, &[]);
        told.changes.iter().for_each(|change| model.apply(change));
        if outcome.is_ok() {
            continue;
        }
        prop_assert!(!has_failed, "what is behind the map does not fail");
        has_failed = true;
        // Who finishes it dies of it too, some writes later.
        for fail_at in 1..=2 {
            let _ = recover(&LinkIndex::new(Arc::new(Failing::new(inner.clone(), fail_at)), PARTS));
        }
        index = recovered(&inner);
        prop_assert!(agree(&Cells::of(&index)), "what was begun is whole");
        index.apply(told.batch(&index), &[]).unwrap();
        prop_assert_eq!(Cells::of(&index), model.cells());
    }
    prop_assert_eq!(Cells::of(&recovered(&inner)), model.cells());
    Ok(has_failed)
}

/// Changes, and how many of them come together.
fn histories() -> impl Strategy<Value = (Vec<PageChange>, usize)> {
    (prop::collection::vec(change(), 1..14), 1usize..7)
}

#[test]
fn a_crash_at_any_write_loses_nothing_and_doubles_nothing() {
    for spans_parts in [true, false] {
        let mut runner = TestRunner::new(Config { cases: 40, ..Config::default() });
        let outcome = runner.run(&(histories(), any::<bool>()), |((changes, size), unheard)| {
            let told = batches(&changes, size, 0);
            for fail_at in 1.. {
                let failing = Failing::new(in_memory(spans_parts), fail_at);
                let failing = if unheard { failing.unheard() } else { failing };
                if !tell_through(failing, &told, &mut Model::default())? {
                    break;
                }
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_crash_at_any_write_is_mended_on_every_engine() {
    each_engine(|map| {
        let cases = if map.spans_parts() { 8 } else { 3 };
        let mut runner = TestRunner::new(Config { cases, ..Config::default() });
        // All cases share an index, so that most begin with what others left.
        let shared = std::cell::RefCell::new((Model::default(), 0i64));
        let outcome = runner.run(&histories(), |(changes, size)| {
            let (model, round) = &mut *shared.borrow_mut();
            for unheard in [false, true] {
                for fail_at in 1.. {
                    *round += 1;
                    let failing = Failing::new(map.clone(), fail_at);
                    let failing = if unheard { failing.unheard() } else { failing };
                    if !tell_through(failing, &batches(&changes, size, *round), model)? {
                        break;
                    }
                }
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    });
}
