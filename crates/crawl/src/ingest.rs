//! What outputs must hear of the documents of a chunk: decided when it commits, by the
//! versions that each output has heard of (spec 5).
//!
//! [`decide`] is pure; [`commit`] runs it over a batch in the transaction of the commit.
//! A document that has not changed is decided on too: the output, its settings or the
//! transformations before it may have. Invariants: an output hears of a document when
//! what it has differs from what there is, and of nothing else; what it has of a document
//! that no job sends it any more, it is told to remove. Whose document an output keeps
//! under a URI is not decided here but by claims, when decisions are delivered.

mod batches;

pub use batches::commit;

use page::ids::DocHash;
use store::ids::{CommitNumber, ConnectionId, IdMaker, JobId, Part};
use store::tables::ingests::{Decision, Ingest, Ownership, PendingDecision};
use store::tables::outlets::Route;

/// Bytes of URIs that one document may leave behind in an output that hears nothing.
const STALE_BYTES_MAX: usize = 64 << 10;

/// The commit that decides.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct IngestCommit<'a> {
    /// Makes ids of rows.
    pub ids: &'a IdMaker,
    pub part: Part,
    /// The number of the commit.
    pub seq: CommitNumber,
    pub now_ms: i64,
}

/// What there is of a document for an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer<'a> {
    /// A job sends it there.
    There(SentDocument<'a>),
    /// It has left, or no job sends it there.
    Gone,
}

/// A document that is sent to an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentDocument<'a> {
    /// Where outputs keep it.
    pub uri: &'a str,
    /// Its version; an empty one differs from itself.
    pub version: &'a str,
    /// Who may see it: the authority group of its repository.
    pub authority: Option<&'a str>,
    /// How it gets there.
    pub route: &'a Route,
}

/// The commit that a decision is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DecisionContext {
    pub seq: CommitNumber,
    pub job: JobId,
    pub now_ms: i64,
}

/// What becomes of the row of a document for an output.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    /// The row stays as it is.
    Keep,
    /// The output has nothing of the document, and needs not hear of it.
    Remove,
    /// What the output must hear of, or what is kept of how the document gets there.
    Save(Box<Ingest>),
}

/// Decides what an output must hear of a document.
pub fn decide(known: Option<&Ingest>, offer: Offer<'_>, at: DecisionContext) -> RowChange {
    let Offer::There(sent) = offer else {
        return known.map_or(RowChange::Keep, |known| gone(known, at));
    };
    let Some(known) = known else {
        // Whoever saves it gives it its keys.
        let mut fresh = Ingest::new(0, ConnectionId(0), DocHash([0; 16]));
        take(&mut fresh, sent);
        fresh.pending = Some(PendingDecision::new(Decision::Add, at.seq, at.job));
        (fresh.changes, fresh.last_change_ms) = (1, Some(at.now_ms));
        return RowChange::Save(Box::new(fresh));
    };
    let pending = known.pending.as_ref();
    let leaves = pending.is_some_and(|it| it.decision == Decision::Remove);
    // One that the output did not want is wanted as little as long as nothing changes.
    let moved = known.uri.as_deref().is_some_and(|known| known != sent.uri);
    let mut next = known.clone();
    if !differs(known, sent) && !leaves && !moved {
        next.ways = Some(sent.route.ways_text());
        let is_unclaimed = known.uri.is_some() && known.ownership.is_none();
        if let Some(given_up) = pending.filter(|it| it.is_given_up()) {
            // What was given up is tried anew, as by an operator.
            next.pending = Some(PendingDecision::new(given_up.decision, at.seq, at.job));
        } else if pending.is_none() && is_unclaimed && known.delivered_seq.is_some() {
            // The output has it from before there were claims.
            next.pending = Some(PendingDecision::new(Decision::Update, at.seq, at.job));
            next.ownership = Some(Ownership::Unclaimed);
        }
        return match next == *known {
            true => RowChange::Keep,
            false => RowChange::Save(Box::new(next)),
        };
    }
    if moved && let Some(old) = next.uri.take() {
        go_stale(&mut next, &old);
    }
    take(&mut next, sent);
    let decision = match known.delivered_seq {
        Some(_) => Decision::Update,
        None => Decision::Add,
    };
    next.pending = Some(PendingDecision::new(decision, at.seq, at.job));
    next.changes += 1;
    next.last_change_ms = Some(at.now_ms);
    RowChange::Save(Box::new(next))
}

/// Whether an output has something else than what is sent to it.
fn differs(known: &Ingest, sent: SentDocument<'_>) -> bool {
    sent.version.is_empty()
        || known.version.as_deref() != Some(sent.version)
        || known.authority.as_deref() != sent.authority
        || known.output_version.as_deref() != Some(&sent.route.version)
        || known.transformation_version.as_deref() != Some(&sent.route.transformations)
}

fn gone(known: &Ingest, at: DecisionContext) -> RowChange {
    if known.uri.is_none() && known.stale_uris.is_none() {
        return RowChange::Remove;
    }
    let is_told = |it: &&PendingDecision| it.decision == Decision::Remove && !it.is_given_up();
    if known.pending.as_ref().filter(is_told).is_some() {
        return RowChange::Keep;
    }
    let mut next = known.clone();
    next.pending = Some(PendingDecision::new(Decision::Remove, at.seq, at.job));
    next.last_change_ms = Some(at.now_ms);
    RowChange::Save(Box::new(next))
}

fn take(row: &mut Ingest, sent: SentDocument<'_>) {
    row.uri = Some(sent.uri.to_owned());
    row.uri_hash = Some(DocHash::of(sent.uri).0.to_vec());
    row.version = Some(sent.version.to_owned());
    row.authority = sent.authority.map(str::to_owned);
    row.output_version = Some(sent.route.version.clone());
    row.transformation_version = Some(sent.route.transformations.clone());
    row.ways = Some(sent.route.ways_text());
    // What differs is not only to be claimed.
    row.ownership = row.ownership.filter(|it| *it != Ownership::Unclaimed);
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

#[cfg(test)]
mod tests;
