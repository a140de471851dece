//! What outputs must hear of the documents of a chunk: decided when it commits, by the
//! versions that each output has heard of (spec 5).
//!
//! [`decide`] is pure; [`commit`] runs it over a batch in the transaction of the commit.
//! A document that has not changed is decided on too: the output, its settings or the
//! transformations before it may have. Invariants: an output hears of a document when
//! what it has differs from what there is, and of nothing else; whatever it may have of a
//! document that leaves, it is told to remove; a URI belongs to one document of an output.

use crate::worker::batch::Batch;
use crate::worker::job::JobWork;
use page::ids::DocHash;
use std::collections::{BTreeMap, HashMap};
use store::chunkfile::document::Change;
use store::ids::{ConnectionId, IdMaker, JobId, Part};
use store::tables::documents::Document;
use store::tables::ingests::{self, Decision, Ingest, Move, Pending};
use store::tables::outlets::Outlet;
use store::{Result, Tx};

/// Bytes of URIs that one document may leave behind in an output that hears nothing.
const STALE_BYTES_MAX: usize = 64 << 10;

/// The commit that decides.
#[derive(Clone, Copy)]
pub struct Committing<'a> {
    /// Makes ids of rows.
    pub ids: &'a IdMaker,
    /// The part.
    pub part: Part,
    /// The number of the commit.
    pub seq: i64,
    /// The time.
    pub now_ms: i64,
}

/// What there is of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer<'a> {
    /// It is there, in this version; an empty version differs from itself.
    There {
        /// Where outputs keep it.
        uri: &'a str,
        /// Its version.
        version: &'a str,
        /// Who may see it: the authority group of its repository.
        authority: Option<&'a str>,
    },
    /// It has left.
    Gone,
}

/// Decides what an output must hear of a document. `None` is: nothing has changed.
pub fn decide(
    known: Option<&Ingest>,
    offer: Offer<'_>,
    outlet: &Outlet,
    (seq, job, now_ms): (i64, JobId, i64),
) -> Option<Option<Ingest>> {
    let Offer::There { uri, version, authority } = offer else {
        return gone(known?, (seq, job, now_ms));
    };
    let Some(known) = known else {
        // Whoever saves it gives it its keys.
        let mut fresh = Ingest::new(0, ConnectionId(0), DocHash([0; 16]));
        take(&mut fresh, (uri, version, authority), outlet);
        fresh.pending = Some(Pending::new(Decision::Add, seq, job));
        (fresh.changes, fresh.last_change_ms) = (1, Some(now_ms));
        return Some(Some(fresh));
    };
    let pending = known.pending.as_ref();
    let leaves = pending.is_some_and(|it| it.decision == Decision::Remove);
    // One that the output did not want is wanted as little as long as nothing changes.
    let moved = known.uri.as_deref().is_some_and(|known| known != uri);
    let differs = version.is_empty()
        || known.version.as_deref() != Some(version)
        || known.authority.as_deref() != authority
        || known.output_version.as_deref() != Some(&outlet.version)
        || known.transformation_version.as_deref() != Some(&outlet.transformations);
    let mut next = known.clone();
    if !differs && !leaves && !moved {
        // What was given up is tried anew, as by an operator.
        let given_up = pending.filter(|it| it.is_given_up())?;
        next.pending = Some(Pending::new(given_up.decision, seq, job));
        return Some(Some(next));
    }
    if moved && let Some(old) = next.uri.take() {
        go_stale(&mut next, &old);
    }
    take(&mut next, (uri, version, authority), outlet);
    let decision = match known.delivered_seq {
        Some(_) => Decision::Update,
        None => Decision::Add,
    };
    next.pending = Some(Pending::new(decision, seq, job));
    next.changes += 1;
    next.last_change_ms = Some(now_ms);
    Some(Some(next))
}

fn gone(known: &Ingest, (seq, job, now_ms): (i64, JobId, i64)) -> Option<Option<Ingest>> {
    if known.uri.is_none() && known.stale_uris.is_none() {
        // It has nothing of it.
        return Some(None);
    }
    let is_told = |it: &&Pending| it.decision == Decision::Remove && !it.is_given_up();
    if known.pending.as_ref().filter(is_told).is_some() {
        return None;
    }
    let mut next = known.clone();
    next.pending = Some(Pending::new(Decision::Remove, seq, job));
    next.last_change_ms = Some(now_ms);
    Some(Some(next))
}

fn take(row: &mut Ingest, (uri, version, authority): (&str, &str, Option<&str>), outlet: &Outlet) {
    row.uri = Some(uri.to_owned());
    // Neighbours lie together in its index, as documents do.
    row.uri_hash = Some(DocHash::of(uri).0.to_vec());
    row.version = Some(version.to_owned());
    row.authority = authority.map(str::to_owned);
    row.output_version = Some(outlet.version.clone());
    row.transformation_version = Some(outlet.transformations.clone());
}

/// The output may have it under an older URI, which goes with the next delivery.
fn go_stale(row: &mut Ingest, uri: &str) {
    let stale = row.stale_uris.get_or_insert_default();
    let is_there = stale.lines().any(|it| it == uri);
    if !is_there && stale.len() + uri.len() < STALE_BYTES_MAX {
        if !stale.is_empty() {
            stale.push('\n');
        }
        stale.push_str(uri);
    }
}

/// Decides on all documents of a batch, for every output of the job.
pub fn commit(tx: &mut Tx<'_>, at: Committing<'_>, job: &JobWork, batch: &Batch) -> Result<()> {
    if job.outlets.is_empty() {
        return Ok(());
    }
    let documents: HashMap<DocHash, &Document> =
        batch.documents.iter().map(|document| (document.dochash, document)).collect();
    let mut said: BTreeMap<DocHash, Option<(String, String)>> = BTreeMap::new();
    for record in &batch.records {
        let there = match record.change {
            // Outputs never had it.
            Change::NoContent => continue,
            Change::Remove(_) => None,
            _ if batch.unlisted.contains(&record.dochash) => None,
            Change::Add | Change::Update | Change::Keep => {
                let document = documents.get(&record.dochash);
                let hash = document.and_then(|it| it.content_hash.as_deref());
                let hash = hash.and_then(|it| <[u8; 16]>::try_from(it).ok());
                let version = hash.map(|it| DocHash(it).to_hex()).unwrap_or_default();
                Some((job.uri(&record.docid), version))
            }
        };
        said.insert(record.dochash, there);
    }
    let authority = job.authority.as_deref();
    let offers = said.iter().map(|(dochash, there)| {
        let there = there.as_ref().map(|(uri, version)| Offer::There { uri, version, authority });
        (*dochash, there.unwrap_or(Offer::Gone))
    });
    let offers: Vec<(DocHash, Offer<'_>)> = offers.collect();
    for outlet in &job.outlets {
        // Other jobs keep them, but if none sends them here, they are gone from here.
        let left: &[DocHash] = if outlet.shared { &[] } else { &batch.left };
        let left = left.iter().map(|dochash| (*dochash, Offer::Gone));
        decide_all(tx, at, (job, outlet), offers.iter().copied().chain(left))?;
    }
    Ok(())
}

fn decide_all<'a>(
    tx: &mut Tx<'_>,
    at: Committing<'_>,
    (job, outlet): (&JobWork, &Outlet),
    offers: impl Iterator<Item = (DocHash, Offer<'a>)> + Clone,
) -> Result<()> {
    let place = (at.part, outlet.connection);
    let keys: Vec<DocHash> = offers.clone().map(|(dochash, _)| dochash).collect();
    let known = ingests::load(tx, place, job.connection, &keys)?;
    let known: HashMap<DocHash, Ingest> = known
        .into_iter()
        .filter(|row| row.component.is_empty())
        .map(|row| (row.dochash, row))
        .collect();
    let mut moves = Vec::new();
    for (dochash, offer) in offers {
        let before = known.get(&dochash);
        let Some(after) = decide(before, offer, outlet, (at.seq, job.id, at.now_ms)) else {
            continue;
        };
        let after = after.map(|mut row| {
            if before.is_none() {
                (row.id, row.connection, row.dochash) = (at.ids.next(), job.connection, dochash);
            }
            row
        });
        moves.push(Move { before: before.cloned(), after });
    }
    let dispossessed = dispossessed(tx, place, &moves)?;
    moves.extend(dispossessed);
    ingests::save(tx, place, &moves)
}

/// Rows of other documents that an output has under the URIs of new ones: it keeps one
/// document under a URI, and the last one is it.
fn dispossessed(tx: &mut Tx<'_>, place: (Part, ConnectionId), moves: &[Move]) -> Result<Vec<Move>> {
    let takes = |it: &&Move| {
        let uri_of = |row: &Option<Ingest>| row.as_ref().and_then(|row| row.uri_hash.clone());
        let after = uri_of(&it.after);
        after.is_some() && after != uri_of(&it.before)
    };
    let taken: Vec<&Ingest> =
        moves.iter().filter(takes).filter_map(|it| it.after.as_ref()).collect();
    let hashes: Vec<Vec<u8>> = taken.iter().filter_map(|row| row.uri_hash.clone()).collect();
    if hashes.is_empty() {
        return Ok(Vec::new());
    }
    let key = |row: &Ingest| (row.connection, row.dochash, row.component.clone());
    let is_moved = |row: &Ingest| {
        moves.iter().any(|it| it.after.as_ref().is_some_and(|after| key(after) == key(row)))
    };
    let owners = ingests::owners(tx, place, &hashes)?;
    let others = owners.into_iter().filter(|row| !is_moved(row));
    Ok(others.map(|row| Move { before: Some(row), after: None }).collect())
}

#[cfg(test)]
mod tests;
