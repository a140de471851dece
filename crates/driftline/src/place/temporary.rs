//! Temporary directories of processes, which outlive none of them for long.
//!
//! A process that is killed cannot take its directory away. Each has a lock that its process
//! holds, and whoever makes a directory removes those whose lock is free. Invariants: a
//! directory is removed only if nobody holds its lock, or if it has none and is older than
//! [`UNLOCKED_MS_MAX`]; nothing of another user or of another name is touched.

use std::fs::{DirEntry, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use store::clock;
use tempfile::TempDir;

/// What all of their names begin with.
const PREFIX: &str = "driftline-";
/// What they are for, which is the rest of the beginning.
const PURPOSES: [&str; 2] = ["search-", "links-"];
/// The lock in a directory.
const LOCK: &str = "lock";
/// The lock before it is held.
const NEW_LOCK: &str = "lock.new";
/// Entries of the temporary directory that are looked at.
const LOOKED_AT_MAX: usize = 100_000;
/// Directories that are removed at a time, so that nobody waits long.
const REMOVED_MAX: usize = 1_000;
/// A directory without a lock is being made, or was left by a version that had none.
const UNLOCKED_MS_MAX: i64 = 24 * 3_600_000;

/// A directory of this process, which is removed with it.
pub struct OwnDirectory {
    // Declared first and so dropped first: what is being removed is still locked.
    directory: TempDir,
    _lock: File,
}

impl OwnDirectory {
    /// Makes one for search.
    pub fn for_search() -> io::Result<OwnDirectory> {
        OwnDirectory::make(&std::env::temp_dir(), PURPOSES[0])
    }

    /// Makes one for links.
    pub fn for_links() -> io::Result<OwnDirectory> {
        OwnDirectory::make(&std::env::temp_dir(), PURPOSES[1])
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn make(root: &Path, purpose: &str) -> io::Result<OwnDirectory> {
        remove_abandoned(root, clock::now_ms());
        let prefix = format!("{PREFIX}{purpose}");
        let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(root)?;
        let (new, lock) = (directory.path().join(NEW_LOCK), directory.path().join(LOCK));
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
        // Where a disk knows no locks, its directories are left alone for ever.
        if file.try_lock().is_ok() {
            // Nobody sees it before it is held.
            std::fs::rename(&new, &lock)?;
        }
        Ok(OwnDirectory { directory, _lock: file })
    }
}

/// Removes what processes have left that were killed. What cannot be looked at or removed
/// stays: it is not what this process is here for.
fn remove_abandoned(root: &Path, now_ms: i64) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    let ours = entries.flatten().take(LOOKED_AT_MAX).filter(is_ours);
    for entry in ours.filter(|it| is_abandoned(it, now_ms)).take(REMOVED_MAX) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let purpose = name.to_str().and_then(|it| it.strip_prefix(PREFIX)).unwrap_or_default();
    let is_named = PURPOSES.iter().any(|it| purpose.starts_with(it));
    // Not through a link, which may lead anywhere.
    is_named && entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == own_user())
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_abandoned(entry: &DirEntry, now_ms: i64) -> bool {
    match File::open(entry.path().join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_locked = entry.path().join(NEW_LOCK).exists();
            let made = entry.metadata().map_or(i64::MAX, |it| it.mtime().saturating_mul(1_000));
            !is_locked && now_ms.saturating_sub(made) > UNLOCKED_MS_MAX
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(root).unwrap();
        let mut names: Vec<String> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn name(it: &OwnDirectory) -> String {
        it.path().file_name().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let left = root.join("driftline-search-killed");
        std::fs::create_dir_all(left.join("served/1")).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let first = OwnDirectory::make(root, PURPOSES[0]).unwrap();
        assert_eq!(names(root), [name(&first)], "the lock is free");
        let second = OwnDirectory::make(root, PURPOSES[1]).unwrap();
        assert_eq!(names(root).len(), 2, "what is held stays");
        drop(first);
        assert_eq!(names(root), [name(&second)]);
        drop(second);
        assert_eq!(names(root), [] as [&str; 0]);
    }

    #[test]
    fn what_has_no_lock_is_left_alone_for_a_day() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for name in ["driftline-links-old", "driftline-demo-x", "search-x"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/", root.join("driftline-search-link")).unwrap();
        let now_ms = clock::now_ms();
        remove_abandoned(root, now_ms);
        assert_eq!(names(root).len(), 4, "it may be being made");
        remove_abandoned(root, now_ms + UNLOCKED_MS_MAX + 2_000);
        assert_eq!(names(root), ["driftline-demo-x", "driftline-search-link", "search-x"]);
    }
}
