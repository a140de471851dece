//! What a document is to its job: a page, or only needed by pages.
//!
//! A document that a seed or a link names is a page from then on. One that was a page, and that
//! a run which names all pages again has only named as a requisite, is unlinked: outputs keep it
//! as a page, it leads on as a requisite does, and if nothing links to it until the end of the
//! run, it becomes a requisite then, in place of being swept. Invariant: a row that is a
//! requisite and not cut counts in [`REQUISITES`](super::REQUISITES), and not as a page.

use super::add::take_room;
use super::counting::Deltas;
use super::{AddContext, ENTRY, Entry, Place, State};
use crate::chunkfile::document::DocumentRole;
use crate::dialect::ValueKind;
use crate::ids::{BinId, QueueId, Run};
use crate::value::{Row, column};
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::BTreeSet;

/// Requisites in a row: style sheets that import each other, frames in frames. What stands at
/// this level leads no further. Honest sites have two or three.
pub const LEVELS_MAX: i64 = 5;

/// A row that is named as a requisite.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needed {
    pub id: QueueId,
    /// Requisites in a row that lead to it.
    pub levels: i64,
    pub is_let_in: bool,
    /// It was cut for what a candidate can lift.
    pub was_cut: bool,
    /// It is a requisite, and fewer lead to it than before.
    pub is_nearer: bool,
}

/// Takes note of rows that a run names as requisites; they are locked. Returns the bins that have
/// something ready because of it.
pub(super) fn need(
    tx: &mut Tx<'_>,
    adding: AddContext,
    needed: Vec<Needed>,
) -> Result<BTreeSet<BinId>> {
    let AddContext { place, run, requisites, .. } = adding;
    let rows: Vec<Vec<Value<'_>>> = needed
        .iter()
        .map(|it| {
            let revives = it.is_let_in && it.was_cut;
            vec![it.id.into(), it.levels.into(), revives.into(), it.is_let_in.into()]
        })
        .collect();
    tx.update_rows(
        "UPDATE queue SET
             requisite = CASE WHEN v.column3 = 1 AND state = 'cut' THEN 1 ELSE requisite END,
             unlinked = CASE WHEN v.column3 = 1 AND state = 'cut' THEN 0
                             WHEN $3 = 1 AND v.column4 = 1 AND requisite = 0 AND seen_run < $2
                             THEN 1 ELSE unlinked END,
             levels = CASE WHEN needed_run IS NULL OR needed_run < $2 OR v.column2 < levels
                           THEN v.column2 ELSE levels END,
             needed_run = CASE WHEN needed_run IS NULL OR needed_run < $2
                               THEN $2 ELSE needed_run END",
        &[place.part.into(), run.into(), requisites.unlinks.into()],
        &[ValueKind::Int; 4],
        &rows,
        "WHERE queue.part = $1 AND queue.id = v.column1",
    )?;
    let nearer: Vec<Value<'_>> =
        needed.iter().filter(|it| it.is_nearer).map(|it| it.id.into()).collect();
    look_again(tx, place, &nearer)
}

/// A row that may be looked at again.
struct Looked {
    id: QueueId,
    bin: BinId,
    state: State,
    role: DocumentRole,
    /// It waits for another try, or for something to be over.
    is_held: bool,
}

const LOOKED: &str = "id, bin, state, requisite, reason";

impl Looked {
    fn from_row(row: &Row<'_>) -> Result<Looked> {
        Ok(Looked {
            id: row.get(column!(LOOKED, "id"))?,
            bin: row.get(column!(LOOKED, "bin"))?,
            state: row.get(column!(LOOKED, "state"))?,
            role: DocumentRole::of_requisite(row.get(column!(LOOKED, "requisite"))?),
            is_held: row.get::<Option<String>>(column!(LOOKED, "reason"))?.is_some(),
        })
    }

    /// Whether it was looked at, and can be at once.
    fn is_settled(&self) -> bool {
        self.state == State::Done || (self.state == State::Waiting && !self.is_held)
    }
}

/// Makes pages of rows that are none yet, as far as there is room: they are looked at again.
/// Returns the bins that have something ready because of it.
pub(super) fn become_pages(
    tx: &mut Tx<'_>,
    place: Place,
    ids: Vec<QueueId>,
    room: &mut Option<i64>,
) -> Result<BTreeSet<BinId>> {
    let keys: Vec<Value<'_>> = ids.into_iter().map(Into::into).collect();
    let mut rows = tx.query_in(
        &format!(
            "SELECT {LOOKED} FROM queue
             WHERE part = $1 AND (requisite = 1 OR unlinked = 1) AND id IN ($keys)
             ORDER BY id /*for update*/"
        ),
        &[place.part.into()],
        &keys,
        Looked::from_row,
    )?;
    // One that is cut takes its room when it comes back to life.
    let takes_room = |it: &Looked| it.role.is_requisite() && it.state != State::Cut;
    rows.retain(|it| !takes_room(it) || take_room(room));
    let mut deltas = Deltas::default();
    for it in &rows {
        deltas.add(it.state, it.role, -1);
        deltas.add(it.state, DocumentRole::Page, 1);
    }
    deltas.write(tx, place)?;
    let keys: Vec<Value<'_>> = rows.iter().map(|it| it.id.into()).collect();
    tx.query_in(
        "UPDATE queue SET requisite = 0, unlinked = 0 WHERE part = $1 AND id IN ($keys)
         RETURNING id",
        &[place.part.into()],
        &keys,
        |_| Ok(()),
    )?;
    look_again(tx, place, &keys)
}

/// Has rows looked at again that were looked at; they are locked.
fn look_again(tx: &mut Tx<'_>, place: Place, keys: &[Value<'_>]) -> Result<BTreeSet<BinId>> {
    let rows = tx.query_in(
        &format!("SELECT {LOOKED} FROM queue WHERE part = $1 AND id IN ($keys)"),
        &[place.part.into()],
        keys,
        Looked::from_row,
    )?;
    tx.query_in(
        "UPDATE queue SET rescan = 1 WHERE part = $1 AND state = 'active' AND id IN ($keys)
         RETURNING id",
        &[place.part.into()],
        keys,
        |_| Ok(()),
    )?;
    let settled: Vec<&Looked> = rows.iter().filter(|it| it.is_settled()).collect();
    let ids: Vec<Value<'_>> = settled.iter().map(|it| it.id.into()).collect();
    tx.query_in(
        "UPDATE queue SET state = 'ready', action = 'fetch', checktime = NULL
         WHERE part = $1 AND id IN ($keys)
         RETURNING id",
        &[place.part.into()],
        &ids,
        |_| Ok(()),
    )?;
    let mut deltas = Deltas::default();
    for it in &settled {
        deltas.add(it.state, it.role, -1);
        deltas.add(State::Ready, it.role, 1);
    }
    deltas.write(tx, place)?;
    Ok(settled.iter().map(|it| it.bin).collect())
}

const UNLINKED: &str = "q.part = $1 AND q.jobid = $2 AND q.unlinked = 1
      AND q.state = 'done' AND q.seen_run >= $3";

/// Pages that a run has only named as requisites, and is done with.
pub(super) fn peek_unlinked(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    limit: u32,
) -> Result<Vec<Entry>> {
    tx.query(
        &format!("SELECT {ENTRY} FROM queue q WHERE {UNLINKED} ORDER BY q.id LIMIT $4"),
        &[place.part.into(), place.job.into(), run.into(), limit.into()],
        Entry::from_row,
    )
}

/// Whether a run has only named some page as a requisite, and is done with it.
pub fn has_unlinked(tx: &mut Tx<'_>, place: Place, run: Run) -> Result<bool> {
    let found = tx.query_opt(
        &format!("SELECT q.id FROM queue q WHERE {UNLINKED} LIMIT 1"),
        &[place.part.into(), place.job.into(), run.into()],
        |row| row.get::<QueueId>(0),
    )?;
    Ok(found.is_some())
}

/// Where a document stands among those of its job, for whoever judges what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Standing {
    /// Links from the nearest seed.
    pub hops: i64,
    /// As what it is looked at.
    pub role: DocumentRole,
    /// Requisites in a row that lead to it.
    pub levels: i64,
}

/// Where some documents of a job stand.
pub fn standings(
    tx: &mut Tx<'_>,
    place: Place,
    keys: &[DocHash],
) -> Result<Vec<(DocHash, Standing)>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    tx.query_in(
        "SELECT dochash, hops, requisite, unlinked, levels FROM queue
         WHERE part = $1 AND +jobid = $2 AND dochash IN ($keys)",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| {
            let leads_as_one = row.get::<bool>(2)? || row.get::<bool>(3)?;
            let role = DocumentRole::of_requisite(leads_as_one);
            Ok((row.get(0)?, Standing { hops: row.get(1)?, role, levels: row.get(4)? }))
        },
    )
}
