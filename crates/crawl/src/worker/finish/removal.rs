//! Removals that a look leads to: let through, or kept for now and marked.
//!
//! Invariant: what is let through without a person's word is counted with the commit that
//! removes it.

use crate::batch::Batch;
use crate::compare::{Comparison, SeenDocument, is_live};
use crate::job::JobWork;
use crate::worker::finish::FinishContext;
use crate::worker::leases::check::LeaseKey;
use store::chunkfile::document::{Change, RemoveReason};
use store::tables::documents::Document;
use store::tables::removals::Presence;

/// Lets a removal through, or keeps the document for now; then the reason is returned.
pub(super) fn admit(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    lease: LeaseKey,
    known: &Document,
    compared: Comparison,
) -> (Comparison, Option<RemoveReason>) {
    let Some(Change::Remove(reason)) = compared.change else { return (compared, None) };
    if !at.gate.let_go(job, lease, reason, at.now_ms) {
        return (compared.kept_for_now(known), Some(reason));
    }
    if !reason.is_by_person() {
        *batch.job.lost.entry(reason).or_default() += 1;
    }
    (compared, None)
}

/// What the job has of a document after a look.
pub(super) fn presence(
    seen: &SeenDocument<'_>,
    compared: &Comparison,
    leaving: Option<RemoveReason>,
) -> Presence {
    match (leaving, seen) {
        (Some(reason), _) => Presence::Leaving(reason),
        (None, SeenDocument::Trouble { .. }) => Presence::Unchanged,
        _ if compared.confirm_ms.is_some() => Presence::Unchanged,
        _ if is_live(&compared.document) => Presence::Present,
        _ => Presence::Absent,
    }
}
