//! The tree of folders: changes come in the order of paths, folders are made as they end.
//!
//! Invariants: only listings of folders that change are read, one for each level at a time; a
//! bucket becomes visible under its digest when it is whole.

use super::listing::{self, Entry, Listing};
use crate::mirror::digest::Digest;
use crate::mirror::disk::Disk;
use crate::mirror::lists::Change;
use std::path::Path;
use store::{Error, Result};

pub(in crate::mirror) const BUCKETS: &str = "buckets";

/// A tree of folders that is being changed.
pub(super) struct Folders<'d> {
    disk: &'d Disk,
    root: Listing,
    /// The folders from the root down to where the last change was.
    open: Vec<OpenFolder>,
}

struct OpenFolder {
    name: String,
    listing: Listing,
}

impl<'d> Folders<'d> {
    /// The tree below a root folder, or an empty one.
    pub(super) fn open(disk: &'d Disk, root: Option<Digest>) -> Result<Folders<'d>> {
        let root = root.map(|digest| listing::read(disk, &digest)).transpose()?;
        Ok(Folders { disk, root: root.unwrap_or_default(), open: Vec::new() })
    }

    /// Applies a change; changes of one folder come together.
    pub(super) fn apply(&mut self, change: &Change) -> Result<()> {
        let mut folders: Vec<&str> = change.path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        let is_safe = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains('\0');
        if !folders.iter().all(is_safe) || !is_safe(&name) {
            let reason = format!("{:?} does not lead below the webroot", change.path);
            return Err(Error::corrupt("a list of the reactor", reason));
        }
        let shared = self.open.iter().zip(&folders).take_while(|(open, it)| open.name == **it);
        let shared = shared.count();
        while self.open.len() > shared {
            self.close()?;
        }
        for name in &folders[shared..] {
            let listing = match self.innermost().get(*name).copied() {
                Some(Entry::Folder(digest)) => listing::read(self.disk, &digest)?,
                Some(Entry::File(_)) => {
                    let reason = format!("{:?} is both a file and a folder", change.path);
                    return Err(Error::corrupt("a list of the reactor", reason));
                }
                None => Listing::new(),
            };
            self.open.push(OpenFolder { name: (*name).to_owned(), listing });
        }
        set(self.innermost(), name, change.file.map(Entry::File));
        Ok(())
    }

    /// Applies a change of the root folder.
    pub(super) fn apply_to_root(&mut self, change: &Change) -> Result<()> {
        while !self.open.is_empty() {
            self.close()?;
        }
        set(&mut self.root, &change.path, change.file.map(Entry::File));
        Ok(())
    }

    fn innermost(&mut self) -> &mut Listing {
        match self.open.last_mut() {
            Some(open) => &mut open.listing,
            None => &mut self.root,
        }
    }

    /// Makes the innermost folder, and puts it into the one above.
    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let entry = match open.listing.is_empty() {
            true => None,
            false => Some(Entry::Folder(make(self.disk, &open.listing)?)),
        };
        set(self.innermost(), &open.name, entry);
        Ok(())
    }

    /// The digest of the root folder, when all changes were applied.
    pub(super) fn finish(mut self) -> Result<Digest> {
        while !self.open.is_empty() {
            self.close()?;
        }
        make(self.disk, &self.root)
    }
}

fn set(listing: &mut Listing, name: &str, entry: Option<Entry>) {
    match entry {
        Some(entry) => drop(listing.insert(name.to_owned(), entry)),
        None => drop(listing.remove(name)),
    }
}

pub(in crate::mirror) fn path(digest: &Digest) -> String {
    format!("{BUCKETS}/{digest}")
}

/// Makes the bucket of a listing, unless it is there.
pub(in crate::mirror) fn make(disk: &Disk, listing: &Listing) -> Result<Digest> {
    let digest = listing::keep(disk, listing)?;
    let bucket = path(&digest);
    if disk.kind(&bucket)?.is_some() {
        return Ok(digest);
    }
    let unfinished = disk.begin_directory()?;
    for (name, entry) in listing {
        let place = unfinished.join(name);
        match entry {
            Entry::File(file) => disk.link_blob(file, place)?,
            Entry::Folder(folder) => disk.new_symlink(&format!("../{folder}"), place)?,
        }
    }
    disk.make_directory(Path::new(BUCKETS))?;
    disk.rename(&unfinished, &bucket)?;
    Ok(digest)
}
