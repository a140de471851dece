//! What jobs have, what they are to lose, and what they have lost.
//!
//! A row of the queue says whether its job has the document (`has_document`) and, while the
//! job is to lose it, why (`leaving`) and in which round of decisions that was marked. What a
//! job has lost without an approval is added up in `removals`.
//!
//! Invariants: the counters `documents` and `leaving <cause>` change with the rows they count,
//! and `verify` compares; a mark gets its round under the lock of the job's row, so that
//! whoever decides about a round under the same lock has counted all marks of it.

mod limits;

pub use limits::{RemovalLimit, RemovalLimits};

use crate::chunkfile::document::RemoveReason;
use crate::dialect::ValueKind;
use crate::ids::{JobId, Part, QueueId, Run};
use crate::tables::counters;
use crate::tables::queue::{Place, Reason};
use crate::{Error, Result, Tx, Value};
use std::collections::{BTreeMap, HashMap};

/// The counter of documents that a job has.
pub const DOCUMENTS: &str = "documents";
/// What the counters of documents that are to leave begin with; the cause follows.
pub const LEAVING: &str = "leaving ";

/// Whether a counter is one of these, and not of a state of documents.
pub fn is_counter(name: &str) -> bool {
    name == DOCUMENTS || name.starts_with(LEAVING)
}
/// Hours for which the losses of continuous jobs are kept; they are counted over a day.
const HOURS_KEPT: i64 = 48;
const HOUR_MS: i64 = 3_600_000;
/// Over how long the losses of a continuous job are counted.
pub const WINDOW_MS: i64 = 24 * HOUR_MS;

/// What settling a document says about what its job has of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presence {
    /// Nothing new: it is as it was, and so is a removal that is marked.
    #[default]
    Unchanged,
    /// The job has it, and a removal that was marked is off.
    Present,
    /// The job does not have it, or not any more.
    Absent,
    /// The job has it, and is to lose it for this reason.
    Leaving(RemoveReason),
}

impl Presence {
    /// What the row says then; `None` leaves it as it is.
    pub fn has_document(self) -> Option<bool> {
        match self {
            Presence::Unchanged | Presence::Leaving(_) => None,
            Presence::Present => Some(true),
            Presence::Absent => Some(false),
        }
    }
}

/// A row that a commit settles: what it said before, and what was found now.
#[derive(Debug, Clone, Copy)]
pub(super) struct SettledRow<'a> {
    pub id: QueueId,
    /// The document's row is deleted.
    pub is_deleted: bool,
    /// The job had a document here.
    pub had_document: bool,
    /// Why the job was to lose it.
    pub leaving: Option<&'a str>,
    pub presence: Presence,
}

/// The marks that a commit sets and takes off, and what that does to counters.
#[derive(Debug, Default)]
pub(super) struct MarkChanges {
    set: Vec<(QueueId, RemoveReason)>,
    taken_off: Vec<QueueId>,
}

impl MarkChanges {
    /// Takes in a row that is settled.
    pub(super) fn add(&mut self, row: SettledRow<'_>, deltas: &mut BTreeMap<String, i64>) {
        let has = row.presence.has_document().unwrap_or(row.had_document);
        if has != row.had_document {
            *deltas.entry(DOCUMENTS.to_owned()).or_default() += if has { 1 } else { -1 };
        }
        match (row.presence, row.leaving) {
            // One that is marked already stays in the round that may be decided by now.
            (Presence::Leaving(cause), None) => {
                *deltas.entry(counter(cause.name())).or_default() += 1;
                self.set.push((row.id, cause));
            }
            (Presence::Present | Presence::Absent, Some(cause)) => {
                *deltas.entry(counter(cause)).or_default() -= 1;
                if !row.is_deleted {
                    self.taken_off.push(row.id);
                }
            }
            _ => {}
        }
    }

    /// Writes it. Without marks nothing is asked of the database.
    pub(super) fn write(self, tx: &mut Tx<'_>, place: Place, round: i64) -> Result<()> {
        let rows: Vec<Vec<Value<'_>>> =
            self.set.iter().map(|(id, cause)| vec![(*id).into(), cause.name().into()]).collect();
        tx.update_rows(
            "UPDATE queue SET leaving = v.column2, leaving_round = $2",
            &[place.part.into(), round.into()],
            &[ValueKind::Int, ValueKind::Text],
            &rows,
            "WHERE queue.part = $1 AND queue.id = v.column1",
        )?;
        let rows: Vec<Vec<Value<'_>>> =
            self.taken_off.iter().map(|id| vec![(*id).into()]).collect();
        tx.update_rows(
            "UPDATE queue SET leaving = NULL, leaving_round = NULL",
            &[place.part.into()],
            &[ValueKind::Int],
            &rows,
            "WHERE queue.part = $1 AND queue.id = v.column1",
        )?;
        Ok(())
    }
}

/// The counter of documents that are to leave for a cause.
pub(super) fn counter(cause: &str) -> String {
    format!("{LEAVING}{cause}")
}

/// The counters that `verify` compares with the rows.
pub fn counter_names() -> impl Iterator<Item = String> {
    let causes = RemoveReason::ALL.into_iter().map(|cause| counter(cause.name()));
    std::iter::once(DOCUMENTS.to_owned()).chain(causes)
}

/// Counts rows with a document, and those that are to lose it by cause, the slow way.
pub fn count_rows(tx: &mut Tx<'_>, place: Place) -> Result<Vec<(String, i64)>> {
    let documents: i64 = tx.query_one(
        "SELECT COUNT(*) FROM queue WHERE part = $1 AND jobid = $2 AND has_document = 1",
        &[place.part.into(), place.job.into()],
        |row| row.get(0),
    )?;
    let mut counted = tx.query(
        "SELECT leaving, COUNT(*) FROM queue
         WHERE part = $1 AND jobid = $2 AND leaving IS NOT NULL
         GROUP BY leaving ORDER BY leaving LIMIT 100",
        &[place.part.into(), place.job.into()],
        |row| Ok((counter(&row.get::<String>(0)?), row.get(1)?)),
    )?;
    if documents > 0 {
        counted.push((DOCUMENTS.to_owned(), documents));
    }
    Ok(counted)
}

/// Locks a job's row and tells the round that new marks get.
pub fn lock_round(tx: &mut Tx<'_>, job: JobId) -> Result<i64> {
    let round = tx.query_opt(
        "SELECT removal_round FROM job_states WHERE jobid = $1 /*for update*/",
        &[job.into()],
        |row| row.get(0),
    )?;
    round.ok_or_else(|| Error::Refused("there is no such job any more".to_owned()))
}

/// Documents that a job is to lose, by cause.
pub fn marked(tx: &mut Tx<'_>, job: JobId) -> Result<BTreeMap<String, i64>> {
    let counted = counters::of_job(tx, job)?;
    let marked = counted.into_iter().filter(|(_, count)| *count != 0);
    Ok(marked
        .filter_map(|(name, count)| Some((name.strip_prefix(LEAVING)?.to_owned(), count)))
        .collect())
}

/// Documents that a job has.
pub fn documents(tx: &mut Tx<'_>, job: JobId) -> Result<i64> {
    counters::total(tx, job, DOCUMENTS)
}

/// Notes what a job has at this moment, by part: what later losses are measured by.
pub fn note_base(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<()> {
    let by_part: Vec<(Part, i64)> = tx.query(
        "SELECT part, value FROM counters WHERE jobid = $1 AND name = $2 AND value > 0
         ORDER BY part LIMIT 100000",
        &[job.into(), DOCUMENTS.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let words: Vec<String> =
        by_part.iter().map(|(part, count)| format!("{part}:{count}")).collect();
    tx.execute(
        "UPDATE job_states SET removal_base = $2, removal_base_ms = $3 WHERE jobid = $1",
        &[job.into(), (&words.join(" ")).into(), now_ms.into()],
    )?;
    Ok(())
}

/// What a job had when that was noted, by part, and when that was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Base {
    pub by_part: BTreeMap<Part, i64>,
    /// When they were counted; 0 for never.
    pub noted_ms: i64,
}

impl Base {
    /// The sum over all parts.
    pub fn documents(&self) -> i64 {
        self.by_part.values().sum()
    }

    /// The share of a part in a number that is given to all parts by what they have. The
    /// shares of all parts add up to that number exactly, or to nothing if there is nothing.
    pub fn share(&self, part: Part, number: i64) -> i64 {
        let (all, own) = (self.documents(), self.by_part.get(&part).copied().unwrap_or(0));
        let before: i64 = self.by_part.range(..part).map(|(_, count)| count).sum();
        let up_to = |count: i64| i128::from(number) * i128::from(count) / i128::from(all.max(1));
        i64::try_from(up_to(before + own) - up_to(before)).unwrap_or(i64::MAX)
    }
}

/// What a job had when its run began, or when its present day did.
pub fn base(tx: &mut Tx<'_>, job: JobId) -> Result<Base> {
    let found: Option<(Option<String>, Option<i64>)> = tx.query_opt(
        "SELECT removal_base, removal_base_ms FROM job_states WHERE jobid = $1",
        &[job.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (text, noted_ms) = found.unwrap_or_default();
    let pair = |word: &str| {
        let (part, count) = word.split_once(':')?;
        Some((Part(part.parse().ok()?), count.parse().ok()?))
    };
    let text = text.unwrap_or_default();
    let by_part = text.split_whitespace().filter_map(pair).collect();
    Ok(Base { by_part, noted_ms: noted_ms.unwrap_or(0) })
}

/// Over which of its losses a job is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Those of a run.
    Run(Run),
    /// Those of the day before this time (continuous jobs).
    DayBefore(i64),
}

impl Period {
    /// The first hour that counts, and the only run; all runs of a continuous job count.
    fn bounds(self) -> (i64, Option<Run>) {
        match self {
            Period::Run(run) => (0, Some(run)),
            Period::DayBefore(now_ms) => ((now_ms - WINDOW_MS).div_euclid(HOUR_MS), None),
        }
    }

    fn hour(self) -> i64 {
        match self {
            Period::Run(_) => 0,
            Period::DayBefore(now_ms) => now_ms.div_euclid(HOUR_MS),
        }
    }
}

/// Adds to what a job has lost in a part without an approval.
pub fn record(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    period: Period,
    lost: &BTreeMap<RemoveReason, i64>,
) -> Result<()> {
    if lost.is_empty() {
        return Ok(());
    }
    let hour = period.hour();
    let rows: Vec<Vec<Value<'_>>> = lost
        .iter()
        .map(|(cause, count)| {
            let (part, job, cause) = (place.part.into(), place.job.into(), cause.name().into());
            vec![part, job, run.into(), hour.into(), cause, (*count).into()]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO removals (part, jobid, run, hour, cause, documents)",
        &rows,
        "ON CONFLICT (part, jobid, run, hour, cause)
         DO UPDATE SET documents = removals.documents + excluded.documents",
    )?;
    // Whoever adds something takes away what nobody will count again.
    tx.execute(
        "DELETE FROM removals WHERE part = $1 AND jobid = $2
           AND ((hour = 0 AND run < $3) OR (hour > 0 AND hour < $4))",
        &[place.part.into(), place.job.into(), run.into(), (hour - HOURS_KEPT).into()],
    )?;
    Ok(())
}

/// What a job has lost without an approval, by cause; in one part, or in all.
pub fn lost(
    tx: &mut Tx<'_>,
    job: JobId,
    part: Option<Part>,
    period: Period,
) -> Result<BTreeMap<RemoveReason, i64>> {
    let (hour, run) = period.bounds();
    let found: Vec<(String, i64)> = tx.query(
        "SELECT cause, CAST(SUM(documents) AS BIGINT) FROM removals
         WHERE jobid = $1 AND part BETWEEN $2 AND $3 AND hour >= $4 AND run BETWEEN $5 AND $6
         GROUP BY cause ORDER BY cause LIMIT 100",
        &[
            job.into(),
            part.unwrap_or(Part(i64::MIN)).into(),
            part.unwrap_or(Part(i64::MAX)).into(),
            hour.into(),
            run.unwrap_or(Run(i64::MIN)).into(),
            run.unwrap_or(Run(i64::MAX)).into(),
        ],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    found.into_iter().map(|(cause, count)| Ok((cause_of(&cause)?, count))).collect()
}

fn cause_of(name: &str) -> Result<RemoveReason> {
    RemoveReason::named(name).ok_or_else(|| Error::corrupt("a mark of a removal", name))
}

/// A removal that is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Why the job is to lose the document.
    pub cause: RemoveReason,
    /// In which round that was marked.
    pub round: i64,
    /// Why the row itself is cut, if it is.
    pub reason: Option<Reason>,
}

/// The marks of some rows.
pub fn marks(tx: &mut Tx<'_>, place: Place, ids: &[QueueId]) -> Result<HashMap<QueueId, Mark>> {
    let keys: Vec<Value<'_>> = ids.iter().map(|id| (*id).into()).collect();
    let found = tx.query_in(
        "SELECT id, leaving, leaving_round, reason, detail FROM queue
         WHERE part = $1 AND leaving IS NOT NULL AND id IN ($keys)",
        &[place.part.into()],
        &keys,
        |row| {
            let (cause, detail) =
                (cause_of(&row.get::<String>(1)?)?, row.get::<Option<String>>(4)?);
            let reason = row.get::<Option<String>>(3)?;
            let reason = reason.map(|code| Reason::new(&code, detail.as_deref()));
            Ok((row.get(0)?, Mark { cause, round: row.get(2)?, reason }))
        },
    )?;
    Ok(found.into_iter().collect())
}

/// Whether a job has marks up to a round in a part.
pub fn is_any(tx: &mut Tx<'_>, place: Place, round: i64) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT 1 FROM queue WHERE part = $1 AND jobid = $2 AND leaving_round <= $3
           AND leaving IS NOT NULL LIMIT 1",
        &[place.part.into(), place.job.into(), round.into()],
        |row| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

/// Whether a job has marks of a round in a part.
pub fn is_marked_in(tx: &mut Tx<'_>, place: Place, round: i64) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT 1 FROM queue WHERE part = $1 AND jobid = $2 AND leaving_round = $3
           AND leaving IS NOT NULL LIMIT 1",
        &[place.part.into(), place.job.into(), round.into()],
        |row| row.get::<i64>(0),
    )?;
    Ok(found.is_some())
}

/// A document that a job is to lose.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MarkedDocument {
    pub id: QueueId,
    pub docid: String,
    pub cause: String,
    pub round: i64,
}

/// Documents that a job is to lose in a part, by round and id, after one.
pub fn list(
    tx: &mut Tx<'_>,
    place: Place,
    round: i64,
    id: QueueId,
    limit: u32,
) -> Result<Vec<MarkedDocument>> {
    tx.query(
        "SELECT id, docid, leaving, leaving_round FROM queue
         WHERE part = $1 AND jobid = $2 AND leaving IS NOT NULL AND (leaving_round, id) > ($3, $4)
         ORDER BY leaving_round, id LIMIT $5",
        &[place.part.into(), place.job.into(), round.into(), id.into(), limit.into()],
        |row| {
            let (id, docid, cause) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(MarkedDocument { id, docid, cause, round: row.get(3)? })
        },
    )
}

/// Takes marks up to a round off. Returns how many that were; call again until it is none.
pub fn unmark(tx: &mut Tx<'_>, place: Place, round: i64, limit: u32) -> Result<u64> {
    let marked: Vec<(QueueId, String)> = tx.query(
        "SELECT id, leaving FROM queue
         WHERE part = $1 AND jobid = $2 AND leaving_round <= $3 AND leaving IS NOT NULL
         ORDER BY leaving_round, id LIMIT $4 /*for update*/",
        &[place.part.into(), place.job.into(), round.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let taken_off = marked.iter().map(|it| it.0).collect();
    MarkChanges { taken_off, ..MarkChanges::default() }.write(tx, place, 0)?;
    let mut deltas: BTreeMap<String, i64> = BTreeMap::new();
    for (_, cause) in &marked {
        *deltas.entry(counter(cause)).or_default() -= 1;
    }
    let deltas: Vec<(&str, i64)> = deltas.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    counters::add(tx, place.part, place.job, &deltas)?;
    Ok(marked.len() as u64)
}

#[cfg(test)]
mod tests;
