//! Makes the index anew from its pages, in bulk: sorting, not random writes.
//!
//! Relies on [`super::bulk`] for what the index consists of. Invariant: until the new rows
//! are all there the old ones are what readers see; pages, and how far the index is, stay.

use super::bulk::{self, BulkEvent, ComputedCounts};
use super::index::LinkIndex;
use super::inlinks::{self, Edit, HERE_BYTES_MAX, Inlink, WIDE_MIN};
use super::keys::{self, InlinkForm, PageRef};
use super::node::{Inlinks, Node};
use super::state::PartState;
use page::ids::DocHash;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use store::ids::Part;
use store::sorted::{BulkReplacement, Row};
use store::tables::leases::Lease;
use store::{Error, Result};

/// Rows that travel together to whoever writes them.
const BATCH_ROWS: usize = 4_096;
/// Such batches that may wait.
const BATCHES: usize = 8;

/// Rebuilds everything that can be computed from pages, with files in a directory. Nobody
/// may change the index meanwhile, and no batch may be under way. `leases` are those of all
/// parts; a map that only one process has needs none.
pub fn rebuild(index: &LinkIndex, scratch: &Path, leases: &[Lease]) -> Result<ComputedCounts> {
    let (send, incoming) = sync_channel(BATCHES);
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || write(index, incoming, leases));
        let mut making = RowMaker { index, send, rows: Vec::new(), list: Vec::new(), seq: None };
        let made = bulk::compute(index, scratch, &mut |part, event| making.take(part, event));
        // The writer must know whether the end it sees is the end.
        let ended = match &made {
            Ok(_) => making.flush().map(|()| None),
            Err(error) => Ok(Some(error.to_string())),
        };
        let _ = making.send.send(RowBatch::End(ended.unwrap_or(None)));
        drop(making);
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // What went wrong in writing is why making could not go on.
        written.and(made)
    })
}

enum RowBatch {
    Rows(Vec<Row>),
    /// The end; a bad one says why.
    End(Option<String>),
}

fn write(index: &LinkIndex, incoming: Receiver<RowBatch>, leases: &[Lease]) -> Result<()> {
    let mut rows = Vec::new().into_iter();
    let mut next = move || loop {
        if let Some(row) = rows.next() {
            return Ok(Some(row));
        }
        match incoming.recv() {
            Ok(RowBatch::Rows(batch)) => rows = batch.into_iter(),
            Ok(RowBatch::End(None)) => return Ok(None),
            Ok(RowBatch::End(Some(why))) => return Err(Error::Refused(why)),
            Err(_) => return Err(Error::invariant("the new rows broke off")),
        }
    };
    let replaced = BulkReplacement { families: keys::DERIVED, parts: index.parts(), leases };
    index.map().replace(&replaced, &mut next)
}

/// Turns events into rows.
struct RowMaker<'a> {
    index: &'a LinkIndex,
    send: SyncSender<RowBatch>,
    rows: Vec<Row>,
    /// In-links of the URI that is being told of, until they are too many.
    list: Vec<Edit>,
    /// The number that rows of this part get.
    seq: Option<u64>,
}

impl RowMaker<'_> {
    fn take(&mut self, part: Part, event: BulkEvent<'_>) -> Result<()> {
        let seq = match self.seq {
            Some(seq) => seq,
            None => {
                let seq = self.index.read(move |view| Ok(PartState::load(view, part)?.seq))?;
                *self.seq.insert(seq)
            }
        };
        match event {
            BulkEvent::Inlink { hash, source, link } => {
                self.inlink(part, hash, source, Inlink { seq, ..link })
            }
            BulkEvent::Node { hash, node } => self.node(part, hash, Node { seq, ..node.clone() }),
            BulkEvent::Row(row) => self.put(self.numbered(row, seq)),
            BulkEvent::End => {
                self.seq = None;
                Ok(())
            }
        }
    }

    fn numbered(&self, mut row: Row, seq: u64) -> Row {
        if row.key.starts_with(&keys::domain(""))
            && let Some(Ok((pages, _))) = row.value.as_deref().map(super::fold::decode_domain)
        {
            row.value = Some(super::fold::encode_domain(pages, seq));
        }
        row
    }

    fn put(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(BATCH_ROWS));
        let sent = self.send.send(RowBatch::Rows(rows));
        sent.map_err(|_| Error::invariant("the new rows could not be written"))
    }

    fn inlink(&mut self, part: Part, hash: DocHash, source: PageRef, link: Inlink) -> Result<()> {
        let is_wide = self.list.len() as u64 > WIDE_MIN;
        if is_wide {
            return self.wide(part, hash, source, &link);
        }
        self.list.push(Edit { source, link: Some(link) });
        if self.list.len() as u64 > WIDE_MIN {
            // The list stays full, which says that the rest follow one by one.
            let list = std::mem::take(&mut self.list);
            for Edit { source, link } in &list {
                if let Some(link) = link {
                    self.wide(part, hash, *source, link)?;
                }
            }
            self.list = list;
        }
        Ok(())
    }

    fn wide(&mut self, part: Part, hash: DocHash, source: PageRef, link: &Inlink) -> Result<()> {
        let value = Some(inlinks::encode_wide(link));
        self.put(Row { part, key: keys::wide(hash, source), value })
    }

    fn node(&mut self, part: Part, hash: DocHash, mut node: Node) -> Result<()> {
        let list = std::mem::take(&mut self.list);
        let block = match list.len() as u64 {
            0 => Vec::new(),
            1..=WIDE_MIN => inlinks::encode(&list),
            _ => Vec::new(),
        };
        node.inlinks = if node.incount > WIDE_MIN {
            Inlinks::Wide
        } else if block.len() <= HERE_BYTES_MAX {
            Inlinks::Here(block)
        } else {
            self.put(Row {
                part,
                key: keys::inlinks_in(hash, InlinkForm::Base),
                value: Some(block),
            })?;
            Inlinks::Blocks(0)
        };
        self.put(Row { part, key: keys::node(hash), value: Some(node.encode()) })
    }
}
