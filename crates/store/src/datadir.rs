//! An embedded data directory: one process holds it, others ask that process.
//!
//! ```text
//! driftline.sqlite   the rows
//! objects/           the objects
//! links/             the link index, made when it is first needed
//! search/            files of the search index that is being written
//! links.rows         the link index as a backup wrote it, until it is needed
//! secrets.key        what secrets among the rows are sealed with, made when there are any
//! lock               held by the process that has the directory open; names it
//! socket             where that process answers other commands
//! ```
//!
//! Invariants: at most one process has the directory open for writing, enforced by
//! an operating-system lock that ends with the process however it ends; a
//! directory that is not ours is never written into.

use crate::sealing::Keys;
use crate::{Db, Error, Result, disk, migrate, ours, tables};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const DATABASE: &str = "driftline.sqlite";
const OBJECTS: &str = "objects";
const LINKS: &str = "links";
/// The search index, as its writer and its readers have it beside the objects.
const SEARCH: &str = "search";
/// The link index, written out.
pub(crate) const WRITTEN_LINKS: &str = "links.rows";
/// The node's name of every process that holds an embedded directory. They are one
/// node that was restarted, so that each takes its predecessor's leases at once.
pub const NODE_NAME: &str = "local";
/// What secrets among the rows are sealed with.
pub(crate) const SECRETS_KEY: &str = "secrets.key";
const LOCK: &str = "lock";
const SOCKET: &str = "socket";

/// Where things are in a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of the directory at `root`, whether it exists or not.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into() }
    }

    /// The path of the data directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file with the rows.
    pub fn database(&self) -> PathBuf {
        self.root.join(DATABASE)
    }

    /// The directory of the objects.
    pub fn objects(&self) -> PathBuf {
        self.root.join(OBJECTS)
    }

    /// The directory of the link index.
    pub fn links(&self) -> PathBuf {
        self.root.join(LINKS)
    }

    /// The link index as a backup wrote it, if it was not read in yet.
    pub fn written_links(&self) -> PathBuf {
        self.root.join(WRITTEN_LINKS)
    }

    /// Whether there is a link index, in whichever form.
    pub fn has_links(&self) -> bool {
        self.links().is_dir() || self.written_links().is_file()
    }

    /// The directory of the search index's writer; what counts is in the objects.
    pub fn search(&self) -> PathBuf {
        self.root.join(SEARCH)
    }

    /// The file with the key of secrets.
    pub fn secrets_key(&self) -> PathBuf {
        self.root.join(SECRETS_KEY)
    }

    /// The rows, with their secrets.
    pub fn open_rows(&self) -> Result<Db> {
        Ok(Db::open_sqlite(&self.database())?.with_keys(Keys::kept_in(&self.secrets_key())))
    }

    /// The file whose lock says which process holds the directory.
    pub fn lock(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    /// The socket of the process that holds the directory.
    pub fn socket(&self) -> PathBuf {
        self.root.join(SOCKET)
    }

    /// Whether nothing can be written here: it is mounted read-only, or of another user.
    pub fn is_read_only(&self) -> bool {
        disk::is_read_only(&self.root)
    }

    /// The permissions of the directory, if others than its owner may look into it: it was made
    /// by somebody else, before.
    pub fn open_to_others(&self) -> Option<u32> {
        let mode = self.root.metadata().ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }

    /// Whether there is a data directory here.
    pub fn exists(&self) -> bool {
        self.database().is_file()
    }
}

/// A data directory that this process holds.
pub struct DataDir {
    layout: Layout,
    db: Db,
    // Dropped last: the lock is given up only when the database is closed.
    _lock: Lock,
}

impl DataDir {
    /// Opens a data directory for this process alone, making it if it is not there.
    /// `parts` matters only for a new one.
    pub fn open(root: &Path, parts: u32, now_ms: i64) -> Result<DataDir> {
        tables::settings::check_parts(parts)?;
        let data = DataDir::hold(root)?;
        migrate::migrate(&data.db, now_ms)?;
        let keys = data.db.keys().clone();
        data.db.write(move |tx| {
            tables::settings::freeze(tx, parts)?;
            // Older programs wrote secrets in the open; and a key may be a new one.
            tables::connections::reseal(tx, &keys)
        })?;
        Ok(data)
    }

    /// Opens a data directory for this process alone, making it if it is not there,
    /// and writes no rows: [`crate::copy`] brings the schema and the settings.
    pub fn open_for_copy(root: &Path) -> Result<DataDir> {
        DataDir::hold(root)
    }

    fn hold(root: &Path) -> Result<DataDir> {
        let layout = Layout::new(root);
        refuse_foreign(&layout)?;
        make_directory(layout.root())?;
        make_directory(&layout.objects())?;
        make_directory(&layout.search())?;
        let lock = Lock::take(&layout)?;
        make_file(&layout.database())?;
        let db = layout.open_rows()?;
        let keys = layout.secrets_key();
        let (objects, search, links) = (layout.objects(), layout.search(), layout.links());
        for path in [layout.root(), &objects, &search, &links, &layout.database(), &keys] {
            ours::claim(path);
        }
        Ok(DataDir { layout, db, _lock: lock })
    }

    /// The open database of the directory.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The paths of what the directory holds.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// A directory with files in it that is not a data directory is left alone.
fn refuse_foreign(layout: &Layout) -> Result<()> {
    let root = layout.root();
    if layout.exists() {
        return Ok(());
    }
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(root, error)),
    };
    for entry in entries {
        let name = entry.map_err(|error| Error::io(root, error))?.file_name();
        let ours = [OBJECTS, LINKS, SEARCH, SECRETS_KEY, LOCK, SOCKET];
        let ours = ours.iter().any(|known| name == *known);
        if !ours {
            return Err(Error::Refused(format!(
                "{} is not a driftline data directory: it has {} in it but no {DATABASE}; \
                 name an empty or a new directory",
                root.display(),
                name.display()
            )));
        }
    }
    Ok(())
}

/// Made for its owner only: it will hold cookies, tokens and private pages. A copy
/// is as private as what it copies.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Error::io(path, error))
}

/// Made for its owner only, and left as it is if it is there; SQLite gives its log the same
/// permissions, and takes an empty file for a new database.
fn make_file(path: &Path) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io(path, error)),
    }
}

/// The operating system's lock on a data directory; it ends with the process.
struct Lock {
    file: File,
}

impl Lock {
    fn take(layout: &Layout) -> Result<Lock> {
        let path = layout.lock();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| Error::io(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(layout, &mut file)),
            Err(TryLockError::Error(error)) => return Err(Error::io(&path, error)),
        }
        // The name in the file is a help for people; the lock is what counts.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|error| Error::io(&path, error))?;
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone is not enough: a child that another thread is just starting
        // has the file open too, until it runs its own program.
        let _ = self.file.unlock();
    }
}

fn in_use(layout: &Layout, file: &mut File) -> Error {
    let mut owner = String::new();
    let _ = file.take(64).read_to_string(&mut owner);
    let owner = match owner.trim() {
        "" => "unknown".to_owned(),
        number => number.to_owned(),
    };
    Error::InUse { path: layout.root().display().to_string(), owner }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opener_is_told_who_holds_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        let held = DataDir::open(&root, 4, 0).unwrap();
        let refused = DataDir::open(&root, 4, 0).err().expect("it is held").to_string();
        assert!(refused.contains(&std::process::id().to_string()), "{refused}");
        assert!(refused.contains("driftline status"), "{refused}");
        drop(held);
        let again = DataDir::open(&root, 99, 0).unwrap();
        assert_eq!(again.db().read(tables::settings::parts).unwrap(), 4, "parts are frozen");
    }

    #[test]
    fn a_directory_is_free_though_a_starting_child_still_has_its_lock_file_open() {
        let place = tempfile::tempdir().unwrap();
        let held = DataDir::open(place.path(), 4, 0).unwrap();
        // What a fork gives to a child until it runs its own program.
        let _of_the_child = held._lock.file.try_clone().unwrap();
        drop(held);
        DataDir::open(place.path(), 4, 0).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_ours_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("thesis.tex"), "x").unwrap();
        let refused = DataDir::open(place.path(), 4, 0).err().expect("it is foreign").to_string();
        assert!(refused.contains("thesis.tex"), "{refused}");
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing was written");
    }

    #[test]
    fn only_its_owner_can_look_into_it() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        let _held = DataDir::open(&root, 4, 0).unwrap();
        assert_eq!(root.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(Layout::new(&root).open_to_others(), None);
    }

    #[test]
    fn what_is_made_in_a_directory_that_others_see_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        std::fs::create_dir(&root).unwrap();
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
        let held = DataDir::open(&root, 4, 0).unwrap();
        assert_eq!(held.layout().open_to_others(), Some(0o755), "it is not ours to close");
        let mut seen = 0;
        for entry in std::fs::read_dir(&root).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", entry.path().display());
            seen += 1;
        }
        assert!(seen >= 5, "the rows with their log, the lock, objects and search: {seen}");
    }
}
