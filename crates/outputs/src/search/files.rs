//! A published version of a shard, as tantivy reads an index: nothing is ever written.
//!
//! The files are where the objects are, or have been brought; the version says which of
//! them belong to it, and what the index says of itself. Invariant: what is opened does not
//! change, whatever is published later.

use super::writer::META;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

/// The files of a version.
#[derive(Debug, Clone)]
pub struct VersionFiles {
    /// Where files are; versions share it, and what is mapped of them.
    place: MmapDirectory,
    /// Their names there, by their names in the index.
    names: Arc<HashMap<PathBuf, PathBuf>>,
    /// What the index says of itself.
    meta: Arc<str>,
}

impl VersionFiles {
    /// The files of a version: their names in the index and where they are.
    pub fn new(place: MmapDirectory, names: HashMap<PathBuf, PathBuf>, meta: &str) -> VersionFiles {
        VersionFiles { place, names: Arc::new(names), meta: meta.into() }
    }

    fn name(&self, path: &Path) -> Result<&Path, OpenReadError> {
        let known = self.names.get(path).map(PathBuf::as_path);
        known.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a published version is not changed")
}

impl Directory for VersionFiles {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.place.get_file_handle(self.name(path)?)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let filepath = path.to_owned();
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(path == Path::new(META) || self.names.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let filepath = path.to_owned();
        Err(OpenWriteError::IoError { io_error: Arc::new(read_only()), filepath })
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if path == Path::new(META) {
            return Ok(self.meta.as_bytes().to_vec());
        }
        self.place.atomic_read(self.name(path)?)
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        // Nobody writes, so there is nobody to keep out.
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
