//! What naming a document again means for one that is known.
//!
//! Invariants: a run and a distance are only ever taken over from newer and nearer,
//! whatever others have written since the look; rows are locked in one order by
//! everybody.

use super::{AddResult, Candidate, take_room};
use crate::chunkfile::document::DocumentRole;
use crate::dialect::ValueKind;
use crate::ids::{BinId, QueueId, Run};
use crate::tables::queue::counting::{Move, count_moves};
use crate::tables::queue::role::Needed;
use crate::tables::queue::{Place, ReasonCode, State};
use crate::value::{Row, column};
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::HashMap;

/// What the queue knows of a candidate.
pub(super) struct QueuedDocument {
    pub(super) id: QueueId,
    seen_run: Run,
    seed_run: Option<Run>,
    hops: i64,
    /// Cut for a reason that a candidate can lift.
    revivable: bool,
    state: State,
    /// To be looked at again, or to expire, at its time.
    scheduled: bool,
    done_run: Option<Run>,
    role: DocumentRole,
    unlinked: bool,
    needed_run: Option<Run>,
    levels: i64,
}

const KNOWN: &str = "dochash, id, seen_run, seed_run, hops, state, reason, done_run, requisite, \
    unlinked, needed_run, levels";

impl QueuedDocument {
    fn from_row(row: &Row<'_>) -> Result<QueuedDocument> {
        let state: State = row.get(column!(KNOWN, "state"))?;
        let reason: Option<String> = row.get(column!(KNOWN, "reason"))?;
        let code = reason.as_deref().and_then(ReasonCode::parse);
        Ok(QueuedDocument {
            id: row.get(column!(KNOWN, "id"))?,
            seen_run: row.get(column!(KNOWN, "seen_run"))?,
            seed_run: row.get(column!(KNOWN, "seed_run"))?,
            hops: row.get(column!(KNOWN, "hops"))?,
            revivable: state == State::Cut && code.is_some_and(ReasonCode::is_revivable),
            state,
            scheduled: state == State::Waiting && reason.is_none(),
            done_run: row.get(column!(KNOWN, "done_run"))?,
            role: DocumentRole::of_requisite(row.get(column!(KNOWN, "requisite"))?),
            unlinked: row.get(column!(KNOWN, "unlinked"))?,
            needed_run: row.get(column!(KNOWN, "needed_run"))?,
            levels: row.get(column!(KNOWN, "levels"))?,
        })
    }

    /// Whether naming the document again says anything new.
    pub(super) fn differs(&self, candidate: &Candidate, run: Run) -> bool {
        let is_needed = candidate.role.is_requisite();
        let is_nearer = match candidate.role {
            DocumentRole::Page => candidate.hops < self.hops || self.is_none_yet(candidate),
            DocumentRole::Requisite => candidate.levels < self.levels,
        };
        self.seen_run < run
            || is_nearer
            || (is_needed && self.needed_run.is_none_or(|needed_run| needed_run < run))
            || (candidate.seed && self.seed_run.is_none_or(|seed_run| seed_run < run))
            || ((self.revivable || self.is_older(run)) && candidate.cut.is_none())
    }

    /// Named as a page, and let in, and none so far.
    pub(super) fn is_none_yet(&self, candidate: &Candidate) -> bool {
        candidate.cut.is_none() && (self.unlinked || self.role.is_requisite())
    }

    /// What it means for it to be named as a requisite.
    pub(super) fn needed(&self, candidate: &Candidate) -> Needed {
        Needed {
            id: self.id,
            levels: candidate.levels,
            is_let_in: candidate.cut.is_none(),
            was_cut: self.revivable,
            is_nearer: self.role.is_requisite() && candidate.levels < self.levels,
        }
    }

    /// Settled by an older run.
    fn is_older(&self, run: Run) -> bool {
        (matches!(self.state, State::Done | State::Failed | State::Cut) || self.scheduled)
            && self.done_run.is_some_and(|done_run| done_run < run)
    }
}

pub(super) fn find_known(
    tx: &mut Tx<'_>,
    place: Place,
    candidates: &[&Candidate],
) -> Result<HashMap<DocHash, QueuedDocument>> {
    let keys: Vec<Value<'_>> = candidates.iter().map(|it| (&it.dochash).into()).collect();
    let found = tx.query_in(
        &format!(
            "SELECT {KNOWN} FROM queue
             WHERE part = $1 AND jobid = $2 AND dochash IN ($keys)"
        ),
        &[place.part.into(), place.job.into()],
        &keys,
        |row| Ok((row.get(column!(KNOWN, "dochash"))?, QueuedDocument::from_row(row)?)),
    )?;
    Ok(found.into_iter().collect())
}

/// Locks rows in one order, as everybody does; an update of many rows locks as it likes.
pub(super) fn lock(
    tx: &mut Tx<'_>,
    place: Place,
    known: &HashMap<DocHash, QueuedDocument>,
    changed: &[&Candidate],
) -> Result<()> {
    let mut keys: Vec<Value<'_>> = changed.iter().map(|it| known[&it.dochash].id.into()).collect();
    keys.sort_by_key(|key| if let Value::Int(id) = key { *id } else { 0 });
    tx.query_in(
        "SELECT id FROM queue WHERE part = $1 AND id IN ($keys)
         ORDER BY id /*for update*/",
        &[place.part.into()],
        &keys,
        |_| Ok(()),
    )?;
    Ok(())
}

/// Takes over newer runs and shorter paths; never the other way, whatever others
/// have written since the look.
pub(super) fn update_known(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    known: &HashMap<DocHash, QueuedDocument>,
    changed: &[&Candidate],
) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = changed
        .iter()
        .map(|it| {
            let known = &known[&it.dochash];
            // A page is as far as links to it say; so is a requisite that becomes one.
            let is_no_link = it.role.is_requisite() && !known.role.is_requisite();
            let hops = if is_no_link { known.hops } else { it.hops };
            let becomes_page = !it.role.is_requisite() && known.is_none_yet(it);
            let seed = it.seed.then_some(run).into();
            vec![known.id.into(), hops.into(), seed, becomes_page.into()]
        })
        .collect();
    tx.update_rows(
        "UPDATE queue SET
             seen_run = CASE WHEN seen_run < $2 THEN $2 ELSE seen_run END,
             hops = CASE WHEN v.column2 < hops OR (v.column4 = 1 AND requisite = 0)
                         THEN v.column2 ELSE hops END,
             seed_run = CASE WHEN v.column3 IS NULL OR v.column3 < seed_run
                             THEN seed_run ELSE v.column3 END",
        &[place.part.into(), run.into()],
        &[ValueKind::Int; 4],
        &rows,
        "WHERE queue.part = $1 AND queue.id = v.column1",
    )?;
    Ok(())
}

/// Brings back what a limit had cut and is let in now.
pub(super) fn revive(
    tx: &mut Tx<'_>,
    place: Place,
    known: &HashMap<DocHash, QueuedDocument>,
    changed: &[&Candidate],
    added: &mut AddResult,
    room: &mut Option<i64>,
) -> Result<()> {
    let revivable: Vec<QueueId> = changed
        .iter()
        .filter(|it| it.cut.is_none() && known[&it.dochash].revivable)
        .map(|it| known[&it.dochash].id)
        .collect();
    let keys: Vec<Value<'_>> =
        revivable.iter().copied().filter(|_| take_room(room)).map(Into::into).collect();
    added.crowded_out += (revivable.len() - keys.len()) as u64;
    let [scope, hops, limit, budget] = ReasonCode::REVIVABLE;
    let revived: Vec<(BinId, bool)> = tx.query_in(
        "UPDATE queue SET state = 'ready', reason = NULL, detail = NULL
         WHERE part = $1 AND state = 'cut' AND reason IN ($2, $3, $4, $5) AND id IN ($keys)
         RETURNING bin, requisite",
        &[place.part.into(), scope.into(), hops.into(), limit.into(), budget.into()],
        &keys,
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    count_moves(tx, place, &moves(State::Cut, &revived))?;
    added.woken.extend(revived.iter().map(|it| it.0));
    added.revived += revived.len() as u64;
    Ok(())
}

/// What older runs settled and this one has found again.
pub(super) fn rediscover(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    known: &HashMap<DocHash, QueuedDocument>,
    changed: &[&Candidate],
    added: &mut AddResult,
) -> Result<()> {
    for state in [State::Done, State::Failed, State::Cut, State::Waiting] {
        let found: Vec<Value<'_>> = changed
            .iter()
            .filter(|it| it.cut.is_none())
            .map(|it| &known[&it.dochash])
            .filter(|it| it.state == state && !it.revivable && it.is_older(run))
            .map(|it| it.id.into())
            .collect();
        let fixed = [place.part.into(), state.name().into(), run.into()];
        let again: Vec<(BinId, bool)> = tx.query_in(
            "UPDATE queue SET state = 'ready', action = 'fetch', reason = NULL,
                 detail = NULL, checktime = NULL
             WHERE part = $1 AND state = $2 AND done_run < $3
               AND (state <> 'waiting' OR reason IS NULL) AND id IN ($keys)
             RETURNING bin, requisite",
            &fixed,
            &found,
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        count_moves(tx, place, &moves(state, &again))?;
        added.woken.extend(again.iter().map(|it| it.0));
    }
    Ok(())
}

/// What is ready that was in a state, each with whether it is a requisite.
fn moves(from: State, ready: &[(BinId, bool)]) -> Vec<Move> {
    let role = |it: &(BinId, bool)| DocumentRole::of_requisite(it.1);
    ready.iter().map(|it| Move { from, to: State::Ready, role: role(it), count: 1 }).collect()
}
