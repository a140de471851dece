//! How many of its newest rows a tree keeps in memory before they are written out.
//!
//! Large buffers save merging, which is most of what a large map costs; a small map has nothing
//! to merge, and its process other uses for the memory. So the buffers grow with the map.
//! Invariant: a tree has at most [`memory::LINK_TREE_BYTES_MAX`], which the library sees to, and a
//! small map at most [`memory::LINK_TREE_BYTES`] a tree.

use super::{OpenedMap, Tree};
use crate::{Result, memory};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the library needs for a row in memory beside its key and its value, about.
const ROW_BYTES: u64 = 64;
/// The map has so many times the bytes of a tree's buffer.
const SHARE: u64 = 16;

/// Bytes that a tree was told since its rows were last written out.
#[derive(Default)]
pub(super) struct BufferedBytes(AtomicU64);

impl BufferedBytes {
    /// A row with so many bytes was added.
    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64 + ROW_BYTES, Ordering::Relaxed);
    }
}

/// Bytes of each tree's buffer, in a map with so many bytes of tables.
fn share(table_bytes: u64) -> u64 {
    let (least, most) = (memory::LINK_TREE_BYTES as u64, memory::LINK_TREE_BYTES_MAX as u64);
    (table_bytes / SHARE).clamp(least, most)
}

impl OpenedMap {
    /// Has the rows of trees written out that have their share in memory; that is done beside.
    pub(super) fn write_out_full<'a>(&self, trees: impl Iterator<Item = &'a Tree>) -> Result<()> {
        let mut share_of_this = None;
        for tree in trees {
            let buffered = tree.buffered.0.load(Ordering::Relaxed);
            if buffered < memory::LINK_TREE_BYTES as u64 {
                continue;
            }
            if buffered >= *share_of_this.get_or_insert_with(|| share(self.table_bytes())) {
                tree.buffered.0.store(0, Ordering::Relaxed);
                tree.keyspace.rotate_memtable().map_err(|error| self.fault(error))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_grow_with_the_map_between_two_bounds() {
        let (least, most) = (memory::LINK_TREE_BYTES as u64, memory::LINK_TREE_BYTES_MAX as u64);
        assert_eq!(share(0), least);
        assert_eq!(share(least * SHARE), least);
        assert_eq!(share(20 << 28), most.min(20 << 24));
        assert_eq!(share(u64::MAX), most);
    }
}
