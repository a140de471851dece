//! How much room a disk has, so that work pauses before it is full (T31).

use crate::{Error, Result};
use std::path::Path;

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
}
