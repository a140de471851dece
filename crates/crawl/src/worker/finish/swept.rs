//! Documents that are finished without being looked at: not found again, given up for a
//! run, or swept out of their job.
//!
//! Invariants: outputs hear of a removal exactly when the document was theirs and no other
//! job keeps it; what a run has not found again is only marked, and leaves once that is
//! released.

use super::{Class, Finishing, again, looking, push, unread};
use crate::compare::{self, Seen, compare};
use crate::hops;
use crate::worker::batch::Batch;
use crate::worker::job::JobWork;
use crate::worker::tasks::Claimed;
use store::chunkfile::document::{Change, DocumentRecord, RemoveReason};
use store::tables::documents::Document;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, Settlement};
use store::tables::removals::{Mark, Presence};

/// A document that an older run queued and this one has not found: it is not looked at.
pub fn stale(at: Finishing<'_>, batch: &mut Batch, (job, entry): (&JobWork, &Entry)) -> Class {
    push(at, batch, (job, entry), Settlement::Stale);
    Class::Forbidden("stale")
}

/// A document that leaves its job. Outputs hear of it, unless another job keeps it.
pub fn swept(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    (reason, is_shared): (RemoveReason, bool),
) -> Class {
    let Claimed { entry, known, too_far, .. } = claimed;
    batch.swept += 1;
    // One that the run has named, but does not let in, stays known for that.
    let scope = job.web().map(|web| &web.scope);
    let cut = scope.and_then(|scope| Some((scope, scope.judge(&entry.docid, entry.hops).err()?)));
    let cut = match (cut, too_far) {
        (Some((scope, cut)), _) => Some((cut.code(), scope.explain(cut), RemoveReason::OutOfScope)),
        (None, Some(detail)) => Some((hops::CODE, detail, RemoveReason::HopLimit)),
        (None, None) => None,
    };
    let is_named = entry.seen_run >= job.run;
    let (to, cut) = match cut {
        Some((code, detail, reason)) if is_named => {
            (Settlement::Cut(Reason::new(code, Some(&detail))), Some(reason))
        }
        cut => (Settlement::Deleted, cut.map(|it| it.2)),
    };
    let reason = match (reason, cut) {
        (RemoveReason::Unreachable, Some(cut)) => cut,
        _ => reason,
    };
    if !reason.is_by_person() && known.as_deref().is_some_and(compare::is_live) {
        batch.presences.insert(entry.id, Presence::Leaving(reason));
        let to = if to == Settlement::Deleted { Settlement::Done } else { to };
        push(at, batch, (job, &entry), to);
        return Class::Leaving;
    }
    push(at, batch, (job, &entry), to);
    remove(at, batch, (job, &entry), (known.filter(|_| !is_shared), reason))
}

/// A document that is marked to leave its job, and whose removal was released.
pub fn leave(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    (mark, is_shared): (Mark, bool),
) -> Class {
    let Claimed { entry, known, .. } = claimed;
    let Mark { cause, round, reason } = mark;
    batch.swept += 1;
    if round > job.removals.approved {
        *batch.lost.entry(cause).or_default() += 1;
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
    batch.presences.insert(entry.id, Presence::Absent);
    push(at, batch, (job, &entry), to);
    remove(at, batch, (job, &entry), (known.filter(|_| !is_shared), cause))
}

/// A document that has lived for as long as its job says: it leaves the job, and is not
/// looked at. Nothing is known of one that another job keeps.
pub fn expired(at: Finishing<'_>, batch: &mut Batch, (job, claimed): (&JobWork, Claimed)) -> Class {
    let Claimed { entry, known, .. } = claimed;
    push(at, batch, (job, &entry), Settlement::Deleted);
    remove(at, batch, (job, &entry), (known, RemoveReason::Expired))
}

/// Tells outputs that a document is gone, if it was theirs.
fn remove(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, entry): (&JobWork, &Entry),
    (known, reason): (Option<Box<Document>>, RemoveReason),
) -> Class {
    let Some(known) = known else {
        // Outputs that no other job sends it to lose it.
        batch.left.push(entry.dochash);
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
pub enum LeftAlone {
    /// A throttle of its connection lets nothing of its host start.
    Throttle(String),
    /// Something else keeps its host from being asked.
    Because(String),
    /// Nobody knows.
    Unknown,
}

/// A document that cannot be looked at before the run's patience ends.
pub fn given_up(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    why: LeftAlone,
) -> Class {
    batch.swept += 1;
    batch.counts.errors += 1;
    if let Some(known) = &claimed.known {
        unread(batch, &claimed.entry, known);
    }
    let (code, detail) = match why {
        LeftAlone::Throttle(throttle) => {
            (THROTTLED, format!("throttle {throttle:?} of its connection allows it no documents"))
        }
        LeftAlone::Because(why) => (GIVEN_UP, format!("{why}; the run does not wait that long")),
        LeftAlone::Unknown => {
            (GIVEN_UP, "its host was left alone for longer than the run waits".to_owned())
        }
    };
    let reason = Reason::new(code, Some(&detail));
    push(at, batch, (job, &claimed.entry), Settlement::Failed(reason.clone()));
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
