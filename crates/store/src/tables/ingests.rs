//! What each output has of each document (table 11.26), and what it must still hear.
//!
//! Invariant: a decision is written in the transaction that commits the chunk, and
//! cleared only by the delivery of that very decision; so an output that was away
//! hears everything, and a late acknowledgement cannot hide a newer decision.

use crate::dialect::Kind;
use crate::ids::{ConnectionId, Part};
use crate::value::Row;
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// An output's view of one document (or one component of it).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ingest {
    pub id: i64,
    /// The repository connection that the document is of.
    pub connection: ConnectionId,
    pub dochash: DocHash,
    /// Empty for the document itself.
    pub component: Vec<u8>,
    pub uri: Option<String>,
    pub uri_hash: Option<Vec<u8>>,
    pub authority: Option<String>,
    pub version: Option<String>,
    pub output_version: Option<String>,
    pub transformation_version: Option<String>,
    pub first_ingest_ms: Option<i64>,
    pub last_ingest_ms: Option<i64>,
    pub last_change_ms: Option<i64>,
    pub changes: i64,
    /// What the output must still hear: `add`, `update`, `remove`.
    pub decision: Option<String>,
    /// The commit that decided it.
    pub decided_seq: Option<i64>,
    pub delivered_seq: Option<i64>,
    pub check_ms: Option<i64>,
    pub failcount: Option<i64>,
    pub failtime: Option<i64>,
    pub error: Option<String>,
}

const COLUMNS: &str = "id, connectionid, dochash, componenthash, docuri, urihash, authorityname, \
    lastversion, lastoutputversion, lasttransformationversion, firstingest, lastingest, lastchange, \
    changecount, decision, decided_seq, delivered_seq, checktime, failcount, failtime, errortext";

/// Loads what an output has of documents.
pub fn load(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    keys: &[DocHash],
) -> Result<Vec<Ingest>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    tx.query_in(
        &format!("SELECT {COLUMNS} FROM ingests WHERE part = $1 AND outputid = $2 AND dochash"),
        &[part.into(), output.into()],
        &keys,
        "ORDER BY dochash, connectionid, componenthash",
        Ingest::from_row,
    )
}

/// Writes decisions and what they rest on, in the commit of their chunk.
pub fn decide(tx: &mut Tx<'_>, part: Part, output: ConnectionId, ingests: &[Ingest]) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> =
        ingests.iter().map(|ingest| ingest.to_row(part, output)).collect();
    let changed: Vec<String> = COLUMNS
        .split(", ")
        .filter(|it| !matches!(*it, "id" | "connectionid" | "dochash" | "componenthash"))
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    tx.insert_rows(
        &format!("INSERT INTO ingests (part, outputid, {COLUMNS})"),
        &rows,
        &format!(
            "ON CONFLICT (part, outputid, dochash, connectionid, componenthash) DO UPDATE SET {}",
            changed.join(", ")
        ),
    )?;
    Ok(())
}

/// What an output must still hear in a part: what was never tried in the order it
/// was decided, then what is to be tried again, once its time has come.
pub fn undelivered(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    now_ms: i64,
    limit: u32,
) -> Result<Vec<Ingest>> {
    let mut found = tx.query(
        &format!(
            "SELECT {COLUMNS} FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime IS NULL
             ORDER BY decided_seq, id LIMIT $3"
        ),
        &[part.into(), output.into(), limit.into()],
        Ingest::from_row,
    )?;
    let room = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(limit));
    found.extend(tx.query(
        &format!(
            "SELECT {COLUMNS} FROM ingests
             WHERE part = $1 AND outputid = $2 AND decision IS NOT NULL AND checktime IS NOT NULL
               AND checktime <= $3
             ORDER BY checktime, id LIMIT $4"
        ),
        &[part.into(), output.into(), now_ms.into(), room.into()],
        Ingest::from_row,
    )?);
    Ok(found)
}

/// Records that the output has what was decided by these commits: `(id, seq)`.
/// A decision that has changed since stays. Returns how many were cleared.
pub fn delivered(
    tx: &mut Tx<'_>,
    part: Part,
    deliveries: &[(i64, i64)],
    now_ms: i64,
) -> Result<u64> {
    let rows: Vec<Vec<Value<'_>>> =
        deliveries.iter().map(|(id, seq)| vec![(*id).into(), (*seq).into()]).collect();
    tx.update_rows(
        "UPDATE ingests SET decision = NULL, delivered_seq = v.column2, lastingest = $2,
             firstingest = COALESCE(firstingest, $2), checktime = NULL, failcount = NULL,
             failtime = NULL, errortext = NULL",
        &[part.into(), now_ms.into()],
        (&[Kind::Int, Kind::Int], &rows),
        "WHERE ingests.part = $1 AND ingests.id = v.column1 AND ingests.decided_seq = v.column2
           AND ingests.decision IS NOT NULL",
    )
}

impl Ingest {
    fn to_row(&self, part: Part, output: ConnectionId) -> Vec<Value<'_>> {
        vec![
            part.into(),
            output.into(),
            self.id.into(),
            self.connection.into(),
            (&self.dochash).into(),
            (&self.component).into(),
            (&self.uri).into(),
            self.uri_hash.as_ref().into(),
            (&self.authority).into(),
            (&self.version).into(),
            (&self.output_version).into(),
            (&self.transformation_version).into(),
            self.first_ingest_ms.into(),
            self.last_ingest_ms.into(),
            self.last_change_ms.into(),
            self.changes.into(),
            (&self.decision).into(),
            self.decided_seq.into(),
            self.delivered_seq.into(),
            self.check_ms.into(),
            self.failcount.into(),
            self.failtime.into(),
            (&self.error).into(),
        ]
    }

    fn from_row(row: &Row<'_>) -> Result<Ingest> {
        Ok(Ingest {
            id: row.get(0)?,
            connection: row.get(1)?,
            dochash: row.get(2)?,
            component: row.get(3)?,
            uri: row.get(4)?,
            uri_hash: row.get(5)?,
            authority: row.get(6)?,
            version: row.get(7)?,
            output_version: row.get(8)?,
            transformation_version: row.get(9)?,
            first_ingest_ms: row.get(10)?,
            last_ingest_ms: row.get(11)?,
            last_change_ms: row.get(12)?,
            changes: row.get(13)?,
            decision: row.get(14)?,
            decided_seq: row.get(15)?,
            delivered_seq: row.get(16)?,
            check_ms: row.get(17)?,
            failcount: row.get(18)?,
            failtime: row.get(19)?,
            error: row.get(20)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    fn ingest(id: i64, decided_seq: i64) -> Ingest {
        Ingest {
            id,
            connection: ConnectionId(1),
            dochash: DocHash::of(&id.to_string()),
            component: Vec::new(),
            uri: Some(format!("http://example.com/{id}")),
            uri_hash: Some(vec![1; 16]),
            authority: None,
            version: Some("v1".into()),
            output_version: None,
            transformation_version: None,
            first_ingest_ms: None,
            last_ingest_ms: None,
            last_change_ms: Some(10),
            changes: 1,
            decision: Some("add".into()),
            decided_seq: Some(decided_seq),
            delivered_seq: None,
            check_ms: None,
            failcount: None,
            failtime: None,
            error: None,
        }
    }

    #[test]
    fn a_late_acknowledgement_cannot_hide_a_newer_decision() {
        both_databases(|db| {
            let (part, output) = (Part(2), ConnectionId(5));
            let first = vec![ingest(1, 1), ingest(2, 1)];
            db.write(move |tx| decide(tx, part, output, &first))?;
            // While the output works on commit 1, commit 2 changes its mind on document 1.
            let newer = vec![Ingest { decision: Some("remove".into()), ..ingest(1, 2) }];
            db.write(move |tx| decide(tx, part, output, &newer))?;
            assert_eq!(db.write(move |tx| delivered(tx, part, &[(1, 1), (2, 1)], 50))?, 1);
            let left = db.read(move |tx| undelivered(tx, part, output, 60, 10))?;
            assert_eq!(left.len(), 1);
            assert_eq!((left[0].id, left[0].decision.as_deref()), (1, Some("remove")));
            assert_eq!(db.write(move |tx| delivered(tx, part, &[(1, 2)], 70))?, 1);
            assert_eq!(db.read(move |tx| undelivered(tx, part, output, 80, 10))?, []);
            let later = vec![Ingest { check_ms: Some(95), ..ingest(3, 3) }];
            db.write(move |tx| decide(tx, part, output, &later))?;
            assert_eq!(db.read(move |tx| undelivered(tx, part, output, 94, 10))?, []);
            assert_eq!(db.read(move |tx| undelivered(tx, part, output, 95, 10))?.len(), 1);
            let kept = db.read(move |tx| load(tx, part, output, &[DocHash::of("2")]))?;
            assert_eq!(kept[0].first_ingest_ms, Some(50));
            Ok(())
        });
    }
}
