//! Waits for whoever consumes what is committed: in a part whose consumer is far behind,
//! nothing is claimed until it has caught up.
//!
//! Relies on `tables::cursors` and `tables::leases` alone: a crawl knows no consumer, and
//! one that nobody runs is not waited for. All commits of a part are its holder's, so a
//! consumer falls no further behind between two looks than this process takes it.
//!
//! Invariants: what is claimed is worked on and committed, whoever is behind; a run does
//! not end, and gives nothing up, because of what waits here.

use super::progress::Waiter;
use super::{PartWork, Worker};
use std::collections::BTreeMap;
use store::Result;
use store::ids::Part;
use store::tables::cursors::{self, Behind};
use store::tables::settings::PARTS_MAX;

/// Chunks of a part that a consumer may be behind by: up to twenty thousand documents, which
/// is more than one takes at once that works in batches, and minutes of work at most.
const LAG_CHUNKS_MAX: i64 = 200;
/// A part that has waited goes on when its consumer is no further behind than this, so that
/// it does not stop and go with every chunk.
const LAG_CHUNKS_ENOUGH: i64 = LAG_CHUNKS_MAX / 2;
/// Consumers that are looked at: several of every part.
const BEHIND_MAX: u32 = 4 * PARTS_MAX;

impl PartWork {
    /// Whether documents of it may be claimed, as far as the part is concerned.
    pub(super) fn claims(&self) -> bool {
        !self.leaving && !self.lags
    }
}

impl Worker {
    /// Looks who is behind: one small query for all parts.
    pub(super) fn look_at_lags(&mut self, now_ms: i64) -> Result<()> {
        let behind =
            self.db.read(move |tx| cursors::behind(tx, LAG_CHUNKS_ENOUGH, now_ms, BEHIND_MAX));
        let behind = match behind {
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            behind => slowest(behind?),
        };
        let lagged = self.is_any_lagging();
        for (part, held) in &mut self.parts {
            let chunks = behind.get(part).map_or(0, |it| it.chunks);
            held.lags = lags(held.lags, chunks);
        }
        match (lagged, self.is_any_lagging()) {
            // It is said once, as it was when the wait began: a number that changes with
            // every look would be news with every look.
            (false, true) => {
                let of_ours = self.parts.iter().filter(|(_, held)| held.lags);
                let worst = of_ours.filter_map(|(part, _)| behind.get(part));
                let worst = worst.max_by_key(|it| it.chunks);
                self.progress.waits_for(Waiter::Claims, worst.map(words));
            }
            (true, false) => self.progress.waits_for(Waiter::Claims, None),
            _ => {}
        }
        Ok(())
    }

    /// Whether some part waits for a consumer.
    pub(super) fn is_any_lagging(&self) -> bool {
        self.parts.values().any(|held| held.lags)
    }
}

/// The consumer of each part that is furthest behind.
fn slowest(behind: Vec<Behind>) -> BTreeMap<Part, Behind> {
    let mut found: BTreeMap<Part, Behind> = BTreeMap::new();
    for it in behind {
        if found.get(&it.part).is_none_or(|other| other.chunks < it.chunks) {
            found.insert(it.part, it);
        }
    }
    found
}

/// Whether a part waits whose consumer is so many chunks behind.
fn lags(lagged: bool, chunks: i64) -> bool {
    chunks > if lagged { LAG_CHUNKS_ENOUGH } else { LAG_CHUNKS_MAX }
}

fn words(it: &Behind) -> String {
    let who = cursors::title(&it.consumer);
    format!("{who} is {} chunks behind; the crawl waits for it", it.chunks)
}

#[cfg(test)]
mod tests;
