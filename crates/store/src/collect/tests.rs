//! A process that stops behind any step leaves nothing that a collection does not
//! put right.

use super::*;
use crate::objects::Location;
use crate::tables::settings;
use crate::testing::both_databases;
use crate::verify::verify;

const PART: Part = Part(4);
const ID: ObjectId = ObjectId(1);
const BYTES: &[u8] = b"some facts";
/// Long after everything in these tests.
const LATER_MS: i64 = 1_000_000;
const GRACE: Grace = Grace { staged_ms: 1_000, condemned_ms: 100 };

fn path() -> ObjectPath {
    ObjectPath::parse("chunks/4/1.facts").unwrap()
}

fn with_store(test: impl Fn(&Db, &Objects) -> Result<()>) {
    both_databases(|db| {
        let root = tempfile::tempdir().unwrap();
        db.write(|tx| settings::freeze(tx, 8))?;
        test(db, &Objects::open(&Location::Directory(root.path().to_owned()))?)
    });
}

/// No object without a row, no published row without its object.
fn assert_invariants(db: &Db, objects: &Objects, when: &str) -> Result<()> {
    assert_eq!(verify(db, objects, true)?.findings, [], "{when}");
    let known = db.read(|tx| {
        tx.query("SELECT path FROM objects LIMIT 100", &[], |row| row.get::<String>(0))
    })?;
    for listed in objects.list(&ObjectPath::parse("chunks")?, None, 100)? {
        let path = listed.path.to_string();
        assert!(known.contains(&path), "{when}: {path} has no row");
    }
    Ok(())
}

/// The life of an object, step by step; each is durable before the next begins.
type LifeStep = fn(&Db, &Objects, ObjectId) -> Result<()>;
const STEPS: [LifeStep; 6] = [
    |db, _, id| {
        let path = path_of(id).to_string();
        db.write(move |tx| rows::stage(tx, PART, id, ObjectKind::Facts, &path, 10))
    },
    |_, objects, id| objects.put(&path_of(id), BYTES.to_vec()),
    |db, _, id| {
        let hash = *blake3::hash(BYTES).as_bytes();
        db.write(move |tx| rows::publish(tx, PART, id, BYTES.len() as u64, &hash, 20))
    },
    |db, _, id| db.write(move |tx| rows::condemn(tx, PART, id, 30)).map(drop),
    |_, objects, id| objects.delete(&path_of(id)),
    |db, _, id| db.write(move |tx| rows::forget(tx, PART, &[id])).map(drop),
];

fn path_of(id: ObjectId) -> ObjectPath {
    ObjectPath::parse(&format!("chunks/4/{id}.facts")).unwrap()
}

#[test]
fn a_crash_behind_any_step_is_harmless() {
    with_store(|db, objects| {
        for steps in 0..=STEPS.len() {
            let id = ObjectId(i64::try_from(steps).unwrap());
            for step in &STEPS[..steps] {
                step(db, objects, id)?;
                assert_invariants(db, objects, &format!("behind {steps} steps"))?;
            }
            collect(db, objects, PART, GRACE, LATER_MS, 10)?;
            // What was abandoned is condemned first and goes when its grace is over.
            collect(db, objects, PART, GRACE, 2 * LATER_MS, 10)?;
            assert_invariants(db, objects, &format!("collected behind {steps} steps"))?;
            let published = steps == 3;
            let left = objects.head(&path_of(id))?.is_some();
            assert_eq!(left, published, "the object behind {steps} steps");
            let count = "SELECT COUNT(*) FROM objects WHERE id = $1";
            let rows: i64 =
                db.read(move |tx| tx.query_one(count, &[id.into()], |row| row.get(0)))?;
            assert_eq!(rows, i64::from(published), "the row behind {steps} steps");
        }
        Ok(())
    });
}

#[test]
fn nothing_is_collected_before_its_grace_is_over() {
    with_store(|db, objects| {
        let path = path();
        let new = NewObject { part: PART, id: ID, kind: ObjectKind::Facts, path: &path };
        let written = write(db, objects, new, BYTES.to_vec(), 10)?;
        assert_eq!(collect(db, objects, PART, GRACE, 1_010, 10)?.objects, 0);
        db.write(move |tx| written.publish(tx, 1_010))?;
        db.write(|tx| rows::condemn(tx, PART, ID, 2_000))?;
        assert_eq!(collect(db, objects, PART, GRACE, 2_100, 10)?.objects, 0);
        assert_eq!(objects.head(&path)?, Some(BYTES.len() as u64));
        assert_eq!(collect(db, objects, Part(5), GRACE, LATER_MS, 10)?.objects, 0, "another part");
        let collected = collect(db, objects, PART, GRACE, 2_101, 10)?;
        assert_eq!(collected, CollectedObjects { objects: 1, bytes: BYTES.len() as u64 });
        assert_eq!(objects.head(&path)?, None);
        Ok(())
    });
}

#[test]
fn a_collection_goes_on_where_its_batches_ended() {
    with_store(|db, objects| {
        let many = i64::from(BATCH) + 5;
        for id in 0..many {
            let path = format!("chunks/4/{id}.facts");
            db.write(move |tx| rows::stage(tx, PART, ObjectId(id), ObjectKind::Facts, &path, 0))?;
        }
        let first = collect(db, objects, PART, GRACE, 2_000, 1)?;
        assert_eq!(first.objects, 0, "just condemned");
        assert_eq!(collect(db, objects, PART, GRACE, 3_000, 1)?.objects, u64::from(BATCH));
        assert_eq!(collect(db, objects, PART, GRACE, 3_000, 10)?.objects, 5);
        Ok(())
    });
}
