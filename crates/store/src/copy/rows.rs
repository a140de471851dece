//! Rows of any table, from one database to the other.
//!
//! Five kinds of values cross, and both databases hold them alike (see `value`).
//! Invariant: memory is bounded by a page, which shrinks where rows are large.

use super::fence;
use super::schema::{Column, Table};
use crate::dialect::{ValueKind, in_list};
use crate::value::{Row, Value};
use crate::{Db, Error, Result, Tx};

/// Rows of a table's first page.
pub(super) const ROWS_FIRST: u32 = 64;
/// Rows of any page.
const ROWS_MAX: u32 = 1_024;
/// A page with more than this is followed by one of half as many rows.
const PAGE_BYTES: usize = 4 << 20;

/// A value on its way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowValue {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl RowValue {
    fn read(row: &Row<'_>, index: usize, column: &Column) -> Result<RowValue> {
        Ok(match column.kind {
            ValueKind::Int => row.get::<Option<i64>>(index)?.map(RowValue::Int),
            // SQLite would keep it as NULL.
            ValueKind::Real if row.get::<Option<f64>>(index)?.is_some_and(f64::is_nan) => {
                let reason = format!("its {} is not a number; correct it first", column.name);
                return Err(Error::corrupt("a row", reason));
            }
            ValueKind::Real => row.get::<Option<f64>>(index)?.map(RowValue::Real),
            ValueKind::Text => row.get::<Option<String>>(index)?.map(RowValue::Text),
            ValueKind::Blob => row.get::<Option<Vec<u8>>>(index)?.map(RowValue::Blob),
        }
        .unwrap_or(RowValue::Null))
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self {
            RowValue::Null => Value::Null,
            RowValue::Int(int) => (*int).into(),
            RowValue::Real(real) => (*real).into(),
            RowValue::Text(text) => text.into(),
            RowValue::Blob(bytes) => bytes.into(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            RowValue::Text(text) => text.len(),
            RowValue::Blob(bytes) => bytes.len(),
            RowValue::Null | RowValue::Int(_) | RowValue::Real(_) => size_of::<i64>(),
        }
    }
}

/// Writes pages to a target, as long as its mark is there.
pub(super) struct Writer {
    pub db: Db,
    pub mark: String,
    pub now_ms: i64,
}

impl Writer {
    fn write(&self, table: &Table, mut page: Vec<Vec<RowValue>>) -> Result<()> {
        for row in &mut page {
            put_to_rest(table, row, self.now_ms);
        }
        let before = format!("INSERT INTO {} ({})", table.name, table.column_list());
        let mark = self.mark.clone();
        self.db
            .write(move |tx| {
                fence(tx, &mark)?;
                let values: Vec<Vec<Value<'_>>> =
                    page.iter().map(|row| row.iter().map(RowValue::value).collect()).collect();
                tx.insert_rows(&before, &values, "").map(|_| ())
            })
            .map_err(|error| in_table(table, error))
    }
}

/// Copies one table from the snapshot `tx`. Returns how many rows it had.
pub(super) fn copy_table(tx: &mut Tx<'_>, table: &Table, writer: &Writer) -> Result<u64> {
    let (mut rows, mut limit, mut after) = (0, ROWS_FIRST, None);
    loop {
        let page = page(tx, table, after.as_deref(), limit)?;
        let Some(last) = page.last() else { return Ok(rows) };
        after = Some(table.key.iter().map(|place| last[*place].clone()).collect::<Vec<RowValue>>());
        rows += page.len() as u64;
        let bytes: usize = page.iter().flatten().map(RowValue::bytes).sum();
        limit = if bytes > PAGE_BYTES { limit.div_ceil(2) } else { ROWS_MAX.min(limit * 2) };
        writer.write(table, page)?;
    }
}

/// Up to `limit` rows behind the key `after`, in the order of the key.
pub(super) fn page(
    tx: &mut Tx<'_>,
    table: &Table,
    after: Option<&[RowValue]>,
    limit: u32,
) -> Result<Vec<Vec<RowValue>>> {
    let (columns, key) = (table.column_list(), table.key_list());
    let behind = match after {
        Some(after) => format!("WHERE ({key}) > {}", in_list(2, after.len())),
        None => String::new(),
    };
    let sql = format!("SELECT {columns} FROM {} {behind} ORDER BY {key} LIMIT $1", table.name);
    let mut values: Vec<Value<'_>> = vec![limit.into()];
    values.extend(after.unwrap_or_default().iter().map(RowValue::value));
    let rows = tx.query(&sql, &values, |row| {
        table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| RowValue::read(row, at, column))
            .collect()
    });
    rows.map_err(|error| in_table(table, error))
}

/// Says in which table something is that cannot be copied.
fn in_table(table: &Table, error: Error) -> Error {
    let what = format!("a row of table {}", table.name);
    match error {
        Error::Statement { reason } => Error::Statement { reason: format!("{what}: {reason}") },
        Error::Nul { start } => Error::corrupt(
            what,
            format!("its text has a NUL byte after {start:?}; correct it first"),
        ),
        Error::Corrupt { reason, .. } => Error::corrupt(what, reason),
        other => other,
    }
}

/// In the copy nobody holds a lease and no node runs.
fn put_to_rest(table: &Table, row: &mut [RowValue], now_ms: i64) {
    let place = |name| table.place(name).expect("the schema has this column");
    match table.name {
        "leases" => row[place("deadline_ms")] = RowValue::Int(0),
        "nodes" => {
            let stopped = RowValue::Text("stopped".to_owned());
            if row[place("state")] != stopped {
                row[place("state")] = stopped;
                row[place("stopped_ms")] = RowValue::Int(now_ms);
            }
        }
        _ => {}
    }
}
