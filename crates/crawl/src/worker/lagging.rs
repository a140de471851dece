//! Waits for whoever consumes what is committed: in a part whose consumer is far behind,
//! nothing is claimed until it has caught up.
//!
//! Relies on `tables::cursors` and `tables::leases` alone: a crawl knows no consumer, and
//! one that nobody runs is not waited for. All commits of a part are its holder's, so a
//! consumer falls no further behind between two looks than this process takes it.
//!
//! There are two limits: a number of chunks of a part; and, where consumers can keep up with
//! all parts at once, the time since the first commit that one of them does not have.
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
/// How often it is looked who is behind.
const LOOK_MS: i64 = 100;
/// A consumer whose cursor has not moved for so long is in trouble, and says so itself: it is
/// not waited for by time, but by chunks.
const STUCK_MS: i64 = 5_000;

/// How the consumers of what this process commits stand.
#[derive(Debug, Default)]
pub(super) struct Lags {
    looked_ms: i64,
    /// Whether some consumer is late.
    is_late: bool,
    /// Whether it is said what is waited for.
    is_said: bool,
}

impl Lags {
    /// A part is new: who is behind in it is looked at before anything of it is claimed.
    pub(super) fn look_now(&mut self) {
        self.looked_ms = 0;
    }
}

impl PartWork {
    /// Whether documents of it may be claimed, as far as the part is concerned.
    pub(super) fn claims(&self) -> bool {
        !self.leaving && !self.lags
    }
}

impl Worker {
    /// Looks now and then who is behind: one small query for all parts.
    pub(super) fn look_at_lags(&mut self) -> Result<()> {
        let now_ms = self.now.ms();
        if now_ms < self.lags.looked_ms.saturating_add(LOOK_MS) || self.parts.is_empty() {
            return Ok(());
        }
        self.lags.looked_ms = now_ms;
        let over = if self.settings.late_ms.is_some() { 0 } else { LAG_CHUNKS_ENOUGH };
        let behind = self.db.read(move |tx| cursors::behind(tx, over, now_ms, BEHIND_MAX));
        let mut behind = match behind {
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            behind => behind?,
        };
        behind.retain(|it| self.parts.contains_key(&it.part));
        let (most_ms, was_late) = (self.settings.late_ms, self.lags.is_late);
        let is_late = most_ms.is_some_and(|most_ms| is_late(was_late, &behind, now_ms, most_ms));
        self.lags.is_late = is_late;
        let behind = slowest(behind);
        let mut is_far = false;
        for (part, held) in &mut self.parts {
            let chunks = behind.get(part).map_or(0, |it| it.chunks);
            held.is_far_behind = lags(held.is_far_behind, chunks);
            held.lags = held.is_far_behind || is_late;
            is_far |= held.is_far_behind;
        }
        // That somebody is late is usual, and soon over.
        match (self.lags.is_said, is_far) {
            // It is said once, as it was when the wait began: a number that changes with
            // every look would be news with every look.
            (false, true) => {
                let worst = behind.values().max_by_key(|it| it.chunks);
                self.progress.waits_for(Waiter::Claims, worst.map(words));
                self.lags.is_said = worst.is_some();
            }
            (true, false) => {
                self.progress.waits_for(Waiter::Claims, None);
                self.lags.is_said = false;
            }
            _ => {}
        }
        Ok(())
    }

    /// When it is looked again, if something waits for it.
    pub(super) fn next_lag_look_ms(&self) -> Option<i64> {
        self.is_any_lagging().then_some(self.lags.looked_ms.saturating_add(LOOK_MS))
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

/// Whether a consumer is late: from a time on, until the first commit that it does not have
/// is half as old. One that is in trouble is not.
fn is_late(was_late: bool, behind: &[Behind], now_ms: i64, most_ms: i64) -> bool {
    let enough_ms = if was_late { most_ms / 2 } else { most_ms };
    let works = |it: &&Behind| {
        let since_ms = it.since_ms.unwrap_or(now_ms).max(it.moved_ms);
        now_ms.saturating_sub(since_ms) < STUCK_MS
    };
    let oldest_ms = behind.iter().filter(works).filter_map(|it| it.since_ms).min();
    oldest_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) > enough_ms)
}

fn words(it: &Behind) -> String {
    let who = cursors::title(&it.consumer);
    format!("{who} is {} chunks behind; the crawl waits for it", it.chunks)
}

#[cfg(test)]
mod tests;
