//! Rows as documents.
//!
//! A document's identifier is its id, as text. Its version is the column of that name, or
//! a hash of all columns where there is none. Invariants: a row's version says whether it
//! is the same; a database that is away is trouble that passes, a wrong query is not.

use super::super::content;
use super::{ID, SqlSpec};
use crate::lifecycle::Model;
use crate::repository::{KnownVersion, LookResult, Read, Repository};
use bytes::Bytes;
use page::facts::SHORT_TEXT_BYTES_MAX;
use page::ids::{DocHash, hash128};
use page::url::{Policy, canonical};
use std::fmt::Write as _;
use store::Error;
use store::foreign::{Columns, Foreign, ForeignValue};
use store::tables::carrydown::{Data, VALUE_BYTES_MAX};

/// A sql job at work.
pub struct SqlRepository {
    theirs: Foreign,
    spec: SqlSpec,
}

impl SqlRepository {
    /// A job over a database, with a specification that has been checked.
    pub fn new(theirs: Foreign, spec: SqlSpec) -> SqlRepository {
        SqlRepository { theirs, spec }
    }

    fn row(&self, docid: &str, columns: Columns, known: Option<&str>) -> LookResult {
        let hash = hash_of(&columns);
        let row = SqlRow::of(columns);
        let version = match &row.version {
            Some(version) => format!("column {version}"),
            None => format!("hash {}", DocHash(hash).to_hex()),
        };
        if known == Some(version.as_str()) {
            return LookResult::Same;
        }
        let uri = self.uri(docid);
        LookResult::Read(Box::new(row.read((docid, &uri), version, hash)))
    }
}

impl Repository for SqlRepository {
    fn model(&self) -> Model {
        Model::All
    }

    fn seed(
        &self,
        _since: Option<&str>,
        now_ms: i64,
        name: &mut dyn FnMut(String),
    ) -> store::Result<Option<String>> {
        // One that no document can be found with is told before anything is named.
        let of = |query: &'static str| {
            move |error: Error| match error.passes() {
                true => error,
                false => Error::Refused(format!("{query}: {error}")),
            }
        };
        self.theirs.check_query(&self.spec.document, true).map_err(of("document"))?;
        self.theirs.ids(&self.spec.ids, name).map_err(of("ids"))?;
        Ok(Some(now_ms.to_string()))
    }

    fn uri(&self, docid: &str) -> String {
        let id = escaped(docid);
        match self.spec.url.is_empty() {
            true => format!("sql:{id}"),
            false => self.spec.url.replace(ID, &id),
        }
    }

    fn look(&self, docid: &str, known: KnownVersion<'_>) -> LookResult {
        match self.theirs.row(&self.spec.document, docid) {
            Ok(None) => LookResult::Missing,
            Ok(Some(columns)) => self.row(docid, columns, known.version),
            Err(error) => trouble(&error),
        }
    }

    fn interrupt(&self) {
        self.theirs.interrupt();
    }

    fn is_interrupted(&self) -> bool {
        self.theirs.is_interrupted()
    }
}

fn trouble(error: &Error) -> LookResult {
    let (code, passes) = match error {
        Error::TooLarge { .. } => ("size", false),
        error if error.passes() => ("database", true),
        _ => ("query", false),
    };
    LookResult::Trouble { code, detail: error.to_string(), passes }
}

/// The columns of a row, by what they mean.
#[derive(Default)]
struct SqlRow {
    version: Option<String>,
    url: Option<String>,
    title: Option<String>,
    media_type: Option<String>,
    content: Option<ForeignValue>,
    /// What is said beside that.
    fields: Data,
}

impl SqlRow {
    fn of(columns: Columns) -> SqlRow {
        let mut row = SqlRow::default();
        for (name, cell) in columns {
            let place = match name.as_str() {
                "content" => {
                    row.content = Some(cell);
                    continue;
                }
                "version" => &mut row.version,
                "url" => &mut row.url,
                "title" => &mut row.title,
                "media_type" => &mut row.media_type,
                _ => {
                    // Bytes of another column say nothing that could be read.
                    if let ForeignValue::Text(mut text) = cell {
                        text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
                        row.fields.entry(name).or_default().insert(text);
                    }
                    continue;
                }
            };
            *place = Some(match cell {
                ForeignValue::Text(text) => text,
                ForeignValue::Bytes(bytes) => DocHash(hash128(&bytes)).to_hex(),
            });
        }
        row
    }

    /// What the row says, and its bytes.
    fn read(self, (docid, uri): (&str, &str), version: String, hash: [u8; 16]) -> Read {
        let (body, is_text) = match self.content {
            Some(ForeignValue::Text(text)) => (text.into_bytes(), true),
            Some(ForeignValue::Bytes(bytes)) => (bytes, false),
            None => (Vec::new(), true),
        };
        let media_type = match (self.media_type, is_text) {
            (Some(declared), true) => Some(format!("{declared}; charset=utf-8")),
            (declared, false) => declared,
            (None, true) => Some("text/plain; charset=utf-8".to_owned()),
        };
        let address = self.url.as_deref().and_then(|it| canonical(it, &Policy::default()).ok());
        let base = address.as_deref().unwrap_or(uri);
        let mut facts = content::facts(base, media_type.as_deref(), &body);
        if let Some(title) = self.title {
            facts.title = title[..title.floor_char_boundary(SHORT_TEXT_BYTES_MAX)].to_owned();
        }
        if facts.title.is_empty() {
            facts.title = docid.to_owned();
        }
        if address.is_some() {
            facts.canonical = address;
        }
        // A row is all of its columns.
        facts.content_hash = hash;
        let (body, fields) = (Bytes::from(body), self.fields);
        Read { version, facts, fields, body, modified_ms: None, references: Vec::new() }
    }
}

/// What a row is recognised by.
fn hash_of(columns: &Columns) -> [u8; 16] {
    let mut bytes = Vec::new();
    for (name, cell) in columns {
        let value = match cell {
            ForeignValue::Text(text) => text.as_bytes(),
            ForeignValue::Bytes(bytes) => bytes,
        };
        for piece in [name.as_bytes(), &hash128(value)] {
            bytes.extend((piece.len() as u64).to_le_bytes());
            bytes.extend(piece);
        }
    }
    hash128(&bytes)
}

/// An id as it can stand in a URL.
fn escaped(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests;
