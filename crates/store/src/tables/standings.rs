//! Where documents stand, in the words of the original's status reports: a state and a
//! status for each, derived from the queue's row and from where its job stands.
//!
//! Invariant: a row and a count of rows are judged by the same function ([`Shape::status`]),
//! so a list and its counts agree.

use super::job_states::{Phase, RunKind};
use super::{counters, queue};
use crate::ids::{JobId, Part, QueueId, Run};
use crate::value::Row;
use crate::{Error, Result, Tx, Value};

/// Shapes that documents of one state have at most: a few dozen.
const SHAPES_MAX: u32 = 1_000;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them, in the original's order.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Its name.
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
pub enum Due {
    /// At no time.
    Never,
    /// Now.
    Now,
    /// Later.
    Later,
}

/// What decides about a document's state and status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Where it stands in the queue.
    pub state: queue::State,
    /// What is to be done: `fetch`, `expire`, `clean`, `delete`.
    pub action: String,
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
pub struct Ground {
    /// Where the job stands.
    pub phase: Phase,
    /// What its last run means for older documents.
    pub run_kind: RunKind,
}

impl Ground {
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
            action: "fetch".to_owned(),
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
    pub fn status(&self, ground: Ground) -> Status {
        let deleting = [Phase::ReadyForDelete, Phase::DeleteStartingUp, Phase::Deleting];
        let sweeps = matches!(self.action.as_str(), "clean" | "delete");
        if deleting.contains(&ground.phase) {
            return Status::Deleting;
        }
        let expires = self.action == "expire";
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
            (queue::State::Done, _) if self.is_looked_at_again(ground) => {
                Status::ReadyForProcessing
            }
            (queue::State::Done, _) => Status::Inactive,
        }
    }

    /// Whether the run that is under way looks at what an older one has processed.
    fn is_looked_at_again(&self, ground: Ground) -> bool {
        let is_named = ground.run_kind == RunKind::Incremental || self.seen;
        ground.looks_at_older() && self.older && is_named
    }
}

/// A document of a job, as the status reports show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Standing {
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
    CAST(CASE WHEN q.reason = 'hops' THEN 1 ELSE 0 END AS BIGINT),
    CAST(CASE WHEN q.done_run IS NULL THEN 0 ELSE 1 END AS BIGINT),
    CAST(CASE WHEN q.done_run < $3 THEN 1 ELSE 0 END AS BIGINT),
    CAST(CASE WHEN q.seen_run >= $3 THEN 1 ELSE 0 END AS BIGINT),
    CAST(CASE WHEN q.checktime IS NULL THEN 0 WHEN q.checktime <= $2 THEN 1 ELSE 2 END AS BIGINT)";

fn shape(row: &Row<'_>, at: usize) -> Result<Shape> {
    let name: String = row.get(at)?;
    let is = |index: usize| row.get::<i64>(at + index).map(|value| value == 1);
    Ok(Shape {
        state: queue::State::named(&name)
            .ok_or_else(|| Error::corrupt("a row of the queue", &name))?,
        action: row.get(at + 1)?,
        too_far: is(2)?,
        processed: is(3)?,
        older: is(4)?,
        seen: is(5)?,
        due: due(row, at + 6)?,
    })
}

fn due(row: &Row<'_>, at: usize) -> Result<Due> {
    Ok(match row.get::<i64>(at)? {
        0 => Due::Never,
        1 => Due::Now,
        _ => Due::Later,
    })
}

/// The next documents of a part behind one, of all jobs, in order of arrival or against
/// it, seen from a moment.
pub fn page(
    tx: &mut Tx<'_>,
    (part, after): (Part, QueueId),
    (now_ms, backward): (i64, bool),
    limit: u32,
) -> Result<Vec<Standing>> {
    let (than, order) = if backward { ("<", "DESC") } else { (">", "ASC") };
    tx.query(
        &format!(
            "SELECT {}, q.part, q.id, q.jobid, q.docid, q.reason, q.checktime, q.failcount,
                    q.failtime
             FROM queue q JOIN job_states s ON s.jobid = q.jobid
             WHERE q.part = $1 AND q.id {than} $3 ORDER BY q.id {order} LIMIT $4",
            SHAPE.replace("$3", "s.run")
        ),
        &[part.into(), now_ms.into(), after.into(), limit.into()],
        |row| {
            Ok(Standing {
                shape: shape(row, 0)?,
                part: row.get(7)?,
                id: row.get(8)?,
                job: row.get(9)?,
                docid: row.get(10)?,
                reason: row.get(11)?,
                check_ms: row.get(12)?,
                failcount: row.get(13)?,
                failtime: row.get(14)?,
            })
        },
    )
}

/// How many documents of each shape a job has in a part, seen from a moment. Nearly all are
/// told by counters and indexes; only what is active, has failed, or is done while a run may
/// look at it again is looked at. Where a field of a shape does not matter for its state and
/// status, it is not told apart.
pub fn counts(
    tx: &mut Tx<'_>,
    place: queue::Place,
    (ground, run): (Ground, Run),
    now_ms: i64,
) -> Result<Vec<(Shape, i64)>> {
    let kept = counters::in_part(tx, place.part, place.job)?;
    let mut found = Vec::new();
    for state in queue::State::ALL {
        let count = kept.iter().find(|it| it.0 == state.name()).map_or(0, |it| it.1);
        match state {
            _ if count == 0 => {}
            queue::State::Done if !ground.looks_at_older() => {
                found.push((Shape { processed: true, ..Shape::plain(state) }, count));
            }
            queue::State::Cut => {
                let too_far = count_too_far(tx, place)?;
                found.push((Shape { too_far: true, ..Shape::plain(state) }, too_far));
                found.push((Shape::plain(state), count - too_far));
            }
            queue::State::Ready => found.extend(count_ready(tx, place, count)?),
            queue::State::Waiting => found.extend(count_waiting(tx, place, now_ms, count)?),
            _ => found.extend(count_shapes(tx, place, (state, run), now_ms)?),
        }
    }
    found.retain(|(_, count)| *count != 0);
    Ok(found)
}

fn count_too_far(tx: &mut Tx<'_>, place: queue::Place) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM queue
         WHERE part = $1 AND jobid = $2 AND state = 'cut' AND reason = 'hops'",
        &[place.part.into(), place.job.into()],
        |row| row.get(0),
    )
}

/// What is ready in another way than to be fetched for the first time, in the words of an index.
const READY_APART: &str =
    "SELECT action, CAST(CASE WHEN done_run IS NULL THEN 0 ELSE 1 END AS BIGINT), COUNT(*)
     FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'ready'
       AND (action <> 'fetch' OR done_run IS NOT NULL)
     GROUP BY 1, 2 LIMIT $3";

fn count_ready(tx: &mut Tx<'_>, place: queue::Place, count: i64) -> Result<Vec<(Shape, i64)>> {
    let ready = Shape::plain(queue::State::Ready);
    let mut found =
        tx.query(READY_APART, &[place.part.into(), place.job.into(), SHAPES_MAX.into()], |row| {
            let (action, processed) = (row.get(0)?, row.get::<i64>(1)? == 1);
            Ok((Shape { action, processed, ..ready.clone() }, row.get(2)?))
        })?;
    let apart: i64 = found.iter().map(|it| it.1).sum();
    found.push((ready, count - apart));
    Ok(found)
}

/// When what waits is due, in the order of [`Due`], seen from the moment `$3`.
const DUE: &str =
    "CAST(CASE WHEN checktime IS NULL THEN 0 WHEN checktime <= $3 THEN 1 ELSE 2 END AS BIGINT)";

/// What waits in another way than to be fetched again, in the words of an index.
fn waiting_apart() -> String {
    format!(
        "SELECT action, CAST(CASE WHEN done_run IS NULL THEN 0 ELSE 1 END AS BIGINT), {DUE},
                COUNT(*)
         FROM queue
         WHERE part = $1 AND jobid = $2 AND state = 'waiting'
           AND (action <> 'fetch' OR done_run IS NULL)
         GROUP BY 1, 2, 3 LIMIT $4"
    )
}

/// What waits and is due, or never will be: the two ends of an index.
const WAITING_ENDS: [&str; 2] = [
    "SELECT COUNT(*) FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime IS NULL",
    "SELECT COUNT(*) FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime <= $3",
];

fn count_waiting(
    tx: &mut Tx<'_>,
    place: queue::Place,
    now_ms: i64,
    count: i64,
) -> Result<Vec<(Shape, i64)>> {
    let waiting = Shape { processed: true, ..Shape::plain(queue::State::Waiting) };
    let place: [Value<'_>; 2] = [place.part.into(), place.job.into()];
    let [part, job] = place;
    let mut found =
        tx.query(&waiting_apart(), &[part, job, now_ms.into(), SHAPES_MAX.into()], |row| {
            let (action, processed) = (row.get(0)?, row.get::<i64>(1)? == 1);
            let shape = Shape { action, processed, due: due(row, 2)?, ..waiting.clone() };
            Ok((shape, row.get(3)?))
        })?;
    let never: i64 = tx.query_one(WAITING_ENDS[0], &place, |row| row.get(0))?;
    let now: i64 = tx.query_one(WAITING_ENDS[1], &[part, job, now_ms.into()], |row| row.get(0))?;
    let ends = [(Due::Never, never), (Due::Now, now), (Due::Later, count - never - now)];
    for (due, all) in ends {
        let apart: i64 = found.iter().filter(|it| it.0.due == due).map(|it| it.1).sum();
        found.push((Shape { due, ..waiting.clone() }, all - apart));
    }
    Ok(found)
}

fn count_shapes(
    tx: &mut Tx<'_>,
    place: queue::Place,
    (state, run): (queue::State, Run),
    now_ms: i64,
) -> Result<Vec<(Shape, i64)>> {
    // The state stands in the text, so that the index of this state is taken.
    tx.query(
        &format!(
            "SELECT {SHAPE}, COUNT(*) FROM queue q
             WHERE q.part = $1 AND q.jobid = $4 AND q.state = '{}'
             GROUP BY 1, 2, 3, 4, 5, 6, 7 LIMIT $5",
            state.name()
        ),
        &[place.part.into(), now_ms.into(), run.into(), place.job.into(), SHAPES_MAX.into()],
        |row| Ok((shape(row, 0)?, row.get(7)?)),
    )
}

#[cfg(test)]
mod tests;
