//! Writing a facts file: records into blocks, blocks into bytes.

use super::layout::{self, BlockHead, Hash};
use super::{BLOCK_BYTES_TARGET, RECORD_BYTES_MAX, RECORDS_MAX};
use crate::chunkfile::document::DocumentRecord;
use crate::objects::ChunkKey;
use crate::{Error, Result};

/// Level 1: twice as fast as the default, and a few percent larger.
const ZSTD_LEVEL: i32 = 1;

/// Collects the records of one chunk.
pub struct FactsWriter {
    chunk: ChunkKey,
    header_hash: Hash,
    out: Vec<u8>,
    /// The open block: each record behind its length.
    raw: Vec<u8>,
    block_records: u32,
    records: u32,
    /// Offset and first record of each closed block.
    blocks: Vec<(u64, u32)>,
    /// Made for the first block and used for all.
    compressor: Option<zstd::bulk::Compressor<'static>>,
}

impl FactsWriter {
    /// An empty file.
    pub fn new(chunk: ChunkKey) -> FactsWriter {
        let (header, header_hash) = layout::header(chunk);
        FactsWriter {
            chunk,
            header_hash,
            out: header.to_vec(),
            raw: Vec::new(),
            block_records: 0,
            records: 0,
            blocks: Vec::new(),
            compressor: None,
        }
    }

    /// Adds a record. After an error the file is as it was before.
    pub fn push(&mut self, record: &DocumentRecord) -> Result<()> {
        let what = |what: &str| format!("{what} of chunk {}", self.chunk);
        if self.records as usize >= RECORDS_MAX {
            let (bytes, max) = (RECORDS_MAX as u64 + 1, RECORDS_MAX as u64);
            return Err(Error::TooLarge { what: what("the number of records"), bytes, max });
        }
        let start = self.raw.len();
        let mut raw = std::mem::take(&mut self.raw);
        raw.extend([0; 4]);
        // Writing to memory fails for no value of this type: it has no unsized parts.
        self.raw =
            postcard::to_extend(record, raw).expect("a document record serialises into memory");
        let bytes = self.raw.len() - start - 4;
        if bytes > RECORD_BYTES_MAX {
            self.raw.truncate(start);
            let (bytes, max) = (bytes as u64, RECORD_BYTES_MAX as u64);
            return Err(Error::TooLarge { what: format!("record {}", record.docid), bytes, max });
        }
        let len = u32::try_from(bytes).expect("RECORD_BYTES_MAX fits u32");
        self.raw[start..start + 4].copy_from_slice(&len.to_le_bytes());
        self.records += 1;
        self.block_records += 1;
        if self.raw.len() >= BLOCK_BYTES_TARGET { self.close_block() } else { Ok(()) }
    }

    /// Records so far.
    pub fn len(&self) -> usize {
        self.records as usize
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The bytes of the file.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        if self.block_records > 0 {
            self.close_block()?;
        }
        let index_at = self.out.len() as u64;
        let mut index = layout::TAG_INDEX.to_vec();
        let blocks = u32::try_from(self.blocks.len()).expect("no more blocks than records");
        index.extend(blocks.to_le_bytes());
        index.extend(self.records.to_le_bytes());
        for (offset, first_record) in &self.blocks {
            index.extend(offset.to_le_bytes());
            index.extend(first_record.to_le_bytes());
        }
        let sum = layout::hash(&[&self.header_hash, &index]);
        self.out.extend(index);
        self.out.extend(sum);
        let sum = layout::hash(&[&self.header_hash, &index_at.to_le_bytes(), &layout::END_MAGIC]);
        self.out.extend(index_at.to_le_bytes());
        self.out.extend(sum);
        self.out.extend(layout::END_MAGIC);
        Ok(self.out)
    }

    fn close_block(&mut self) -> Result<()> {
        let refused = |source| Error::Io { path: format!("facts of chunk {}", self.chunk), source };
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(refused)?),
        };
        let offset = self.out.len();
        let payload_at = offset + layout::BLOCK_HEAD_BYTES;
        self.out.resize(payload_at + zstd::zstd_safe::compress_bound(self.raw.len()), 0);
        let payload_bytes = compressor
            .compress_to_buffer(&self.raw, &mut self.out[payload_at..])
            .map_err(refused)?;
        self.out.truncate(payload_at + payload_bytes);
        let fits = "a block has at most one record beyond its target";
        let head = BlockHead {
            payload_bytes: u32::try_from(payload_bytes).expect(fits),
            raw_bytes: u32::try_from(self.raw.len()).expect(fits),
            first_record: self.records - self.block_records,
            records: self.block_records,
        };
        let head_bytes = head.to_bytes();
        let sum = layout::hash(&[&self.header_hash, &head_bytes, &self.out[payload_at..]]);
        self.out[offset..offset + head_bytes.len()].copy_from_slice(&head_bytes);
        self.out[offset + head_bytes.len()..payload_at].copy_from_slice(&sum);
        self.blocks.push((offset as u64, head.first_record));
        self.raw.clear();
        self.block_records = 0;
        Ok(())
    }
}
