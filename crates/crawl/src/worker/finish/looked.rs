//! What a connector found of a document that is not on the web, finished.
//!
//! Invariant: as for the web, the document ends in exactly one settlement; what is gone
//! needs no second look, because whoever says so has looked.

use super::{
    Class, Finishing, admitted, again, is_stored, looking, push, retry, settle, settle_present,
    unknown,
};
use crate::carrydown;
use crate::compare::{Content, Seen, Validators, compare};
use crate::extract::Beside;
use crate::repository::{Looked, Read, Reference};
use crate::worker::batch::{Batch, Had, KeptBody};
use crate::worker::job::{Found, JobWork};
use crate::worker::tasks::{Claimed, LookedDone};
use page::ids::DocHash;
use store::chunkfile::document::{Change, DocumentRecord, Fetch, RemoveReason};
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, Settlement};
use store::tables::removals::Presence;

/// The status of what was read, as for the web.
const OK: u16 = 200;

/// Takes what was found into the batch.
pub fn looked(at: Finishing<'_>, batch: &mut Batch, done: LookedDone) -> Class {
    let LookedDone { task, looked, beside, began_ms, ended_ms } = done;
    let (job, claimed) = (&*task.job, task.claimed);
    let mut read = activity(at, (job, &claimed.entry), &looked, (began_ms, ended_ms));
    read.description = read.description.or(beside.sentence());
    batch.history.push(read);
    match looked {
        Looked::Missing => gone(at, batch, (job, claimed)),
        Looked::Container { references } => {
            name(at, batch, (job, &claimed.entry), references);
            let to = again(at, job, None, Settlement::Done);
            batch.presences.insert(claimed.entry.id, Presence::Absent);
            push(at, batch, (job, &claimed.entry), to);
            Class::Kept { not_modified: true }
        }
        Looked::Same => {
            let seen = Seen::NotModified(Validators::default());
            settle(at, batch, (job, claimed), (&seen, Settlement::Done, None))
        }
        Looked::Read(read) => with_content(at, batch, (job, claimed), (*read, beside)),
        Looked::Trouble { code, detail, passes } => {
            batch.counts.errors += 1;
            let reason = Reason::new(code, Some(&detail));
            let to = match passes {
                true => retry(at, job, &claimed.entry, reason),
                false => Settlement::Failed(reason),
            };
            let seen = Seen::Trouble { status: None, code: code.to_owned() };
            settle(at, batch, (job, claimed), (&seen, to, None))
        }
    }
}

/// A document that is not there: it leaves the job.
fn gone(at: Finishing<'_>, batch: &mut Batch, (job, claimed): (&JobWork, Claimed)) -> Class {
    let Claimed { entry, known, token, .. } = claimed;
    let Some(known) = known else {
        push(at, batch, (job, &entry), Settlement::Deleted);
        return Class::Missing;
    };
    let seen = Seen::Forbidden { code: "gone", reason: RemoveReason::Gone };
    let compared = compare(&known, &seen, looking(at, job, batch));
    let (compared, leaving) = admitted(at, batch, (job, token), (&known, compared));
    if let Some(reason) = leaving {
        batch.presences.insert(entry.id, Presence::Leaving(reason));
        let to = again(at, job, Some(&compared.document), Settlement::Done);
        push(at, batch, (job, &entry), to);
        batch.document(&known, compared.document);
        return Class::Leaving;
    }
    push(at, batch, (job, &entry), Settlement::Deleted);
    let class = match compared.change {
        Some(change) => {
            batch.record(DocumentRecord::new(entry.docid.clone(), job.id.0, change));
            Class::Removed(RemoveReason::Gone)
        }
        None => Class::Missing,
    };
    batch.document(&known, compared.document);
    class
}

fn with_content(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, mut claimed): (&JobWork, Claimed),
    (read, beside): (Read, Beside),
) -> Class {
    let Read { version, facts, fields: mut said, body, modified_ms: _, references } = read;
    let data = std::mem::take(&mut claimed.data);
    for (name, values) in &data {
        said.entry(name.clone()).or_default().extend(values.iter().cloned());
    }
    let (unread, is_due) = (beside.code(), beside.is_due());
    let fields = beside.with(carrydown::fields(&said));
    name(at, batch, (job, &claimed.entry), references);
    let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
    batch.counts.bytes += length;
    let known = claimed.known.map_or_else(|| unknown(at, &claimed.entry), |known| *known);
    let content = Content {
        status: i64::from(OK),
        facts: &facts,
        fields: &fields,
        length,
        unread,
        validators: Validators::default(),
    };
    let here = looking(at, job, batch);
    let mut compared = compare(&known, &Seen::Content(content), here);
    compared.document.version = carrydown::sealed(Some(version).filter(|_| !is_due), &data);
    let change = compared.change.unwrap_or(Change::Keep);
    let mut record = DocumentRecord::new(claimed.entry.docid.clone(), job.id.0, change);
    record.fetch = Some(Fetch { status: OK, fetched_ms: at.now_ms, ..Fetch::default() });
    if is_stored(job, change, &mut compared.document, here) {
        if job.manners.bodies {
            let had = Had::Whole(facts.media_type.clone());
            let (url, date_ms) = (job.uri(&claimed.entry.docid), at.now_ms);
            let record = batch.records.len();
            batch.body(KeptBody { record, url, date_ms, had, body, truncated: false });
        }
        (record.facts, record.fields) = (Some(facts), fields);
    }
    batch.record(record);
    settle_present(at, batch, (job, &claimed.entry), (&known, compared.document));
    match change {
        Change::Add => Class::Added,
        Change::Update => Class::Updated,
        _ => Class::Kept { not_modified: false },
    }
}

/// Names what a document leads to.
fn name(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, entry): (&JobWork, &Entry),
    references: Vec<Reference>,
) {
    let (hops, parent) = (entry.hops + 1, Some((at.part, entry.dochash)));
    batch.leads_anew(job, entry.dochash);
    batch.hands_anew(job, entry.dochash);
    for reference in references {
        let dochash = DocHash::of(&reference.docid);
        if !reference.data.is_empty() {
            let child = (job.address(&reference.docid).part, dochash);
            batch.hand(entry.dochash, child, reference.data);
        }
        let found = Found { hops, parent, link: reference.link, ..Found::default() };
        batch.link((job, at.ids, at.known), (reference.docid, dochash), found);
    }
}

fn activity(
    at: Finishing<'_>,
    (job, entry): (&JobWork, &Entry),
    looked: &Looked,
    (start_ms, end_ms): (i64, i64),
) -> Activity {
    let (result, description, bytes) = match looked {
        Looked::Missing => ("MISSING", None, 0),
        Looked::Container { references } => {
            ("OK", Some(format!("leads to {} more", references.len())), 0)
        }
        Looked::Same => ("UNCHANGED", None, 0),
        Looked::Read(read) => ("OK", None, read.body.len()),
        Looked::Trouble { code, detail, .. } => (*code, Some(detail.clone()), 0),
    };
    Activity {
        id: at.ids.next(),
        connection: job.connection,
        job: Some(job.id),
        kind: "read document".to_owned(),
        entity: entry.docid.clone(),
        bytes: i64::try_from(bytes).ok(),
        result: Some(result.to_owned()),
        description,
        start_ms,
        end_ms,
    }
}
