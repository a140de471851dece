//! Objects that are files here before or after: put and fetched whole, without passing
//! through the program where they need not.
//!
//! In a directory on the same disk a file becomes an object by a second name, and an object
//! a file likewise; nothing is copied. Invariant: a file that is put is not changed any
//! more, by anybody, under either name.

use super::{ObjectPath, Objects};
use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

impl Objects {
    /// Makes an object of a file, which must be durable and is not changed any more.
    pub fn put_file(&self, path: &ObjectPath, file: &Path) -> Result<()> {
        if let Some(directory) = &self.directory {
            let to = directory.file(path);
            if let Some(above) = to.parent() {
                fs::create_dir_all(above).map_err(|error| Error::io(above, error))?;
            }
            match fs::hard_link(file, &to) {
                Ok(()) => return directory.sync_file(path).and(directory.sync_ancestors(path)),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(Error::io(file, error));
                }
                // Another disk, or a file system without second names: it is copied.
                Err(_) => {}
            }
        }
        let bytes = fs::read(file).map_err(|error| Error::io(file, error))?;
        self.put(path, bytes)
    }

    /// Makes a file of an object. A file of that name must not be there.
    pub fn fetch_file(&self, path: &ObjectPath, file: &Path) -> Result<()> {
        if let Some(directory) = &self.directory
            && fs::hard_link(directory.file(path), file).is_ok()
        {
            return Ok(());
        }
        let bytes = self.get(path)?;
        let written = File::create_new(file).and_then(|mut to| to.write_all(&bytes));
        written.map_err(|error| Error::io(file, error))
    }

    /// Where an object is a file that can be read as it is; `None` in a bucket.
    pub fn file_of(&self, path: &ObjectPath) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.file(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Location;

    #[test]
    fn a_file_becomes_an_object_and_a_file_again() {
        let place = tempfile::tempdir().unwrap();
        let objects = Objects::open(&Location::Directory(place.path().join("objects"))).unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::write(&from, b"content").unwrap();
        let path = ObjectPath::parse("shards/0/7-x.idx").unwrap();
        objects.put_file(&path, &from).unwrap();
        assert_eq!(objects.get(&path).unwrap(), b"content");
        assert_eq!(fs::read(objects.file_of(&path).unwrap()).unwrap(), b"content");
        fs::remove_file(&from).unwrap();
        objects.fetch_file(&path, &to).unwrap();
        objects.delete(&path).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"content", "it has a name of its own");
        let missing = objects.put_file(&path, &from).unwrap_err();
        assert!(matches!(missing, Error::Io { .. }), "{missing}");
        assert!(objects.fetch_file(&path, &place.path().join("other")).is_err());
    }
}
