//! What the documents of a batch tell those they lead to, and those they led to.
//!
//! Worked out before the commit, from what the part's holder alone changes: where its
//! documents lead, and how far they are. Invariant: whatever has been told stands in
//! `outlinks`, before it is told in another part; so nothing is told that nobody would
//! ever take back.

use super::HopRules;
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use store::ids::Part;
use store::tables::hops::{self, Distance, Known, Leads, Says, Told};
use store::tables::leases::{self, Lease};
use store::tables::queue::Place;
use store::{Db, Result, Tx};

/// What a batch says of where things lead.
#[derive(Clone, Copy)]
pub struct Spoken<'a> {
    /// Documents, and where they lead now.
    pub leads: &'a HashMap<DocHash, Leads>,
    /// What is no document and is there from the beginning, and what it lists now.
    pub lists: &'a HashMap<DocHash, Leads>,
    /// Documents that are no seeds any more.
    pub dropped: &'a [DocHash],
}

/// What is told, and what is written of it.
#[derive(Debug, Default)]
pub struct Telling {
    /// What is told, by part.
    pub told: BTreeMap<Part, Vec<Told>>,
    /// Where documents lead when all is told.
    leads: Vec<(DocHash, Leads)>,
    /// Where they lead, or led: as long as not all is told.
    meanwhile: Vec<(DocHash, Leads)>,
}

impl Telling {
    /// Works out what documents and lists tell that lead somewhere now; those that are no
    /// seeds any more are told so.
    pub fn plan(
        (db, lease): (&Db, &Lease),
        (rules, place): (&HopRules, Place),
        spoken: Spoken<'_>,
    ) -> Result<Telling> {
        let keys: Vec<DocHash> = spoken.leads.keys().chain(spoken.lists.keys()).copied().collect();
        let known = rules.clone();
        let (before, distances) = db.read(move |tx| {
            let graphs = known.graphs(place);
            Ok((hops::leads(tx, graphs, &keys)?, hops::distances(tx, graphs, &keys)?))
        })?;
        let graphs = rules.graphs(place);
        let mut telling = Telling::default();
        telling.tell(place.part, rules.root(spoken.dropped, Says::Gone));
        let at_once = vec![Distance::At(0); graphs.kinds.len()];
        let documents = spoken.leads.iter().map(|it| (it, distances.get(it.0)));
        let lists = spoken.lists.iter().map(|it| (it, Some(&at_once)));
        for ((dochash, now), distances) in documents.chain(lists) {
            let Some(distances) = distances else { continue };
            let nothing = (Leads::new(), Known::when_told(graphs));
            let (before, known) = before.get(dochash).unwrap_or(&nothing);
            let source = (place.part, *dochash);
            telling.document(
                rules,
                (source, distances),
                (before, *known == Known::when_told(graphs), now),
            );
        }
        if telling.told.keys().any(|part| *part != place.part) {
            let (lease, rules) = (lease.clone(), rules.clone());
            let meanwhile = std::mem::take(&mut telling.meanwhile);
            db.write(move |tx| {
                leases::fence(tx, &lease)?;
                hops::save_leads(tx, rules.graphs(place), &meanwhile, Known::Telling)
            })?;
        }
        Ok(telling)
    }

    fn document(
        &mut self,
        rules: &HopRules,
        (source, distances): ((Part, DocHash), &[Distance]),
        (before, is_told, now): (&Leads, bool, &Leads),
    ) {
        let nothing = BTreeSet::new();
        let mut all = before.clone();
        for (link, targets) in now {
            let told = before.get(link).filter(|_| is_told);
            let new = targets.difference(told.unwrap_or(&nothing));
            self.each(rules, (source, link), new, |kind| says(distances[kind]));
            all.entry(link.clone()).or_default().extend(targets);
        }
        if rules.forgets_links() {
            for (link, targets) in before {
                let gone = targets.difference(now.get(link).unwrap_or(&nothing));
                self.each(rules, (source, link), gone, |_| Says::Gone);
            }
        }
        let after = if rules.forgets_links() { now } else { &all };
        if after != before || !is_told {
            self.leads.push((source.1, after.clone()));
            self.meanwhile.push((source.1, all));
        }
    }

    fn each<'a>(
        &mut self,
        rules: &HopRules,
        (source, link): ((Part, DocHash), &str),
        targets: impl Iterator<Item = &'a (DocHash, Part)>,
        says: impl Fn(usize) -> Says,
    ) {
        let link: Arc<str> = link.into();
        for (target, part) in targets {
            let told = (0..rules.kinds.len()).map(|kind| {
                let (target, link) = (*target, link.clone());
                Told { target, source, link, kind, says: says(kind) }
            });
            self.told.entry(*part).or_default().extend(told);
        }
    }

    fn tell(&mut self, part: Part, told: Vec<Told>) {
        if !told.is_empty() {
            self.told.entry(part).or_default().extend(told);
        }
    }

    /// What a part is told.
    pub fn to(&self, part: Part) -> &[Told] {
        self.told.get(&part).map_or(&[], Vec::as_slice)
    }

    /// All has been told, in the transaction that tells the own part.
    pub fn is_told(&self, tx: &mut Tx<'_>, (rules, place): (&HopRules, Place)) -> Result<()> {
        let graphs = rules.graphs(place);
        hops::save_leads(tx, graphs, &self.leads, Known::when_told(graphs))
    }
}

/// What a document says of itself.
pub(super) fn says(distance: Distance) -> Says {
    match distance {
        Distance::At(distance) => Says::At(distance),
        Distance::Lost | Distance::Unknown => Says::Lost,
    }
}
