//! All tallies of a process, found by what they are about, and bounded.
//!
//! Invariant: there are never more than the limit. When there are, an eighth goes:
//! what is open before what is closed, what has fewer documents before what has more,
//! what was counted longest ago first. So neither ever new patterns nor a crowd of
//! small hosts push out what has proved to be large.

use super::rules::{BudgetLimits, Level};
use super::tally::Tally;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use store::ids::{BinId, JobId, Part};
use store::tables::traps::TrapRow;

/// What a tally is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TallyKey {
    /// A pattern or a family of them, by a hash of its name.
    Name(JobId, BinId, u64),
    Host(JobId, BinId),
    /// A registered domain, by a hash of its name.
    Domain(JobId, u64),
}

/// A document is counted in four tallies; with fewer than these it would push out its
/// own.
const TALLIES_MIN: usize = 8;

/// What goes first is smaller.
type EvictionRank = (bool, i64, u64);

#[derive(Debug)]
pub(super) struct Tallies {
    limits: BudgetLimits,
    tallies: HashMap<TallyKey, Tally>,
    /// Hashes names, with a secret: whoever could make two names collide could close
    /// what is not theirs.
    names: RandomState,
    /// Those to be saved, and some that have gone since.
    changed: BTreeMap<Part, Vec<TallyKey>>,
    /// Counts documents: what is new is used later.
    clock: u64,
}

impl Tallies {
    pub fn new(limits: BudgetLimits) -> Tallies {
        let limits = BudgetLimits { tallies_max: limits.tallies_max.max(TALLIES_MIN), ..limits };
        let (tallies, changed) = (HashMap::new(), BTreeMap::new());
        Tallies { limits, tallies, names: RandomState::new(), changed, clock: 0 }
    }

    /// The hash of a name, good for this process.
    pub fn hash(&self, name: &str) -> u64 {
        self.names.hash_one(name)
    }

    /// The key of a stored tally.
    fn key_of(&self, row: &TrapRow) -> TallyKey {
        match Level::of(&row.pattern) {
            Level::Pattern
            | Level::Family
            | Level::Lists
            | Level::ReadLists
            | Level::NestedLists => TallyKey::Name(row.job, row.bin, self.hash(&row.pattern)),
            Level::Host => TallyKey::Host(row.job, row.bin),
            Level::Domain => {
                TallyKey::Domain(row.job, self.hash(row.pattern.trim_start_matches("*.")))
            }
        }
    }

    pub fn get(&self, key: &TallyKey) -> Option<&Tally> {
        self.tallies.get(key)
    }

    pub fn get_mut(&mut self, key: &TallyKey) -> Option<&mut Tally> {
        self.tallies.get_mut(key)
    }

    pub fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Changes a tally, which is made if there is none, and decides what closes it now.
    pub fn count(
        &mut self,
        key: TallyKey,
        make: impl FnOnce() -> Tally,
        change: impl FnOnce(&mut Tally),
    ) {
        if self.tallies.len() >= self.limits.tallies_max && !self.tallies.contains_key(&key) {
            self.forget_smallest();
        }
        self.tallies.entry(key).or_insert_with(make);
        self.change(key, change);
    }

    /// Changes a tally, if there is one, and decides what closes it now.
    pub fn change(&mut self, key: TallyKey, change: impl FnOnce(&mut Tally)) {
        let Some(tally) = self.tallies.get_mut(&key) else { return };
        self.clock += 1;
        change(tally);
        tally.used = self.clock;
        tally.settle(&self.limits);
        if tally.is_saved(&self.limits) && !tally.changed {
            tally.changed = true;
            self.changed.entry(tally.part).or_default().push(key);
        }
    }

    fn forget_smallest(&mut self) {
        let rank = |it: &Tally| -> EvictionRank { (it.closed.is_some(), it.documents, it.used) };
        let mut all: Vec<(EvictionRank, TallyKey)> =
            self.tallies.iter().map(|(key, it)| (rank(it), *key)).collect();
        let going = all.len().div_ceil(8);
        all.select_nth_unstable(going - 1);
        for (_, key) in &all[..going] {
            self.tallies.remove(key);
        }
    }

    /// The rows of a part that have changed since they were last taken.
    pub fn take_changed(&mut self, part: Part) -> Vec<TrapRow> {
        let mut rows = Vec::new();
        for key in self.changed.remove(&part).unwrap_or_default() {
            if let Some(tally) = self.tallies.get_mut(&key).filter(|tally| tally.changed) {
                (tally.changed, tally.has_row) = (false, true);
                rows.push(tally.to_row());
            }
        }
        rows
    }

    /// Takes in what was saved, in place of what is there.
    pub fn restore(&mut self, part: Part, rows: &[TrapRow]) {
        for row in rows {
            let key = self.key_of(row);
            self.tallies.remove(&key);
            // As if it were to be saved, so that it is not: it has been.
            let make = || Tally { changed: true, ..Tally::from_row(part, row) };
            self.count(key, make, |_| ());
            if let Some(tally) = self.tallies.get_mut(&key) {
                tally.changed = false;
            }
        }
    }

    /// Forgets a part, whose lease is somebody else's now.
    pub fn forget(&mut self, part: Part) {
        self.tallies.retain(|_, tally| tally.part != part);
        self.changed.remove(&part);
    }
}
