//! Follows the crawl for the link index: committed chunks become changes of it.
//!
//! Chunks of jobs that want no links are passed over without being read, and the cursor that
//! has only passed such ones is written now and then ([`PASSED_MAX`]) and at the end: whoever
//! takes the part up passes them again. When nothing is left to do, lost links are pruned and
//! the map is tidied.
//!
//! Invariants: the cursor of a part is in the index, with the effect; what is held in
//! memory is one batch ([`PAGES_MAX`], [`LINKS_MAX`]).

pub(super) mod chunk_changes;
#[cfg(test)]
mod tests;

use super::changes::{ChangeBatch, Mark};
use super::index::LinkIndex;
use super::prune;
use crate::follow::{AppliedBatch, Consumer, PartWork};
use chunk_changes::Chunks;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::ids::{CommitNumber, Part};
use store::objects::Objects;
use store::panics::Faults;
use store::tables::leases::Lease;
use store::tables::{cursors, settings};
use store::{Db, Result, clock};

/// Pages of a batch: more of them share their targets, and are in memory.
pub const PAGES_MAX: usize = 10_000;
/// Links of a batch.
pub const LINKS_MAX: usize = 250_000;
/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;
/// Chunks that may be passed over before the cursor is written: passing them again, after a
/// crash, takes a few milliseconds.
const PASSED_MAX: usize = 1_000;
/// A link is visible within a second, and a crawl in full swing makes large batches.
const GATHER_MS: i64 = 150;
/// How often it is looked whether something is to be pruned or tidied.
const UPKEEP_EVERY: Duration = Duration::from_secs(60);

/// The link index, as it follows a crawl.
pub struct LinkIndexConsumer {
    index: LinkIndex,
    chunks: Chunks,
    /// Chunks that were passed over behind the cursors in the index, and where that led.
    passed: usize,
    ahead: BTreeMap<Part, CommitNumber>,
    /// When it was last looked whether something is to be pruned or tidied.
    kept_up: Option<Instant>,
}

impl LinkIndexConsumer {
    /// The index, and where chunks are.
    pub fn new(db: Db, objects: Objects, index: LinkIndex) -> Result<LinkIndexConsumer> {
        let chunks = Chunks::new(db, objects)?;
        Ok(LinkIndexConsumer { index, chunks, passed: 0, ahead: BTreeMap::new(), kept_up: None })
    }

    /// The same, with faults that a test injects.
    pub fn with_faults(mut self, faults: Faults) -> LinkIndexConsumer {
        self.chunks.faults = faults;
        self
    }

    /// Reads chunks of a part into a batch, while it has room; returns the last one.
    fn fill(
        &mut self,
        it: &PartWork,
        batch: &mut ChangeBatch,
        out: &mut FilledBatch,
    ) -> Result<CommitNumber> {
        let (part, mut at) = (it.lease.part, it.at);
        let had_pages = self.index.has_pages(part)?;
        while at < it.head && out.has_room(batch) {
            let chunks = self.chunks.after(part, at, CHUNKS_STEP)?;
            if chunks.is_empty() {
                // Numbers without a chunk: commits that settled nothing.
                at = it.head;
            }
            for chunk in chunks {
                if !out.has_room(batch) {
                    break;
                }
                at = chunk.seq;
                out.applied.committed_ms.push(chunk.committed_ms);
                let has_pages = had_pages || !batch.changes.is_empty();
                let read = self.chunks.read(part, has_pages, &chunk, &mut batch.changes)?;
                self.passed += usize::from(!read.is_read);
                out.is_read |= read.is_read;
                out.links += read.links;
                out.applied.left_out.extend(read.left_out);
            }
        }
        Ok(at)
    }

    /// Writes cursors that have only passed chunks, of parts whose leases are held.
    fn write_ahead(&mut self, leases: &[Lease]) -> Result<()> {
        let is_alone = self.index.map().spans_parts();
        let is_ours = |part: Part| is_alone || leases.iter().any(|lease| lease.part == part);
        let (ours, others) =
            std::mem::take(&mut self.ahead).into_iter().partition(|(part, _)| is_ours(*part));
        (self.ahead, self.passed) = (others, 0);
        let ours: BTreeMap<Part, CommitNumber> = ours;
        let marks: Vec<Mark> =
            ours.into_iter().map(|(part, seq)| Mark::Cursor { part, seq }).collect();
        if !marks.is_empty() {
            self.index.apply(ChangeBatch { changes: vec![], marks }, leases)?;
        }
        Ok(())
    }

    /// Prunes lost links, a step of it, and tidies the map; whether there is more to prune.
    fn keep_up(&mut self, leases: &[Lease]) -> Result<bool> {
        if self.kept_up.is_some_and(|then| then.elapsed() < UPKEEP_EVERY) {
            return Ok(false);
        }
        let setting = self.chunks.db().read(settings::lost_links)?;
        let now_ms = clock::now_ms();
        if prune::step_any(&self.index, leases, setting, now_ms)? {
            return Ok(true);
        }
        self.index.map().tidy()?;
        self.kept_up = Some(Instant::now());
        Ok(false)
    }
}

/// What a batch has so far, besides its changes.
#[derive(Default)]
struct FilledBatch {
    applied: AppliedBatch,
    links: usize,
    /// Whether anything was read.
    is_read: bool,
}

impl FilledBatch {
    fn has_room(&self, batch: &ChangeBatch) -> bool {
        batch.changes.len() < PAGES_MAX && self.links < LINKS_MAX
    }
}

impl Consumer for LinkIndexConsumer {
    fn role(&self) -> &'static str {
        cursors::LINKS
    }

    fn spans_parts(&self) -> bool {
        self.index.map().spans_parts()
    }

    fn gather_ms(&self) -> i64 {
        GATHER_MS
    }

    fn take_up(&mut self, lease: &Lease) -> Result<CommitNumber> {
        self.ahead.remove(&lease.part);
        self.index.recover(lease.part, Some(lease))?;
        self.index.cursor(lease.part)
    }

    fn apply(&mut self, work: &[PartWork]) -> Result<AppliedBatch> {
        let (mut batch, mut filled) = (ChangeBatch::default(), FilledBatch::default());
        self.chunks.begin();
        for it in work {
            let (part, at) = (it.lease.part, self.fill(it, &mut batch, &mut filled)?);
            self.ahead.insert(part, at);
            filled.applied.reached.push((part, at));
        }
        let leases: Vec<Lease> = work.iter().map(|it| it.lease.clone()).collect();
        if !filled.is_read {
            if self.passed >= PASSED_MAX {
                self.write_ahead(&leases)?;
            }
            return Ok(filled.applied);
        }
        for (part, seq) in filled.applied.reached.iter().copied() {
            self.ahead.remove(&part);
            batch.marks.push(Mark::Cursor { part, seq });
        }
        self.index.apply(batch, &leases)?;
        Ok(filled.applied)
    }

    fn tend(&mut self, leases: &[Lease], is_last: bool) -> Result<bool> {
        if is_last {
            self.write_ahead(leases)?;
        }
        self.keep_up(leases)
    }
}
