//! The facts file of a chunk: its [`DocumentRecord`]s, in order.
//!
//! Layout (all numbers little-endian; the full description is in
//! `docs/formats/chunk-facts.md`): a header, blocks of whole records compressed
//! with zstd, an index of the blocks, and a tail that leads to the index. Every
//! piece carries a BLAKE3 hash that also covers the header, so a block of
//! another chunk is refused too. The same bytes live in an object of their own,
//! inside a pack, or in the chunk's row.
//!
//! Invariants: a changed or missing byte anywhere is an error that names the
//! place; a reader holds one block at a time, bounded by [`RECORD_BYTES_MAX`],
//! whatever the file says.

use super::document::DocumentRecord;
use crate::objects::{ChunkKey, ObjectPath, Objects};
use crate::{Error, Result};

mod format1;
mod layout;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{FactsFile, FactsStream};
pub use write::FactsWriter;

/// The format this program writes. It reads this and the one before, [`format1`].
pub const FORMAT_VERSION: u16 = 2;
/// Bytes of one record before compression. `page::facts` bounds a page to less.
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Records of one file.
pub const RECORDS_MAX: usize = 1 << 20;
/// A block is closed when its records have this many bytes: large enough for the
/// pages of a host to share their common links, small enough to read one alone.
const BLOCK_BYTES_TARGET: usize = 256 << 10;

/// Bytes that can be read anywhere: memory, or an object.
pub trait RangeSource {
    /// How many bytes there are.
    fn size(&self) -> u64;
    /// `len` bytes from `offset`; fewer is an error.
    fn read_at(&self, offset: u64, len: u64) -> Result<Vec<u8>>;
}

impl RangeSource for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let from = usize::try_from(offset).ok();
        let to = offset.checked_add(len).and_then(|end| usize::try_from(end).ok());
        let piece = from.zip(to).and_then(|(from, to)| self.get(from..to));
        piece.map(<[u8]>::to_vec).ok_or_else(|| {
            Error::corrupt("facts", format!("{len} bytes at {offset} lie outside the file"))
        })
    }
}

/// A facts file inside an object: all of it, or one piece of a pack.
#[allow(missing_docs)]
pub struct InObject<'a> {
    pub objects: &'a Objects,
    pub path: ObjectPath,
    /// The file's first byte in the object.
    pub offset: u64,
    /// The size of the file in bytes.
    pub len: u64,
}

impl RangeSource for InObject<'_> {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        let start = self.offset.checked_add(offset).filter(|_| inside);
        match start {
            Some(start) => self.objects.get_range(&self.path, start, len),
            None => {
                let reason = format!("{len} bytes at {offset} lie outside the file");
                Err(Error::corrupt(format!("object {}", self.path), reason))
            }
        }
    }
}

/// Writes all records of a chunk at once.
pub fn encode(chunk: ChunkKey, records: &[DocumentRecord]) -> Result<Vec<u8>> {
    let mut writer = FactsWriter::new(chunk);
    for record in records {
        writer.push(record)?;
    }
    writer.finish()
}
