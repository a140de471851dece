//! A document is finished: what came back becomes what the commit will write.
//!
//! Pure but for ids. Relies on `compare` for what outputs must hear. Invariant:
//! whatever came back, the document ends in exactly one settlement, and only trouble
//! is tried again.

pub(crate) mod allowances;
mod content;
mod documents;
mod exclusion;
pub(crate) mod job_limits;
mod next_look;
mod removal;
pub(crate) mod removal_gate;
mod repository_look;
mod sweep;
mod web_answer;

pub(crate) use exclusion::{Exclusion, LeftForLater, forbidden, internal_error, later};
pub(crate) use exclusion::{login_activity, refused, unwanted};
pub(crate) use repository_look::finish_look;
pub use sweep::GIVEN_UP;
pub(crate) use sweep::{LeftAlone, expired, given_up, leave, stale, swept, unlinked};
pub(crate) use web_answer::document;

use self::next_look::again;
use self::removal::{admit, presence};
use crate::batch::known_links::KnownLinks;
use crate::batch::{Batch, LinkContext, Unread};
use crate::compare::{self, LookPosition, SeenDocument, compare};
use crate::fetch;
use crate::job::JobWork;
use crate::refetch::Allowance;
use crate::worker::ask::tasks::ClaimedDocument;
use crate::worker::finish::removal_gate::RemovalGate;
use page::url::host_of;
use std::cell::RefCell;
use store::chunkfile::document::{Change, DocumentRecord, Fetch, RemoveReason};
use store::ids::{ChunkId, DocumentId, IdMaker, Part};
use store::tables::documents::Document;
use store::tables::queue::{Entry, Reason, ReasonCode, Settlement};

/// Where and when documents are finished.
#[derive(Clone, Copy)]
pub(crate) struct FinishContext<'a> {
    pub ids: &'a IdMaker,
    /// Links that are queued already.
    pub known: &'a KnownLinks,
    pub part: Part,
    /// The chunk that will commit them.
    pub chunk: ChunkId,
    pub now_ms: i64,
    /// The host is left alone until then.
    pub not_before_ms: i64,
    /// The fetches that the job may spend, if it has said how many.
    pub allowance: Option<&'a RefCell<Allowance>>,
    /// Decides which removals take effect at once.
    pub gate: &'a RemovalGate,
}

impl<'a> FinishContext<'a> {
    /// For links that a document of the job names.
    fn links(&self, job: &'a JobWork) -> LinkContext<'a> {
        LinkContext { job, ids: self.ids, known: self.known }
    }
}

/// What a document came to, in the words of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultClass {
    /// Outputs did not have it.
    Added,
    /// Outputs had it, and it says something else now.
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
    /// Its server names another URL in its place.
    Redirected,
    /// Not there, and never was.
    Missing,
    /// robots.txt, the page or the scope forbid it.
    Forbidden(Forbidding),
    /// It will be looked at again in this run: to confirm that it is gone, or after
    /// trouble.
    Again(String),
    /// Given up for this run.
    Failed(Reason),
}

/// What forbids a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidding {
    /// A rule of its site, of its job or of its connection.
    Rule(ReasonCode),
    /// The run has not found it again.
    Stale,
    /// It leaves the job, and another one keeps it.
    Shared,
}

impl Forbidding {
    /// Its name in a summary.
    pub fn name(self) -> &'static str {
        match self {
            Forbidding::Rule(code) => code.name(),
            Forbidding::Stale => "stale",
            Forbidding::Shared => "shared",
        }
    }
}

/// What was seen of a document, and where it goes because of it.
struct FinishedLook<'a> {
    seen: SeenDocument<'a>,
    to: Settlement,
    /// The status of the answer, if there was one.
    status: Option<u16>,
}

/// Compares what was seen with what is known, and takes in what follows.
fn settle(
    at: FinishContext<'_>,
    batch: &mut Batch,
    job: &JobWork,
    claimed: ClaimedDocument,
    look: FinishedLook<'_>,
) -> ResultClass {
    let FinishedLook { seen, to, status } = look;
    let lease = claimed.lease(at.part);
    let ClaimedDocument { entry, known, .. } = claimed;
    let known = known.map_or_else(|| unknown(at, &entry), |known| *known);
    let compared = compare(&known, &seen, looking(at, job, batch));
    let (mut compared, leaving) = admit(at, batch, job, lease, &known, compared);
    if !compare::is_live(&compared.document) && !matches!(seen, SeenDocument::Trouble { .. }) {
        compared.document.role = job.role_after(&entry, &known);
    }
    batch.note_role(&entry);
    batch.job.presences.insert(entry.id, presence(&seen, &compared, leaving));
    if let Some(change) = compared.change {
        let mut record = DocumentRecord::new(entry.docid.clone(), job.id.0, change);
        record.fetch =
            status.map(|status| Fetch { status, fetched_ms: at.now_ms, ..Fetch::default() });
        record.role = compared.document.role;
        batch.record(record);
    }
    let to = match compared.confirm_ms {
        Some(check_ms) => Settlement::Retry {
            check_ms: check_ms.max(at.not_before_ms),
            failcount: entry.failcount,
            failtime: entry.failtime,
            reason: Reason::known(
                ReasonCode::Gone,
                Some("it is missing; a second request will confirm that"),
            ),
        },
        None => to,
    };
    let class = match leaving {
        Some(_) => ResultClass::Leaving,
        None => class_of(&to, &seen, compared.change),
    };
    let is_gone = matches!(seen, SeenDocument::Missing { .. }) && to == Settlement::Done;
    let leads_on = [ReasonCode::Noindex, ReasonCode::ExcludedContent, ReasonCode::Hops];
    if is_gone || matches!(seen, SeenDocument::Forbidden { code, .. } if !leads_on.contains(&code))
    {
        // It leads nowhere any more.
        batch.clear_references(job, entry.dochash);
    }
    // What was not read says what it said before, as far as anybody knows.
    if matches!(seen, SeenDocument::NotModified(_)) || matches!(to, Settlement::Failed(_)) {
        note_unread(batch, &entry, &compared.document);
    }
    let to = again(at, job, Some(&compared.document), to);
    push(at, batch, job, &entry, to);
    batch.document(&known, compared.document);
    class
}

/// The links of a document that was not read are taken from the store.
fn note_unread(batch: &mut Batch, entry: &Entry, document: &Document) {
    let facts = document.chunk.zip(document.ordinal);
    if let Some(facts) = facts.filter(|_| compare::is_live(document)) {
        let (docid, dochash, standing) = (entry.docid.clone(), entry.dochash, entry.standing());
        batch.links.unread.push(Unread { docid, dochash, standing, facts });
    }
}

fn class_of(to: &Settlement, seen: &SeenDocument<'_>, change: Option<Change>) -> ResultClass {
    match (to, change, seen) {
        (Settlement::Retry { reason, .. }, ..) => ResultClass::Again(reason.code().to_owned()),
        (Settlement::Failed(reason), ..) => ResultClass::Failed(reason.clone()),
        (_, Some(Change::Remove(reason)), _) => ResultClass::Removed(reason),
        (_, _, SeenDocument::Moved { .. }) => ResultClass::Redirected,
        (_, _, SeenDocument::Missing { .. }) => ResultClass::Missing,
        (_, _, SeenDocument::Forbidden { code, .. }) => {
            ResultClass::Forbidden(Forbidding::Rule(*code))
        }
        _ => ResultClass::Kept { not_modified: true },
    }
}

/// Settles a document, with what follows for those it led to.
fn push(at: FinishContext<'_>, batch: &mut Batch, job: &JobWork, entry: &Entry, to: Settlement) {
    if to == Settlement::Deleted {
        batch.job.gone.push(entry.dochash);
        batch.clear_references(job, entry.dochash);
    }
    if job.is_no_seed_any_more(entry) {
        batch.graph.no_seeds.push(entry.dochash);
    }
    batch.settle(entry, to, at.now_ms);
}

/// Another try after trouble, later each time, while there are tries left.
fn retry(at: FinishContext<'_>, job: &JobWork, entry: &Entry, reason: Reason) -> Settlement {
    let again = job.settings.patience.again(entry.failcount, entry.failtime, at.now_ms);
    if again.is_over {
        return Settlement::Failed(reason);
    }
    let (failcount, failtime) = (Some(again.failcount), Some(again.failtime));
    let check_ms = again.check_ms.max(at.not_before_ms);
    Settlement::Retry { check_ms, failcount, failtime, reason }
}

fn looking(at: FinishContext<'_>, job: &JobWork, batch: &Batch) -> LookPosition {
    let ordinal = i64::try_from(batch.records.len()).unwrap_or(i64::MAX);
    LookPosition { run: job.run, now_ms: at.now_ms, chunk: at.chunk, ordinal }
}

fn unknown(at: FinishContext<'_>, entry: &Entry) -> Document {
    compare::unknown(DocumentId(at.ids.next()), &entry.docid, at.now_ms)
}

fn reason_of(reason: fetch::Reason, entry: &Entry) -> Reason {
    Reason::new(&reason.code(), Some(&reason.sentence(host_of(&entry.docid))))
}

fn trouble(status: Option<u16>, reason: fetch::Reason) -> SeenDocument<'static> {
    SeenDocument::Trouble { status: status.map(i64::from), code: reason.code().into_owned() }
}
