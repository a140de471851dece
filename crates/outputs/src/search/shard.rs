//! One shard of the index: its writer, and what is published of it.
//!
//! The writer's directory holds the newest version as files; a commit adds some and takes
//! others away. Publishing makes objects of the new ones and then, in one transaction, the
//! version that consists of them, with the cursors. Invariants: what is published is
//! complete and was committed; a shard that is taken up begins with what is published,
//! whatever the directory has, and with files that are what was published; a shard that is made
//! anew is made beside it and takes its place at once, when it is as far ([`Shard::switch`]); a
//! crash at any point leaves at worst files that nobody needs, which whoever comes next removes.

use super::file_checks::{CheckedFiles, measured};
use super::writer::{
    CommittedSegments, META, Writer, clear, describe, make_beside, take_over, take_the_place,
};
use crate::links::LinkIndex;
use crate::rights::Claimant;
use std::fs;
use std::path::{Path, PathBuf};
use store::ids::{ChunkId, CommitNumber, ObjectId, Part};
use store::objects::{ObjectPath, Objects};
use store::tables::chunks::{self, Task};
use store::tables::cursors;
use store::tables::leases::Lease;
use store::tables::objects::{self, ObjectKind};
use store::tables::shards::{self, File, IndexDescription, New};
use store::{Db, Error, Result, clock};

/// How long a file stays that no version has any more: whoever opens an older one has
/// done so by then.
pub const DROPPED_GRACE_MS: i64 = 60_000;
/// Files that are collected at a time.
const COLLECTED_MAX: u32 = 200;
/// How often files are looked for again that a merge has taken away meanwhile.
const MERGES_MAX: usize = 20;

/// Who publishes, and where.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct PublishContext {
    pub claimant: Claimant,
    pub objects: Objects,
    /// Where writers have their directories.
    pub home: PathBuf,
    /// Whether one shard covers all parts.
    pub spans_parts: bool,
    /// Who links to what, if that is known.
    pub links: Option<LinkIndex>,
    /// Files that are known to be what was published.
    pub checked: CheckedFiles,
}

impl PublishContext {
    fn db(&self) -> &Db {
        &self.claimant.db
    }

    /// Where writers of a shard have their directories.
    fn folder(&self, part: Part) -> PathBuf {
        self.home.join(part.0.to_string())
    }

    /// Fails unless the files in a writer's directory are what was published.
    fn check(&self, part: Part, home: &Path, files: &[File]) -> Result<()> {
        files.iter().try_for_each(|it| self.checked.check(part, it, &home.join(&it.name)))
    }

    /// The shard of a part.
    pub fn shard_of(&self, part: Part) -> Part {
        if self.spans_parts { Part(0) } else { part }
    }
}

/// A shard that is written.
#[allow(missing_docs)]
pub struct Shard {
    part: Part,
    context: PublishContext,
    pub writer: Writer,
    make: String,
    /// The files of what is published of this one.
    published: Vec<File>,
    /// Documents of what is published of this one.
    documents: i64,
    /// Whether it is made beside what is published, which stays as it is meanwhile.
    is_beside: bool,
}

/// What merges have left to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeResult {
    /// What is published is what they made.
    Nothing,
    /// One is under way.
    Later,
    /// What they made was published.
    Published,
}

/// A chunk that is in, of a part whose lease is held.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct In {
    pub lease: Lease,
    pub chunk: ChunkId,
}

impl Shard {
    /// Takes up a shard where what is published of it ends. If nothing is, or something of
    /// another make, it is begun anew.
    pub fn open(context: &PublishContext, part: Part) -> Result<Shard> {
        let make = super::writer::make(context.spans_parts);
        let (current, files, reached) = context.db().read(move |tx| {
            let shard = shards::current(tx, part)?;
            Ok((shard, shards::files(tx, part)?, shards::reached(tx, part)?))
        })?;
        let Some(shard) = current.filter(|it| it.description.make == make) else {
            return Shard::begin(context, part);
        };
        remove_staged(context, part)?;
        let home = take_over(&context.folder(part), context.claimant.ids.next())?;
        if !is_there(&home, &shard.description.meta, &files)
            || context.check(part, &home, &files).is_err()
        {
            restore(context, &home, &shard.description.meta, &files)?;
            context.check(part, &home, &files)?;
        }
        let mut writer = Writer::open(&home)?;
        for (part, seq) in reached {
            writer.cursors.raise(part, seq);
        }
        let (context, documents) = (context.clone(), shard.documents);
        Ok(Shard { part, context, writer, make, published: files, documents, is_beside: false })
    }

    /// Begins a shard anew, beside what is published of it.
    pub fn begin(context: &PublishContext, part: Part) -> Result<Shard> {
        remove_staged(context, part)?;
        let make = super::writer::make(context.spans_parts);
        let home = make_beside(&context.folder(part), context.claimant.ids.next())?;
        let (writer, context) = (Writer::open(&home)?, context.clone());
        let (published, documents) = (Vec::new(), 0);
        Ok(Shard { part, context, writer, make, published, documents, is_beside: true })
    }

    /// Whether no document is in it, nor on its way.
    pub fn is_empty(&self) -> bool {
        self.documents == 0 && !self.writer.is_changed()
    }

    /// Whether it is made beside what is published.
    pub fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// Puts it in the place of what is published, under the leases of all parts that it covers.
    pub fn switch(mut self, leases: &[Lease]) -> Result<i64> {
        let version = self.publish(leases, &[])?;
        let home = self.writer.home().to_owned();
        drop(self);
        take_the_place(&home)?;
        Ok(version)
    }

    /// Says that it is further, where no document of it has changed. False if a part was never
    /// published.
    pub fn move_on(&self, leases: &[Lease], chunks: &[In]) -> Result<bool> {
        let reached = self.reached(leases);
        let (leases, marks, now_ms) = (leases.to_vec(), chunks.to_vec(), clock::now_ms());
        self.context.db().write(move |tx| {
            if !shards::move_on(tx, &leases, &reached)? {
                return Ok(false);
            }
            for (part, seq) in &reached {
                cursors::set(tx, *part, cursors::SEARCH, *seq, now_ms)?;
            }
            for it in &marks {
                chunks::mark_task(tx, &it.lease, it.chunk, Task::Propagated, None, now_ms)?;
            }
            Ok(true)
        })
    }

    fn reached(&self, leases: &[Lease]) -> Vec<(Part, CommitNumber)> {
        leases.iter().map(|lease| (lease.part, self.writer.cursors.of(lease.part))).collect()
    }

    /// Commits, and publishes what was committed, under the leases of the parts that got
    /// further. Chunks are marked on the way.
    pub fn publish(&mut self, leases: &[Lease], chunks: &[In]) -> Result<i64> {
        self.mark(chunks, Task::Building)?;
        self.writer.commit()?;
        self.publish_committed(leases, chunks)
    }

    /// Publishes what merges made of the last commit, when none is under way any more: what was
    /// published before takes as much room again until then.
    pub fn publish_merged(&mut self, leases: &[Lease]) -> Result<MergeResult> {
        if self.is_beside || self.writer.is_changed() {
            return Ok(MergeResult::Nothing);
        }
        if self.writer.is_merging()? {
            return Ok(MergeResult::Later);
        }
        let committed = self.writer.committed()?;
        let is_published = |name: &String| self.published.iter().any(|it| it.name == *name);
        if committed.names.len() == self.published.len() && committed.names.iter().all(is_published)
        {
            return Ok(MergeResult::Nothing);
        }
        self.publish_committed(leases, &[])?;
        Ok(MergeResult::Published)
    }

    fn publish_committed(&mut self, leases: &[Lease], chunks: &[In]) -> Result<i64> {
        for _ in 0..MERGES_MAX {
            let committed = self.writer.committed()?;
            // If one is gone, a merge has ended, and its result takes their place.
            if let Some(added) = self.upload(&committed)? {
                return self.show(leases, chunks, committed, added);
            }
        }
        let reason = "its files change faster than they can be published".to_owned();
        Err(Error::Conflict { reason })
    }

    /// Makes objects of files that are not published. `None` if one of them is gone.
    fn upload(&self, committed: &CommittedSegments) -> Result<Option<Vec<File>>> {
        let is_new = |name: &&String| !self.published.iter().any(|it| it.name == **name);
        let names: Vec<&String> = committed.names.iter().filter(is_new).collect();
        let part = self.part;
        let mut staged = Vec::new();
        for name in names {
            let object = ObjectId(self.context.claimant.ids.next());
            let path = ObjectPath::shard(part, object, name)?;
            staged.push((name.clone(), object, path));
        }
        let (rows, now_ms) = (staged.clone(), clock::now_ms());
        self.context.db().write(move |tx| {
            for (_, object, path) in &rows {
                objects::stage(tx, part, *object, ObjectKind::Shard, path.as_str(), now_ms)?;
            }
            Ok(())
        })?;
        let mut added = Vec::new();
        for (name, object, path) in staged {
            let file = self.writer.home().join(&name);
            let Some((bytes, hash)) = measured(&file)? else { return Ok(None) };
            self.context.checked.has_read(part, object, &file);
            match self.context.objects.put_file(&path, &file) {
                Err(Error::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                put => put?,
            }
            let (path, hash) = (path.to_string(), Some(hash));
            added.push(File { name, object, path, bytes, hash });
        }
        Ok(Some(added))
    }

    /// The transaction that shows a version.
    fn show(
        &mut self,
        leases: &[Lease],
        chunks: &[In],
        committed: CommittedSegments,
        added: Vec<File>,
    ) -> Result<i64> {
        let CommittedSegments { meta, names, documents } = committed;
        let (part, now_ms) = (self.part, clock::now_ms());
        let reached = self.reached(leases);
        let description = IndexDescription { make: self.make.clone(), meta };
        let new = New { description, documents, reached: reached.clone(), names, added };
        let (leases, marks) = (leases.to_vec(), chunks.to_vec());
        let (version, published) = self.context.db().write(move |tx| {
            let version = shards::publish(tx, part, &leases, &new, now_ms)?;
            for (part, seq) in &reached {
                cursors::set(tx, *part, cursors::SEARCH, *seq, now_ms)?;
            }
            for it in &marks {
                chunks::mark_task(tx, &it.lease, it.chunk, Task::Built, None, now_ms)?;
            }
            Ok((version, shards::files(tx, part)?))
        })?;
        self.published = published;
        self.documents = documents;
        self.context.checked.keep(self.part, &self.published);
        self.collect()?;
        Ok(version)
    }

    /// Says what is done with chunks.
    pub fn mark(&self, chunks: &[In], task: Task) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let (chunks, now_ms) = (chunks.to_vec(), clock::now_ms());
        self.context.db().write(move |tx| {
            for it in &chunks {
                chunks::mark_task(tx, &it.lease, it.chunk, task, None, now_ms)?;
            }
            Ok(())
        })
    }

    /// Removes objects that no version has had for a while.
    fn collect(&self) -> Result<()> {
        // In a directory nobody needs long: files that are open stay readable without a
        // name, and whoever comes too late looks again for what is newest.
        let grace_ms = if self.context.spans_parts { 0 } else { DROPPED_GRACE_MS };
        // What was dropped this very millisecond may go as well.
        let (part, before_ms) = (self.part, clock::now_ms() - grace_ms + 1);
        let gone =
            move |tx: &mut store::Tx<'_>| shards::dropped(tx, part, before_ms, COLLECTED_MAX);
        let gone = self.context.db().read(gone)?;
        if gone.is_empty() {
            return Ok(());
        }
        for it in &gone {
            self.context.objects.delete(&ObjectPath::parse(&it.path)?)?;
        }
        let ids: Vec<ObjectId> = gone.iter().map(|it| it.object).collect();
        self.context.db().write(move |tx| shards::forget(tx, part, &ids))
    }
}

/// Whether a directory has exactly what is published.
fn is_there(home: &Path, meta: &str, files: &[File]) -> bool {
    let same = fs::read_to_string(home.join(META)).is_ok_and(|text| text == meta);
    let has = |it: &File| {
        let found = fs::metadata(home.join(&it.name));
        found.is_ok_and(|found| i64::try_from(found.len()) == Ok(it.bytes))
    };
    same && files.iter().all(has)
}

/// Brings what is published into a directory.
fn restore(context: &PublishContext, home: &Path, meta: &str, files: &[File]) -> Result<()> {
    clear(home)?;
    for it in files {
        context.objects.fetch_file(&ObjectPath::parse(&it.path)?, &home.join(&it.name))?;
    }
    let names: Vec<String> = files.iter().map(|it| it.name.clone()).collect();
    describe(home, meta, &names)
}

/// Gives up what writers of a shard left staged that are dead. In a directory nobody else can be
/// writing, and it goes at once; elsewhere it goes when its grace is over.
fn remove_staged(context: &PublishContext, part: Part) -> Result<()> {
    loop {
        let now_ms = clock::now_ms();
        let doomed = context.db().write(move |tx| {
            objects::condemn_staged(tx, part, ObjectKind::Shard, now_ms, COLLECTED_MAX)
        })?;
        if context.spans_parts {
            for it in &doomed {
                context.objects.delete(&ObjectPath::parse(&it.path)?)?;
            }
            let ids: Vec<ObjectId> = doomed.iter().map(|it| it.id).collect();
            context.db().write(move |tx| objects::forget(tx, part, &ids))?;
        }
        if doomed.len() < COLLECTED_MAX as usize {
            return Ok(());
        }
    }
}
