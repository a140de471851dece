//! A file that is to be loaded: which format it has, and its records one after the other.
//!
//! The content says what a file is, since names say little: lines of page JSON begin with
//! `{`, an archive with `WARC/` or as compressed bytes do. Invariants: looking at a file
//! makes nothing; memory is bounded by the longest record that counts, whatever the file is.

use super::mark::Stamp;
use crate::text::shown;
use ::crawl::connectors::warc::archive::stream::{self, Spot, Stream};
use ::crawl::connectors::warc::archive::{Fault, is_wat};
use anyhow::{Context, bail, ensure};
use page::webindex;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use store::chunkfile::warc::Record;

/// Bytes that are looked at to tell what a file is; blank ones before them count.
const HEAD_BYTES: u64 = 4_096;
/// What files begin with that are compressed with gzip or zstd, or have a frame that zstd
/// skips.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SKIPPED_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];
/// What some editors write before text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// WARC records, or WAT records, or both.
    Archive,
    /// Page JSON, one page a line.
    Lines,
}

/// A file that can be loaded.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its name as it was given, fit for a terminal.
    pub name: String,
    /// Its path, links resolved.
    pub path: PathBuf,
    pub format: SourceFormat,
    /// Which state of it that is.
    pub stamp: Stamp,
    /// Whether its name is one of WAT archives.
    pub is_wat: bool,
}

/// What is found in a file.
#[derive(Debug)]
pub enum SourceItem {
    /// A record of an archive.
    Record(Record),
    /// A line without its end.
    Line(Vec<u8>),
    /// A line that is longer than any page.
    LongLine,
}

impl SourceFile {
    /// Looks at a file that is named on the command line.
    pub fn look(path: &Path) -> anyhow::Result<SourceFile> {
        let name = shown(&path.display().to_string());
        let unread = || format!("cannot read {name}");
        let canonical = path.canonicalize().with_context(unread)?;
        let metadata = canonical.metadata().with_context(unread)?;
        ensure!(metadata.is_file(), "{name} is not a file; give the archives in it one by one");
        let mut head = Vec::new();
        let file = File::open(&canonical).with_context(unread)?;
        file.take(HEAD_BYTES).read_to_end(&mut head).with_context(unread)?;
        let Some(format) = format_of(&head) else {
            bail!(
                "{name} is neither a WARC or WAT archive nor page JSON: an archive begins with \
                 WARC/ or is compressed with gzip or zstd, a line of page JSON begins with {{"
            )
        };
        let modified_ns =
            metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        let stamp = Stamp { size_bytes: metadata.len(), modified_ns };
        let is_wat = is_wat(&canonical.to_string_lossy());
        Ok(SourceFile { name, path: canonical, format, stamp, is_wat })
    }

    /// Opens it, to go on from a place.
    pub fn open(&self, from: Spot) -> Result<Items, Fault> {
        match self.format {
            SourceFormat::Archive => {
                let stream = stream::stream(&self.path, from)?;
                Ok(Items::Archive(Box::new(stream)))
            }
            SourceFormat::Lines => Lines::open(&self.path, from.offset).map(Items::Lines),
        }
    }
}

/// What the first bytes of a file say. An empty file is an archive without records.
fn format_of(head: &[u8]) -> Option<SourceFormat> {
    if head.starts_with(&GZIP_MAGIC)
        || head.starts_with(&ZSTD_MAGIC)
        || head.get(1..).is_some_and(|rest| rest.starts_with(&SKIPPED_MAGIC))
    {
        return Some(SourceFormat::Archive);
    }
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    match text {
        [] => Some(SourceFormat::Archive),
        [b'{', ..] => Some(SourceFormat::Lines),
        text if text.starts_with(b"WARC/") => Some(SourceFormat::Archive),
        _ => None,
    }
}

/// The records of a file, each with the place behind it.
pub enum Items {
    Archive(Box<Stream>),
    Lines(Lines),
}

impl Iterator for Items {
    type Item = Result<(SourceItem, Spot), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Items::Archive(stream) => {
                let step = stream.next()?;
                Some(step.map(|step| (SourceItem::Record(step.record), step.behind)))
            }
            Items::Lines(lines) => lines.next(),
        }
    }
}

/// Lines that are not blank.
pub struct Lines {
    file: BufReader<File>,
    /// Where the next line begins.
    offset: u64,
}

impl Lines {
    fn open(path: &Path, from: u64) -> Result<Lines, Fault> {
        let mut file = File::open(path).map_err(Fault::Io)?;
        file.seek(SeekFrom::Start(from)).map_err(Fault::Io)?;
        Ok(Lines { file: BufReader::new(file), offset: from })
    }

    /// The next line, as far as a page may be long; `None` at the end of the file.
    fn read(&mut self) -> std::io::Result<Option<SourceItem>> {
        // One byte more for the line's end, and one that shows that it is too long.
        let limit = webindex::JSON_BYTES_MAX as u64 + 2;
        let mut line = Vec::new();
        let mut taken = self.file.by_ref().take(limit).read_until(b'\n', &mut line)? as u64;
        let is_long = taken == limit && line.last() != Some(&b'\n');
        if is_long {
            taken += self.file.skip_until(b'\n')? as u64;
        }
        let is_first = self.offset == 0;
        self.offset += taken;
        if taken == 0 {
            return Ok(None);
        }
        if is_long {
            return Ok(Some(SourceItem::LongLine));
        }
        let text = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(&line);
        Ok(Some(SourceItem::Line(text.trim_ascii().to_vec())))
    }
}

impl Iterator for Lines {
    type Item = Result<(SourceItem, Spot), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = match self.read() {
                Ok(item) => item?,
                Err(error) => return Some(Err(Fault::Io(error))),
            };
            if !matches!(&item, SourceItem::Line(line) if line.is_empty()) {
                return Some(Ok((item, Spot { offset: self.offset, passed: 0 })));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_say_what_a_file_is() {
        for (head, expected) in [
            (&b""[..], Some(SourceFormat::Archive)),
            (b"\r\n \n", Some(SourceFormat::Archive)),
            (b"\r\n\r\nWARC/1.0\r\n", Some(SourceFormat::Archive)),
            (&[0x1f, 0x8b, 8], Some(SourceFormat::Archive)),
            (&[0x28, 0xb5, 0x2f, 0xfd], Some(SourceFormat::Archive)),
            (&[0x5d, 0x2a, 0x4d, 0x18], Some(SourceFormat::Archive)),
            (b" \n\t{\"url\":", Some(SourceFormat::Lines)),
            ("\u{feff}{".as_bytes(), Some(SourceFormat::Lines)),
            (b"<html>", None),
            (b"delete", None),
            (b"PK\x03\x04", None),
        ] {
            assert_eq!(format_of(head), expected, "{head:?}");
        }
    }

    #[test]
    fn lines_go_on_behind_every_one_and_long_ones_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages.txt");
        let exact = "x".repeat(webindex::JSON_BYTES_MAX);
        let text = format!("\u{feff}{{1}}\r\n\n  \n{{2}}\n{exact}\nxx{exact}\n{{3}}");
        std::fs::write(&path, &text).unwrap();
        let read = |from: u64| -> Vec<(String, u64)> {
            let items = Lines::open(&path, from).unwrap().map(Result::unwrap);
            let word = |item| match item {
                SourceItem::Line(line) if line.len() == exact.len() => "exact".to_owned(),
                SourceItem::Line(line) => String::from_utf8(line).unwrap(),
                other => format!("{other:?}"),
            };
            items.map(|(item, behind)| (word(item), behind.offset)).collect()
        };
        let whole = read(0);
        let words: Vec<&str> = whole.iter().map(|(word, _)| &word[..word.len().min(8)]).collect();
        assert_eq!(words, ["{1}", "{2}", "exact", "LongLine", "{3}"]);
        for (at, (_, behind)) in whole.iter().enumerate() {
            assert_eq!(read(*behind), whole[at + 1..]);
        }
        assert_eq!(whole[4].1, text.len() as u64);
    }

    #[test]
    fn what_cannot_be_loaded_is_told_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "hello").unwrap();
        let told = |path: &Path| format!("{:#}", SourceFile::look(path).unwrap_err());
        assert!(told(&text).contains("notes.txt is neither a WARC"), "{}", told(&text));
        assert!(told(folder.path()).contains("is not a file"));
        let missing = told(&folder.path().join("a.warc"));
        assert!(missing.contains("cannot read") && missing.contains("a.warc"), "{missing}");
    }
}
