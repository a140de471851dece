//! How far from its seeds a job goes: its filters, and what follows from distances.
//!
//! Relies on [`store::tables::hops`] for the distances. Invariant: when nothing is under
//! way in a job's graphs, every document that is within all of its filters is let in, and
//! every other is cut, or is about to be.

mod distance_updates;
mod spread;

pub(crate) use distance_updates::{DistanceUpdates, LinkChanges};
pub(crate) use spread::{Spread, SpreadContext};

use page::ids::DocHash;
use std::collections::{BTreeSet, HashSet};
use store::ids::BinId;
use store::tables::hopfilters::HopFilters;
use store::tables::hops::{
    self, Distance, DistanceMessage, Graphs, MovedDocument, NOWHERE, SEED_LINK, Says,
};
use store::tables::jobs::HopcountMode;
use store::tables::queue::{self, AddContext, Candidate, Place, ReasonCode};
use store::{Result, Tx};

/// The filters of a job that has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopRules {
    /// The kinds of links that are counted.
    kinds: Vec<String>,
    /// How many of each there may be.
    most: Vec<i64>,
    mode: HopcountMode,
}

impl HopRules {
    /// What filters say; `None` if there are none.
    pub fn new(filters: &HopFilters, mode: HopcountMode) -> Option<HopRules> {
        let (kinds, most) = filters.iter().map(|(kind, most)| (kind.clone(), *most)).unzip();
        (!filters.is_empty()).then_some(HopRules { kinds, most, mode })
    }

    /// The graphs of a job in a part.
    pub fn graphs(&self, place: Place) -> Graphs<'_> {
        Graphs { place, kinds: &self.kinds, keeps_links: self.keeps_links() }
    }

    /// Whether links are kept, so that a document that loses one finds another.
    fn keeps_links(&self) -> bool {
        self.mode != HopcountMode::NeverDelete
    }

    /// Whether links that are gone are gone for the graphs, too.
    fn forgets_links(&self) -> bool {
        self.mode == HopcountMode::Accurate
    }

    /// Why a document is too far; `None` if it is not, or nobody knows just now.
    pub fn too_far(&self, distances: &[Distance]) -> Option<String> {
        let filters = self.kinds.iter().zip(&self.most);
        let mut failing = filters
            .zip(distances)
            .filter(|((_, most), distance)| distance.is_within(**most) == Some(false));
        let ((kind, most), _) = failing.next()?;
        Some(format!("it is more than {most} links from every seed (of type {kind:?})"))
    }

    /// Which of some documents of a part are too far, each with why.
    pub fn too_far_among(
        &self,
        tx: &mut Tx<'_>,
        place: Place,
        keys: &[DocHash],
    ) -> Result<Vec<(DocHash, String)>> {
        let distances = hops::distances(tx, self.graphs(place), keys)?;
        Ok(distances
            .into_iter()
            .filter_map(|(key, distances)| Some((key, self.too_far(&distances)?)))
            .collect())
    }

    /// Tells documents of a part what is to be told, seeds that they are seeds, and cuts
    /// candidates that are too far. Returns the bins that have something ready because of
    /// it, besides the candidates.
    pub fn receive(
        &self,
        tx: &mut Tx<'_>,
        adding: AddContext,
        messages: &[DistanceMessage],
        candidates: &mut [Candidate],
    ) -> Result<BTreeSet<BinId>> {
        let place = adding.place;
        let seeds: Vec<DocHash> =
            candidates.iter().filter(|it| it.seed).map(|it| it.dochash).collect();
        let seeds = self.root(&seeds, Says::At(0));
        let messages: Vec<DistanceMessage> = messages.iter().cloned().chain(seeds).collect();
        let moved = hops::receive(tx, self.graphs(place), &messages)?;
        let keys: Vec<DocHash> =
            candidates.iter().filter(|it| is_counted(it)).map(|it| it.dochash).collect();
        let far: HashSet<DocHash> =
            self.too_far_among(tx, place, &keys)?.into_iter().map(|it| it.0).collect();
        for candidate in
            candidates.iter_mut().filter(|it| is_counted(it) && far.contains(&it.dochash))
        {
            candidate.cut.get_or_insert(ReasonCode::Hops);
        }
        self.let_in(tx, adding, &moved)
    }

    /// What documents are told that are seeds, or are none any more.
    pub fn root(&self, keys: &[DocHash], says: Says) -> Vec<DistanceMessage> {
        let kinds = 0..self.kinds.len();
        let all = keys.iter().flat_map(|key| kinds.clone().map(move |kind| (*key, kind)));
        let link = SEED_LINK.into();
        let messages = |(target, kind): (DocHash, usize)| {
            let link = std::sync::Arc::clone(&link);
            DistanceMessage { target, source: NOWHERE, link, kind, says }
        };
        all.map(messages).collect()
    }

    /// Lets documents in that have come near enough.
    fn let_in(
        &self,
        tx: &mut Tx<'_>,
        adding: AddContext,
        moved: &[MovedDocument],
    ) -> Result<BTreeSet<BinId>> {
        let is_in = |kind: usize, distance: Distance| distance.is_within(self.most[kind]);
        let mut nearer: Vec<DocHash> = moved
            .iter()
            .filter(|it| is_in(it.kind, it.now) == Some(true))
            .filter(|it| is_in(it.kind, it.before) != Some(true))
            .map(|it| it.dochash)
            .collect();
        nearer.dedup();
        if nearer.is_empty() {
            return Ok(BTreeSet::new());
        }
        let far = self.too_far_among(tx, adding.place, &nearer)?;
        nearer.retain(|key| !far.iter().any(|it| it.0 == *key));
        queue::let_in(tx, adding, &nearer)
    }

    /// What becomes of documents whose distance is another one when all is told: those
    /// that are too far are looked at again, which cuts them.
    fn judge_again(
        &self,
        tx: &mut Tx<'_>,
        adding: AddContext,
        grown: &[DocHash],
    ) -> Result<BTreeSet<BinId>> {
        let far = self.too_far_among(tx, adding.place, grown)?;
        let far: HashSet<DocHash> = far.into_iter().map(|it| it.0).collect();
        let (far, near): (Vec<DocHash>, Vec<DocHash>) =
            grown.iter().partition(|key| far.contains(key));
        let mut woken = queue::look_again(tx, adding.place, &far)?;
        woken.extend(queue::let_in(tx, adding, &near)?);
        Ok(woken)
    }
}

/// Whether it counts how far a candidate is: pages need what they need wherever it is.
fn is_counted(candidate: &Candidate) -> bool {
    candidate.cut.is_none() && !candidate.role.is_requisite()
}

#[cfg(test)]
mod tests;
