//! Documents that are left out, or left for later: by a rule, by what they say, or because
//! what it takes to ask for them cannot be had.
//!
//! Invariant: whatever leaves a document out is named by a code and a sentence.

use super::web_answer::activity;
use super::{
    FinishContext, FinishedLook, Forbidding, ResultClass, push, reason_of, retry, settle, trouble,
};
use crate::batch::Batch;
use crate::budget::ClosedPattern;
use crate::compare::SeenDocument;
use crate::fetch::{self, Outcome};
use crate::job::JobWork;
use crate::worker::ask::tasks::{ClaimedDocument, DocumentDone};
use store::chunkfile::document::RemoveReason;
use store::ids::IdMaker;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, ReasonCode, Settlement};

/// A rule that forbids a document.
#[derive(Clone, Copy)]
pub(crate) struct Exclusion<'a> {
    pub code: ReasonCode,
    /// A sentence for people.
    pub detail: &'a str,
    /// Why it is removed, if it is there.
    pub reason: RemoveReason,
}

/// Why a document is not asked for before a time.
pub(crate) struct LeftForLater {
    pub reason: Reason,
    pub until_ms: i64,
}

/// A document that needs no request, because a rule forbids it.
pub(crate) fn forbidden(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    why: Exclusion<'_>,
) -> ResultClass {
    let to = Settlement::Cut(Reason::known(why.code, Some(why.detail)));
    let seen = SeenDocument::Forbidden { code: why.code, reason: why.reason };
    settle(at, batch, job, claimed, FinishedLook { seen, to, status: None })
}

/// A document that nobody has looked at and that is not wanted any more.
pub(crate) fn unwanted(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
    closed: &ClosedPattern,
) -> ResultClass {
    let reason = Reason::known(ReasonCode::Budget, Some(&closed.explain()));
    push(at, batch, job, entry, Settlement::Unwanted(reason));
    ResultClass::Forbidden(Forbidding::Rule(ReasonCode::Budget))
}

/// A page that the job does not keep for what it says; it leads on all the same. History
/// tells of it in the words of ManifoldCF.
pub(super) fn exclude_content(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    expression: &str,
    status: Option<u16>,
) -> ResultClass {
    batch.history.push(Activity {
        id: at.ids.next(),
        connection: job.connection,
        job: Some(job.id),
        kind: "process".to_owned(),
        entity: claimed.entry.docid.clone(),
        bytes: None,
        result: Some("EXCLUDEDCONTENT".to_owned()),
        description: Some("Rejected due to content exclusion rule".to_owned()),
        start_ms: at.now_ms,
        end_ms: at.now_ms,
    });
    let detail = format!("its content matches --exclude-content {expression:?}");
    let to = Settlement::Cut(Reason::known(ReasonCode::ExcludedContent, Some(&detail)));
    let seen = SeenDocument::Forbidden {
        code: ReasonCode::ExcludedContent,
        reason: RemoveReason::OutOfScope,
    };
    settle(at, batch, job, claimed, FinishedLook { seen, to, status })
}

/// That a document's site wants a login first, for the history.
pub(crate) fn login_activity(ids: &IdMaker, done: &DocumentDone) -> Activity {
    let DocumentDone { task, outcome, began_ms, ended_ms, .. } = done;
    Activity {
        description: Some("the site asks for a login".to_owned()),
        start_ms: *began_ms,
        end_ms: *ended_ms,
        ..activity(ids.next(), &task.job, &task.claimed.entry, outcome)
    }
}

/// A document that makes this program fail when it is committed: it fails alone.
pub(crate) fn internal_error(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    message: &str,
) -> ResultClass {
    batch.counts.errors += 1;
    let detail = format!("internal error when it was committed: {message}");
    let to = Settlement::Failed(Reason::known(ReasonCode::InternalError, Some(&detail)));
    let seen =
        SeenDocument::Trouble { status: None, code: ReasonCode::InternalError.name().to_owned() };
    settle(at, batch, job, claimed, FinishedLook { seen, to, status: None })
}

/// A document of an origin that we refuse to ask, as its robots.txt has shown.
pub(crate) fn refused(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    reason: fetch::Reason,
) -> ResultClass {
    let outcome = Outcome::Refused { reason };
    batch.history.push(Activity {
        start_ms: at.now_ms,
        end_ms: at.now_ms,
        ..activity(at.ids.next(), job, &claimed.entry, &outcome)
    });
    batch.counts.errors += 1;
    let to = Settlement::Failed(reason_of(reason, &claimed.entry));
    settle(at, batch, job, claimed, FinishedLook { seen: trouble(None, reason), to, status: None })
}

/// What it takes to ask for a document cannot be had (robots.txt, a session): it waits, or is
/// given up for this run.
pub(crate) fn later(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    why: LeftForLater,
) -> ResultClass {
    let LeftForLater { reason, until_ms } = why;
    let at = FinishContext { not_before_ms: at.not_before_ms.max(until_ms), ..at };
    let seen = SeenDocument::Trouble { status: None, code: reason.code().to_owned() };
    let to = retry(at, job, &claimed.entry, reason);
    batch.counts.errors += i64::from(matches!(to, Settlement::Failed(_)));
    settle(at, batch, job, claimed, FinishedLook { seen, to, status: None })
}
