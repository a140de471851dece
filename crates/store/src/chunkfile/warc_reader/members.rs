//! The bytes of an archive, decompressed member by member.
//!
//! Invariant: the buffer never holds bytes of two members, so when it is empty
//! behind a member's end, the position in the file is that end exactly.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

/// Bytes decompressed at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// A zstd frame may ask for a window of 2^23 bytes (8 MiB), no more.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes of a dictionary at the head of a zstd archive.
const DICTIONARY_BYTES_MAX: u32 = 8 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: u32 = 0xfd2f_b528;
/// Frames that decoders skip have this number but for the last four bits.
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;
/// Empty members in a row. Each costs a load of the dictionary and brings nothing;
/// honest archives have none, or one at the end.
const EMPTY_MEMBERS_MAX: u32 = 100;
/// The one that holds a dictionary, by the `.warc.zst` convention.
const DICTIONARY_MAGIC: u32 = 0x184d_2a5d;

type File<R> = CountingReader<BufReader<Chain<Cursor<Vec<u8>>, R>>>;

enum Member<R> {
    Plain(File<R>),
    Gzip(Box<GzDecoder<File<R>>>),
    Zstd(ZstdDecoder<'static, File<R>>),
    Between(File<R>),
    /// Only while one of the others becomes another.
    Moving,
}

#[derive(Clone, Copy, PartialEq)]
enum Compression {
    Plain,
    Gzip,
    Zstd,
}

pub(super) struct Members<R> {
    member: Member<R>,
    kind: Compression,
    dictionary: Vec<u8>,
    /// Where in the file the open member begins.
    member_at: u64,
    /// Bytes decompressed from the open member so far.
    member_bytes: u64,
    /// Where in the file the last member that was not empty ended.
    data_end: u64,
    /// Empty members since the last one that was not.
    empty_members: u32,
    buffer: Vec<u8>,
    buffer_at: usize,
}

impl<R: Read> Members<R> {
    pub(super) fn open(mut input: R) -> io::Result<Members<R>> {
        let mut first = Vec::new();
        input.by_ref().take(8).read_to_end(&mut first)?;
        let number_at = |at: usize| {
            let bytes = first.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_le_bytes)
        };
        let magic = number_at(0);
        let mut dictionary = Vec::new();
        let mut skipped = 0;
        if magic == Some(DICTIONARY_MAGIC) {
            let len = number_at(4).unwrap_or(u32::MAX);
            dictionary = read_dictionary(&mut input, len)?;
            skipped = 8 + u64::from(len);
            first.clear();
        }
        let kind = match magic {
            Some(ZSTD_MAGIC) => Compression::Zstd,
            Some(magic) if magic & !0xf == SKIPPABLE_MAGIC => Compression::Zstd,
            _ if first.starts_with(&GZIP_MAGIC) => Compression::Gzip,
            _ => Compression::Plain,
        };
        let chained = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first).chain(input));
        let file = CountingReader { inner: chained, count: skipped };
        let member =
            if kind == Compression::Plain { Member::Plain(file) } else { Member::Between(file) };
        Ok(Members {
            member,
            kind,
            dictionary,
            empty_members: 0,
            member_at: skipped,
            member_bytes: 0,
            data_end: skipped,
            buffer: Vec::new(),
            buffer_at: 0,
        })
    }

    /// What is decompressed and not yet read; empty only at the end of the file.
    fn fill(&mut self) -> io::Result<&[u8]> {
        while self.buffer_at == self.buffer.len() {
            self.buffer.resize(BUFFER_BYTES, 0);
            self.buffer_at = BUFFER_BYTES;
            let read = match &mut self.member {
                Member::Plain(file) => file.read(&mut self.buffer),
                Member::Gzip(member) => member.read(&mut self.buffer),
                Member::Zstd(member) => member.read(&mut self.buffer),
                Member::Between(_) | Member::Moving => Ok(0),
            };
            let read = match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            self.buffer.truncate(read);
            self.buffer_at = 0;
            self.member_bytes += read as u64;
            if read == 0 && !self.next_member()? {
                break;
            }
        }
        Ok(&self.buffer[self.buffer_at..])
    }

    /// The next byte, unless the file is at its end.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        self.fill().map(|buffered| buffered.first().copied())
    }

    /// Where the next byte stands in the file, if one can begin to read there.
    /// Call behind [`Members::peek`].
    pub(super) fn start(&self) -> Option<u64> {
        self.border(self.member_at)
    }

    /// Where the last byte's member ends, if that byte is its last. Call behind
    /// [`Members::peek`].
    pub(super) fn end(&self) -> Option<u64> {
        self.border(self.data_end)
    }

    fn border(&self, at: u64) -> Option<u64> {
        let unread = (self.buffer.len() - self.buffer_at) as u64;
        match self.kind {
            Compression::Plain => Some(self.member_bytes - unread),
            _ => (self.member_bytes == unread).then_some(at),
        }
    }

    /// Appends up to `limit` bytes; fewer only at the end of the file.
    pub(super) fn read_into(&mut self, out: &mut Vec<u8>, limit: u64) -> io::Result<u64> {
        self.pass(limit, |piece| out.extend_from_slice(piece))
    }

    /// Passes over up to `limit` bytes; fewer only at the end of the file.
    pub(super) fn skip(&mut self, limit: u64) -> io::Result<u64> {
        self.pass(limit, |_| {})
    }

    /// A line without its end (`\n` or `\r\n`); `None` if the file ends first.
    /// A line that is longer than `limit` is returned when it has become so.
    pub(super) fn read_line(&mut self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let buffered = self.fill()?;
            if buffered.is_empty() {
                return Ok(None);
            }
            let end = buffered.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&buffered[..end.unwrap_or(buffered.len())]);
            self.buffer_at += end.map_or(self.buffer.len() - self.buffer_at, |end| end + 1);
            if end.is_some() && line.last() == Some(&b'\r') {
                line.pop();
            }
            if end.is_some() || line.len() > limit {
                return Ok(Some(line));
            }
        }
    }

    fn pass(&mut self, limit: u64, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
        let mut passed = 0;
        while passed < limit {
            let buffered = self.fill()?;
            if buffered.is_empty() {
                break;
            }
            let wanted = usize::try_from(limit - passed).unwrap_or(usize::MAX);
            let piece = &buffered[..buffered.len().min(wanted)];
            take(piece);
            let bytes = piece.len();
            self.buffer_at += bytes;
            passed += bytes as u64;
        }
        Ok(passed)
    }

    /// Ends the open member and opens the next; `false` at the end of the file.
    fn next_member(&mut self) -> io::Result<bool> {
        let mut file = match std::mem::replace(&mut self.member, Member::Moving) {
            Member::Gzip(member) => member.into_inner(),
            Member::Zstd(mut member) => {
                member.finish_frame()?;
                member.into_inner()
            }
            Member::Plain(file) => {
                self.member = Member::Plain(file);
                return Ok(false);
            }
            Member::Between(file) => file,
            // An error left it so; the reader above asks no more after one.
            Member::Moving => return Ok(false),
        };
        if self.member_bytes > 0 {
            self.data_end = file.count;
            self.empty_members = 0;
        } else {
            self.empty_members += 1;
        }
        if self.empty_members > EMPTY_MEMBERS_MAX {
            let reason = "it has too many empty members in a row";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        self.member_at = file.count;
        self.member_bytes = 0;
        if file.fill_buf()?.is_empty() {
            self.member = Member::Between(file);
            return Ok(false);
        }
        self.member = if self.kind == Compression::Gzip {
            Member::Gzip(Box::new(GzDecoder::new(file)))
        } else {
            let mut decoder = ZstdDecoder::with_dictionary(file, &self.dictionary)?.single_frame();
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Member::Zstd(decoder)
        };
        Ok(true)
    }
}

/// The dictionary is a zstd frame itself at times.
fn read_dictionary(input: &mut impl Read, len: u32) -> io::Result<Vec<u8>> {
    let invalid = |reason| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    if len > DICTIONARY_BYTES_MAX {
        return invalid("its dictionary is too large");
    }
    let mut bytes = Vec::new();
    if input.take(u64::from(len)).read_to_end(&mut bytes)? < len as usize {
        return invalid("it ends inside its dictionary");
    }
    if bytes.starts_with(&ZSTD_MAGIC.to_le_bytes()) {
        return zstd::bulk::decompress(&bytes, DICTIONARY_BYTES_MAX as usize);
    }
    Ok(bytes)
}

/// Counts what decoders take: they leave what is behind their member alone.
struct CountingReader<B> {
    inner: B,
    count: u64,
}

impl<B: BufRead> Read for CountingReader<B> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.count += read as u64;
        Ok(read)
    }
}

impl<B: BufRead> BufRead for CountingReader<B> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.count += amount as u64;
    }
}
