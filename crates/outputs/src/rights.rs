//! The leases of the parts that this process works on in one role.
//!
//! Invariant: a lease is kept while something of its part is under way, and a little
//! longer; it is given back when there is nothing, so that others get their share.

use std::collections::BTreeMap;
use std::sync::Arc;
use store::ids::{IdMaker, Part};
use store::tables::leases::{self, Lease, LeaseRequest};
use store::{Db, Error, Result, clock};

/// Who asks for leases, and on what terms.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Claimant {
    pub db: Db,
    /// Makes ids for this node, which is registered.
    pub ids: Arc<IdMaker>,
    pub node_name: String,
    /// How long a lease lasts.
    pub lease_ms: i64,
    /// How far clocks may differ.
    pub skew_ms: i64,
}

struct Right {
    lease: Lease,
    /// What is under way of it.
    uses: usize,
    used_ms: i64,
    /// Whether nobody has asked since it was taken.
    is_new: bool,
}

/// The leases of a role that are held, and when each was last used.
pub(crate) struct Rights {
    context: Claimant,
    role: &'static str,
    held: BTreeMap<Part, Right>,
}

impl Rights {
    pub fn new(context: Claimant, role: &'static str) -> Rights {
        Rights { context, role, held: BTreeMap::new() }
    }

    /// The right to work on a part, if it is to be had.
    pub fn claim(&mut self, part: Part) -> Result<Option<Lease>> {
        let now_ms = clock::now_ms();
        if !self.held.contains_key(&part) {
            let asking = LeaseRequest {
                node: self.context.ids.node(),
                node_name: self.context.node_name.clone(),
                now_ms,
                lease_ms: self.context.lease_ms,
                skew_ms: self.context.skew_ms,
            };
            let role = self.role;
            let taken = self.context.db.write(move |tx| leases::take(tx, part, role, &asking))?;
            let Some(lease) = taken else { return Ok(None) };
            self.held.insert(part, Right { lease, uses: 0, used_ms: now_ms, is_new: true });
        }
        Ok(self.held.get_mut(&part).map(|right| {
            right.uses += 1;
            right.used_ms = now_ms;
            right.lease.clone()
        }))
    }

    /// Whether a right was taken since this was last asked: somebody else may have had it.
    pub fn is_new(&mut self, part: Part) -> bool {
        self.held.get_mut(&part).is_some_and(|right| std::mem::replace(&mut right.is_new, false))
    }

    /// Something of a part is done.
    pub fn done(&mut self, lease: &Lease, is_lost: bool) {
        let Some(right) = self.held.get_mut(&lease.part).filter(|it| it.lease.token == lease.token)
        else {
            return;
        };
        right.uses = right.uses.saturating_sub(1);
        right.used_ms = clock::now_ms();
        if is_lost {
            self.held.remove(&lease.part);
        }
    }

    /// Whether the lease of a part is held.
    pub fn holds(&self, part: Part) -> bool {
        self.held.contains_key(&part)
    }

    /// The leases that are held now.
    pub fn leases(&self) -> Vec<Lease> {
        self.held.values().map(|right| right.lease.clone()).collect()
    }

    /// Holds on to everything for another while, used or not.
    pub fn hold(&mut self) {
        let now_ms = clock::now_ms();
        self.held.values_mut().for_each(|right| right.used_ms = now_ms);
    }

    /// Renews what is used, and gives back what is not.
    pub fn keep(&mut self) {
        let (now_ms, lease_ms) = (clock::now_ms(), self.context.lease_ms);
        let parts: Vec<Part> = self.held.keys().copied().collect();
        for part in parts {
            let Some(right) = self.held.get_mut(&part) else { continue };
            if right.uses == 0 && now_ms - right.used_ms > lease_ms / 3 {
                self.give_back(part);
            } else if right.lease.deadline_ms - now_ms < lease_ms / 2 {
                let (lease, deadline_ms) = (right.lease.clone(), now_ms + lease_ms);
                match self.context.db.write(move |tx| leases::renew(tx, &lease, deadline_ms)) {
                    Ok(()) => right.lease.deadline_ms = deadline_ms,
                    Err(Error::LeaseLost { .. }) => {
                        self.held.remove(&part);
                    }
                    // Whoever writes under it is told if it is lost.
                    Err(_) => {}
                }
            }
        }
    }

    /// Gives all leases back.
    pub fn end(&mut self) {
        let parts: Vec<Part> = self.held.keys().copied().collect();
        for part in parts {
            self.give_back(part);
        }
    }

    fn give_back(&mut self, part: Part) {
        if let Some(Right { lease, .. }) = self.held.remove(&part) {
            // If this cannot be written, it runs out.
            let _ = self.context.db.write(move |tx| leases::release(tx, &lease, true));
        }
    }
}
