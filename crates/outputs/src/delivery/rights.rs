//! The leases of the parts that this process speaks for.
//!
//! Invariant: a lease is kept while something of its part is carried, and a little
//! longer; it is given back when there is nothing, so that others get their share.

use super::{Means, ROLE};
use std::collections::BTreeMap;
use store::clock;
use store::ids::Part;
use store::tables::leases::{self, Asking, Lease};
use store::{Error, Result};

struct Right {
    lease: Lease,
    /// What is carried of it.
    uses: usize,
    used_ms: i64,
}

/// The leases.
pub(super) struct Rights {
    means: Means,
    held: BTreeMap<Part, Right>,
}

impl Rights {
    pub fn new(means: Means) -> Rights {
        Rights { means, held: BTreeMap::new() }
    }

    /// The right to speak for a part, if it is to be had.
    pub fn claim(&mut self, part: Part) -> Result<Option<Lease>> {
        let now_ms = clock::now_ms();
        if !self.held.contains_key(&part) {
            let asking = Asking {
                node: self.means.ids.node(),
                node_name: self.means.node_name.clone(),
                now_ms,
                lease_ms: self.means.lease_ms,
                skew_ms: self.means.skew_ms,
            };
            let taken = self.means.db.write(move |tx| leases::take(tx, part, ROLE, &asking))?;
            let Some(lease) = taken else { return Ok(None) };
            self.held.insert(part, Right { lease, uses: 0, used_ms: now_ms });
        }
        Ok(self.held.get_mut(&part).map(|right| {
            right.uses += 1;
            right.used_ms = now_ms;
            right.lease.clone()
        }))
    }

    /// Something of a part has been carried.
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

    /// Renews what is used, and gives back what is not.
    pub fn keep(&mut self) {
        let (now_ms, lease_ms) = (clock::now_ms(), self.means.lease_ms);
        let parts: Vec<Part> = self.held.keys().copied().collect();
        for part in parts {
            let Some(right) = self.held.get_mut(&part) else { continue };
            if right.uses == 0 && now_ms - right.used_ms > lease_ms / 3 {
                self.give_back(part);
            } else if right.lease.deadline_ms - now_ms < lease_ms / 2 {
                let (lease, deadline_ms) = (right.lease.clone(), now_ms + lease_ms);
                match self.means.db.write(move |tx| leases::renew(tx, &lease, deadline_ms)) {
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

    /// Gives everything back.
    pub fn end(&mut self) {
        let parts: Vec<Part> = self.held.keys().copied().collect();
        for part in parts {
            self.give_back(part);
        }
    }

    fn give_back(&mut self, part: Part) {
        if let Some(Right { lease, .. }) = self.held.remove(&part) {
            // If this cannot be written, it runs out.
            let _ = self.means.db.write(move |tx| leases::release(tx, &lease, true));
        }
    }
}
