//! How much room a disk has, so that work pauses before it is full (T31).

use crate::db::WAL_BYTES_MAX;
use crate::{Error, Result};
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
pub struct Room {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// All bytes.
    pub bytes: u64,
    /// Files that can still be made; `None` where the file system does not count them.
    pub free_files: Option<u64>,
}

impl Room {
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
pub fn room(path: &Path) -> Result<Room> {
    let found =
        rustix::fs::statvfs(path).map_err(|error| Error::io(path, std::io::Error::from(error)))?;
    Ok(Room {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        bytes: found.f_blocks.saturating_mul(found.f_frsize),
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room_and_nothing_has_none() {
        let room = room(&std::env::temp_dir()).unwrap();
        assert!(room.bytes > 0 && room.free_bytes <= room.bytes && room.free_percent() <= 100);
        assert!(super::room(Path::new("/no/such/place")).is_err());
        let full = Room { free_bytes: 4, bytes: 100, free_files: None };
        assert_eq!(full.free_percent(), 4);
    }

    #[test]
    fn a_small_disk_keeps_room_for_the_log_and_a_merge() {
        let disk = |bytes: u64| Room { free_bytes: 0, bytes, free_files: None };
        let (small, large) = (disk(2 << 30), disk(1 << 40));
        assert_eq!(small.needed_bytes(5), RESERVE_BYTES);
        assert_eq!(large.needed_bytes(5), (1u64 << 40) / 100 * 5);
        assert_eq!(small.needed_bytes(0), 0, "somebody wants all of it used");
    }
}
