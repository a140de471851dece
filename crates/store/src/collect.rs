//! Objects and their rows together: written in the safe order, and collected when
//! nothing names them. ([`crate::verify`] checks them against each other.)
//!
//! The order is always: row (staged), object, row (published) with what points to
//! it; and at the end: row (condemned), object gone, row gone. Invariant: whatever
//! step a crash falls behind, there is no object without a row and no published
//! row without its object, and a later [`collect`] removes what is left over.

use crate::ids::{ObjectId, Part};
use crate::objects::{ObjectPath, Objects};
use crate::tables::objects::{self as rows, ObjectKind};
use crate::{Db, Result, Tx};

#[cfg(test)]
mod tests;

/// Objects deleted between two commits.
pub const BATCH: u32 = 100;
/// How long a writer may take from staging to publishing, unless told otherwise.
pub const STAGED_GRACE_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long a reader may go on using a place it looked up, unless told otherwise. A
/// backup copies what its snapshot names, which may take hours.
pub const CONDEMNED_GRACE_MS: i64 = 24 * 60 * 60 * 1_000;

/// An object that was written and waits to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WrittenObject {
    pub key: (Part, ObjectId),
    pub bytes: u64,
    /// BLAKE3 of its bytes.
    pub hash: [u8; 32],
}

impl WrittenObject {
    /// What the row of an object with these bytes will say.
    pub fn of(part: Part, id: ObjectId, bytes: &[u8]) -> WrittenObject {
        let key = (part, id);
        WrittenObject { key, bytes: bytes.len() as u64, hash: *blake3::hash(bytes).as_bytes() }
    }

    /// Publishes it, in the transaction of the row that points to it.
    pub fn publish(&self, tx: &mut Tx<'_>, now_ms: i64) -> Result<()> {
        let (part, id) = self.key;
        rows::publish(tx, part, id, self.bytes, &self.hash, now_ms)
    }
}

/// An object that is to be written.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct NewObject<'a> {
    pub part: Part,
    pub id: ObjectId,
    pub kind: ObjectKind,
    pub path: &'a ObjectPath,
}

/// Announces an object and writes it: one small commit, then the object.
pub fn write(
    db: &Db,
    objects: &Objects,
    NewObject { part, id, kind, path }: NewObject<'_>,
    bytes: Vec<u8>,
    now_ms: i64,
) -> Result<WrittenObject> {
    let staged = path.to_string();
    db.write(move |tx| rows::stage(tx, part, id, kind, &staged, now_ms))?;
    let written = WrittenObject::of(part, id, &bytes);
    objects.put(path, bytes)?;
    Ok(written)
}

/// How long things are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// Staged objects: their writers may still be at work.
    pub staged_ms: i64,
    /// Condemned objects: somebody may still be reading.
    pub condemned_ms: i64,
}

impl Default for Grace {
    fn default() -> Grace {
        Grace { staged_ms: STAGED_GRACE_MS, condemned_ms: CONDEMNED_GRACE_MS }
    }
}

/// What a collection removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CollectedObjects {
    pub objects: u64,
    pub bytes: u64,
}

/// Removes what is left over in a part, at most `batches` times [`BATCH`] objects.
/// Safe to stop anywhere, and to run twice at a time.
pub fn collect(
    db: &Db,
    objects: &Objects,
    part: Part,
    grace: Grace,
    now_ms: i64,
    batches: u32,
) -> Result<CollectedObjects> {
    let abandoned_ms = now_ms - grace.staged_ms;
    db.write(move |tx| rows::condemn_abandoned(tx, part, abandoned_ms, now_ms))?;
    let before_ms = now_ms - grace.condemned_ms;
    let mut removed = CollectedObjects::default();
    for _ in 0..batches {
        let doomed = db.read(move |tx| rows::condemned(tx, part, before_ms, BATCH))?;
        if doomed.is_empty() {
            break;
        }
        for object in &doomed {
            let path = ObjectPath::parse(&object.path)?;
            removed.bytes += match object.bytes {
                Some(bytes) => u64::try_from(bytes).unwrap_or_default(),
                None => objects.head(&path)?.unwrap_or_default(),
            };
            objects.delete(&path)?;
        }
        let ids: Vec<_> = doomed.iter().map(|object| object.id).collect();
        removed.objects += db.write(move |tx| rows::forget(tx, part, &ids))?;
    }
    Ok(removed)
}
