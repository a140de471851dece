//! Putting documents into the queue: seeds, and links as they are discovered.
//!
//! Invariant: adding is idempotent and needs no lease, because links cross parts:
//! a repeated add finds everything already there and changes nothing. The bin of
//! whatever became ready is marked in the same transaction, so the holder of the
//! part cannot miss it however late this commits.

use super::{Place, State, count_moves};
use crate::ids::{BinId, QueueId, Run};
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
    /// Whether a seed list names it.
    pub seed: bool,
    /// Who named it.
    pub parent: Option<DocHash>,
    /// Why it is known but not to be fetched: `scope`, `hops`, `limit` or another
    /// reason; `None` lets it in.
    pub cut: Option<&'static str>,
}

/// What adding did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Documents that were not known to the job.
    pub new: u64,
    /// Documents that a limit had cut and that are let in now.
    pub revived: u64,
    /// Known documents that this run had not seen, or that are nearer now.
    pub seen: u64,
}

/// Adds documents to a job in a part.
///
/// A known document takes over a shorter path and the newer run. One that was cut
/// for its scope, hops or a limit comes back to life if the candidate is let in.
pub fn add(
    tx: &mut Tx<'_>,
    place: Place,
    run: Run,
    candidates: &[Candidate],
    now_ms: i64,
) -> Result<Added> {
    let candidates = nearest(candidates);
    let rows: Vec<Vec<Value<'_>>> =
        candidates.iter().map(|candidate| insert_row(place, run, candidate, now_ms)).collect();
    let touched: Vec<(QueueId, DocHash, Option<String>)> = tx.insert_rows_returning(
        "INSERT INTO queue (part, jobid, seen_run, added_ms, id, dochash, docid, bin, docpriority,
                            hops, seed_run, parenthash, state, reason, action, rescan, generation)",
        &rows,
        UPSERT,
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;

    let by_key: HashMap<DocHash, &Candidate> =
        candidates.iter().map(|candidate| (candidate.dochash, *candidate)).collect();
    let mut added = Added::default();
    let mut cut = 0;
    let mut woken = Vec::new();
    let mut documents: BTreeMap<BinId, (&str, i64)> = BTreeMap::new();
    for (id, dochash, reason) in &touched {
        let candidate = by_key[dochash];
        if candidate.id == *id {
            added.new += 1;
            documents.entry(candidate.bin).or_insert((&candidate.bin_name, 0)).1 += 1;
            cut += i64::from(candidate.cut.is_some());
        } else if reason.as_deref() == Some("revived") {
            added.revived += 1;
        } else {
            added.seen += 1;
        }
        if candidate.cut.is_none() {
            woken.push(candidate.bin);
        }
    }
    let (new, revived) = (added.new as i64, added.revived as i64);
    count_moves(tx, place, &[(State::Ready, new - cut + revived), (State::Cut, cut - revived)])?;
    count_in_bins(tx, place, &documents, now_ms)?;
    mark_bins(tx, place, woken)?;
    Ok(added)
}

/// A row that changes nothing is not written, so that naming a known document
/// again costs one look-up. `revived` as a reason lasts until the next statement
/// that touches the row; it is how the caller learns what the row was before.
const UPSERT: &str = "
    ON CONFLICT (part, dochash, jobid) DO UPDATE SET
        seen_run = CASE WHEN excluded.seen_run > queue.seen_run
                        THEN excluded.seen_run ELSE queue.seen_run END,
        seed_run = COALESCE(excluded.seed_run, queue.seed_run),
        hops = CASE WHEN excluded.hops < queue.hops THEN excluded.hops ELSE queue.hops END,
        state = CASE WHEN queue.state = 'cut' AND excluded.state = 'ready'
                          AND queue.reason IN ('scope', 'hops', 'limit')
                     THEN 'ready' ELSE queue.state END,
        reason = CASE WHEN queue.state = 'cut' AND excluded.state = 'ready'
                           AND queue.reason IN ('scope', 'hops', 'limit') THEN 'revived'
                      WHEN queue.reason = 'revived' THEN NULL
                      ELSE queue.reason END
    WHERE excluded.seen_run > queue.seen_run
       OR excluded.hops < queue.hops
       OR (excluded.seed_run IS NOT NULL
           AND (queue.seed_run IS NULL OR queue.seed_run < excluded.seed_run))
       OR (queue.state = 'cut' AND excluded.state = 'ready'
           AND queue.reason IN ('scope', 'hops', 'limit'))
    RETURNING id, dochash, reason";

fn insert_row<'a>(place: Place, run: Run, it: &'a Candidate, now_ms: i64) -> Vec<Value<'a>> {
    let state = if it.cut.is_some() { State::Cut } else { State::Ready };
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
        it.seed.then_some(run).into(),
        it.parent.as_ref().into(),
        state.name().into(),
        it.cut.into(),
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
    // The order of arrival; also one order for locks, against deadlocks.
    out.sort_by_key(|candidate| candidate.id);
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
