//! What a directory of objects needs beyond `object_store` to survive a power cut.
//!
//! `object_store` syncs a new file, the directory it is in, and directories it
//! makes. Left to do here: directories that an earlier, killed process made and
//! never synced; deletes; and the `name#1` file that a killed writer leaves.
//! Invariant: no directory entry between the root and a returned object is
//! unsynced.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::path::ObjectPath;
use crate::{Error, Result};

/// Unfinished files of one object: each killed try leaves at most one.
const LEFT_BEHIND_MAX: u32 = 64;
/// Directories remembered as synced; beyond it we forget and sync again.
const REMEMBERED_MAX: usize = 100_000;

/// The root directory of a store.
pub(super) struct Directory {
    root: PathBuf,
    synced: Mutex<HashSet<PathBuf>>,
}

impl Directory {
    /// Makes the root if it does not exist, durably.
    pub(super) fn open(root: &Path) -> Result<Directory> {
        let made = root.ancestors().take_while(|above| !above.exists()).count();
        fs::create_dir_all(root).map_err(|source| refused(root, source))?;
        let root = root.canonicalize().map_err(|source| refused(root, source))?;
        // The new directories, and the old one that names the uppermost of them.
        for directory in root.ancestors().take(made + 1) {
            sync(directory).map_err(|source| refused(directory, source))?;
        }
        crate::ours::claim(&root);
        Ok(Directory { root, synced: Mutex::default() })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Syncs the directories above an object, once per process for each.
    pub(super) fn sync_ancestors(&self, path: &ObjectPath) -> Result<()> {
        let file = self.file(path);
        let above = file.ancestors().skip(1).take_while(|above| above.starts_with(&self.root));
        for directory in above {
            // A poisoned set is still a set of directories that were synced.
            let known = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
            if known.contains(directory) {
                return Ok(());
            }
            drop(known);
            sync(directory).map_err(|source| refused(directory, source))?;
        }
        let mut known = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.extend(file.parent().map(Path::to_owned));
        Ok(())
    }

    /// Syncs an object that an earlier try has written, and its name.
    pub(super) fn sync_file(&self, path: &ObjectPath) -> Result<()> {
        let file = self.file(path);
        let synced = File::open(&file).and_then(|file| file.sync_all());
        synced.map_err(|source| refused(&file, source))?;
        self.sync_parent(&file)
    }

    /// Removes what killed writers left of an object, and makes its deletion durable.
    pub(super) fn finish_delete(&self, path: &ObjectPath) -> Result<()> {
        let file = self.file(path);
        for number in 1..=LEFT_BEHIND_MAX {
            let mut name = file.clone().into_os_string();
            name.push(format!("#{number}"));
            match fs::remove_file(&name) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(source) => return Err(refused(Path::new(&name), source)),
            }
        }
        self.sync_parent(&file)
    }

    fn sync_parent(&self, file: &Path) -> Result<()> {
        let parent = file.parent().unwrap_or(&self.root);
        match sync(parent) {
            // Nothing was ever written there.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map_err(|source| refused(parent, source)),
        }
    }

    pub(super) fn file(&self, path: &ObjectPath) -> PathBuf {
        self.root.join(path.as_str())
    }
}

/// Only Unix lets a directory be opened and synced; elsewhere there is no such call.
fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

fn refused(path: &Path, source: io::Error) -> Error {
    Error::io(path, source)
}
