//! What the counters of a queue say: its rows by state, and the requisites that were let in.
//!
//! Invariant: whatever moves a row from state to state, or changes its role, books that in the
//! same transaction.

use super::{Place, State};
use crate::chunkfile::document::DocumentRole;
use crate::ids::{JobId, Part};
use crate::tables::{counters, removals};
use crate::{Result, Tx};
use std::collections::BTreeMap;

/// Groups of rows that are counted apart in a part: a job has a few dozen.
const GROUPS_MAX: u32 = 1_000_000;

/// The counter of requisites that are not cut.
pub const REQUISITES: &str = "requisites";

/// Rows that go from one state to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    pub from: State,
    pub to: State,
    pub role: DocumentRole,
    pub count: i64,
}

/// Books changes of state in the counters.
pub(super) fn count_moves(tx: &mut Tx<'_>, place: Place, moves: &[Move]) -> Result<()> {
    let mut deltas = Deltas::default();
    for it in moves {
        deltas.add(it.from, it.role, -it.count);
        deltas.add(it.to, it.role, it.count);
    }
    deltas.write(tx, place)
}

/// Books rows that go between two states in which a requisite counts alike: neither is `cut`.
pub(super) fn count_uncut(
    tx: &mut Tx<'_>,
    place: Place,
    from: State,
    to: State,
    count: i64,
) -> Result<()> {
    count_moves(tx, place, &[Move { from, to, role: DocumentRole::Page, count }])
}

/// What changes in the counters of a job in a part.
#[derive(Debug, Default)]
pub(super) struct Deltas(BTreeMap<String, i64>);

impl Deltas {
    /// So many more rows of a state and a role.
    pub fn add(&mut self, state: State, role: DocumentRole, count: i64) {
        self.add_to(state.name(), count);
        if role.is_requisite() && state != State::Cut {
            self.add_to(REQUISITES, count);
        }
    }

    /// A counter by its name.
    pub fn add_to(&mut self, name: &str, count: i64) {
        match self.0.get_mut(name) {
            Some(delta) => *delta += count,
            None => {
                self.0.insert(name.to_owned(), count);
            }
        }
    }

    /// All of them by their names.
    pub fn by_name(&mut self) -> &mut BTreeMap<String, i64> {
        &mut self.0
    }

    pub fn write(&self, tx: &mut Tx<'_>, place: Place) -> Result<()> {
        let deltas: Vec<(&str, i64)> =
            self.0.iter().map(|(name, delta)| (name.as_str(), *delta)).collect();
        counters::add(tx, place.part, place.job, &deltas)
    }
}

/// Rows that are counted together.
struct Group {
    job: JobId,
    state: String,
    has_document: bool,
    leaving: Option<String>,
    is_requisite: bool,
    count: i64,
}

/// Counts the rows of all jobs of a part as their counters do, in one walk, for `verify`.
pub fn count_part(tx: &mut Tx<'_>, part: Part) -> Result<Vec<(JobId, String, i64)>> {
    let groups: Vec<Group> = tx.query(
        "SELECT jobid, state, has_document, leaving, requisite, COUNT(*) FROM queue WHERE part = $1
         GROUP BY jobid, state, has_document, leaving, requisite
         ORDER BY jobid, state, has_document, leaving, requisite LIMIT $2",
        &[part.into(), GROUPS_MAX.into()],
        |row| {
            Ok(Group {
                job: row.get(0)?,
                state: row.get(1)?,
                has_document: row.get(2)?,
                leaving: row.get(3)?,
                is_requisite: row.get(4)?,
                count: row.get(5)?,
            })
        },
    )?;
    let mut counted: BTreeMap<(JobId, String), i64> = BTreeMap::new();
    for group in groups {
        let documents = group.has_document.then(|| removals::DOCUMENTS.to_owned());
        let leaving = group.leaving.map(|cause| removals::counter(&cause));
        let is_in = group.is_requisite && group.state != State::Cut.name();
        let requisites = is_in.then(|| REQUISITES.to_owned());
        for name in [Some(group.state), documents, leaving, requisites].into_iter().flatten() {
            *counted.entry((group.job, name)).or_default() += group.count;
        }
    }
    Ok(counted.into_iter().map(|((job, name), count)| (job, name, count)).collect())
}

/// Counts the rows of each state, those with a document and those that are to lose it, the
/// slow way, for `doctor` and tests.
pub fn count_rows(tx: &mut Tx<'_>, place: Place) -> Result<Vec<(String, i64)>> {
    let mut counted = tx.query(
        "SELECT state, COUNT(*) FROM queue WHERE part = $1 AND jobid = $2
         GROUP BY state ORDER BY state LIMIT 10",
        &[place.part.into(), place.job.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    counted.extend(removals::count_rows(tx, place)?);
    let requisites: i64 = tx.query_one(
        "SELECT COUNT(*) FROM queue
         WHERE part = $1 AND jobid = $2 AND requisite = 1 AND state <> 'cut'",
        &[place.part.into(), place.job.into()],
        |row| row.get(0),
    )?;
    counted.extend((requisites > 0).then(|| (REQUISITES.to_owned(), requisites)));
    Ok(counted)
}
