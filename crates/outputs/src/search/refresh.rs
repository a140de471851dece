//! Indexes documents anew of which others say something else by now: the words of links,
//! and their number.
//!
//! A sweep compares what the index was told with what the link index says, from the first
//! document to the last, in steps. A document is worth it when its in-links are four times
//! as many, or a quarter: one that gains a thousand of them is indexed a few times, not a
//! thousand. Invariants: a step reads at most [`LOOKED_MAX`] documents and writes at most
//! [`WRITTEN_MAX`]; when nothing has changed in the link index, nothing is looked at; beside a
//! crawl, sweeps are at most a [`SHARE`]th of the time; a document that was indexed since a sweep
//! began is left as it is.

use super::said;
use super::schema::Key;
use super::told::{Columns, is_worth_it};
use super::writer::{Writer, failed, searcher};
use crate::links::LinkIndex;
use std::time::{Duration, Instant};
use store::Result;
use tantivy::schema::Value;
use tantivy::{DocAddress, Searcher, SegmentReader, TantivyDocument};

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
    sweep: Option<Sweep>,
    /// No step is taken before.
    rests_until: Option<Instant>,
    /// How long steps took since the last rest.
    spent: Duration,
    /// Whether something was committed since the last step.
    is_busy: bool,
}

/// A sweep under way.
struct Sweep {
    searcher: Searcher,
    next: DocAddress,
    /// Whether documents were left out that are elsewhere by now.
    is_incomplete: bool,
}

impl Refresh {
    /// Takes one step, if there is one to take: puts documents anew into the writer, and
    /// says how many. `None` says that there is nothing to do for now.
    pub fn step(&mut self, writer: &mut Writer, links: &LinkIndex) -> Result<Option<usize>> {
        let began = Instant::now();
        if self.rests_until.is_some_and(|until| began < until) {
            return Ok(None);
        }
        if self.sweep.is_none() {
            let changes = links.changes()?;
            if Some(changes) == self.changes {
                return Ok(None);
            }
            self.changes = Some(changes);
            let (searcher, next) = (searcher(writer)?, DocAddress::new(0, 0));
            self.sweep = Some(Sweep { searcher, next, is_incomplete: false });
        }
        let Some(sweep) = &mut self.sweep else { return Ok(None) };
        let (stale, is_done) = sweep.look(links)?;
        let written = sweep.write(writer, links, &stale)?;
        if is_done {
            if sweep.is_incomplete {
                self.changes = None;
            }
            self.sweep = None;
        }
        self.rest(began, is_done);
        Ok(Some(written))
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

impl Sweep {
    /// Documents that are worth it, from where the sweep is, and whether it is at its end.
    fn look(&mut self, links: &LinkIndex) -> Result<(Vec<DocAddress>, bool)> {
        let (mut at, mut targets, mut before) = (Vec::new(), Vec::new(), Vec::new());
        let readers = self.searcher.segment_readers();
        let mut next = self.next;
        while at.len() < LOOKED_MAX {
            let segment = usize::try_from(next.segment_ord).unwrap_or(usize::MAX);
            let Some(reader) = readers.get(segment) else { break };
            let columns = Columns::of(reader);
            while next.doc_id < reader.max_doc() && at.len() < LOOKED_MAX {
                let doc = next.doc_id;
                next.doc_id += 1;
                let found = columns.as_ref().filter(|_| !reader.is_deleted(doc));
                let Some(columns) = found else { continue };
                if let Some(target) = columns.target(doc) {
                    at.push(DocAddress::new(next.segment_ord, doc));
                    targets.push(Some(target));
                    before.push(columns.links(doc));
                }
            }
            if next.doc_id >= reader.max_doc() {
                next = DocAddress::new(next.segment_ord + 1, 0);
            }
        }
        let now = said::in_links(links, &targets)?;
        let mut stale = Vec::new();
        for ((at, before), now) in at.iter().zip(before).zip(now) {
            if is_worth_it(before, now) {
                stale.push(*at);
            }
            if stale.len() >= WRITTEN_MAX {
                // What is behind it is looked at again in the next step.
                self.next = DocAddress::new(at.segment_ord, at.doc_id + 1);
                return Ok((stale, false));
            }
        }
        self.next = next;
        let is_done = usize::try_from(next.segment_ord).unwrap_or(usize::MAX) >= readers.len();
        Ok((stale, is_done))
    }

    /// Puts documents anew into the writer, but for those that are not what they were when the
    /// sweep began. One that a merge has moved is met by the next sweep.
    fn write(
        &mut self,
        writer: &mut Writer,
        links: &LinkIndex,
        stale: &[DocAddress],
    ) -> Result<usize> {
        if stale.is_empty() {
            return Ok(0);
        }
        let now = searcher(writer)?;
        let mut targets = Vec::new();
        let mut documents = Vec::new();
        for at in stale {
            let reader = self.searcher.segment_reader(at.segment_ord);
            let same = |it: &&SegmentReader| it.segment_id() == reader.segment_id();
            match now.segment_readers().iter().find(same) {
                None => {
                    self.is_incomplete = true;
                    continue;
                }
                Some(now) if now.is_deleted(at.doc_id) => continue,
                Some(_) => {}
            }
            targets.push(Columns::of(reader).and_then(|columns| columns.target(at.doc_id)));
            let stored: TantivyDocument =
                self.searcher.doc(*at).map_err(|error| failed(writer.home(), error))?;
            documents.push(stored);
        }
        let said = said::of(links, &targets)?;
        let mut written = 0;
        for (mut document, said) in documents.into_iter().zip(said) {
            let fields = &writer.fields;
            let key = document.get_first(fields.key).and_then(|it| it.as_bytes());
            let Some(key) = key.and_then(Key::parse) else { continue };
            let url = document.get_first(fields.url).and_then(|it| it.as_str());
            let url = url.unwrap_or_default().to_owned();
            fields.complete(&mut document, key, &url, &said);
            writer.put(key, document)?;
            written += 1;
        }
        Ok(written)
    }
}
