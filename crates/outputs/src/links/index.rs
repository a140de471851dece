//! Applies batches: one change over all parts where the map can do that, and otherwise
//! part by part, the batch's own last.
//!
//! Where it cannot, a batch that reaches other parts is first written down in its own
//! ([`keys::pending`]); the others take it once, because they know the number of the last
//! batch they had from there; and with the pages' own rows it is struck out. So whoever
//! comes next finishes a batch that was cut off anywhere, and finishes the same one.
//!
//! Invariant: what a mark stands for is applied when the mark is there.

use super::changes::{ChangeBatch, Mark};
use super::codec::{self, ByteReader};
use super::fold::{Fold, PartRows};
use super::keys;
use super::parts::{Parts, of_domain};
use super::plan::{self, BatchPlan, Differs, PlannedPage};
use super::state::PartState;
use page::outlinks::domain_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use store::ids::{CommitNumber, Part};
use store::sorted::{Row, SortedMap, View};
use store::tables::leases::Lease;
use store::{Error, Result};

/// The link index, over a map.
#[derive(Clone)]
pub struct LinkIndex {
    map: Arc<dyn SortedMap>,
    /// What planning remembers of parts. It is locked for as long as a batch is planned, so
    /// that readers have nothing to do with it.
    planning: Arc<Mutex<Parts>>,
    count: u32,
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppliedChanges {
    /// Pages that were told of.
    pub told: u64,
    /// Pages that are different now.
    pub changed: u64,
    /// Links that are new.
    pub added: u64,
    /// Links that say something else.
    pub altered: u64,
    /// Links that are lost.
    pub lost: u64,
}

impl AppliedChanges {
    /// The sum of two batches.
    #[must_use]
    pub fn with(self, other: AppliedChanges) -> AppliedChanges {
        AppliedChanges {
            told: self.told + other.told,
            changed: self.changed + other.changed,
            added: self.added + other.added,
            altered: self.altered + other.altered,
            lost: self.lost + other.lost,
        }
    }

    fn of(batch: &ChangeBatch, plan: &BatchPlan) -> AppliedChanges {
        let mut applied =
            AppliedChanges { told: batch.changes.len() as u64, ..AppliedChanges::default() };
        applied.changed = plan.pages.iter().filter(|page| page.is_changed()).count() as u64;
        for edit in &plan.edits {
            match edit.what {
                Differs::Added => applied.added += 1,
                Differs::Changed => applied.altered += 1,
                Differs::Lost(_) => applied.lost += 1,
            }
        }
        applied
    }
}

impl LinkIndex {
    /// The index in a map, of a database with so many parts.
    pub fn new(map: Arc<dyn SortedMap>, parts: u32) -> LinkIndex {
        LinkIndex { map, planning: Arc::new(Mutex::new(Parts::new(parts))), count: parts }
    }

    /// The sorted map that holds the index.
    pub fn map(&self) -> &Arc<dyn SortedMap> {
        &self.map
    }

    /// How many parts there are.
    pub fn parts(&self) -> u32 {
        self.count
    }

    /// The part of a URI. It waits for nobody, whatever is planned meanwhile.
    pub fn part_of(&self, uri: &str) -> Part {
        of_domain(domain_of(uri), self.count)
    }

    /// Looks at what is there.
    pub fn read<T: Send + 'static>(
        &self,
        look: impl Fn(&dyn View) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.map.read(look)
    }

    /// The last commit of the crawl in a part that is in the index.
    pub fn cursor(&self, part: Part) -> Result<CommitNumber> {
        self.read(move |view| Ok(PartState::load(view, part)?.cursor))
    }

    /// Whether a part has pages, or has had some.
    pub fn has_pages(&self, part: Part) -> Result<bool> {
        self.read(move |view| Ok(PartState::load(view, part)?.next_page > 0))
    }

    /// How many changes it has seen, over all parts: another number when anything is new.
    pub fn changes(&self) -> Result<u64> {
        let parts = self.parts();
        self.read(move |view| {
            let seq = |part| Ok(PartState::load(view, part)?.seq);
            Part::all(parts).map(seq).sum()
        })
    }

    /// How far a file has been loaded, if at all.
    pub fn file_mark(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = keys::loaded(key);
        self.read(move |view| view.get(Part(0), &key))
    }

    /// Applies a batch. `leases` are those of the parts of its pages; a map that only one
    /// process has needs none.
    pub fn apply(&self, batch: ChangeBatch, leases: &[Lease]) -> Result<AppliedChanges> {
        if self.map.spans_parts() {
            return self.apply_whole(batch);
        }
        let mut own: BTreeMap<Part, ChangeBatch> = BTreeMap::new();
        let mut files = Vec::new();
        for change in batch.changes {
            let part = self.part_of(&change.uri);
            own.entry(part).or_default().changes.push(change);
        }
        for mark in batch.marks {
            match &mark {
                Mark::Cursor { part, .. } => {
                    own.entry(*part).or_default().marks.push(mark);
                }
                Mark::File { .. } => files.push(mark),
            }
        }
        let mut applied = AppliedChanges::default();
        for (part, batch) in own {
            let lease = leases.iter().find(|lease| lease.part == part);
            applied = applied.with(self.apply_own(part, batch, lease)?);
        }
        if !files.is_empty() {
            let rows = move |_: &dyn View| Ok(files.iter().filter_map(file_row).collect());
            self.map.change(Part(0), None, Arc::new(rows))?;
        }
        Ok(applied)
    }

    /// Finishes the batch of a part that was cut off, if there is one.
    pub fn recover(&self, part: Part, lease: Option<&Lease>) -> Result<()> {
        let pending = self.read(move |view| view.get(part, &keys::pending()))?;
        let Some(pending) = pending else { return Ok(()) };
        let batch = Arc::new(ChangeBatch::decode(&pending)?);
        let plan = Arc::new(self.planned(&batch)?);
        self.finish(part, batch, plan, lease)
    }

    fn planned(&self, batch: &Arc<ChangeBatch>) -> Result<BatchPlan> {
        let (batch, planning) = (batch.clone(), self.planning.clone());
        self.read(move |view| {
            let mut parts = planning.lock().unwrap_or_else(PoisonError::into_inner);
            plan::plan(view, &batch.changes, &mut parts)
        })
    }

    /// All parts in one change.
    fn apply_whole(&self, batch: ChangeBatch) -> Result<AppliedChanges> {
        let applied = Arc::new(Mutex::new(AppliedChanges::default()));
        let (planning, told) = (self.planning.clone(), applied.clone());
        let work = move |view: &dyn View| {
            let plan = {
                let mut parts = planning.lock().unwrap_or_else(PoisonError::into_inner);
                plan::plan(view, &batch.changes, &mut parts)?
            };
            *told.lock().unwrap_or_else(PoisonError::into_inner) =
                AppliedChanges::of(&batch, &plan);
            let cursors = batch.marks.iter().filter_map(|mark| match mark {
                Mark::Cursor { part, .. } => Some(*part),
                Mark::File { .. } => None,
            });
            let mut touched: BTreeSet<Part> = plan.edits.iter().map(|edit| edit.part).collect();
            touched.extend(plan.states.keys().copied().chain(cursors));
            let mut rows = Vec::new();
            for part in touched {
                rows.append(&mut own_rows(view, part, &batch, &plan)?);
            }
            rows.extend(batch.marks.iter().filter_map(file_row));
            Ok(rows)
        };
        self.map.change(Part(0), None, Arc::new(work))?;
        let applied = *applied.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(applied)
    }

    /// A batch whose pages are all of one part.
    fn apply_own(
        &self,
        part: Part,
        batch: ChangeBatch,
        lease: Option<&Lease>,
    ) -> Result<AppliedChanges> {
        self.recover(part, lease)?;
        let batch = Arc::new(batch);
        let plan = Arc::new(self.planned(&batch)?);
        let applied = AppliedChanges::of(&batch, &plan);
        if plan.edits.iter().any(|edit| edit.part != part) {
            let row = Row { part, key: keys::pending(), value: Some(batch.encode()) };
            self.map.change(part, lease, Arc::new(move |_| Ok(vec![row.clone()])))?;
        }
        self.finish(part, batch, plan, lease)?;
        Ok(applied)
    }

    /// Other parts first, the own last.
    fn finish(
        &self,
        own: Part,
        batch: Arc<ChangeBatch>,
        plan: Arc<BatchPlan>,
        lease: Option<&Lease>,
    ) -> Result<()> {
        let others: BTreeSet<Part> = plan.edits.iter().map(|edit| edit.part).collect();
        for part in others.into_iter().filter(|part| *part != own) {
            let plan = plan.clone();
            let work = move |view: &dyn View| foreign_rows(view, part, own, &plan);
            self.map.change(part, None, Arc::new(work))?;
        }
        let work = move |view: &dyn View| own_rows(view, own, &batch, &plan);
        self.map.change(own, lease, Arc::new(work))
    }
}

/// What a batch does to another part, unless that has been done.
fn foreign_rows(view: &dyn View, part: Part, own: Part, plan: &BatchPlan) -> Result<Vec<Row>> {
    let number = plan.states.get(&own).map_or(0, |state| state.batch);
    let applied = match view.get(part, &keys::applied(own))? {
        Some(bytes) => ByteReader::new("meta", &bytes).number()?,
        None => 0,
    };
    if applied >= number {
        return Ok(Vec::new());
    }
    let mut state = PartState::load(view, part)?;
    state.seq += 1;
    let mut rows = Fold { plan, part, seq: state.seq }.rows(view)?;
    let mut value = Vec::new();
    codec::put_number(&mut value, number);
    rows.push(Row { part, key: keys::applied(own), value: Some(value) });
    rows.push(state.row(part));
    Ok(rows)
}

/// What a batch does to a part of its own pages, the pages themselves included.
fn own_rows(
    view: &dyn View,
    part: Part,
    batch: &ChangeBatch,
    plan: &BatchPlan,
) -> Result<Vec<Row>> {
    let mut state = PartState::load(view, part)?;
    state.seq += 1;
    if let Some(planned) = plan.states.get(&part) {
        if planned.batch != state.batch + 1 {
            return Err(Error::invariant(format!(
                "batch {} of part {part} is not the next one, which is {}; somebody else has \
                 changed the link index",
                planned.batch,
                state.batch + 1
            )));
        }
        (state.batch, state.next_page) = (planned.batch, planned.next_page);
    }
    let rows = Fold { plan, part, seq: state.seq }.rows(view)?;
    let mut out = PartRows { part, rows };
    for page in plan.pages.iter().filter(|page| page.source.part == part) {
        put_page(page, state.seq, &mut out);
    }
    for mark in &batch.marks {
        if let Mark::Cursor { seq, .. } = mark
            && mark.is_of(part)
        {
            state.cursor = state.cursor.max(*seq);
        }
    }
    out.remove(keys::pending());
    out.rows.push(state.row(part));
    Ok(out.rows)
}

fn put_page(page: &PlannedPage, seq: u64, out: &mut PartRows) {
    let Some(after) = &page.after else { return };
    if page.is_changed() {
        let mut row = after.clone();
        row.seq = seq;
        out.put(keys::page(page.source.number), row.encode());
    }
    if let Some(seen_ms) = page.seen_ms.filter(|seen_ms| *seen_ms > after.date_ms) {
        out.put(keys::seen(page.source.number), seen_ms.to_be_bytes().to_vec());
    }
}

fn file_row(mark: &Mark) -> Option<Row> {
    let Mark::File { key, value } = mark else { return None };
    Some(Row { part: Part(0), key: keys::loaded(key), value: Some(value.clone()) })
}
