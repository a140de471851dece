//! Follows the crawl for the link index: committed chunks become changes of it.
//!
//! Invariants: the cursor of a part is in the index, with the effect; what is held in
//! memory is one batch ([`PAGES_MAX`], [`LINKS_MAX`]).

pub(super) mod reading;

use super::changes::{Batch, Mark};
use super::index::LinkIndex;
use crate::follow::{Applied, Consumer, Work};
use reading::Chunks;
use store::objects::Objects;
use store::panics::Faults;
use store::tables::cursors;
use store::tables::leases::Lease;
use store::{Db, Result};

/// Pages of a batch: more of them share their targets, and are in memory.
pub const PAGES_MAX: usize = 10_000;
/// Links of a batch.
pub const LINKS_MAX: usize = 250_000;
/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;
/// A link is visible within a second, and a crawl in full swing makes large batches.
const GATHER_MS: i64 = 150;

/// The link index, as it follows a crawl.
pub struct Links {
    index: LinkIndex,
    chunks: Chunks,
}

impl Links {
    /// The index, and where chunks are.
    pub fn new(db: Db, objects: Objects, index: LinkIndex) -> Result<Links> {
        Ok(Links { index, chunks: Chunks::new(db, objects)? })
    }

    /// The same, with faults that a test injects.
    pub fn with_faults(mut self, faults: Faults) -> Links {
        self.chunks.faults = faults;
        self
    }
}

impl Consumer for Links {
    fn role(&self) -> &'static str {
        cursors::LINKS
    }

    fn spans_parts(&self) -> bool {
        self.index.map().spans_parts()
    }

    fn gather_ms(&self) -> i64 {
        GATHER_MS
    }

    fn take_up(&mut self, lease: &Lease) -> Result<i64> {
        self.index.recover(lease.part, Some(lease))?;
        self.index.cursor(lease.part)
    }

    fn apply(&mut self, work: &[Work]) -> Result<Applied> {
        let (mut batch, mut applied, mut links) = (Batch::default(), Applied::default(), 0);
        for it in work {
            let (part, mut at) = (it.lease.part, it.at);
            while at < it.head && batch.changes.len() < PAGES_MAX && links < LINKS_MAX {
                let chunks = self.chunks.after(part, at, CHUNKS_STEP)?;
                if chunks.is_empty() {
                    // Numbers without a chunk: commits that settled nothing.
                    at = it.head;
                }
                for chunk in chunks {
                    if batch.changes.len() >= PAGES_MAX || links >= LINKS_MAX {
                        break;
                    }
                    at = chunk.seq;
                    applied.committed_ms.push(chunk.committed_ms);
                    let read = self.chunks.read(part, chunk, &mut batch.changes)?;
                    links += read.links;
                    applied.left_out.extend(read.left_out);
                }
            }
            batch.marks.push(Mark::Cursor { part, seq: at });
            applied.reached.push((part, at));
        }
        let leases: Vec<Lease> = work.iter().map(|it| it.lease.clone()).collect();
        self.index.apply(batch, &leases)?;
        Ok(applied)
    }
}
