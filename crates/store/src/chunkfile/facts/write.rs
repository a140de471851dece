//! Writing a facts file: records into blocks, blocks into bytes.

use super::layout::{self, BlockHead, Hash};
use super::{BLOCK_BYTES_TARGET, FORMAT_VERSION, RECORD_BYTES_MAX, RECORDS_MAX};
use crate::chunkfile::document::DocumentRecord;
use crate::objects::ChunkKey;
use crate::{Error, Result};

/// Level 1: twice as fast as the default, and a few percent larger.
const ZSTD_LEVEL: i32 = 1;

/// Collects the records of one chunk. Used for one chunk after the other it keeps
/// its buffers, which saves up to a fifth of the time.
pub struct FactsWriter {
    chunk: ChunkKey,
    header_hash: Hash,
    out: Vec<u8>,
    /// The open block: each record behind its length.
    raw: Vec<u8>,
    /// The last block, compressed.
    payload: Vec<u8>,
    block_records: u32,
    records: u32,
    /// Offset and first record of each closed block.
    blocks: Vec<(u64, u32)>,
    /// Made for the first block and used for all.
    compressor: Option<zstd::bulk::Compressor<'static>>,
}

impl FactsWriter {
    /// Begins the file of a chunk without any record.
    pub fn new(chunk: ChunkKey) -> FactsWriter {
        let (header, header_hash) = layout::header(chunk, FORMAT_VERSION);
        FactsWriter {
            chunk,
            header_hash,
            out: header.to_vec(),
            raw: Vec::new(),
            payload: Vec::new(),
            block_records: 0,
            records: 0,
            blocks: Vec::new(),
            compressor: None,
        }
    }

    /// Begins the file of another chunk; what was pushed and not finished is gone.
    pub fn restart(&mut self, chunk: ChunkKey) {
        let (header, header_hash) = layout::header(chunk, FORMAT_VERSION);
        self.chunk = chunk;
        self.header_hash = header_hash;
        self.out.clear();
        self.out.extend_from_slice(&header);
        self.raw.clear();
        self.blocks.clear();
        (self.block_records, self.records) = (0, 0);
    }

    /// Adds a record. After an error the file is as it was before.
    pub fn push(&mut self, record: &DocumentRecord) -> Result<()> {
        assert!(!self.out.is_empty(), "a finished file takes no records; restart comes first");
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

    /// The number of records that were written.
    pub fn len(&self) -> usize {
        self.records as usize
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The bytes of the file. The writer is of use again after [`FactsWriter::restart`].
    pub fn finish(&mut self) -> Result<Vec<u8>> {
        assert!(!self.out.is_empty(), "a file is finished once");
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
        Ok(std::mem::take(&mut self.out))
    }

    fn close_block(&mut self) -> Result<()> {
        let refused =
            |source| Error::Io { path: format!("facts of chunk {}", self.chunk), error: source };
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(refused)?),
        };
        self.payload.clear();
        self.payload.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        compressor.compress_to_buffer(&self.raw, &mut self.payload).map_err(refused)?;
        let fits = "a block has at most one record beyond its target";
        let head = BlockHead {
            payload_bytes: u32::try_from(self.payload.len()).expect(fits),
            raw_bytes: u32::try_from(self.raw.len()).expect(fits),
            first_record: self.records - self.block_records,
            records: self.block_records,
        };
        let offset = self.out.len();
        self.out.extend_from_slice(&head.to_bytes());
        let sum = layout::hash(&[&self.header_hash, &head.to_bytes(), &self.payload]);
        self.out.extend_from_slice(&sum);
        self.out.extend_from_slice(&self.payload);
        self.blocks.push((offset as u64, head.first_record));
        self.raw.clear();
        self.block_records = 0;
        Ok(())
    }
}
