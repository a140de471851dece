//! Packing and retention, with committed chunks on both databases.

use super::*;
use crate::chunkfile::facts::{FactsStream, encode};
use crate::chunkfile::{Change, DocumentRecord};
use crate::collect::Grace;
use crate::ids::{ChunkId, CommitNumber, ConnectionId, DocumentId, JobId, NodeId, Run};
use crate::objects::Location;
use crate::tables::chunk_storage::SettledChunks;
use crate::tables::chunks::{self, ChunkSummary};
use crate::tables::documents::{self, Document};
use crate::tables::leases::{self, Lease, LeaseRequest};
use crate::tables::settings;
use crate::testing::both_databases;
use crate::verify::verify;
use page::ids::DocHash;

const PART: Part = Part(2);

fn with_store(test: impl Fn(&Db, &Objects, &Lease) -> Result<()>) {
    both_databases(|db| {
        let root = tempfile::tempdir().unwrap();
        db.write(|tx| settings::freeze(tx, 8))?;
        let objects = Objects::open(&Location::Directory(root.path().to_owned()))?;
        let asking = LeaseRequest {
            node: NodeId(1),
            node_name: "one".into(),
            now_ms: 0,
            lease_ms: 1_000,
            skew_ms: 0,
        };
        let lease = db.write(move |tx| leases::take(tx, PART, "crawl", &asking))?;
        test(db, &objects, &lease.expect("a free lease is granted"))
    });
}

/// Commits a chunk.
fn commit(db: &Db, lease: &Lease, id: i64, summary: ChunkSummary) -> Result<()> {
    let lease = lease.clone();
    db.write(move |tx| {
        let chunk = ChunkId(id);
        chunks::open(tx, &lease, chunk, JobId(1), Run(1), 1)?;
        let seq = leases::number_commit(tx, &lease)?;
        chunks::commit(tx, &lease, chunk, seq, &summary, 2)
    })
}

fn facts_of(id: i64) -> Vec<u8> {
    let record = DocumentRecord::new(format!("https://example.com/{id}"), 1, Change::Keep);
    encode(ChunkKey { part: 2, id }, &[record]).unwrap()
}

fn commit_inline(db: &Db, lease: &Lease, ids: impl IntoIterator<Item = i64>) -> Result<()> {
    for id in ids {
        commit(
            db,
            lease,
            id,
            ChunkSummary { facts: Some(facts_of(id)), ..ChunkSummary::default() },
        )?;
    }
    Ok(())
}

/// Every committed chunk's facts, read from wherever they are.
fn read_all(db: &Db, objects: &Objects) -> Result<Vec<i64>> {
    let committed = db.read(|tx| chunks::after(tx, PART, CommitNumber::NONE, 1_000))?;
    let mut read = Vec::new();
    for chunk in committed {
        let key = ChunkKey::new(PART, chunk.id)?;
        let facts = read_facts(db, objects, PART, chunk.facts)?.expect("each has facts");
        let records: Vec<_> = FactsStream::open(key, facts.as_slice())?.collect::<Result<_>>()?;
        assert_eq!(records[0].docid, format!("https://example.com/{}", chunk.id));
        read.push(chunk.id.0);
    }
    Ok(read)
}

#[test]
fn packed_facts_are_read_like_inline_ones() {
    with_store(|db, objects, lease| {
        let ids = IdMaker::new(NodeId(1))?;
        commit_inline(db, lease, 1..=5)?;
        assert_eq!(pack_facts(db, objects, PART, &ids, 10, 6)?, 0, "too few");
        assert_eq!(pack_facts(db, objects, PART, &ids, 10, 5)?, 5);
        commit_inline(db, lease, 6..=7)?;
        assert_eq!(read_all(db, objects)?, [1, 2, 3, 4, 5, 6, 7]);
        let left = db.read(|tx| chunk_storage::unpacked(tx, PART, 10))?;
        assert_eq!(left.iter().map(|chunk| chunk.id.0).collect::<Vec<_>>(), [6, 7]);
        assert_eq!(verify(db, objects, true)?.findings, []);
        assert_eq!(pack_facts(db, objects, Part(3), &ids, 10, 1)?, 0, "another part");
        Ok(())
    });
}

#[test]
fn a_slower_packer_changes_nothing_and_its_object_is_collected() {
    with_store(|db, objects, lease| {
        commit_inline(db, lease, 1..=2)?;
        // The slower one has read and written, then the faster one commits.
        let path = ObjectPath::pack(2, 99);
        let new = NewObject { part: PART, id: ObjectId(99), kind: ObjectKind::Pack, path: &path };
        let slow = collect::write(db, objects, new, facts_of(1), 10)?;
        let ids = IdMaker::new(NodeId(1))?;
        assert_eq!(pack_facts(db, objects, PART, &ids, 11, 1)?, 2);
        let len = to_i64(facts_of(1).len());
        let late = db.write(move |tx| {
            slow.publish(tx, 12)?;
            let piece = PackedChunk { id: ChunkId(1), offset: 0, len };
            chunk_storage::set_packed(tx, PART, slow.key.1, &[piece])
        });
        assert!(matches!(late, Err(Error::Refused(_))), "{late:?}");
        let grace = Grace { staged_ms: 0, condemned_ms: 0 };
        collect::collect(db, objects, PART, grace, 1_000, 10)?;
        collect::collect(db, objects, PART, grace, 1_001, 10)?;
        assert_eq!(objects.head(&path)?, None);
        assert_eq!(read_all(db, objects)?, [1, 2]);
        Ok(())
    });
}

#[test]
fn bodies_go_when_no_document_points_to_them_and_every_output_has_passed() {
    with_store(|db, objects, lease| {
        for id in 1..=4 {
            let path = ObjectPath::bodies(ChunkKey { part: 2, id });
            let new =
                NewObject { part: PART, id: ObjectId(id), kind: ObjectKind::Bodies, path: &path };
            let written = collect::write(db, objects, new, vec![7; 10], 10)?;
            db.write(move |tx| written.publish(tx, 10))?;
            let bodies_object = Some(ObjectId(id));
            commit(db, lease, id, ChunkSummary { bodies_object, ..ChunkSummary::default() })?;
        }
        // Chunk 2 still holds the bytes of a document; chunk 4 was not read by all.
        let url = "https://example.com/";
        let mut document = Document::new(DocumentId(1), DocHash::of(url), url.into(), 5);
        document.body_chunk = Some(ChunkId(2));
        db.write(move |tx| {
            documents::save(tx, PART, ConnectionId(1), std::slice::from_ref(&document))
        })?;
        let settled = SettledChunks { seq: CommitNumber(3), before_ms: 0 };
        let walk = |after| {
            let lease = lease.clone();
            db.write(move |tx| {
                leases::fence(tx, &lease)?;
                chunk_storage::condemn_bodies(tx, PART, after, settled, 2, 20)
            })
        };
        let one = chunk_storage::StorageProgress { chunks: 1, condemned: 1, ..Default::default() };
        assert_eq!(
            walk(CommitNumber::NONE)?,
            chunk_storage::StorageProgress { next: Some(CommitNumber(2)), ..one }
        );
        assert_eq!(walk(CommitNumber(2))?, one);
        assert_eq!(walk(CommitNumber::NONE)?.condemned, 0, "once");
        let committed = db.read(|tx| chunks::after(tx, PART, CommitNumber::NONE, 10))?;
        let kept: Vec<_> = committed.iter().map(|chunk| chunk.bodies_object).collect();
        assert_eq!(kept, [None, Some(ObjectId(2)), None, Some(ObjectId(4))]);
        let grace = Grace { staged_ms: 0, condemned_ms: 0 };
        assert_eq!(collect::collect(db, objects, PART, grace, 100, 10)?.objects, 2);
        assert_eq!(verify(db, objects, true)?.findings, []);
        Ok(())
    });
}
