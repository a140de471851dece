//! Shards of the search index: what is published of each, and the files it consists of.
//!
//! Invariants: a version, its files and its cursors appear in one transaction, under the
//! lease of the shard's only writer; a file that was dropped stays an object until its
//! grace is over, so that whoever reads an older version is not disturbed.

use crate::ids::{CommitNumber, NodeId, ObjectId, Part};
use crate::tables::leases::{self, Lease};
use crate::tables::settings::PARTS_MAX;
use crate::tables::{cursors, objects};
use crate::{Error, Result, Tx};
use serde::{Deserialize, Serialize};

/// A file of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct File {
    /// Its name in the index.
    pub name: String,
    pub object: ObjectId,
    pub path: String,
    pub bytes: i64,
    /// BLAKE3 of its bytes, as the row of its object has it.
    pub hash: Option<[u8; 32]>,
}

/// A published version of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Shard {
    pub part: Part,
    pub version: i64,
    pub node: NodeId,
    pub documents: i64,
    pub bytes: i64,
    pub published_ms: i64,
    pub description: IndexDescription,
}

/// What an index says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDescription {
    /// How it was built: one that was built otherwise is of no use.
    pub make: String,
    /// What it says of its files.
    pub meta: String,
}

/// What is to be published.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct New {
    /// What the index says of itself.
    pub description: IndexDescription,
    pub documents: i64,
    /// The last commit that is in, of parts that it covers.
    pub reached: Vec<(Part, CommitNumber)>,
    /// The names of all its files.
    pub names: Vec<String>,
    /// Those that are new, staged and written.
    pub added: Vec<File>,
}

/// What stands in place of what an index says, in rows of parts that are covered by the
/// shard of another part.
const COVERED: &str = "";

/// The newest version of a shard.
pub fn current(tx: &mut Tx<'_>, part: Part) -> Result<Option<Shard>> {
    let found = tx.query_opt(
        "SELECT version, node, documents, bytes, published_ms, files FROM shards
         WHERE part = $1 AND state = 'published' AND files <> $2 ORDER BY version DESC LIMIT 1",
        &[part.into(), COVERED.into()],
        |row| {
            let (version, node, documents) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (bytes, published_ms, files) = (row.get(3)?, row.get(4)?, row.get::<String>(5)?);
            Ok((version, node, documents, bytes, published_ms, files))
        },
    )?;
    let Some((version, node, documents, bytes, published_ms, files)) = found else {
        return Ok(None);
    };
    let description = serde_json::from_str(&files)
        .map_err(|error| Error::corrupt(format!("the shard of part {part}"), error.to_string()))?;
    Ok(Some(Shard { part, version, node, documents, bytes, published_ms, description }))
}

/// Which version each shard has.
pub fn versions(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<(Part, i64)>> {
    tx.query(
        "SELECT part, MAX(version) FROM shards WHERE state = 'published' AND files <> $1
         GROUP BY part ORDER BY part LIMIT $2",
        &[COVERED.into(), limit.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The files of the newest version.
pub fn files(tx: &mut Tx<'_>, part: Part) -> Result<Vec<File>> {
    tx.query(
        "SELECT f.name, f.objectid, f.path, f.bytes, o.hash FROM shard_files f
         LEFT JOIN objects o ON o.part = f.part AND o.id = f.objectid
         WHERE f.part = $1 AND f.dropped_ms IS NULL ORDER BY f.name",
        &[part.into()],
        file,
    )
}

fn file(row: &crate::value::Row<'_>) -> Result<File> {
    let hash: Option<Vec<u8>> = row.get(4)?;
    let hash = hash.and_then(|it| it.try_into().ok());
    let (name, object, path, bytes) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    Ok(File { name, object, path, bytes, hash })
}

/// How far what is published of a shard is, in each part that it covers.
pub fn reached(tx: &mut Tx<'_>, part: Part) -> Result<Vec<(Part, CommitNumber)>> {
    tx.query(
        "SELECT part, MAX(seq) FROM shards
         WHERE state = 'published' AND (part = $1 OR files = $2)
         GROUP BY part ORDER BY part LIMIT $3",
        &[part.into(), COVERED.into(), PARTS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Says that a published version is further without being another one: commits behind it change
/// none of its documents. False if a part is not covered by what is published yet.
pub fn move_on(
    tx: &mut Tx<'_>,
    leases: &[Lease],
    reached: &[(Part, CommitNumber)],
) -> Result<bool> {
    for lease in leases {
        leases::fence(tx, lease)?;
    }
    let mut is_covered = true;
    for (part, seq) in reached {
        let moved = tx.execute(
            "UPDATE shards SET seq = $2 WHERE part = $1 AND state = 'published'",
            &[(*part).into(), (*seq).into()],
        )?;
        is_covered &= moved > 0;
    }
    Ok(is_covered)
}

/// Publishes a version under the leases of the parts it covers. Returns its number.
pub fn publish(
    tx: &mut Tx<'_>,
    part: Part,
    leases: &[Lease],
    new: &New,
    now_ms: i64,
) -> Result<i64> {
    let Some(lease) = leases.first() else {
        return Err(Error::Refused(format!("nobody has the lease of the shard of part {part}")));
    };
    for lease in leases {
        leases::fence(tx, lease)?;
    }
    let before = files(tx, part)?;
    for gone in before.iter().filter(|it| !new.names.contains(&it.name)) {
        drop_file(tx, part, gone.object, now_ms)?;
    }
    for it in &new.added {
        add_file(tx, part, it, now_ms)?;
    }
    let now: Vec<File> = files(tx, part)?;
    if let Some(missing) = new.names.iter().find(|name| !now.iter().any(|it| it.name == **name)) {
        return Err(Error::Refused(format!("the shard of part {part} has no file {missing}")));
    }
    let bytes: i64 = now.iter().map(|it| it.bytes).sum();
    let version: i64 = tx.query_one(
        "SELECT COALESCE(MAX(version), 0) + 1 FROM shards WHERE part = $1",
        &[part.into()],
        |row| row.get(0),
    )?;
    let description = serde_json::to_string(&new.description)
        .map_err(|error| Error::corrupt("what an index says of itself", error.to_string()))?;
    let seq = |part: Part| {
        new.reached.iter().find(|it| it.0 == part).map_or(CommitNumber::NONE, |it| it.1)
    };
    let shown = VersionRow {
        part,
        version,
        seq: seq(part),
        description: &description,
        documents: new.documents,
        bytes,
        node: lease.node,
    };
    show(tx, &shown, now_ms)?;
    for (covered, seq) in new.reached.iter().filter(|it| it.0 != part) {
        let (description, documents, bytes) = (COVERED, 0, 0);
        let row = VersionRow { part: *covered, seq: *seq, description, documents, bytes, ..shown };
        show(tx, &row, now_ms)?;
    }
    Ok(version)
}

/// The row of a version.
struct VersionRow<'a> {
    part: Part,
    version: i64,
    /// The last commit of the part that is in.
    seq: CommitNumber,
    description: &'a str,
    documents: i64,
    bytes: i64,
    node: NodeId,
}

/// Writes the row of a version, and takes those of older ones away.
fn show(tx: &mut Tx<'_>, row: &VersionRow<'_>, now_ms: i64) -> Result<()> {
    tx.execute(
        "DELETE FROM shards WHERE part = $1 AND version <= $2",
        &[row.part.into(), row.version.into()],
    )?;
    tx.execute(
        "INSERT INTO shards (part, version, state, seq, files, documents, bytes, node, published_ms)
         VALUES ($1, $2, 'published', $3, $4, $5, $6, $7, $8)",
        &[
            row.part.into(),
            row.version.into(),
            row.seq.into(),
            row.description.into(),
            row.documents.into(),
            row.bytes.into(),
            row.node.into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}

fn add_file(tx: &mut Tx<'_>, part: Part, it: &File, now_ms: i64) -> Result<()> {
    let no_hash = || Error::Refused(format!("nobody has read the file {}", it.path));
    let hash = it.hash.as_ref().ok_or_else(no_hash)?;
    let bytes = u64::try_from(it.bytes).unwrap_or(0);
    objects::publish(tx, part, it.object, bytes, hash, now_ms)?;
    tx.execute(
        "INSERT INTO shard_files (part, objectid, name, path, bytes)
         VALUES ($1, $2, $3, $4, $5)",
        &[
            part.into(),
            it.object.into(),
            it.name.as_str().into(),
            it.path.as_str().into(),
            it.bytes.into(),
        ],
    )?;
    Ok(())
}

fn drop_file(tx: &mut Tx<'_>, part: Part, object: ObjectId, now_ms: i64) -> Result<()> {
    tx.execute(
        "UPDATE shard_files SET dropped_ms = $3 WHERE part = $1 AND objectid = $2",
        &[part.into(), object.into(), now_ms.into()],
    )?;
    objects::condemn(tx, part, object, now_ms)?;
    Ok(())
}

/// The tables that are about what is published here, and about nothing elsewhere.
pub(crate) const TABLES: [&str; 2] = ["shards", "shard_files"];

/// Forgets everything that is published, in a copy of the rows that has no such objects:
/// the index is made anew there from what is committed.
pub(crate) fn forget_all(tx: &mut Tx<'_>) -> Result<()> {
    for table in TABLES {
        tx.execute(&format!("DELETE FROM {table}"), &[])?;
    }
    objects::forget_kind(tx, objects::ObjectKind::Shard)?;
    cursors::forget(tx, cursors::SEARCH)
}

/// Files that were dropped before a time, oldest first.
pub fn dropped(tx: &mut Tx<'_>, part: Part, before_ms: i64, limit: u32) -> Result<Vec<File>> {
    tx.query(
        "SELECT f.name, f.objectid, f.path, f.bytes, o.hash FROM shard_files f
         LEFT JOIN objects o ON o.part = f.part AND o.id = f.objectid
         WHERE f.part = $1 AND f.dropped_ms < $2 ORDER BY f.dropped_ms LIMIT $3",
        &[part.into(), before_ms.into(), limit.into()],
        file,
    )
}

/// Forgets files that were dropped, after their objects are gone.
pub fn forget(tx: &mut Tx<'_>, part: Part, ids: &[ObjectId]) -> Result<()> {
    let keys: Vec<_> = ids.iter().map(|id| (*id).into()).collect();
    tx.query_in(
        "DELETE FROM shard_files WHERE part = $1 AND dropped_ms IS NOT NULL AND objectid IN ($keys)
         RETURNING objectid",
        &[part.into()],
        &keys,
        |_| Ok(()),
    )?;
    objects::forget(tx, part, ids)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::leases::LeaseRequest;
    use crate::tables::objects::ObjectKind;
    use crate::testing::both_databases;

    const PART: Part = Part(2);

    fn lease(tx: &mut Tx<'_>, node: i64) -> Result<Lease> {
        let (node, node_name) = (NodeId(node), format!("n{node}"));
        let asking = LeaseRequest { node, node_name, now_ms: 0, lease_ms: -1, skew_ms: 0 };
        Ok(leases::take(tx, PART, "search", &asking)?.expect("it is over at once"))
    }

    fn added(tx: &mut Tx<'_>, name: &str, id: i64) -> Result<File> {
        let path = format!("shards/2/1-{name}");
        objects::stage(tx, PART, ObjectId(id), ObjectKind::Shard, &path, 0)?;
        let (name, object, hash) = (name.into(), ObjectId(id), Some([7; 32]));
        Ok(File { name, object, path, bytes: id, hash })
    }

    fn new(names: &[&str], added: Vec<File>) -> New {
        let names = names.iter().map(|it| (*it).to_owned()).collect();
        let description = IndexDescription { make: "1".into(), meta: "{}".into() };
        New {
            description,
            documents: 7,
            reached: vec![(PART, CommitNumber(9)), (Part(5), CommitNumber(4))],
            names,
            added,
        }
    }

    #[test]
    fn a_version_appears_with_its_files_and_drops_what_it_does_not_have() {
        both_databases(|db| {
            let first = db.write(|tx| {
                let lease = lease(tx, 1)?;
                let files = vec![added(tx, "a.idx", 5)?, added(tx, "b.idx", 6)?];
                publish(tx, PART, &[lease], &new(&["a.idx", "b.idx"], files), 10)
            })?;
            let second = db.write(|tx| {
                let lease = lease(tx, 2)?;
                let files = vec![added(tx, "c.idx", 8)?];
                publish(tx, PART, &[lease], &new(&["b.idx", "c.idx"], files), 20)
            })?;
            assert_eq!((first, second), (1, 2));
            let shard = db.read(|tx| current(tx, PART))?.expect("it was published");
            assert_eq!((shard.version, shard.bytes, shard.documents), (2, 14, 7));
            let found = db.read(|tx| files(tx, PART))?;
            let names: Vec<&str> = found.iter().map(|it| &*it.name).collect();
            assert_eq!(names, ["b.idx", "c.idx"]);
            assert!(found.iter().all(|it| it.hash == Some([7; 32])), "{found:?}");
            assert_eq!(db.read(|tx| dropped(tx, PART, 20, 9))?, []);
            let gone = db.read(|tx| dropped(tx, PART, 21, 9))?;
            assert_eq!(gone.iter().map(|it| it.object).collect::<Vec<_>>(), [ObjectId(5)]);
            db.write(|tx| forget(tx, PART, &[ObjectId(5), ObjectId(6)]))?;
            assert_eq!(db.read(|tx| files(tx, PART))?.len(), 2, "what is in use stays");
            assert_eq!(db.read(|tx| versions(tx, 9))?, [(PART, 2)]);
            let rows = "SELECT part, version, seq FROM shards ORDER BY part";
            let rows: Vec<(i64, i64, i64)> = db.read(move |tx| {
                tx.query(rows, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            })?;
            assert_eq!(rows, [(2, 2, 9), (5, 2, 4)], "parts that it covers have rows too");
            let third = db.write(|tx| {
                let lease = lease(tx, 3)?;
                let files = vec![added(tx, "d.idx", 9)?];
                publish(tx, PART, &[lease], &new(&["d.idx"], files), 40)
            })?;
            assert_eq!(third, 3, "no number is given twice");
            Ok(())
        });
    }

    #[test]
    fn a_version_can_be_further_without_being_another_one() {
        both_databases(|db| {
            let version = db.write(|tx| {
                let lease = lease(tx, 1)?;
                let files = vec![added(tx, "a.idx", 5)?];
                publish(tx, PART, &[lease], &new(&["a.idx"], files), 10)
            })?;
            let moved = db.write(|tx| {
                let lease = [lease(tx, 2)?];
                Ok([(PART, 12), (Part(3), 1)]
                    .map(|(part, seq)| move_on(tx, &lease, &[(part, CommitNumber(seq))])))
            })?;
            assert!(matches!(moved, [Ok(true), Ok(false)]), "{moved:?}");
            assert_eq!(db.read(|tx| versions(tx, 9))?, [(PART, version)]);
            let expected = [(PART, CommitNumber(12)), (Part(5), CommitNumber(4))];
            assert_eq!(db.read(|tx| reached(tx, PART))?, expected);
            Ok(())
        });
    }

    #[test]
    fn only_the_newest_writer_publishes_and_nothing_without_its_files() {
        both_databases(|db| {
            let old = db.write(|tx| lease(tx, 1))?;
            let newest = db.write(|tx| lease(tx, 2))?;
            let refused = db.write(move |tx| {
                publish(tx, PART, std::slice::from_ref(&old), &new(&[], vec![]), 1)
            });
            assert!(matches!(refused, Err(Error::LeaseLost { .. })), "{refused:?}");
            let refused = db.write(move |tx| {
                publish(tx, PART, std::slice::from_ref(&newest), &new(&["x"], vec![]), 1)
            });
            assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
            assert_eq!(db.read(|tx| current(tx, PART))?, None);
            Ok(())
        });
    }
}
