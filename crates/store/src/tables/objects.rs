//! Objects as rows: staged before they exist, published with what names them,
//! condemned when nothing does, and gone when they are collected.
//!
//! Invariants: there is a row before there is an object, so every orphan is found
//! from here alone; an object is published in the transaction of the row that
//! points to it; a row goes only after its object has gone. So a crash between any
//! two steps leaves at worst a row that a later collection finishes.

use crate::checksums::coverage::OBJECTS;
use crate::ids::{ObjectId, Part};
use crate::value::Row;
use crate::{Error, Result, Tx, Value, checksums};

/// What an object is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ObjectKind {
    Facts,
    Bodies,
    Pack,
    Shard,
    Mirror,
}

impl ObjectKind {
    fn name(self) -> &'static str {
        match self {
            ObjectKind::Facts => "facts",
            ObjectKind::Bodies => "bodies",
            ObjectKind::Pack => "pack",
            ObjectKind::Shard => "shard",
            ObjectKind::Mirror => "mirror",
        }
    }
}

/// Announces an object, before it is written.
pub fn stage(
    tx: &mut Tx<'_>,
    part: Part,
    id: ObjectId,
    kind: ObjectKind,
    path: &str,
    now_ms: i64,
) -> Result<()> {
    let covered =
        [part.into(), id.into(), path.into(), kind.name().into(), Value::Null, Value::Null];
    let checksum = OBJECTS.places(OBJECTS.covered).of(&covered);
    tx.execute(
        "INSERT INTO objects (part, id, path, kind, state, staged_ms, checksum)
         VALUES ($1, $2, $3, $4, 'staged', $5, $6)",
        &[covered[0], covered[1], covered[2], covered[3], now_ms.into(), checksum.into()],
    )?;
    Ok(())
}

/// Whether an object was announced.
pub fn is_known(tx: &mut Tx<'_>, part: Part, id: ObjectId) -> Result<bool> {
    let found: Option<i64> = tx.query_opt(
        "SELECT 1 FROM objects WHERE part = $1 AND id = $2",
        &[part.into(), id.into()],
        |row| row.get(0),
    )?;
    Ok(found.is_some())
}

/// Publishes an object that has been written, in the transaction that points to it.
pub fn publish(
    tx: &mut Tx<'_>,
    part: Part,
    id: ObjectId,
    bytes: u64,
    hash: &[u8; 32],
    now_ms: i64,
) -> Result<()> {
    let bytes = i64::try_from(bytes).map_err(|_| Error::TooLarge {
        what: format!("object {id}"),
        bytes,
        max: i64::MAX as u64,
    })?;
    let key = [("part", part.into()), ("id", id.into())];
    let touched = checksums::change(tx, &OBJECTS, &key, |tx| {
        tx.execute(
            "UPDATE objects SET state = 'published', bytes = $3, hash = $4, published_ms = $5
             WHERE part = $1 AND id = $2 AND state = 'staged'",
            &[part.into(), id.into(), bytes.into(), hash.into(), now_ms.into()],
        )
    })?;
    if touched == 1 {
        return Ok(());
    }
    // A collection took it for abandoned; what was written may be gone already.
    Err(Error::Refused(format!("object {id} of part {part} is no longer staged; write it again")))
}

/// Takes back the announcement of an object that was never written.
pub fn unstage(tx: &mut Tx<'_>, part: Part, id: ObjectId) -> Result<()> {
    tx.execute(
        "DELETE FROM objects WHERE part = $1 AND id = $2 AND state = 'staged'",
        &[part.into(), id.into()],
    )?;
    Ok(())
}

/// Says that nothing points to an object any more. False if it was not published.
pub fn condemn(tx: &mut Tx<'_>, part: Part, id: ObjectId, now_ms: i64) -> Result<bool> {
    let touched = tx.execute(
        "UPDATE objects SET state = 'condemned', condemned_ms = $3
         WHERE part = $1 AND id = $2 AND state = 'published'",
        &[part.into(), id.into(), now_ms.into()],
    )?;
    Ok(touched == 1)
}

/// Condemns staged objects that nobody has published since `before_ms`: their
/// writers are dead, or will be refused by [`publish`].
pub fn condemn_abandoned(tx: &mut Tx<'_>, part: Part, before_ms: i64, now_ms: i64) -> Result<u64> {
    tx.execute(
        "UPDATE objects SET state = 'condemned', condemned_ms = $3
         WHERE part = $1 AND state = 'staged' AND staged_ms < $2",
        &[part.into(), before_ms.into(), now_ms.into()],
    )
}

/// Condemns staged objects of a kind: whoever staged them is dead, as far as the only one who may
/// publish such objects of the part knows. Returns them.
pub fn condemn_staged(
    tx: &mut Tx<'_>,
    part: Part,
    kind: ObjectKind,
    now_ms: i64,
    limit: u32,
) -> Result<Vec<CondemnedObject>> {
    tx.query(
        "UPDATE objects SET state = 'condemned', condemned_ms = $3
         WHERE part = $1 AND id IN (SELECT id FROM objects
                                    WHERE part = $1 AND state = 'staged' AND kind = $2
                                    ORDER BY id LIMIT $4)
         RETURNING id, path, bytes",
        &[part.into(), kind.name().into(), now_ms.into(), limit.into()],
        |row| Ok(CondemnedObject { id: row.get(0)?, path: row.get(1)?, bytes: row.get(2)? }),
    )
}

/// An object whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CondemnedObject {
    pub id: ObjectId,
    pub path: String,
    /// `None` when it was never published, so that nobody knows.
    pub bytes: Option<i64>,
}

/// Objects of a part that were condemned before a time, oldest first.
pub fn condemned(
    tx: &mut Tx<'_>,
    part: Part,
    before_ms: i64,
    limit: u32,
) -> Result<Vec<CondemnedObject>> {
    tx.query(
        "SELECT id, path, bytes FROM objects
         WHERE part = $1 AND state = 'condemned' AND condemned_ms < $2
         ORDER BY condemned_ms, id LIMIT $3",
        &[part.into(), before_ms.into(), limit.into()],
        |row| Ok(CondemnedObject { id: row.get(0)?, path: row.get(1)?, bytes: row.get(2)? }),
    )
}

/// Forgets condemned objects, after they have been deleted from the store.
pub fn forget(tx: &mut Tx<'_>, part: Part, ids: &[ObjectId]) -> Result<u64> {
    let keys: Vec<_> = ids.iter().map(|id| (*id).into()).collect();
    let gone = tx.query_in(
        "DELETE FROM objects WHERE part = $1 AND state = 'condemned' AND id IN ($keys)
         RETURNING id",
        &[part.into()],
        &keys,
        |_| Ok(()),
    )?;
    Ok(gone.len() as u64)
}

/// Forgets all objects of a kind, in a copy of the rows that is without them.
pub(crate) fn forget_kind(tx: &mut Tx<'_>, kind: ObjectKind) -> Result<()> {
    tx.execute("DELETE FROM objects WHERE kind = $1", &[kind.name().into()])?;
    Ok(())
}

/// Which of these paths have a row, in whatever state.
pub fn known_paths(tx: &mut Tx<'_>, part: Part, paths: &[String]) -> Result<Vec<String>> {
    let keys: Vec<_> = paths.iter().map(|path| path.as_str().into()).collect();
    tx.query_in(
        "SELECT path FROM objects WHERE part = $1 AND path IN ($keys)",
        &[part.into()],
        &keys,
        |row| row.get(0),
    )
}

/// An object that rows point to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PublishedObject {
    pub part: Part,
    pub id: ObjectId,
    pub path: String,
    pub bytes: i64,
    pub hash: Option<Vec<u8>>,
}

impl PublishedObject {
    fn from_row(row: &Row<'_>) -> Result<PublishedObject> {
        Ok(PublishedObject {
            part: row.get(0)?,
            id: row.get(1)?,
            path: row.get(2)?,
            bytes: row.get(3)?,
            hash: row.get(4)?,
        })
    }
}

/// Published objects of all parts, after one.
pub fn published_after(
    tx: &mut Tx<'_>,
    part: Part,
    id: ObjectId,
    limit: u32,
) -> Result<Vec<PublishedObject>> {
    tx.query(
        "SELECT part, id, path, bytes, hash FROM objects
         WHERE state = 'published' AND (part, id) > ($1, $2)
         ORDER BY part, id LIMIT $3",
        &[part.into(), id.into(), limit.into()],
        PublishedObject::from_row,
    )
}

/// Whether an object is published now: one that was condemned meanwhile may be gone.
pub fn is_published(tx: &mut Tx<'_>, part: Part, id: ObjectId) -> Result<bool> {
    let found: Option<i64> = tx.query_opt(
        "SELECT id FROM objects WHERE part = $1 AND id = $2 AND state = 'published'",
        &[part.into(), id.into()],
        |row| row.get(0),
    )?;
    Ok(found.is_some())
}

/// One object that was published. A condemned one is found too: whoever looked up
/// its place before it was condemned may read it until its grace is over.
pub fn find(tx: &mut Tx<'_>, part: Part, id: ObjectId) -> Result<Option<PublishedObject>> {
    tx.query_opt(
        "SELECT part, id, path, bytes, hash FROM objects
         WHERE part = $1 AND id = $2 AND published_ms IS NOT NULL",
        &[part.into(), id.into()],
        PublishedObject::from_row,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    const PART: Part = Part(3);

    #[test]
    fn an_object_goes_from_staged_to_published_to_condemned_to_nothing() {
        both_databases(|db| {
            let id = ObjectId(7);
            db.write(move |tx| stage(tx, PART, id, ObjectKind::Facts, "chunks/3/7.facts", 10))?;
            assert_eq!(db.read(move |tx| find(tx, PART, id))?, None);
            assert!(!db.write(move |tx| condemn(tx, PART, id, 11))?, "it is not published yet");
            db.write(move |tx| publish(tx, PART, id, 5, &[9; 32], 12))?;
            assert!(
                db.write(move |tx| publish(tx, PART, id, 5, &[9; 32], 12)).is_err(),
                "only once"
            );
            assert!(db.read(move |tx| is_published(tx, PART, id))?);
            let listed = db.read(|tx| published_after(tx, Part(0), ObjectId(0), 10))?;
            assert_eq!((listed.len(), listed[0].bytes), (1, 5));
            assert!(db.write(move |tx| condemn(tx, PART, id, 20))?);
            assert!(!db.read(move |tx| is_published(tx, PART, id))?);
            assert_eq!(db.read(|tx| condemned(tx, PART, 20, 10))?, []);
            let doomed = db.read(|tx| condemned(tx, PART, 21, 10))?;
            let path = "chunks/3/7.facts".to_owned();
            assert_eq!(doomed, [CondemnedObject { id, path, bytes: Some(5) }]);
            let found = db.read(move |tx| find(tx, PART, id))?;
            assert!(found.is_some(), "a reader that is late still finds it");
            let asked = ["chunks/3/7.facts", "chunks/3/8.facts"].map(str::to_owned);
            let known = db.read(move |tx| known_paths(tx, PART, &asked))?;
            assert_eq!(known, ["chunks/3/7.facts"]);
            assert_eq!(db.write(move |tx| forget(tx, PART, &[id]))?, 1);
            assert_eq!(db.read(|tx| condemned(tx, PART, 99, 10))?, []);
            Ok(())
        });
    }

    #[test]
    fn a_writer_that_was_taken_for_dead_is_refused() {
        both_databases(|db| {
            let id = ObjectId(8);
            db.write(move |tx| stage(tx, PART, id, ObjectKind::Bodies, "chunks/3/8.warc.zst", 10))?;
            assert_eq!(db.write(|tx| condemn_abandoned(tx, PART, 10, 50))?, 0);
            assert_eq!(db.write(|tx| condemn_abandoned(tx, PART, 11, 50))?, 1);
            let refused = db.write(move |tx| publish(tx, PART, id, 1, &[0; 32], 60));
            assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
            for (id, kind) in [(9, ObjectKind::Shard), (10, ObjectKind::Bodies)] {
                let path = format!("shards/3/{id}");
                db.write(move |tx| stage(tx, PART, ObjectId(id), kind, &path, 10))?;
            }
            let doomed = db.write(|tx| condemn_staged(tx, PART, ObjectKind::Shard, 50, 9))?;
            assert_eq!(doomed.iter().map(|it| it.id).collect::<Vec<_>>(), [ObjectId(9)]);
            assert_eq!(db.write(|tx| condemn_staged(tx, PART, ObjectKind::Shard, 50, 9))?, []);
            Ok(())
        });
    }
}
