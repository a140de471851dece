//! What a map in a directory gives back: the journal, once its rows are in tables, and
//! tables whose rows are superseded.
//!
//! The library begins another journal, and removes the old one, only behind 64 MB of it, and
//! rows are written out only behind a buffer full of a tree ([`buffers`](super::buffers)). A small
//! map would never come to either: its journal has all that it was ever told, and each
//! process would read it all. So a map that is closed writes its rows out and empties its
//! journal, and one that stays open is closed and opened again when its journal has become
//! longer than its tables.
//!
//! Invariants: a journal is emptied by whoever has the map open, when every row is in a table
//! that is synced, and nothing is written behind that; a journal that is there is read and
//! counts, so that a crash at any point loses nothing.

use super::{Keyspace, OpenedMap};
use crate::{Error, Result};
use fjall::PersistMode;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of the journal that a map may leave when it is closed: less is not worth the files
/// that would be written instead. Of a small map it is a quarter of its tables.
const JOURNAL_LEFT_BYTES: u64 = 256 << 10;
/// Bytes of the journal that the smallest map may leave.
const JOURNAL_LEFT_BYTES_MIN: u64 = 16 << 10;
/// Bytes of the journal that an open map has at least before it is shortened.
const JOURNAL_OPEN_BYTES: u64 = 4 << 20;
/// Bytes of a tree up to which it is compacted by whoever closes it: a second at most. Those
/// of a larger tree that are superseded are a small share of it, because the library merges
/// its tables by then.
const COMPACTED_BYTES_MAX: u64 = 64 << 20;
/// Bytes by which a small tree may grow before it is compacted, whatever its size.
const GROWN_BYTES: u64 = 16 << 10;
/// How long it is waited for rows to be written out.
const WRITTEN_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether they are.
const LOOK: Duration = Duration::from_millis(2);

impl OpenedMap {
    /// Bytes on the disk. A new journal is a file of 64 MB with nothing in it.
    pub(super) fn disk_bytes(&self) -> Result<u64> {
        Ok(journal_bytes(&self.path)? + self.table_bytes())
    }

    pub(super) fn table_bytes(&self) -> u64 {
        self.keyspaces().iter().map(Keyspace::disk_space).sum()
    }

    /// Whether the journal has become longer than what it is the journal of.
    pub(super) fn is_long(&self) -> Result<bool> {
        let bytes = journal_bytes(&self.path)?;
        Ok(bytes > JOURNAL_OPEN_BYTES && bytes > self.table_bytes() && !self.is_mirror)
    }

    fn keyspaces(&self) -> Vec<Keyspace> {
        let trees = self.trees();
        let trees = trees.values().map(|tree| tree.keyspace.clone());
        trees.chain([self.generations.clone()]).collect()
    }

    /// Writes all rows into tables, and compacts small trees that have grown by a quarter. Nobody
    /// may change anything meanwhile. Whether all of it is in tables.
    pub(super) fn write_out(&self) -> Result<bool> {
        let until = Instant::now() + WRITTEN_MAX;
        if !self.flush(&self.keyspaces(), until)? {
            return Ok(false);
        }
        let mut sizes = self.db.batch().durability(Some(PersistMode::SyncAll));
        let mut is_new = false;
        for tree in self.trees().values() {
            let key = compacted_key(tree.family.byte);
            let known = self.generations.get(key).map_err(|error| self.fault(error))?;
            let known = known.as_deref().and_then(super::number);
            let before = tree.keyspace.disk_space();
            let is_grown = before > known.map_or(0, |known| known + known / 4 + GROWN_BYTES);
            if is_grown && before <= COMPACTED_BYTES_MAX && tree.keyspace.table_count() > 1 {
                tree.keyspace.major_compact().map_err(|error| self.fault(error))?;
            }
            let now = tree.keyspace.disk_space();
            if is_grown || known.is_some_and(|known| now < known) {
                sizes.insert(&self.generations, key, now.to_be_bytes());
                is_new = true;
            }
        }
        if !is_new {
            return Ok(true);
        }
        sizes.commit().map_err(|error| self.fault(error))?;
        self.flush(std::slice::from_ref(&self.generations), until)
    }

    /// Writes what is in memory into tables, and waits until it is there.
    fn flush(&self, keyspaces: &[Keyspace], until: Instant) -> Result<bool> {
        for keyspace in keyspaces {
            keyspace.rotate_memtable().map_err(|error| self.fault(error))?;
        }
        while keyspaces.iter().any(|it| it.sealed_memtable_count() > 0) {
            // A thread that could not write has ended, and says so here.
            self.db.persist(PersistMode::Buffer).map_err(|error| self.fault(error))?;
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::park_timeout(LOOK);
        }
        Ok(true)
    }
}

/// What is only in the journal is written out, so that the next process does not read it
/// all before its first answer, and the journal is emptied.
impl Drop for OpenedMap {
    fn drop(&mut self) {
        let left = (self.table_bytes() / 4).clamp(JOURNAL_LEFT_BYTES_MIN, JOURNAL_LEFT_BYTES);
        let is_short = journal_bytes(&self.path).is_ok_and(|bytes| bytes <= left);
        if is_short || self.is_mirror {
            return;
        }
        // If this fails the journal stays, and has it all.
        if let Ok(true) = self.write_out() {
            let _ = empty_journal(&self.path);
        }
    }
}

/// The key of a tree's size when it was last compacted, beside those of generations.
fn compacted_key(family: u8) -> [u8; 2] {
    [family, b'c']
}

/// Empties the newest journal. Older ones, if there are any, the library removes.
fn empty_journal(path: &Path) -> Result<()> {
    let Some((_, newest)) = journals(path)?.into_iter().max() else { return Ok(()) };
    let failed = |error| Error::io(&newest, error);
    let file = fs::File::options().write(true).open(&newest).map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    file.sync_all().map_err(failed)
}

/// Bytes that journals take on the disk, holes not counted.
fn journal_bytes(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for (_, file) in journals(path)? {
        match fs::metadata(&file) {
            Ok(found) => bytes += found.len().min(found.blocks() * 512),
            // The library has removed it meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&file, error)),
        }
    }
    Ok(bytes)
}

/// Journals, with their numbers.
fn journals(path: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let failed = |error| Error::io(path, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let is_journal = file.extension().is_some_and(|it| it == "jnl");
        let number = file.file_stem().and_then(|it| it.to_str()).and_then(|it| it.parse().ok());
        found.extend(number.filter(|_| is_journal).map(|number| (number, file)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
