//! What a commit does to other documents: links that join the queue, distances that are
//! told, values that are handed over.
//!
//! Worked out before the commit, and carried out part by part: other parts first, under
//! the lease of the own, which comes last. Invariant: whatever is repeated after a crash
//! finds itself already there, or is taken back by whoever commits next.

use crate::batch::LinkGraph;
use crate::carrydown::HandingOver;
use crate::hops::{DistanceUpdates, LinkChanges};
use crate::worker::commit::turn::Turn;
use std::collections::BTreeSet;
use store::ids::Part;
use store::tables::leases;
use store::tables::queue::AddResult;
use store::{Db, Result, Tx};

/// What is to be done to other documents.
#[derive(Default)]
pub struct Effects {
    distances: DistanceUpdates,
    values: HandingOver,
}

impl Effects {
    /// Works out what a turn does.
    pub fn plan(db: &Db, turn: &Turn) -> Result<Effects> {
        let Some(commit) = &turn.commit else { return Ok(Effects::default()) };
        let (lease, place) = (&turn.lease, turn.place());
        let LinkGraph { leads, lists, no_seeds: dropped, hands } = &commit.batch.graph;
        let distances = match &turn.job.hops {
            Some(rules) => {
                let changes = LinkChanges { leads, lists, dropped };
                DistanceUpdates::plan(db, lease, rules, place, changes)?
            }
            None => DistanceUpdates::default(),
        };
        Ok(Effects { distances, values: HandingOver::plan(db, lease, place, hands)? })
    }

    /// The other parts that it concerns.
    pub fn other_parts(&self, turn: &Turn) -> BTreeSet<Part> {
        let links = turn.commit.iter().flat_map(|it| it.batch.links.by_part.keys().copied());
        let all = links.chain(self.distances.parts()).chain(self.values.parts());
        all.filter(|part| *part != turn.lease.part).collect()
    }

    /// Carries it out in a part.
    pub fn apply(&self, tx: &mut Tx<'_>, turn: &Turn, part: Part) -> Result<AddResult> {
        let distances = self.distances.to(part);
        let is_told = !distances.is_empty() || self.values.parts().any(|it| it == part);
        if part != turn.lease.part && is_told {
            // What is told must not come after what the next holder tells.
            leases::fence(tx, &turn.lease)?;
        }
        let woken = self.values.take(tx, turn.job.place(part))?;
        let links = turn.commit.as_ref().and_then(|it| it.batch.links.by_part.get(&part));
        let links = links.map_or(&[][..], Vec::as_slice);
        let mut added = match links.is_empty() && distances.is_empty() {
            true => AddResult::default(),
            false => turn.job.add(tx, part, turn.now_ms, links, distances)?,
        };
        added.woken.extend(woken);
        Ok(added)
    }

    /// Writes that all of it is done, in the transaction of the own part.
    pub fn record_done(&self, tx: &mut Tx<'_>, turn: &Turn) -> Result<()> {
        if let Some(rules) = &turn.job.hops {
            self.distances.record_sent(tx, rules, turn.place())?;
        }
        self.values.record_sent(tx, turn.place())
    }
}
