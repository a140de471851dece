//! Indexes documents anew of which others say something else by now: the words of links,
//! and their number.
//!
//! A sweep compares what the index was told with what the link index says, from the first
//! document to the last, in steps. A document is worth it when its in-links are four times
//! as many, or a quarter: one that gains a thousand of them is indexed a few times, not a
//! thousand. Invariants: a step reads at most [`LOOKED_MAX`] documents and writes at most
//! [`WRITTEN_MAX`]; when nothing has changed in the link index, nothing is looked at.

use super::said;
use super::schema::Key;
use super::told::{Columns, is_worth_it};
use super::writer::{Writer, failed, searcher};
use crate::links::LinkIndex;
use std::time::Instant;
use store::Result;
use tantivy::schema::Value;
use tantivy::{DocAddress, Searcher, TantivyDocument};

/// Documents that a step looks at.
const LOOKED_MAX: usize = 50_000;
/// Documents that a step writes.
const WRITTEN_MAX: usize = 1_000;
/// Sweeps are at most this share of the time.
const SHARE: u32 = 50;

/// Where the sweeps of a shard are.
#[derive(Default)]
pub struct Refresh {
    /// What the link index had changed when the sweep began that is under way, or was done.
    changes: u64,
    sweep: Option<Sweep>,
    /// No sweep begins before.
    rests_until: Option<Instant>,
}

/// A sweep under way.
struct Sweep {
    searcher: Searcher,
    next: DocAddress,
    began: Instant,
}

impl Refresh {
    /// Takes one step, if there is one to take: puts documents anew into the writer, and
    /// says how many. `None` says that there is nothing to do for now.
    pub fn step(&mut self, writer: &mut Writer, links: &LinkIndex) -> Result<Option<usize>> {
        if self.sweep.is_none() {
            let is_resting = self.rests_until.is_some_and(|until| Instant::now() < until);
            let changes = links.changes()?;
            if changes == self.changes || is_resting {
                return Ok(None);
            }
            self.changes = changes;
            self.sweep = Some(Sweep {
                searcher: searcher(writer)?,
                next: DocAddress::new(0, 0),
                began: Instant::now(),
            });
        }
        let Some(sweep) = &mut self.sweep else { return Ok(None) };
        let (stale, is_done) = sweep.look(links)?;
        let written = sweep.write(writer, links, &stale)?;
        if is_done {
            let spent = sweep.began.elapsed();
            self.rests_until = Instant::now().checked_add(spent.saturating_mul(SHARE));
            self.sweep = None;
        }
        Ok(Some(written))
    }

    /// A sweep may begin at once.
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

    /// Puts documents anew into the writer.
    fn write(&self, writer: &mut Writer, links: &LinkIndex, stale: &[DocAddress]) -> Result<usize> {
        let mut targets = Vec::new();
        let mut documents = Vec::new();
        for at in stale {
            let reader = self.searcher.segment_reader(at.segment_ord);
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
