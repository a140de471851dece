//! Values that documents hand to those they lead to (table 11.21).
//!
//! A parent hands a child values by name; a child has what all its parents hand it. The
//! values are in the child's part, where they are read; whom a parent has handed something
//! is in its own, so that what it hands no longer can be taken back. Invariants: what a
//! child has is what its parents have handed it last; taking the same twice changes nothing.

use crate::ids::Part;
use crate::tables::queue::Place;
use crate::{Error, Result, Tx, Value};
use page::ids::{DocHash, hash128};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of a name: it is part of a key.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of a value.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// Values that one parent hands one child.
pub const VALUES_MAX: usize = 100;

/// Values by name, each once.
pub type Data = BTreeMap<String, BTreeSet<String>>;

/// Bytes of a child in a parent's row: its key, its part, and a hash of what it was handed.
const CHILD_BYTES: usize = 16 + 4 + 16;

/// What children were handed: their parts and keys, with a hash of the data.
pub type HandedChildren = BTreeMap<(Part, DocHash), [u8; 16]>;

/// What one parent hands one child; nothing takes back what it handed before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChildData {
    pub parent: (Part, DocHash),
    pub child: DocHash,
    pub data: Data,
}

/// Data within the limits: what is too long or too much is left out.
pub fn limited(data: Data) -> Data {
    let mut left = VALUES_MAX;
    let mut out = Data::new();
    for (name, values) in data {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            continue;
        }
        let fits = |value: &String| value.len() <= VALUE_BYTES_MAX && !value.contains('\0');
        let values: BTreeSet<String> = values.into_iter().filter(fits).take(left).collect();
        left -= values.len();
        if !values.is_empty() {
            out.insert(name, values);
        }
    }
    out
}

/// A hash of data.
pub fn print(data: &Data) -> [u8; 16] {
    let mut bytes = Vec::new();
    for (name, values) in data {
        for text in std::iter::once(name).chain(values) {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend([0xff; 8]);
    }
    hash128(&bytes)
}

/// Has children of a part take what they are handed. Returns those for whom it is news:
/// a value was added, or taken away.
pub fn take(tx: &mut Tx<'_>, place: Place, handings: &[ChildData]) -> Result<Vec<DocHash>> {
    let mut news = BTreeSet::new();
    for handing in handings {
        let (child, parent) = ((&handing.child).into(), (&handing.parent.1).into());
        let key: [Value<'_>; 4] = [place.part.into(), place.job.into(), child, parent];
        let before: BTreeMap<(String, Vec<u8>), ()> = tx
            .query(
                "SELECT dataname, datavaluehash FROM carrydowns
                 WHERE part = $1 AND jobid = $2 AND childhash = $3 AND parenthash = $4
                 ORDER BY dataname, datavaluehash LIMIT 1000",
                &key,
                |row| Ok(((row.get(0)?, row.get(1)?), ())),
            )?
            .into_iter()
            .collect();
        let mut now: BTreeMap<(String, Vec<u8>), &str> = BTreeMap::new();
        for (name, values) in &handing.data {
            for value in values {
                now.insert((name.clone(), hash128(value.as_bytes()).to_vec()), value);
            }
        }
        for (name, hash) in before.keys().filter(|it| !now.contains_key(*it)) {
            news.insert(handing.child);
            let [part, job, child, parent] = key;
            let hash: &[u8] = hash;
            tx.execute(
                "DELETE FROM carrydowns WHERE part = $1 AND jobid = $2 AND childhash = $3
                   AND parenthash = $4 AND dataname = $5 AND datavaluehash = $6",
                &[part, job, child, parent, name.into(), hash.into()],
            )?;
        }
        now.retain(|it, _| !before.contains_key(it));
        let rows: Vec<Vec<Value<'_>>> = now
            .iter()
            .map(|((name, hash), value)| {
                let hash: &[u8] = hash;
                let mut row = key.to_vec();
                let rest: [Value<'_>; 4] =
                    [handing.parent.0.into(), name.into(), hash.into(), (*value).into()];
                row.extend(rest);
                row
            })
            .collect();
        let inserted = tx.insert_rows(
            "INSERT INTO carrydowns (part, jobid, childhash, parenthash, parentpart, dataname,
                                     datavaluehash, datavalue)",
            &rows,
            "ON CONFLICT (part, jobid, childhash, parenthash, dataname, datavaluehash) DO NOTHING",
        )?;
        if inserted > 0 {
            news.insert(handing.child);
        }
    }
    Ok(news.into_iter().collect())
}

/// What documents of a part were handed by all their parents; those who have nothing are
/// left out.
pub fn data(tx: &mut Tx<'_>, place: Place, keys: &[DocHash]) -> Result<HashMap<DocHash, Data>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Into::into).collect();
    let rows = tx.query_in(
        "SELECT childhash, dataname, datavalue FROM carrydowns
         WHERE part = $1 AND jobid = $2 AND childhash IN ($keys)
         ORDER BY childhash, dataname, datavaluehash LIMIT 100000",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| Ok((row.get::<DocHash>(0)?, row.get::<String>(1)?, row.get::<String>(2)?)),
    )?;
    let mut out: HashMap<DocHash, Data> = HashMap::new();
    for (child, name, value) in rows {
        out.entry(child).or_default().entry(name).or_default().insert(value);
    }
    Ok(out)
}

/// Whom parents have handed something, each with whether all of it has arrived: if not,
/// nobody knows who has what.
pub fn handed(
    tx: &mut Tx<'_>,
    place: Place,
    keys: &[DocHash],
) -> Result<HashMap<DocHash, (HandedChildren, bool)>> {
    let keys: Vec<Value<'_>> = keys.iter().map(Into::into).collect();
    let rows = tx.query_in(
        "SELECT dochash, children, arrived FROM handed
         WHERE part = $1 AND jobid = $2 AND dochash IN ($keys)",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| Ok((row.get::<DocHash>(0)?, row.get::<Vec<u8>>(1)?, row.get::<bool>(2)?)),
    )?;
    rows.into_iter()
        .map(|(parent, bytes, arrived)| match decode(&bytes) {
            Some(children) => Ok((parent, (children, arrived))),
            None => Err(Error::corrupt("what was handed by", parent.to_hex())),
        })
        .collect()
}

/// Notes whom parents have handed something.
pub fn save_handed(
    tx: &mut Tx<'_>,
    place: Place,
    handed: &[(DocHash, HandedChildren)],
    arrived: bool,
) -> Result<()> {
    let (none, some): (Vec<_>, Vec<_>) = handed.iter().partition(|it| it.1.is_empty());
    let encoded: Vec<(DocHash, Vec<u8>)> =
        some.into_iter().map(|(parent, children)| (*parent, encode(children))).collect();
    let rows: Vec<Vec<Value<'_>>> = encoded
        .iter()
        .map(|(parent, bytes)| {
            let bytes: &[u8] = bytes;
            vec![place.part.into(), place.job.into(), parent.into(), bytes.into(), arrived.into()]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO handed (part, jobid, dochash, children, arrived)",
        &rows,
        "ON CONFLICT (part, jobid, dochash)
         DO UPDATE SET children = excluded.children, arrived = excluded.arrived",
    )?;
    let none: Vec<Value<'_>> = none.iter().map(|it| (&it.0).into()).collect();
    tx.query_in(
        "DELETE FROM handed WHERE part = $1 AND jobid = $2 AND dochash IN ($keys)
         RETURNING dochash",
        &[place.part.into(), place.job.into()],
        &none,
        |_| Ok(()),
    )?;
    Ok(())
}

fn encode(children: &HandedChildren) -> Vec<u8> {
    let mut out = Vec::with_capacity(children.len() * CHILD_BYTES);
    for ((part, child), print) in children {
        out.extend(child.0);
        out.extend(u32::try_from(part.0).unwrap_or(u32::MAX).to_le_bytes());
        out.extend(print);
    }
    out
}

fn decode(bytes: &[u8]) -> Option<HandedChildren> {
    let chunks = bytes.chunks_exact(CHILD_BYTES);
    if !chunks.remainder().is_empty() {
        return None;
    }
    chunks
        .map(|chunk| {
            let (child, rest) = chunk.split_first_chunk::<16>()?;
            let (part, print) = rest.split_first_chunk::<4>()?;
            let part = Part(u32::from_le_bytes(*part).into());
            Some(((part, DocHash(*child)), print.try_into().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
