//! Whether the files of shards are what was published: each is read once in a process, before
//! the library opens it.
//!
//! A file that was checked is known by its place on the disk, its size and when it was written,
//! so that it is read again if anybody has changed it, and is not if it only got a second name.
//! Invariants: what is opened had the checksum of its object when it was first opened here; what
//! is known is bounded by the files of what is published ([`CheckedFiles::keep`]).

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::ids::{ObjectId, Part};
use store::tables::shards::File;
use store::{Error, Result};

/// What helps against damage.
pub const REMEDY: &str = "make the index anew with `driftline search rebuild`";

/// Files that were checked. A clone knows what the other one does.
#[derive(Debug, Clone, Default)]
pub struct CheckedFiles {
    known: Arc<Mutex<FilesByObject>>,
}

/// By shard and object: the files that have its bytes.
type FilesByObject = HashMap<Part, HashMap<ObjectId, Vec<FileId>>>;

/// A file, as long as nobody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileId {
    fn of(found: &Metadata) -> FileId {
        let modified = (found.mtime(), found.mtime_nsec());
        FileId { device: found.dev(), inode: found.ino(), bytes: found.size(), modified }
    }
}

impl CheckedFiles {
    fn known(&self) -> MutexGuard<'_, FilesByObject> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails unless a file has the checksum of its object. It is read if that is not known.
    pub fn check(&self, part: Part, file: &File, at: &Path) -> Result<()> {
        let found = fs::metadata(at).map_err(|error| unreadable(part, file, at, error))?;
        let id = FileId::of(&found);
        let known =
            |known: &FilesByObject| Some(known.get(&part)?.get(&file.object)?.contains(&id));
        if known(&self.known()) == Some(true) {
            return Ok(());
        }
        read_whole(part, file, at)?;
        self.note(part, file.object, id);
        Ok(())
    }

    /// A file has the bytes of its object: this process has just read it.
    pub fn has_read(&self, part: Part, object: ObjectId, at: &Path) {
        if let Ok(found) = fs::metadata(at) {
            self.note(part, object, FileId::of(&found));
        }
    }

    fn note(&self, part: Part, object: ObjectId, id: FileId) {
        let mut known = self.known();
        let files = known.entry(part).or_default().entry(object).or_default();
        // A file has one name in a writer's directory and one where it is served from.
        files.retain(|it| *it != id);
        files.truncate(1);
        files.push(id);
    }

    /// Forgets what is not among the files of a shard any more.
    pub fn keep(&self, part: Part, files: &[File]) {
        if let Some(known) = self.known().get_mut(&part) {
            known.retain(|object, _| files.iter().any(|it| it.object == *object));
        }
    }
}

/// Reads a file, whatever is known of it, and fails unless it has the checksum of its object.
pub fn read_whole(part: Part, file: &File, at: &Path) -> Result<()> {
    let found = measured(at)?;
    let (bytes, hash) = found.ok_or_else(|| damaged(part, file, "it is missing"))?;
    compare_measured(part, file, bytes, hash)
}

/// Fails unless these are the bytes of a file.
pub fn compare(part: Part, file: &File, bytes: &[u8]) -> Result<()> {
    let count = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    compare_measured(part, file, count, blake3::hash(bytes).into())
}

fn compare_measured(part: Part, file: &File, bytes: i64, hash: [u8; 32]) -> Result<()> {
    if bytes != file.bytes {
        let why = format!("it has {bytes} bytes, and {} were published", file.bytes);
        return Err(damaged(part, file, &why));
    }
    if file.hash != Some(hash) {
        return Err(damaged(part, file, "its checksum is not that of what was published"));
    }
    Ok(())
}

/// The size and the hash of a file, if it is there.
pub fn measured(at: &Path) -> Result<Option<(i64, [u8; 32])>> {
    let mut hasher = blake3::Hasher::new();
    let opened = match fs::File::open(at) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| Error::io(at, error))?,
    };
    hasher.update_reader(opened).map_err(|error| Error::io(at, error))?;
    let bytes = i64::try_from(hasher.count()).unwrap_or(i64::MAX);
    Ok(Some((bytes, hasher.finalize().into())))
}

fn unreadable(part: Part, file: &File, at: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => damaged(part, file, "it is missing"),
        _ => Error::io(at, error),
    }
}

fn damaged(part: Part, file: &File, why: &str) -> Error {
    let what = format!("the file {} of the search index (shard of part {part})", file.path);
    Error::corrupt(what, format!("{why}; {REMEDY}"))
}

/// What is said of a shard over which the library panics although its files are what was
/// published.
pub fn panicked(part: Part, panic: &Error) -> Error {
    let reason = format!(
        "the search library failed over the shard of part {part}, whose files are what was \
         published ({panic}); if it does so again, {REMEDY}"
    );
    Error::Internal { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_again_when_it_was_changed() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join("7-x.idx");
        fs::write(&at, b"content").unwrap();
        let hash = Some(*blake3::hash(b"content").as_bytes());
        let (name, path) = ("x.idx".to_owned(), "shards/3/7-x.idx".to_owned());
        let file = File { name, object: ObjectId(7), path, bytes: 7, hash };
        let (checked, part) = (CheckedFiles::default(), Part(3));
        checked.check(part, &file, &at).unwrap();
        // One that claims other bytes is believed only because it was not read again.
        let other = File { hash: None, ..file.clone() };
        checked.check(part, &other, &at).unwrap();
        let second = place.path().join("second name");
        fs::hard_link(&at, &second).unwrap();
        checked.check(part, &other, &second).unwrap();
        fs::write(&at, b"cont3nt").unwrap();
        // Two writes may be one moment to the file system.
        let other = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9);
        fs::File::options().write(true).open(&at).unwrap().set_modified(other).unwrap();
        let error = checked.check(part, &file, &second).unwrap_err().to_string();
        for said in ["shards/3/7-x.idx", "shard of part 3", "checksum", "driftline search rebuild"]
        {
            assert!(error.contains(said), "{error}");
        }
        fs::write(&at, b"conten").unwrap();
        let error = checked.check(part, &file, &at).unwrap_err().to_string();
        assert!(error.contains("it has 6 bytes, and 7 were published"), "{error}");
        fs::remove_file(&at).unwrap();
        let error = checked.check(part, &file, &at).unwrap_err().to_string();
        assert!(error.contains("it is missing"), "{error}");
        assert_eq!(checked.known()[&part].len(), 1);
        checked.keep(part, &[]);
        assert_eq!(checked.known()[&part].len(), 0);
    }
}
