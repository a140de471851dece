//! What is known of each document of a repository connection, whatever jobs share
//! it: its validators, hashes, where its facts and bytes are, how often it changed.
//!
//! Invariant: a removed document keeps its row as a tombstone with the reason; it
//! comes back to life in the same row, so `first_ms` and `changes` tell the truth. A row
//! whose checksum does not match is loaded as damaged, and never gets one that matches
//! before a look at the document has replaced what it said ([`Trust`]). A look that found
//! nothing new lies beside the row, in the table of looks, and names the checksum of the row
//! it is about; one that names another counts for nothing.

mod looks;
mod outcome;
mod pointers;

pub(super) use looks::LAST_LOOK;
pub use looks::note_looks;
pub use outcome::LookOutcome;
pub use pointers::{Live, Pointer, live_after, of_chunk, pointers};

use crate::checksums::coverage::DOCUMENTS;
use crate::checksums::{ColumnPositions, RowIntegrity};
use crate::chunkfile::document::DocumentRole;
use crate::ids::{ChunkId, ConnectionId, DocumentId, Part, Run};
use crate::tx::overwritten;
use crate::value::{Raw, Row, column};
use crate::{Result, Tx, Value};
use page::ids::DocHash;
use std::sync::LazyLock;

/// A document's row. Fields that an outcome does not touch are carried over by the
/// caller, who has loaded it with [`load`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
// tidy: wide a row of `documents`
pub struct Document {
    pub id: DocumentId,
    pub dochash: DocHash,
    pub docid: String,
    /// The last outcome: `ok`, `not modified`, `gone`, `redirect`, `error` …
    pub outcome: String,
    pub http_status: Option<i64>,
    pub media_type: Option<String>,
    pub language: Option<String>,
    pub title: Option<String>,
    pub length: Option<i64>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// The connector's version string.
    pub version: Option<String>,
    pub content_hash: Option<Vec<u8>>,
    pub text_hash: Option<Vec<u8>>,
    /// The 64 bits of the SimHash, as a signed number.
    pub simhash: Option<i64>,
    /// Where it leads, if it redirects: the part and the key.
    pub redirect: Option<(Part, DocHash)>,
    /// What it is a copy of: the part and the key.
    pub duplicate_of: Option<(Part, DocHash)>,
    pub first_ms: i64,
    pub checked_ms: i64,
    pub fetched_ms: Option<i64>,
    pub changed_ms: Option<i64>,
    pub checks: i64,
    pub changes: i64,
    /// Time it was watched without a change, and with one.
    pub quiet_ms: i64,
    pub restless_ms: i64,
    /// The chunk with its facts, and its place there.
    pub chunk: Option<ChunkId>,
    pub ordinal: Option<i64>,
    /// The chunk with its bytes.
    pub body_chunk: Option<ChunkId>,
    /// How often in a row it was missing, in which run and when first.
    pub missing: i64,
    pub missing_run: Option<Run>,
    pub missing_ms: Option<i64>,
    pub removed_ms: Option<i64>,
    pub reason: Option<String>,
    /// What outputs have it as.
    pub role: DocumentRole,
    /// Whether its row is as it was written. No column: its checksum tells.
    pub trust: Trust,
    /// The checksum of its row, of which a look says that it is about it; 0 if it has none yet.
    pub row_checksum: i64,
}

/// What a document's row is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It is as it was written.
    Whole,
    /// It was damaged, and was written again without what it said: only that it had content,
    /// and where, was kept, which may be wrong. A look at the document replaces that.
    Doubtful,
    /// It is damaged: only the key is to be believed.
    Damaged,
}

const COLUMNS: &str = "id, dochash, docid, outcome, httpstatus, mediatype, language, title, length, \
    etag, lastmodified, version, contenthash, texthash, simhash, redirectpart, \
    redirecthash, duplicatepart, duplicateof, first_ms, checked_ms, fetched_ms, changed_ms, checks, \
    changes, quiet_ms, restless_ms, chunk, ordinal, bodychunk, \
    missing, missing_run, missing_ms, removed_ms, reason, requisite";

/// Where the covered columns are in what is selected, and in what is written.
static SELECTED: LazyLock<ColumnPositions> =
    LazyLock::new(|| DOCUMENTS.places(&format!("{COLUMNS}, part, connectionid, checksum")));
static WRITTEN: LazyLock<ColumnPositions> =
    LazyLock::new(|| DOCUMENTS.places(&format!("part, connectionid, {COLUMNS}")));

/// What is selected of a document: its row, and behind it its last look.
static SELECTED_COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let row = format!("{COLUMNS}, part, connectionid, checksum").replace(", ", ", d.");
    format!("d.{row}, {}", looks::selected())
});
/// Where the checksum of the row and the first column of the look are in it.
const ROW_CHECKSUM: usize = 38;
const LOOK: usize = 39;

/// Loads documents of a connection by their keys; unknown ones are left out.
pub fn load(
    tx: &mut Tx<'_>,
    part: Part,
    connection: ConnectionId,
    keys: &[DocHash],
) -> Result<Vec<Document>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    tx.query_in(
        &format!(
            "SELECT {} FROM documents d {LAST_LOOK}
             WHERE d.part = $1 AND d.connectionid = $2 AND d.dochash IN ($keys)",
            *SELECTED_COLUMNS
        ),
        &[part.into(), connection.into()],
        &keys,
        Document::from_row,
    )
}

/// The plus keeps SQLite from walking the documents in the order of their ids.
const ORIGINALS: &str = "SELECT contenthash, dochash FROM documents
     WHERE part = $1 AND +connectionid = $2 AND removed_ms IS NULL AND contenthash IS NOT NULL
       AND duplicateof IS NULL AND contenthash IN ($keys)
     ORDER BY +id";

/// Live documents of a connection with the given contents that are no copies
/// themselves: the content and the key, earliest first.
pub fn originals(
    tx: &mut Tx<'_>,
    part: Part,
    connection: ConnectionId,
    contents: &[Vec<u8>],
) -> Result<Vec<(Vec<u8>, DocHash)>> {
    let keys: Vec<Value<'_>> = contents.iter().map(|hash| Value::Blob(hash)).collect();
    tx.query_in(ORIGINALS, &[part.into(), connection.into()], &keys, |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Writes documents, new or known. The id of a known one stays.
pub fn save<'a>(
    tx: &mut Tx<'_>,
    part: Part,
    connection: ConnectionId,
    documents: impl IntoIterator<Item = &'a Document>,
) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> =
        documents.into_iter().map(|document| document.to_row(part, connection)).collect();
    let changed = overwritten(COLUMNS, &["id", "dochash"]);
    tx.insert_rows(
        &format!("INSERT INTO documents (part, connectionid, {COLUMNS}, checksum)"),
        &rows,
        &format!("ON CONFLICT (part, dochash, connectionid) DO UPDATE SET {changed}"),
    )?;
    Ok(())
}

impl Document {
    /// A document nobody has looked at yet.
    pub fn new(id: DocumentId, dochash: DocHash, docid: String, now_ms: i64) -> Document {
        Document {
            id,
            dochash,
            docid,
            outcome: "new".into(),
            http_status: None,
            media_type: None,
            language: None,
            title: None,
            length: None,
            etag: None,
            last_modified: None,
            version: None,
            content_hash: None,
            text_hash: None,
            simhash: None,
            redirect: None,
            duplicate_of: None,
            first_ms: now_ms,
            checked_ms: now_ms,
            fetched_ms: None,
            changed_ms: None,
            checks: 0,
            changes: 0,
            quiet_ms: 0,
            restless_ms: 0,
            chunk: None,
            ordinal: None,
            body_chunk: None,
            missing: 0,
            missing_run: None,
            missing_ms: None,
            removed_ms: None,
            reason: None,
            role: DocumentRole::Page,
            trust: Trust::Whole,
            row_checksum: 0,
        }
    }

    /// The document, to be looked at as if for the first time if its row is damaged: what
    /// is kept of such a row is that it had content, and that it was removed.
    pub fn if_damaged_anew(self, docid: &str, now_ms: i64) -> Document {
        if self.trust != Trust::Damaged {
            return self;
        }
        Document {
            chunk: self.chunk,
            ordinal: self.ordinal,
            body_chunk: self.body_chunk,
            removed_ms: self.removed_ms.map(|_| now_ms),
            trust: Trust::Doubtful,
            ..Document::new(self.id, self.dochash, docid.to_owned(), now_ms)
        }
    }

    /// The values of a row, the checksum behind them.
    fn to_row(&self, part: Part, connection: ConnectionId) -> Vec<Value<'_>> {
        let mut row = self.to_values(part, connection);
        row.push(self.checksum(&row).into());
        row
    }

    /// The checksum of a row with these values.
    fn checksum(&self, values: &[Value<'_>]) -> i64 {
        let checksum = WRITTEN.of(values);
        // What was not replaced must not look as if it had been.
        if self.trust == Trust::Whole { checksum } else { !checksum }
    }

    fn to_values(&self, part: Part, connection: ConnectionId) -> Vec<Value<'_>> {
        vec![
            part.into(),
            connection.into(),
            self.id.into(),
            (&self.dochash).into(),
            (&self.docid).into(),
            (&self.outcome).into(),
            self.http_status.into(),
            (&self.media_type).into(),
            (&self.language).into(),
            (&self.title).into(),
            self.length.into(),
            (&self.etag).into(),
            (&self.last_modified).into(),
            (&self.version).into(),
            self.content_hash.as_ref().into(),
            self.text_hash.as_ref().into(),
            self.simhash.into(),
            self.redirect.map(|it| it.0).into(),
            self.redirect.as_ref().map(|it| &it.1).into(),
            self.duplicate_of.map(|it| it.0).into(),
            self.duplicate_of.as_ref().map(|it| &it.1).into(),
            self.first_ms.into(),
            self.checked_ms.into(),
            self.fetched_ms.into(),
            self.changed_ms.into(),
            self.checks.into(),
            self.changes.into(),
            self.quiet_ms.into(),
            self.restless_ms.into(),
            self.chunk.into(),
            self.ordinal.into(),
            self.body_chunk.into(),
            self.missing.into(),
            self.missing_run.into(),
            self.missing_ms.into(),
            self.removed_ms.into(),
            (&self.reason).into(),
            self.role.is_requisite().into(),
        ]
    }

    fn from_row(row: &Row<'_>) -> Result<Document> {
        let trust = match SELECTED.judge(row)? {
            RowIntegrity::Whole => Trust::Whole,
            RowIntegrity::Inverted => Trust::Doubtful,
            RowIntegrity::Damaged => return Document::from_damaged(row),
        };
        let mut document = Document {
            id: row.get(column!(COLUMNS, "id"))?,
            dochash: row.get(column!(COLUMNS, "dochash"))?,
            docid: row.get(column!(COLUMNS, "docid"))?,
            outcome: row.get(column!(COLUMNS, "outcome"))?,
            http_status: row.get(column!(COLUMNS, "httpstatus"))?,
            media_type: row.get(column!(COLUMNS, "mediatype"))?,
            language: row.get(column!(COLUMNS, "language"))?,
            title: row.get(column!(COLUMNS, "title"))?,
            length: row.get(column!(COLUMNS, "length"))?,
            etag: row.get(column!(COLUMNS, "etag"))?,
            last_modified: row.get(column!(COLUMNS, "lastmodified"))?,
            version: row.get(column!(COLUMNS, "version"))?,
            content_hash: row.get(column!(COLUMNS, "contenthash"))?,
            text_hash: row.get(column!(COLUMNS, "texthash"))?,
            simhash: row.get(column!(COLUMNS, "simhash"))?,
            redirect: row
                .get::<Option<Part>>(column!(COLUMNS, "redirectpart"))?
                .zip(row.get(column!(COLUMNS, "redirecthash"))?),
            duplicate_of: row
                .get::<Option<Part>>(column!(COLUMNS, "duplicatepart"))?
                .zip(row.get(column!(COLUMNS, "duplicateof"))?),
            first_ms: row.get(column!(COLUMNS, "first_ms"))?,
            checked_ms: row.get(column!(COLUMNS, "checked_ms"))?,
            fetched_ms: row.get(column!(COLUMNS, "fetched_ms"))?,
            changed_ms: row.get(column!(COLUMNS, "changed_ms"))?,
            checks: row.get(column!(COLUMNS, "checks"))?,
            changes: row.get(column!(COLUMNS, "changes"))?,
            quiet_ms: row.get(column!(COLUMNS, "quiet_ms"))?,
            restless_ms: row.get(column!(COLUMNS, "restless_ms"))?,
            chunk: row.get(column!(COLUMNS, "chunk"))?,
            ordinal: row.get(column!(COLUMNS, "ordinal"))?,
            body_chunk: row.get(column!(COLUMNS, "bodychunk"))?,
            missing: row.get(column!(COLUMNS, "missing"))?,
            missing_run: row.get(column!(COLUMNS, "missing_run"))?,
            missing_ms: row.get(column!(COLUMNS, "missing_ms"))?,
            removed_ms: row.get(column!(COLUMNS, "removed_ms"))?,
            reason: row.get(column!(COLUMNS, "reason"))?,
            role: DocumentRole::of_requisite(row.get(column!(COLUMNS, "requisite"))?),
            trust,
            row_checksum: row.get(ROW_CHECKSUM)?,
        };
        document.take_look(row)?;
        Ok(document)
    }

    /// What is left of a row that is damaged. Its values may be of any kind.
    fn from_damaged(row: &Row<'_>) -> Result<Document> {
        let number = |place| {
            row.raw(place).map(|raw| match raw {
                Raw::Int(number) => Some(number),
                _ => None,
            })
        };
        let docid = match row.raw(column!(COLUMNS, "docid"))? {
            Raw::Text(text) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        let id = DocumentId(number(column!(COLUMNS, "id"))?.unwrap_or_default());
        Ok(Document {
            chunk: number(column!(COLUMNS, "chunk"))?.map(ChunkId),
            ordinal: number(column!(COLUMNS, "ordinal"))?,
            body_chunk: number(column!(COLUMNS, "bodychunk"))?.map(ChunkId),
            removed_ms: number(column!(COLUMNS, "removed_ms"))?,
            trust: Trust::Damaged,
            ..Document::new(id, row.get(column!(COLUMNS, "dochash"))?, docid, 0)
        })
    }
}

#[cfg(test)]
mod tests;
