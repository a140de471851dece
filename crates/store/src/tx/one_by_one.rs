//! What PostgreSQL does with one statement for many rows, SQLite does row by row.
//!
//! It has no round trip to save. A list of keys or rows would make it build a table of
//! them for each statement, and a statement that changes many rows keeps a copy of every
//! page it touches: together a third of the cost of a commit (bench/queue). Invariant:
//! the outcome is that of the one statement; each key counts once.

use super::check;
use crate::value::{Row, Value};
use crate::{Error, Result};
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeSet;

/// `before FROM (VALUES …) AS v after` for one row, without the table `v`.
pub fn update_text(before: &str, after: &str, fixed: usize, columns: usize) -> String {
    let mut text = format!("{before} {after}");
    // From the last, so that column1 is not taken for a part of column10.
    for column in (1..=columns).rev() {
        text = text.replace(&format!("v.column{column}"), &format!("${}", fixed + column));
    }
    text
}

/// Runs a statement for each row. Returns how many rows it touched in all.
pub fn execute(
    connection: &Connection,
    text: &str,
    fixed: &[Value<'_>],
    rows: &[Vec<Value<'_>>],
) -> Result<u64> {
    let Some(first) = rows.first() else { return Ok(0) };
    let mut statement = connection.prepare_cached(text)?;
    check(fixed)?;
    let mut touched = 0;
    for row in rows {
        assert_eq!(row.len(), first.len(), "all rows of a batch have the same columns");
        check(row)?;
        touched += statement.execute(params_from_iter(fixed.iter().chain(row)))? as u64;
    }
    Ok(touched)
}

/// Runs a query for each key, in the order of the keys.
pub fn query<T>(
    connection: &Connection,
    text: &str,
    fixed: &[Value<'_>],
    keys: &[Value<'_>],
    mut map: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut out = Vec::new();
    if keys.is_empty() {
        return Ok(out);
    }
    check(fixed)?;
    check(keys)?;
    let keys = keys.iter().map(RowKey::of).collect::<Result<BTreeSet<RowKey<'_>>>>()?;
    let mut statement = connection.prepare_cached(text)?;
    for key in keys {
        let key = key.value();
        let mut rows = statement.query(params_from_iter(fixed.iter().chain([&key])))?;
        while let Some(row) = rows.next()? {
            out.push(map(&Row::Sqlite(row))?);
        }
    }
    Ok(out)
}

/// A value that rows are found by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum RowKey<'a> {
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl<'a> RowKey<'a> {
    fn of(value: &Value<'a>) -> Result<RowKey<'a>> {
        match *value {
            Value::Int(number) => Ok(RowKey::Int(number)),
            Value::Text(text) => Ok(RowKey::Text(text)),
            Value::Blob(bytes) => Ok(RowKey::Blob(bytes)),
            Value::Null | Value::Real(_) => {
                Err(Error::Statement { reason: format!("{value:?} is no key") })
            }
        }
    }

    fn value(&self) -> Value<'a> {
        match *self {
            RowKey::Int(number) => Value::Int(number),
            RowKey::Text(text) => Value::Text(text),
            RowKey::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_parameters_behind_the_fixed_ones() {
        let text = update_text(
            "UPDATE t SET a = v.column2, b = v.column10",
            "WHERE t.id = v.column1 AND t.part = $1",
            1,
            10,
        );
        assert_eq!(text, "UPDATE t SET a = $3, b = $11 WHERE t.id = $2 AND t.part = $1");
    }
}
