//! Documents that are left out, or left for later: by a rule, by what they say, or because
//! what it takes to ask for them cannot be had.
//!
//! Invariant: whatever leaves a document out is named by a code and a sentence.

use super::web_answer::activity;
use super::{Class, Finishing, Look, push, retry, said, settle, trouble};
use crate::batch::Batch;
use crate::budget::Closed;
use crate::compare::Seen;
use crate::fetch::{self, Outcome};
use crate::job::JobWork;
use crate::worker::ask::fetch_threads::INTERNAL_ERROR;
use crate::worker::ask::tasks::{Claimed, DocumentDone};
use store::chunkfile::document::RemoveReason;
use store::ids::IdMaker;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, Settlement};

/// A rule that forbids a document.
#[derive(Clone, Copy)]
pub(crate) struct Exclusion<'a> {
    /// A word for the tables.
    pub code: &'static str,
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
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    why: Exclusion<'_>,
) -> Class {
    let to = Settlement::Cut(Reason::new(why.code, Some(why.detail)));
    let seen = Seen::Forbidden { code: why.code, reason: why.reason };
    settle(at, batch, job, claimed, Look { seen, to, status: None })
}

/// A document that nobody has looked at and that is not wanted any more.
pub(crate) fn unwanted(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
    closed: &Closed,
) -> Class {
    let reason = Reason::new(Closed::CODE, Some(&closed.explain()));
    push(at, batch, job, entry, Settlement::Unwanted(reason));
    Class::Forbidden(Closed::CODE)
}

/// The code of a page that asks not to be indexed.
pub(super) const NOINDEX: &str = "noindex";
/// The code of a page that says what the job does not want.
pub(super) const EXCLUDED_CONTENT: &str = "excluded-content";

/// A page that the job does not keep for what it says; it leads on all the same. History
/// tells of it in the words of the original.
pub(super) fn exclude_content(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    expression: &str,
    status: Option<u16>,
) -> Class {
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
    let to = Settlement::Cut(Reason::new(EXCLUDED_CONTENT, Some(&detail)));
    let seen = Seen::Forbidden { code: EXCLUDED_CONTENT, reason: RemoveReason::OutOfScope };
    settle(at, batch, job, claimed, Look { seen, to, status })
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
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    message: &str,
) -> Class {
    batch.counts.errors += 1;
    let detail = format!("internal error when it was committed: {message}");
    let to = Settlement::Failed(Reason::new(INTERNAL_ERROR, Some(&detail)));
    let seen = Seen::Trouble { status: None, code: INTERNAL_ERROR.to_owned() };
    settle(at, batch, job, claimed, Look { seen, to, status: None })
}

/// A document of an origin that we refuse to ask, as its robots.txt has shown.
pub(crate) fn refused(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    reason: fetch::Reason,
) -> Class {
    let outcome = Outcome::Refused { reason };
    batch.history.push(Activity {
        start_ms: at.now_ms,
        end_ms: at.now_ms,
        ..activity(at.ids.next(), job, &claimed.entry, &outcome)
    });
    batch.counts.errors += 1;
    let to = Settlement::Failed(said(reason, &claimed.entry));
    settle(at, batch, job, claimed, Look { seen: trouble(None, reason), to, status: None })
}

/// What it takes to ask for a document cannot be had (robots.txt, a session): it waits, or is
/// given up for this run.
pub(crate) fn later(
    at: Finishing<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: Claimed,
    why: LeftForLater,
) -> Class {
    let LeftForLater { reason, until_ms } = why;
    let at = Finishing { not_before_ms: at.not_before_ms.max(until_ms), ..at };
    let seen = Seen::Trouble { status: None, code: reason.code().to_owned() };
    let to = retry(at, job, &claimed.entry, reason);
    batch.counts.errors += i64::from(matches!(to, Settlement::Failed(_)));
    settle(at, batch, job, claimed, Look { seen, to, status: None })
}
