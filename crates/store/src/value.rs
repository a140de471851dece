//! Values that go into statements and come out of rows, the same on both databases.
//!
//! Five kinds cross the border: NULL, 64-bit integers, doubles, text, bytes.
//! Booleans are integers 0 and 1, times are integer milliseconds.
//! Invariant: text with a NUL byte never reaches a database (`tx` checks), since
//! PostgreSQL cannot hold it.

use crate::{Error, Result};
use page::ids::DocHash;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A parameter of a statement, borrowed from the caller.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

macro_rules! value_from {
    ($($from:ty => |$name:ident| $to:expr;)*) => {
        $(impl<'a> From<$from> for Value<'a> {
            fn from($name: $from) -> Value<'a> { $to }
        })*
    };
}
value_from! {
    i64 => |v| Value::Int(v);
    i32 => |v| Value::Int(v.into());
    u32 => |v| Value::Int(v.into());
    u8 => |v| Value::Int(v.into());
    bool => |v| Value::Int(v.into());
    f64 => |v| Value::Real(v);
    &'a str => |v| Value::Text(v);
    &'a String => |v| Value::Text(v);
    &'a [u8] => |v| Value::Blob(v);
    &'a Vec<u8> => |v| Value::Blob(v);
    &'a [u8; 16] => |v| Value::Blob(v);
    &'a [u8; 32] => |v| Value::Blob(v);
    &'a DocHash => |v| Value::Blob(&v.0);
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Null, Into::into)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Value<'a> {
        value.as_deref().into()
    }
}

impl Value<'_> {
    /// Refuses what one of the two databases could not hold.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Value::Text(text) if text.as_bytes().contains(&0) => {
                Err(Error::Nul { start: text.chars().take(40).collect() })
            }
            Value::Real(real) if real.is_nan() => {
                Err(Error::Statement { reason: "a value is not a number".into() })
            }
            _ => Ok(()),
        }
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Int(int) => ValueRef::Integer(int),
            Value::Real(real) => ValueRef::Real(real),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

type PgResult<T> = std::result::Result<T, Box<dyn std::error::Error + Sync + Send>>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut bytes::BytesMut) -> PgResult<IsNull> {
        match (*self, kind) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Int(int), &Type::INT8) => int.to_sql(kind, out),
            (Value::Int(int), &Type::INT4) => i32::try_from(int)?.to_sql(kind, out),
            (Value::Int(int), &Type::FLOAT8) => (int as f64).to_sql(kind, out),
            (Value::Real(real), &Type::FLOAT8) => real.to_sql(kind, out),
            (Value::Text(text), &Type::TEXT | &Type::VARCHAR) => text.to_sql(kind, out),
            (Value::Blob(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            (value, kind) => {
                Err(format!("{value:?} given where the statement wants {kind}").into())
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// One row of an answer.
pub enum Row<'a> {
    #[allow(missing_docs)]
    Sqlite(&'a rusqlite::Row<'a>),
    #[allow(missing_docs)]
    Postgres(&'a postgres::Row),
}

impl Row<'_> {
    /// The value of a column, by its place.
    pub fn get<T: FromColumn>(&self, index: usize) -> Result<T> {
        T::from_column(self, index)
    }

    /// The value of a column as it lies there, of whatever kind it is.
    pub(crate) fn raw(&self, index: usize) -> Result<Raw<'_>> {
        match self {
            Row::Sqlite(row) => Ok(match row.get_ref(index)? {
                ValueRef::Null => Raw::Null,
                ValueRef::Integer(int) => Raw::Int(int),
                ValueRef::Real(real) => Raw::Real(real),
                ValueRef::Text(text) => Raw::Text(text),
                ValueRef::Blob(bytes) => Raw::Blob(bytes),
            }),
            Row::Postgres(row) => raw_postgres(row, index),
        }
    }
}

/// The place of a column in a list, for [`Row::get`]: `column!(COLUMNS, "docid")`. It is found
/// at compile time, and a list without the column does not compile.
macro_rules! column {
    ($list:expr, $name:literal) => {
        const { $crate::value::place_of($list, $name) }
    };
}
pub(crate) use column;

/// See [`column`]. What is selected goes by its last word: `q.id` is `id`, and so is
/// `COALESCE(a.id, b.id) AS id`.
pub(crate) const fn place_of(list: &str, name: &str) -> usize {
    let list = list.as_bytes();
    let (mut at, mut place, mut depth) = (0, 0, 0);
    loop {
        let is_end = at == list.len() || (depth == 0 && list[at] == b',');
        if is_end && ends_with_word(list, at, name.as_bytes()) {
            return place;
        }
        assert!(at < list.len(), "the list has no such column");
        match list[at] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => place += 1,
            _ => {}
        }
        at += 1;
    }
}

/// Whether the text up to `end` ends with a word.
const fn ends_with_word(text: &[u8], end: usize, word: &[u8]) -> bool {
    if end < word.len() {
        return false;
    }
    let begin = end - word.len();
    let mut at = 0;
    while at < word.len() {
        if text[begin + at] != word[at] {
            return false;
        }
        at += 1;
    }
    begin == 0 || matches!(text[begin - 1], b' ' | b'.' | b'\n')
}

fn raw_postgres(row: &postgres::Row, index: usize) -> Result<Raw<'_>> {
    let value = match *row.columns()[index].type_() {
        Type::INT8 | Type::INT4 | Type::INT2 => {
            row.try_get::<_, Option<AnyInt>>(index)?.map(|int| Raw::Int(int.0))
        }
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(index)?.map(Raw::Real),
        Type::BYTEA => row.try_get::<_, Option<&[u8]>>(index)?.map(Raw::Blob),
        _ => row.try_get::<_, Option<&str>>(index)?.map(|text| Raw::Text(text.as_bytes())),
    };
    Ok(value.unwrap_or(Raw::Null))
}

/// A value as it lies in a row. Text is bytes: in a row that is damaged it may be no text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Raw<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl<'a> From<Value<'a>> for Raw<'a> {
    fn from(value: Value<'a>) -> Raw<'a> {
        match value {
            Value::Null => Raw::Null,
            Value::Int(int) => Raw::Int(int),
            Value::Real(real) => Raw::Real(real),
            Value::Text(text) => Raw::Text(text.as_bytes()),
            Value::Blob(bytes) => Raw::Blob(bytes),
        }
    }
}

/// What a column can be read as.
pub trait FromColumn: Sized {
    /// Reads column `index` of `row`.
    fn from_column(row: &Row<'_>, index: usize) -> Result<Self>;
}

/// PostgreSQL gives small literals as 32 bits; they are integers like any other.
struct AnyInt(i64);

impl<'a> FromSql<'a> for AnyInt {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> PgResult<AnyInt> {
        match *kind {
            Type::INT4 => i32::from_sql(kind, raw).map(|int| AnyInt(int.into())),
            Type::INT2 => i16::from_sql(kind, raw).map(|int| AnyInt(int.into())),
            _ => i64::from_sql(kind, raw).map(AnyInt),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::INT4 | Type::INT2)
    }
}

impl FromColumn for Option<i64> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Option<i64>> {
        Ok(match row {
            Row::Sqlite(row) => row.get(index)?,
            Row::Postgres(row) => row.try_get::<_, Option<AnyInt>>(index)?.map(|int| int.0),
        })
    }
}

macro_rules! plain_column {
    ($($kind:ty),*) => {
        $(impl FromColumn for Option<$kind> {
            fn from_column(row: &Row<'_>, index: usize) -> Result<Option<$kind>> {
                Ok(match row {
                    Row::Sqlite(row) => row.get(index)?,
                    Row::Postgres(row) => row.try_get(index)?,
                })
            }
        })*
    };
}
plain_column!(f64, String, Vec<u8>);

macro_rules! required_column {
    ($($kind:ty),*) => {
        $(impl FromColumn for $kind {
            fn from_column(row: &Row<'_>, index: usize) -> Result<$kind> {
                row.get::<Option<$kind>>(index)?.ok_or_else(|| Error::Corrupt {
                    what: format!("column {index} of an answer"),
                    reason: "it is NULL where a value must be".into(),
                })
            }
        })*
    };
}
required_column!(i64, f64, String, Vec<u8>, DocHash);

impl FromColumn for Option<DocHash> {
    fn from_column(row: &Row<'_>, index: usize) -> Result<Option<DocHash>> {
        let Some(bytes) = row.get::<Option<Vec<u8>>>(index)? else { return Ok(None) };
        let hash = bytes.try_into().map_err(|bytes: Vec<u8>| Error::Corrupt {
            what: "a document key".into(),
            reason: format!("it has {} bytes, not 16", bytes.len()),
        })?;
        Ok(Some(DocHash(hash)))
    }
}

impl FromColumn for bool {
    fn from_column(row: &Row<'_>, index: usize) -> Result<bool> {
        Ok(row.get::<i64>(index)? != 0)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_column_is_found_by_the_last_word_of_what_is_selected() {
        const LIST: &str = "q.id, idle,
            COALESCE(a.id, b.other) AS place, part";
        assert_eq!(column!(LIST, "id"), 0);
        assert_eq!(column!(LIST, "idle"), 1);
        assert_eq!(column!(LIST, "place"), 2);
        assert_eq!(column!(LIST, "part"), 3);
    }
}
