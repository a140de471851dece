//! What the documents of a batch hand to those they lead to.
//!
//! Worked out before the commit, from what the part's holder alone changes. Invariants:
//! whoever is handed something stands in the parent's row before it is handed over in
//! another part, so that everything handed can be taken back; a child whose values are
//! others than before is looked at again, whether they were added or taken away.

use crate::outbox::Outbox;
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::chunkfile::document::Field;
use store::ids::{BinId, Part};
use store::tables::carrydown::{self, ChildData, Data, HandedChildren};
use store::tables::leases::Lease;
use store::tables::queue::{self, Place};
use store::{Db, Result, Tx};

/// What a document hands its children, by part and key.
pub type Hands = BTreeMap<(Part, DocHash), Data>;

/// A document's version together with what it was handed: both say whether it is the same.
pub fn sealed(version: Option<String>, data: &Data) -> Option<String> {
    if data.is_empty() {
        return version;
    }
    let print = DocHash(carrydown::print(data)).to_hex();
    Some(format!("{}\n{print}", version.unwrap_or_default()))
}

/// The version of a document that was handed the same when it was read last.
pub fn opened<'a>(stored: Option<&'a str>, data: &Data) -> Option<Option<&'a str>> {
    let (version, print) = match stored.and_then(|it| it.rsplit_once('\n')) {
        Some((version, print)) => (Some(version), Some(print)),
        None => (stored, None),
    };
    let now = (!data.is_empty()).then(|| DocHash(carrydown::print(data)).to_hex());
    (print == now.as_deref()).then_some(version)
}

/// Data as a document's record keeps it.
pub fn fields(data: &Data) -> Vec<Field> {
    let field = |(name, values): (&String, &BTreeSet<String>)| Field {
        name: name.clone(),
        values: values.iter().cloned().collect(),
    };
    data.iter().map(field).collect()
}

/// What is handed over by documents to those they lead to.
#[derive(Debug, Default)]
pub struct HandingOver {
    outbox: Outbox<ChildData, HandedChildren>,
}

impl HandingOver {
    /// Works out what documents of a part hand over that say so now.
    pub fn plan(
        db: &Db,
        lease: &Lease,
        place: Place,
        hands: &HashMap<DocHash, Hands>,
    ) -> Result<HandingOver> {
        let mut over = HandingOver::default();
        if hands.is_empty() {
            return Ok(over);
        }
        let keys: Vec<DocHash> = hands.keys().copied().collect();
        let before = db.read(move |tx| carrydown::handed(tx, place, &keys))?;
        let nothing = (HandedChildren::new(), true);
        for (parent, now) in hands {
            let (before, has_arrived) = before.get(parent).unwrap_or(&nothing);
            over.hand(place.part, *parent, now, before, *has_arrived);
        }
        over.outbox.announce(db, lease, move |tx, meanwhile| {
            carrydown::save_handed(tx, place, meanwhile, false)
        })?;
        Ok(over)
    }

    /// Hands over what a parent says now, where it is not what it handed before.
    fn hand(
        &mut self,
        own: Part,
        parent: DocHash,
        now: &Hands,
        before: &HandedChildren,
        has_arrived: bool,
    ) {
        let source = (own, parent);
        let mut handed = HandedChildren::new();
        for ((part, child), data) in now.iter().filter(|(_, data)| !data.is_empty()) {
            let print = carrydown::print(data);
            handed.insert((*part, *child), print);
            if !has_arrived || before.get(&(*part, *child)) != Some(&print) {
                let handing = ChildData { parent: source, child: *child, data: data.clone() };
                self.outbox.send(*part, [handing]);
            }
        }
        for (part, child) in before.keys().filter(|key| !handed.contains_key(key)) {
            let handing = ChildData { parent: source, child: *child, data: Data::new() };
            self.outbox.send(*part, [handing]);
        }
        if !has_arrived || handed != *before {
            let mut all = before.clone();
            all.extend(handed.clone());
            self.outbox.note(parent, handed, all);
        }
    }

    /// The parts that take something.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.outbox.parts()
    }

    /// Has a part take what it is handed. Returns the bins that have something ready
    /// because of it.
    pub fn take(&self, tx: &mut Tx<'_>, place: Place) -> Result<BTreeSet<BinId>> {
        let handings = self.outbox.to(place.part);
        if handings.is_empty() {
            return Ok(BTreeSet::new());
        }
        let news = carrydown::take(tx, place, handings)?;
        queue::look_again(tx, place, &news)
    }

    /// Writes that all has been handed over, in the transaction of the own part.
    pub fn record_sent(&self, tx: &mut Tx<'_>, place: Place) -> Result<()> {
        carrydown::save_handed(tx, place, self.outbox.sent(), true)
    }
}

#[cfg(test)]
mod tests;
