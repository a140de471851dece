//! Indexes documents anew of which others say something else by now: the words of links,
//! and their number.
//!
//! A sweep compares what the index was told with what the link index says, from the first
//! document to the last, in steps. A document is worth it when its in-links are four times
//! as many, or a quarter: one that gains a thousand of them is indexed a few times, not a
//! thousand. Invariants: a step reads at most [`LOOKED_MAX`] documents and writes at most
//! [`WRITTEN_MAX`]; when nothing has changed in the link index, nothing is looked at; beside a
//! crawl, sweeps are at most a [`SHARE`]th of the time; between two steps nothing of the index is
//! open, so that files which a merge has replaced are free. What is merged in the middle of a sweep
//! is looked at again.

use super::anchor_text;
use super::indexed_links::{Columns, is_worth_it};
use super::schema::DocumentKey;
use super::writer::{Writer, failed, searcher};
use crate::links::LinkIndex;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use store::Result;
use tantivy::index::SegmentId;
use tantivy::schema::Value;
use tantivy::{DocAddress, DocId, Searcher, SegmentReader, TantivyDocument};

/// Documents that a step looks at.
const LOOKED_MAX: usize = 50_000;
/// Documents that a step writes.
const WRITTEN_MAX: usize = 1_000;
/// Sweeps are at most this share of the time: whatever an older run left to be done, a run in
/// which nothing changes does not pay for it.
const SHARE: u32 = 50;

/// Where the sweeps of a shard are.
#[derive(Default)]
pub struct Refresh {
    /// What the link index had changed when the sweep began that is under way, or was done.
    changes: Option<u64>,
    sweep: Option<RefreshSweep>,
    /// No step is taken before.
    rests_until: Option<Instant>,
    /// How long steps took since the last rest.
    spent: Duration,
    /// Whether something was committed since the last step.
    is_busy: bool,
}

/// A sweep under way: what it has looked at.
#[derive(Default)]
struct RefreshSweep {
    done: HashSet<SegmentId>,
    /// The segment that it is in, and the next document there.
    at: Option<(SegmentId, DocId)>,
}

impl Refresh {
    /// Takes one step, if there is one to take: puts documents anew into the writer, and
    /// says how many. `None` says that there is nothing to do for now.
    pub fn step(&mut self, writer: &mut Writer, links: &LinkIndex) -> Result<Option<usize>> {
        let began = Instant::now();
        // What is not committed is newer than what a step would put in its place.
        if self.rests_until.is_some_and(|until| began < until) || writer.is_changed() {
            return Ok(None);
        }
        if self.sweep.is_none() {
            let changes = links.changes()?;
            if Some(changes) == self.changes {
                return Ok(None);
            }
            self.changes = Some(changes);
        }
        let committed = searcher(writer)?;
        let (stale, is_done) = self.sweep.get_or_insert_default().look(&committed, links)?;
        let written = write(writer, links, &committed, &stale)?;
        if is_done {
            self.sweep = None;
        }
        self.rest(began, is_done);
        Ok(Some(written))
    }

    /// Whether there is a step to take, once it has rested.
    pub fn is_due(&self, links: &LinkIndex) -> Result<bool> {
        Ok(self.sweep.is_some() || self.changes != Some(links.changes()?))
    }

    /// The same for a shard that was opened again: a sweep that was under way begins anew.
    pub fn taken_up(self) -> Refresh {
        let changes = self.changes.filter(|_| self.sweep.is_none());
        Refresh { changes, sweep: None, ..self }
    }

    /// After a step beside a crawl, and after a sweep, it rests.
    fn rest(&mut self, began: Instant, is_done: bool) {
        self.spent += began.elapsed();
        if is_done || self.is_busy {
            self.rests_until = Instant::now().checked_add(self.spent.saturating_mul(SHARE));
            self.spent = Duration::ZERO;
        }
        self.is_busy = false;
    }

    /// Something was committed: a crawl is under way.
    pub fn on_commits(&mut self) {
        self.is_busy = true;
    }

    /// A step may be taken at once.
    pub fn wake(&mut self) {
        self.rests_until = None;
    }
}

impl RefreshSweep {
    /// Documents of the last commit that are worth it, from where the sweep is, and whether it is
    /// at its end.
    fn look(&mut self, committed: &Searcher, links: &LinkIndex) -> Result<(Vec<DocAddress>, bool)> {
        let (mut at, mut targets, mut before) = (Vec::new(), Vec::new(), Vec::new());
        let left: Vec<(u32, &SegmentReader)> = (0..)
            .zip(committed.segment_readers())
            .filter(|(_, reader)| !self.done.contains(&reader.segment_id()))
            .collect();
        // Where the next step begins: behind the last document that this one looks at.
        let mut next = None;
        for (ord, reader) in &left {
            let columns = Columns::of(reader);
            let first = self.at.filter(|(segment, _)| *segment == reader.segment_id());
            for doc in first.map_or(0, |(_, doc)| doc)..reader.max_doc() {
                if at.len() >= LOOKED_MAX {
                    next = Some((*ord, doc));
                    break;
                }
                let found = columns.as_ref().filter(|_| !reader.is_deleted(doc));
                let Some(columns) = found else { continue };
                if let Some(target) = columns.target(doc) {
                    at.push(DocAddress::new(*ord, doc));
                    targets.push(Some(target));
                    before.push(columns.links(doc));
                }
            }
            if next.is_some() {
                break;
            }
        }
        let now = anchor_text::in_links(links, &targets)?;
        let mut stale = Vec::new();
        for ((at, before), now) in at.iter().zip(before).zip(now) {
            if is_worth_it(before, now) {
                stale.push(*at);
            }
            if stale.len() >= WRITTEN_MAX {
                // What is behind it is looked at again in the next step.
                next = Some((at.segment_ord, at.doc_id + 1));
                break;
            }
        }
        let is_behind = |ord: u32| next.is_none_or(|(segment, _)| ord < segment);
        let done = left.iter().filter(|(ord, _)| is_behind(*ord));
        self.done.extend(done.map(|(_, reader)| reader.segment_id()));
        self.at = next.map(|(ord, doc)| (committed.segment_reader(ord).segment_id(), doc));
        Ok((stale, next.is_none()))
    }
}

/// Puts documents of the last commit anew into the writer. Returns how many.
fn write(
    writer: &mut Writer,
    links: &LinkIndex,
    committed: &Searcher,
    stale: &[DocAddress],
) -> Result<usize> {
    let (mut targets, mut documents) = (Vec::new(), Vec::new());
    for at in stale {
        let reader = committed.segment_reader(at.segment_ord);
        targets.push(Columns::of(reader).and_then(|columns| columns.target(at.doc_id)));
        let stored: TantivyDocument =
            committed.doc(*at).map_err(|error| failed(writer.home(), error))?;
        documents.push(stored);
    }
    let anchor_text = anchor_text::of(links, &targets)?;
    let mut written = 0;
    for (mut document, anchor_text) in documents.into_iter().zip(anchor_text) {
        let fields = &writer.fields;
        let key = document.get_first(fields.key).and_then(|it| it.as_bytes());
        let Some(key) = key.and_then(DocumentKey::parse) else { continue };
        let url = document.get_first(fields.url).and_then(|it| it.as_str());
        let url = url.unwrap_or_default().to_owned();
        fields.complete(&mut document, key, &url, &anchor_text);
        writer.put(key, document)?;
        written += 1;
    }
    Ok(written)
}
