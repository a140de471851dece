//! What a server answered for a document, finished.
//!
//! Invariant: a redirect is no document; its target is one, with a look of its own.

use super::content::{ReadDocument, name_links, settle_read};
use super::exclusion::exclude_content;
use super::{
    FinishContext, FinishedLook, LeftAlone, ResultClass, given_up, reason_of, retry, settle,
    trouble,
};
use crate::batch::Batch;
use crate::carrydown;
use crate::compare::{SeenDocument, Validators};
use crate::connectors::web::REDIRECT;
use crate::fetch::{self, Fetched, HeaderMap, Outcome, PAGE_HOPS_MAX, Redirect};
use crate::job::{JobWork, LinkOrigin, WebJob};
use crate::scope::Cut;
use crate::worker::ask::tasks::{ClaimedDocument, DocumentDone};
use crate::worker::read::ParsedDocument;
use page::ids::DocHash;
use page::url::host_of;
use store::chunkfile::document::{Hop, RemoveReason};
use store::tables::history::Activity;
use store::tables::queue::{Entry, Reason, ReasonCode, Settlement};

/// Takes the outcome of a document into the batch.
pub(crate) fn document(
    at: FinishContext<'_>,
    batch: &mut Batch,
    done: DocumentDone,
) -> ResultClass {
    let DocumentDone { task, outcome, reading, internal, began_ms, ended_ms, .. } = done;
    let (job, claimed) = (&*task.job, task.claimed);
    let bytes = match &outcome {
        Outcome::Body(body) => i64::try_from(body.wire_bytes).unwrap_or(i64::MAX),
        _ => 0,
    };
    batch.counts.bytes += bytes;
    let mut fetch = Activity {
        bytes: Some(bytes),
        start_ms: began_ms,
        end_ms: ended_ms,
        ..activity(at.ids.next(), job, &claimed.entry, &outcome)
    };
    fetch.description = internal
        .clone()
        .or(fetch.description)
        .or_else(|| reading.as_ref().and_then(|it| it.notes.sentence()))
        .or_else(|| claimed.entry.role.is_requisite().then(|| "needed by pages".to_owned()));
    let records = batch.records.len();
    let class = match outcome {
        Outcome::Body(body) => {
            let reading = reading.expect("a body has been read");
            body_read(at, batch, job, claimed, BodyAnswer { body: *body, reading, began_ms })
        }
        Outcome::Redirect(redirect) => redirected(at, batch, job, claimed, redirect),
        without_body => {
            let look = look_at(at, batch, job, &claimed.entry, without_body, internal);
            settle(at, batch, job, claimed, look)
        }
    };
    if !is_news(&class, batch.records.len() > records) {
        fetch.say_nothing_new();
    }
    batch.history.push(fetch);
    class
}

/// What an answer without a body says of its document.
fn look_at(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    entry: &Entry,
    outcome: Outcome,
    internal: Option<String>,
) -> FinishedLook<'static> {
    let status = outcome.status();
    match outcome {
        Outcome::NotModified(answer) => {
            let seen = SeenDocument::NotModified(validators(&answer.headers));
            FinishedLook { seen, to: Settlement::Done, status }
        }
        Outcome::Gone { status } => {
            let seen = SeenDocument::Missing { status: i64::from(status) };
            FinishedLook { seen, to: Settlement::Done, status: Some(status) }
        }
        Outcome::Refused { reason: reason @ fetch::Reason::MediaType } => {
            let seen = SeenDocument::Forbidden {
                code: ReasonCode::MediaType,
                reason: RemoveReason::OutOfScope,
            };
            FinishedLook { seen, to: Settlement::Cut(reason_of(reason, entry)), status: None }
        }
        Outcome::Refused { reason } | Outcome::Failed { reason } => {
            batch.counts.errors += 1;
            let why = match internal {
                Some(detail) => Reason::new(&reason.code(), Some(&detail)),
                None => reason_of(reason, entry),
            };
            FinishedLook { seen: trouble(status, reason), to: Settlement::Failed(why), status }
        }
        Outcome::Retry { reason, .. } => {
            batch.counts.errors += 1;
            let to = retry(at, job, entry, reason_of(reason, entry));
            FinishedLook { seen: trouble(status, reason), to, status }
        }
        Outcome::Body(_) | Outcome::Redirect(_) => unreachable!("those are taken in elsewhere"),
    }
}

/// Whether a look found something that was not known; `has_record` says that the chunk has a
/// record of it.
fn is_news(class: &ResultClass, has_record: bool) -> bool {
    match class {
        ResultClass::Kept { .. } => false,
        ResultClass::Missing | ResultClass::Redirected => has_record,
        _ => true,
    }
}

/// An answer with a body, which has been read.
struct BodyAnswer {
    body: Fetched,
    reading: ParsedDocument,
    began_ms: i64,
}

fn body_read(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    mut claimed: ClaimedDocument,
    answer: BodyAnswer,
) -> ResultClass {
    let BodyAnswer { body, reading, began_ms } = answer;
    let ParsedDocument { facts, targets, length, noindex, excluded, notes, .. } = reading;
    let data = std::mem::take(&mut claimed.data);
    let (unread, is_due) = (notes.code(), notes.is_due());
    let fields = notes.with(carrydown::fields(&data));
    let host = host_of(&claimed.entry.docid);
    if !batch.hosts.addresses.contains_key(host) {
        batch.hosts.addresses.insert(host.to_owned(), body.peer.ip().to_string());
    }
    name_links(at, batch, job, &claimed.entry, targets.into_iter().map(Into::into));
    let status = Some(body.status);
    if noindex {
        let seen =
            SeenDocument::Forbidden { code: ReasonCode::Noindex, reason: RemoveReason::Robots };
        let to = Settlement::Cut(Reason::known(
            ReasonCode::Noindex,
            Some("the page asks not to be indexed"),
        ));
        return settle(at, batch, job, claimed, FinishedLook { seen, to, status });
    }
    if let Some(expression) = excluded {
        return exclude_content(at, batch, job, claimed, &expression, status);
    }
    let rules = job.web().and_then(WebJob::reading_rules);
    let document = ReadDocument {
        status: body.status,
        fetched_ms: began_ms,
        version: carrydown::sealed(rules, &data),
        validators: validators(&body.headers),
        facts,
        fields,
        length,
        unread,
        is_due,
        answer: Some((body.peer.ip(), body.headers)),
        body: body.body,
        truncated: body.truncated,
    };
    settle_read(at, batch, job, claimed, document)
}

/// A document that leads elsewhere: its target joins the queue.
fn redirected(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    redirect: Redirect,
) -> ResultClass {
    let (entry, Redirect { status, to, .. }) = (&claimed.entry, redirect);
    let Some(web) = job.web() else {
        return given_up(at, batch, job, claimed, LeftAlone::Unknown);
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
    let role = entry.looked_at_as();
    let cut = match web.scope.judge_as(role, &to, entry.hops) {
        Err(Cut::Reach | Cut::NotIncluded | Cut::Excluded(_)) => Some(None),
        Err(cut) => Some(Some(cut.code())),
        Ok(()) if redirects > i64::from(PAGE_HOPS_MAX) => Some(Some(ReasonCode::Redirects)),
        Ok(()) => None,
    };
    let seen = SeenDocument::Moved { status: i64::from(status), to: (address.part, dochash) };
    batch.clear_leads(job, entry.dochash);
    if cut != Some(None) && to != entry.docid {
        let parent = Some((at.part, entry.dochash));
        let (hops, cut, list_depth) = (entry.hops, cut.flatten(), entry.list_depth);
        let (link, levels) = (REDIRECT, entry.levels);
        let found = LinkOrigin {
            hops,
            redirects,
            seed: false,
            parent,
            link,
            cut,
            list_depth,
            role,
            levels,
        };
        batch.link(at.links(job), to.clone(), dochash, found);
    }
    let hop = Hop { url: entry.docid.clone(), status };
    let before = batch.records.len();
    let look = FinishedLook { seen, to: Settlement::Done, status: Some(status) };
    let class = settle(at, batch, job, claimed, look);
    if let Some(fetch) = batch.records.get_mut(before).and_then(|record| record.fetch.as_mut()) {
        fetch.final_url = Some(to);
        fetch.redirects.push(hop);
    }
    class
}

fn validators(headers: &HeaderMap) -> Validators {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    Validators { etag: text("etag"), last_modified: text("last-modified") }
}

/// A request for a document, for the history.
pub(super) fn activity(id: i64, job: &JobWork, entry: &Entry, outcome: &Outcome) -> Activity {
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
        id,
        connection: job.connection,
        job: Some(job.id),
        kind: "fetch".to_owned(),
        entity: entry.docid.clone(),
        bytes: Some(0),
        result: Some(result),
        description,
        start_ms: 0,
        end_ms: 0,
    }
}
