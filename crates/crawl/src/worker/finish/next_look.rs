//! When a document of a continuous job is looked at again, or ends.
//!
//! Invariant: a document that outputs have is never left as it is for ever, unless the
//! job's intervals say so: trouble postpones the next look, it does not cancel it.

use crate::compare::is_live;
use crate::job::JobWork;
use crate::refetch::{ChangeHistory, Policy, next_look};
use crate::worker::finish::FinishContext;
use store::tables::documents::Document;
use store::tables::queue::Settlement;

/// Where a document goes that would be settled for its run: in a continuous job, to its
/// next look, or to its end. `document` is what is known of it now, if that is anything.
pub(super) fn again(
    at: FinishContext<'_>,
    job: &JobWork,
    document: Option<&Document>,
    to: Settlement,
) -> Settlement {
    let goes_on = match to {
        Settlement::Done => true,
        Settlement::Failed(_) => document.is_some_and(is_live),
        _ => false,
    };
    if !goes_on || !job.definition.continuous {
        return to;
    }
    let unknown =
        || ChangeHistory { first_ms: at.now_ms, checked_ms: at.now_ms, ..ChangeHistory::default() };
    let known = document.map_or_else(unknown, ChangeHistory::of);
    let policy = Policy::of(&job.definition);
    let next = match at.allowance {
        None => next_look(&policy, &known, at.now_ms, None),
        Some(allowance) => {
            let mut allowance = allowance.borrow_mut();
            let next = next_look(&policy, &known, at.now_ms, Some(&allowance));
            allowance.spend(&known, &next, at.now_ms);
            next
        }
    };
    match next.at_ms {
        Some(check_ms) => Settlement::Again { check_ms, action: next.action },
        None => to,
    }
}
