//! Reading archives that anyone made: WARC 1.0 and 1.1, plain, gzip or zstd.
//!
//! A compressed archive may have one member per record (then each record's place
//! is known and it can be read alone) or any other division. Invariants: memory
//! is bounded by the header limit plus the caller's block limit, whatever the
//! input; a file that ends inside a record is an error; after an error the
//! reader has ended.

use std::io::Read;

use super::http_head::unfold;
use super::warc::Record;
use crate::{Error, Result};

mod members;
#[cfg(test)]
mod tests;

use members::Members;

/// Bytes of a record's first line and fields together.
pub const HEADER_BYTES_MAX: usize = 64 << 10;
/// Bytes of the version behind `WARC/`, which are ASCII.
const VERSION_BYTES_MAX: usize = 16;
/// Empty lines before a record, beyond which the input is noise.
const BLANK_LINES_MAX: usize = 1_000;

/// A record, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRecord {
    /// The record. Its block ends at the caller's limit.
    pub record: Record,
    /// The length of its whole block: larger than the block here if that was cut.
    pub block_bytes: u64,
    /// Its place in the file, if these bytes hold this record and nothing else.
    pub place: Option<ByteRange>,
}

/// Some bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ByteRange {
    pub offset: u64,
    pub len: u64,
}

/// An archive being read.
pub struct WarcReader<R> {
    /// What the archive is called in errors.
    name: String,
    input: Members<R>,
    block_bytes_max: usize,
    records: u64,
    ended: bool,
}

impl<R: Read> WarcReader<R> {
    /// Looks at the first bytes to see how the archive is compressed. `name` is
    /// for error messages; of longer blocks only `block_bytes_max` bytes are kept.
    pub fn open(name: &str, input: R, block_bytes_max: usize) -> Result<WarcReader<R>> {
        let input = Members::open(input)
            .map_err(|error| Error::corrupt(name, format!("its beginning: {error}")))?;
        Ok(WarcReader { name: name.to_owned(), input, block_bytes_max, records: 0, ended: false })
    }

    fn next_record(&mut self) -> Result<Option<FoundRecord>> {
        if !self.skip_blank_lines()? {
            return Ok(None);
        }
        let start = self.input.start();
        let (mut record, block_bytes) = self.read_headers()?;
        let kept = usize::try_from(block_bytes)
            .map_or(self.block_bytes_max, |bytes| bytes.min(self.block_bytes_max));
        self.input
            .read_into(&mut record.block, kept as u64)
            .map_err(|error| self.broken(&error))?;
        let skipped = self.input.skip(block_bytes - record.block.len() as u64);
        let skipped = skipped.map_err(|error| self.broken(&error))?;
        if record.block.len() as u64 + skipped < block_bytes {
            return Err(self.fault("the file ends inside its block"));
        }
        for _ in 0..2 {
            let line = self.read_line()?;
            if line.as_deref() != Some(b"") {
                return Err(self.fault("two line ends must follow its block"));
            }
        }
        // Looking ahead ends the member, which checks its sum.
        self.input.peek().map_err(|error| self.broken(&error))?;
        let place = start.zip(self.input.end());
        let place = place.map(|(offset, end)| ByteRange { offset, len: end - offset });
        self.records += 1;
        Ok(Some(FoundRecord { record, block_bytes, place }))
    }

    /// `false` at the end of the file.
    fn skip_blank_lines(&mut self) -> Result<bool> {
        for _ in 0..BLANK_LINES_MAX {
            match self.input.peek().map_err(|error| self.broken(&error))? {
                None => return Ok(false),
                Some(b'\r' | b'\n') => self.read_line()?,
                Some(_) => return Ok(true),
            };
        }
        Err(self.fault("too many empty lines stand before it"))
    }

    /// A record without its block, and the length of that.
    fn read_headers(&mut self) -> Result<(Record, u64)> {
        let cut = "the file ends inside its header";
        let first = self.read_line()?.ok_or_else(|| self.fault(cut))?;
        let is_version = |text: &&[u8]| {
            text.len() <= VERSION_BYTES_MAX && text.iter().all(|byte| matches!(byte, b' '..=b'~'))
        };
        let Some(version) = first.strip_prefix(b"WARC/").filter(is_version) else {
            return Err(self.fault("it does not begin with WARC/ and a version"));
        };
        let version = String::from_utf8_lossy(version).into_owned();
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut budget = HEADER_BYTES_MAX.saturating_sub(first.len());
        loop {
            let line = self.read_line()?.ok_or_else(|| self.fault(cut))?;
            if line.is_empty() {
                break;
            }
            budget = budget.checked_sub(line.len() + 2).ok_or_else(|| {
                self.fault(&format!("its header is longer than {}", header_max()))
            })?;
            let text = String::from_utf8_lossy(&line);
            match (text.starts_with([' ', '\t']), headers.last_mut(), text.split_once(':')) {
                (true, Some((_, value)), _) => unfold(value, &text),
                (_, _, Some((name, value))) => {
                    headers.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                (_, _, None) => return Err(self.fault("a header line has no colon")),
            }
        }
        let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|(_, value)| value.parse().ok());
        let length =
            length.ok_or_else(|| self.fault("it has no Content-Length that is a number"))?;
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
        Ok((Record { version, headers, block: Vec::new() }, length))
    }

    /// A line without its end; `None` when the file ends before a line end.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>> {
        let line = self.input.read_line(HEADER_BYTES_MAX).map_err(|error| self.broken(&error))?;
        match line {
            Some(line) if line.len() > HEADER_BYTES_MAX => {
                Err(self.fault(&format!("a header line is longer than {}", header_max())))
            }
            line => Ok(line),
        }
    }

    fn broken(&self, error: &std::io::Error) -> Error {
        self.fault(&error.to_string())
    }

    fn fault(&self, reason: &str) -> Error {
        Error::corrupt(self.name.clone(), format!("record {}: {reason}", self.records))
    }
}

/// The limit of a header, for messages.
fn header_max() -> String {
    page::bytesize::human_bytes_of(HEADER_BYTES_MAX as u64)
}

impl<R: Read> Iterator for WarcReader<R> {
    type Item = Result<FoundRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
