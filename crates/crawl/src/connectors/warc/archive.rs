//! One archive: what is captured in it, and one capture read at its place.
//!
//! Relies on `store::chunkfile::warc_reader`, which bounds memory whatever the file says.
//! Invariants: a listing goes over at most [`RECORDS_AT_ONCE`] records and says where the
//! next one begins; what was readable before a damaged record is listed; a capture is read
//! only where a record of its URL begins.

pub mod stream;

use super::super::content;
use crate::fetch::decode::Decoder;
use crate::fetch::{HeaderMap, HeaderValue};
use bytes::Bytes;
use hyper::header::CONTENT_ENCODING;
use page::facts::Facts;
use page::url::{Policy, canonical};
use page::wat;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;
use store::chunkfile::http_head::{self, HEAD_BYTES_MAX};
use store::chunkfile::warc::Record;
use store::chunkfile::warc_reader::{FoundRecord, WarcReader};

/// Records that one look goes over; what follows is another part of the archive.
pub const RECORDS_AT_ONCE: u64 = 5_000;
/// Bytes of a record that are read for its page; the rest is left out.
pub const RECORD_BYTES_MAX: usize = 16 << 20;
/// The status of a page that was there.
const OK: u16 = 200;

/// Where a page was captured, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaptureLocation {
    /// When; the beginning of 1970 if the record does not say so.
    pub date_ms: i64,
    /// The first byte of its record.
    pub offset: u64,
}

/// A part of an archive.
#[derive(Debug, Default)]
pub struct CaptureListing {
    /// The newest capture of each page.
    pub captures: HashMap<String, CaptureLocation>,
    /// Where the next part begins, if there is more.
    pub next: Option<u64>,
}

/// A page as it was captured.
#[allow(missing_docs)]
pub struct CapturedPage {
    pub facts: Facts,
    /// Its bytes; an extract has none.
    pub body: Bytes,
}

/// Why an archive cannot be read.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Fault {
    Io(std::io::Error),
    /// It is damaged, or no archive.
    Format(String),
}

/// Whether a name is one of an archive.
pub fn is_archive(name: &str) -> bool {
    [".warc", ".warc.gz"].iter().any(|it| name.ends_with(it)) || is_wat(name)
}

/// Whether a name is one of an archive of extracts.
pub fn is_wat(name: &str) -> bool {
    [".wat", ".wat.gz"].iter().any(|it| name.ends_with(it))
}

fn open(path: &Path, from: u64, kept: usize) -> Result<WarcReader<File>, Fault> {
    let mut file = File::open(path).map_err(Fault::Io)?;
    file.seek(SeekFrom::Start(from)).map_err(Fault::Io)?;
    WarcReader::open(&path.display().to_string(), file, kept).map_err(Fault::format)
}

impl Fault {
    fn format(error: store::Error) -> Fault {
        Fault::Format(error.to_string())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Io(error) => error.fmt(f),
            Fault::Format(reason) => reason.fmt(f),
        }
    }
}

/// Lists the captures of an archive, from a record on.
pub fn list(path: &Path, from: u64) -> Result<CaptureListing, Fault> {
    let is_wat = is_wat(&path.to_string_lossy());
    // One byte more shows that a record is too long.
    let kept = if is_wat { wat::BYTES_MAX + 1 } else { HEAD_BYTES_MAX };
    let mut listed = CaptureListing::default();
    let (mut records, mut end) = (0, from);
    for found in open(path, from, kept)? {
        let found = match found {
            Ok(found) => found,
            // The damaged record is a part of its own, which says so.
            Err(_) if records > 0 => {
                listed.next = Some(end);
                break;
            }
            Err(error) => return Err(Fault::format(error)),
        };
        let Some(place) = found.place else {
            return Err(Fault::Format(
                "its records cannot be read one by one; compress each of them by itself".to_owned(),
            ));
        };
        let offset = from + place.offset;
        if records == RECORDS_AT_ONCE {
            listed.next = Some(offset);
            break;
        }
        (records, end) = (records + 1, offset + place.len);
        if let Some(url) = captured(&found, is_wat) {
            let place = CaptureLocation { date_ms: found.record.date_ms().unwrap_or(0), offset };
            let newest = listed.captures.entry(url).or_insert(place);
            *newest = place.max(*newest);
        }
    }
    Ok(listed)
}

/// The page that a record has captured, if it has one.
fn captured(found: &FoundRecord, is_wat: bool) -> Option<String> {
    let record = &found.record;
    let is_page = match (record.kind(), is_wat) {
        ("response", false) => http_head::parse(&record.block)?.status() == Some(OK),
        ("resource", false) => true,
        ("metadata", true) => wat::read(&record.block).is_some(),
        _ => false,
    };
    url_of(record).filter(|_| is_page)
}

fn url_of(record: &Record) -> Option<String> {
    canonical(record.target_uri()?, &Policy::default()).ok()
}

/// Reads the capture of a page. `None` when no record of that page begins there.
pub fn read(path: &Path, offset: u64, url: &str) -> Result<Option<CapturedPage>, Fault> {
    let is_wat = is_wat(&path.to_string_lossy());
    let found = match open(path, offset, RECORD_BYTES_MAX)?.next() {
        None => return Ok(None),
        Some(found) => found.map_err(Fault::format)?,
    };
    let record = found.record;
    if url_of(&record).as_deref() != Some(url) {
        return Ok(None);
    }
    Ok(match (record.kind(), is_wat) {
        ("response", false) => response(&record, url),
        ("resource", false) => {
            let facts = content::facts(url, record.header("content-type"), &record.block);
            Some(CapturedPage { facts, body: Bytes::from(record.block) })
        }
        ("metadata", true) => {
            let facts = wat::read(&record.block).map(|it| it.facts(url));
            facts.map(|facts| CapturedPage { facts, body: Bytes::new() })
        }
        _ => None,
    })
}

fn response(record: &Record, url: &str) -> Option<CapturedPage> {
    let answer = http_head::parse(&record.block).filter(|it| it.status() == Some(OK))?;
    let stored = Bytes::from(answer.dechunked().into_owned());
    // Many archives name an encoding that they have taken off.
    let body = decoded(answer.header("content-encoding"), &stored).unwrap_or(stored);
    let facts = content::facts(url, answer.header("content-type"), &body);
    Some(CapturedPage { facts, body })
}

fn decoded(encoding: Option<&str>, stored: &Bytes) -> Option<Bytes> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding?).ok()?);
    let mut decoder = Decoder::new(&headers, RECORD_BYTES_MAX, None).ok()?;
    decoder.push(stored).ok()?;
    Some(decoder.into_beginning()).filter(|it| !it.is_empty())
}
