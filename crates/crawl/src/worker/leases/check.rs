//! Which leases of this process are held for sure, known to all its threads.
//!
//! A process that was frozen, or cut off from the database, for longer than a lease lasts
//! learns here that others may have its parts, before it is told so. Invariant: a lease
//! is sure only until it could be taken by somebody else, and one that was found to be
//! lost is never sure again, whatever becomes of the others.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use store::ids::Part;
use store::tables::leases::Lease;

/// One holding of a part: when the part is taken again, that is another lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseKey {
    pub part: Part,
    pub token: i64,
}

impl From<&Lease> for LeaseKey {
    fn from(lease: &Lease) -> LeaseKey {
        LeaseKey { part: lease.part, token: lease.token }
    }
}

/// What is held, and until when nobody else can hold it. Copies are the same.
#[derive(Clone, Default)]
pub struct LeaseCheck {
    held: Arc<RwLock<HeldTokens>>,
}

#[derive(Default)]
struct HeldTokens {
    tokens: HashMap<Part, i64>,
    until_ms: i64,
}

impl LeaseCheck {
    /// Whether nobody else can hold the part of a lease.
    pub fn is_held(&self, lease: LeaseKey, now_ms: i64) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        now_ms < held.until_ms && held.tokens.get(&lease.part) == Some(&lease.token)
    }

    /// Whether anything is held for sure.
    pub fn is_any_held(&self, now_ms: i64) -> bool {
        now_ms < self.held.read().unwrap_or_else(PoisonError::into_inner).until_ms
    }

    /// These and no others are held until then.
    pub fn set<'a>(&self, leases: impl Iterator<Item = &'a Lease>, until_ms: i64) {
        let tokens = leases.map(|lease| (lease.part, lease.token)).collect();
        *self.held.write().unwrap_or_else(PoisonError::into_inner) =
            HeldTokens { tokens, until_ms };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(part: i64, token: i64) -> Lease {
        let node = store::ids::NodeId(1);
        Lease { part: Part(part), role: "crawl".into(), node, token, deadline_ms: 0 }
    }

    fn key(part: i64, token: i64) -> LeaseKey {
        LeaseKey { part: Part(part), token }
    }

    #[test]
    fn a_lease_is_sure_until_its_end_and_while_it_is_among_those_renewed() {
        let check = LeaseCheck::default();
        assert!(!check.is_held(key(1, 7), 0) && !check.is_any_held(0));
        check.set([lease(1, 7), lease(2, 3)].iter(), 100);
        assert!(check.is_held(key(1, 7), 99) && check.is_held(key(2, 3), 99));
        assert!(check.is_any_held(99));
        assert!(!check.is_held(key(1, 7), 100) && !check.is_any_held(100), "it is over");
        assert!(!check.is_held(key(1, 6), 50), "another lease of the same part");
        check.set([lease(2, 3)].iter(), 200);
        assert!(!check.is_held(key(1, 7), 50), "it was lost");
        assert!(check.is_held(key(2, 3), 150));
    }
}
