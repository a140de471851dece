//! A plain copy of a generation, for web servers that follow no links and for other machines.
//!
//! Invariants: nothing outside of the directory is touched; every file is replaced by a rename;
//! what was the same in the last checkout is not written again. Unlike `webroot`, a copy is
//! brought up to date file by file.

use super::read;
use crate::mirror::Mirror;
use crate::mirror::assembler::listing::{self, Entry, Listing};
use crate::mirror::digest::Digest;
use std::path::{Path, PathBuf};
use store::beneath::{Beneath, FileKind};
use store::{Error, Result};

/// Says which folder was checked out last; its listing is in the mirror as long as that is known.
const STATE: &str = ".driftline-checkout";

/// What a checkout did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckedOut {
    /// Files that were written.
    pub written: u64,
    /// Files that were removed.
    pub removed: u64,
}

/// Two folders of one path: what was checked out, and what is to be.
struct Pair {
    path: PathBuf,
    before: Option<Digest>,
    after: Option<Digest>,
}

/// Brings a directory to what a generation holds. What it did not write there stays.
pub fn checkout(mirror: &Mirror, number: u64, dir: &Path) -> Result<CheckedOut> {
    let _working = mirror.begin(&mirror.assembler);
    let root = read(mirror, number)?.root()?;
    std::fs::create_dir_all(dir).map_err(|error| Error::io(dir, error))?;
    let copy = Copy { mirror, dir, to: Beneath::open(dir).map_err(|error| Error::io(dir, error))? };
    let before = copy.state(mirror)?;
    let mut done = CheckedOut::default();
    let mut open = vec![Pair { path: PathBuf::new(), before, after: Some(root) }];
    while let Some(pair) = open.pop() {
        copy.folder(&pair, &mut done, &mut open)?;
    }
    copy.write(Path::new(STATE), root.to_string().as_bytes())?;
    rustix::fs::syncfs(copy.to.root()).map_err(|error| Error::io(dir, error.into()))?;
    Ok(done)
}

struct Copy<'m> {
    mirror: &'m Mirror,
    dir: &'m Path,
    to: Beneath,
}

impl Copy<'_> {
    /// The folder that was checked out last, if its listing is still there.
    fn state(&self, mirror: &Mirror) -> Result<Option<Digest>> {
        let text = match self.to.read(Path::new(STATE)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(self.dir.join(STATE), error)),
        };
        let Some(digest) = Digest::parse(text.trim()) else { return Ok(None) };
        Ok(mirror.disk.kind(listing::path(&digest))?.map(|_| digest))
    }

    fn listing(&self, digest: Option<Digest>) -> Result<Listing> {
        match digest {
            Some(digest) => listing::read(&self.mirror.disk, &digest),
            None => Ok(Listing::new()),
        }
    }

    fn folder(&self, pair: &Pair, done: &mut CheckedOut, open: &mut Vec<Pair>) -> Result<()> {
        if pair.before == pair.after {
            return Ok(());
        }
        let (before, after) = (self.listing(pair.before)?, self.listing(pair.after)?);
        for (name, entry) in &before {
            let path = pair.path.join(name);
            match (entry, after.get(name)) {
                (Entry::File(_), Some(Entry::File(_))) => {}
                (Entry::File(_), _) => {
                    self.remove(&path)?;
                    done.removed += 1;
                }
                (Entry::Folder(_), Some(Entry::Folder(_))) => {}
                (Entry::Folder(folder), _) => {
                    open.push(Pair { path, before: Some(*folder), after: None });
                }
            }
        }
        for (name, entry) in &after {
            let path = pair.path.join(name);
            let known = before.get(name);
            match entry {
                Entry::File(file) if known != Some(entry) => {
                    self.write(&path, &self.mirror.disk.blob(file)?)?;
                    done.written += 1;
                }
                Entry::File(_) => {}
                Entry::Folder(folder) => {
                    let before = match known {
                        Some(Entry::Folder(before)) => Some(*before),
                        _ => None,
                    };
                    open.push(Pair { path, before, after: Some(*folder) });
                }
            }
        }
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.to.write(path, bytes).map_err(|error| Error::io(self.dir.join(path), error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io(self.dir.join(path), error);
        if self.to.kind(path).map_err(failed)? == Some(FileKind::File) {
            self.to.remove_file(path).map_err(|error| Error::io(self.dir.join(path), error))?;
        }
        // Folders that are empty now go with their last file.
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        for folder in above {
            if self.to.remove_directory(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}
