//! Whether a document is what its output keeps under its URI, and sending it again when it
//! has become so.
//!
//! Invariant: what is sent again has a number of its own, so that no acknowledgement of an
//! earlier delivery can hide it, but for one that says that the output does not want it.

use super::{Decision, Ingest, Move, PendingDecision, load, save};
use crate::ids::{CommitNumber, ConnectionId, JobId, Part};
use crate::tables::claims::ClaimingDocument;
use crate::{Result, Tx};
use page::ids::DocHash;
use std::collections::{BTreeMap, HashMap};

/// What the last delivery found of a document's claim on its URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The output keeps this document under the URI.
    Owned,
    /// It keeps another one, which claims the URI too.
    Shadowed,
    /// It did not want the document, which claims nothing.
    Rejected,
    /// The output has it from before there were claims; its claim is still to be written.
    Unclaimed,
}

impl Ownership {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Ownership::Owned => "owned",
            Ownership::Shadowed => "shadowed",
            Ownership::Rejected => "rejected",
            Ownership::Unclaimed => "unclaimed",
        }
    }

    pub(super) fn read(name: &str) -> Option<Ownership> {
        use Ownership::{Owned, Rejected, Shadowed, Unclaimed};
        let all = [Owned, Shadowed, Rejected, Unclaimed];
        all.into_iter().find(|it| it.name() == name)
    }
}

/// A document that is to be sent to its output again, because it owns a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Resend {
    pub owner: ClaimingDocument,
    /// The hash of the URI.
    pub uri_hash: Vec<u8>,
    /// Tells this delivery from all others of the decision.
    pub resent: i64,
}

/// Lets an output hear again of documents of a part that own URIs. Returns those that do
/// not want their URI: nothing is known of them, or they have another one by now, so that
/// their claims are left over.
pub fn resend(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    wanted: &[Resend],
) -> Result<Vec<Resend>> {
    let mut by_connection: BTreeMap<ConnectionId, Vec<&Resend>> = BTreeMap::new();
    for it in wanted {
        by_connection.entry(it.owner.connection).or_default().push(it);
    }
    let (mut moves, mut unwanted) = (Vec::new(), Vec::new());
    for (connection, wanted) in by_connection {
        let keys: Vec<DocHash> = wanted.iter().map(|it| it.owner.dochash).collect();
        let rows = load(tx, part, output, connection, &keys)?;
        let rows: HashMap<DocHash, Ingest> =
            rows.into_iter().map(|row| (row.dochash, row)).collect();
        let sender = sender(tx, connection, output, &rows)?;
        for it in wanted {
            match rows.get(&it.owner.dochash) {
                Some(row) if row.uri_hash.as_ref() == Some(&it.uri_hash) => {
                    moves.extend(again(row, it.resent, sender));
                }
                // It will leave the URI with its next delivery.
                Some(row) if leaves(row, &it.uri_hash) => {}
                _ => unwanted.push(it.clone()),
            }
        }
    }
    save(tx, part, output, &moves)?;
    Ok(unwanted)
}

/// The row with a decision to send it again; a removal stays one.
fn again(row: &Ingest, resent: i64, sender: Option<JobId>) -> Option<Move> {
    let pending = row.pending.as_ref();
    if pending.is_some_and(|it| it.decision == Decision::Remove) {
        return None;
    }
    let decision = match row.delivered_seq {
        Some(_) => Decision::Update,
        None => Decision::Add,
    };
    // Without a job there is nobody who sends it.
    let job = pending.map(|it| it.job).or(sender)?;
    let seq = pending.map(|it| it.seq).or(row.delivered_seq).unwrap_or(CommitNumber::NONE);
    let pending =
        Some(PendingDecision { resent: Some(resent), ..PendingDecision::new(decision, seq, job) });
    // The claim is there; what is unclaimed is sent whole like everything else.
    let ownership = row.ownership.filter(|it| *it != Ownership::Unclaimed);
    let after = Some(Ingest { pending, ownership, ..row.clone() });
    Some(Move { before: Some(row.clone()), after })
}

fn leaves(row: &Ingest, uri_hash: &[u8]) -> bool {
    let mut stale = row.stale_uris.iter().flat_map(|it| it.lines());
    stale.any(|uri| DocHash::of(uri).0 == uri_hash)
}

/// A job on whose account documents are sent again: one that sends them.
fn sender(
    tx: &mut Tx<'_>,
    connection: ConnectionId,
    output: ConnectionId,
    rows: &HashMap<DocHash, Ingest>,
) -> Result<Option<JobId>> {
    let ways: Vec<JobId> = rows.values().flat_map(Ingest::way_jobs).collect();
    let found: Vec<JobId> = tx.query(
        "SELECT d.id FROM job_definitions d LEFT JOIN jobpipelines p
             ON p.ownerid = d.id AND p.connectionid = $2
         WHERE d.connectionid = $1
         ORDER BY CASE WHEN p.ownerid IS NULL THEN 1 ELSE 0 END, d.id LIMIT 100",
        &[connection.into(), output.into()],
        |row| row.get(0),
    )?;
    let sends = found.iter().find(|job| ways.contains(job)).or(found.first());
    Ok(sends.copied())
}
