//! One shard of the index: its writer, and what is published of it.
//!
//! The writer's directory holds the newest version as files; a commit adds some and takes
//! others away. Publishing makes objects of the new ones and then, in one transaction, the
//! version that consists of them, with the cursors. Invariants: what is published is
//! complete and was committed; a shard that is taken up begins with what is published,
//! whatever the directory has; a crash at any point leaves at worst files that nobody
//! needs, which are collected.

use super::writer::{Committed, META, Writer, clear, describe, take_over};
use crate::links::LinkIndex;
use crate::rights::Claimant;
use std::fs;
use std::path::{Path, PathBuf};
use store::ids::{ChunkId, ObjectId, Part};
use store::objects::{ObjectPath, Objects};
use store::tables::leases::Lease;
use store::tables::objects::{self, Kind};
use store::tables::shards::{self, File, New, Told};
use store::tables::{chunks, cursors};
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
pub struct Means {
    /// Who it is.
    pub claimant: Claimant,
    /// The objects.
    pub objects: Objects,
    /// Where writers have their directories.
    pub home: PathBuf,
    /// Whether one shard covers all parts.
    pub spans_parts: bool,
    /// Who links to what, if that is known.
    pub links: Option<LinkIndex>,
}

impl Means {
    fn db(&self) -> &Db {
        &self.claimant.db
    }

    /// The shard of a part.
    pub fn shard_of(&self, part: Part) -> Part {
        if self.spans_parts { Part(0) } else { part }
    }
}

/// Files that were made objects, with their hashes.
type Added = Vec<(File, [u8; 32])>;

/// A shard that is written.
pub struct Shard {
    part: Part,
    means: Means,
    /// The index.
    pub writer: Writer,
    make: String,
    /// The files of what is published.
    published: Vec<File>,
    /// Documents of what is published.
    documents: i64,
    /// Whether what is published was built otherwise: it is to be replaced, by whatever.
    is_of_another_make: bool,
}

/// A chunk that is in, of a part whose lease is held.
#[derive(Debug, Clone)]
pub struct In {
    /// The lease.
    pub lease: Lease,
    /// The chunk.
    pub chunk: ChunkId,
}

impl Shard {
    /// Takes up a shard where what is published of it ends.
    pub fn open(means: &Means, part: Part) -> Result<Shard> {
        let make = super::writer::make(means.spans_parts);
        let current = means.db().read(move |tx| {
            let shard = shards::current(tx, part)?;
            Ok((shard, shards::files(tx, part)?))
        })?;
        let folder = means.home.join(part.0.to_string());
        let home = take_over(&folder, means.claimant.ids.next())?;
        let (shard, files) = current;
        let is_of_another_make = shard.as_ref().is_some_and(|it| it.told.make != make);
        let documents = shard.as_ref().map_or(0, |it| it.documents);
        let published = match shard.filter(|it| it.told.make == make) {
            None => {
                clear(&home)?;
                // Of another make: it stays visible until there is something to replace it.
                Vec::new()
            }
            Some(shard) => {
                if !is_there(&home, &shard.told.meta, &files) {
                    restore(means, &home, (&shard.told.meta, &files))?;
                }
                files
            }
        };
        let writer = Writer::open(&home)?;
        let (means, documents) = (means.clone(), if is_of_another_make { 0 } else { documents });
        Ok(Shard { part, means, writer, make, published, documents, is_of_another_make })
    }

    /// Whether no document is in it.
    pub fn is_empty(&self) -> bool {
        self.documents == 0 && !self.writer.is_changed()
    }

    /// Whether there is something to publish, besides how far it is.
    pub fn is_changed(&self) -> bool {
        self.writer.is_changed() || self.is_of_another_make
    }

    /// Commits, and publishes what was committed, under the leases of the parts that got
    /// further. Chunks are marked on the way.
    pub fn publish(&mut self, leases: &[Lease], chunks: &[In]) -> Result<i64> {
        self.mark(chunks, "building")?;
        self.writer.commit()?;
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
    fn upload(&self, committed: &Committed) -> Result<Option<Added>> {
        let is_new = |name: &&String| !self.published.iter().any(|it| it.name == **name);
        let names: Vec<&String> = committed.names.iter().filter(is_new).collect();
        let part = self.part;
        let mut staged = Vec::new();
        for name in names {
            let object = ObjectId(self.means.claimant.ids.next());
            let path = ObjectPath::shard(part, object, name)?;
            staged.push((name.clone(), object, path));
        }
        let (rows, now_ms) = (staged.clone(), clock::now_ms());
        self.means.db().write(move |tx| {
            for (_, object, path) in &rows {
                objects::stage(tx, (part, *object), Kind::Shard, path.as_str(), now_ms)?;
            }
            Ok(())
        })?;
        let mut added = Vec::new();
        for (name, object, path) in staged {
            let file = self.writer.home().join(&name);
            let Some((bytes, hash)) = measured(&file)? else { return Ok(None) };
            match self.means.objects.put_file(&path, &file) {
                Err(Error::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                put => put?,
            }
            added.push((File { name, object, path: path.to_string(), bytes }, hash));
        }
        Ok(Some(added))
    }

    /// The transaction that shows a version.
    fn show(
        &mut self,
        leases: &[Lease],
        chunks: &[In],
        committed: Committed,
        added: Added,
    ) -> Result<i64> {
        let Committed { meta, names, documents } = committed;
        let (part, now_ms) = (self.part, clock::now_ms());
        let reached: Vec<(Part, i64)> =
            leases.iter().map(|lease| (lease.part, self.writer.cursors.of(lease.part))).collect();
        let told = Told { make: self.make.clone(), meta };
        let new = New { told, documents, reached: reached.clone(), names, added };
        let (leases, marks) = (leases.to_vec(), chunks.to_vec());
        let (version, published) = self.means.db().write(move |tx| {
            let version = shards::publish(tx, (part, &leases), &new, now_ms)?;
            for (part, seq) in &reached {
                cursors::set(tx, (*part, cursors::SEARCH), *seq, now_ms)?;
            }
            for it in &marks {
                chunks::mark_task(tx, (&it.lease, it.chunk), "built", None, now_ms)?;
            }
            Ok((version, shards::files(tx, part)?))
        })?;
        self.published = published;
        (self.documents, self.is_of_another_make) = (documents, false);
        self.collect()?;
        Ok(version)
    }

    /// Says what is done with chunks.
    pub fn mark(&self, chunks: &[In], task: &'static str) -> Result<()> {
        let (chunks, now_ms) = (chunks.to_vec(), clock::now_ms());
        self.means.db().write(move |tx| {
            for it in &chunks {
                chunks::mark_task(tx, (&it.lease, it.chunk), task, None, now_ms)?;
            }
            Ok(())
        })
    }

    /// Removes objects that no version has had for a while.
    fn collect(&self) -> Result<()> {
        // In a directory nobody needs long: files that are open stay readable without a
        // name, and whoever comes too late looks again for what is newest.
        let grace_ms = if self.means.spans_parts { 0 } else { DROPPED_GRACE_MS };
        let (part, before_ms) = (self.part, clock::now_ms() - grace_ms);
        let gone =
            move |tx: &mut store::Tx<'_>| shards::dropped(tx, part, before_ms, COLLECTED_MAX);
        let gone = self.means.db().read(gone)?;
        if gone.is_empty() {
            return Ok(());
        }
        for it in &gone {
            self.means.objects.delete(&ObjectPath::parse(&it.path)?)?;
        }
        let ids: Vec<ObjectId> = gone.iter().map(|it| it.object).collect();
        self.means.db().write(move |tx| shards::forget(tx, part, &ids))
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
fn restore(means: &Means, home: &Path, (meta, files): (&str, &[File])) -> Result<()> {
    clear(home)?;
    for it in files {
        means.objects.fetch_file(&ObjectPath::parse(&it.path)?, &home.join(&it.name))?;
    }
    let names: Vec<String> = files.iter().map(|it| it.name.clone()).collect();
    describe(home, meta, &names)
}

/// The size and the hash of a file, if it is there.
fn measured(file: &Path) -> Result<Option<(i64, [u8; 32])>> {
    let mut hasher = blake3::Hasher::new();
    let opened = match fs::File::open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| Error::io(file, error))?,
    };
    hasher.update_reader(opened).map_err(|error| Error::io(file, error))?;
    let bytes = i64::try_from(hasher.count()).unwrap_or(i64::MAX);
    Ok(Some((bytes, hasher.finalize().into())))
}
