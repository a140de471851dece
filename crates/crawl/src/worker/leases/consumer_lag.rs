//! Which parts wait for a consumer of what is committed: in a part whose consumer is far behind,
//! nothing is claimed until it has caught up.
//!
//! Decides from rows of `tables::cursors` and `tables::leases` alone: a crawl knows no consumer,
//! and one that nobody runs is not waited for. All commits of a part are its holder's, so a
//! consumer falls no further behind between two looks than this process takes it.
//!
//! There are two limits: a number of chunks of a part, and the time since the first commit
//! that a consumer does not have. By time a consumer that takes part after part is given two
//! of its rounds at least, so that a slow store makes it late and not the crawl slow.
//!
//! Invariants: what is claimed is worked on and committed, whoever is behind; a run does
//! not end, and gives nothing up, because of what waits here.

use crate::worker::settings::Late;
use std::collections::{BTreeMap, BTreeSet};
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
pub const BEHIND_MAX: u32 = 4 * PARTS_MAX;
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
#[derive(Debug)]
pub struct ConsumerLag {
    late: Option<Late>,
    looked_ms: i64,
    /// The parts that wait.
    parts: BTreeMap<Part, PartLag>,
    rounds: Rounds,
    /// Whether it is said what is waited for.
    is_announced: bool,
}

/// Why a part waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PartLag {
    /// A consumer is behind by more chunks than it may be.
    is_far_behind: bool,
    /// It is for longer than it may be.
    is_late: bool,
}

/// What people hear of a wait. That somebody is late is usual, and soon over.
#[derive(Debug, PartialEq, Eq)]
pub enum LagNews {
    /// A consumer is far behind, and claims wait for it.
    Waits(String),
    /// Nobody is far behind any more.
    Over,
}

impl ConsumerLag {
    /// Nobody is behind, as far as anybody knows. Without `late` only chunks are counted.
    pub fn new(late: Option<Late>) -> ConsumerLag {
        let (parts, rounds) = (BTreeMap::new(), Rounds::default());
        ConsumerLag { late, looked_ms: 0, parts, rounds, is_announced: false }
    }

    /// Whether a part waits for a consumer.
    pub fn is_behind(&self, part: Part) -> bool {
        self.parts.contains_key(&part)
    }

    /// Whether some part waits for a consumer.
    pub fn is_any_behind(&self) -> bool {
        !self.parts.is_empty()
    }

    /// When it is looked again who is behind.
    pub fn due_ms(&self) -> i64 {
        let every_ms = match self.late {
            Some(Late::Together(_)) => LOOK_MS,
            Some(Late::ByPart(_)) | None => LOOK_SHARED_MS,
        };
        self.looked_ms.saturating_add(every_ms)
    }

    /// A look begins. Returns by how many chunks somebody must be behind to be of interest.
    pub fn begin_look(&mut self, now_ms: i64) -> i64 {
        self.looked_ms = now_ms;
        if self.late.is_some() { 0 } else { LAG_CHUNKS_ENOUGH }
    }

    /// Asks for a look before anything else is claimed.
    pub fn look_now(&mut self) {
        self.looked_ms = 0;
    }

    /// A part is held anew, or no longer.
    pub fn forget(&mut self, part: Part) {
        self.parts.remove(&part);
    }

    /// Takes in who is behind in the parts that are held.
    pub fn on_look(&mut self, held: &[Part], behind: Vec<Behind>, now_ms: i64) -> Option<LagNews> {
        let late = self.late_parts(held, &behind, now_ms);
        let behind = slowest(behind);
        let before = std::mem::take(&mut self.parts);
        for part in held {
            let was = before.get(part).copied().unwrap_or_default();
            let chunks = behind.get(part).map_or(0, |it| it.chunks);
            let is_far_behind = is_far_behind(was.is_far_behind, chunks);
            let is_late = late.contains(part);
            if is_far_behind || is_late {
                self.parts.insert(*part, PartLag { is_far_behind, is_late });
            }
        }
        let is_any_far = self.parts.values().any(|it| it.is_far_behind);
        match (self.is_announced, is_any_far) {
            // It is said once, as it was when the wait began: a number that changes with
            // every look would be news with every look.
            (false, true) => {
                let worst = behind.values().max_by_key(|it| it.chunks)?;
                self.is_announced = true;
                Some(LagNews::Waits(sentence(worst)))
            }
            (true, false) => {
                self.is_announced = false;
                Some(LagNews::Over)
            }
            _ => None,
        }
    }

    /// Parts that wait for somebody who is late.
    fn late_parts(&mut self, held: &[Part], behind: &[Behind], now_ms: i64) -> BTreeSet<Part> {
        let was_late = |part: &Part| self.parts.get(part).is_some_and(|it| it.is_late);
        match self.late {
            None => BTreeSet::new(),
            Some(Late::Together(most_ms)) => {
                let was_late = held.iter().any(was_late);
                let is_late = is_late(was_late, behind, now_ms, most_ms);
                held.iter().copied().filter(|_| is_late).collect()
            }
            Some(Late::ByPart(most_ms)) => {
                let rounds = &mut self.rounds;
                behind.iter().for_each(|it| rounds.note(it));
                let parts = &self.parts;
                let is_late = |part: &Part| {
                    let was_late = parts.get(part).is_some_and(|it| it.is_late);
                    behind.iter().filter(|it| it.part == *part).any(|it| {
                        let most_ms = most_ms.max(rounds.of(it).saturating_mul(ROUNDS));
                        is_late(was_late, std::slice::from_ref(it), now_ms, most_ms)
                    })
                };
                held.iter().copied().filter(is_late).collect()
            }
        }
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
fn is_far_behind(was_far_behind: bool, chunks: i64) -> bool {
    chunks > if was_far_behind { LAG_CHUNKS_ENOUGH } else { LAG_CHUNKS_MAX }
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

fn sentence(it: &Behind) -> String {
    let who = cursors::title(&it.consumer);
    format!("{who} is {} chunks behind; the crawl waits for it", it.chunks)
}

#[cfg(test)]
mod tests;
