//! The fixed pieces of a facts file, as bytes.
//!
//! Invariant: each piece's last 16 bytes are the hash of everything before them
//! in the piece, prefixed (but for the header) by the header's own hash.

use crate::objects::ChunkKey;

/// The first bytes of every facts file.
pub(super) const MAGIC: [u8; 8] = *b"DLFACTS\n";
/// The last bytes of every facts file.
pub(super) const END_MAGIC: [u8; 8] = *b"DLFEND.\n";
/// The bytes that begin a block of records.
pub(super) const TAG_BLOCK: [u8; 4] = *b"BLCK";
/// The bytes that begin the index of the file.
pub(super) const TAG_INDEX: [u8; 4] = *b"INDX";
/// Magic, version, reserved, part, chunk, hash.
pub(super) const HEADER_BYTES: usize = 8 + 2 + 2 + 4 + 8 + HASH_BYTES;
/// Tag, payload length, raw length, first record, records, hash.
pub(super) const BLOCK_HEAD_BYTES: usize = 4 + 4 * 4 + HASH_BYTES;
/// Tag, blocks, records, hash; the entries stand between records and hash.
pub(super) const INDEX_FIXED_BYTES: usize = 4 + 4 + 4 + HASH_BYTES;
/// Block offset and its first record.
pub(super) const INDEX_ENTRY_BYTES: usize = 8 + 4;
/// Offset of the index, hash, end magic.
pub(super) const TAIL_BYTES: usize = 8 + HASH_BYTES + 8;
/// Half a BLAKE3: damage is found as surely as with the whole.
pub(super) const HASH_BYTES: usize = 16;

/// A hash as the file holds it.
pub(super) type Hash = [u8; HASH_BYTES];

/// The hash of `pieces`, one behind the other.
pub(super) fn hash(pieces: &[&[u8]]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for piece in pieces {
        hasher.update(piece);
    }
    let mut out = [0; HASH_BYTES];
    out.copy_from_slice(&hasher.finalize().as_bytes()[..HASH_BYTES]);
    out
}

/// The header of a chunk's file of a format, and its hash.
pub(super) fn header(chunk: ChunkKey, version: u16) -> ([u8; HEADER_BYTES], Hash) {
    let mut out = [0; HEADER_BYTES];
    out[..8].copy_from_slice(&MAGIC);
    out[8..10].copy_from_slice(&version.to_le_bytes());
    out[12..16].copy_from_slice(&chunk.part.to_le_bytes());
    out[16..24].copy_from_slice(&chunk.id.to_le_bytes());
    let sum = hash(&[&out[..24]]);
    out[24..].copy_from_slice(&sum);
    (out, sum)
}

/// What stands before a block's payload, without its tag and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub(super) payload_bytes: u32,
    pub(super) raw_bytes: u32,
    pub(super) first_record: u32,
    pub(super) records: u32,
}

impl BlockHead {
    /// Tag and numbers: what the block's hash covers besides the payload.
    pub(super) fn to_bytes(self) -> [u8; 20] {
        let mut out = [0; 20];
        out[..4].copy_from_slice(&TAG_BLOCK);
        let numbers = [self.payload_bytes, self.raw_bytes, self.first_record, self.records];
        for (place, number) in out[4..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> BlockHead {
        BlockHead {
            payload_bytes: u32_at(bytes, 4),
            raw_bytes: u32_at(bytes, 8),
            first_record: u32_at(bytes, 12),
            records: u32_at(bytes, 16),
        }
    }
}

/// The number at `at`. The caller has checked that the piece is long enough.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// The number at `at`. The caller has checked that the piece is long enough.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
