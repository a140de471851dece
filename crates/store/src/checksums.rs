//! Checksums of rows: a bit that flips in a row is noticed instead of believed.
//!
//! Every table of [`coverage`] has a column `checksum`: 64 bits of BLAKE3 over the columns
//! that are declared as covered, in that order, each with its kind and length. Whoever writes
//! a covered row computes it with [`ColumnPositions::of`] and writes it in the same statement; where
//! a statement changes a part of a row only, [`change`] is around it. Both databases compute
//! the same, so a copied row keeps its checksum.
//!
//! Invariants: a row whose checksum does not match never gets one that does, unless all of
//! it is written anew; so damage stays visible until somebody who knows better has replaced
//! it. There is no row without a checksum: those of before got theirs with the column.

pub(crate) mod coverage;
mod walk;

pub(crate) use walk::{ScanPosition, damaged_after, fill};

use crate::value::{Raw, Row};
use crate::{Error, Result, Tx, Value};

/// The column that holds the checksum.
pub(crate) const COLUMN: &str = "checksum";
/// Bytes of most rows, so that encoding one seldom allocates twice.
const ROW_BYTES: usize = 512;

/// A table whose rows carry checksums.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) struct ChecksummedTable {
    pub table: &'static str,
    /// The columns that the checksum is made of, separated by a comma and a space.
    pub covered: &'static str,
    /// The covered column that came after the others. Where it is 0 it counts for nothing, so that
    /// rows from before it came keep their checksums.
    pub later: Option<&'static str>,
    /// Columns that it is not made of, each with the reason.
    pub left_out: &'static [(&'static str, &'static str)],
    /// What to do about a row that is damaged.
    pub remedy: &'static str,
}

impl ChecksummedTable {
    /// Where the covered columns are in a list of columns, which has all of them.
    pub fn places(&'static self, columns: &str) -> ColumnPositions {
        let listed: Vec<&str> = columns.split(',').map(str::trim).collect();
        let place = |name: &str| listed.iter().position(|column| *column == name);
        let covered = self.covered.split(", ").map(|name| {
            place(name).unwrap_or_else(|| panic!("{}: {name} is not in {columns}", self.table))
        });
        let later = self.later.and_then(place);
        ColumnPositions { table: self, covered: covered.collect(), later, checksum: place(COLUMN) }
    }

    /// A damaged row of this table, for whoever cannot go on without it.
    pub fn damaged(&self, key: &str) -> Error {
        let what = format!("the row {key} of table {}", self.table);
        Error::corrupt(what, format!("its checksum does not match; {}", self.remedy))
    }
}

/// Where the columns of a table are that its checksum is made of.
#[derive(Debug)]
pub(crate) struct ColumnPositions {
    table: &'static ChecksummedTable,
    covered: Vec<usize>,
    /// The one of them that counts only where it is not 0.
    later: Option<usize>,
    checksum: Option<usize>,
}

impl ColumnPositions {
    /// The checksum of a row that is to be written.
    pub fn of(&self, values: &[Value<'_>]) -> i64 {
        let mut encoded = EncodedValues::new(self.table);
        for place in &self.covered {
            self.add(&mut encoded, *place, values[*place].into());
        }
        encoded.checksum()
    }

    /// A row that is to be written, with its checksum behind its other values.
    pub fn with_checksum<'a>(&self, mut values: Vec<Value<'a>>) -> Vec<Value<'a>> {
        values.push(self.of(&values).into());
        values
    }

    /// The checksum that a row ought to have.
    fn of_row(&self, row: &Row<'_>) -> Result<i64> {
        let mut encoded = EncodedValues::new(self.table);
        for place in &self.covered {
            self.add(&mut encoded, *place, row.raw(*place)?);
        }
        Ok(encoded.checksum())
    }

    fn add(&self, encoded: &mut EncodedValues, place: usize, value: Raw<'_>) {
        if self.later != Some(place) || !matches!(value, Raw::Int(0)) {
            encoded.add(value);
        }
    }

    /// Whether a row is as it was written. Its columns must not be read as what they should
    /// be before this is known: text that is damaged may be no text.
    pub fn is_whole(&self, row: &Row<'_>) -> Result<bool> {
        Ok(self.judge(row)? == RowIntegrity::Whole)
    }

    /// As [`ColumnPositions::is_whole`], for a table that writes inverted checksums.
    pub fn judge(&self, row: &Row<'_>) -> Result<RowIntegrity> {
        let place = self.checksum.expect("whoever reads a row selects its checksum");
        let (stored, computed) = (row.raw(place)?, self.of_row(row)?);
        Ok(match stored {
            Raw::Int(stored) if stored == computed => RowIntegrity::Whole,
            Raw::Int(stored) if stored == !computed => RowIntegrity::Inverted,
            _ => RowIntegrity::Damaged,
        })
    }
}

/// What a row's checksum says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowIntegrity {
    /// The row is as it was written.
    Whole,
    /// It is as it was written, by somebody who did not believe all of it.
    Inverted,
    /// It is not as it was written.
    Damaged,
}

/// Values one behind the other, in a way that no two rows share.
struct EncodedValues(Vec<u8>);

impl EncodedValues {
    fn new(table: &ChecksummedTable) -> EncodedValues {
        let mut bytes = Vec::with_capacity(ROW_BYTES);
        bytes.extend(table.table.as_bytes());
        bytes.push(0);
        EncodedValues(bytes)
    }

    fn add(&mut self, value: Raw<'_>) {
        let bytes = &mut self.0;
        match value {
            Raw::Null => bytes.push(0),
            Raw::Int(int) => {
                bytes.push(1);
                bytes.extend(int.to_le_bytes());
            }
            Raw::Real(real) => {
                bytes.push(2);
                // SQLite keeps no negative zero; the sum of it and zero is zero.
                bytes.extend((real + 0.0).to_bits().to_le_bytes());
            }
            Raw::Text(text) => add_long(bytes, 3, text),
            Raw::Blob(blob) => add_long(bytes, 4, blob),
        }
    }

    fn checksum(&self) -> i64 {
        let hash = blake3::hash(&self.0);
        let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
        i64::from_le_bytes(*first)
    }
}

fn add_long(bytes: &mut Vec<u8>, kind: u8, value: &[u8]) {
    bytes.push(kind);
    bytes.extend((value.len() as u64).to_le_bytes());
    bytes.extend(value);
}

/// Runs a statement that changes covered columns of one row, found by `key`, and gives the
/// row its new checksum. A row that was damaged before is changed and stays damaged. Returns
/// how many rows the statement touched.
pub(crate) fn change(
    tx: &mut Tx<'_>,
    table: &'static ChecksummedTable,
    key: &[(&str, Value<'_>)],
    statement: impl FnOnce(&mut Tx<'_>) -> Result<u64>,
) -> Result<u64> {
    let before = look(tx, table, key)?;
    let touched = statement(tx)?;
    if touched == 0 || before.is_none_or(|it| it.stored != it.computed) {
        return Ok(touched);
    }
    let Some(after) = look(tx, table, key)? else { return Ok(touched) };
    let mut values: Vec<Value<'_>> = key.iter().map(|it| it.1).collect();
    values.push(after.computed.into());
    let sql =
        format!("UPDATE {} SET {COLUMN} = ${} WHERE {}", table.table, values.len(), condition(key));
    tx.execute(&sql, &values)?;
    Ok(touched)
}

/// The two checksums of a row.
#[derive(Clone, Copy)]
struct RowChecksums {
    stored: Option<i64>,
    computed: Option<i64>,
}

fn look(
    tx: &mut Tx<'_>,
    table: &'static ChecksummedTable,
    key: &[(&str, Value<'_>)],
) -> Result<Option<RowChecksums>> {
    let columns = format!("{}, {COLUMN}", table.covered);
    let places = table.places(&columns);
    let values: Vec<Value<'_>> = key.iter().map(|it| it.1).collect();
    let sql =
        format!("SELECT {columns} FROM {} WHERE {} /*for update*/", table.table, condition(key));
    tx.query_opt(&sql, &values, |row| {
        Ok(RowChecksums {
            stored: row.get(places.covered.len())?,
            computed: Some(places.of_row(row)?),
        })
    })
}

fn condition(key: &[(&str, Value<'_>)]) -> String {
    let each: Vec<String> =
        key.iter().zip(1..).map(|((name, _), place)| format!("{name} = ${place}")).collect();
    each.join(" AND ")
}

/// Refuses rows of a table that are damaged, of those that have this value in a column.
pub(crate) fn require_whole(
    tx: &mut Tx<'_>,
    table: &'static ChecksummedTable,
    column: &str,
    value: Value<'_>,
) -> Result<()> {
    match are_whole(tx, table, column, value)? {
        true => Ok(()),
        false => Err(table.damaged(&format!("with {column} {}", walk::shown(value.into())))),
    }
}

/// Whether the rows of a table that have this value in a column are as they were written.
pub(crate) fn are_whole(
    tx: &mut Tx<'_>,
    table: &'static ChecksummedTable,
    column: &str,
    value: Value<'_>,
) -> Result<bool> {
    let columns = format!("{}, {COLUMN}", table.covered);
    let places = table.places(&columns);
    let sql = format!("SELECT {columns} FROM {} WHERE {column} = $1", table.table);
    let whole = tx.query(&sql, &[value], |row| places.is_whole(row))?;
    Ok(whole.into_iter().all(|it| it))
}

#[cfg(test)]
mod tests;
