//! Rows of the link index where many machines share it: a sorted map in a table.
//!
//! Invariant: whoever changes rows of a part has its lock, a row of its own, for the rest
//! of the transaction; so changes of a part come one after the other.

use crate::ids::Part;
use crate::sorted::{Pair, Row, Span};
use crate::value::Value;
use crate::{Result, Tx};
use std::collections::HashMap;

pub(crate) const TABLE: &str = "link_rows";
/// The key of the row that stands for a part's lock: before every family's.
const LOCK: &[u8] = &[0];

/// Locks a part for the rest of the transaction.
pub fn lock(tx: &mut Tx<'_>, part: Part) -> Result<()> {
    tx.execute(
        "INSERT INTO link_rows (part, key, value) VALUES ($1, $2, $2)
         ON CONFLICT (part, key) DO UPDATE SET value = excluded.value",
        &[part.into(), LOCK.into()],
    )?;
    Ok(())
}

/// The values of keys, in their order.
pub fn get_many(tx: &mut Tx<'_>, part: Part, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
    let wanted: Vec<Value<'_>> = keys.iter().map(Value::from).collect();
    let found: HashMap<Vec<u8>, Vec<u8>> = tx
        .query_in(
            "SELECT key, value FROM link_rows WHERE part = $1 AND key IN ($keys)",
            &[part.into()],
            &wanted,
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .into_iter()
        .collect();
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

/// Rows of a span, in its direction.
pub fn scan(tx: &mut Tx<'_>, part: Part, span: &Span, limit: usize) -> Result<Vec<Pair>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = match span.backwards {
        false => {
            "SELECT key, value FROM link_rows WHERE part = $1 AND key >= $2 AND key < $3
             ORDER BY key LIMIT $4"
        }
        true => {
            "SELECT key, value FROM link_rows WHERE part = $1 AND key >= $2 AND key < $3
             ORDER BY key DESC LIMIT $4"
        }
    };
    let values = [part.into(), (&span.from).into(), (&span.to).into(), limit.into()];
    tx.query(sql, &values, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Writes rows, and removes those without a value. A key that comes twice ends as it
/// comes last.
pub fn write(tx: &mut Tx<'_>, part: Part, rows: &[Row]) -> Result<()> {
    let mut last: HashMap<&[u8], usize> = HashMap::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        last.insert(&row.key, place);
    }
    let counts = |(place, row): &(usize, &Row)| last[&*row.key] == *place;
    let (mut put, mut gone) = (Vec::new(), Vec::new());
    for (_, row) in rows.iter().enumerate().filter(counts) {
        match &row.value {
            Some(value) => put.push(vec![part.into(), (&row.key).into(), value.into()]),
            None => gone.push(Value::from(&row.key)),
        }
    }
    tx.query_in(
        "DELETE FROM link_rows WHERE part = $1 AND key IN ($keys) RETURNING part",
        &[part.into()],
        &gone,
        |_| Ok(()),
    )?;
    tx.insert_rows(
        "INSERT INTO link_rows (part, key, value)",
        &put,
        "ON CONFLICT (part, key) DO UPDATE SET value = excluded.value",
    )?;
    Ok(())
}

/// Removes all rows of a family.
pub fn clear(tx: &mut Tx<'_>, part: Part, family: u8) -> Result<()> {
    tx.execute(
        "DELETE FROM link_rows WHERE part = $1 AND key >= $2 AND key < $3",
        &[part.into(), (&[family][..]).into(), (&[family + 1][..]).into()],
    )?;
    Ok(())
}

/// Bytes of all keys and values.
pub fn bytes(tx: &mut Tx<'_>) -> Result<u64> {
    let bytes: i64 = tx.query_one(
        "SELECT CAST(COALESCE(SUM(LENGTH(key) + LENGTH(value)), 0) AS BIGINT) FROM link_rows",
        &[],
        |row| row.get(0),
    )?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}
