//! What each output has of each document (table 11.26), and what it must still hear.
//!
//! Invariants: a decision is written in the transaction that commits the chunk, and
//! cleared only by the delivery of that very decision; so an output that was away hears
//! everything, and a late acknowledgement cannot hide a newer decision. How many
//! decisions a job waits for is counted in the same transaction. Of a row whose checksum does
//! not match no version is believed, so that the next look sends the document again.

mod delivery;
mod ownership;
mod whole;

pub use delivery::{
    DeliveryResult, Due, Fate, count_undelivered, delivered, due, is_any_due, retries, undelivered,
};
pub use ownership::{Ownership, Resend, resend};
pub use whole::{UndeliveredFilter, count_rows, forget, given_up, kept_after, retry};

use crate::checksums::ColumnPositions;
use crate::checksums::coverage::INGESTS;
use crate::ids::{CommitNumber, ConnectionId, JobId, Part};
use crate::tables::counters;
use crate::tx::overwritten;
use crate::value::{Raw, Row, column};
use crate::{Error, Result, Tx, Value};
use page::ids::DocHash;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A time that never comes: that of decisions that were given up.
pub const NEVER_MS: i64 = i64::MAX;

/// The counter of decisions that an output must still hear.
pub const UNDELIVERED: &str = "undelivered";
/// The counter of decisions that were given up.
pub const UNDELIVERABLE: &str = "undeliverable";

/// What an output must hear of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is new to the output.
    Add,
    /// It is different from what the output has.
    Update,
    /// The output must not have it any more.
    Remove,
}

impl Decision {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Add => "add",
            Decision::Update => "update",
            Decision::Remove => "remove",
        }
    }

    fn read(name: &str) -> Result<Decision> {
        match name {
            "add" => Ok(Decision::Add),
            "update" => Ok(Decision::Update),
            "remove" => Ok(Decision::Remove),
            _ => Err(Error::Corrupt { what: "ingests".into(), reason: format!("{name:?}") }),
        }
    }
}

/// A decision that has not been delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PendingDecision {
    pub decision: Decision,
    /// The commit that decided it.
    pub seq: CommitNumber,
    /// The job whose commit that was.
    pub job: JobId,
    /// A number of its own if it is to be delivered again ([`resend`]).
    pub resent: Option<i64>,
    /// When it is tried again; `None` if it never was, [`NEVER_MS`] if it was given up.
    pub check_ms: Option<i64>,
    /// Tries that are left, while it is failing.
    pub failcount: Option<i64>,
    /// When trying ends, while it is failing.
    pub failtime: Option<i64>,
    /// What went wrong last.
    pub error: Option<String>,
}

impl PendingDecision {
    /// A decision that nobody has tried to deliver.
    pub fn new(decision: Decision, seq: CommitNumber, job: JobId) -> PendingDecision {
        let (resent, check_ms, failcount, failtime, error) = (None, None, None, None, None);
        PendingDecision { decision, seq, job, resent, check_ms, failcount, failtime, error }
    }

    /// Whether it is not tried any more.
    pub fn is_given_up(&self) -> bool {
        self.check_ms == Some(NEVER_MS)
    }
}

/// An output's view of one document (or one component of it).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
// tidy: wide a row of `ingests`
pub struct Ingest {
    pub id: i64,
    /// The repository connection that the document is of.
    pub connection: ConnectionId,
    pub dochash: DocHash,
    /// Empty for the document itself.
    pub component: Vec<u8>,
    /// `None` when it was seen, and nothing of it is in the output.
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
    /// URIs that the output may still have it under, one a line.
    pub stale_uris: Option<String>,
    /// What the output must still hear.
    pub pending: Option<PendingDecision>,
    /// The last decision that the output has.
    pub delivered_seq: Option<CommitNumber>,
    /// The ids of the jobs that send it there, in the order their ways are tried
    /// ([`Ingest::way_jobs`]). `None` if it was decided before this was kept.
    pub ways: Option<String>,
    /// What the last delivery found of its claim on the URI; `None` before the first, and
    /// in rows that are older than claims.
    pub ownership: Option<Ownership>,
}

const COLUMNS: &str = "id, connectionid, dochash, componenthash, docuri, urihash, authorityname, \
    lastversion, lastoutputversion, lasttransformationversion, firstingest, lastingest, lastchange, \
    changecount, staleuris, delivered_seq, decision, decided_seq, jobid, checktime, failcount, \
    failtime, errortext, ways, \
    ownership, resent";

/// What [`Ingest::from_row`] reads behind them, for the checksum.
const SUMMED: &str = "part, outputid, checksum";

/// Where the covered columns are in what is selected, and in what is written.
static SELECTED: LazyLock<ColumnPositions> =
    LazyLock::new(|| INGESTS.places(&format!("{COLUMNS}, {SUMMED}")));
static WRITTEN: LazyLock<ColumnPositions> =
    LazyLock::new(|| INGESTS.places(&format!("part, outputid, {COLUMNS}")));

/// How rows are found: by document, by their ids. Only the first has an order; it would
/// lead SQLite along the wrong index elsewhere.
const BY_KEY: &str =
    "WHERE part = $1 AND outputid = $2 AND connectionid = $3 AND dochash IN ($keys)
     ORDER BY dochash, componenthash /*for update*/";
const BY_ID: &str = "WHERE part = $1 AND +outputid = $2 AND id IN ($keys) /*for update*/";

/// A row before and after: `None` is no row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Move {
    pub before: Option<Ingest>,
    pub after: Option<Ingest>,
}

/// Loads what an output has of documents of a connection, and locks it.
pub fn load(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    connection: ConnectionId,
    keys: &[DocHash],
) -> Result<Vec<Ingest>> {
    let mut sorted: Vec<DocHash> = keys.to_vec();
    sorted.sort_unstable();
    let keys: Vec<Value<'_>> = sorted.iter().map(Value::from).collect();
    tx.query_in(
        &format!("SELECT {COLUMNS}, {SUMMED} FROM ingests {BY_KEY}"),
        &[part.into(), output.into(), connection.into()],
        &keys,
        Ingest::from_row,
    )
}

/// What an output has of one document and its components, without locking it.
pub fn look_up(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    connection: ConnectionId,
    dochash: DocHash,
) -> Result<Vec<Ingest>> {
    tx.query(
        &format!(
            "SELECT {COLUMNS}, {SUMMED} FROM ingests
             WHERE part = $1 AND outputid = $2 AND connectionid = $3 AND dochash = $4 LIMIT 1000"
        ),
        &[part.into(), output.into(), connection.into(), (&dochash).into()],
        Ingest::from_row,
    )
}

/// Writes rows that were loaded in this transaction, and counts what is pending.
pub fn save(tx: &mut Tx<'_>, part: Part, output: ConnectionId, moves: &[Move]) -> Result<()> {
    let gone: Vec<Vec<Value<'_>>> = moves
        .iter()
        .filter(|it| it.after.is_none())
        .filter_map(|it| Some(vec![part.into(), it.before.as_ref()?.id.into()]))
        .collect();
    for row in &gone {
        tx.execute("DELETE FROM ingests WHERE part = $1 AND id = $2", row)?;
    }
    let rows: Vec<Vec<Value<'_>>> = moves
        .iter()
        .filter_map(|it| it.after.as_ref())
        .map(|ingest| WRITTEN.with_checksum(ingest.to_row(part, output)))
        .collect();
    let changed = overwritten(COLUMNS, &["id", "connectionid", "dochash", "componenthash"]);
    tx.insert_rows(
        &format!("INSERT INTO ingests (part, outputid, {COLUMNS}, checksum)"),
        &rows,
        &format!(
            "ON CONFLICT (part, outputid, dochash, connectionid, componenthash)
             DO UPDATE SET {changed}"
        ),
    )?;
    count(tx, part, moves)
}

/// Books in the counters what is pending now.
fn count(tx: &mut Tx<'_>, part: Part, moves: &[Move]) -> Result<()> {
    let mut deltas: BTreeMap<JobId, [i64; 2]> = BTreeMap::new();
    let mut book = |ingest: &Option<Ingest>, delta: i64| {
        if let Some(pending) = ingest.as_ref().and_then(|it| it.pending.as_ref()) {
            deltas.entry(pending.job).or_default()[usize::from(pending.is_given_up())] += delta;
        }
    };
    for it in moves {
        book(&it.before, -1);
        book(&it.after, 1);
    }
    for (job, [undelivered, undeliverable]) in deltas {
        let deltas = [(UNDELIVERED, undelivered), (UNDELIVERABLE, undeliverable)];
        counters::add(tx, part, job, &deltas)?;
    }
    Ok(())
}

impl Ingest {
    /// A row of a document that nothing has been decided for.
    pub fn new(id: i64, connection: ConnectionId, dochash: DocHash) -> Ingest {
        Ingest {
            id,
            connection,
            dochash,
            component: Vec::new(),
            uri: None,
            uri_hash: None,
            authority: None,
            version: None,
            output_version: None,
            transformation_version: None,
            first_ingest_ms: None,
            last_ingest_ms: None,
            last_change_ms: None,
            changes: 0,
            stale_uris: None,
            pending: None,
            delivered_seq: None,
            ways: None,
            ownership: None,
        }
    }

    /// The jobs that send it there, in the order their ways are tried.
    pub fn way_jobs(&self) -> Vec<JobId> {
        let words = self.ways.iter().flat_map(|it| it.split_whitespace());
        words.filter_map(|word| word.parse().ok().map(JobId)).collect()
    }

    fn to_row(&self, part: Part, output: ConnectionId) -> Vec<Value<'_>> {
        let pending = self.pending.as_ref();
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
            (&self.stale_uris).into(),
            self.delivered_seq.into(),
            pending.map(|it| it.decision.name()).into(),
            pending.map(|it| it.seq).into(),
            pending.map(|it| it.job).into(),
            pending.and_then(|it| it.check_ms).into(),
            pending.and_then(|it| it.failcount).into(),
            pending.and_then(|it| it.failtime).into(),
            pending.and_then(|it| it.error.as_deref()).into(),
            (&self.ways).into(),
            self.ownership.map(Ownership::name).into(),
            pending.and_then(|it| it.resent).into(),
        ]
    }

    fn from_row(row: &Row<'_>) -> Result<Ingest> {
        let is_whole = SELECTED.is_whole(row)?;
        // Text of a damaged row may be no text.
        let text = |place| match row.raw(place)? {
            Raw::Text(bytes) if !is_whole => Ok(Some(String::from_utf8_lossy(bytes).into_owned())),
            _ => row.get::<Option<String>>(place),
        };
        let version = |place| if is_whole { text(place) } else { Ok(None) };
        let decision: Option<String> = row.get(column!(COLUMNS, "decision"))?;
        let pending = match decision {
            None => None,
            Some(decision) => Some(PendingDecision {
                decision: Decision::read(&decision)?,
                seq: row.get(column!(COLUMNS, "decided_seq"))?,
                job: row.get(column!(COLUMNS, "jobid"))?,
                resent: row.get(column!(COLUMNS, "resent"))?,
                check_ms: row.get(column!(COLUMNS, "checktime"))?,
                failcount: row.get(column!(COLUMNS, "failcount"))?,
                failtime: row.get(column!(COLUMNS, "failtime"))?,
                error: row.get(column!(COLUMNS, "errortext"))?,
            }),
        };
        Ok(Ingest {
            id: row.get(column!(COLUMNS, "id"))?,
            connection: row.get(column!(COLUMNS, "connectionid"))?,
            dochash: row.get(column!(COLUMNS, "dochash"))?,
            component: row.get(column!(COLUMNS, "componenthash"))?,
            uri: text(column!(COLUMNS, "docuri"))?,
            uri_hash: row.get(column!(COLUMNS, "urihash"))?,
            authority: text(column!(COLUMNS, "authorityname"))?,
            version: version(column!(COLUMNS, "lastversion"))?,
            output_version: version(column!(COLUMNS, "lastoutputversion"))?,
            transformation_version: version(column!(COLUMNS, "lasttransformationversion"))?,
            first_ingest_ms: row.get(column!(COLUMNS, "firstingest"))?,
            last_ingest_ms: row.get(column!(COLUMNS, "lastingest"))?,
            last_change_ms: row.get(column!(COLUMNS, "lastchange"))?,
            changes: row.get(column!(COLUMNS, "changecount"))?,
            stale_uris: row.get(column!(COLUMNS, "staleuris"))?,
            delivered_seq: row.get(column!(COLUMNS, "delivered_seq"))?,
            ways: text(column!(COLUMNS, "ways"))?,
            ownership: row
                .get::<Option<String>>(column!(COLUMNS, "ownership"))?
                .as_deref()
                .and_then(Ownership::read),
            pending,
        })
    }
}

#[cfg(test)]
mod tests;
