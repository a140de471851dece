//! What a commit does to other documents: links that join the queue, distances that are
//! told, values that are handed over.
//!
//! Worked out before the commit, and carried out part by part: other parts first, under
//! the lease of the own, which comes last. Invariant: whatever is repeated after a crash
//! finds itself already there, or is taken back by whoever commits next.

use super::batch::Batch;
use super::turn::Turn;
use crate::carrydown::HandingOver;
use crate::hops::{Spoken, Telling};
use std::collections::BTreeSet;
use store::ids::Part;
use store::tables::leases;
use store::tables::queue::Added;
use store::{Db, Result, Tx};

/// What is to be done to other documents.
#[derive(Default)]
pub struct Effects {
    telling: Telling,
    over: HandingOver,
}

impl Effects {
    /// Works out what a turn does.
    pub fn plan(db: &Db, turn: &Turn) -> Result<Effects> {
        let Some((_, batch)) = &turn.commit else { return Ok(Effects::default()) };
        let (at, place) = ((db, &turn.lease), turn.place());
        let telling = match &turn.job.hops {
            Some(rules) => {
                let Batch { leads, lists, no_seeds: dropped, .. } = batch;
                Telling::plan(at, (rules.as_ref(), place), Spoken { leads, lists, dropped })?
            }
            None => Telling::default(),
        };
        Ok(Effects { telling, over: HandingOver::plan(at, place, &batch.hands)? })
    }

    /// The other parts that it concerns.
    pub fn others(&self, turn: &Turn) -> BTreeSet<Part> {
        let links = turn.commit.iter().flat_map(|(_, batch)| batch.links.keys());
        let all = links.chain(self.telling.told.keys()).chain(self.over.by_part.keys());
        all.copied().filter(|part| *part != turn.lease.part).collect()
    }

    /// Carries it out in a part.
    pub fn apply(&self, tx: &mut Tx<'_>, turn: &Turn, part: Part) -> Result<Added> {
        let told = self.telling.to(part);
        let is_told = !told.is_empty() || self.over.by_part.contains_key(&part);
        if part != turn.lease.part && is_told {
            // What is told must not come after what the next holder tells.
            leases::fence(tx, &turn.lease)?;
        }
        let woken = self.over.take(tx, turn.job.place(part))?;
        let batch = turn.commit.as_ref().map(|(_, batch)| batch);
        let links = batch.and_then(|batch| batch.links.get(&part)).map_or(&[][..], Vec::as_slice);
        let mut added = match links.is_empty() && told.is_empty() {
            true => Added::default(),
            false => turn.job.add(tx, (part, turn.now_ms), (links, told))?,
        };
        added.woken.extend(woken);
        Ok(added)
    }

    /// All of it is done, with the transaction of the own part.
    pub fn is_done(&self, tx: &mut Tx<'_>, turn: &Turn) -> Result<()> {
        if let Some(rules) = &turn.job.hops {
            self.telling.is_told(tx, (rules, turn.place()))?;
        }
        self.over.has_arrived(tx, turn.place())
    }
}
