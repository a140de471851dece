//! The disk under a file: how much room it has, so that work pauses before it is full, and
//! whether it can be read and written at all.
//!
//! Libraries that meet an error of the disk often know only that what they found is not what they
//! wrote. Invariant: nothing is called corrupt before the disk was asked ([`trouble`]).

use crate::db::WAL_BYTES_MAX;
use crate::{Error, Result};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// What one commit may write: the facts and the bodies of a batch, 32 MiB each.
const COMMIT_BYTES: u64 = 64 << 20;
/// What a checkpoint may write: the log grows to its limit first, and then every page of it
/// goes into the file.
const CHECKPOINT_BYTES: u64 = 2 * WAL_BYTES_MAX;
/// What the indexes may write beside it: the journal of the link index up to its limit, or
/// the merge of small segments of the search index.
const MERGE_BYTES: u64 = 256 << 20;
/// Free bytes that a crawl leaves alone. A share of a small disk can be less than the database's
/// log alone, and a disk that fills up in the middle of a checkpoint stops everything at once.
pub const RESERVE_BYTES: u64 = COMMIT_BYTES + CHECKPOINT_BYTES + MERGE_BYTES;

/// What a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DiskSpace {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    pub bytes: u64,
    /// Files that can still be made; `None` where the file system does not count them.
    pub free_files: Option<u64>,
}

impl DiskSpace {
    /// Free room in percent, rounded down.
    pub fn free_percent(self) -> u64 {
        self.free_bytes.saturating_mul(100).checked_div(self.bytes).unwrap_or(100)
    }

    /// Free bytes that are needed to go on: a share of the disk, and at least
    /// [`RESERVE_BYTES`]. With a share of 0 nothing is kept free.
    pub fn needed_bytes(self, free_percent: u64) -> u64 {
        match free_percent {
            0 => 0,
            percent => (self.bytes / 100).saturating_mul(percent).max(RESERVE_BYTES),
        }
    }
}

/// The room of the file system that holds a path.
pub fn room(path: &Path) -> Result<DiskSpace> {
    let found =
        rustix::fs::statvfs(path).map_err(|error| Error::io(path, std::io::Error::from(error)))?;
    Ok(DiskSpace {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        bytes: found.f_blocks.saturating_mul(found.f_frsize),
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

/// Bytes that a disk must take to be called in order: more than what opening an index writes.
const PROBE_BYTES: usize = 1 << 20;
/// Bytes that are read from both ends of a file.
const READ_BYTES: u64 = 4_096;
/// The file that is written and removed.
const PROBE: &str = ".driftline-probe";

/// What is wrong with the disk that holds a file or a directory: the error of reading the file
/// or of writing beside it. `None` if it does both.
pub fn trouble(path: &Path) -> Option<Error> {
    let is_directory = path.is_dir();
    let readable = if is_directory { Ok(()) } else { read_ends(path) };
    let directory = if is_directory { Some(path) } else { path.parent() };
    readable.and_then(|()| directory.map_or(Ok(()), try_to_write)).err()
}

/// Whether the disk takes something in a directory: a file is written, synced and removed.
pub fn try_to_write(directory: &Path) -> Result<()> {
    let path = directory.join(PROBE);
    let written = std::fs::File::create(&path).and_then(|mut file| {
        file.write_all(&vec![1; PROBE_BYTES])?;
        file.sync_all()
    });
    let _ = std::fs::remove_file(&path);
    written.map_err(|error| Error::io(directory, error))
}

fn read_ends(path: &Path) -> Result<()> {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let len = file.metadata()?.len();
        let mut bytes = Vec::new();
        (&mut file).take(READ_BYTES).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::Start(len.saturating_sub(READ_BYTES)))?;
        file.take(READ_BYTES).read_to_end(&mut bytes)
    };
    read().map(|_| ()).map_err(|error| Error::io(path, error))
}

/// Whether nothing can be written into a directory: its file system is mounted read-only, or this
/// user may not.
pub fn is_read_only(directory: &Path) -> bool {
    use rustix::io::Errno;
    let refused = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK);
    matches!(refused, Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room_and_nothing_has_none() {
        let room = room(&std::env::temp_dir()).unwrap();
        assert!(room.bytes > 0 && room.free_bytes <= room.bytes && room.free_percent() <= 100);
        assert!(super::room(Path::new("/no/such/place")).is_err());
        let full = DiskSpace { free_bytes: 4, bytes: 100, free_files: None };
        assert_eq!(full.free_percent(), 4);
    }

    #[test]
    fn a_disk_that_is_full_or_dead_is_told_from_a_file_that_is_broken() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("rows");
        std::fs::write(&file, "broken, but readable").unwrap();
        assert!(trouble(&file).is_none() && trouble(place.path()).is_none());
        // The system's own full disk, and a file that cannot be read.
        std::os::unix::fs::symlink("/dev/full", place.path().join(PROBE)).unwrap();
        assert!(matches!(trouble(&file), Some(Error::Full { .. })));
        let dead = place.path().join("dead");
        std::os::unix::fs::symlink("/proc/self/mem", &dead).unwrap();
        let told = trouble(&dead).expect("it cannot be read");
        assert!(matches!(&told, Error::Io { .. }), "{told}");
        assert!(told.to_string().contains("Input/output error"), "{told}");
    }

    #[test]
    fn a_small_disk_keeps_room_for_the_log_and_a_merge() {
        let disk = |bytes: u64| DiskSpace { free_bytes: 0, bytes, free_files: None };
        let (small, large) = (disk(2 << 30), disk(1 << 40));
        assert_eq!(small.needed_bytes(5), RESERVE_BYTES);
        assert_eq!(large.needed_bytes(5), (1u64 << 40) / 100 * 5);
        assert_eq!(small.needed_bytes(0), 0, "somebody wants all of it used");
    }
}
