//! What a turn claims to be swept, with what decides about it.
//!
//! Invariant: whether a removal was released is read in the transaction that claims its
//! document.

use super::{Turn, TurnDone};
use crate::conduct::cleans;
use crate::worker::ask::tasks::ClaimedDocument;
use page::ids::DocHash;
use std::collections::HashMap;
use store::chunkfile::document::DocumentRole;
use store::ids::QueueId;
use store::tables::queue::Entry;
use store::tables::queue::sweep::{self, Sweep};
use store::tables::removals::{self, Mark};
use store::{Result, Tx};

/// Documents swept in one turn.
const SWEEP_DOCUMENTS: u32 = 200;

/// A document that is to be swept.
pub struct SweptDocument {
    pub claimed: ClaimedDocument,
    /// As what another job keeps it, if one does.
    pub shared: Option<DocumentRole>,
    /// Its mark, if its removal was released.
    pub released: Option<Mark>,
}

impl Turn {
    pub(super) fn claim_swept(
        &self,
        tx: &mut Tx<'_>,
        sweep: Sweep,
        done: &mut TurnDone,
    ) -> Result<()> {
        let (place, released) = (self.place(), self.job.removals.released);
        let is_clean = matches!(sweep, Sweep::Clean(_));
        // Others may have found something since it was planned.
        let mut peeked = match is_clean && !cleans(tx, &self.job.in_run())? {
            true => Vec::new(),
            false => sweep::peek(tx, place, sweep, SWEEP_DOCUMENTS)?,
        };
        if peeked.is_empty() && is_clean && released > 0 {
            peeked = sweep::peek(tx, place, Sweep::Leaving(released), SWEEP_DOCUMENTS)?;
        }
        if !peeked.is_empty() {
            self.open_next(tx, done)?;
            let claimed = sweep::claim(tx, place, self.open.claim, sweep, peeked)?;
            done.swept = self.with_sharing(tx, sweep, claimed)?;
        }
        Ok(())
    }

    pub(super) fn with_sharing(
        &self,
        tx: &mut Tx<'_>,
        sweep: Sweep,
        entries: Vec<Entry>,
    ) -> Result<Vec<SweptDocument>> {
        let (place, released) = (self.place(), self.job.removals.released);
        let keys: Vec<DocHash> = entries.iter().map(|entry| entry.dochash).collect();
        let shared = sweep::shared(tx, place, self.job.connection, &keys)?;
        let mut marks = match sweep {
            Sweep::Clean(_) | Sweep::Leaving(_) if released > 0 => {
                let ids: Vec<QueueId> = entries.iter().map(|entry| entry.id).collect();
                removals::marks(tx, place, &ids)?
            }
            _ => HashMap::new(),
        };
        marks.retain(|_, mark| mark.round <= released);
        let claimed = self.with_documents(tx, entries)?;
        let with = |claimed: ClaimedDocument| SweptDocument {
            shared: shared.get(&claimed.entry.dochash).copied(),
            released: marks.remove(&claimed.entry.id),
            claimed,
        };
        Ok(claimed.into_iter().map(with).collect())
    }
}
