//! Putting documents into the queue: seeds, and links as they are discovered.
//!
//! Invariant: adding is idempotent and needs no lease, because links cross parts:
//! a repeated add finds everything already there and changes nothing. The bin of
//! whatever became ready is marked in the same transaction, so the holder of the
//! part cannot miss it however late this commits.

use super::{Place, State, count_moves};
use crate::dialect::Kind;
use crate::ids::{BinId, Part, QueueId, Run};
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A document somebody has named.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// A fresh id, used if the document is new.
    pub id: QueueId,
    /// Its key.
    pub dochash: DocHash,
    /// Its identifier.
    pub docid: String,
    /// The number of its bin.
    pub bin: BinId,
    /// The name of its bin.
    pub bin_name: String,
    /// Its place in the bin's order: lower is sooner.
    pub priority: f64,
    /// Links from the nearest seed on this path.
    pub hops: i64,
    /// Redirects in a row that led here; 0 for a link.
    pub redirects: i64,
    /// Whether a seed list names it.
    pub seed: bool,
    /// Who named it: the part and the key.
    pub parent: Option<(Part, DocHash)>,
    /// Why it is known but not to be fetched: `scope`, `hops`, `limit` or another
    /// reason; `None` lets it in.
    pub cut: Option<&'static str>,
}

/// The reason of what there was no room for.
const LIMIT: &str = "limit";

/// What adding did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Documents that were not known to the job.
    pub new: u64,
    /// Documents that a limit had cut and that are let in now.
    pub revived: u64,
    /// Known documents that this run had not seen, that are nearer now, or revived.
    pub seen: u64,
    /// New or revived documents that there was no room for.
    pub crowded_out: u64,
    /// Bins that have something ready because of this.
    pub woken: BTreeSet<BinId>,
}

/// Where documents are added, when, and how many may be let in.
#[derive(Debug, Clone, Copy)]
pub struct Adding {
    /// The job and the part.
    pub place: Place,
    /// The run that names them.
    pub run: Run,
    /// The time.
    pub now_ms: i64,
    /// New documents that may be let in; those beyond are cut with the reason `limit`.
    pub room: Option<i64>,
    /// Whether hops decide what is let in: then a document that turns out to be nearer
    /// is processed again, because what lies behind it is nearer too.
    pub by_hops: bool,
}

/// Adds documents to a job in a part.
///
/// A known document takes over a shorter path and the newer run. One that was cut
/// for its scope, hops, a limit or a budget comes back to life if the candidate is let in.
/// When there is not room for all, the nearest to a seed and first found are let in.
pub fn add(tx: &mut Tx<'_>, adding: Adding, candidates: &[Candidate]) -> Result<Added> {
    let Adding { place, run, mut room, .. } = adding;
    let mut added = Added::default();
    let mut rest = nearest(candidates);
    while !rest.is_empty() {
        let known = find_known(tx, place, &rest)?;
        let (old, new): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|it| known.contains_key(&it.dochash));
        let changed: Vec<&Candidate> =
            old.into_iter().filter(|it| known[&it.dochash].differs(it, run)).collect();
        added.seen += changed.len() as u64;
        update_known(tx, place, run, (&known, &changed))?;
        revive(tx, place, (&known, &changed), (&mut added, &mut room))?;
        if adding.by_hops {
            process_again(tx, adding, (&known, &changed), &mut added)?;
        }
        // Another process may have added one between the look and the insert; it is
        // known then, and the next round treats it so.
        rest = insert_new(tx, adding, new, (&mut added, &mut room))?;
    }
    mark_bins(tx, place, added.woken.iter().copied())?;
    Ok(added)
}

/// Takes one place, if there is a limit and room within it.
fn take_room(room: &mut Option<i64>) -> bool {
    match room {
        None => true,
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        Some(_) => false,
    }
}

/// What the queue knows of a candidate.
struct Known {
    id: QueueId,
    seen_run: Run,
    seed_run: Option<Run>,
    hops: i64,
    /// Cut for a reason that a candidate can lift.
    revivable: bool,
}

impl Known {
    /// Whether naming the document again says anything new.
    fn differs(&self, candidate: &Candidate, run: Run) -> bool {
        self.seen_run < run
            || candidate.hops < self.hops
            || (candidate.seed && self.seed_run.is_none_or(|seed_run| seed_run < run))
            || (self.revivable && candidate.cut.is_none())
    }
}

fn find_known(
    tx: &mut Tx<'_>,
    place: Place,
    candidates: &[&Candidate],
) -> Result<HashMap<DocHash, Known>> {
    let keys: Vec<Value<'_>> = candidates.iter().map(|it| (&it.dochash).into()).collect();
    let found = tx.query_in(
        "SELECT dochash, id, seen_run, seed_run, hops, state, reason FROM queue
         WHERE part = $1 AND jobid = $2 AND dochash",
        &[place.part.into(), place.job.into()],
        &keys,
        "",
        |row| {
            let (state, reason): (String, Option<String>) = (row.get(5)?, row.get(6)?);
            let lifted = matches!(reason.as_deref(), Some("scope" | "hops" | "limit" | "budget"));
            let known = Known {
                id: row.get(1)?,
                seen_run: row.get(2)?,
                seed_run: row.get(3)?,
                hops: row.get(4)?,
                revivable: state == State::Cut.name() && lifted,
            };
            Ok((row.get(0)?, known))
        },
    )?;
    Ok(found.into_iter().collect())
}

/// Takes over newer runs and shorter paths; never the other way, whatever others
/// have written since the look.
fn update_known(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    (known, changed): (&HashMap<DocHash, Known>, &[&Candidate]),
) -> Result<()> {
    // Locked in one order by everybody; an update of many rows locks as it likes.
    let mut keys: Vec<Value<'_>> = changed.iter().map(|it| known[&it.dochash].id.into()).collect();
    keys.sort_by_key(|key| if let Value::Int(id) = key { *id } else { 0 });
    tx.query_in(
        "SELECT id FROM queue WHERE part = $1 AND id",
        &[place.part.into()],
        &keys,
        "ORDER BY id /*for update*/",
        |_| Ok(()),
    )?;
    let rows: Vec<Vec<Value<'_>>> = changed
        .iter()
        .map(|it| {
            let id = known[&it.dochash].id;
            vec![id.into(), it.hops.into(), it.seed.then_some(run).into()]
        })
        .collect();
    tx.update_rows(
        "UPDATE queue SET
             seen_run = CASE WHEN seen_run < $2 THEN $2 ELSE seen_run END,
             hops = CASE WHEN v.column2 < hops THEN v.column2 ELSE hops END,
             seed_run = CASE WHEN v.column3 IS NULL OR v.column3 < seed_run
                             THEN seed_run ELSE v.column3 END",
        &[place.part.into(), run.into()],
        (&[Kind::Int; 3], &rows),
        "WHERE queue.part = $1 AND queue.id = v.column1",
    )?;
    Ok(())
}

/// Brings back what a limit had cut and is let in now.
fn revive(
    tx: &mut Tx<'_>,
    place: Place,
    (known, changed): (&HashMap<DocHash, Known>, &[&Candidate]),
    (added, room): (&mut Added, &mut Option<i64>),
) -> Result<()> {
    let revivable: Vec<QueueId> = changed
        .iter()
        .filter(|it| it.cut.is_none() && known[&it.dochash].revivable)
        .map(|it| known[&it.dochash].id)
        .collect();
    let keys: Vec<Value<'_>> =
        revivable.iter().copied().filter(|_| take_room(room)).map(Into::into).collect();
    added.crowded_out += (revivable.len() - keys.len()) as u64;
    let revived: Vec<BinId> = tx.query_in(
        "UPDATE queue SET state = 'ready', reason = NULL, detail = NULL
         WHERE part = $1 AND state = 'cut'
           AND reason IN ('scope', 'hops', 'limit', 'budget') AND id",
        &[place.part.into()],
        &keys,
        "RETURNING bin",
        |row| row.get(0),
    )?;
    let count = revived.len() as i64;
    count_moves(tx, place, &[(State::Cut, -count), (State::Ready, count)])?;
    added.woken.extend(&revived);
    added.revived += revived.len() as u64;
    Ok(())
}

/// Documents that this run is done with, or is at work on, and that are nearer now.
fn process_again(
    tx: &mut Tx<'_>,
    Adding { place, run, .. }: Adding,
    (known, changed): (&HashMap<DocHash, Known>, &[&Candidate]),
    added: &mut Added,
) -> Result<()> {
    let nearer: Vec<Value<'_>> = changed
        .iter()
        .filter(|it| it.hops < known[&it.dochash].hops)
        .map(|it| known[&it.dochash].id.into())
        .collect();
    tx.query_in(
        "UPDATE queue SET rescan = 1 WHERE part = $1 AND state = 'active' AND id",
        &[place.part.into()],
        &nearer,
        "RETURNING id",
        |_| Ok(()),
    )?;
    let again: Vec<BinId> = tx.query_in(
        "UPDATE queue SET state = 'ready' WHERE part = $1 AND state = 'done' AND done_run = $2 AND id",
        &[place.part.into(), run.into()],
        &nearer,
        "RETURNING bin",
        |row| row.get(0),
    )?;
    let count = again.len() as i64;
    count_moves(tx, place, &[(State::Done, -count), (State::Ready, count)])?;
    added.woken.extend(&again);
    Ok(())
}

/// Inserts unknown documents and counts them. Returns those somebody else inserted
/// at the same moment.
fn insert_new<'a>(
    tx: &mut Tx<'_>,
    adding: Adding,
    new: Vec<&'a Candidate>,
    (added, room): (&mut Added, &mut Option<i64>),
) -> Result<Vec<&'a Candidate>> {
    let place = adding.place;
    let shut_out = without_room(&new, room);
    let cut = |it: &Candidate| it.cut.or_else(|| shut_out.contains(&it.id).then_some(LIMIT));
    let mut new: Vec<(&Candidate, Option<&'static str>)> =
        new.into_iter().map(|it| (it, cut(it))).collect();
    let rows: Vec<Vec<Value<'_>>> =
        new.iter().map(|(candidate, cut)| insert_row(adding, candidate, *cut)).collect();
    let inserted = tx.insert_rows(
        "INSERT INTO queue (part, jobid, seen_run, added_ms, id, dochash, docid, bin, docpriority,
                            hops, redirects, seed_run, parentpart, parenthash, state, reason, action,
                            rescan, generation)",
        &rows,
        "ON CONFLICT (part, dochash, jobid) DO NOTHING",
    )?;
    let mut lost = Vec::new();
    if inserted < new.len() as u64 {
        let keys: Vec<Value<'_>> = new.iter().map(|(it, _)| it.id.into()).collect();
        let there: BTreeSet<QueueId> = tx
            .query_in(
                "SELECT id FROM queue WHERE part = $1 AND id",
                &[place.part.into()],
                &keys,
                "",
                |row| row.get(0),
            )?
            .into_iter()
            .collect();
        let late: Vec<_>;
        (new, late) = new.into_iter().partition(|(it, _)| there.contains(&it.id));
        lost = late.into_iter().map(|(it, _)| it).collect();
    }
    let mut documents: BTreeMap<BinId, (&str, i64)> = BTreeMap::new();
    for (candidate, _) in &new {
        documents.entry(candidate.bin).or_insert((&candidate.bin_name, 0)).1 += 1;
    }
    let cut = new.iter().filter(|(_, cut)| cut.is_some()).count() as i64;
    added.woken.extend(new.iter().filter(|(_, cut)| cut.is_none()).map(|(it, _)| it.bin));
    added.new += new.len() as u64;
    added.crowded_out += new.iter().filter(|(_, cut)| *cut == Some(LIMIT)).count() as u64;
    count_moves(tx, place, &[(State::Ready, new.len() as i64 - cut), (State::Cut, cut)])?;
    count_in_bins(tx, place, &documents, adding.now_ms)?;
    Ok(lost)
}

/// Those that there is no room for: the farthest, and of these the last found.
fn without_room(new: &[&Candidate], room: &mut Option<i64>) -> BTreeSet<QueueId> {
    if room.is_none() {
        return BTreeSet::new();
    }
    let mut wanted: Vec<&&Candidate> = new.iter().filter(|it| it.cut.is_none()).collect();
    wanted.sort_by_key(|it| (it.hops, it.id));
    wanted.into_iter().filter(|_| !take_room(room)).map(|it| it.id).collect()
}

fn insert_row<'a>(adding: Adding, it: &'a Candidate, cut: Option<&'static str>) -> Vec<Value<'a>> {
    let Adding { place, run, now_ms, .. } = adding;
    let state = if cut.is_some() { State::Cut } else { State::Ready };
    vec![
        place.part.into(),
        place.job.into(),
        run.into(),
        now_ms.into(),
        it.id.into(),
        (&it.dochash).into(),
        (&it.docid).into(),
        it.bin.into(),
        it.priority.into(),
        it.hops.into(),
        it.redirects.into(),
        it.seed.then_some(run).into(),
        it.parent.map(|parent| parent.0).into(),
        it.parent.as_ref().map(|parent| &parent.1).into(),
        state.name().into(),
        cut.into(),
        "fetch".into(),
        false.into(),
        0.into(),
    ]
}

/// One candidate for each document: the nearest; a seed if any is. PostgreSQL
/// refuses to touch a row twice in one statement.
fn nearest(candidates: &[Candidate]) -> Vec<&Candidate> {
    let mut best: HashMap<DocHash, &Candidate> = HashMap::with_capacity(candidates.len());
    for candidate in candidates {
        best.entry(candidate.dochash)
            .and_modify(|held| {
                let rank = |it: &Candidate| (it.cut.is_some(), !it.seed, it.hops);
                if rank(candidate) < rank(held) {
                    *held = candidate;
                }
            })
            .or_insert(candidate);
    }
    let mut out: Vec<&Candidate> = best.into_values().collect();
    // One order for everybody who inserts, so that two of them seldom wait for each
    // other; it is also the order in which an index is cheapest to fill.
    out.sort_by_key(|candidate| candidate.dochash);
    out
}

fn count_in_bins(
    tx: &mut Tx<'_>,
    place: Place,
    documents: &BTreeMap<BinId, (&str, i64)>,
    now_ms: i64,
) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = documents
        .iter()
        .map(|(bin, (name, count))| {
            let zero = Value::Int(0);
            let counts = [(*count).into(), zero, zero, zero, zero, zero, zero];
            let mut row = vec![place.part.into(), (*bin).into(), (*name).into(), now_ms.into()];
            row.extend(counts);
            row
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO bins (part, bin, name, added_ms, documents, next_ms, failures, fetches, errors,
                           bytes, busy_ms)",
        &rows,
        "ON CONFLICT (part, bin) DO UPDATE SET documents = bins.documents + excluded.documents",
    )?;
    Ok(())
}

/// Raises the marks of bins that may have something ready now.
pub(super) fn mark_bins(
    tx: &mut Tx<'_>,
    place: Place,
    bins: impl IntoIterator<Item = BinId>,
) -> Result<()> {
    let bins: BTreeSet<BinId> = bins.into_iter().collect();
    let rows: Vec<Vec<Value<'_>>> = bins
        .into_iter()
        .map(|bin| vec![place.part.into(), place.job.into(), bin.into(), 1.into()])
        .collect();
    tx.insert_rows(
        "INSERT INTO bin_work (part, jobid, bin, mark)",
        &rows,
        "ON CONFLICT (part, jobid, bin) DO UPDATE SET mark = bin_work.mark + 1",
    )?;
    Ok(())
}
