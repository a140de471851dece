//! The cursor of a module: the last x-file whose results are complete.

use super::disk::Disk;
use super::sealed::{Kind, open_one, seal};
use serde::{Serialize, de::DeserializeOwned};
use store::Result;

/// A module's cursor with what belongs to it; the default before the first x-file.
pub(super) fn read<T: DeserializeOwned + Default>(disk: &Disk, path: &str) -> Result<T> {
    match disk.read_if_there(path)? {
        Some(bytes) => open_one(Kind::Cursor, &bytes, &disk.place(path).display().to_string()),
        None => Ok(T::default()),
    }
}

/// Moves a cursor. All that it covers is on the disk before.
pub(super) fn write<T: Serialize>(disk: &Disk, path: &str, cursor: &T) -> Result<()> {
    disk.sync()?;
    disk.write_durably(path, &seal(Kind::Cursor, std::slice::from_ref(cursor)))
}
