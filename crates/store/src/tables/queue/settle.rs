//! Settling the documents of a chunk when it commits: where each goes from here.
//!
//! Invariants: only documents that are active in the chunk's claim are settled; a
//! settlement for anything else is a bug of the caller, and nothing is written. What the job
//! has of a document, and whether it is to lose it, changes here and in
//! [`removals`](crate::tables::removals), with its counters.

use super::counting::Deltas;
use super::{Action, Place, Reason, State};
use crate::chunkfile::document::DocumentRole;
use crate::dialect::ValueKind;
use crate::ids::{BinId, ChunkId, QueueId, Run};
use crate::tables::events;
use crate::tables::removals::{self, Presence, SettledRow};
use crate::value::{Row, column};
use crate::{Error, Result, Tx, Value};
use std::collections::{BTreeMap, HashMap};

/// Where a processed document goes.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Settlement {
    /// Processed in this run; nothing more to do until the next.
    Done,
    /// Processed; to be looked at again at a time (continuous jobs).
    Again { check_ms: i64, action: Action },
    /// Not processed: try again at a time.
    Retry {
        check_ms: i64,
        /// Retries that are left.
        failcount: Option<i64>,
        /// After this time the document is given up.
        failtime: Option<i64>,
        reason: Reason,
    },
    /// Not processed after all: ready again, as it was before it was claimed.
    Back {
        /// Retries that are left, while it is failing.
        failcount: Option<i64>,
        /// When retrying ends, while it is failing.
        failtime: Option<i64>,
    },
    /// Known, but not to be processed in this run: `robots`, `noindex` …
    Cut(Reason),
    /// Not processed, and not wanted any more, as if it had been cut when it was named:
    /// no run looks at it until somebody names it again and it is let in.
    Unwanted(Reason),
    /// Given up for this run: a dead letter that an operator, or the next run, retries.
    Failed(Reason),
    /// Queued by an older run, and not found again by this one: it is as that run would
    /// have left it, and goes if no run has ever processed it.
    Stale,
    /// No longer the job's: its row goes.
    Deleted,
}

/// One document with where it goes.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct SettledDocument {
    pub id: QueueId,
    /// Generation of the links and carried values it asserted this time.
    pub generation: i64,
    pub to: Settlement,
}

const KINDS: &[ValueKind] = &[
    ValueKind::Int,
    ValueKind::Text,
    ValueKind::Text,
    ValueKind::Text,
    ValueKind::Text,
    ValueKind::Int,
    ValueKind::Int,
    ValueKind::Int,
    ValueKind::Int,
    ValueKind::Int,
    ValueKind::Int,
    ValueKind::Int,
];

/// What becomes of the role of a document that is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleChange {
    /// A page that nothing links to any more becomes a requisite, unless somebody has linked to
    /// it since it was claimed.
    Requisite,
    /// It is too far from every seed to be a page, and needed: it becomes a requisite at the end
    /// of the run, unless that has changed since it was claimed.
    Unlinked,
}

impl RoleChange {
    fn number(self) -> i64 {
        match self {
            RoleChange::Requisite => 1,
            RoleChange::Unlinked => 2,
        }
    }
}

/// What a commit found out about the documents that it settles.
#[derive(Debug, Clone, Copy)]
pub struct Presences<'a> {
    /// What the job has of each; of one that is not named nothing new is known.
    pub by_id: &'a HashMap<QueueId, Presence>,
    /// The round of new marks, read under the job's lock; unused without marks.
    pub round: i64,
    /// Documents whose role changes.
    pub roles: &'a HashMap<QueueId, RoleChange>,
}

/// Settles documents of a chunk, of which nothing new is known.
pub fn settle(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    run: Run,
    settled: &[SettledDocument],
) -> Result<()> {
    let (by_id, roles) = (HashMap::new(), HashMap::new());
    let presences = Presences { by_id: &by_id, round: 0, roles: &roles };
    settle_with(tx, place, claim, run, settled, presences)
}

/// Settles documents of a chunk. One whose carried values or distance changed while it was
/// active (`rescan`) is ready again at once instead.
pub fn settle_with(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    run: Run,
    settled: &[SettledDocument],
    presences: Presences<'_>,
) -> Result<()> {
    let active = active(tx, place, claim)?;
    let presence = |id: QueueId| presences.by_id.get(&id).copied().unwrap_or_default();
    let is_deleted = |it: &&SettledDocument| goes(it, active.get(&it.id), run);
    let deleted: Vec<Value<'_>> =
        settled.iter().filter(is_deleted).map(|it| it.id.into()).collect();
    let kept: Vec<(&SettledDocument, State)> = settled
        .iter()
        .filter(|it| !is_deleted(it))
        .map(|it| (it, state_after(it, active.get(&it.id), run)))
        .collect();
    let change = |id: QueueId| presences.roles.get(&id).copied();
    let mut rows: Vec<Vec<Value<'_>>> =
        kept.iter().map(|(it, state)| update_row(it, *state, run, presence(it.id))).collect();
    for (row, (it, _)) in rows.iter_mut().zip(&kept) {
        row.push(change(it.id).map(RoleChange::number).into());
    }

    let removed = write_all(tx, place, claim, &rows, &deleted)?;
    let again = kept.iter().filter(|(_, state)| *state == State::Ready);
    let woken: Vec<BinId> = again.filter_map(|(it, _)| Some(active.get(&it.id)?.bin)).collect();
    count_out_of_bins(tx, place, &removed)?;
    events::forget(tx, place.part, &deleted)?;
    super::add::mark_bins(tx, place, woken)?;
    let mut deltas = Deltas::default();
    for row in active_of(settled, &active) {
        deltas.add(State::Active, row.role, -1);
    }
    for (it, state) in &kept {
        deltas.add(*state, active[&it.id].role(change(it.id)), 1);
    }
    let rows = settled.iter().filter_map(|it| {
        let row = active.get(&it.id)?;
        let is_deleted = is_deleted(&it);
        Some(SettledRow {
            id: it.id,
            is_deleted,
            had_document: row.has_document,
            leaving: row.leaving.as_deref(),
            presence: if is_deleted { Presence::Absent } else { presence(it.id) },
        })
    });
    let mut marking = removals::MarkChanges::default();
    rows.for_each(|row| marking.add(row, deltas.by_name()));
    marking.write(tx, place, presences.round)?;
    deltas.write(tx, place)
}

/// Writes what stays and deletes what goes, all of it. Returns the bins of what went.
fn write_all(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    kept: &[Vec<Value<'_>>],
    deleted: &[Value<'_>],
) -> Result<Vec<BinId>> {
    let updated = write_settled(tx, place, claim, kept)?;
    let removed = delete_settled(tx, place, claim, deleted)?;
    if updated != kept.len() as u64 || removed.len() != deleted.len() {
        return Err(Error::invariant(format!(
            "claim {claim} settles documents that are not active in it ({updated} of {} updated, \
             {} of {} deleted)",
            kept.len(),
            removed.len(),
            deleted.len()
        )));
    }
    Ok(removed)
}

/// The rows of what is settled, all of which are there.
fn active_of<'a>(
    settled: &'a [SettledDocument],
    active: &'a HashMap<QueueId, Active>,
) -> impl Iterator<Item = &'a Active> {
    settled.iter().filter_map(|it| active.get(&it.id))
}

/// Whether the row of a settled document goes.
fn goes(it: &SettledDocument, row: Option<&Active>, run: Run) -> bool {
    match it.to {
        // One that is to be looked at again stays, whatever was found this time.
        Settlement::Deleted => !row.is_some_and(|row| row.rescan),
        Settlement::Stale => row.is_some_and(|row| row.is_new && row.seen_run < run),
        _ => false,
    }
}

/// Writes where documents stand now ([`update_row`]), and takes them out of the claim.
fn write_settled(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    rows: &[Vec<Value<'_>>],
) -> Result<u64> {
    tx.update_rows(
        "UPDATE queue SET state = v.column2, action = COALESCE(v.column3, action),
             reason = v.column4, detail = v.column5, done_run = COALESCE(v.column6, done_run),
             checktime = v.column7, failcount = v.column8, failtime = v.column9,
             generation = v.column10, rescan = 0,
             has_document = COALESCE(v.column11, has_document), chunk = NULL,
             claimed_state = NULL, claimed_action = NULL,
             requisite = CASE WHEN v.column12 = 1 AND unlinked = 1 THEN 1 ELSE requisite END,
             unlinked = CASE WHEN v.column12 = 1 THEN 0
                             WHEN v.column12 = 2 AND requisite = 0 AND rescan = 0 THEN 1
                             ELSE unlinked END",
        &[place.part.into(), claim.into()],
        KINDS,
        rows,
        "WHERE queue.part = $1 AND queue.id = v.column1
           AND queue.state = 'active' AND queue.chunk = $2",
    )
}

/// Deletes rows of a claim. Returns the bins that they were in.
fn delete_settled(
    tx: &mut Tx<'_>,
    place: Place,
    claim: ChunkId,
    ids: &[Value<'_>],
) -> Result<Vec<BinId>> {
    tx.query_in(
        "DELETE FROM queue WHERE part = $1 AND state = 'active' AND chunk = $2 AND id IN ($keys)
         RETURNING bin",
        &[place.part.into(), claim.into()],
        ids,
        |row| row.get(0),
    )
}

/// What others may have written since a document was claimed.
struct Active {
    bin: BinId,
    /// The job has a document here.
    has_document: bool,
    /// Why the job is to lose it.
    leaving: Option<String>,
    /// Its carried values have changed.
    rescan: bool,
    seen_run: Run,
    /// No run has processed it.
    is_new: bool,
    role: DocumentRole,
    /// A page that the run has only named as a requisite.
    unlinked: bool,
}

const ACTIVE: &str =
    "id, bin, rescan, seen_run, done_run, has_document, leaving, requisite, unlinked";

impl Active {
    fn from_row(row: &Row<'_>) -> Result<Active> {
        Ok(Active {
            bin: row.get(column!(ACTIVE, "bin"))?,
            has_document: row.get(column!(ACTIVE, "has_document"))?,
            leaving: row.get(column!(ACTIVE, "leaving"))?,
            rescan: row.get(column!(ACTIVE, "rescan"))?,
            seen_run: row.get(column!(ACTIVE, "seen_run"))?,
            is_new: row.get::<Option<Run>>(column!(ACTIVE, "done_run"))?.is_none(),
            role: DocumentRole::of_requisite(row.get(column!(ACTIVE, "requisite"))?),
            unlinked: row.get(column!(ACTIVE, "unlinked"))?,
        })
    }

    /// What it is after a change.
    fn role(&self, change: Option<RoleChange>) -> DocumentRole {
        let becomes_one = change == Some(RoleChange::Requisite) && self.unlinked;
        if becomes_one { DocumentRole::Requisite } else { self.role }
    }
}

/// All that is active in the claim. The rows are locked, so that no change is lost
/// between look and update.
fn active(tx: &mut Tx<'_>, place: Place, claim: ChunkId) -> Result<HashMap<QueueId, Active>> {
    let rows = tx.query(
        &format!(
            "SELECT {ACTIVE} FROM queue
             WHERE part = $1 AND state = 'active' AND chunk = $2
             ORDER BY id LIMIT 100000 /*for update*/"
        ),
        &[place.part.into(), claim.into()],
        |row| Ok((row.get(column!(ACTIVE, "id"))?, Active::from_row(row)?)),
    )?;
    Ok(rows.into_iter().collect())
}

/// A deleted document no longer counts in its bin.
pub(super) fn count_out_of_bins(tx: &mut Tx<'_>, place: Place, removed: &[BinId]) -> Result<()> {
    let mut counts: BTreeMap<BinId, i64> = BTreeMap::new();
    for bin in removed {
        *counts.entry(*bin).or_default() += 1;
    }
    let rows: Vec<Vec<Value<'_>>> =
        counts.into_iter().map(|(bin, count)| vec![bin.into(), count.into()]).collect();
    tx.update_rows(
        "UPDATE bins SET documents = documents - v.column2",
        &[place.part.into()],
        &[ValueKind::Int; 2],
        &rows,
        "WHERE bins.part = $1 AND bins.bin = v.column1",
    )?;
    Ok(())
}

fn state_after(settled: &SettledDocument, row: Option<&Active>, run: Run) -> State {
    let rescan = row.is_some_and(|row| row.rescan);
    match settled.to {
        // Somebody has found it since it was claimed.
        Settlement::Stale if row.is_some_and(|row| row.seen_run >= run) => State::Ready,
        Settlement::Stale => State::Done,
        Settlement::Done | Settlement::Again { .. } | Settlement::Cut(_) if rescan => State::Ready,
        Settlement::Deleted if rescan => State::Ready,
        Settlement::Back { .. } => State::Ready,
        Settlement::Done => State::Done,
        Settlement::Again { .. } | Settlement::Retry { .. } => State::Waiting,
        Settlement::Cut(_) | Settlement::Unwanted(_) => State::Cut,
        Settlement::Failed(_) => State::Failed,
        Settlement::Deleted => unreachable!("deleted documents have no state"),
    }
}

fn update_row(
    settled: &SettledDocument,
    state: State,
    run: Run,
    presence: Presence,
) -> Vec<Value<'_>> {
    let null = Value::Null;
    let (action, reason, done_run, check, failcount, failtime) = match &settled.to {
        Settlement::Done => (Some(Action::Fetch), None, run.into(), null, null, null),
        Settlement::Again { check_ms, action } => {
            (Some(*action), None, run.into(), (*check_ms).into(), null, null)
        }
        Settlement::Retry { check_ms, failcount, failtime, reason } => {
            let (count, time) = ((*failcount).into(), (*failtime).into());
            (Some(Action::Fetch), Some(reason), null, (*check_ms).into(), count, time)
        }
        Settlement::Back { failcount, failtime } => {
            (None, None, null, null, (*failcount).into(), (*failtime).into())
        }
        Settlement::Cut(reason) | Settlement::Failed(reason) => {
            (Some(Action::Fetch), Some(reason), run.into(), null, null, null)
        }
        Settlement::Unwanted(reason) => (Some(Action::Fetch), Some(reason), null, null, null, null),
        Settlement::Stale => (Some(Action::Fetch), None, null, null, null, null),
        Settlement::Deleted => (Some(Action::Fetch), None, run.into(), null, null, null),
    };
    let (code, detail) = match reason {
        Some(reason) if state != State::Ready => {
            let (code, detail) = reason.columns();
            (code.into(), detail.into())
        }
        Some(_) | None => (null, null),
    };
    let check = if state == State::Ready { null } else { check };
    vec![
        settled.id.into(),
        state.name().into(),
        action.map(Action::name).into(),
        code,
        detail,
        done_run,
        check,
        failcount,
        failtime,
        settled.generation.into(),
        presence.has_document().map(i64::from).into(),
    ]
}
