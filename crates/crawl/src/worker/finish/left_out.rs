//! Documents that are left out, or left for later: by a rule, by what they say, or because
//! what it takes to ask for them cannot be had.
//!
//! Invariant: whatever leaves a document out is named by a code and a sentence.

use super::{Class, Finishing, activity, push, retry, said, settle, trouble};
use crate::budget::Closed;
use crate::compare::Seen;
use crate::fetch::{self, Outcome};
use crate::worker::batch::Batch;
use crate::worker::fetching::INTERNAL_ERROR;
use crate::worker::job::JobWork;
use crate::worker::tasks::{Claimed, DocumentDone};
use store::chunkfile::document::RemoveReason;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, Settlement};

/// A document that needs no request, because a rule forbids it.
pub fn forbidden(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    (code, detail, reason): (&'static str, &str, RemoveReason),
) -> Class {
    let to = Settlement::Cut(Reason::new(code, Some(detail)));
    settle(at, batch, (job, claimed), (&Seen::Forbidden { code, reason }, to, None))
}

/// A document that nobody has looked at and that is not wanted any more.
pub fn unwanted(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, entry): (&JobWork, &Entry),
    closed: &Closed,
) -> Class {
    let reason = Reason::new(Closed::CODE, Some(&closed.explain()));
    push(at, batch, (job, entry), Settlement::Unwanted(reason));
    Class::Forbidden(Closed::CODE)
}

/// The code of a page that asks not to be indexed.
pub(super) const NOINDEX: &str = "noindex";
/// The code of a page that says what the job does not want.
pub(super) const EXCLUDED_CONTENT: &str = "excluded-content";

/// A page that the job does not keep for what it says; it leads on all the same. History
/// tells of it in the words of the original.
pub(super) fn said_too_much(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    (expression, status): (&str, Option<u16>),
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
    let detail = format!("what it says matches --exclude-content {expression:?}");
    let to = Settlement::Cut(Reason::new(EXCLUDED_CONTENT, Some(&detail)));
    let seen = Seen::Forbidden { code: EXCLUDED_CONTENT, reason: RemoveReason::OutOfScope };
    settle(at, batch, (job, claimed), (&seen, to, status))
}

/// A document was asked for, and its site wants a login first: it is as it was.
pub fn asks_login(at: Finishing<'_>, batch: &mut Batch, done: &DocumentDone) -> Class {
    let DocumentDone { task, outcome, began_ms, ended_ms, .. } = done;
    let mut row = activity(at, &task.job, &task.claimed.entry, (outcome, 0, *began_ms, *ended_ms));
    row.description = Some("the site asks for a login".to_owned());
    batch.history.push(row);
    Class::Again("login".to_owned())
}

/// A document that makes this program fail when it is committed: it fails alone.
pub fn internal_error(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    message: &str,
) -> Class {
    batch.counts.errors += 1;
    let detail = format!("internal error when it was committed: {message}");
    let to = Settlement::Failed(Reason::new(INTERNAL_ERROR, Some(&detail)));
    let seen = Seen::Trouble { status: None, code: INTERNAL_ERROR.to_owned() };
    settle(at, batch, (job, claimed), (&seen, to, None))
}

/// A document of an origin that we refuse to ask, as its robots.txt has shown.
pub fn refused(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    reason: fetch::Reason,
) -> Class {
    let outcome = Outcome::Refused { reason };
    batch.history.push(activity(at, job, &claimed.entry, (&outcome, 0, at.now_ms, at.now_ms)));
    batch.counts.errors += 1;
    let to = Settlement::Failed(said(reason, &claimed.entry));
    settle(at, batch, (job, claimed), (&trouble(None, reason), to, None))
}

/// What it takes to ask for a document cannot be had (robots.txt, a session): it waits, or is
/// given up for this run.
pub fn later(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    (reason, until_ms): (Reason, i64),
) -> Class {
    let at = Finishing { not_before_ms: at.not_before_ms.max(until_ms), ..at };
    let seen = Seen::Trouble { status: None, code: reason.code().to_owned() };
    let to = retry(at, job, &claimed.entry, reason);
    batch.counts.errors += i64::from(matches!(to, Settlement::Failed(_)));
    settle(at, batch, (job, claimed), (&seen, to, None))
}
