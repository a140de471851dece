//! What became of documents that were asked for: given up, stored, led elsewhere, gone.
//!
//! The other half of `judge`, and as pure.

use super::cause::{Because, Cause};
use super::judge::{crawl, noindex, robots, robots_unreachable};
use super::lookup::{JobLook, LookedUp};
use crate::text::{quoted, when};
use ::crawl::extract;
use ::crawl::fetch::sentences::{self, Trouble};
use store::chunkfile::document::RemoveReason;
use store::tables::documents::LookOutcome;
use store::tables::overview::RunState;
use store::tables::queue::ReasonCode;
use store::tables::queue::list::ListedDocument;

/// What to do about trouble on the other side.
const MENDED: &str = "When that is fixed, the next run tries again";

pub fn failed(looked: &LookedUp, job: &JobLook, row: &ListedDocument) -> Because {
    let code = row.reason.as_deref().unwrap_or_default();
    match row.reason_code() {
        Some(ReasonCode::Gone) => return gone(looked),
        Some(ReasonCode::RobotsUnreachable) => return robots_unreachable(looked, job),
        _ => {}
    }
    let sentence = format!("It failed: {}.", words_of(row));
    let because = |cause| Because::new(cause, sentence);
    match sentences::trouble(code) {
        Trouble::Private => because(Cause::Refused)
            .run("If this is your own network, allow it", crawl(job, "--allow-private")),
        Trouble::Refused => because(Cause::Refused),
        Trouble::Insecure => because(Cause::Insecure).run(MENDED, crawl(job, "")),
        Trouble::Unresolved => because(Cause::Failed)
            .run("Check the host name and the DNS resolver of this machine, then", crawl(job, "")),
        Trouble::Denied => because(Cause::Failed)
            .next("The server requires a login or rejects crawlers; ask its owner."),
        Trouble::Other => because(Cause::Failed).run(MENDED, crawl(job, "")),
    }
}

fn gone(looked: &LookedUp) -> Because {
    let status = looked.document.as_ref().and_then(|document| document.http_status);
    let status = status.map_or(String::new(), |status| format!(" (status {status})"));
    Because::new(Cause::Gone, format!("The server says that the page does not exist{status}."))
}

pub fn done(looked: &LookedUp, job: &JobLook, row: &ListedDocument) -> Because {
    if let Some(removed) = removed(looked, job) {
        return removed;
    }
    let run = row.done_run.map_or(0, |run| run.0);
    if job.standing == RunState::Running && run < job.run.0 {
        let sentence = format!(
            "It was processed in run {run}; run {} is in progress and will check it again.",
            job.run
        );
        return Because::new(Cause::Recheck, sentence);
    }
    let Some(document) = &looked.document else {
        let sentence = format!("It was processed in run {run}, but nothing is stored for it.");
        return Because::new(Cause::Done, sentence);
    };
    if let Some(original) = &looked.original {
        return Because::new(Cause::Duplicate, format!("It is a copy of {original}."))
            .run("See that page", format!("driftline why {}", quoted(original)));
    }
    let live = document.chunk.is_some();
    let seen = when(document.checked_ms, looked.now_ms);
    let code = document.outcome.as_str();
    match ReasonCode::parse(code) {
        Some(ReasonCode::Noindex) => return noindex(job),
        Some(ReasonCode::Robots) => return robots(looked, job, &row.docid),
        _ => {}
    }
    match LookOutcome::parse(code) {
        Some(LookOutcome::Redirect) => redirect(looked),
        Some(LookOutcome::Gone) if !live => gone(looked),
        Some(LookOutcome::NotModified) if live => Because::new(
            Cause::Unchanged,
            format!("It is stored; the last check, {seen}, found it unchanged."),
        ),
        Some(LookOutcome::Ok | LookOutcome::NotModified) => {
            let sentence = format!("It is stored; it was last fetched {seen}, in run {run}.");
            Because::new(Cause::Stored, sentence)
                .run("The next run checks it again", crawl(job, ""))
        }
        _ if live && extract::words_of(code).is_some() => unread(code, job),
        _ if live => {
            let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
            let sentence = format!("It is stored; the last check, {seen}, failed: {words}.");
            Because::new(Cause::Stored, sentence)
        }
        _ => {
            let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
            Because::new(Cause::Failed, format!("It could not be fetched: {words}."))
                .run("The next run tries again", crawl(job, ""))
        }
    }
}

/// It is there, but nobody knows what it says.
fn unread(code: &str, job: &JobLook) -> Because {
    let words = extract::words_of(code).unwrap_or_default();
    let sentence = format!("It is stored, but its text could not be extracted: {words}.");
    let because = Because::new(Cause::Unread, sentence);
    match code {
        "unread-program" => because.run("The next run reads it again", crawl(job, "")),
        _ => because.next("When it changes, it is read again."),
    }
}

fn redirect(looked: &LookedUp) -> Because {
    let Some(last) = looked.redirects.last() else {
        let sentence = "It redirects to a page outside the job's scope.";
        return Because::new(Cause::Redirect, sentence);
    };
    if let Some(sentence) = circle(looked) {
        return Because::new(Cause::RedirectLoop, sentence)
            .next("It has no content until the site fixes its redirects.");
    }
    let way = match looked.redirects.len() {
        1 => String::new(),
        hops => format!(" through {hops} redirects"),
    };
    Because::new(Cause::Redirect, format!("It redirects{way} to {last}."))
        .run("See that page", format!("driftline why {}", quoted(last)))
}

/// The redirects that lead back to where they have been, if they do.
fn circle(looked: &LookedUp) -> Option<String> {
    let url = looked.url.as_ref().ok()?;
    let way: Vec<&str> =
        std::iter::once(url).chain(&looked.redirects).map(String::as_str).collect();
    let (last, before) = way.split_last()?;
    before.contains(last).then(|| format!("Its redirects form a loop: {}.", way.join(" -> ")))
}

/// It was stored once. What took it away is told by its own cause where there is one.
pub fn removed(looked: &LookedUp, job: &JobLook) -> Option<Because> {
    let document = looked.document.as_ref()?;
    let removed_ms = document.removed_ms?;
    let reason = document.reason.as_deref().unwrap_or("an unknown reason");
    let words = match RemoveReason::named(reason) {
        Some(RemoveReason::Redirected) => return Some(redirect(looked)),
        Some(RemoveReason::Gone) => "the server says that the page no longer exists",
        Some(RemoveReason::OutOfScope) => "the job's rules exclude it now",
        Some(RemoveReason::Robots) => "robots.txt or the page itself (noindex) forbids keeping it",
        Some(RemoveReason::Expired) => "it expired",
        Some(RemoveReason::HopLimit) => "it is now farther from the seeds than allowed",
        Some(RemoveReason::Unreachable) => "no page links to it any more",
        Some(RemoveReason::JobDeleted) => "its job was deleted",
        Some(RemoveReason::Operator) => "an operator removed it",
        None => reason,
    };
    let sentence = format!("It was removed {}: {words}.", when(removed_ms, looked.now_ms));
    let because = Because::new(Cause::Removed, sentence);
    Some(because.run("If it comes back, the next run adds it again", crawl(job, "")))
}

/// The reason in words: those it was stored with, or those of its code.
pub fn words_of(row: &ListedDocument) -> String {
    let code = row.reason.as_deref().unwrap_or("for an unknown reason");
    match &row.detail {
        Some(detail) => detail.trim_end_matches('.').to_owned(),
        None => sentences::of(code).unwrap_or_else(|| code.to_owned()),
    }
}
