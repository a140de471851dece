//! Refetch: when a document of a continuous job is looked at again, and what then.
//!
//! Pure: no clock, no database, no randomness. [`next_look`] is asked after a look, with
//! what the document's row says then. Three policies: the same time always,
//! ManifoldCF's formula, and an estimate of how often the document changes ([`estimate`])
//! that spends a job's fetches where changes are ([`allowance`]).
//!
//! Invariants: a blank interval is never; with the estimate a look never comes before the
//! least interval nor after the most, whatever the row says; a document that is due for
//! both a look and its end at the same time is looked at. A connector's bounds for one
//! document go before the job's.

mod allowance;
mod estimate;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use allowance::Allowance;
pub use store::tables::jobs::Refetch;

use estimate::{Belief, Prior};
use store::tables::documents::Document;
use store::tables::jobs::Job;
pub use store::tables::queue::Action;

/// The most time between two looks that the estimate gives by itself, where the job
/// names none: what changed too fast, or not at all, for a year may be different now.
pub const REST_MAX_MS: i64 = 365 * 86_400_000;

/// Without an allowance, a document is looked at when it is as likely to have changed as not.
const CHANCE: f64 = 0.5;

/// A document that has changed with this chance is not left alone for longer than a
/// allowance's rest, even if a look is not worth its price.
const SURE: f64 = 0.95;

/// What a job says of looking again. A blank interval is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Policy {
    pub refetch: Refetch,
    /// Least time between looks; blank is: never again.
    pub min_ms: Option<i64>,
    /// Most time between looks.
    pub max_ms: Option<i64>,
    /// How long a document lives.
    pub expiration_ms: Option<i64>,
}

impl Policy {
    /// The rule and the intervals of a job.
    pub fn of(job: &Job) -> Policy {
        Policy {
            refetch: job.refetch,
            min_ms: job.interval_ms,
            max_ms: job.interval_max_ms,
            expiration_ms: job.expiration_ms,
        }
    }
}

/// Earliest and latest time for something, as a connector says for one document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Bounds {
    pub earliest_ms: Option<i64>,
    pub latest_ms: Option<i64>,
}

/// What is known of a document after a look at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChangeHistory {
    /// When it was first seen.
    pub first_ms: i64,
    /// When it was last looked at.
    pub checked_ms: i64,
    /// When a change was last found.
    pub changed_ms: Option<i64>,
    pub checks: i64,
    /// Looks that found it changed.
    pub changes: i64,
    /// Time between two looks of which the later found no change.
    pub quiet_ms: i64,
    /// Time between two looks of which the later found a change.
    pub restless_ms: i64,
    /// When it originated, if the connector says so; otherwise it does with each look.
    pub origin_ms: Option<i64>,
    /// The connector's bounds for the next look.
    pub look: Bounds,
    /// The connector's bounds for its end.
    pub end: Bounds,
}

/// When something is done with a document next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Next {
    /// When; `None` is never.
    pub at_ms: Option<i64>,
    pub action: Action,
}

impl ChangeHistory {
    /// What a document's row tells. Only the connector knows origin and bounds.
    pub fn of(document: &Document) -> ChangeHistory {
        ChangeHistory {
            first_ms: document.first_ms,
            checked_ms: document.checked_ms,
            changed_ms: document.changed_ms,
            checks: document.checks,
            changes: document.changes,
            quiet_ms: document.quiet_ms,
            restless_ms: document.restless_ms,
            ..ChangeHistory::default()
        }
    }
}

/// The time a document was watched without and with a change, counting the look that is
/// taking place. `known` is what was known before it.
pub fn watched(known: &ChangeHistory, now_ms: i64, changed: bool) -> (i64, i64) {
    // A clock that was set back must not take back what was watched.
    let since_ms = now_ms.saturating_sub(known.checked_ms).max(0);
    match (known.checks > 0, changed) {
        (false, _) => (known.quiet_ms, known.restless_ms),
        (true, false) => (known.quiet_ms.saturating_add(since_ms), known.restless_ms),
        (true, true) => (known.quiet_ms, known.restless_ms.saturating_add(since_ms)),
    }
}

/// When a document is looked at again or expires: the earlier of the two, and the look
/// if both are at the same time.
pub fn next_look(
    policy: &Policy,
    known: &ChangeHistory,
    now_ms: i64,
    allowance: Option<&Allowance>,
) -> Next {
    let wait_ms = policy.min_ms.map(|min_ms| match policy.refetch {
        Refetch::Fixed => min_ms,
        Refetch::Formula => formula_ms(policy, min_ms, known),
        Refetch::Estimate => estimate_ms(policy, min_ms, known, allowance),
    });
    let look_ms = within(known.look, wait_ms.map(|wait_ms| now_ms.saturating_add(wait_ms.max(0))));
    let origin_ms = known.origin_ms.unwrap_or(now_ms);
    let end_ms = policy.expiration_ms.map(|life_ms| origin_ms.saturating_add(life_ms));
    let end_ms = within(known.end, end_ms);
    let (at_ms, action) = match (look_ms, end_ms) {
        (Some(look_ms), Some(end_ms)) if end_ms < look_ms => (Some(end_ms), Action::Expire),
        (None, Some(end_ms)) => (Some(end_ms), Action::Expire),
        (look_ms, _) => (look_ms, Action::Fetch),
    };
    Next { at_ms: at_ms.map(|at_ms| at_ms.max(now_ms)), action }
}

/// Bounds hold even for what would never be: the latest time makes it happen. It also
/// goes before the earliest, if they contradict each other.
fn within(bounds: Bounds, at_ms: Option<i64>) -> Option<i64> {
    let at_ms = at_ms.map(|at_ms| at_ms.max(bounds.earliest_ms.unwrap_or(i64::MIN)));
    match (at_ms, bounds.latest_ms) {
        (Some(at_ms), Some(latest_ms)) => Some(at_ms.min(latest_ms)),
        (at_ms, latest_ms) => at_ms.or(latest_ms),
    }
}

/// ManifoldCF's: the interval, and the mean time between changes up to the last look.
/// It counts the first sight as a change, so an unchanging document waits as long as it
/// has been known: twice as long each time.
fn formula_ms(policy: &Policy, min_ms: i64, known: &ChangeHistory) -> i64 {
    let changes = known.changes.max(0).saturating_add(1);
    let average_ms = known.checked_ms.saturating_sub(known.first_ms).max(0) / changes;
    min_ms.saturating_add(average_ms).min(policy.max_ms.unwrap_or(i64::MAX))
}

fn estimate_ms(
    policy: &Policy,
    min_ms: i64,
    known: &ChangeHistory,
    allowance: Option<&Allowance>,
) -> i64 {
    let wait_ms = match allowance {
        None => Belief::of(known, Prior::of_interval(min_ms)).likely_ms(CHANCE),
        Some(allowance) => {
            let belief = Belief::of(known, allowance.prior());
            let wait_ms = belief.worthwhile_ms(allowance.price_ms()).unwrap_or(f64::INFINITY);
            wait_ms.min(allowance.rest_ms().max(belief.likely_ms(SURE)))
        }
    };
    let max_ms = policy.max_ms.unwrap_or(REST_MAX_MS.max(min_ms));
    // A float that is too large for an integer becomes the largest.
    (wait_ms as i64).max(min_ms).min(max_ms)
}
