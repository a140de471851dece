//! All rows of the tables that carry checksums, page by page in the order of their keys.
//!
//! Invariant: memory is bounded by a page, and a walk ends even if keys are damaged.

use super::{COLUMN, ChecksummedTable, coverage};
use crate::copy::schema::{self, Table};
use crate::dialect::{ValueKind, in_list};
use crate::value::{Raw, Row};
use crate::{Result, Tx, Value};

/// Rows of a page of [`fill`].
const FILLED: u32 = 1_000;
/// Bytes of a key's column that are shown.
const SHOWN_MAX: usize = 80;

/// A column of a key, on its way from one page to the next.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) enum KeyValue {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl KeyValue {
    fn read(raw: Raw<'_>) -> KeyValue {
        match raw {
            // No key has a real number, unless it is damaged.
            Raw::Null | Raw::Real(_) => KeyValue::Null,
            Raw::Int(int) => KeyValue::Int(int),
            Raw::Text(text) => KeyValue::Text(String::from_utf8_lossy(text).replace('\0', " ")),
            Raw::Blob(bytes) => KeyValue::Blob(bytes.to_vec()),
        }
    }

    pub fn value(&self) -> Value<'_> {
        match self {
            KeyValue::Null => Value::Null,
            KeyValue::Int(int) => (*int).into(),
            KeyValue::Text(text) => text.into(),
            KeyValue::Blob(bytes) => bytes.into(),
        }
    }
}

/// A row as a walk sees it.
pub(super) struct ScannedRow {
    pub key: Vec<KeyValue>,
    pub is_whole: bool,
    computed: i64,
    /// Its key as people read it, if it is damaged.
    pub name: String,
}

/// The rows of a table behind a key, in the order of the key.
pub(super) fn page(
    tx: &mut Tx<'_>,
    summed: &'static ChecksummedTable,
    table: &Table,
    after: Option<&[KeyValue]>,
    limit: u32,
) -> Result<Vec<ScannedRow>> {
    let key = table.key_list();
    let behind = match after {
        Some(after) => format!("WHERE ({key}) > {}", in_list(2, after.len())),
        None => String::new(),
    };
    let columns = format!("{}, {COLUMN}, {key}", summed.covered);
    let places = summed.places(&columns);
    let first = summed.covered.split(", ").count() + 1;
    let sql = format!("SELECT {columns} FROM {} {behind} ORDER BY {key} LIMIT $1", summed.table);
    let mut values: Vec<Value<'_>> = vec![limit.into()];
    values.extend(after.unwrap_or_default().iter().map(KeyValue::value));
    tx.query(&sql, &values, |row| {
        let is_whole = places.is_whole(row)?;
        Ok(ScannedRow {
            key: (0..table.key.len())
                .map(|place| Ok(KeyValue::read(row.raw(first + place)?)))
                .collect::<Result<_>>()?,
            is_whole,
            computed: places.of_row(row)?,
            name: if is_whole { String::new() } else { named(row, first, table)? },
        })
    })
}

/// `part 0, id 17`
fn named(row: &Row<'_>, first: usize, table: &Table) -> Result<String> {
    let mut words = Vec::new();
    for (place, column) in table.key.iter().enumerate() {
        let name = table.columns[*column].name;
        words.push(format!("{name} {}", shown(row.raw(first + place)?)));
    }
    Ok(words.join(", "))
}

/// A value as people read it.
pub(super) fn shown(value: Raw<'_>) -> String {
    let short = |bytes: &[u8]| bytes[..bytes.len().min(SHOWN_MAX)].to_vec();
    match value {
        Raw::Null => "nothing".to_owned(),
        Raw::Int(int) => int.to_string(),
        Raw::Real(real) => real.to_string(),
        Raw::Text(text) => format!("{:?}", String::from_utf8_lossy(&short(text))),
        Raw::Blob(bytes) => short(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Rows of a table that are damaged, from a walk over a bounded number of rows.
#[allow(missing_docs)]
pub(crate) struct DamagedRows {
    pub table: &'static ChecksummedTable,
    /// The keys of the rows, as people read them.
    pub keys: Vec<String>,
    /// Rows that were looked at.
    pub rows: u64,
    /// Where the walk goes on; `None` at its end.
    pub next: Option<ScanPosition>,
}

/// How far a walk over all tables has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanPosition {
    table: usize,
    after: Option<Vec<KeyValue>>,
}

/// Looks at up to `limit` rows from a place on.
pub(crate) fn damaged_after(
    tx: &mut Tx<'_>,
    place: ScanPosition,
    limit: u32,
) -> Result<DamagedRows> {
    let summed = coverage::TABLES[place.table];
    let page = page(tx, summed, &schema_of(summed), place.after.as_deref(), limit)?;
    let last = page.last().map(|row| row.key.clone());
    // Keys that do not grow are damaged, and would lead round in a circle.
    let goes_on = last.is_some() && last > place.after;
    let next = match goes_on {
        true => Some(ScanPosition { table: place.table, after: last }),
        false => Some(ScanPosition { table: place.table + 1, after: None }),
    };
    Ok(DamagedRows {
        table: summed,
        rows: page.len() as u64,
        keys: page.into_iter().filter(|row| !row.is_whole).map(|row| row.name).collect(),
        next: next.filter(|place| place.table < coverage::TABLES.len()),
    })
}

/// Gives every row of these tables the checksum of what it says now.
pub(crate) fn fill(tx: &mut Tx<'_>, tables: &[&'static ChecksummedTable]) -> Result<()> {
    for summed in tables.iter().copied() {
        let table = schema_of(summed);
        let kinds: Vec<ValueKind> =
            table.key.iter().map(|place| table.columns[*place].kind).collect();
        let names: Vec<&str> = table.key.iter().map(|place| table.columns[*place].name).collect();
        let found: Vec<String> = names
            .iter()
            .zip(1..)
            .map(|(name, place)| format!("{}.{name} = v.column{place}", summed.table))
            .collect();
        let mut after: Option<Vec<KeyValue>> = None;
        loop {
            let page = page(tx, summed, &table, after.as_deref(), FILLED)?;
            let last = page.last().map(|row| row.key.clone());
            if last.is_none() || last <= after {
                break;
            }
            let rows: Vec<Vec<Value<'_>>> = page
                .iter()
                .map(|row| {
                    let mut values: Vec<Value<'_>> = row.key.iter().map(KeyValue::value).collect();
                    values.push(row.computed.into());
                    values
                })
                .collect();
            tx.update_rows(
                &format!("UPDATE {} SET {COLUMN} = v.column{}", summed.table, kinds.len() + 1),
                &[],
                &[kinds.as_slice(), &[ValueKind::Int]].concat(),
                &rows,
                &format!("WHERE {}", found.join(" AND ")),
            )?;
            after = last;
        }
    }
    Ok(())
}

/// What the schema says of a table.
pub(super) fn schema_of(summed: &ChecksummedTable) -> Table {
    let found = schema::tables(&[]).into_iter().find(|table| table.name == summed.table);
    found.expect("a table with checksums is in the schema")
}
