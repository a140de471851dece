//! Putting documents into the queue: seeds, and links as they are discovered.
//!
//! Invariant: adding is idempotent and needs no lease, because links cross parts:
//! a repeated add finds everything already there and changes nothing. The bin of
//! whatever became ready is marked in the same transaction, so the holder of the
//! part cannot miss it however late this commits. A document that is named as a page, and let
//! in, is one from then on, whoever else names it as a requisite.

mod known;

use super::counting::Deltas;
use super::role::{self, become_pages};
use super::{Place, ReasonCode, State};
use crate::chunkfile::document::DocumentRole;
use crate::dialect::Dialect;
use crate::ids::{BinId, Part, QueueId, Run};
use crate::tables::events;
use crate::{Result, Tx, Value};
use known::{find_known, lock, rediscover, revive, update_known};
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A document somebody has named.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
// tidy: wide a row of `queue` as whoever names it knows it
pub struct Candidate {
    /// A fresh id, used if the document is new.
    pub id: QueueId,
    pub dochash: DocHash,
    pub docid: String,
    /// The number of its bin.
    pub bin: BinId,
    /// The name of its bin.
    pub bin_name: String,
    /// Its place in the bin's order: 0 for documents; for lists of documents, how many lists lead
    /// to them. Lists and documents take turns; among lists, lower is sooner.
    pub priority: f64,
    /// Links from the nearest seed on this path.
    pub hops: i64,
    /// Redirects in a row that led here; 0 for a link.
    pub redirects: i64,
    /// Whether a seed list names it.
    pub seed: bool,
    /// Who named it: the part and the key.
    pub parent: Option<(Part, DocHash)>,
    /// Why it is known but not to be fetched; `None` lets it in.
    pub cut: Option<ReasonCode>,
    /// Events that it depends on: while one of them is in play, it waits.
    pub events: Vec<String>,
    /// As what it is named.
    pub role: DocumentRole,
    /// Requisites in a row that lead to it, if it is named as one; see
    /// [`LEVELS_MAX`](super::LEVELS_MAX).
    pub levels: i64,
}

/// How many candidates became rows of the queue, and what became of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddResult {
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
#[allow(missing_docs)]
pub struct AddContext {
    /// The job and the part.
    pub place: Place,
    /// The run that names them.
    pub run: Run,
    pub now_ms: i64,
    /// New pages that may be let in; those beyond are cut with the reason `limit`.
    pub room: Option<i64>,
    pub requisites: RequisiteRules,
}

/// What holds for requisites that are added.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequisiteRules {
    /// New ones that may be let in; those beyond are cut with the reason `budget`.
    pub room: Option<i64>,
    /// Whether the run names all pages that there are, so that one that it has only named as a
    /// requisite is none any more.
    pub unlinks: bool,
}

impl AddContext {
    /// How many documents of a role may be let in.
    fn room_for(&self, role: DocumentRole) -> Option<i64> {
        match role {
            DocumentRole::Page => self.room,
            DocumentRole::Requisite => self.requisites.room,
        }
    }
}

/// Why a document of a role is cut that there is no room for.
fn without_room_code(role: DocumentRole) -> ReasonCode {
    match role {
        DocumentRole::Page => ReasonCode::Limit,
        DocumentRole::Requisite => ReasonCode::Budget,
    }
}

/// Adds documents to a job in a part.
///
/// A known document takes over a shorter path and the newer run; one that an older run
/// settled is ready to be looked at again. One that was cut for its scope, hops, a limit
/// or a budget comes back to life if the candidate is let in.
/// When there is not room for all, the nearest to a seed and first found are let in.
pub fn add(tx: &mut Tx<'_>, adding: AddContext, candidates: &[Candidate]) -> Result<AddResult> {
    let mut added = AddResult::default();
    // Pages first: what a page names as both is a page.
    for role in [DocumentRole::Page, DocumentRole::Requisite] {
        let named = nearest(candidates.iter().filter(|it| it.role == role));
        add_as(tx, adding, role, named, &mut added)?;
    }
    mark_bins(tx, adding.place, added.woken.iter().copied())?;
    Ok(added)
}

/// Adds documents that are named as pages, or as requisites, each once.
fn add_as(
    tx: &mut Tx<'_>,
    adding: AddContext,
    role: DocumentRole,
    named: Vec<&Candidate>,
    added: &mut AddResult,
) -> Result<()> {
    let AddContext { place, run, .. } = adding;
    let (mut rest, mut room) = (named, adding.room_for(role));
    while !rest.is_empty() {
        let known = find_known(tx, place, &rest)?;
        let (old, new): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|it| known.contains_key(&it.dochash));
        let changed: Vec<&Candidate> =
            old.into_iter().filter(|it| known[&it.dochash].differs(it, run)).collect();
        added.seen += changed.len() as u64;
        lock(tx, place, &known, &changed)?;
        match role {
            DocumentRole::Page => {
                // Others may name them as requisites at this moment, if the job has such.
                let wants = adding.requisites.room.is_some();
                let linked = changed
                    .iter()
                    .filter(|it| it.cut.is_none() && (wants || known[&it.dochash].is_none_yet(it)));
                let ids = linked.map(|it| known[&it.dochash].id).collect();
                let woken = become_pages(tx, place, ids, &mut room)?;
                added.woken.extend(woken);
            }
            DocumentRole::Requisite => {
                let needed = changed.iter().map(|it| known[&it.dochash].needed(it)).collect();
                added.woken.extend(role::need(tx, adding, needed)?);
            }
        }
        update_known(tx, place, run, &known, &changed)?;
        revive(tx, place, &known, &changed, added, &mut room)?;
        rediscover(tx, place, run, &known, &changed, added)?;
        // Another process may have added one between the look and the insert; it is
        // known then, and the next round treats it so.
        rest = insert_new(tx, adding, new, added, &mut room)?;
    }
    Ok(())
}

/// Takes one place, if there is a limit and room within it.
pub(super) fn take_room(room: &mut Option<i64>) -> bool {
    match room {
        None => true,
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        Some(_) => false,
    }
}

/// Inserts unknown documents and counts them. Returns those somebody else inserted
/// at the same moment.
fn insert_new<'a>(
    tx: &mut Tx<'_>,
    adding: AddContext,
    new: Vec<&'a Candidate>,
    added: &mut AddResult,
    room: &mut Option<i64>,
) -> Result<Vec<&'a Candidate>> {
    let place = adding.place;
    let mut new = new;
    if tx.dialect() == Dialect::Sqlite {
        // Rows lie in the order in which they come, and are claimed in the order of their ids:
        // what is looked at together lies together. With one writer nobody waits for another.
        new.sort_by_key(|it| it.id);
    }
    let shut_out = without_room(&new, room);
    let no_room = |it: &Candidate| shut_out.contains(&it.id).then(|| without_room_code(it.role));
    let cut = |it: &Candidate| it.cut.or_else(|| no_room(it));
    let mut new: Vec<(&Candidate, Option<ReasonCode>)> =
        new.into_iter().map(|it| (it, cut(it))).collect();
    let rows: Vec<Vec<Value<'_>>> =
        new.iter().map(|(candidate, cut)| insert_row(adding, candidate, *cut)).collect();
    let inserted = tx.insert_rows(
        "INSERT INTO queue (part, jobid, seen_run, added_ms, id, dochash, docid, bin, docpriority,
                            hops, redirects, seed_run, parentpart, parenthash, state, reason, action,
                            rescan, generation, requisite, needed_run, levels)",
        &rows,
        "ON CONFLICT (part, dochash, jobid) DO NOTHING",
    )?;
    let lost = match inserted < new.len() as u64 {
        true => take_late(tx, place, &mut new)?,
        false => Vec::new(),
    };
    let named = new.iter().flat_map(|(it, _)| it.events.iter().map(|name| (it.id, name.as_str())));
    events::depend(tx, place.part, &named.collect::<Vec<_>>())?;
    let mut documents: BTreeMap<BinId, (&str, i64)> = BTreeMap::new();
    for (candidate, _) in &new {
        documents.entry(candidate.bin).or_insert((&candidate.bin_name, 0)).1 += 1;
    }
    let cut = new.iter().filter(|(_, cut)| cut.is_some()).count() as i64;
    added.woken.extend(new.iter().filter(|(_, cut)| cut.is_none()).map(|(it, _)| it.bin));
    added.new += new.len() as u64;
    added.crowded_out +=
        new.iter().filter(|(_, cut)| *cut == Some(ReasonCode::Limit)).count() as u64;
    let mut deltas = Deltas::default();
    let role = new.first().map_or(DocumentRole::Page, |(it, _)| it.role);
    deltas.add(State::Ready, role, new.len() as i64 - cut);
    deltas.add(State::Cut, role, cut);
    deltas.write(tx, place)?;
    count_in_bins(tx, place, &documents, adding.now_ms)?;
    Ok(lost)
}

/// Takes those out that somebody else has inserted.
fn take_late<'a>(
    tx: &mut Tx<'_>,
    place: Place,
    new: &mut Vec<(&'a Candidate, Option<ReasonCode>)>,
) -> Result<Vec<&'a Candidate>> {
    let keys: Vec<Value<'_>> = new.iter().map(|(it, _)| it.id.into()).collect();
    let there: Vec<QueueId> = tx.query_in(
        "SELECT id FROM queue WHERE part = $1 AND id IN ($keys)",
        &[place.part.into()],
        &keys,
        |row| row.get(0),
    )?;
    let there: BTreeSet<QueueId> = there.into_iter().collect();
    let late: Vec<_> = new.extract_if(.., |(it, _)| !there.contains(&it.id)).collect();
    Ok(late.into_iter().map(|(it, _)| it).collect())
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

fn insert_row<'a>(
    adding: AddContext,
    it: &'a Candidate,
    cut: Option<ReasonCode>,
) -> Vec<Value<'a>> {
    let AddContext { place, run, now_ms, .. } = adding;
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
        it.role.is_requisite().into(),
        it.role.is_requisite().then_some(run).into(),
        it.levels.into(),
    ]
}

/// One candidate for each document: the nearest; a seed if any is. PostgreSQL
/// refuses to touch a row twice in one statement.
fn nearest<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Vec<&'a Candidate> {
    let mut best: HashMap<DocHash, &Candidate> = HashMap::with_capacity(candidates.size_hint().0);
    for candidate in candidates {
        best.entry(candidate.dochash)
            .and_modify(|held| {
                let rank = |it: &Candidate| (it.cut.is_some(), !it.seed, it.levels, it.hops);
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
