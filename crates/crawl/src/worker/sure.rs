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

/// What is held, and until when nobody else can hold it.
#[derive(Clone, Default)]
pub struct Sure {
    held: Arc<RwLock<Held>>,
}

#[derive(Default)]
struct Held {
    tokens: HashMap<Part, i64>,
    until_ms: i64,
}

impl Sure {
    /// Whether nobody else can hold a part that is held here by this token.
    pub fn is(&self, (part, token): (Part, i64), now_ms: i64) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        now_ms < held.until_ms && held.tokens.get(&part) == Some(&token)
    }

    /// Whether anything is held for sure.
    pub fn is_any(&self, now_ms: i64) -> bool {
        now_ms < self.held.read().unwrap_or_else(PoisonError::into_inner).until_ms
    }

    /// These and no others are held until then.
    pub fn renewed<'a>(&self, leases: impl Iterator<Item = &'a Lease>, until_ms: i64) {
        let tokens = leases.map(|lease| (lease.part, lease.token)).collect();
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Held { tokens, until_ms };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(part: i64, token: i64) -> Lease {
        let node = store::ids::NodeId(1);
        Lease { part: Part(part), role: "crawl".into(), node, token, deadline_ms: 0 }
    }

    #[test]
    fn a_lease_is_sure_until_its_end_and_while_it_is_among_those_renewed() {
        let sure = Sure::default();
        assert!(!sure.is((Part(1), 7), 0) && !sure.is_any(0));
        sure.renewed([lease(1, 7), lease(2, 3)].iter(), 100);
        assert!(sure.is((Part(1), 7), 99) && sure.is((Part(2), 3), 99) && sure.is_any(99));
        assert!(!sure.is((Part(1), 7), 100) && !sure.is_any(100), "it is over");
        assert!(!sure.is((Part(1), 6), 50), "another lease of the same part");
        sure.renewed([lease(2, 3)].iter(), 200);
        assert!(!sure.is((Part(1), 7), 50), "it was lost");
        assert!(sure.is((Part(2), 3), 150));
    }
}
