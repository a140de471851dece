//! Waits for whoever consumes what is committed: in a part whose consumer is far behind,
//! nothing is claimed until it has caught up.
//!
//! Relies on `tables::cursors` and `tables::leases` alone: a crawl knows no consumer, and
//! one that nobody runs is not waited for. All commits of a part are its holder's, so a
//! consumer falls no further behind between two looks than this process takes it.
//!
//! There are two limits: a number of chunks of a part, and the time since the first commit
//! that a consumer does not have. By time a consumer that takes part after part is given two
//! of its rounds at least, so that a slow store makes it late and not the crawl slow.
//!
//! Invariants: what is claimed is worked on and committed, whoever is behind; a run does
//! not end, and gives nothing up, because of what waits here.

use super::progress::Waiter;
use super::settings::Late;
use super::{PartWork, Worker};
use std::collections::{BTreeMap, BTreeSet};
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
/// How often it is looked who is behind: in a data directory, and in a database that others
/// ask, too.
const LOOK_MS: i64 = 100;
const LOOK_SHARED_MS: i64 = 250;
/// A consumer whose cursor has not moved for so long is in trouble, and says so itself: it is
/// not waited for by time, but by chunks.
const STUCK_MS: i64 = 5_000;
/// Rounds that a consumer which takes part after part may be late by.
const ROUNDS: i64 = 2;

/// How the consumers of what this process commits stand.
#[derive(Debug, Default)]
pub(super) struct Lags {
    looked_ms: i64,
    /// How consumers come round.
    rounds: Rounds,
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
    /// Looks now and then who is behind in the parts that this process holds.
    pub(super) fn look_at_lags(&mut self) -> Result<()> {
        let now_ms = self.now.ms();
        if now_ms < self.lags_due_ms() || self.parts.is_empty() {
            return Ok(());
        }
        self.lags.looked_ms = now_ms;
        let over = if self.settings.late.is_some() { 0 } else { LAG_CHUNKS_ENOUGH };
        let parts: Vec<Part> = self.parts.keys().copied().collect();
        let behind = self.db.read(move |tx| cursors::behind(tx, &parts, over, now_ms, BEHIND_MAX));
        let behind = match behind {
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            behind => behind?,
        };
        let late = self.late_parts(&behind, now_ms);
        let behind = slowest(behind);
        let mut is_far = false;
        for (part, held) in &mut self.parts {
            let chunks = behind.get(part).map_or(0, |it| it.chunks);
            held.is_far_behind = lags(held.is_far_behind, chunks);
            held.is_late = late.contains(part);
            held.lags = held.is_far_behind || held.is_late;
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

    /// Parts that wait for somebody who is late.
    fn late_parts(&mut self, behind: &[Behind], now_ms: i64) -> BTreeSet<Part> {
        let held = self.parts.iter();
        match self.settings.late {
            None => BTreeSet::new(),
            Some(Late::Together(most_ms)) => {
                let was_late = self.parts.values().any(|held| held.is_late);
                let is_late = is_late(was_late, behind, now_ms, most_ms);
                held.filter(|_| is_late).map(|(part, _)| *part).collect()
            }
            Some(Late::ByPart(most_ms)) => {
                let rounds = &mut self.lags.rounds;
                behind.iter().for_each(|it| rounds.note(it));
                let is_late = |part: Part, was_late: bool| {
                    behind.iter().filter(|it| it.part == part).any(|it| {
                        let most_ms = most_ms.max(rounds.of(it).saturating_mul(ROUNDS));
                        is_late(was_late, std::slice::from_ref(it), now_ms, most_ms)
                    })
                };
                let is_late = held.filter(|(part, held)| is_late(**part, held.is_late));
                is_late.map(|(part, _)| *part).collect()
            }
        }
    }

    /// When it is looked again, if something waits for it.
    pub(super) fn next_lag_look_ms(&self) -> Option<i64> {
        self.is_any_lagging().then_some(self.lags_due_ms())
    }

    fn lags_due_ms(&self) -> i64 {
        let every_ms = match self.settings.late {
            Some(Late::Together(_)) => LOOK_MS,
            Some(Late::ByPart(_)) | None => LOOK_SHARED_MS,
        };
        self.lags.looked_ms.saturating_add(every_ms)
    }

    /// Whether some part waits for a consumer.
    pub(super) fn is_any_lagging(&self) -> bool {
        self.parts.values().any(|held| held.lags)
    }
}

/// How long consumers take from one move of their cursor to the next, part by part, while
/// they are behind.
#[derive(Debug, Default)]
struct Rounds {
    /// When each was moved last, and how long that took.
    known: BTreeMap<(Part, String), (i64, i64)>,
}

impl Rounds {
    fn note(&mut self, it: &Behind) {
        let known = self.known.entry((it.part, it.consumer.clone())).or_insert((it.moved_ms, 0));
        if it.moved_ms > known.0 {
            // Not what it took when there was nothing to do.
            *known = (it.moved_ms, (it.moved_ms - known.0).min(STUCK_MS));
        }
    }

    fn of(&self, it: &Behind) -> i64 {
        self.known.get(&(it.part, it.consumer.clone())).map_or(0, |known| known.1)
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
