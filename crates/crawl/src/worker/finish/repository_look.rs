//! What a connector found of a document that is not on the web, finished.
//!
//! Invariant: as for the web, the document ends in exactly one settlement; what is gone
//! needs no second look, because whoever says so has looked.

use super::content::{NamedLink, ReadDocument, name_links, settle_read};
use super::{FinishContext, FinishedLook, ResultClass, admit, again, looking, push, retry, settle};
use crate::batch::Batch;
use crate::carrydown;
use crate::compare::{SeenDocument, Validators, compare};
use crate::extract::ExtractNotes;
use crate::job::JobWork;
use crate::repository::{LookResult, Read};
use crate::worker::ask::tasks::{ClaimedDocument, LookedDone};
use store::chunkfile::document::{DocumentRecord, RemoveReason};
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, ReasonCode, Settlement};
use store::tables::removals::Presence;

/// The status of what was read, as for the web.
const OK: u16 = 200;

/// Takes what was found into the batch.
pub(crate) fn finish_look(
    at: FinishContext<'_>,
    batch: &mut Batch,
    done: LookedDone,
) -> ResultClass {
    let LookedDone { task, looked, notes, began_ms, ended_ms } = done;
    let (job, claimed) = (&*task.job, task.claimed);
    let mut read = Activity {
        start_ms: began_ms,
        end_ms: ended_ms,
        ..activity(at.ids.next(), job, &claimed.entry, &looked)
    };
    read.description = read.description.or(notes.sentence());
    batch.history.push(read);
    match looked {
        LookResult::Missing => gone(at, batch, job, claimed),
        LookResult::Container { references } => {
            let links = references.into_iter().map(NamedLink::from);
            name_links(at, batch, job, &claimed.entry, links);
            let to = again(at, job, None, Settlement::Done);
            batch.job.presences.insert(claimed.entry.id, Presence::Absent);
            push(at, batch, job, &claimed.entry, to);
            ResultClass::Kept { not_modified: true }
        }
        LookResult::Same => {
            let seen = SeenDocument::NotModified(Validators::default());
            settle(
                at,
                batch,
                job,
                claimed,
                FinishedLook { seen, to: Settlement::Done, status: None },
            )
        }
        LookResult::Read(read) => content_read(at, batch, job, claimed, *read, notes),
        LookResult::Trouble { code, detail, passes } => {
            batch.counts.errors += 1;
            let reason = Reason::new(code, Some(&detail));
            let to = match passes {
                true => retry(at, job, &claimed.entry, reason),
                false => Settlement::Failed(reason),
            };
            let seen = SeenDocument::Trouble { status: None, code: code.to_owned() };
            settle(at, batch, job, claimed, FinishedLook { seen, to, status: None })
        }
    }
}

/// A document that is not there: it leaves the job.
fn gone(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
) -> ResultClass {
    let lease = claimed.lease(at.part);
    let ClaimedDocument { entry, known, .. } = claimed;
    let Some(known) = known else {
        push(at, batch, job, &entry, Settlement::Deleted);
        return ResultClass::Missing;
    };
    let seen = SeenDocument::Forbidden { code: ReasonCode::Gone, reason: RemoveReason::Gone };
    let compared = compare(&known, &seen, looking(at, job, batch));
    let (compared, leaving) = admit(at, batch, job, lease, &known, compared);
    if let Some(reason) = leaving {
        batch.job.presences.insert(entry.id, Presence::Leaving(reason));
        let to = again(at, job, Some(&compared.document), Settlement::Done);
        push(at, batch, job, &entry, to);
        batch.document(&known, compared.document);
        return ResultClass::Leaving;
    }
    push(at, batch, job, &entry, Settlement::Deleted);
    let class = match compared.change {
        Some(change) => {
            batch.record(DocumentRecord::new(entry.docid.clone(), job.id.0, change));
            ResultClass::Removed(RemoveReason::Gone)
        }
        None => ResultClass::Missing,
    };
    batch.document(&known, compared.document);
    class
}

fn content_read(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    mut claimed: ClaimedDocument,
    read: Read,
    notes: ExtractNotes,
) -> ResultClass {
    let Read { version, facts, fields: mut given, body, modified_ms: _, references } = read;
    let data = std::mem::take(&mut claimed.data);
    for (name, values) in &data {
        given.entry(name.clone()).or_default().extend(values.iter().cloned());
    }
    let (unread, is_due) = (notes.code(), notes.is_due());
    let fields = notes.with(carrydown::fields(&given));
    name_links(at, batch, job, &claimed.entry, references.into_iter().map(NamedLink::from));
    let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
    batch.counts.bytes += length;
    let document = ReadDocument {
        status: OK,
        fetched_ms: at.now_ms,
        version: carrydown::sealed(Some(version).filter(|_| !is_due), &data),
        validators: Validators::default(),
        facts,
        fields,
        length,
        unread,
        is_due,
        answer: None,
        body,
        truncated: false,
    };
    settle_read(at, batch, job, claimed, document)
}

/// A look at a document, for the history.
fn activity(id: i64, job: &JobWork, entry: &Entry, looked: &LookResult) -> Activity {
    let (result, description, bytes) = match looked {
        LookResult::Missing => ("MISSING", None, 0),
        LookResult::Container { references } => {
            ("OK", Some(format!("leads to {} more", references.len())), 0)
        }
        LookResult::Same => ("UNCHANGED", None, 0),
        LookResult::Read(read) => ("OK", None, read.body.len()),
        LookResult::Trouble { code, detail, .. } => (*code, Some(detail.clone()), 0),
    };
    Activity {
        id,
        connection: job.connection,
        job: Some(job.id),
        kind: "read document".to_owned(),
        entity: entry.docid.clone(),
        bytes: i64::try_from(bytes).ok(),
        result: Some(result.to_owned()),
        description,
        start_ms: 0,
        end_ms: 0,
    }
}
