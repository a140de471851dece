//! The bodies file of a chunk: a `.warc.zst` whose end says what it must hold.
//!
//! Each record is a zstd frame of its own, so one is read by offset and length.
//! Behind the last stands the *seal*: a frame that every zstd decoder skips,
//! with the length and BLAKE3 sum of each record frame. Any WARC tool that knows
//! zstd reads the file; we also notice a cut between two records, or a changed
//! byte that a decoder would forgive. See `docs/formats/bodies.md`.
//!
//! Invariant: [`verify`] accepts exactly the bytes that [`BodiesWriter`] made
//! for this chunk.

use super::warc::{self, Record};
use super::warc_reader::{ByteRange, WarcReader};
use crate::objects::{ChunkKey, OBJECT_BYTES_MAX, ObjectPath, Objects};
use crate::{Error, Result};
use std::collections::HashMap;

#[cfg(test)]
pub(crate) mod tests;

/// The format of the seal.
pub const FORMAT_VERSION: u16 = 1;
/// Bytes of one block: the largest body the crawler takes, and its head.
pub const BLOCK_BYTES_MAX: usize = 80 << 20;
const ZSTD_LEVEL: i32 = 1;
/// A skippable frame that is not the dictionary frame of `.warc.zst`.
const SEAL_FRAME: u32 = 0x184d_2a5e;
const SEAL_MAGIC: [u8; 8] = *b"DLBODIES";
/// Frame header (8), magic, version and reserved, part, chunk, number of records.
const SEAL_HEAD_BYTES: usize = 8 + 8 + 4 + 4 + 8 + 4;
/// Length and sum of one record's frame.
const SEAL_ENTRY_BYTES: usize = 8 + HASH_BYTES;
/// Bytes of the whole seal (4), sum of everything before in the seal.
const SEAL_TAIL_BYTES: usize = 4 + HASH_BYTES;
const HASH_BYTES: usize = 16;

/// Collects the records of one chunk.
pub struct BodiesWriter {
    chunk: ChunkKey,
    out: Vec<u8>,
    plain: Vec<u8>,
    frame: Vec<u8>,
    frames: Vec<(u64, [u8; HASH_BYTES])>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl BodiesWriter {
    /// A file that begins with `info`, which must be a `warcinfo` record.
    pub fn new(chunk: ChunkKey, info: &Record) -> Result<BodiesWriter> {
        assert_eq!(info.kind(), "warcinfo", "a WARC file begins with its warcinfo");
        let refused =
            |source| Error::Io { path: format!("bodies of chunk {chunk}"), error: source };
        let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(refused)?;
        compressor.include_checksum(true).map_err(refused)?;
        let (out, plain, frame, frames) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut writer = BodiesWriter { chunk, out, plain, frame, frames, compressor };
        writer.push(info)?;
        Ok(writer)
    }

    /// Adds a record; returns its place. After an error the file is as it was.
    pub fn push(&mut self, record: &Record) -> Result<ByteRange> {
        if record.block.len() > BLOCK_BYTES_MAX {
            let what = format!("record {}", record.target_uri().unwrap_or_default());
            let (bytes, max) = (record.block.len() as u64, BLOCK_BYTES_MAX as u64);
            return Err(Error::TooLarge { what, bytes, max });
        }
        self.plain.clear();
        record.write_to(&mut self.plain);
        let offset = self.out.len();
        let bytes = offset as u64 + self.plain.len() as u64;
        if bytes > OBJECT_BYTES_MAX / 2 {
            let what = format!("bodies of chunk {}", self.chunk);
            return Err(Error::TooLarge { what, bytes, max: OBJECT_BYTES_MAX / 2 });
        }
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(self.plain.len()));
        let written = self.compressor.compress_to_buffer(&self.plain, &mut self.frame);
        let refused =
            |source| Error::Io { path: format!("bodies of chunk {}", self.chunk), error: source };
        let len = written.map_err(refused)? as u64;
        self.frames.push((len, page::ids::hash128(&self.frame)));
        self.out.extend_from_slice(&self.frame);
        Ok(ByteRange { offset: offset as u64, len })
    }

    /// Records so far, the `warcinfo` included: the ordinal of the next one.
    pub fn records(&self) -> u64 {
        self.frames.len() as u64
    }

    /// The bytes of the file, sealed.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.extend(seal(self.chunk, &self.frames));
        self.out
    }
}

/// Reads one record of a chunk's bodies, which are at a path, and checks its digests.
pub fn read(objects: &Objects, path: &ObjectPath, place: ByteRange) -> Result<Record> {
    let frame = objects.get_range(path, place.offset, place.len)?;
    open_frame(&format!("bodies {path}, byte {}", place.offset), &frame)
}

/// A file with the `warcinfo` of another and those of its records that are at these places, byte
/// for byte and in this order. Returns it, and where each of them is now.
pub fn copy(
    chunk: ChunkKey,
    bytes: &[u8],
    places: &[ByteRange],
) -> Result<(Vec<u8>, Vec<ByteRange>)> {
    let name = format!("bodies of chunk {chunk}");
    let bad = |reason: &str| Error::corrupt(name.clone(), reason);
    let entries =
        open_seal(chunk, bytes).ok_or_else(|| bad("it is cut, or its seal is damaged"))?;
    let mut sums: HashMap<(u64, u64), [u8; HASH_BYTES]> = HashMap::with_capacity(entries.len());
    let mut at = 0;
    for (len, sum) in &entries {
        sums.insert((at, *len), *sum);
        at += len;
    }
    let info = entries.first().map(|(len, _)| ByteRange { offset: 0, len: *len });
    let info = info.ok_or_else(|| bad("it has no warcinfo"))?;
    let (mut out, mut frames, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for place in std::iter::once(&info).chain(places) {
        let range = usize::try_from(place.offset).ok().zip(usize::try_from(place.len).ok());
        let frame = range.and_then(|(from, len)| bytes.get(from..from.checked_add(len)?));
        let sum = sums.get(&(place.offset, place.len));
        let (Some(frame), Some(sum)) = (frame, sum) else {
            return Err(bad("a record that is named is not there"));
        };
        if page::ids::hash128(frame) != *sum {
            return Err(bad("checksum mismatch"));
        }
        moved.push(ByteRange { offset: out.len() as u64, len: place.len });
        frames.push((place.len, *sum));
        out.extend_from_slice(frame);
    }
    out.extend(seal(chunk, &frames));
    Ok((out, moved.split_off(1)))
}

/// All records of a file, in order, each with its digests checked.
pub fn records<'a>(name: &str, bytes: &'a [u8]) -> impl Iterator<Item = Result<Record>> + use<'a> {
    let name = name.to_owned();
    let (reader, failed) = match WarcReader::open(&name, bytes, BLOCK_BYTES_MAX) {
        Ok(reader) => (Some(reader), None),
        Err(error) => (None, Some(Err(error))),
    };
    let checked = reader.into_iter().flatten().map(move |found| {
        let record = found?.record;
        check_digests(&name, &record)?;
        Ok(record)
    });
    failed.into_iter().chain(checked)
}

/// Checks every byte of a file; returns how many records it holds.
pub fn verify(chunk: ChunkKey, bytes: &[u8]) -> Result<u64> {
    let name = format!("bodies of chunk {chunk}");
    let bad = |reason: &str| Error::corrupt(name.clone(), reason);
    let entries =
        open_seal(chunk, bytes).ok_or_else(|| bad("it is cut, or its seal is damaged"))?;
    let mut at = 0usize;
    for (number, (len, sum)) in entries.iter().enumerate() {
        let place = format!("{name}, record {number} at byte {at}");
        let end = usize::try_from(*len).ok().and_then(|len| at.checked_add(len));
        let frame = end.and_then(|end| bytes.get(at..end));
        let frame =
            frame.ok_or_else(|| Error::corrupt(place.clone(), "it lies outside the file"))?;
        if page::ids::hash128(frame) != *sum {
            return Err(Error::corrupt(place, "checksum mismatch"));
        }
        let record = open_frame(&place, frame)?;
        if (number == 0) != (record.kind() == "warcinfo") {
            return Err(Error::corrupt(place, "a warcinfo record stands first and only there"));
        }
        at += frame.len();
    }
    let seal_bytes = SEAL_HEAD_BYTES + SEAL_ENTRY_BYTES * entries.len() + SEAL_TAIL_BYTES;
    if at + seal_bytes != bytes.len() {
        return Err(bad("bytes stand between its last record and its seal"));
    }
    Ok(entries.len() as u64)
}

/// Compares a record's digests with its block. A record without any passes.
pub fn check_digests(name: &str, record: &Record) -> Result<()> {
    let differs = |header: &str, bytes: &[u8]| {
        let claimed = record.header(header).filter(|claimed| claimed.starts_with("sha1:"));
        claimed.is_some_and(|claimed| !claimed.eq_ignore_ascii_case(&warc::digest(bytes)))
    };
    let fault = |what: &str| {
        let id = record.id().unwrap_or("a record without id");
        Err(Error::corrupt(name, format!("{id}: its {what} is not what its digest says")))
    };
    if differs("WARC-Block-Digest", &record.block) {
        return fault("block");
    }
    // Only a response holds its payload; a revisit names that of another record.
    if record.kind() == "response"
        && let Some(message) = super::http_head::parse(&record.block)
        && differs("WARC-Payload-Digest", message.payload)
        // The rules can be read as "with" or "without" the transfer encoding.
        && differs("WARC-Payload-Digest", &message.dechunked())
    {
        return fault("payload");
    }
    Ok(())
}

fn open_frame(name: &str, frame: &[u8]) -> Result<Record> {
    let mut reader = WarcReader::open(name, frame, BLOCK_BYTES_MAX)?;
    let found = reader.next().unwrap_or_else(|| Err(Error::corrupt(name, "no record")))?;
    let whole = Some(ByteRange { offset: 0, len: frame.len() as u64 });
    if found.place != whole || found.block_bytes != found.record.block.len() as u64 {
        return Err(Error::corrupt(name, "these bytes are not exactly one record"));
    }
    check_digests(name, &found.record)?;
    Ok(found.record)
}

fn seal(chunk: ChunkKey, frames: &[(u64, [u8; HASH_BYTES])]) -> Vec<u8> {
    let bytes = SEAL_HEAD_BYTES + SEAL_ENTRY_BYTES * frames.len() + SEAL_TAIL_BYTES;
    let fits = "an object of bounded size has few records";
    let mut seal = Vec::with_capacity(bytes);
    seal.extend(SEAL_FRAME.to_le_bytes());
    seal.extend(u32::try_from(bytes - 8).expect(fits).to_le_bytes());
    seal.extend(SEAL_MAGIC);
    seal.extend(u32::from(FORMAT_VERSION).to_le_bytes());
    seal.extend(chunk.part.to_le_bytes());
    seal.extend(chunk.id.to_le_bytes());
    seal.extend(u32::try_from(frames.len()).expect(fits).to_le_bytes());
    for (len, sum) in frames {
        seal.extend(len.to_le_bytes());
        seal.extend(sum);
    }
    seal.extend(u32::try_from(bytes).expect(fits).to_le_bytes());
    let sum = page::ids::hash128(&seal);
    seal.extend(sum);
    seal
}

/// The entries of a seal that is byte for byte the one we would write.
fn open_seal(chunk: ChunkKey, bytes: &[u8]) -> Option<Vec<(u64, [u8; HASH_BYTES])>> {
    let tail = bytes.last_chunk::<SEAL_TAIL_BYTES>()?;
    let seal_bytes = u32::from_le_bytes(*tail.first_chunk()?) as usize;
    let found = bytes.get(bytes.len().checked_sub(seal_bytes)?..)?;
    let inside = found.get(SEAL_HEAD_BYTES..seal_bytes.checked_sub(SEAL_TAIL_BYTES)?)?;
    let entries: Option<Vec<_>> = inside
        .chunks(SEAL_ENTRY_BYTES)
        .map(|entry| {
            let (len, sum) = entry.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*len), sum.try_into().ok()?))
        })
        .collect();
    entries.filter(|entries| seal(chunk, entries) == found)
}
