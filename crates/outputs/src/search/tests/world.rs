//! A crawl that commits documents, and an index that follows it.

mod asking;
mod upkeep;

use crate::follow::{Consumer, LeftOut, PartWork};
use crate::links::{self, ChangeBatch, LinkIndex, PageContent, What, keys};
use crate::rights::Claimant;
use crate::search::ask::plan::Weights;
use crate::search::ask::{Answer, AnswerFailure, InLinks, IndexSearcher, Question, SearchLimits};
use crate::search::file_checks::CheckedFiles;
use crate::search::follow::SearchIndexConsumer;
use crate::search::indexed_links::Target;
use crate::search::rebuild;
use crate::search::schema::{AnchorText, DocumentKey, IndexedDocument};
use crate::search::server::{SearchServer, ServedIndex};
use crate::search::shard::{PublishContext, Shard};
use crate::search::verify::{ShardVerifyResult, VerifyContext};
use crate::search::writer::Writer;
use page::facts::{Facts, LinkKind, Rel};
use page::ids::DocHash;
use page::outlinks::OutLink;
use page::uri::Uri;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::chunkfile::document::{Access, Change, DocumentRecord, Fetch, RemoveReason};
use store::chunkfile::facts;
use store::ids::{
    ChunkId, CommitNumber, ConnectionId, DocumentId, IdMaker, JobId, NodeId, ObjectId, Part, Run,
};
use store::objects::{ChunkKey, Location, ObjectPath, Objects};
use store::panics::Faults;
use store::sorted::{EmbeddedMap, MapLocation};
use store::tables::cursors::Lag;
use store::tables::documents::{self, Document};
use store::tables::jobs::{self, Job};
use store::tables::leases::{self, Lease, LeaseRequest as Wanting};
use store::tables::{chunks, connections, cursors, settings, shards};
use store::{Db, Result};

/// More than writers are open at a time.
const PARTS: u8 = 6;
const CONNECTION: ConnectionId = ConnectionId(1);
const JOB: JobId = JobId(1);
/// When questions are asked; chunks are committed at 0.
pub const NOW_MS: i64 = 5_000;

/// A document as it is committed.
#[derive(Debug, Clone, Default)]
pub struct Doc {
    pub url: String,
    pub part: u8,
    pub is_there: bool,
    pub facts: Facts,
    pub access: Access,
    pub modified: Option<String>,
}

impl Doc {
    /// One of a few documents, in a version that has a word of its own.
    pub fn numbered(number: u8, version: i64, is_there: bool) -> Doc {
        let facts = Facts {
            title: format!("Document {number}"),
            text: format!("common text and unique{number}v{version} words"),
            media_type: "text/html".into(),
            simhash: (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ..Facts::default()
        };
        let url = format!("https://example.com/{number}");
        Doc { url, part: number % PARTS, is_there, facts, ..Doc::default() }
    }

    /// A document with a title and a text.
    pub fn new(url: &str, title: &str, text: &str) -> Doc {
        let simhash = u64::from_be_bytes(*DocHash::of(text).0.first_chunk().unwrap());
        let facts = Facts {
            title: title.into(),
            text: text.into(),
            media_type: "text/html".into(),
            simhash,
            ..Facts::default()
        };
        Doc { url: url.into(), is_there: true, facts, ..Doc::default() }
    }
}

/// Takes everything out of a database that a world has put there.
pub fn emptied(db: &Db) -> Result<()> {
    db.write(|tx| {
        for table in [
            "documents",
            "chunks",
            "chunk_tasks",
            "leases",
            "cursors",
            "shards",
            "shard_files",
            "objects",
        ] {
            tx.execute(&format!("DELETE FROM {table}"), &[])?;
        }
        Ok(())
    })
}

/// A crawl and an index.
pub struct World {
    db: Db,
    ids: Arc<IdMaker>,
    context: PublishContext,
    search: SearchIndexConsumer,
    leases: BTreeMap<Part, Lease>,
    /// What is there, by the document's URL.
    now: BTreeMap<String, Doc>,
    server: SearchServer,
    folder: tempfile::TempDir,
}

fn lease(db: &Db, part: Part, role: &'static str) -> Result<Lease> {
    let (node, node_name) = (NodeId(1), "one".to_owned());
    let wanting = Wanting { node, node_name, now_ms: 0, lease_ms: -1, skew_ms: 0 };
    Ok(db.write(move |tx| leases::take(tx, part, role, &wanting))?.expect("it is over at once"))
}

impl World {
    pub fn new(db: &Db, spans_parts: bool) -> Result<World> {
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::open(&Location::Directory(folder.path().join("objects")))?;
        World::with_objects(db, spans_parts, folder, (objects.clone(), objects))
    }

    /// An index whose objects are written in one way and read in another.
    pub fn with_objects(
        db: &Db,
        spans_parts: bool,
        folder: tempfile::TempDir,
        (objects, served): (Objects, Objects),
    ) -> Result<World> {
        db.write(|tx| settings::freeze(tx, PARTS.into()))?;
        let ids = Arc::new(IdMaker::new(NodeId(1))?);
        let claimant = Claimant {
            db: db.clone(),
            ids: ids.clone(),
            node_name: "one".into(),
            lease_ms: 60_000,
            skew_ms: 0,
        };
        let context = PublishContext {
            claimant,
            objects,
            home: folder.path().join("written"),
            spans_parts,
            links: None,
            checked: CheckedFiles::default(),
        };
        let search = SearchIndexConsumer::new(context.clone(), Box::new(|| {}))?;
        let cache = folder.path().join("served");
        let server = SearchServer::knowing(db.clone(), served, cache, context.checked.clone());
        let (leases, now) = Default::default();
        Ok(World { db: db.clone(), ids, context, search, leases, now, server, folder })
    }

    /// The same, with a link index beside it.
    pub fn with_links(db: &Db) -> Result<World> {
        let mut world = World::new(db, true)?;
        let place =
            MapLocation { path: world.folder.path().join("links"), families: keys::FAMILIES };
        let map = Arc::new(EmbeddedMap::open(&place)?);
        world.context.links = Some(LinkIndex::new(map, PARTS.into()));
        world.crash(false)?;
        Ok(world)
    }

    /// A page links to documents.
    pub fn link_to(&mut self, documents: &[Doc]) -> Result<()> {
        let list = self.db.read(settings::suffix_list)?;
        let link = |doc: &Doc| OutLink {
            uri: Uri::canonical(&doc.url, &list).expect("a URL").to_uri(),
            anchor: "here".into(),
            kind: LinkKind::A,
            rel: Rel::default(),
        };
        let mut links: Vec<OutLink> = documents.iter().map(link).collect();
        links.sort_by(|one, other| one.uri.cmp(&other.uri));
        let content = PageContent { status: 200, links, ..PageContent::default() };
        let (uri, what) = ("org.other>>o>/".to_owned(), What::Page(Box::new(content)));
        let changes = vec![links::PageChange { uri, date_ms: 1, job: 0, in_order: false, what }];
        let index = self.context.links.as_ref().expect("with links");
        index.apply(ChangeBatch { changes, marks: vec![] }, &[]).map(drop)
    }

    /// Does a step of what can be done when nothing is left to follow; whether there is more.
    pub fn tend(&mut self) -> Result<bool> {
        let leases: Vec<Lease> = self.leases.values().cloned().collect();
        self.search.tend(&leases, true)
    }

    /// The job says whether its documents can be searched.
    pub fn says(&mut self, search: bool) -> Result<()> {
        let docspec = format!("{{\"search\": {search}}}");
        let job = Job { docspec, ..Job::new(JOB, "job", CONNECTION) };
        self.db.write(move |tx| jobs::save(tx, &job, 0))
    }

    /// Commits documents, a chunk for each part that they are in.
    pub fn commit(&mut self, documents: &[Doc]) -> Result<()> {
        for part in 0..PARTS {
            // Of a document that is written twice the last counts.
            let mut of_part: BTreeMap<&str, &Doc> = BTreeMap::new();
            documents.iter().filter(|it| it.part == part).for_each(|it| {
                of_part.insert(&it.url, it);
            });
            if !of_part.is_empty() {
                let of_part: Vec<Doc> = of_part.into_values().cloned().collect();
                self.commit_chunk(Part(part.into()), &of_part, None)?;
            }
        }
        for doc in documents {
            match doc.is_there {
                true => self.now.insert(doc.url.clone(), doc.clone()),
                false => self.now.remove(&doc.url),
            };
        }
        Ok(())
    }

    /// Commits a look at documents that say what they said, and whose bytes are stored now.
    pub fn store_again(&mut self, documents: &[Doc]) -> Result<()> {
        for doc in documents {
            let (part, bodies) = (Part(doc.part.into()), Some(ObjectId(self.ids.next())));
            self.commit_chunk(part, std::slice::from_ref(doc), bodies)?;
        }
        Ok(())
    }

    /// Commits documents of a part; with bodies, they say what they said.
    fn commit_chunk(
        &mut self,
        part: Part,
        of_part: &[Doc],
        bodies_object: Option<ObjectId>,
    ) -> Result<()> {
        let chunk = ChunkId(self.ids.next());
        let held = lease(&self.db, part, "crawl")?;
        let (mut records, mut rows) = (Vec::new(), Vec::new());
        let mut summary = chunks::ChunkSummary::default();
        for doc in of_part {
            let (change, count) = match (doc.is_there, bodies_object) {
                (true, None) => (Change::Update, &mut summary.updates),
                (true, Some(_)) => (Change::Keep, &mut summary.keeps),
                (false, _) => (Change::Remove(RemoveReason::Gone), &mut summary.removes),
            };
            *count += 1;
            let mut record = DocumentRecord::new(&doc.url, JOB.0, change);
            record.facts = doc.is_there.then(|| doc.facts.clone());
            record.access = doc.access.clone();
            record.fetch = Some(Fetch {
                fetched_ms: 2_000_000_000_000,
                last_modified: doc.modified.clone(),
                ..Fetch::default()
            });
            let (id, hash) = (DocumentId(self.ids.next()), record.dochash);
            let mut row = Document::new(id, hash, doc.url.clone(), 0);
            row.chunk = doc.is_there.then_some(chunk);
            row.removed_ms = (!doc.is_there).then_some(1);
            records.push(record);
            rows.push(row);
        }
        let bytes = facts::encode(ChunkKey::new(part, chunk)?, &records)?;
        self.db.write(move |tx| {
            chunks::open(tx, &held, chunk, JOB, Run(1), 0)?;
            let seq = leases::number_commit(tx, &held)?;
            documents::save(tx, part, CONNECTION, &rows)?;
            let facts = Some(bytes.clone());
            let summary = chunks::ChunkSummary { facts, bodies_object, ..summary.clone() };
            chunks::commit(tx, &held, chunk, seq, &summary, 0)
        })
    }

    /// Commits a chunk to a part whose facts cannot be read: whoever reads them fails.
    pub fn commit_unreadable(&mut self, part: Part) -> Result<()> {
        let (chunk, held) = (ChunkId(self.ids.next()), lease(&self.db, part, "crawl")?);
        let facts_object = Some(ObjectId(self.ids.next()));
        self.db.write(move |tx| {
            chunks::open(tx, &held, chunk, JOB, Run(1), 0)?;
            let seq = leases::number_commit(tx, &held)?;
            let (documents, updates) = (1, 1);
            let summary =
                chunks::ChunkSummary { documents, updates, facts_object, ..Default::default() };
            chunks::commit(tx, &held, chunk, seq, &summary, 0)
        })
    }

    /// The published version of the shard of part 0.
    pub fn published(&self) -> Result<Option<i64>> {
        Ok(self.db.read(|tx| shards::current(tx, Part(0)))?.map(|it| it.version))
    }

    /// How far the index is, by what it says itself, and how far the crawl is.
    pub fn progress(&mut self, part: Part) -> Result<(CommitNumber, CommitNumber)> {
        let head = self.db.read(move |tx| leases::last_commit(tx, part, "crawl"))?;
        let lease = self.leases[&part].clone();
        Ok((self.search.take_up(&lease)?, head))
    }

    /// The index ends in good order.
    pub fn end(&mut self) -> Result<()> {
        let leases: Vec<Lease> = self.leases.values().cloned().collect();
        while self.search.tend(&leases, true)? {}
        Ok(())
    }

    /// Commits a look at documents that say what they said.
    pub fn look_again(&mut self, documents: &[Doc]) -> Result<()> {
        for doc in documents {
            let (part, chunk) = (Part(doc.part.into()), ChunkId(self.ids.next()));
            let held = lease(&self.db, part, "crawl")?;
            let record = DocumentRecord::new(&doc.url, JOB.0, Change::Keep);
            let bytes = facts::encode(ChunkKey::new(part, chunk)?, &[record])?;
            self.db.write(move |tx| {
                chunks::open(tx, &held, chunk, JOB, Run(2), 0)?;
                let seq = leases::number_commit(tx, &held)?;
                let facts = Some(bytes.clone());
                let summary =
                    chunks::ChunkSummary { facts, keeps: 1, ..chunks::ChunkSummary::default() };
                chunks::commit(tx, &held, chunk, seq, &summary, 0)
            })?;
        }
        Ok(())
    }

    fn work(&mut self) -> Result<Vec<PartWork>> {
        let mut work = Vec::new();
        for part in (0..PARTS).map(|it| Part(it.into())) {
            let head = self.db.read(move |tx| leases::last_commit(tx, part, "crawl"))?;
            if !self.leases.contains_key(&part) {
                self.leases.insert(part, lease(&self.db, part, cursors::SEARCH)?);
            }
            let lease = self.leases[&part].clone();
            let at = self.search.take_up(&lease)?;
            if at < head {
                work.push(PartWork { lease, at, head });
            }
        }
        Ok(work)
    }

    /// The index follows to the end.
    pub fn follow(&mut self) -> Result<()> {
        loop {
            let work = self.work()?;
            if work.is_empty() {
                return Ok(());
            }
            match self.context.spans_parts {
                true => drop(self.search.apply(&work)?),
                false => {
                    for it in work {
                        self.search.apply(&[it])?;
                    }
                }
            }
        }
    }

    /// The index follows to the end in another process; the faults are called with every document.
    pub fn follow_with(&mut self, faults: Faults) -> Result<()> {
        self.crash(false)?;
        self.search =
            SearchIndexConsumer::new(self.context.clone(), Box::new(|| {}))?.with_faults(faults);
        self.follow()
    }

    /// Whether there is nothing to follow.
    pub fn is_idle(&mut self) -> Result<bool> {
        Ok(self.work()?.is_empty())
    }

    /// Documents on which the index fails from now on, by the end of their URL; it is told
    /// what it leaves out.
    pub fn follow_with_a_bug(&mut self, end: &'static str) -> Result<Vec<LeftOut>> {
        let faults = Faults::new(move |_, url| assert!(!url.ends_with(end), "a bug"));
        self.search =
            SearchIndexConsumer::new(self.context.clone(), Box::new(|| {}))?.with_faults(faults);
        self.leases.clear();
        let mut left_out = Vec::new();
        loop {
            let work = self.work()?;
            if work.is_empty() {
                return Ok(left_out);
            }
            for it in work {
                left_out.extend(self.search.apply(&[it])?.left_out);
            }
        }
    }

    /// The process dies, and another one takes over.
    pub fn crash(&mut self, loses_files: bool) -> Result<()> {
        self.search = SearchIndexConsumer::new(self.context.clone(), Box::new(|| {}))?;
        self.leases.clear();
        if loses_files {
            let _ = std::fs::remove_dir_all(&self.context.home);
        }
        Ok(())
    }

    /// The process dies when documents are in its own index and published nowhere.
    pub fn crash_unpublished(&mut self) -> Result<()> {
        self.search = SearchIndexConsumer::new(self.context.clone(), Box::new(|| {}))?;
        let part = Part(0);
        let mut shard = Shard::open(&self.context, part)?;
        shard.writer.cursors.set(part, CommitNumber(1_000_000));
        shard.writer.commit()?;
        drop(shard);
        self.crash(false)
    }

    /// Does something while the store takes no file of a shard.
    pub fn while_refused<T>(&mut self, does: impl FnOnce(&mut World) -> Result<T>) -> Result<T> {
        let shards = self.folder.path().join("objects").join("shards");
        let aside = self.folder.path().join("aside");
        // What is open stays readable; a file where a directory should be takes nothing.
        self.server.refresh()?;
        std::fs::rename(&shards, &aside).expect("they were there");
        std::fs::write(&shards, "").expect("a file can be written");
        let done = does(self);
        std::fs::remove_file(&shards).expect("it was there");
        std::fs::rename(&aside, &shards).expect("they are back");
        done
    }
}
