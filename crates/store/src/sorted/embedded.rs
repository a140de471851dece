//! A sorted map in the data directory: LSM trees of fjall, one for each family.
//!
//! A key on disk is the part, two bytes, and the key behind its family's byte. A change
//! is one atomic batch over all trees and parts, synced before it is told.
//!
//! Families that are replaced in bulk get new trees beside the old ones; which trees
//! count is a row of a tree of its own, and one write of it switches. A write that fails
//! makes the library refuse all others, since it does not know what is on disk; the map is
//! opened again then, which finds out. Invariant: trees that no row names are left over from
//! a replacement that was cut off, and go. What it may grow to besides its rows, and how that
//! is given back, is in `compaction`.

mod buffers;
mod compaction;
mod faults;
mod half_made;
mod mirror;

use super::{
    BulkReplacement, Family, Habit, Pair, Row, SortedMap, SortedRows, Span, View, ViewReader, Work,
};
use crate::ids::Part;
use crate::tables::leases::Lease;
use crate::{Error, Result, disk, memory};
use buffers::BufferedBytes;
use faults::fault;
use fjall::config::{
    BlockSizePolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, RestartIntervalPolicy,
};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot,
};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

/// Which generation of each family counts.
const GENERATIONS: &str = "generations";
/// Bytes of the journal before the oldest rows are written out.
const JOURNAL_BYTES: u64 = 256 << 20;
/// Threads that write out and merge. Of two, one would do nothing but hand the other its
/// work again and again while there is some.
const WORKERS: usize = 1;
/// Files that are kept open.
const FILES_MAX: usize = 256;

/// Where a map is, and of what it consists.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct MapLocation {
    /// Its directory, which is made if it is not there.
    pub path: PathBuf,
    pub families: &'static [Family],
}

/// A map that this process has open, and no other.
pub struct EmbeddedMap {
    place: MapLocation,
    /// Nothing while it could not be opened again. Whoever uses it holds the lock to read.
    opened: RwLock<Option<OpenedMap>>,
    /// A write has failed: it is to be opened again.
    is_broken: AtomicBool,
    /// Changes come one after the other: each sees what the one before wrote.
    changing: Mutex<()>,
}

/// The map, as long as all goes well.
struct OpenedMap {
    path: PathBuf,
    db: Database,
    generations: Keyspace,
    trees: RwLock<BTreeMap<u8, Tree>>,
    /// Whether the directory goes with the process.
    is_mirror: bool,
}

#[derive(Clone)]
struct Tree {
    family: Family,
    generation: u64,
    keyspace: Keyspace,
    buffered: Arc<BufferedBytes>,
}

impl Tree {
    fn new(family: Family, generation: u64, keyspace: Keyspace) -> Tree {
        Tree { family, generation, keyspace, buffered: Arc::default() }
    }
}

impl EmbeddedMap {
    /// Opens a map, or makes it.
    pub fn open(place: &MapLocation) -> Result<EmbeddedMap> {
        let opened = RwLock::new(Some(OpenedMap::open(place)?));
        let (is_broken, changing) = (AtomicBool::new(false), Mutex::new(()));
        Ok(EmbeddedMap { place: place.clone(), opened, is_broken, changing })
    }

    /// Opens a map that cannot be written, for readers: what never changes is linked into a
    /// directory of this process, the rest (journals, lists of files) is copied there. What is
    /// changed is changed there only.
    pub fn open_mirror(place: &MapLocation, scratch: &Path) -> Result<EmbeddedMap> {
        if place.path.is_dir() {
            mirror::fill(&place.path, scratch)?;
        }
        let place = MapLocation { path: scratch.to_owned(), ..place.clone() };
        let mut opened = OpenedMap::open(&place)?;
        opened.is_mirror = true;
        let (is_broken, changing) = (AtomicBool::new(false), Mutex::new(()));
        Ok(EmbeddedMap { place, opened: RwLock::new(Some(opened)), is_broken, changing })
    }

    /// Opens the map again if a write has failed since it was opened. Whoever looks at it ends
    /// first, and looks at what there is until the disk takes something.
    fn mend(&self) -> Result<()> {
        if !self.is_broken.load(Ordering::SeqCst) {
            return Ok(());
        }
        // Opening it writes.
        disk::try_to_write(&self.place.path)?;
        self.reopen(self.opened.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes the map and opens it again. If that fails, the next change tries it again.
    fn reopen(&self, mut opened: RwLockWriteGuard<'_, Option<OpenedMap>>) -> Result<()> {
        self.is_broken.store(true, Ordering::SeqCst);
        // It has a lock that the next one needs.
        opened.take();
        *opened = Some(OpenedMap::open(&self.place)?);
        self.is_broken.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Looks at the map.
    fn with<T>(&self, work: impl FnOnce(&OpenedMap) -> Result<T>) -> Result<T> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        match opened.as_ref() {
            Some(opened) => work(opened),
            None => Err(Error::Conflict { reason: "the map could not be opened again yet".into() }),
        }
    }

    /// Changes the map, one after the other. After a failure it is opened again before the
    /// next change.
    fn changing<T>(&self, work: impl FnOnce(&OpenedMap) -> Result<T>) -> Result<T> {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.mend()?;
        let done = self.with(work);
        if let Err(Error::Full { .. } | Error::Io { .. } | Error::Corrupt { .. }) = done {
            self.is_broken.store(true, Ordering::SeqCst);
        }
        done
    }
}

impl OpenedMap {
    fn open(place: &MapLocation) -> Result<OpenedMap> {
        let failed = |error| fault(&place.path, error);
        half_made::clear(&place.path)?;
        let is_new = !place.path.exists();
        let db = Database::builder(&place.path)
            .cache_size(memory::LINK_CACHE_BYTES as u64)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(WORKERS)
            .max_cached_files(Some(FILES_MAX))
            .open()
            .map_err(failed)?;
        if is_new {
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&place.path, private)
                .map_err(|error| Error::io(&place.path, error))?;
        }
        let generations = db.keyspace(GENERATIONS, || options(Habit::Looked)).map_err(failed)?;
        let mut trees = BTreeMap::new();
        for family in place.families {
            let found = generations.get([family.byte]).map_err(failed)?;
            let generation = found.as_deref().and_then(number).unwrap_or(0);
            let keyspace = tree(&db, *family, generation)?;
            trees.insert(family.byte, Tree::new(*family, generation, keyspace));
        }
        let (path, trees) = (place.path.clone(), RwLock::new(trees));
        let map = OpenedMap { path, db, generations, trees, is_mirror: false };
        map.drop_leftovers()?;
        Ok(map)
    }

    fn trees(&self) -> BTreeMap<u8, Tree> {
        self.trees.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn drop_leftovers(&self) -> Result<()> {
        let trees = self.trees();
        let known = |name: &str| {
            name == GENERATIONS
                || trees.values().any(|it| name == tree_name(it.family, it.generation))
        };
        for name in self.db.list_keyspace_names() {
            if !known(&name) {
                let open = || KeyspaceCreateOptions::default();
                let leftover = self.db.keyspace(&name, open).map_err(|error| self.fault(error))?;
                self.db.delete_keyspace(leftover).map_err(|error| self.fault(error))?;
            }
        }
        Ok(())
    }

    fn fault(&self, error: fjall::Error) -> Error {
        fault(self.generations.path(), error)
    }
}

struct SnapshotView<'a> {
    map: &'a OpenedMap,
    trees: BTreeMap<u8, Tree>,
    snapshot: Snapshot,
}

impl SnapshotView<'_> {
    fn tree(&self, key: &[u8]) -> Result<&Tree> {
        let found = key.first().and_then(|byte| self.trees.get(byte));
        found.ok_or_else(|| no_family(key))
    }

    fn keyspace(&self, key: &[u8]) -> Result<&Keyspace> {
        self.tree(key).map(|it| &it.keyspace)
    }
}

impl View for SnapshotView<'_> {
    fn get_many(&self, part: Part, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut at = Vec::new();
        keys.iter()
            .map(|key| {
                store_into(&mut at, part, &key[1..]);
                let found = self.snapshot.get(self.keyspace(key)?, &at);
                Ok(found.map_err(|error| self.map.fault(error))?.map(|value| value.to_vec()))
            })
            .collect()
    }

    fn scan(&self, part: Part, span: &Span, limit: usize) -> Result<Vec<Pair>> {
        let keyspace = self.keyspace(&span.from)?;
        let family = span.from[0];
        let to = match span.to.split_first() {
            Some((first, rest)) if *first == family => stored(part, rest),
            _ => stored(Part(part.0 + 1), &[]),
        };
        let from = stored(part, &span.from[1..]);
        if from >= to {
            return Ok(Vec::new());
        }
        let rows = self.snapshot.range(keyspace, from..to);
        let read = |guard: fjall::Guard| {
            let (key, value) = guard.into_inner().map_err(|error| self.map.fault(error))?;
            Ok(([&[family], &key[2..]].concat(), value.to_vec()))
        };
        match span.backwards {
            false => rows.take(limit).map(read).collect(),
            true => rows.rev().take(limit).map(read).collect(),
        }
    }
}

impl SortedMap for EmbeddedMap {
    fn spans_parts(&self) -> bool {
        true
    }

    fn change(&self, _part: Part, _lease: Option<&Lease>, work: Work) -> Result<()> {
        // Whoever holds the directory holds every lease in it.
        self.changing(|opened| opened.change(work))
    }

    fn look(&self, mut look: ViewReader) -> Result<()> {
        // The trees first: a snapshot that is older than a switch sees the old ones whole.
        self.with(|opened| {
            let trees = opened.trees();
            look(&SnapshotView { map: opened, snapshot: opened.db.snapshot(), trees })
        })
    }

    fn replace(&self, what: &BulkReplacement<'_>, rows: &mut SortedRows<'_>) -> Result<()> {
        // Whoever holds the directory holds every lease in it.
        self.changing(|opened| opened.replace(what.families, rows))
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.with(OpenedMap::disk_bytes)
    }

    fn compact(&self) -> Result<()> {
        self.changing(|opened| {
            for tree in opened.trees().values() {
                let keyspace = &tree.keyspace;
                keyspace.rotate_memtable_and_wait().map_err(|error| opened.fault(error))?;
                keyspace.major_compact().map_err(|error| opened.fault(error))?;
            }
            Ok(())
        })
    }

    fn tidy(&self) -> Result<()> {
        if !self.with(OpenedMap::is_long)? {
            return Ok(());
        }
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.mend()?;
        if !self.with(OpenedMap::write_out)? {
            return Ok(());
        }
        // Whoever waits to write keeps new readers out, so it is not waited for old ones.
        match self.opened.try_write() {
            Ok(opened) if opened.as_ref().is_some_and(|it| !it.is_mirror) => self.reopen(opened),
            _ => Ok(()),
        }
    }
}

impl OpenedMap {
    fn change(&self, work: Work) -> Result<()> {
        let trees = self.trees();
        let view = SnapshotView { map: self, snapshot: self.db.snapshot(), trees };
        let rows = work(&view)?;
        let mut batch = fjall::OwnedWriteBatch::with_capacity(self.db.clone(), rows.len())
            .durability(Some(PersistMode::SyncAll));
        let mut at = Vec::new();
        for Row { part, key, value } in rows {
            let tree = view.tree(&key)?;
            let keyspace = &tree.keyspace;
            store_into(&mut at, part, &key[1..]);
            tree.buffered.add(at.len() + value.as_ref().map_or(0, Vec::len));
            match value {
                Some(value) => batch.insert(keyspace, at.as_slice(), value),
                None => batch.remove(keyspace, at.as_slice()),
            }
        }
        drop(view.snapshot);
        batch.commit().map_err(|error| self.fault(error))?;
        self.write_out_full(view.trees.values())
    }

    fn replace(&self, families: &[Family], rows: &mut SortedRows<'_>) -> Result<()> {
        let old = self.trees();
        let mut new = BTreeMap::new();
        for family in families {
            let generation = old.get(&family.byte).map_or(0, |it| it.generation) + 1;
            let keyspace = tree(&self.db, *family, generation)?;
            new.insert(family.byte, Tree::new(*family, generation, keyspace));
        }
        let failed = |error| self.fault(error);
        let mut filling = BTreeMap::new();
        for (byte, tree) in &new {
            filling.insert(*byte, tree.keyspace.start_ingestion().map_err(failed)?);
        }
        while let Some(Row { part, key, value }) = rows()? {
            let into = key.first().and_then(|byte| filling.get_mut(byte));
            let into = into.ok_or_else(|| no_family(&key))?;
            let value = value.unwrap_or_default();
            into.write(stored(part, &key[1..]), value).map_err(failed)?;
        }
        for filled in filling.into_values() {
            filled.finish().map_err(failed)?;
        }
        let mut switch = self.db.batch().durability(Some(PersistMode::SyncAll));
        for tree in new.values() {
            switch.insert(&self.generations, [tree.family.byte], tree.generation.to_be_bytes());
        }
        switch.commit().map_err(failed)?;
        self.trees.write().unwrap_or_else(PoisonError::into_inner).extend(new);
        for family in families {
            if let Some(tree) = old.get(&family.byte) {
                self.db.delete_keyspace(tree.keyspace.clone()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// A key as it is on disk.
fn stored(part: Part, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + key.len());
    store_into(&mut out, part, key);
    out
}

/// The same, into a buffer that is used again. Parts are fewer than two bytes can tell.
fn store_into(out: &mut Vec<u8>, part: Part, key: &[u8]) {
    out.clear();
    out.extend_from_slice(&u16::try_from(part.0).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(key);
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn tree_name(family: Family, generation: u64) -> String {
    format!("{}-{generation}", family.name)
}

fn tree(db: &Database, family: Family, generation: u64) -> Result<Keyspace> {
    let name = tree_name(family, generation);
    db.keyspace(&name, || options(family.habit)).map_err(|error| fault(Path::new(&name), error))
}

fn options(habit: Habit) -> KeyspaceCreateOptions {
    let lz4 = CompressionPolicy::all(CompressionType::Lz4);
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(memory::LINK_TREE_BYTES_MAX as u64)
        .data_block_compression_policy(lz4);
    match habit {
        Habit::Looked => options.data_block_size_policy(BlockSizePolicy::all(4 << 10)),
        Habit::Ranked => options
            .data_block_size_policy(BlockSizePolicy::all(16 << 10))
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(32))
            // Nobody looks for one of them.
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::None)),
        Habit::Kept => options.data_block_size_policy(BlockSizePolicy::all(32 << 10)),
    }
}

fn no_family(key: &[u8]) -> Error {
    Error::Statement { reason: format!("no family of this map has the key {key:x?}") }
}
