//! What the documents of a batch tell those they lead to, and those they led to, of how far they
//! are from a seed.
//!
//! Invariant: whatever has been told stands in `outlinks` before it is told in another part
//! ([`Outbox`]).

use super::HopRules;
use crate::outbox::Outbox;
use page::ids::DocHash;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use store::ids::Part;
use store::tables::hops::{self, Distance, DistanceMessage, Leads, Says, SentState};
use store::tables::leases::Lease;
use store::tables::queue::Place;
use store::{Db, Result, Tx};

/// What a batch says of where things lead.
#[derive(Clone, Copy)]
pub struct LinkChanges<'a> {
    /// Documents, and where they lead now.
    pub leads: &'a HashMap<DocHash, Leads>,
    /// What is no document and is there from the beginning, and what it lists now.
    pub lists: &'a HashMap<DocHash, Leads>,
    /// Documents that are no seeds any more.
    pub dropped: &'a [DocHash],
}

/// What documents are told of distances.
#[derive(Debug, Default)]
pub struct DistanceUpdates {
    outbox: Outbox<DistanceMessage, Leads>,
}

/// A document or a list, where it led and where it leads.
struct LinkingDocument<'a> {
    key: (Part, DocHash),
    distances: &'a [Distance],
    before: &'a Leads,
    /// All that it led to has heard of it.
    is_sent: bool,
    now: &'a Leads,
}

impl DistanceUpdates {
    /// Works out what documents and lists tell that lead somewhere now; those that are no
    /// seeds any more are told so.
    pub fn plan(
        db: &Db,
        lease: &Lease,
        rules: &HopRules,
        place: Place,
        changes: LinkChanges<'_>,
    ) -> Result<DistanceUpdates> {
        let keys: Vec<DocHash> =
            changes.leads.keys().chain(changes.lists.keys()).copied().collect();
        let known = rules.clone();
        let (before, distances) = db.read(move |tx| {
            let graphs = known.graphs(place);
            Ok((hops::leads(tx, graphs, &keys)?, hops::distances(tx, graphs, &keys)?))
        })?;
        let graphs = rules.graphs(place);
        let mut updates = DistanceUpdates::default();
        updates.outbox.send(place.part, rules.root(changes.dropped, Says::Gone));
        let at_once = vec![Distance::At(0); graphs.kinds.len()];
        let documents = changes.leads.iter().map(|it| (it, distances.get(it.0)));
        let lists = changes.lists.iter().map(|it| (it, Some(&at_once)));
        for ((dochash, now), distances) in documents.chain(lists) {
            let Some(distances) = distances else { continue };
            let nothing = (Leads::new(), SentState::when_sent(graphs));
            let (before, known) = before.get(dochash).unwrap_or(&nothing);
            let (key, is_sent) = ((place.part, *dochash), *known == SentState::when_sent(graphs));
            updates.record(rules, &LinkingDocument { key, distances, before, is_sent, now });
        }
        let rules = rules.clone();
        updates.outbox.announce(db, lease, move |tx, meanwhile| {
            hops::save_leads(tx, rules.graphs(place), meanwhile, SentState::Sending)
        })?;
        Ok(updates)
    }

    /// Tells those a document leads to, and those it led to.
    fn record(&mut self, rules: &HopRules, document: &LinkingDocument<'_>) {
        let LinkingDocument { key, distances, before, is_sent, now } = *document;
        let nothing = BTreeSet::new();
        let mut all = before.clone();
        for (link, targets) in now {
            let told = before.get(link).filter(|_| is_sent);
            let new = targets.difference(told.unwrap_or(&nothing));
            self.record_targets(rules, document, link, new, |kind| says(distances[kind]));
            all.entry(link.clone()).or_default().extend(targets);
        }
        if rules.forgets_links() {
            for (link, targets) in before {
                let gone = targets.difference(now.get(link).unwrap_or(&nothing));
                self.record_targets(rules, document, link, gone, |_| Says::Gone);
            }
        }
        let after = if rules.forgets_links() { now } else { &all };
        if after != before || !is_sent {
            self.outbox.note(key.1, after.clone(), all);
        }
    }

    fn record_targets<'a>(
        &mut self,
        rules: &HopRules,
        document: &LinkingDocument<'_>,
        link: &str,
        targets: impl Iterator<Item = &'a (DocHash, Part)>,
        says: impl Fn(usize) -> Says,
    ) {
        let (source, link): (_, Arc<str>) = (document.key, link.into());
        for (target, part) in targets {
            let told = (0..rules.kinds.len()).map(|kind| {
                let (target, link) = (*target, link.clone());
                DistanceMessage { target, source, link, kind, says: says(kind) }
            });
            self.outbox.send(*part, told);
        }
    }

    /// The parts that are told something.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.outbox.parts()
    }

    /// What a part is told.
    pub fn to(&self, part: Part) -> &[DistanceMessage] {
        self.outbox.to(part)
    }

    /// Writes that all has been told, in the transaction that tells the own part.
    pub fn record_sent(&self, tx: &mut Tx<'_>, rules: &HopRules, place: Place) -> Result<()> {
        let graphs = rules.graphs(place);
        hops::save_leads(tx, graphs, self.outbox.sent(), SentState::when_sent(graphs))
    }
}

/// What a document says of itself.
pub(super) fn says(distance: Distance) -> Says {
    match distance {
        Distance::At(distance) => Says::At(distance),
        Distance::Lost | Distance::Unknown => Says::Lost,
    }
}
