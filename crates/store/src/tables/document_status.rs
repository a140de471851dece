//! Where documents stand, in the words of ManifoldCF's status reports: a state and a
//! status for each, derived from the queue's row and from where its job stands.
//!
//! Invariant: a row and a count of rows are judged by the same function ([`Shape::status`]),
//! so a list and its counts agree.

mod counts;

pub use counts::counts;

use super::job_states::{Phase, RunKind};
use super::queue;
use crate::ids::{JobId, Part, QueueId};
use crate::value::{Row, column};
use crate::{Result, Tx};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them, in ManifoldCF's order.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The name as reports show it.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            /// The one of this name; `None` if there is none.
            pub fn named(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// What was ever done with a document.
    State {
        NeverProcessed = "never processed",
        PreviouslyProcessed = "previously processed",
        OutOfScope = "out of scope",
    }
}

words! {
    /// What is to be done with a document, or is being done.
    Status {
        Inactive = "inactive",
        Processing = "processing",
        Expiring = "expiring",
        Deleting = "deleting",
        ReadyForProcessing = "ready for processing",
        ReadyForExpiration = "ready for expiration",
        WaitingForProcessing = "waiting for processing",
        WaitingForExpiration = "waiting for expiration",
        WaitingForever = "waiting forever",
        HopcountExceeded = "hopcount exceeded",
    }
}

/// When a document is due, seen from a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Due {
    Never,
    Now,
    Later,
}

/// What decides about a document's state and status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Where it stands in the queue.
    pub state: queue::State,
    /// What is to be done.
    pub action: queue::Action,
    /// It is too far from the seeds.
    pub too_far: bool,
    /// A run has processed it.
    pub processed: bool,
    /// The run that processed it is not the job's last one.
    pub older: bool,
    /// The job's last run has named it.
    pub seen: bool,
    /// When it is due.
    pub due: Due,
}

/// What decides about the documents of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobConditions {
    /// Where the job stands.
    pub phase: Phase,
    /// What its last run means for older documents.
    pub run_kind: RunKind,
}

impl JobConditions {
    /// Whether what older runs have processed may be looked at by the run that is under way.
    fn looks_at_older(self) -> bool {
        self.phase != Phase::Inactive && self.run_kind != RunKind::ChangesOnly
    }
}

impl Shape {
    /// A document of a state, of which nothing else is said.
    pub fn plain(state: queue::State) -> Shape {
        Shape {
            state,
            action: queue::Action::Fetch,
            too_far: false,
            processed: false,
            older: false,
            seen: false,
            due: Due::Never,
        }
    }

    /// What was ever done with it.
    pub fn state(&self) -> State {
        match (self.state, self.processed) {
            (queue::State::Cut, _) => State::OutOfScope,
            (_, true) => State::PreviouslyProcessed,
            (_, false) => State::NeverProcessed,
        }
    }

    /// What is to be done with it.
    pub fn status(&self, conditions: JobConditions) -> Status {
        let deleting = [Phase::ReadyForDelete, Phase::DeleteStartingUp, Phase::Deleting];
        let sweeps = self.action.sweeps();
        if deleting.contains(&conditions.phase) {
            return Status::Deleting;
        }
        let expires = self.action == queue::Action::Expire;
        let ready = if expires { Status::ReadyForExpiration } else { Status::ReadyForProcessing };
        match (self.state, self.due) {
            (queue::State::Active, _) if sweeps => Status::Deleting,
            (queue::State::Active, _) if expires => Status::Expiring,
            (queue::State::Active, _) => Status::Processing,
            (queue::State::Cut, _) if self.too_far => Status::HopcountExceeded,
            (queue::State::Cut | queue::State::Failed, _) => Status::Inactive,
            (queue::State::Ready, _) | (queue::State::Waiting, Due::Now) => ready,
            (queue::State::Waiting, Due::Never) => Status::WaitingForever,
            (queue::State::Waiting, Due::Later) if expires => Status::WaitingForExpiration,
            (queue::State::Waiting, Due::Later) => Status::WaitingForProcessing,
            (queue::State::Done, _) if self.is_looked_at_again(conditions) => {
                Status::ReadyForProcessing
            }
            (queue::State::Done, _) => Status::Inactive,
        }
    }

    /// Whether the run that is under way looks at what an older one has processed.
    fn is_looked_at_again(&self, conditions: JobConditions) -> bool {
        let is_named = conditions.run_kind == RunKind::Incremental || self.seen;
        conditions.looks_at_older() && self.older && is_named
    }
}

/// A document of a job, as the status reports show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DocumentStatus {
    pub part: Part,
    pub id: QueueId,
    pub job: JobId,
    pub docid: String,
    pub shape: Shape,
    pub reason: Option<String>,
    /// When it falls due.
    pub check_ms: Option<i64>,
    /// Retries that are left, while it is failing.
    pub failcount: Option<i64>,
    /// When retrying ends, while it is failing.
    pub failtime: Option<i64>,
}

/// What a shape is made of, seen from the moment `$2` and the run `$3`.
const SHAPE: &str = "q.state, q.action,
    CAST(CASE WHEN q.reason = 'hops' THEN 1 ELSE 0 END AS BIGINT) AS too_far,
    CAST(CASE WHEN q.done_run IS NULL THEN 0 ELSE 1 END AS BIGINT) AS processed,
    CAST(CASE WHEN q.done_run < $3 THEN 1 ELSE 0 END AS BIGINT) AS older,
    CAST(CASE WHEN q.seen_run >= $3 THEN 1 ELSE 0 END AS BIGINT) AS seen,
    CAST(CASE WHEN q.checktime IS NULL THEN 0 WHEN q.checktime <= $2 THEN 1 ELSE 2 END AS BIGINT)
        AS due";

/// Where columns begin that are selected behind those of a shape.
const BEHIND_SHAPE: usize = column!(SHAPE, "due") + 1;

impl Shape {
    /// From a row that begins with [`SHAPE`].
    fn from_row(row: &Row<'_>) -> Result<Shape> {
        let is = |place: usize| row.get::<i64>(place).map(|value| value == 1);
        Ok(Shape {
            state: row.get(column!(SHAPE, "state"))?,
            action: row.get(column!(SHAPE, "action"))?,
            too_far: is(column!(SHAPE, "too_far"))?,
            processed: is(column!(SHAPE, "processed"))?,
            older: is(column!(SHAPE, "older"))?,
            seen: is(column!(SHAPE, "seen"))?,
            due: due(row, column!(SHAPE, "due"))?,
        })
    }
}

fn due(row: &Row<'_>, at: usize) -> Result<Due> {
    Ok(match row.get::<i64>(at)? {
        0 => Due::Never,
        1 => Due::Now,
        _ => Due::Later,
    })
}

const STANDING: &str =
    "q.part, q.id, q.jobid, q.docid, q.reason, q.checktime, q.failcount, q.failtime";

impl DocumentStatus {
    /// From a row that is a shape and, behind it, [`STANDING`].
    fn from_row(row: &Row<'_>) -> Result<DocumentStatus> {
        Ok(DocumentStatus {
            shape: Shape::from_row(row)?,
            part: row.get(BEHIND_SHAPE + column!(STANDING, "part"))?,
            id: row.get(BEHIND_SHAPE + column!(STANDING, "id"))?,
            job: row.get(BEHIND_SHAPE + column!(STANDING, "jobid"))?,
            docid: row.get(BEHIND_SHAPE + column!(STANDING, "docid"))?,
            reason: row.get(BEHIND_SHAPE + column!(STANDING, "reason"))?,
            check_ms: row.get(BEHIND_SHAPE + column!(STANDING, "checktime"))?,
            failcount: row.get(BEHIND_SHAPE + column!(STANDING, "failcount"))?,
            failtime: row.get(BEHIND_SHAPE + column!(STANDING, "failtime"))?,
        })
    }
}

/// The next documents of a part behind one, of all jobs, in order of arrival or against
/// it, seen from a moment.
pub fn page(
    tx: &mut Tx<'_>,
    part: Part,
    after: QueueId,
    now_ms: i64,
    backward: bool,
    limit: u32,
) -> Result<Vec<DocumentStatus>> {
    let (than, order) = if backward { ("<", "DESC") } else { (">", "ASC") };
    tx.query(
        &format!(
            "SELECT {}, {STANDING}
             FROM queue q JOIN job_states s ON s.jobid = q.jobid
             WHERE q.part = $1 AND q.id {than} $3 ORDER BY q.id {order} LIMIT $4",
            SHAPE.replace("$3", "s.run")
        ),
        &[part.into(), now_ms.into(), after.into(), limit.into()],
        DocumentStatus::from_row,
    )
}

#[cfg(test)]
mod tests;
