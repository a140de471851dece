//! News of distances, passed on by the holder of a part; and the lost, found again.
//!
//! Invariants: other parts hear before the own part notes that they have, so news that a
//! crash interrupts is told again; all of it is told under the lease of the part that
//! tells, so nobody hears what is out of date.

use super::HopRules;
use super::distance_updates::says;
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::ids::{BinId, Part};
use store::tables::hops::{self, DistanceMessage, News};
use store::tables::leases::{self, Lease};
use store::tables::queue::{AddContext, Place};
use store::{Db, Result, Tx};

/// News told in one go.
const NEWS_MAX: u32 = 200;
/// Lost documents that are looked at in one go.
const LOST_MAX: u32 = 500;
/// Steps of one call, so that others have their turn.
const STEPS_MAX: usize = 50;

/// Where a part stands when it has told its news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// There is nothing to do for it.
    #[default]
    Done,
    /// There is more to do.
    More,
    /// It waits for what others have to tell.
    Waits,
}

/// Bins that have something ready because of it.
pub type WokenBins = BTreeSet<(Part, BinId)>;

/// The holder of a part, who passes its news on.
pub struct SpreadContext<'a, A> {
    pub db: &'a Db,
    pub lease: &'a Lease,
    pub rules: &'a Arc<HopRules>,
    pub place: Place,
    /// Where documents of a part are added, and how many may be let in.
    pub adding: A,
}

impl<A> SpreadContext<'_, A>
where
    A: Fn(&mut Tx<'_>, Part) -> Result<AddContext> + Clone + Send + 'static,
{
    /// Passes the news of a part on, and finds the lost again as far as that can be done.
    pub fn run(&self) -> Result<(WokenBins, Spread)> {
        let (db, place) = (self.db, self.place);
        let mut woken = BTreeSet::new();
        for _ in 0..STEPS_MAX {
            let news = db.read(move |tx| hops::unsent(tx, place, NEWS_MAX))?;
            let moves = match news.is_empty() {
                true => self.find(&mut woken)?,
                false => self.send(news, &mut woken)?,
            };
            if !moves {
                let due = db.read(move |tx| hops::is_due(tx, place))?;
                return Ok((woken, if due { Spread::Waits } else { Spread::Done }));
            }
        }
        Ok((woken, Spread::More))
    }

    /// Tells news to all they concern.
    fn send(&self, news: Vec<News>, woken: &mut WokenBins) -> Result<bool> {
        let (place, rules) = (self.place, self.rules.clone());
        let keys: Vec<DocHash> = news.iter().map(|it| it.dochash).collect();
        let leads = self.db.read(move |tx| hops::leads(tx, rules.graphs(place), &keys))?;
        let mut messages: BTreeMap<Part, Vec<DistanceMessage>> = BTreeMap::new();
        for it in &news {
            let kind = self.rules.kinds.iter().position(|kind| *kind == it.kind);
            let (Some(kind), Some((leads, _))) = (kind, leads.get(&it.dochash)) else { continue };
            for (link, targets) in leads {
                let link: Arc<str> = link.as_str().into();
                for (target, part) in targets {
                    let (source, link, says) =
                        ((place.part, it.dochash), link.clone(), says(it.distance));
                    let to = messages.entry(*part).or_default();
                    to.push(DistanceMessage { target: *target, source, link, kind, says });
                }
            }
        }
        let own = messages.remove(&place.part).unwrap_or_default();
        for (part, messages) in messages {
            woken.extend(self.receive(part, messages, Vec::new())?);
        }
        woken.extend(self.receive(place.part, own, news)?);
        Ok(true)
    }

    /// Has a part hear; `news` have been told to all with that.
    fn receive(
        &self,
        part: Part,
        messages: Vec<DistanceMessage>,
        news: Vec<News>,
    ) -> Result<Vec<(Part, BinId)>> {
        let (lease, rules) = (self.lease.clone(), self.rules.clone());
        let (place, adding) = (Place { part, ..self.place }, self.adding.clone());
        let bins = self.db.write(move |tx| {
            leases::fence(tx, &lease)?;
            let adding = adding(tx, part)?;
            let bins = rules.receive(tx, adding, &messages, &mut [])?;
            hops::mark_sent(tx, place, &news)?;
            Ok(bins)
        })?;
        Ok(bins.into_iter().map(|bin| (part, bin)).collect())
    }

    /// Finds lost documents again, once everybody who rested on them knows; when nothing
    /// else is under way, looks what is too far. Returns whether anything came of it.
    fn find(&self, woken: &mut WokenBins) -> Result<bool> {
        let (lease, rules, adding) = (self.lease.clone(), self.rules.clone(), self.adding.clone());
        let place = self.place;
        let (moves, bins) = self.db.write(move |tx| {
            leases::fence(tx, &lease)?;
            let graphs = rules.graphs(place);
            let under_way = hops::under_way(tx, place.job)?;
            if under_way.lost && !under_way.losses {
                let found = hops::find_again(tx, graphs, LOST_MAX)?;
                if !found.is_empty() {
                    return Ok((true, BTreeSet::new()));
                }
            }
            if under_way.news || (under_way.lost && hops::is_hopeful(tx, place.job)?) {
                return Ok((false, BTreeSet::new()));
            }
            let mut grown = hops::unreachable(tx, graphs, LOST_MAX)?;
            grown.extend(hops::grown(tx, graphs, LOST_MAX)?);
            let adding = adding(tx, place.part)?;
            Ok((!grown.is_empty(), rules.judge_again(tx, adding, &grown)?))
        })?;
        woken.extend(bins.into_iter().map(|bin| (place.part, bin)));
        Ok(moves)
    }
}
