//! What goes, what stays, and a process that dies behind any step.

mod rewriting;

use super::*;
use crate::chunkfile::facts::{FactsStream, encode};
use crate::chunkfile::{Change, ChunkKey, DocumentRecord};
use crate::collect::NewObject;
use crate::ids::{ChunkId, ConnectionId, DocumentId, JobId, NodeId, ObjectId, Run};
use crate::objects::{Location, ObjectPath};
use crate::pack::read_facts;
use crate::tables::chunk_storage::PackedChunk;
use crate::tables::chunks::{ChunkSummary, Facts};
use crate::tables::documents::{self, Document};
use crate::tables::objects::{self as rows, ObjectKind};
use crate::tables::{chunks, cursors, job_states};
use crate::testing::both_databases;
use crate::verify::verify;
use page::ids::DocHash;

const PART: Part = Part(1);
const NODE: &str = "one";
/// When everything in these tests was committed, and when it is collected.
const THEN_MS: i64 = 1_000;
const NOW_MS: i64 = 1_000_000;
const KEEP: Keep = Keep {
    settled_ms: 10_000,
    abandoned_ms: 10_000,
    grace: Grace { staged_ms: 10_000, condemned_ms: 100 },
    pack_chunks_min: 2,
    rewrite_bytes_max: u64::MAX,
    orphans: OnOrphans::Report,
};

const SETTLED: SettledChunks = SettledChunks { seq: CommitNumber(3), before_ms: THEN_MS };

/// A part of a database and a store.
struct Store<'a> {
    db: &'a Db,
    objects: &'a Objects,
    ids: IdMaker,
    part: Part,
    lease: Lease,
}

fn with_store(test: impl Fn(&Store<'_>) -> Result<()>) {
    both_databases(|db| {
        let root = tempfile::tempdir().unwrap();
        let objects = Objects::open(&Location::Directory(root.path().to_owned()))?;
        db.write(|tx| settings::freeze(tx, 2))?;
        test(&Store::new(db, &objects, PART)?)
    });
}

fn asking(node_name: &str, now_ms: i64) -> LeaseRequest {
    let node_name = node_name.to_owned();
    LeaseRequest { node: NodeId(1), node_name, now_ms, lease_ms: 5_000, skew_ms: 0 }
}

impl<'a> Store<'a> {
    fn new(db: &'a Db, objects: &'a Objects, part: Part) -> Result<Store<'a>> {
        let asking = asking(NODE, 0);
        let lease = db.write(move |tx| leases::take(tx, part, ROLE, &asking))?;
        let lease = lease.expect("a free lease is granted");
        Ok(Store { db, objects, ids: IdMaker::new(NodeId(1))?, part, lease })
    }

    fn key(&self, id: i64) -> ChunkKey {
        ChunkKey::new(self.part, ChunkId(id)).unwrap()
    }

    /// The facts of a chunk.
    fn facts(&self, id: i64) -> Vec<u8> {
        let record = DocumentRecord::new(format!("https://example.com/{id}"), 1, Change::Add);
        encode(self.key(id), &[record]).unwrap()
    }

    fn gc(&self, keep: &Keep, clock: fn() -> i64) -> Result<GcReport> {
        let collector = Collector { ids: &self.ids, node_name: NODE, clock };
        all(self.db, self.objects, &collector, keep, &|| false)
    }

    fn commit(&self, id: i64, summary: ChunkSummary) -> Result<()> {
        let lease = self.lease.clone();
        self.db.write(move |tx| {
            chunks::open(tx, &lease, ChunkId(id), JobId(1), Run(1), THEN_MS)?;
            let seq = leases::number_commit(tx, &lease)?;
            chunks::commit(tx, &lease, ChunkId(id), seq, &summary, THEN_MS)
        })
    }

    /// A chunk with its facts in its row.
    fn commit_inline(&self, id: i64) -> Result<()> {
        self.commit(id, ChunkSummary { facts: Some(self.facts(id)), ..ChunkSummary::default() })
    }

    /// A chunk whose facts are an object of their own.
    fn commit_object(&self, id: i64) -> Result<()> {
        let path = ObjectPath::facts(self.key(id));
        let (part, kind) = (self.part, ObjectKind::Facts);
        let object = NewObject { part, id: ObjectId(id), kind, path: &path };
        let written = collect::write(self.db, self.objects, object, self.facts(id), THEN_MS)?;
        self.db.write(move |tx| written.publish(tx, THEN_MS))?;
        self.commit(
            id,
            ChunkSummary { facts_object: Some(ObjectId(id)), ..ChunkSummary::default() },
        )
    }

    /// Makes a document whose facts are in a chunk.
    fn point_to(&self, chunk: i64) -> Result<()> {
        let url = format!("https://example.com/{chunk}");
        let mut document = Document::new(DocumentId(chunk), DocHash::of(&url), url, THEN_MS);
        document.chunk = Some(ChunkId(chunk));
        let part = self.part;
        self.db.write(move |tx| {
            documents::save(tx, part, ConnectionId(1), std::slice::from_ref(&document))
        })
    }

    /// The chunks that still have facts; all of them are read.
    fn with_facts(&self) -> Result<Vec<i64>> {
        let (mut found, part) = (Vec::new(), self.part);
        for chunk in self.db.read(move |tx| chunks::after(tx, part, CommitNumber::NONE, 1_000))? {
            let Some(facts) = read_facts(self.db, self.objects, part, chunk.facts)? else {
                continue;
            };
            let key = self.key(chunk.id.0);
            let read: Result<Vec<_>> = FactsStream::open(key, facts.as_slice())?.collect();
            assert_eq!(read?[0].docid, format!("https://example.com/{}", chunk.id));
            found.push(chunk.id.0);
        }
        Ok(found)
    }

    fn stored_paths(&self) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        for root in ObjectPath::ROOTS {
            let prefix = ObjectPath::parse(&format!("{root}/{}", self.part))?;
            let listed = self.objects.list(&prefix, None, 100)?;
            paths.extend(listed.iter().map(|listed| listed.path.to_string()));
        }
        Ok(paths)
    }

    fn count(&self, table: &str) -> Result<i64> {
        let (sql, part) = (format!("SELECT COUNT(*) FROM {table} WHERE part = $1"), self.part);
        self.db.read(move |tx| tx.query_one(&sql, &[part.into()], |row| row.get(0)))
    }
}

#[test]
fn facts_stay_while_a_document_points_to_them_or_a_consumer_has_not_passed() {
    with_store(|store| {
        for id in [1, 2, 5, 6] {
            store.commit_inline(id)?;
        }
        store.commit_object(3)?;
        store.commit_object(4)?;
        store.point_to(2)?;
        // The commits are 1, 2, 5, 6, 3, 4 in this order; 4 is not read by all.
        store
            .db
            .write(|tx| cursors::advance(tx, PART, "links", CommitNumber(0), CommitNumber(5), 0))?;
        store.db.write(|tx| {
            cursors::advance(tx, PART, "search", CommitNumber(0), CommitNumber(6), 0)
        })?;
        let keep = Keep { pack_chunks_min: 100, ..KEEP };
        let report = store.gc(&keep, || NOW_MS)?;
        assert_eq!(store.with_facts()?, [2, 4]);
        assert_eq!((report.facts_dropped, report.condemned), (4, 1), "1, 5, 6 and the object of 3");
        let inline: usize = [1, 5, 6].map(|id| store.facts(id).len()).iter().sum();
        assert_eq!(report.row_bytes_freed, inline as u64);
        assert_eq!((report.parts, report.collected), (2, 0), "the grace is not over");
        let later = store.gc(&keep, || NOW_MS + 1_000)?;
        assert_eq!((later.facts_dropped, later.collected), (0, 1));
        assert_eq!(later.object_bytes_freed, store.facts(3).len() as u64);
        assert_eq!(store.stored_paths()?, ["chunks/1/4.facts"]);
        store
            .db
            .write(|tx| cursors::advance(tx, PART, "links", CommitNumber(5), CommitNumber(6), 0))?;
        assert_eq!(store.gc(&keep, || NOW_MS)?.facts_dropped, 1, "now all have passed");
        assert_eq!(store.with_facts()?, [2]);
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        Ok(())
    });
}

#[test]
fn young_facts_stay() {
    with_store(|store| {
        store.commit_inline(1)?;
        let young = store.gc(&KEEP, || THEN_MS + KEEP.settled_ms)?;
        assert_eq!((young.facts_dropped, store.with_facts()?), (0, vec![1]));
        let old = store.gc(&KEEP, || THEN_MS + KEEP.settled_ms + 1)?;
        assert_eq!((old.facts_dropped, store.with_facts()?), (1, vec![]));
        Ok(())
    });
}

#[test]
fn a_pack_goes_with_the_last_facts_in_it_and_a_late_reader_still_reads_it() {
    with_store(|store| {
        let keep = Keep { rewrite_bytes_max: 0, ..KEEP };
        for id in 1..=3 {
            store.commit_inline(id)?;
            store.point_to(id)?;
        }
        assert_eq!(store.gc(&keep, || NOW_MS)?.packed, 3);
        let looked_up =
            store.db.read(|tx| chunks::after(tx, PART, CommitNumber::NONE, 1))?.remove(0).facts;
        assert!(matches!(looked_up, Facts::Object { range: Some(_), .. }));
        let forget = |chunk: i64| {
            let sql = "UPDATE documents SET chunk = NULL WHERE chunk = $1";
            store.db.write(move |tx| {
                tx.execute(sql, &[chunk.into()])?;
                crate::testing::sum_rows(tx)
            })
        };
        forget(1)?;
        forget(2)?;
        let report = store.gc(&keep, || NOW_MS)?;
        assert_eq!((report.facts_dropped, report.condemned), (2, 0), "3 is still in the pack");
        assert_eq!(store.with_facts()?, [3]);
        forget(3)?;
        let report = store.gc(&keep, || NOW_MS)?;
        assert_eq!((report.facts_dropped, report.condemned), (1, 1));
        assert_eq!(read_facts(store.db, store.objects, PART, looked_up)?, Some(store.facts(1)));
        assert_eq!(store.gc(&keep, || NOW_MS + 1_000)?.collected, 1);
        assert_eq!((store.stored_paths()?, store.count("objects")?), (vec![], 0));
        Ok(())
    });
}

/// The life of two chunks' facts, from their commit to nothing, step by step; each
/// step is durable before the next begins. Chunk 3 is still needed.
type LifeStep = fn(&Store<'_>) -> Result<()>;
const PACK: ObjectId = ObjectId(900);
const STEPS: [LifeStep; 9] = [
    |store| store.commit_inline(1),
    |store| store.commit_inline(2),
    |store| {
        store.point_to(3)?;
        store.commit_inline(3)
    },
    |store| {
        let (part, path) = (store.part, pack_path(store).to_string());
        store.db.write(move |tx| rows::stage(tx, part, PACK, ObjectKind::Pack, &path, THEN_MS))
    },
    |store| store.objects.put(&pack_path(store), packed(store)),
    |store| {
        let (pack, len) = (packed(store), i64::try_from(store.facts(1).len()).unwrap());
        let (hash, part) = (*blake3::hash(&pack).as_bytes(), store.part);
        store.db.write(move |tx| {
            rows::publish(tx, part, PACK, pack.len() as u64, &hash, THEN_MS)?;
            let piece = |id, offset| PackedChunk { id: ChunkId(id), offset, len };
            chunk_storage::set_packed(tx, part, PACK, &[piece(1, 0), piece(2, len)])
        })
    },
    |store| drop_one(store, CommitNumber::NONE),
    |store| drop_one(store, CommitNumber(1)),
    |store| store.objects.delete(&pack_path(store)),
];

fn pack_path(store: &Store<'_>) -> ObjectPath {
    ObjectPath::pack(store.key(1).part, PACK.0)
}

fn packed(store: &Store<'_>) -> Vec<u8> {
    [store.facts(1), store.facts(2)].concat()
}

fn drop_one(store: &Store<'_>, after: CommitNumber) -> Result<()> {
    let lease = store.lease.clone();
    store.db.write(move |tx| {
        leases::fence(tx, &lease)?;
        chunk_storage::drop_facts(tx, lease.part, after, SETTLED, 1, THEN_MS).map(drop)
    })
}

/// Each part stands for a process that died behind another step.
#[test]
fn a_crash_behind_any_step_is_harmless() {
    both_databases(|db| {
        let root = tempfile::tempdir().unwrap();
        let objects = Objects::open(&Location::Directory(root.path().to_owned()))?;
        let parts = u32::try_from(STEPS.len() + 1).unwrap();
        db.write(move |tx| settings::freeze(tx, parts))?;
        let died = |steps: u32| Store::new(db, &objects, Part(steps.into()));
        let dead: Vec<Store<'_>> = (0..parts).map(died).collect::<Result<_>>()?;
        for (steps, store) in dead.iter().enumerate() {
            for step in &STEPS[..steps] {
                step(store)?;
            }
            assert_eq!(verify(db, &objects, true)?.findings, [], "behind {steps} steps");
        }
        for clock in [|| NOW_MS, || NOW_MS + 1_000] {
            dead[0].gc(&Keep { pack_chunks_min: 100, ..KEEP }, clock)?;
            assert_eq!(verify(db, &objects, true)?.findings, []);
        }
        for (steps, store) in dead.iter().enumerate() {
            let needed: &[i64] = if steps >= 3 { &[3] } else { &[] };
            assert_eq!(store.with_facts()?, needed, "behind {steps} steps");
            assert_eq!(store.stored_paths()?, [""; 0], "behind {steps} steps");
            assert_eq!(store.count("objects")?, 0, "behind {steps} steps");
        }
        Ok(())
    });
}

#[test]
fn chunks_that_were_given_up_long_ago_are_forgotten_with_their_tasks() {
    with_store(|store| {
        for (id, claimed_ms) in [(1, THEN_MS), (2, NOW_MS - KEEP.abandoned_ms)] {
            let lease = store.lease.clone();
            store.db.write(move |tx| {
                chunks::open(tx, &lease, ChunkId(id), JobId(1), Run(1), claimed_ms)?;
                chunks::abandon(tx, &lease, ChunkId(id), JobId(1), claimed_ms)
            })?;
        }
        store.commit_inline(3)?;
        store.point_to(3)?;
        let report = store.gc(&KEEP, || NOW_MS)?;
        assert_eq!(report.abandoned_forgotten, 1);
        assert_eq!((store.count("chunks")?, store.count("chunk_tasks")?), (2, 2));
        assert_eq!(store.gc(&KEEP, || NOW_MS + 1)?.abandoned_forgotten, 1);
        assert_eq!((store.count("chunks")?, store.count("chunk_tasks")?), (1, 1), "3 stays");
        Ok(())
    });
}

#[test]
fn rows_of_chunks_that_nothing_needs_go_and_those_of_a_jobs_last_run_stay() {
    with_store(|store| {
        let part = store.part;
        store.db.write(|tx| {
            job_states::make(tx, JobId(1), 0)?;
            job_states::start_run(tx, JobId(1), NodeId(1), 0)
        })?;
        for id in 1..=4 {
            store.commit_inline(id)?;
        }
        store.point_to(2)?;
        let forget = || store.gc(&KEEP, || NOW_MS).map(|report| report.chunks_forgotten);
        let jumps = || -> Result<Vec<String>> {
            let findings = verify(store.db, store.objects, true)?.findings;
            Ok(findings.into_iter().map(|it| it.problem).collect())
        };
        store.db.write(move |tx| {
            cursors::advance(tx, part, cursors::LINKS, CommitNumber(0), CommitNumber(3), 0)
        })?;
        assert_eq!(forget()?, 0, "they are of the job's last run, which is told as their sum");
        store.db.write(|tx| {
            job_states::end_run(tx, JobId(1), Run(1), 1)?;
            job_states::start_run(tx, JobId(1), NodeId(1), 2)
        })?;
        assert_eq!(forget()?, 2, "the first and the third: nothing is left of them");
        assert_eq!((store.count("chunks")?, store.count("chunk_tasks")?), (2, 2));
        assert_eq!(forget()?, 0, "a document needs the second; the link index the fourth");
        assert_eq!(jumps()?, [""; 0]);

        store.commit_inline(5)?;
        store.commit_inline(6)?;
        store.db.write(|tx| tx.execute("DELETE FROM chunks WHERE id = 5", &[]))?;
        assert_eq!(jumps()?, ["its commits jump from 4 to 6"], "nobody has read the fifth");
        Ok(())
    });
}

#[test]
fn orphans_are_reported_and_deleted_only_when_asked() {
    with_store(|store| {
        store.commit_object(1)?;
        store.point_to(1)?;
        let strays = ["chunks/0/9.warc.zst", "chunks/1/7.facts", "packs/1/8.facts"];
        for path in strays {
            store.objects.put(&ObjectPath::parse(path)?, vec![0; 5])?;
        }
        // The files have the time of the real clock, whatever these tests say.
        let report = store.gc(&KEEP, || NOW_MS)?;
        assert_eq!(report.orphans, Orphans::default(), "they are young");
        let report = store.gc(&KEEP, || i64::MAX / 2)?;
        let paths = strays.map(str::to_owned).to_vec();
        let expected = Orphans { found: 3, bytes: 15, deleted: 0, paths };
        assert_eq!(report.orphans, expected);
        let report = store.gc(&Keep { orphans: OnOrphans::Delete, ..KEEP }, || i64::MAX / 2)?;
        assert_eq!(report.orphans, Orphans { deleted: 3, ..expected });
        assert_eq!(store.stored_paths()?, ["chunks/1/1.facts"]);
        assert_eq!(store.with_facts()?, [1]);
        Ok(())
    });
}

#[test]
fn a_part_that_the_same_process_crawls_is_collected_under_its_lease_and_stays_its() {
    with_store(|store| {
        store.commit_inline(1)?;
        let node = store.lease.node;
        assert_eq!(store.gc(&KEEP, || NOW_MS)?.facts_dropped, 1);
        let held = store.db.read(move |tx| leases::held_by(tx, PART, ROLE, node))?;
        assert_eq!(held.map(|it| it.token), Some(store.lease.token));
        store.commit_inline(2)?;
        assert_eq!(store.with_facts()?, [2]);
        Ok(())
    });
}

#[test]
fn a_part_that_another_node_works_on_is_left_alone() {
    with_store(|store| {
        store.commit_inline(1)?;
        let other = LeaseRequest { node: NodeId(2), ..asking("two", NOW_MS) };
        store.db.write(move |tx| leases::take(tx, PART, ROLE, &other))?.expect("it is over");
        let report = store.gc(&KEEP, || NOW_MS)?;
        assert_eq!((report.parts, report.parts_busy, report.facts_dropped), (1, 1, 0));
        assert_eq!(store.with_facts()?, [1]);
        // A collector that held the lease before is refused at its next step.
        let collector = Collector { ids: &store.ids, node_name: NODE, clock: || NOW_MS };
        let (lease, mut report) = (&store.lease, GcReport::default());
        let late = part(store.db, store.objects, &collector, lease, &KEEP, &mut report);
        assert!(matches!(late, Err(Error::LeaseLost { .. })), "{late:?}");
        let over = store.gc(&KEEP, || NOW_MS + 5_000 + SKEW_MS)?;
        assert_eq!((over.parts, over.facts_dropped), (2, 1));
        Ok(())
    });
}
