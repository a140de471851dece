//! Who changed what, and when: through the API, and by the command line.
//!
//! Invariants: a row is there before its change, and is completed once; what was changed is
//! told as it was told to whoever did it, which is without secrets; everything that is written is
//! an event of the [`chain`], in the same transaction.

pub mod chain;

use crate::value::Row;
use crate::{Result, Tx};
use chain::ChainHead;
use serde::{Deserialize, Serialize};

/// Rows of one page at most.
pub const LIMIT_MAX: u32 = 1_000;
/// Bytes that are kept of what was changed.
const CHANGES_BYTES_MAX: usize = 16 << 10;

/// A change of definitions or of a job's state, and who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct AuditEntry {
    /// Tells it from others of the same moment.
    pub id: i64,
    pub at_ms: i64,
    /// Who did it: the name of a token, or the command line.
    pub who: String,
    pub verb: String,
    /// `done` or `refused`; `begun` if nobody knows what came of it.
    pub outcome: String,
    /// What is different now, or why nothing is.
    pub changes: String,
}

impl AuditEntry {
    /// Reads `id, at_ms, who, verb, outcome, changes`.
    fn from_row(row: &Row<'_>) -> Result<AuditEntry> {
        Ok(AuditEntry {
            id: row.get(0)?,
            at_ms: row.get(1)?,
            who: row.get(2)?,
            verb: row.get(3)?,
            outcome: row.get(4)?,
            changes: row.get(5)?,
        })
    }
}

/// What is kept of what was changed.
fn kept(changes: &str) -> String {
    match changes.len() <= CHANGES_BYTES_MAX {
        true => changes.to_owned(),
        false => format!("{}…", &changes[..changes.floor_char_boundary(CHANGES_BYTES_MAX)]),
    }
}

/// Completes one with what came of it. Returns the newest event of the chain; `None` if it was
/// completed before.
pub fn complete(
    tx: &mut Tx<'_>,
    id: i64,
    outcome: &str,
    changes: &str,
) -> Result<Option<ChainHead>> {
    let completed = tx.query_opt(
        "UPDATE audit SET outcome = $2, changes = $3 WHERE id = $1 AND outcome = 'begun'
         RETURNING id, at_ms, who, verb, outcome, changes",
        &[id.into(), outcome.into(), kept(changes).as_str().into()],
        AuditEntry::from_row,
    )?;
    completed.map(|entry| chain::add(tx, &entry)).transpose()
}

/// Adds one that is begun.
pub fn begin(tx: &mut Tx<'_>, entry: &AuditEntry) -> Result<ChainHead> {
    let (outcome, changes) = ("begun".to_owned(), kept(&entry.changes));
    let entry = AuditEntry { outcome, changes, ..entry.clone() };
    // The first event stands for what was there before, and this is not among it.
    let head = chain::add(tx, &entry)?;
    tx.execute(
        "INSERT INTO audit (id, at_ms, who, verb, outcome, changes)
         VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            entry.id.into(),
            entry.at_ms.into(),
            entry.who.as_str().into(),
            entry.verb.as_str().into(),
            entry.outcome.as_str().into(),
            entry.changes.as_str().into(),
        ],
    )?;
    Ok(head)
}

/// A page of them, the newest first, before one that was seen.
pub fn list(
    tx: &mut Tx<'_>,
    before_ms: i64,
    before_id: i64,
    limit: u32,
) -> Result<Vec<AuditEntry>> {
    tx.query(
        "SELECT id, at_ms, who, verb, outcome, changes FROM audit
         WHERE at_ms < $1 OR (at_ms = $1 AND id < $2)
         ORDER BY at_ms DESC, id DESC LIMIT $3",
        &[before_ms.into(), before_id.into(), limit.min(LIMIT_MAX).into()],
        AuditEntry::from_row,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    #[test]
    fn entries_are_listed_page_by_page_with_the_newest_first() {
        both_databases(|db| {
            for (id, at_ms) in [(7, 1), (3, 2), (9, 2), (1, 3)] {
                let (who, verb) = ("me".to_owned(), "job".to_owned());
                let (outcome, changes) = (String::new(), "what".to_owned());
                let entry = AuditEntry { id, at_ms, who, verb, outcome, changes };
                db.write(move |tx| begin(tx, &entry))?;
                let changes = "é".repeat(CHANGES_BYTES_MAX);
                db.write(move |tx| complete(tx, id, "done", &changes))?;
                db.write(move |tx| complete(tx, id, "refused", "once is enough"))?;
            }
            let ids = |(before_ms, before_id), limit| -> Vec<i64> {
                let found = db.read(move |tx| list(tx, before_ms, before_id, limit)).unwrap();
                let is_right = |it: &AuditEntry| it.outcome == "done" && it.changes.ends_with("é…");
                assert!(found.iter().all(is_right));
                found.into_iter().map(|it| it.id).collect()
            };
            assert_eq!(ids((i64::MAX, i64::MAX), 2), [1, 9]);
            assert_eq!(ids((2, 9), 9), [3, 7]);
            assert_eq!(ids((1, 7), 9), [0; 0]);
            Ok(())
        });
    }
}
