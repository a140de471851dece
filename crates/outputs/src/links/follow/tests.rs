//! What following costs for jobs that leave links out, and that nothing is missed by it.

use super::*;
use crate::links::keys;
use crate::links::queries;
use page::facts::{Facts, Link, LinkKind, Rel};
use page::uri::Uri;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::chunkfile::document::{Change, DocumentRecord, Fetch, RemoveReason};
use store::chunkfile::facts;
use store::ids::{ChunkId, ConnectionId, IdMaker, JobId, NodeId, ObjectId, Run};
use store::objects::{ChunkKey, Location};
use store::sorted::{
    BulkReplacement, EmbeddedMap, InRows, MapLocation, SortedMap, SortedRows, ViewReader,
};
use store::tables::chunks::{self, ChunkSummary};
use store::tables::jobs::{self, Job};
use store::tables::leases::{self, LeaseRequest};
use store::testing::both_databases;

const PART: Part = Part(0);
const CONNECTION: ConnectionId = ConnectionId(1);

/// A map that counts what is changed in it.
struct CountingMap {
    inner: Arc<dyn SortedMap>,
    changes: Arc<AtomicUsize>,
}

impl SortedMap for CountingMap {
    fn spans_parts(&self) -> bool {
        self.inner.spans_parts()
    }

    fn change(&self, part: Part, lease: Option<&Lease>, work: store::sorted::Work) -> Result<()> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.inner.change(part, lease, work)
    }

    fn look(&self, look: ViewReader) -> Result<()> {
        self.inner.look(look)
    }

    fn replace(&self, what: &BulkReplacement<'_>, rows: &mut SortedRows<'_>) -> Result<()> {
        self.inner.replace(what, rows)
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.inner.disk_bytes()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }
}

/// A crawl of one part, and the link index that follows it.
struct World {
    db: Db,
    ids: IdMaker,
    lease: Lease,
    links: LinkIndexConsumer,
    changes: Arc<AtomicUsize>,
    at: CommitNumber,
    _folder: tempfile::TempDir,
}

fn lease(db: &Db, role: &'static str) -> Result<Lease> {
    let (node, node_name) = (NodeId(1), "one".to_owned());
    let asking = LeaseRequest { node, node_name, now_ms: 0, lease_ms: -1, skew_ms: 0 };
    Ok(db.write(move |tx| leases::take(tx, PART, role, &asking))?.expect("it is over at once"))
}

impl World {
    fn new(db: &Db, in_files: bool) -> Result<World> {
        db.write(|tx| {
            settings::freeze(tx, 1)?;
            tx.execute(
                "INSERT INTO connections (id, kind, connectionname, classname, config, maxcount,
                                          groupname, reindexed, version, changed_ms)
                 VALUES ($1, 'repository', 'site', 'web', '{}', 1, NULL, 0, 1, 0)",
                &[CONNECTION.into()],
            )?;
            store::testing::sum_rows(tx)
        })?;
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&Location::Directory(folder.path().join("objects")))?;
        let place = MapLocation { path: folder.path().join("links"), families: keys::FAMILIES };
        let inner: Arc<dyn SortedMap> = match in_files {
            true => Arc::new(EmbeddedMap::open(&place)?),
            false => Arc::new(InRows::new(db)),
        };
        let changes = Arc::new(AtomicUsize::new(0));
        let map = Arc::new(CountingMap { inner, changes: changes.clone() });
        let links = LinkIndexConsumer::new(db.clone(), objects, LinkIndex::new(map, 1))?;
        let (ids, lease) = (IdMaker::new(NodeId(1))?, lease(db, cursors::LINKS)?);
        Ok(World {
            db: db.clone(),
            ids,
            lease,
            links,
            changes,
            at: CommitNumber::NONE,
            _folder: folder,
        })
    }

    /// A job says which links count.
    fn says(&self, job: i64, policy: &str) -> Result<()> {
        let docspec = format!("{{\"links\": \"{policy}\"}}");
        let name = format!("job-{job}");
        let job = Job { docspec, ..Job::new(JobId(job), &name, CONNECTION) };
        self.db.write(move |tx| jobs::save(tx, &job, 0))
    }

    fn commit(&self, job: i64, summary: ChunkSummary) -> Result<ChunkId> {
        let (chunk, held) = (ChunkId(self.ids.next()), lease(&self.db, "crawl")?);
        self.db.write(move |tx| {
            chunks::open(tx, &held, chunk, JobId(job), Run(1), 0)?;
            let seq = leases::number_commit(tx, &held)?;
            chunks::commit(tx, &held, chunk, seq, &summary, 0)
        })?;
        Ok(chunk)
    }

    /// Commits a chunk whose facts cannot be read: whoever reads them fails.
    fn commit_unreadable(&self, job: i64) -> Result<ChunkId> {
        let facts_object = Some(ObjectId(self.ids.next()));
        self.commit(
            job,
            ChunkSummary { documents: 1, adds: 1, facts_object, ..ChunkSummary::default() },
        )
    }

    /// Commits a page that links to another, or its removal.
    fn commit_page(&self, job: i64, number: u8, is_there: bool) -> Result<ChunkId> {
        let chunk = ChunkId(self.ids.next());
        let change = match is_there {
            true => Change::Add,
            false => Change::Remove(RemoveReason::Gone),
        };
        let mut record = DocumentRecord::new(url(number), job, change);
        let (url, anchor) = ("https://example.com/target".into(), "there".into());
        let link = Link { url, anchor, kind: LinkKind::A, rel: Rel::default() };
        record.facts = is_there.then(|| Facts { links: vec![link], ..Facts::default() });
        record.fetch = is_there.then(Fetch::default);
        let bytes = facts::encode(ChunkKey::new(PART, chunk)?, &[record])?;
        let held = lease(&self.db, "crawl")?;
        self.db.write(move |tx| {
            chunks::open(tx, &held, chunk, JobId(job), Run(1), 0)?;
            let seq = leases::number_commit(tx, &held)?;
            let (adds, removes) = (i64::from(is_there), i64::from(!is_there));
            let facts = Some(bytes.clone());
            let summary =
                ChunkSummary { documents: 1, adds, removes, facts, ..ChunkSummary::default() };
            chunks::commit(tx, &held, chunk, seq, &summary, 0)
        })?;
        Ok(chunk)
    }

    /// Follows to the end; how often the index was changed for it.
    fn follow(&mut self) -> Result<usize> {
        let before = self.changes.load(Ordering::SeqCst);
        let head = self.db.read(|tx| leases::last_commit(tx, PART, "crawl"))?;
        while self.at < head {
            let work = PartWork { lease: self.lease.clone(), at: self.at, head };
            self.at = self.links.apply(&[work])?.reached[0].1;
        }
        Ok(self.changes.load(Ordering::SeqCst) - before)
    }

    fn in_links(&self) -> Result<u64> {
        let list = self.db.read(settings::suffix_list)?;
        let uri = Uri::canonical("https://example.com/target", &list).unwrap().to_uri();
        let found = self.links.index.read(move |view| queries::find(view, PART, &uri))?;
        Ok(found.map_or(0, |it| it.node.incount))
    }
}

fn url(number: u8) -> String {
    format!("https://example.com/{number}")
}

fn each_world(test: impl Fn(World) -> Result<()>) {
    for in_files in [true, false] {
        both_databases(|db| test(World::new(db, in_files)?));
    }
}

#[test]
fn a_job_without_links_costs_the_link_index_nothing() {
    each_world(|mut world| {
        world.says(1, "all")?;
        world.says(2, "off")?;
        world.commit_page(1, 1, true)?;
        world.follow()?;
        let cursor = world.links.index.cursor(PART)?;
        let further = |commits: i64| CommitNumber(cursor.0 + commits);
        for _ in 0..100 {
            world.commit_unreadable(2)?;
        }
        assert_eq!(world.follow()?, 0, "nothing is read, nothing is written");
        assert_eq!(world.at, further(100), "and it is up to date");
        // The end of a process writes how far it is, and a page that counts does.
        let leases = [world.lease.clone()];
        world.links.tend(&leases, true)?;
        assert_eq!(world.links.index.cursor(PART)?, further(100));
        world.commit_unreadable(2)?;
        world.commit_page(1, 2, true)?;
        world.follow()?;
        assert_eq!((world.in_links()?, world.links.index.cursor(PART)?), (2, further(102)));
        // Somebody who takes the part up passes again what was only passed.
        world.commit_unreadable(2)?;
        world.follow()?;
        assert_eq!(world.links.take_up(&world.lease.clone())?, further(102));
        // What is wanted is read.
        world.commit_unreadable(1)?;
        assert!(world.follow().is_err());
        Ok(())
    });
}

#[test]
fn how_far_the_link_index_is_without_links_is_written_now_and_then() {
    each_world(|mut world| {
        world.says(2, "off")?;
        for _ in 0..PASSED_MAX / 50 {
            for _ in 0..50 {
                world.commit_unreadable(2)?;
            }
            world.follow()?;
        }
        assert_eq!(world.changes.load(Ordering::SeqCst), 1);
        let passed = CommitNumber(i64::try_from(PASSED_MAX).unwrap());
        assert_eq!(world.links.index.cursor(PART)?, passed);
        Ok(())
    });
}

#[test]
fn a_job_that_wanted_links_once_takes_them_away_with_its_pages() {
    each_world(|mut world| {
        world.says(1, "all")?;
        world.commit_page(1, 1, true)?;
        world.commit_page(1, 2, true)?;
        world.follow()?;
        assert_eq!(world.in_links()?, 2);
        world.says(1, "off")?;
        // What it adds is not looked at, what it removes is.
        world.commit_unreadable(1)?;
        world.commit_page(1, 1, false)?;
        world.follow()?;
        assert_eq!(world.in_links()?, 1);
        world.db.write(|tx| jobs::delete(tx, JobId(1)))?;
        world.commit_page(1, 2, false)?;
        world.follow()?;
        assert_eq!(world.in_links()?, 0);
        Ok(())
    });
}
