//! Reading a facts file: one record by its number, or all of them in a stream.

use std::io::Read;

use super::format1;
use super::layout::{self, BLOCK_HEAD_BYTES, BlockHead, HASH_BYTES, HEADER_BYTES, Hash};
use super::{BLOCK_BYTES_TARGET, FORMAT_VERSION, RECORD_BYTES_MAX, RECORDS_MAX, RangeSource};
use crate::chunkfile::document::DocumentRecord;
use crate::objects::ChunkKey;
use crate::{Error, Result};

/// A block ends with the record that reaches the target.
const RAW_BYTES_MAX: usize = BLOCK_BYTES_TARGET + RECORD_BYTES_MAX + 4;
/// zstd adds to what it cannot compress, but never this much.
const PAYLOAD_BYTES_MAX: usize = RAW_BYTES_MAX + RAW_BYTES_MAX / 128 + 1_024;

/// A facts file open for reading by record number.
pub struct FactsFile<S> {
    source: S,
    frame: Frame,
    /// Where the index begins, which is where the blocks end.
    index_at: u64,
    records: u32,
    /// Offset and first record of each block.
    blocks: Vec<(u64, u32)>,
}

/// What the header of a file says, and what every later piece is checked with.
struct Frame {
    chunk: ChunkKey,
    version: u16,
    hash: Hash,
}

impl<S: RangeSource> FactsFile<S> {
    /// Reads header, index and tail; they must be those of `chunk`.
    pub fn open(chunk: ChunkKey, source: S) -> Result<FactsFile<S>> {
        let size = source.size();
        let tail_at = size.checked_sub(layout::TAIL_BYTES as u64);
        let tail_at = tail_at.filter(|tail_at| *tail_at >= HEADER_BYTES as u64);
        let Some(tail_at) = tail_at else {
            return Err(fault(chunk, format!("{size} bytes are too few for a facts file")));
        };
        let frame = Frame::of(chunk, &source.read_at(0, HEADER_BYTES as u64)?)?;
        let tail = source.read_at(tail_at, layout::TAIL_BYTES as u64)?;
        let index_at = frame.check_tail(&tail)?;
        let index_bytes = tail_at.checked_sub(index_at).filter(|bytes| {
            *bytes <= (layout::INDEX_FIXED_BYTES + layout::INDEX_ENTRY_BYTES * RECORDS_MAX) as u64
        });
        let Some(index_bytes) = index_bytes else {
            return Err(fault(chunk, format!("the tail names an impossible index at {index_at}")));
        };
        let index = source.read_at(index_at, index_bytes)?;
        let (records, blocks) = frame.check_index(&index)?;
        Ok(FactsFile { source, frame, index_at, records, blocks })
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Record number `index`, from 0. Reads one block.
    pub fn get(&self, index: usize) -> Result<DocumentRecord> {
        let chunk = self.frame.chunk;
        let wanted = u32::try_from(index).ok().filter(|wanted| *wanted < self.records);
        let Some(wanted) = wanted else {
            return Err(fault(chunk, format!("record {index} of {} was asked", self.records)));
        };
        let block = self.blocks.partition_point(|(_, first)| *first <= wanted) - 1;
        let (offset, first_record) = self.blocks[block];
        let end = self.blocks.get(block + 1).map_or(self.index_at, |(next, _)| *next);
        let bytes = end.saturating_sub(offset);
        if bytes < BLOCK_HEAD_BYTES as u64 || bytes > (BLOCK_HEAD_BYTES + PAYLOAD_BYTES_MAX) as u64
        {
            return Err(fault(chunk, format!("the index gives block {block} {bytes} bytes")));
        }
        let bytes = self.source.read_at(offset, bytes)?;
        let (head, payload) = bytes.split_at(BLOCK_HEAD_BYTES);
        let raw = self.frame.open_block(offset, first_record, head, payload)?;
        let mut rest = raw.as_slice();
        let mut number = first_record;
        loop {
            let bytes = self.frame.next_record(number, &mut rest)?;
            if number == wanted {
                return self.frame.decode(number, bytes);
            }
            number += 1;
        }
    }
}

/// All records in order, one block in memory at a time.
pub struct FactsStream<R> {
    input: R,
    frame: Frame,
    /// Bytes of the file read so far.
    offset: u64,
    /// The open block, decompressed, and how far it is read.
    raw: Vec<u8>,
    raw_at: usize,
    next_record: u32,
    blocks: Vec<(u64, u32)>,
    ended: bool,
}

impl<R: Read> FactsStream<R> {
    /// Reads the header; it must be that of `chunk`.
    pub fn open(chunk: ChunkKey, mut input: R) -> Result<FactsStream<R>> {
        let mut header = [0; HEADER_BYTES];
        read_exact(chunk, &mut input, 0, &mut header)?;
        let frame = Frame::of(chunk, &header)?;
        Ok(FactsStream {
            input,
            frame,
            offset: HEADER_BYTES as u64,
            raw: Vec::new(),
            raw_at: 0,
            next_record: 0,
            blocks: Vec::new(),
            ended: false,
        })
    }

    fn next_record(&mut self) -> Result<Option<DocumentRecord>> {
        if self.raw_at == self.raw.len() && !self.next_block()? {
            return Ok(None);
        }
        let mut rest = &self.raw[self.raw_at..];
        let bytes = self.frame.next_record(self.next_record, &mut rest)?;
        let record = self.frame.decode(self.next_record, bytes)?;
        self.raw_at = self.raw.len() - rest.len();
        self.next_record += 1;
        Ok(Some(record))
    }

    /// Opens the next block, or checks the end of the file: then `false`.
    fn next_block(&mut self) -> Result<bool> {
        let chunk = self.frame.chunk;
        let mut tag = [0; 4];
        read_exact(chunk, &mut self.input, self.offset, &mut tag)?;
        if tag == layout::TAG_INDEX {
            self.check_end()?;
            return Ok(false);
        }
        if tag != layout::TAG_BLOCK {
            let offset = self.offset;
            return Err(fault(chunk, format!("byte {offset}: neither a block nor the index")));
        }
        let mut head = [0; BLOCK_HEAD_BYTES];
        head[..4].copy_from_slice(&tag);
        read_exact(chunk, &mut self.input, self.offset, &mut head[4..])?;
        let payload_bytes = BlockHead::from_bytes(&head).payload_bytes as usize;
        if payload_bytes > PAYLOAD_BYTES_MAX {
            let offset = self.offset;
            return Err(fault(chunk, format!("block at byte {offset}: {payload_bytes} bytes")));
        }
        let payload = read_vec(chunk, &mut self.input, self.offset, payload_bytes)?;
        self.raw = self.frame.open_block(self.offset, self.next_record, &head, &payload)?;
        self.raw_at = 0;
        self.blocks.push((self.offset, self.next_record));
        self.offset += (BLOCK_HEAD_BYTES + payload_bytes) as u64;
        Ok(true)
    }

    /// The index must list the blocks that were read, and nothing may follow the tail.
    fn check_end(&mut self) -> Result<()> {
        let chunk = self.frame.chunk;
        let mut index = layout::TAG_INDEX.to_vec();
        let rest = layout::INDEX_FIXED_BYTES - 4 + layout::INDEX_ENTRY_BYTES * self.blocks.len();
        index.extend(read_vec(chunk, &mut self.input, self.offset, rest)?);
        let (records, blocks) = self.frame.check_index(&index)?;
        if records != self.next_record || blocks != self.blocks {
            return Err(fault(chunk, "the index does not match the blocks".to_owned()));
        }
        let mut tail = [0; layout::TAIL_BYTES];
        read_exact(chunk, &mut self.input, self.offset, &mut tail)?;
        if self.frame.check_tail(&tail)? != self.offset {
            return Err(fault(chunk, "the tail names another index".to_owned()));
        }
        let mut more = [0; 1];
        match self.input.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(fault(chunk, "bytes follow the end".to_owned())),
            Err(source) => {
                Err(Error::Io { path: format!("facts of chunk {chunk}"), error: source })
            }
        }
    }
}

impl<R: Read> Iterator for FactsStream<R> {
    type Item = Result<DocumentRecord>;

    /// After an error the stream has ended.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl Frame {
    fn of(chunk: ChunkKey, header: &[u8]) -> Result<Frame> {
        if header[..8] != layout::MAGIC {
            return Err(fault(chunk, "it does not begin as a facts file".to_owned()));
        }
        if header[24..] != layout::hash(&[&header[..24]]) {
            return Err(fault(chunk, "header: checksum mismatch".to_owned()));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if !(1..=FORMAT_VERSION).contains(&version) {
            let reason = format!("format {version}; this program reads 1 to {FORMAT_VERSION}");
            return Err(fault(chunk, reason));
        }
        let (expected, hash) = layout::header(chunk, version);
        if header != expected {
            let (part, id) = (layout::u32_at(header, 12), layout::u64_at(header, 16));
            return Err(fault(chunk, format!("it is the file of chunk {part}/{id}")));
        }
        Ok(Frame { chunk, version, hash })
    }

    /// The offset of the index.
    fn check_tail(&self, tail: &[u8]) -> Result<u64> {
        let sum = layout::hash(&[&self.hash, &tail[..8], &layout::END_MAGIC]);
        if tail[8 + HASH_BYTES..] != layout::END_MAGIC || tail[8..8 + HASH_BYTES] != sum {
            return Err(fault(self.chunk, "it is cut, or its last bytes are damaged".to_owned()));
        }
        Ok(layout::u64_at(tail, 0))
    }

    /// The number of records, and offset and first record of each block.
    fn check_index(&self, index: &[u8]) -> Result<(u32, Vec<(u64, u32)>)> {
        let bad = |reason: &str| fault(self.chunk, format!("index: {reason}"));
        if index.len() < layout::INDEX_FIXED_BYTES {
            return Err(bad("too short"));
        }
        let (body, sum) = index.split_at(index.len() - HASH_BYTES);
        if body[..4] != layout::TAG_INDEX || sum != layout::hash(&[&self.hash, body]) {
            return Err(bad("checksum mismatch"));
        }
        let (blocks, records) = (layout::u32_at(body, 4), layout::u32_at(body, 8));
        let entries = body[12..].chunks_exact(layout::INDEX_ENTRY_BYTES);
        let whole = entries.remainder().is_empty() && entries.len() == blocks as usize;
        let entries: Vec<_> =
            entries.map(|entry| (layout::u64_at(entry, 0), layout::u32_at(entry, 8))).collect();
        let first_is_0 = entries.first().is_none_or(|(_, first)| *first == 0);
        let ascending = entries.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1);
        let records_in_blocks = entries.last().map_or(records == 0, |last| last.1 < records);
        if !(whole && first_is_0 && ascending && records_in_blocks) {
            return Err(bad("its entries contradict each other"));
        }
        Ok((records, entries))
    }

    /// Checks a block and decompresses it.
    fn open_block(
        &self,
        offset: u64,
        first_record: u32,
        head_bytes: &[u8],
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        let bad = |reason: &str| fault(self.chunk, format!("block at byte {offset}: {reason}"));
        let (numbers, sum) = head_bytes.split_at(BLOCK_HEAD_BYTES - HASH_BYTES);
        if sum != layout::hash(&[&self.hash, numbers, payload]) {
            return Err(bad("checksum mismatch"));
        }
        let head = BlockHead::from_bytes(numbers);
        let placed = numbers[..4] == layout::TAG_BLOCK
            && head.payload_bytes as usize == payload.len()
            && head.first_record == first_record
            && head.records > 0;
        if !placed {
            return Err(bad("it does not belong here"));
        }
        if head.raw_bytes as usize > RAW_BYTES_MAX {
            return Err(bad("larger than any block"));
        }
        let raw = zstd::bulk::decompress(payload, head.raw_bytes as usize)
            .map_err(|error| bad(&format!("zstd: {error}")))?;
        if raw.len() != head.raw_bytes as usize {
            return Err(bad("zstd: another length than announced"));
        }
        Ok(raw)
    }

    /// Takes the bytes of the next record off `rest`.
    fn next_record<'a>(&self, number: u32, rest: &mut &'a [u8]) -> Result<&'a [u8]> {
        let bad = || fault(self.chunk, format!("record {number}: its length is wrong"));
        let (len, behind) = rest.split_first_chunk::<4>().ok_or_else(bad)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (record, behind) = behind.split_at_checked(len).ok_or_else(bad)?;
        *rest = behind;
        Ok(record)
    }

    fn decode(&self, number: u32, bytes: &[u8]) -> Result<DocumentRecord> {
        let decoded = match self.version {
            1 => postcard::take_from_bytes::<format1::Record>(bytes)
                .map(|(record, rest)| (record.into(), rest)),
            _ => postcard::take_from_bytes(bytes),
        };
        match decoded {
            Ok((record, [])) => Ok(record),
            Ok(_) => Err(fault(self.chunk, format!("record {number}: bytes are left over"))),
            Err(error) => Err(fault(self.chunk, format!("record {number}: {error}"))),
        }
    }
}

fn fault(chunk: ChunkKey, reason: String) -> Error {
    Error::corrupt(format!("facts of chunk {chunk}"), reason)
}

fn read_exact(chunk: ChunkKey, input: &mut impl Read, at: u64, out: &mut [u8]) -> Result<()> {
    input.read_exact(out).map_err(|source| match source.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            fault(chunk, format!("it is cut in the piece that begins at byte {at}"))
        }
        _ => Error::Io { path: format!("facts of chunk {chunk}"), error: source },
    })
}

/// Reads `len` bytes, holding no more than what has arrived.
fn read_vec(chunk: ChunkKey, input: &mut impl Read, at: u64, len: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = input.take(len as u64).read_to_end(&mut out);
    read.map_err(|source| Error::Io { path: format!("facts of chunk {chunk}"), error: source })?;
    if out.len() < len {
        return Err(fault(chunk, format!("it is cut in the piece that begins at byte {at}")));
    }
    Ok(out)
}
