//! Documents that are finished without being looked at: not found again, given up for a
//! run, or swept out of their job.
//!
//! Invariants: outputs hear of a removal exactly when the document was theirs and no other
//! job keeps it; what a run has not found again is only marked, and leaves once that is
//! released.

use super::{Class, Finishing, again, looking, note_unread, push};
use crate::batch::Batch;
use crate::compare::{self, Seen, compare};
use crate::hops;
use crate::job::JobWork;
use crate::worker::ask::tasks::Claimed;
use store::chunkfile::document::{Change, DocumentRecord, RemoveReason};
use store::tables::documents::Document;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, Settlement};
use store::tables::removals::{Mark, Presence};

/// A document that an older run queued and this one has not found: it is not looked at.
pub(crate) fn stale(at: Finishing<'_>, batch: &mut Batch, job: &JobWork, entry: &Entry) -> Class {
    push(at, batch, job, entry, Settlement::Stale);
    Class::Forbidden("stale")
}

/// A document that leaves its job. Outputs hear of it, unless another job keeps it.
pub(crate) fn swept(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    reason: RemoveReason,
    is_shared: bool,
) -> Class {
    let Claimed { entry, known, too_far, .. } = claimed;
    batch.swept += 1;
    let forbids = rule_against(job, &entry, too_far);
    let is_named = entry.seen_run >= job.run;
    let to = match &forbids {
        // One that the run has named, but does not let in, stays known for that.
        Some((why, _)) if is_named => Settlement::Cut(why.clone()),
        _ => Settlement::Deleted,
    };
    let reason = match (reason, forbids) {
        (RemoveReason::Unreachable, Some((_, reason))) => reason,
        _ => reason,
    };
    if !reason.is_by_person() && known.as_deref().is_some_and(compare::is_live) {
        batch.job.presences.insert(entry.id, Presence::Leaving(reason));
        let to = if to == Settlement::Deleted { Settlement::Done } else { to };
        push(at, batch, job, &entry, to);
        return Class::Leaving;
    }
    push(at, batch, job, &entry, to);
    remove(at, batch, job, &entry, known.filter(|_| !is_shared), reason)
}

/// The rule that keeps a document out of its job, and why it is removed because of it.
fn rule_against(
    job: &JobWork,
    entry: &Entry,
    too_far: Option<String>,
) -> Option<(Reason, RemoveReason)> {
    let scope = job.web().map(|web| &web.scope);
    if let Some(scope) = scope
        && let Err(cut) = scope.judge(&entry.docid, entry.hops)
    {
        let why = Reason::new(cut.code(), Some(&scope.explain(cut)));
        return Some((why, RemoveReason::OutOfScope));
    }
    let detail = too_far?;
    Some((Reason::new(hops::CODE, Some(&detail)), RemoveReason::HopLimit))
}

/// A document that is marked to leave its job, and whose removal was released.
pub(crate) fn leave(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    mark: Mark,
    is_shared: bool,
) -> Class {
    let Claimed { entry, known, .. } = claimed;
    let Mark { cause, round, reason } = mark;
    batch.swept += 1;
    if round > job.removals.approved {
        *batch.job.lost.entry(cause).or_default() += 1;
    }
    let to = match (cause, reason) {
        // It is known what these answer: a link to them is no reason to ask again.
        (RemoveReason::Gone | RemoveReason::Redirected, _) if job.web().is_some() => {
            again(at, job, known.as_deref(), Settlement::Done)
        }
        (RemoveReason::OutOfScope | RemoveReason::HopLimit | RemoveReason::Robots, Some(why)) => {
            Settlement::Cut(why)
        }
        _ => Settlement::Deleted,
    };
    batch.job.presences.insert(entry.id, Presence::Absent);
    push(at, batch, job, &entry, to);
    remove(at, batch, job, &entry, known.filter(|_| !is_shared), cause)
}

/// A document that has lived for as long as its job says: it leaves the job, and is not
/// looked at. Nothing is known of one that another job keeps.
pub(crate) fn expired(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
) -> Class {
    let Claimed { entry, known, .. } = claimed;
    push(at, batch, job, &entry, Settlement::Deleted);
    remove(at, batch, job, &entry, known, RemoveReason::Expired)
}

/// Tells outputs that a document is gone, if it was theirs.
fn remove(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
    known: Option<Box<Document>>,
    reason: RemoveReason,
) -> Class {
    let Some(known) = known else {
        // Outputs that no other job sends it to lose it.
        batch.job.kept_by_others.push(entry.dochash);
        return Class::Forbidden("shared");
    };
    let code = reason.name();
    let compared = compare(&known, &Seen::Forbidden { code, reason }, looking(at, job, batch));
    if let Some(change) = compared.change {
        batch.record(DocumentRecord::new(entry.docid.clone(), job.id.0, change));
        if change != Change::NoContent {
            batch.history.push(deletion(at, job, entry, reason));
        }
    }
    batch.document(&known, compared.document);
    Class::Removed(reason)
}

/// The code of what a run has given up because it could not wait.
pub const GIVEN_UP: &str = "host-left-alone";

/// The code of what a run has given up because a throttle lets nothing of its host start.
pub const THROTTLED: &str = "throttled";

/// Why a document cannot be looked at before the run's patience ends.
pub(crate) enum LeftAlone {
    /// A throttle of its connection lets nothing of its host start.
    Throttle(String),
    /// Something else keeps its host from being asked.
    Because(String),
    /// It is not known why.
    Unknown,
}

/// A document that cannot be looked at before the run's patience ends.
pub(crate) fn given_up(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    why: LeftAlone,
) -> Class {
    batch.swept += 1;
    batch.counts.errors += 1;
    if let Some(known) = &claimed.known {
        note_unread(batch, &claimed.entry, known);
    }
    let (code, detail) = match why {
        LeftAlone::Throttle(throttle) => {
            (THROTTLED, format!("throttle {throttle:?} of its connection allows no documents"))
        }
        LeftAlone::Because(why) => (GIVEN_UP, format!("{why}; the run does not wait that long")),
        LeftAlone::Unknown => {
            (GIVEN_UP, "its host was blocked for longer than the run waits".to_owned())
        }
    };
    let reason = Reason::new(code, Some(&detail));
    push(at, batch, job, &claimed.entry, Settlement::Failed(reason.clone()));
    Class::Failed(reason)
}

fn deletion(at: Finishing<'_>, job: &JobWork, entry: &Entry, reason: RemoveReason) -> Activity {
    Activity {
        id: at.ids.next(),
        connection: job.connection,
        job: Some(job.id),
        kind: "document deletion".to_owned(),
        entity: entry.docid.clone(),
        bytes: None,
        result: Some("OK".to_owned()),
        description: Some(reason.name().to_owned()),
        start_ms: at.now_ms,
        end_ms: at.now_ms,
    }
}
