//! Sweeping: what no retained generation and no module needs goes.
//!
//! Kept are the newest generations, the one that is shown, the members as they are now, what is in
//! the journal, and the x-files from a snapshot on that is no newer than the oldest generation.
//! Everything is first marked and then swept. Invariants: no module works meanwhile; a reader that
//! has resolved a path in what is shown finds the file; eight bytes of memory for each file that
//! stays.

use super::assembler::folders::{self, BUCKETS};
use super::assembler::listing::{self, Entry};
use super::digest::Digest;
use super::disk::BLOBS;
use super::{Mirror, assembler, generations, parser, reactor, spider, x_files};
use std::collections::HashSet;
use store::Result;

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Generations that are older than those kept.
    pub generations: u64,
    /// X-files that every module has applied, and no generation that is kept is newer than.
    pub x_files: u64,
    /// Folders of generations.
    pub buckets: u64,
    /// Files with bytes of documents.
    pub blobs: u64,
}

/// Removes what is not needed any more.
pub fn sweep(mirror: &Mirror, now_ms: i64) -> Result<Swept> {
    let _alone = mirror.stop_all();
    let mut swept = Swept::default();
    let oldest = remove_generations(mirror, now_ms, &mut swept)?;
    remove_x_files(mirror, oldest, &mut swept)?;
    let marked = Marked::find(mirror)?;
    remove_buckets(mirror, &marked, &mut swept)?;
    remove_blobs(mirror, &marked, &mut swept)?;
    Ok(swept)
}

/// Removes old generations. Returns the number of the oldest that stays.
fn remove_generations(mirror: &Mirror, now_ms: i64, swept: &mut Swept) -> Result<u64> {
    let generations = generations::list(mirror)?;
    let newest = assembler::cursor(mirror)?.number;
    let count = generations.len() as u64;
    let mut oldest = newest;
    for (at, generation) in generations.iter().enumerate() {
        let is_beyond = count - at as u64 > mirror.settings.keep.max(1);
        let age_ms = now_ms.saturating_sub(generation.assembled_ms);
        let is_old = mirror.settings.keep_ms.is_some_and(|keep_ms| age_ms > keep_ms);
        let is_needed = generation.is_shown || generation.number == newest;
        if (is_beyond || is_old) && !is_needed {
            generations::remove(mirror, generation.number)?;
            swept.generations += 1;
        } else {
            oldest = oldest.min(generation.number);
        }
    }
    Ok(oldest)
}

/// Removes x-files before the newest snapshot that is no newer than the oldest generation, but none
/// that a module has yet to apply; and writes a snapshot when the newest is far behind.
fn remove_x_files(mirror: &Mirror, oldest: u64, swept: &mut Swept) -> Result<()> {
    let assembler = assembler::cursor(mirror)?;
    let applied = [
        spider::cursor(mirror)?.number,
        parser::cursor(mirror)?,
        reactor::cursor(mirror)?.number,
        assembler.number,
    ];
    let through = applied.into_iter().min().unwrap_or(0).min(oldest);
    let snapshots = x_files::snapshots(&mirror.disk)?;
    let published = spider::cursor(mirror)?.number;
    let behind = published.saturating_sub(snapshots.last().copied().unwrap_or(0));
    if behind >= mirror.settings.keep.max(1) {
        spider::snapshot(mirror)?;
    }
    if let Some(base) = snapshots.iter().rev().find(|number| **number <= through) {
        for number in x_files::numbers(&mirror.disk)?.into_iter().take_while(|it| it < base) {
            x_files::remove(&mirror.disk, number)?;
            swept.x_files += 1;
        }
        let old = snapshots.iter().take_while(|number| *number < base);
        old.into_iter().try_for_each(|it| x_files::remove_snapshot(&mirror.disk, *it))?;
    }
    reactor::remove_lists(mirror, assembler.step)
}

/// What stays, by the first eight bytes of digests. That two share them keeps one for nothing.
struct Marked {
    listings: HashSet<Digest>,
    /// Sorted.
    blobs: Vec<u64>,
}

impl Marked {
    fn find(mirror: &Mirror) -> Result<Marked> {
        let mut marked = Marked { listings: HashSet::new(), blobs: Vec::new() };
        let mut open = Vec::new();
        for generation in generations::list(mirror)? {
            open.push(generation.root()?);
        }
        open.extend(assembler::cursor(mirror)?.root);
        while let Some(digest) = open.pop() {
            if !marked.listings.insert(digest) {
                continue;
            }
            for entry in listing::read(&mirror.disk, &digest)?.into_values() {
                match entry {
                    Entry::File(file) => marked.blobs.push(file.short()),
                    Entry::Folder(folder) => open.push(folder),
                }
            }
            marked.compact();
        }
        let mut found = |digest: &Digest| marked.blobs.push(digest.short());
        spider::digests(mirror, &mut found)?;
        reactor::digests(mirror, &mut found)?;
        for number in x_files::numbers(&mirror.disk)? {
            x_files::digests(&mirror.disk, number, &mut found)?;
        }
        for number in x_files::snapshots(&mirror.disk)? {
            x_files::snapshot_digests(&mirror.disk, number, &mut found)?;
        }
        reactor::list_digests(mirror, &mut found)?;
        marked.blobs.sort_unstable();
        marked.blobs.dedup();
        Ok(marked)
    }

    /// Generations share most of what they hold.
    fn compact(&mut self) {
        /// Marks that are collected before the same ones are merged.
        const COLLECTED_MAX: usize = 4 << 20;
        if self.blobs.len() == self.blobs.capacity() && self.blobs.len() >= COLLECTED_MAX {
            self.blobs.sort_unstable();
            self.blobs.dedup();
        }
    }

    fn has_blob(&self, digest: &Digest) -> bool {
        self.blobs.binary_search(&digest.short()).is_ok()
    }
}

/// Removes folders and listings that no generation has.
fn remove_buckets(mirror: &Mirror, marked: &Marked, swept: &mut Swept) -> Result<()> {
    let disk = &mirror.disk;
    for name in disk.names(BUCKETS)? {
        let Some(digest) = Digest::parse(&name) else { continue };
        if marked.listings.contains(&digest) {
            continue;
        }
        // A name that says what it holds must not outlive a part of it.
        let leaving = disk.begin_directory()?;
        disk.rename(folders::path(&digest), &leaving)?;
        disk.remove_directory(&leaving)?;
        swept.buckets += 1;
    }
    for name in disk.names(listing::DIR)? {
        let Some(digest) = Digest::parse(&name) else { continue };
        if !marked.listings.contains(&digest) {
            disk.remove(listing::path(&digest))?;
        }
    }
    Ok(())
}

fn remove_blobs(mirror: &Mirror, marked: &Marked, swept: &mut Swept) -> Result<()> {
    let disk = &mirror.disk;
    for folder in disk.names(BLOBS)? {
        for name in disk.names(format!("{BLOBS}/{folder}"))? {
            let Some(digest) = Digest::parse(&name) else { continue };
            if !marked.has_blob(&digest) {
                disk.remove(super::disk::blob_path(&digest))?;
                swept.blobs += 1;
            }
        }
    }
    Ok(())
}
