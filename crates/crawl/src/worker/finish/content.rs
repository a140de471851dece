//! A document whose content was read, finished, wherever it came from: compared, stored if it is
//! new, settled; and what it leads to.
//!
//! Invariant: a document that was read is present in its job, and the chunk has a record of it.

use super::{FinishContext, ResultClass, again, looking, push, unknown};
use crate::batch::{Batch, Had, KeptBody};
use crate::compare::{self, ComparedContent, LookPosition, SeenDocument, Validators, compare};
use crate::fetch::HeaderMap;
use crate::job::{JobWork, LinkOrigin, names_requisites};
use crate::repository::Reference;
use crate::targets::Target;
use crate::worker::ask::tasks::ClaimedDocument;
use bytes::Bytes;
use page::facts::Facts;
use page::ids::DocHash;
use std::net::IpAddr;
use store::chunkfile::document::{Change, DocumentRecord, DocumentRole, Fetch, Field};
use store::tables::carrydown::Data;
use store::tables::documents::Document;
use store::tables::queue::{Entry, Settlement};
use store::tables::removals::Presence;

/// What was read of a document.
pub(super) struct ReadDocument {
    pub status: u16,
    pub fetched_ms: i64,
    /// What it is recognised by next time, beside its validators.
    pub version: Option<String>,
    pub validators: Validators,
    pub facts: Facts,
    /// What others say of it.
    pub fields: Vec<Field>,
    /// Bytes of the body.
    pub length: i64,
    /// Why its text is not known, as a word for the tables.
    pub unread: Option<&'static str>,
    /// The next run is to read it again, whatever it is recognised by.
    pub is_due: bool,
    /// Who answered with which headers, if a server did.
    pub answer: Option<(IpAddr, HeaderMap)>,
    pub body: Bytes,
    /// Whether a limit cut the body.
    pub truncated: bool,
}

/// Compares a document that was read with what is known of it, and settles it: the job has it.
pub(super) fn settle_read(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    read: ReadDocument,
) -> ResultClass {
    let ClaimedDocument { entry, known, .. } = claimed;
    let known = known.map_or_else(|| unknown(at, &entry), |known| *known);
    let (status, fetched_ms) = (read.status, read.fetched_ms);
    let content = ComparedContent {
        status: i64::from(status),
        facts: &read.facts,
        fields: &read.fields,
        length: read.length,
        unread: read.unread,
        validators: read.validators,
    };
    let looked = looking(at, job, batch);
    let mut compared = compare(&known, &SeenDocument::Content(content), looked);
    let role = job.role_after(&entry, &known);
    let change = change_of(compared.change, &known, role, &read.facts);
    let document = &mut compared.document;
    document.role = role;
    document.version = read.version;
    if read.is_due {
        // Asked for without them, it comes and is read again.
        (document.etag, document.last_modified) = (None, None);
    }
    if job.only_leads(entry.hops) {
        batch.job.unlisted.insert(entry.dochash);
    }
    batch.note_role(&entry);
    let mut record = DocumentRecord::new(entry.docid.clone(), job.id.0, change);
    let (etag, last_modified) = (document.etag.clone(), document.last_modified.clone());
    record.role = role;
    record.fetch = Some(Fetch { status, fetched_ms, etag, last_modified, ..Fetch::default() });
    if store_if_new(job, change, document, looked) {
        if job.settings.bodies {
            let had = match read.answer {
                Some((ip, headers)) => Had::Answer { ip, status, headers },
                None => Had::Whole(read.facts.media_type.clone()),
            };
            let (record, url) = (batch.records.len(), job.uri(&entry.docid));
            let (body, truncated) = (read.body, read.truncated);
            batch.body(KeptBody { record, url, date_ms: fetched_ms, had, body, truncated });
        }
        (record.facts, record.fields) = (Some(read.facts), read.fields);
    }
    batch.record(record);
    let to = again(at, job, Some(&compared.document), Settlement::Done);
    batch.job.presences.insert(entry.id, Presence::Present);
    push(at, batch, job, &entry, to);
    batch.document(&known, compared.document);
    match change {
        Change::Add => ResultClass::Added,
        Change::Update => ResultClass::Updated,
        _ => ResultClass::Kept { not_modified: false },
    }
}

/// What outputs must hear of a document that was read. One that says what it said is another to
/// them if its role is, or if what is stored of it does not name what it needs.
fn change_of(
    compared: Option<Change>,
    known: &Document,
    role: DocumentRole,
    facts: &Facts,
) -> Change {
    let change = compared.unwrap_or(Change::Keep);
    let is_unnamed = !facts.requisites.is_empty() && !names_requisites(known.version.as_deref());
    let is_another = compare::is_live(known) && (known.role != role || is_unnamed);
    if change == Change::Keep && is_another { Change::Update } else { change }
}

/// Has what a document says stored with this chunk, if it is new, or if its bytes are wanted and
/// nobody has kept them so far. Returns whether it is.
fn store_if_new(
    job: &JobWork,
    change: Change,
    document: &mut Document,
    looked: LookPosition,
) -> bool {
    let bodies = job.settings.bodies;
    if change == Change::Keep && !(bodies && document.body_chunk.is_none()) {
        return false;
    }
    (document.chunk, document.ordinal) = (Some(looked.chunk), Some(looked.ordinal));
    document.body_chunk = bodies.then_some(looked.chunk);
    true
}

/// A document that another leads to.
pub(super) struct NamedLink {
    docid: String,
    dochash: DocHash,
    /// How it was found, but for who names it.
    found: LinkOrigin,
    /// What it is handed.
    data: Data,
}

impl From<Target> for NamedLink {
    fn from(target: Target) -> NamedLink {
        let found = LinkOrigin::of(&target);
        let Target { url: docid, dochash, data, .. } = target;
        NamedLink { docid, dochash, found, data }
    }
}

impl From<Reference> for NamedLink {
    fn from(reference: Reference) -> NamedLink {
        let Reference { docid, link, data } = reference;
        let dochash = DocHash::of(&docid);
        NamedLink { docid, dochash, found: LinkOrigin { link, ..LinkOrigin::default() }, data }
    }
}

/// Names what a document leads to, and hands that what it is handed.
pub(super) fn name_links(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
    links: impl Iterator<Item = NamedLink>,
) {
    let (hops, parent) = (entry.hops + 1, Some((at.part, entry.dochash)));
    batch.clear_references(job, entry.dochash);
    for named in links {
        let NamedLink { docid, dochash, found, data } = named;
        if !data.is_empty() {
            batch.hand(entry.dochash, job.address(&docid).part, dochash, data);
        }
        let found = LinkOrigin { hops, parent, ..found };
        batch.link(at.links(job), docid, dochash, found);
    }
}
