//! A document is finished: what came back becomes what the commit will write.
//!
//! Pure but for ids. Relies on `compare` for what outputs must hear. Invariant:
//! whatever came back, the document ends in exactly one settlement, and only trouble
//! is tried again.

mod admitted;
mod again;
mod left_out;
mod looked;
mod swept;

pub use left_out::{asks_login, forbidden, internal_error, later, refused, unwanted};
pub use looked::looked;
pub use swept::{GIVEN_UP, LeftAlone, THROTTLED, expired, given_up, leave, stale, swept};

use self::admitted::{admitted, presence};
use self::again::again;
use self::left_out::{EXCLUDED_CONTENT, NOINDEX, said_too_much};
use super::batch::{Batch, Had, KeptBody, Unread};
use super::job::{Found, JobWork};
use super::known::KnownLinks;
use super::leaving::RemovalGate;
use super::reading::{Reading, Target};
use super::tasks::{Claimed, DocumentDone};
use crate::carrydown;
use crate::compare::{self, Content, Looked, Seen, Validators, compare};
use crate::connectors::web::{LINK, REDIRECT};
use crate::fetch::{self, Fetched, HeaderMap, Outcome, PAGE_HOPS_MAX, Redirect};
use crate::hops;
use crate::refetch::Allowance;
use crate::scope::Cut;
use page::ids::DocHash;
use page::url::host_of;
use std::cell::RefCell;
use store::chunkfile::document::{Change, DocumentRecord, Fetch, Hop, RemoveReason};
use store::ids::{ChunkId, DocumentId, IdMaker, Part};
use store::tables::documents::Document;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, Settled, Settlement};
use store::tables::removals::Presence;

/// Where and when documents are finished.
#[derive(Clone, Copy)]
pub struct Finishing<'a> {
    /// Makes ids.
    pub ids: &'a IdMaker,
    /// Links that are queued already.
    pub known: &'a KnownLinks,
    /// The part.
    pub part: Part,
    /// The chunk that will commit them.
    pub chunk: ChunkId,
    /// The time.
    pub now_ms: i64,
    /// The host is left alone until then.
    pub not_before_ms: i64,
    /// The fetches that the job may spend, if it has said how many.
    pub allowance: Option<&'a RefCell<Allowance>>,
    /// Decides which removals take effect at once.
    pub gate: &'a RemovalGate,
}

/// What a document came to, in the words of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// New to us.
    Added,
    /// Different now.
    Updated,
    /// Looked at, and the same. Whether the server said so (304).
    Kept {
        /// The server said so, and sent nothing.
        not_modified: bool,
    },
    /// Removed, with the reason.
    Removed(RemoveReason),
    /// To be removed when the run is over, unless there are too many.
    Leaving,
    /// It leads elsewhere.
    Redirected,
    /// Not there, and never was.
    Missing,
    /// robots.txt, the page or the scope forbid it.
    Forbidden(&'static str),
    /// It will be looked at again in this run: to confirm that it is gone, or after
    /// trouble.
    Again(String),
    /// Given up for this run.
    Failed(Reason),
}

/// Takes the outcome of a document into the batch.
pub fn document(at: Finishing<'_>, batch: &mut Batch, done: DocumentDone) -> Class {
    let DocumentDone { task, outcome, reading, internal, began_ms, ended_ms, .. } = done;
    let (job, claimed) = (&*task.job, task.claimed);
    let bytes = match &outcome {
        Outcome::Body(body) => i64::try_from(body.wire_bytes).unwrap_or(i64::MAX),
        _ => 0,
    };
    batch.counts.bytes += bytes;
    let mut fetch = activity(at, job, &claimed.entry, (&outcome, bytes, began_ms, ended_ms));
    fetch.description = internal
        .clone()
        .or(fetch.description)
        .or_else(|| reading.as_ref().and_then(|it| it.beside.sentence()));
    let status = outcome.status();
    let records = batch.records.len();
    let class = match outcome {
        Outcome::Body(body) => {
            let reading = reading.expect("a body has been read");
            with_body(at, batch, (job, claimed), (*body, reading, began_ms))
        }
        Outcome::NotModified(answer) => {
            let seen = Seen::NotModified(validators(&answer.headers));
            settle(at, batch, (job, claimed), (&seen, Settlement::Done, status))
        }
        Outcome::Redirect(redirect) => redirected(at, batch, (job, claimed), redirect),
        Outcome::Gone { status } => {
            let seen = Seen::Missing { status: i64::from(status) };
            settle(at, batch, (job, claimed), (&seen, Settlement::Done, Some(status)))
        }
        Outcome::Refused { reason: reason @ fetch::Reason::MediaType } => {
            let seen = Seen::Forbidden { code: "media-type", reason: RemoveReason::OutOfScope };
            let to = Settlement::Cut(said(reason, &claimed.entry));
            settle(at, batch, (job, claimed), (&seen, to, None))
        }
        Outcome::Refused { reason } | Outcome::Failed { reason } => {
            batch.counts.errors += 1;
            let why = match internal {
                Some(detail) => Reason::new(&reason.code(), Some(&detail)),
                None => said(reason, &claimed.entry),
            };
            let to = Settlement::Failed(why);
            settle(at, batch, (job, claimed), (&trouble(status, reason), to, status))
        }
        Outcome::Retry { reason, .. } => {
            batch.counts.errors += 1;
            let to = retry(at, job, &claimed.entry, said(reason, &claimed.entry));
            settle(at, batch, (job, claimed), (&trouble(status, reason), to, status))
        }
    };
    if !is_news(&class, batch.records.len() > records) {
        fetch.say_nothing_new();
    }
    batch.history.push(fetch);
    class
}

/// Whether a look found something that was not known; `told` says that somebody must hear
/// of it.
fn is_news(class: &Class, told: bool) -> bool {
    match class {
        Class::Kept { .. } => false,
        Class::Missing | Class::Redirected => told,
        _ => true,
    }
}

/// A document that was not asked for after all: it is as it was.
pub fn back(batch: &mut Batch, entry: &Entry) {
    let to = Settlement::Back { failcount: entry.failcount, failtime: entry.failtime };
    batch.settled.push(Settled { id: entry.id, generation: entry.generation, to });
}

fn with_body(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, mut claimed): (&JobWork, Claimed),
    (body, reading, began_ms): (Fetched, Reading, i64),
) -> Class {
    let Reading { facts, targets, length, noindex, excluded, beside, .. } = reading;
    let data = std::mem::take(&mut claimed.data);
    let (unread, is_due) = (beside.code(), beside.is_due());
    let fields = beside.with(carrydown::fields(&data));
    let host = host_of(&claimed.entry.docid);
    if !batch.addresses.contains_key(host) {
        batch.addresses.insert(host.to_owned(), body.peer.ip().to_string());
    }
    name(at, batch, (job, &claimed.entry), targets);
    let status = Some(body.status);
    if noindex {
        let seen = Seen::Forbidden { code: NOINDEX, reason: RemoveReason::Robots };
        let to = Settlement::Cut(Reason::new(NOINDEX, Some("the page asks not to be indexed")));
        return settle(at, batch, (job, claimed), (&seen, to, status));
    }
    if let Some(expression) = excluded {
        return said_too_much(at, batch, (job, claimed), (&expression, status));
    }
    let content = Content {
        status: i64::from(body.status),
        facts: &facts,
        fields: &fields,
        length,
        unread,
        validators: validators(&body.headers),
    };
    let known = claimed.known.map_or_else(|| unknown(at, &claimed.entry), |known| *known);
    let looked = looking(at, job, batch);
    let mut compared = compare(&known, &Seen::Content(content), looked);
    let rules = job.web().and_then(|web| web.scope.content_rules());
    compared.document.version = carrydown::sealed(rules.map(str::to_owned), &data);
    if is_due {
        // Asked for without them, it comes and is read again.
        (compared.document.etag, compared.document.last_modified) = (None, None);
    }
    if job.only_leads(claimed.entry.hops) {
        batch.unlisted.insert(claimed.entry.dochash);
    }
    let fetch = Fetch {
        status: body.status,
        fetched_ms: began_ms,
        etag: compared.document.etag.clone(),
        last_modified: compared.document.last_modified.clone(),
        ..Fetch::default()
    };
    let change = compared.change.unwrap_or(Change::Keep);
    let mut record = DocumentRecord::new(claimed.entry.docid.clone(), job.id.0, change);
    record.fetch = Some(fetch);
    if is_stored(job, change, &mut compared.document, looked) {
        (record.facts, record.fields) = (Some(facts), fields);
        if job.manners.bodies {
            let (ip, status, headers) = (body.peer.ip(), body.status, body.headers);
            batch.body(KeptBody {
                record: batch.records.len(),
                url: claimed.entry.docid.clone(),
                date_ms: began_ms,
                had: Had::Answer { ip, status, headers },
                body: body.body,
                truncated: body.truncated,
            });
        }
    }
    batch.record(record);
    settle_present(at, batch, (job, &claimed.entry), (&known, compared.document));
    match change {
        Change::Add => Class::Added,
        Change::Update => Class::Updated,
        _ => Class::Kept { not_modified: false },
    }
}

/// Settles a document that was read: the job has it.
fn settle_present(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, entry): (&JobWork, &Entry),
    (known, document): (&Document, Document),
) {
    let to = again(at, job, Some(&document), Settlement::Done);
    batch.presences.insert(entry.id, Presence::Present);
    push(at, batch, (job, entry), to);
    batch.document(known, document);
}

/// Names what a page leads to.
fn name(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, entry): (&JobWork, &Entry),
    targets: Vec<Target>,
) {
    let (hops, parent) = (entry.hops + 1, Some((at.part, entry.dochash)));
    batch.leads_anew(job, entry.dochash);
    batch.hands_anew(job, entry.dochash);
    for target in targets {
        if !target.data.is_empty() {
            let child = (job.address(&target.url).part, target.dochash);
            batch.hand(entry.dochash, child, target.data);
        }
        let (cut, list_depth) = (target.cut, target.list_depth);
        let found = Found { hops, parent, link: LINK, cut, list_depth, ..Found::default() };
        batch.link((job, at.ids, at.known), (target.url, target.dochash), found);
    }
}

/// Whether what a document says is stored with this chunk: it is new, or its bytes are
/// wanted and nobody has kept them so far.
fn is_stored(job: &JobWork, change: Change, document: &mut Document, looked: Looked) -> bool {
    let bodies = job.manners.bodies;
    if change == Change::Keep && !(bodies && document.body_chunk.is_none()) {
        return false;
    }
    (document.chunk, document.ordinal) = (Some(looked.chunk), Some(looked.ordinal));
    document.body_chunk = bodies.then_some(looked.chunk);
    true
}

fn redirected(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    Redirect { status, to, .. }: Redirect,
) -> Class {
    let entry = &claimed.entry;
    let Some(web) = job.web() else {
        return given_up(at, batch, (job, claimed), LeftAlone::Unknown);
    };
    // A target that only differs by what the job drops from URLs is asked for as it
    // is written: otherwise it would lead to itself.
    let to = match page::url::canonical(&to, &web.spec.policy) {
        Ok(plain) if plain != entry.docid => plain,
        _ => to,
    };
    let address = job.address(&to);
    let dochash = DocHash::of(&to);
    let redirects = entry.redirects + 1;
    let cut = match web.scope.judge(&to, entry.hops) {
        Err(Cut::Reach | Cut::NotIncluded | Cut::Excluded(_)) => Some(None),
        Err(cut) => Some(Some(cut.code())),
        Ok(()) if redirects > i64::from(PAGE_HOPS_MAX) => Some(Some("redirects")),
        Ok(()) => None,
    };
    let seen = Seen::Moved { status: i64::from(status), to: (address.part, dochash) };
    batch.leads_anew(job, entry.dochash);
    if cut != Some(None) && to != entry.docid {
        let parent = Some((at.part, entry.dochash));
        let (hops, cut, list_depth) = (entry.hops, cut.flatten(), entry.list_depth);
        let link = REDIRECT;
        let found = Found { hops, redirects, seed: false, parent, link, cut, list_depth };
        batch.link((job, at.ids, at.known), (to.clone(), dochash), found);
    }
    let hop = Hop { url: entry.docid.clone(), status };
    let before = batch.records.len();
    let class = settle(at, batch, (job, claimed), (&seen, Settlement::Done, Some(status)));
    if let Some(fetch) = batch.records.get_mut(before).and_then(|record| record.fetch.as_mut()) {
        fetch.final_url = Some(to);
        fetch.redirects.push(hop);
    }
    class
}

/// Compares, and takes in what follows.
fn settle(
    at: Finishing<'_>,
    batch: &mut Batch,
    (job, claimed): (&JobWork, Claimed),
    (seen, to, status): (&Seen<'_>, Settlement, Option<u16>),
) -> Class {
    let Claimed { entry, known, token, .. } = claimed;
    let known = known.map_or_else(|| unknown(at, &entry), |known| *known);
    let compared = compare(&known, seen, looking(at, job, batch));
    let (compared, leaving) = admitted(at, batch, (job, token), (&known, compared));
    batch.presences.insert(entry.id, presence(seen, &compared, leaving));
    if let Some(change) = compared.change {
        let mut record = DocumentRecord::new(entry.docid.clone(), job.id.0, change);
        record.fetch =
            status.map(|status| Fetch { status, fetched_ms: at.now_ms, ..Fetch::default() });
        batch.record(record);
    }
    let to = match compared.confirm_ms {
        Some(check_ms) => Settlement::Retry {
            check_ms: check_ms.max(at.not_before_ms),
            failcount: entry.failcount,
            failtime: entry.failtime,
            reason: Reason::new("gone", Some("it is missing; a second look will confirm that")),
        },
        None => to,
    };
    let class = match leaving {
        Some(_) => Class::Leaving,
        None => class_of(&to, seen, compared.change),
    };
    let is_gone = matches!(seen, Seen::Missing { .. }) && to == Settlement::Done;
    let leads_on = [NOINDEX, EXCLUDED_CONTENT, hops::CODE];
    if is_gone || matches!(seen, Seen::Forbidden { code, .. } if !leads_on.contains(code)) {
        // It leads nowhere any more.
        batch.leads_anew(job, entry.dochash);
        batch.hands_anew(job, entry.dochash);
    }
    // What was not read says what it said before, as far as anybody knows.
    if matches!(seen, Seen::NotModified(_)) || matches!(to, Settlement::Failed(_)) {
        unread(batch, &entry, &compared.document);
    }
    let to = again(at, job, Some(&compared.document), to);
    push(at, batch, (job, &entry), to);
    batch.document(&known, compared.document);
    class
}

fn unread(batch: &mut Batch, entry: &Entry, document: &Document) {
    let facts = document.chunk.zip(document.ordinal);
    if let Some(facts) = facts.filter(|_| compare::is_live(document)) {
        let (docid, dochash, hops) = (entry.docid.clone(), entry.dochash, entry.hops);
        batch.unread.push(Unread { docid, dochash, hops, facts });
    }
}

fn class_of(to: &Settlement, seen: &Seen<'_>, change: Option<Change>) -> Class {
    match (to, change, seen) {
        (Settlement::Retry { reason, .. }, ..) => Class::Again(reason.code().to_owned()),
        (Settlement::Failed(reason), ..) => Class::Failed(reason.clone()),
        (_, Some(Change::Remove(reason)), _) => Class::Removed(reason),
        (_, _, Seen::Moved { .. }) => Class::Redirected,
        (_, _, Seen::Missing { .. }) => Class::Missing,
        (_, _, Seen::Forbidden { code, .. }) => Class::Forbidden(code),
        _ => Class::Kept { not_modified: true },
    }
}

fn push(at: Finishing<'_>, batch: &mut Batch, (job, entry): (&JobWork, &Entry), to: Settlement) {
    if let Settlement::Retry { check_ms, .. } | Settlement::Again { check_ms, .. } = &to {
        batch.due_ms = Some(batch.due_ms.map_or(*check_ms, |due_ms| due_ms.min(*check_ms)));
    }
    if to == Settlement::Deleted {
        batch.gone.push(entry.dochash);
        batch.leads_anew(job, entry.dochash);
        batch.hands_anew(job, entry.dochash);
    }
    if job.is_no_seed_any_more(entry) {
        batch.no_seeds.push(entry.dochash);
    }
    batch.first_ms.get_or_insert(at.now_ms);
    batch.settled.push(Settled { id: entry.id, generation: entry.generation + 1, to });
}

/// Another try after trouble, later each time, while there are tries left.
fn retry(at: Finishing<'_>, job: &JobWork, entry: &Entry, reason: Reason) -> Settlement {
    let again = job.manners.patience.again(entry.failcount, entry.failtime, at.now_ms);
    if again.is_over {
        return Settlement::Failed(reason);
    }
    let (failcount, failtime) = (Some(again.failcount), Some(again.failtime));
    let check_ms = again.check_ms.max(at.not_before_ms);
    Settlement::Retry { check_ms, failcount, failtime, reason }
}

fn looking(at: Finishing<'_>, job: &JobWork, batch: &Batch) -> Looked {
    let ordinal = i64::try_from(batch.records.len()).unwrap_or(i64::MAX);
    Looked { run: job.run, now_ms: at.now_ms, chunk: at.chunk, ordinal }
}

fn unknown(at: Finishing<'_>, entry: &Entry) -> Document {
    compare::unknown(DocumentId(at.ids.next()), &entry.docid, at.now_ms)
}

fn said(reason: fetch::Reason, entry: &Entry) -> Reason {
    Reason::new(&reason.code(), Some(&reason.sentence(host_of(&entry.docid))))
}

fn trouble(status: Option<u16>, reason: fetch::Reason) -> Seen<'static> {
    Seen::Trouble { status: status.map(i64::from), code: reason.code().into_owned() }
}

fn validators(headers: &HeaderMap) -> Validators {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    Validators { etag: text("etag"), last_modified: text("last-modified") }
}

fn activity(
    at: Finishing<'_>,
    job: &JobWork,
    entry: &Entry,
    (outcome, bytes, start_ms, end_ms): (&Outcome, i64, i64, i64),
) -> Activity {
    let reason = outcome.reason();
    let result = match outcome.status() {
        Some(status) => status.to_string(),
        None => reason.map_or_else(String::new, |reason| reason.code().into_owned()),
    };
    let description = match outcome {
        Outcome::Redirect(redirect) => Some(format!("to {}", redirect.to)),
        _ => reason.map(|reason| reason.sentence(host_of(&entry.docid))),
    };
    Activity {
        id: at.ids.next(),
        connection: job.connection,
        job: Some(job.id),
        kind: "fetch".to_owned(),
        entity: entry.docid.clone(),
        bytes: Some(bytes),
        result: Some(result),
        description,
        start_ms,
        end_ms,
    }
}
