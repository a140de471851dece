//! What came back, compared with what is known: the change that outputs must hear,
//! and the document's new row.
//!
//! Pure. Removal has a reason, and failure is not one: trouble never removes, and a
//! document that is missing is removed only when that is confirmed. Invariants: a
//! document is added only when it is not live, updated, kept or removed only when it
//! is; one without content that was never live is told as such; a tombstone says why;
//! `changes` counts what outputs were told to update, and the time before each such look is
//! restless, that before each look without a change quiet.

use crate::{extract, refetch};
use page::facts::Facts;
use page::ids::{DocHash, hash128};
use store::chunkfile::document::{Change, Field, RemoveReason};
use store::ids::{ChunkId, DocumentId, Part, Run};
use store::tables::documents::{Document, LookOutcome, Trust};
use store::tables::queue::ReasonCode;

/// A second look at a missing document comes at least this much later, if it comes
/// in the same run.
pub const CONFIRM_MS: i64 = 1_000;

/// What came back, after parsing.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum SeenDocument<'a> {
    /// A document with content.
    Content(ComparedContent<'a>),
    /// The server says it is as it was (304).
    NotModified(Validators),
    /// The server answered 404 or 410.
    Missing { status: i64 },
    /// It is elsewhere now.
    Moved {
        status: i64,
        /// Where: the part and the key.
        to: (Part, DocHash),
    },
    /// The rules say that it may not be kept: robots.txt, the page itself, the scope.
    Forbidden {
        code: ReasonCode,
        /// Why it is removed, if it is there.
        reason: RemoveReason,
    },
    /// It leaves its job without being looked at.
    Swept { reason: RemoveReason },
    /// It could not be had: a timeout, a server error, a refused connection.
    Trouble {
        /// The status, if there was an answer.
        status: Option<i64>,
        /// A word for the tables.
        code: String,
    },
}

/// A document that was read, as far as it is compared.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct ComparedContent<'a> {
    pub status: i64,
    pub facts: &'a Facts,
    /// What others say of it.
    pub fields: &'a [Field],
    /// Bytes of the body.
    pub length: i64,
    /// Why its text is not known, as a word for the tables.
    pub unread: Option<&'static str>,
    /// What to ask with next time.
    pub validators: Validators,
}

/// What makes a request conditional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// Where and when it was looked at.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct LookPosition {
    pub run: Run,
    pub now_ms: i64,
    /// The chunk that commits this, and the document's place in it.
    pub chunk: ChunkId,
    pub ordinal: i64,
}

/// What follows from the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What outputs must hear; `None` is nothing at all.
    pub change: Option<Change>,
    /// The row to save.
    pub document: Document,
    /// Missing, but not yet for sure: look again at this time.
    pub confirm_ms: Option<i64>,
}

impl Comparison {
    /// The same, but that the document is not removed yet: outputs keep it, and it is asked
    /// for as before.
    pub fn kept_for_now(self, known: &Document) -> Comparison {
        let mut document = self.document;
        document.removed_ms = known.removed_ms;
        document.reason.clone_from(&known.reason);
        document.redirect = known.redirect;
        document.etag.clone_from(&known.etag);
        document.last_modified.clone_from(&known.last_modified);
        Comparison { change: None, document, confirm_ms: None }
    }
}

/// Whether outputs have the document.
pub fn is_live(document: &Document) -> bool {
    document.chunk.is_some() && document.removed_ms.is_none()
}

/// A row for a document that is seen for the first time.
pub fn unknown(id: DocumentId, docid: &str, now_ms: i64) -> Document {
    Document::new(id, DocHash::of(docid), docid.to_owned(), now_ms)
}

/// Compares what came back with what is known.
pub fn compare(known: &Document, seen: &SeenDocument<'_>, looked: LookPosition) -> Comparison {
    let mut document = known.clone();
    (document.quiet_ms, document.restless_ms) = watched(known, seen, looked.now_ms);
    document.checked_ms = looked.now_ms;
    document.checks += 1;
    let mut compared = match seen {
        SeenDocument::Content(content) => with_content(document, content, looked),
        SeenDocument::NotModified(validators) => not_modified(document, validators),
        SeenDocument::Missing { status } => {
            missing(document, *status, has_said(known, LookOutcome::Gone, *status), looked)
        }
        SeenDocument::Moved { status, to } => {
            let is_said =
                has_said(known, LookOutcome::Redirect, *status) && known.redirect == Some(*to);
            document.outcome = LookOutcome::Redirect.name().into();
            document.http_status = Some(*status);
            document.redirect = Some(*to);
            found(&mut document);
            let mut compared = remove(document, RemoveReason::Redirected, looked.now_ms);
            if !is_said {
                compared.change.get_or_insert(Change::NoContent);
            }
            compared
        }
        SeenDocument::Forbidden { code, reason } => {
            exclude(known, document, code.name(), *reason, looked)
        }
        SeenDocument::Swept { reason } => exclude(known, document, reason.name(), *reason, looked),
        SeenDocument::Trouble { status, code } => {
            document.outcome = code.clone();
            document.http_status = *status;
            Comparison { change: None, document, confirm_ms: None }
        }
    };
    replace_doubtful(&mut compared.document, seen);
    compared
}

/// A row that was damaged is whole again once an answer has replaced what was kept of it:
/// where its content is, or that it has any.
fn replace_doubtful(document: &mut Document, seen: &SeenDocument<'_>) {
    match seen {
        _ if document.trust == Trust::Whole => {}
        SeenDocument::Content(_) => document.trust = Trust::Whole,
        SeenDocument::NotModified(_) | SeenDocument::Trouble { .. } => {}
        SeenDocument::Missing { .. }
        | SeenDocument::Moved { .. }
        | SeenDocument::Forbidden { .. }
        | SeenDocument::Swept { .. } => {
            if !is_live(document) {
                (document.chunk, document.ordinal, document.body_chunk) = (None, None, None);
                document.trust = Trust::Whole;
            }
        }
    }
}

/// Whether a document without content gave the same answer the last time: then the record of
/// that answer is what counts, and garbage collection keeps it. The look that removed a document
/// told of the removal, and not of the answer.
fn has_said(known: &Document, outcome: LookOutcome, status: i64) -> bool {
    let is_told = known.removed_ms.is_none_or(|removed_ms| known.checked_ms > removed_ms);
    let is_same = known.outcome == outcome.name() && known.http_status == Some(status);
    !is_live(known) && is_told && is_same
}

/// How long the document has been watched without a change, and with one, after this look.
/// Only what outputs have can change; a gap that ended in trouble tells nothing.
fn watched(known: &Document, seen: &SeenDocument<'_>, now_ms: i64) -> (i64, i64) {
    let changed = match seen {
        SeenDocument::Content(content) => !is_same(known, content),
        SeenDocument::NotModified(_) => false,
        _ => return (known.quiet_ms, known.restless_ms),
    };
    match is_live(known) {
        true => refetch::watched(&refetch::ChangeHistory::of(known), now_ms, changed),
        false => (known.quiet_ms, known.restless_ms),
    }
}

fn is_same(document: &Document, content: &ComparedContent<'_>) -> bool {
    document.content_hash.as_deref() == Some(content_of(content).as_slice())
}

/// What a document is recognised by: its bytes, and what others say of it.
fn content_of(content: &ComparedContent<'_>) -> [u8; 16] {
    if content.fields.is_empty() {
        return content.facts.content_hash;
    }
    let mut bytes = content.facts.content_hash.to_vec();
    for field in content.fields {
        for text in std::iter::once(&field.name).chain(&field.values) {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
    }
    hash128(&bytes)
}

fn with_content(
    mut document: Document,
    content: &ComparedContent<'_>,
    looked: LookPosition,
) -> Comparison {
    let facts = content.facts;
    let live = is_live(&document);
    let same = live && is_same(&document, content);
    document.outcome = content.unread.unwrap_or(LookOutcome::Ok.name()).into();
    document.http_status = Some(content.status);
    document.fetched_ms = Some(looked.now_ms);
    document.redirect = None;
    document.removed_ms = None;
    document.reason = None;
    if !same {
        // They are of other content: a 304 for them would confirm what is not stored.
        (document.etag, document.last_modified) = (None, None);
    }
    take_validators(&mut document, &content.validators);
    found(&mut document);
    if same {
        return Comparison { change: Some(Change::Keep), document, confirm_ms: None };
    }
    document.media_type = Some(facts.media_type.clone());
    document.language = facts.language.clone();
    document.title = (!facts.title.is_empty()).then(|| facts.title.clone());
    document.length = Some(content.length);
    document.content_hash = Some(content_of(content).to_vec());
    document.text_hash = Some(facts.text_hash.to_vec());
    document.simhash = Some(facts.simhash.cast_signed());
    document.changed_ms = Some(looked.now_ms);
    document.chunk = Some(looked.chunk);
    document.ordinal = Some(looked.ordinal);
    let change = if live { Change::Update } else { Change::Add };
    document.changes += i64::from(live);
    Comparison { change: Some(change), document, confirm_ms: None }
}

fn not_modified(mut document: Document, validators: &Validators) -> Comparison {
    // A text that could not be read is no better known than it was.
    if extract::words_of(&document.outcome).is_none() {
        document.outcome = LookOutcome::NotModified.name().into();
    }
    document.http_status = Some(304);
    take_validators(&mut document, validators);
    found(&mut document);
    // Only a live document is asked for conditionally; to another it says nothing.
    let change = is_live(&document).then_some(Change::Keep);
    Comparison { change, document, confirm_ms: None }
}

/// An answer may repeat validators of the same content or leave them out; each that it leaves
/// out stays (RFC 9111, section 3.2).
fn take_validators(document: &mut Document, validators: &Validators) {
    if validators.etag.is_some() {
        document.etag.clone_from(&validators.etag);
    }
    if validators.last_modified.is_some() {
        document.last_modified.clone_from(&validators.last_modified);
    }
}

/// It is not missing.
fn found(document: &mut Document) {
    document.missing = 0;
    document.missing_run = None;
    document.missing_ms = None;
}

fn missing(mut document: Document, status: i64, is_said: bool, looked: LookPosition) -> Comparison {
    document.outcome = LookOutcome::Gone.name().into();
    document.http_status = Some(status);
    let first_ms = *document.missing_ms.get_or_insert(looked.now_ms);
    let first_run = *document.missing_run.get_or_insert(looked.run);
    document.missing += 1;
    let confirmed =
        document.missing > 1 && (first_run != looked.run || looked.now_ms - first_ms >= CONFIRM_MS);
    if !is_live(&document) {
        // Nobody has it, so there is nothing to be sure about.
        let change = (!is_said).then_some(Change::NoContent);
        return Comparison { change, document, confirm_ms: None };
    }
    if !confirmed {
        let confirm_ms = Some(first_ms + CONFIRM_MS);
        return Comparison { change: None, document, confirm_ms };
    }
    remove(document, RemoveReason::Gone, looked.now_ms)
}

/// It is not kept, whatever it says.
fn exclude(
    known: &Document,
    mut document: Document,
    outcome: &str,
    reason: RemoveReason,
    looked: LookPosition,
) -> Comparison {
    document.outcome = outcome.to_owned();
    let mut compared = remove(document, reason, looked.now_ms);
    if known.redirect.is_some() && known.outcome != outcome {
        // Where it led is in the link index, and counts no more.
        compared.change.get_or_insert(Change::NoContent);
    }
    compared
}

/// Makes a tombstone of a live document; of another, only what was seen is noted.
fn remove(mut document: Document, reason: RemoveReason, now_ms: i64) -> Comparison {
    if !is_live(&document) {
        return Comparison { change: None, document, confirm_ms: None };
    }
    document.removed_ms = Some(now_ms);
    document.reason = Some(reason.name().to_owned());
    // A later answer must be whole: validators of what is gone would get a 304.
    document.etag = None;
    document.last_modified = None;
    Comparison { change: Some(Change::Remove(reason)), document, confirm_ms: None }
}

#[cfg(test)]
mod tests;
