//! The last look at a document that found nothing new, beside the document's row.
//!
//! A row is wide, and what is looked at again is mostly unchanged: so a look is written to a
//! narrow table of its own. Invariant: a look counts only while it names the checksum of the row
//! as it is; a row that is written anew makes it void, and so needs not touch it.

use super::{Document, LOOK};
use crate::checksums::ColumnPositions;
use crate::checksums::coverage::LOOKS;
use crate::ids::Part;
use crate::tx::overwritten;
use crate::value::{Raw, Row, column};
use crate::{Result, Tx, Value};
use std::sync::LazyLock;

/// Joins the last look, `l`, to a document `d`.
pub(in crate::tables) const LAST_LOOK: &str =
    "LEFT JOIN looks l ON l.part = d.part AND l.id = d.id AND l.base = d.checksum";

const COLUMNS: &str = "part, id, base, outcome, httpstatus, etag, lastmodified, checked_ms, \
    fetched_ms, checks, quiet_ms, restless_ms, missing, missing_run, missing_ms";

static SELECTED: LazyLock<ColumnPositions> =
    LazyLock::new(|| LOOKS.places(&format!("{}{COLUMNS}, checksum", "-, ".repeat(LOOK))));
static WRITTEN: LazyLock<ColumnPositions> = LazyLock::new(|| LOOKS.places(COLUMNS));

/// The columns of a look, as they are selected behind those of a document's row.
pub(super) fn selected() -> String {
    format!("l.{}", format!("{COLUMNS}, checksum").replace(", ", ", l."))
}

/// Writes what a look notes of documents that are otherwise as they are stored
/// ([`Document::differs_by_a_look`]). Their rows stay as they are: they are wide, and what is
/// looked at again is mostly unchanged.
pub fn note_looks<'a>(
    tx: &mut Tx<'_>,
    part: Part,
    documents: impl IntoIterator<Item = &'a Document>,
) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> =
        documents.into_iter().map(|document| document.to_look(part)).collect();
    let changed = overwritten(COLUMNS, &["part", "id"]);
    tx.insert_rows(
        &format!("INSERT INTO looks ({COLUMNS}, checksum)"),
        &rows,
        &format!("ON CONFLICT (part, id) DO UPDATE SET {changed}"),
    )?;
    Ok(())
}

impl Document {
    /// Whether it is as it is stored but for what every look notes: when, how often and with
    /// what outcome it was looked at, its validators, and whether it was missing.
    pub fn differs_by_a_look(&self, stored: &Document) -> bool {
        // One that was never looked at is not stored.
        stored.checks > 0
            && *stored
                == Document {
                    outcome: stored.outcome.clone(),
                    http_status: stored.http_status,
                    etag: stored.etag.clone(),
                    last_modified: stored.last_modified.clone(),
                    checked_ms: stored.checked_ms,
                    fetched_ms: stored.fetched_ms,
                    checks: stored.checks,
                    quiet_ms: stored.quiet_ms,
                    restless_ms: stored.restless_ms,
                    missing: stored.missing,
                    missing_run: stored.missing_run,
                    missing_ms: stored.missing_ms,
                    ..self.clone()
                }
    }

    fn to_look(&self, part: Part) -> Vec<Value<'_>> {
        WRITTEN.with_checksum(vec![
            part.into(),
            self.id.into(),
            self.row_checksum.into(),
            (&self.outcome).into(),
            self.http_status.into(),
            (&self.etag).into(),
            (&self.last_modified).into(),
            self.checked_ms.into(),
            self.fetched_ms.into(),
            self.checks.into(),
            self.quiet_ms.into(),
            self.restless_ms.into(),
            self.missing.into(),
            self.missing_run.into(),
            self.missing_ms.into(),
        ])
    }

    /// Takes over what its last look has changed, if there is one behind its row in `row`.
    pub(super) fn take_look(&mut self, row: &Row<'_>) -> Result<()> {
        if matches!(row.raw(LOOK)?, Raw::Null) || !SELECTED.is_whole(row)? {
            return Ok(());
        }
        self.outcome = row.get(LOOK + column!(COLUMNS, "outcome"))?;
        self.http_status = row.get(LOOK + column!(COLUMNS, "httpstatus"))?;
        self.etag = row.get(LOOK + column!(COLUMNS, "etag"))?;
        self.last_modified = row.get(LOOK + column!(COLUMNS, "lastmodified"))?;
        self.checked_ms = row.get(LOOK + column!(COLUMNS, "checked_ms"))?;
        self.fetched_ms = row.get(LOOK + column!(COLUMNS, "fetched_ms"))?;
        self.checks = row.get(LOOK + column!(COLUMNS, "checks"))?;
        self.quiet_ms = row.get(LOOK + column!(COLUMNS, "quiet_ms"))?;
        self.restless_ms = row.get(LOOK + column!(COLUMNS, "restless_ms"))?;
        self.missing = row.get(LOOK + column!(COLUMNS, "missing"))?;
        self.missing_run = row.get(LOOK + column!(COLUMNS, "missing_run"))?;
        self.missing_ms = row.get(LOOK + column!(COLUMNS, "missing_ms"))?;
        Ok(())
    }
}
