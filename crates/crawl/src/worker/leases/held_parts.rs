//! The parts that this worker holds: a lease's life, from the moment it is taken until it is given
//! back.
//!
//! Invariant: documents of a part are claimed only while its lease is held, nobody else should
//! have it, and no consumer of it is behind; one turn of a part is under way at a time, and it is
//! given back only when nothing of it is.

use crate::worker::ask::host_access::PartTerms;
use crate::worker::leases::check::LeaseKey;
use crate::worker::leases::consumer_lag::{ConsumerLag, LagNews};
use crate::worker::settings::Late;
use std::collections::BTreeMap;
use store::ids::{BinId, JobId, Part};
use store::tables::cursors::Behind;
use store::tables::leases::Lease;

/// Where a walk over the marked bins of a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkPosition {
    pub job: JobId,
    pub bin: BinId,
}

impl WalkPosition {
    pub const FIRST: WalkPosition = WalkPosition { job: JobId(i64::MIN), bin: BinId(i64::MIN) };
}

pub struct HeldParts {
    parts: BTreeMap<Part, HeldPart>,
    lag: ConsumerLag,
}

struct HeldPart {
    lease: Lease,
    /// Hosts wait a full delay from then on; 0 when the last holder left in order.
    since_ms: i64,
    turn_under_way: bool,
    /// Somebody else should have it.
    is_leaving: bool,
    /// The tallies of its patterns are in memory.
    has_tallies: bool,
    walk: WalkPosition,
}

/// Who is behind is looked up for these parts.
#[derive(Debug, PartialEq, Eq)]
pub struct LagLook {
    pub parts: Vec<Part>,
    /// Those that are behind by no more are of no interest.
    pub chunks_over: i64,
}

impl HeldParts {
    pub fn new(late: Option<Late>) -> HeldParts {
        HeldParts { parts: BTreeMap::new(), lag: ConsumerLag::new(late) }
    }

    /// A lease was taken. Unless the last holder gave it back in good order, hosts wait a full
    /// delay from now on.
    pub fn on_held(&mut self, lease: Lease, is_clean: bool, now_ms: i64) {
        let part = lease.part;
        let held = HeldPart {
            lease,
            since_ms: if is_clean { 0 } else { now_ms },
            turn_under_way: false,
            is_leaving: false,
            has_tallies: false,
            walk: WalkPosition::FIRST,
        };
        self.parts.insert(part, held);
        // Who is behind in it is looked at before anything of it is claimed.
        self.lag.forget(part);
        self.lag.look_now();
    }

    /// A part is somebody else's now, or goes back. Returns whether it was held.
    pub fn remove(&mut self, part: Part) -> bool {
        self.lag.forget(part);
        self.parts.remove(&part).is_some()
    }

    /// Somebody else should have a part.
    pub fn on_leave(&mut self, part: Part) {
        if let Some(held) = self.parts.get_mut(&part) {
            held.is_leaving = true;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn has(&self, part: Part) -> bool {
        self.parts.contains_key(&part)
    }

    /// Whether a part is still held under the lease that something was claimed under.
    pub fn holds(&self, lease: LeaseKey) -> bool {
        self.parts.get(&lease.part).is_some_and(|held| held.lease.token == lease.token)
    }

    pub fn lease(&self, part: Part) -> Option<&Lease> {
        self.parts.get(&part).map(|held| &held.lease)
    }

    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.parts.keys().copied()
    }

    /// Parts that stay, so that it is worth looking for work in them.
    pub fn staying(&self) -> Vec<Part> {
        self.parts.iter().filter(|(_, held)| !held.is_leaving).map(|(part, _)| *part).collect()
    }

    pub fn is_staying(&self, part: Part) -> bool {
        self.parts.get(&part).is_some_and(|held| !held.is_leaving)
    }

    /// Since when hosts of a part wait a full delay; 0 if they need not.
    fn since_ms(&self, part: Part) -> i64 {
        self.parts.get(&part).map_or(0, |held| held.since_ms)
    }

    /// How a part is held.
    pub fn terms(&self, part: Part) -> PartTerms {
        PartTerms { since_ms: self.since_ms(part), held: self.len() }
    }

    /// Whether documents of a part may be claimed, as far as the part is concerned.
    pub fn may_claim(&self, part: Part) -> bool {
        self.is_staying(part) && !self.lag.is_behind(part)
    }

    /// Whether a turn of a part can begin.
    pub fn is_free(&self, part: Part) -> bool {
        self.parts.get(&part).is_some_and(|held| !held.turn_under_way)
    }

    /// A turn of a part begins, under the lease that is returned.
    pub fn begin_turn(&mut self, part: Part) -> Lease {
        let held = self.parts.get_mut(&part).expect("a turn is sent for a part that is held");
        held.turn_under_way = true;
        held.lease.clone()
    }

    /// A turn that was sent under a lease is over. Returns whether that is still held: only then
    /// is what it claimed ours.
    pub fn end_turn(&mut self, lease: LeaseKey) -> bool {
        let is_ours = |held: &&mut HeldPart| held.lease.token == lease.token;
        match self.parts.get_mut(&lease.part).filter(is_ours) {
            Some(held) => {
                held.turn_under_way = false;
                true
            }
            None => false,
        }
    }

    /// Parts that others should have and that no turn is under way of.
    pub fn leaving(&self) -> Vec<Part> {
        let is_ready = |held: &HeldPart| held.is_leaving && !held.turn_under_way;
        self.parts.iter().filter(|(_, held)| is_ready(held)).map(|(part, _)| *part).collect()
    }

    /// Whether the tallies of a part must be read before anything of it is claimed.
    pub fn lacks_tallies(&self, part: Part) -> bool {
        self.parts.get(&part).is_some_and(|held| !held.has_tallies)
    }

    pub fn on_tallies(&mut self, part: Part) {
        if let Some(held) = self.parts.get_mut(&part) {
            held.has_tallies = true;
        }
    }

    /// Where the walk over the marked bins of a part goes on.
    pub fn walk(&self, part: Part) -> WalkPosition {
        self.parts.get(&part).map_or(WalkPosition::FIRST, |held| held.walk)
    }

    pub fn set_walk(&mut self, part: Part, position: WalkPosition) {
        if let Some(held) = self.parts.get_mut(&part) {
            held.walk = position;
        }
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        for held in self.parts.values_mut().filter(|held| held.since_ms > 0) {
            held.since_ms = held.since_ms.saturating_add(jump_ms);
        }
        self.lag.look_now();
    }

    /// What to look up about consumers, if it is time for that.
    pub fn begin_lag_look(&mut self, now_ms: i64) -> Option<LagLook> {
        if now_ms < self.lag.due_ms() || self.parts.is_empty() {
            return None;
        }
        let chunks_over = self.lag.begin_look(now_ms);
        Some(LagLook { parts: self.parts().collect(), chunks_over })
    }

    /// Takes in who is behind. Returns what people hear of it.
    pub fn on_lag_look(&mut self, behind: Vec<Behind>, now_ms: i64) -> Option<LagNews> {
        let held: Vec<Part> = self.parts().collect();
        self.lag.on_look(&held, behind, now_ms)
    }

    /// When it is looked again who is behind, if a part waits for that.
    pub fn next_lag_look_ms(&self) -> Option<i64> {
        self.lag.is_any_behind().then(|| self.lag.due_ms())
    }

    /// Whether some part waits for a consumer.
    pub fn is_any_behind(&self) -> bool {
        self.lag.is_any_behind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::NodeId;
    use store::tables::cursors;

    fn lease(part: i64, token: i64) -> Lease {
        Lease { part: Part(part), role: "crawl".into(), node: NodeId(1), token, deadline_ms: 0 }
    }

    fn key(part: i64, token: i64) -> LeaseKey {
        LeaseKey { part: Part(part), token }
    }

    fn held(parts: &[i64]) -> HeldParts {
        let mut held = HeldParts::new(None);
        parts.iter().for_each(|part| held.on_held(lease(*part, 1), true, 0));
        held
    }

    #[test]
    fn documents_are_claimed_of_parts_that_stay_and_that_nobody_is_behind_in() {
        let mut held = held(&[1, 2, 3]);
        assert!(held.may_claim(Part(1)) && !held.may_claim(Part(4)));
        held.on_leave(Part(2));
        assert!(!held.may_claim(Part(2)) && held.has(Part(2)), "it is to be given back");
        assert_eq!(held.staying(), [Part(1), Part(3)]);
        let behind = Behind {
            part: Part(3),
            consumer: cursors::LINKS.to_owned(),
            chunks: 1_000,
            since_ms: None,
            moved_ms: 0,
        };
        assert_eq!(held.next_lag_look_ms(), None, "nothing waits for it");
        let look = held.begin_lag_look(10_000).expect("it is time");
        assert_eq!(look.parts, [Part(1), Part(2), Part(3)]);
        assert!(held.on_lag_look(vec![behind], 10_000).is_some());
        assert!(!held.may_claim(Part(3)) && held.may_claim(Part(1)));
        assert!(held.next_lag_look_ms().is_some_and(|ms| ms > 10_000));
        assert_eq!(held.begin_lag_look(10_001), None, "not again at once");
        held.on_held(lease(3, 2), true, 10_001);
        assert!(held.may_claim(Part(3)), "another lease of it");
        assert!(held.begin_lag_look(10_002).is_some(), "which is looked at before all else");
    }

    #[test]
    fn one_turn_of_a_part_is_under_way_and_what_an_older_lease_has_claimed_is_not_ours() {
        let mut held = held(&[1]);
        assert!(held.is_free(Part(1)) && !held.is_free(Part(2)));
        assert_eq!(held.begin_turn(Part(1)).token, 1);
        assert!(!held.is_free(Part(1)));
        held.on_leave(Part(1));
        assert_eq!(held.leaving(), [], "a turn of it is under way");
        assert!(held.end_turn(key(1, 1)));
        assert_eq!(held.leaving(), [Part(1)]);
        held.begin_turn(Part(1));
        assert!(held.remove(Part(1)) && !held.remove(Part(1)));
        assert!(!held.end_turn(key(1, 1)), "it was lost");
        held.on_held(lease(1, 2), true, 0);
        held.begin_turn(Part(1));
        assert!(!held.end_turn(key(1, 1)) && !held.is_free(Part(1)), "the turn of the new lease");
        assert!(held.holds(key(1, 2)) && !held.holds(key(1, 1)));
    }

    #[test]
    fn hosts_wait_a_delay_after_a_holder_who_left_in_disorder_whatever_is_done_to_the_clock() {
        let mut held = HeldParts::new(None);
        held.on_held(lease(1, 1), true, 5_000);
        held.on_held(lease(2, 1), false, 5_000);
        assert_eq!([1, 2, 3].map(|part| held.since_ms(Part(part))), [0, 5_000, 0]);
        held.shift(-1_000);
        assert_eq!([1, 2].map(|part| held.since_ms(Part(part))), [0, 4_000]);
    }

    #[test]
    fn a_part_that_is_taken_again_is_walked_from_the_beginning_with_tallies_read_anew() {
        let mut held = held(&[1]);
        assert!(held.lacks_tallies(Part(1)) && !held.lacks_tallies(Part(2)));
        held.on_tallies(Part(1));
        let at = WalkPosition { job: JobId(3), bin: BinId(9) };
        held.set_walk(Part(1), at);
        assert!(!held.lacks_tallies(Part(1)) && held.walk(Part(1)) == at);
        held.on_held(lease(1, 2), false, 0);
        assert!(held.lacks_tallies(Part(1)) && held.walk(Part(1)) == WalkPosition::FIRST);
    }
}
