//! Documents that are finished without being looked at: not found again, given up for a
//! run, or swept out of their job.
//!
//! Invariants: outputs hear of a removal exactly when the document was theirs and no other
//! job keeps it; what a run has not found again is only marked, and leaves once that is
//! released.

use super::{FinishContext, Forbidding, ResultClass, again, looking, note_unread, push};
use crate::batch::Batch;
use crate::compare::{self, SeenDocument, compare};
use crate::job::JobWork;
use crate::worker::ask::tasks::ClaimedDocument;
use store::chunkfile::document::{Change, DocumentRecord, DocumentRole, RemoveReason};
use store::tables::documents::Document;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, ReasonCode, RoleChange, Settlement};
use store::tables::removals::{Mark, Presence};

/// A document that an older run queued and this one has not found: it is not looked at.
pub(crate) fn stale(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
) -> ResultClass {
    push(at, batch, job, entry, Settlement::Stale);
    ResultClass::Forbidden(Forbidding::Stale)
}

/// A document that leaves its job. Outputs hear of it, unless another job keeps it.
pub(crate) fn swept(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    reason: RemoveReason,
    shared: Option<DocumentRole>,
) -> ResultClass {
    let ClaimedDocument { entry, known, too_far, .. } = claimed;
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
        return ResultClass::Leaving;
    }
    push(at, batch, job, &entry, to);
    remove(at, batch, job, &entry, DocumentRemoval { known, shared, reason })
}

/// The rule that keeps a document out of its job, and why it is removed because of it.
fn rule_against(
    job: &JobWork,
    entry: &Entry,
    too_far: Option<String>,
) -> Option<(Reason, RemoveReason)> {
    let scope = job.web().map(|web| &web.scope);
    if let Some(scope) = scope
        && let Err(cut) = scope.judge_as(entry.looked_at_as(), &entry.docid, entry.hops)
    {
        let why = Reason::known(cut.code(), Some(&scope.explain(cut)));
        return Some((why, RemoveReason::OutOfScope));
    }
    let detail = too_far?;
    Some((Reason::known(ReasonCode::Hops, Some(&detail)), RemoveReason::HopLimit))
}

/// A document that is marked to leave its job, and whose removal was released.
pub(crate) fn leave(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    mark: Mark,
    shared: Option<DocumentRole>,
) -> ResultClass {
    let ClaimedDocument { entry, known, .. } = claimed;
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
    remove(at, batch, job, &entry, DocumentRemoval { known, shared, reason: cause })
}

/// A document that has lived for as long as its job says: it leaves the job, and is not
/// looked at. Nothing is known of one that another job keeps.
pub(crate) fn expired(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
) -> ResultClass {
    let ClaimedDocument { entry, known, .. } = claimed;
    push(at, batch, job, &entry, Settlement::Deleted);
    let shared = known.is_none().then_some(DocumentRole::Page);
    remove(at, batch, job, &entry, DocumentRemoval { known, shared, reason: RemoveReason::Expired })
}

/// A page that the run has only named as a requisite: it is one from now on.
pub(crate) fn unlinked(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    shared: Option<DocumentRole>,
) -> ResultClass {
    let ClaimedDocument { entry, known, .. } = claimed;
    batch.swept += 1;
    push(at, batch, job, &entry, Settlement::Done);
    batch.job.roles.insert(entry.id, RoleChange::Requisite);
    batch.job.requisites.insert(entry.dochash);
    match (known, shared) {
        // Only outputs of this job hear of it.
        (_, Some(DocumentRole::Page)) => batch.job.kept_by_others.push(entry.dochash),
        (Some(known), _) => become_requisite(batch, job, &entry, &known),
        (None, _) => {}
    }
    ResultClass::Updated
}

/// Tells outputs that a page is only a requisite now. What it says stays where it is.
fn become_requisite(batch: &mut Batch, job: &JobWork, entry: &Entry, known: &Document) {
    let change = if compare::is_live(known) { Change::Update } else { Change::NoContent };
    let role = DocumentRole::Requisite;
    let record = DocumentRecord::new(entry.docid.clone(), job.id.0, change);
    batch.record(DocumentRecord { role, ..record });
    batch.document(known, Document { role, ..known.clone() });
}

/// A document that leaves its job.
struct DocumentRemoval {
    known: Option<Box<Document>>,
    /// As what another job keeps it, if one does.
    shared: Option<DocumentRole>,
    reason: RemoveReason,
}

/// Tells outputs that a document is gone, if it was theirs.
fn remove(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
    removal: DocumentRemoval,
) -> ResultClass {
    let DocumentRemoval { known, shared, reason } = removal;
    let (Some(known), None) = (&known, shared) else {
        // Outputs that no other job sends it to lose it.
        batch.job.kept_by_others.push(entry.dochash);
        let is_page = known.as_ref().filter(|it| compare::is_live(it) && !it.role.is_requisite());
        if let (Some(DocumentRole::Requisite), Some(known)) = (shared, is_page) {
            become_requisite(batch, job, entry, known);
        }
        return ResultClass::Forbidden(Forbidding::Shared);
    };
    let compared = compare(known, &SeenDocument::Swept { reason }, looking(at, job, batch));
    if let Some(change) = compared.change {
        let record = DocumentRecord::new(entry.docid.clone(), job.id.0, change);
        batch.record(DocumentRecord { role: known.role, ..record });
        if change != Change::NoContent {
            batch.history.push(deletion(at, job, entry, reason));
        }
    }
    batch.document(known, compared.document);
    ResultClass::Removed(reason)
}

/// Why a run gives up documents that it could not wait for.
pub const GIVEN_UP: [ReasonCode; 2] = [ReasonCode::HostLeftAlone, ReasonCode::Throttled];

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
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    why: LeftAlone,
) -> ResultClass {
    batch.swept += 1;
    batch.counts.errors += 1;
    if let Some(known) = &claimed.known {
        note_unread(batch, &claimed.entry, known);
    }
    let (code, detail) = match why {
        LeftAlone::Throttle(throttle) => {
            let words = format!("throttle {throttle:?} of its connection allows no documents");
            (ReasonCode::Throttled, words)
        }
        LeftAlone::Because(why) => {
            (ReasonCode::HostLeftAlone, format!("{why}; the run does not wait that long"))
        }
        LeftAlone::Unknown => {
            let words = "its host was blocked for longer than the run waits";
            (ReasonCode::HostLeftAlone, words.to_owned())
        }
    };
    let reason = Reason::known(code, Some(&detail));
    push(at, batch, job, &claimed.entry, Settlement::Failed(reason.clone()));
    ResultClass::Failed(reason)
}

fn deletion(at: FinishContext<'_>, job: &JobWork, entry: &Entry, reason: RemoveReason) -> Activity {
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
