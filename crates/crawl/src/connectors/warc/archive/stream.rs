//! An archive from one record to the next, and what each of them tells of a page.
//!
//! Unlike a listing it takes any division into compressed members, and tells also of pages
//! that were not there. Invariant: with every record comes the [`Spot`] behind it, and an
//! archive that is opened there goes on with the next record, whatever its division is.

use super::{Fault, RECORD_BYTES_MAX, open, response, url_of};
use crate::connectors::content;
use page::facts::{Facts, SHORT_TEXT_BYTES_MAX};
use page::text::collapse;
use page::wat;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use store::chunkfile::http_head;
use store::chunkfile::warc::Record;
use store::chunkfile::warc_reader::WarcReader;

/// The frame at the head of a zstd archive that holds its dictionary.
const DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// A place between two records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot {
    /// A byte where a record begins that can be read by itself.
    pub offset: u64,
    /// Records to pass over from there: those that cannot.
    pub passed: u64,
}

/// A record, and the place behind it.
#[derive(Debug)]
pub struct StreamRecord {
    /// The record; a long block ends at [`RECORD_BYTES_MAX`].
    pub record: Record,
    /// Where to go on.
    pub behind: Spot,
}

/// An archive being read.
pub struct Stream {
    reader: WarcReader<File>,
    /// Where the reader began.
    from: u64,
    /// Where the next record begins.
    spot: Spot,
    /// Whether an archive can be opened elsewhere than at its head: not if its records need
    /// the dictionary that is there.
    is_divided: bool,
    ended: bool,
}

/// Opens an archive, to go on from a place.
pub fn stream(path: &Path, from: Spot) -> Result<Stream, Fault> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(Fault::Io)?;
    file.take(DICTIONARY_MAGIC.len() as u64).read_to_end(&mut head).map_err(Fault::Io)?;
    let reader = open(path, from.offset, RECORD_BYTES_MAX)?;
    let mut stream = Stream {
        reader,
        from: from.offset,
        spot: Spot { passed: 0, ..from },
        is_divided: head != DICTIONARY_MAGIC,
        ended: false,
    };
    while stream.spot.offset == from.offset && stream.spot.passed < from.passed {
        match stream.next() {
            Some(Ok(_)) => {}
            Some(Err(fault)) => return Err(fault),
            None => break,
        }
    }
    Ok(stream)
}

impl Stream {
    /// Where the next record begins, or the damage if there was one.
    pub fn spot(&self) -> Spot {
        self.spot
    }
}

impl Iterator for Stream {
    type Item = Result<StreamRecord, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let found = match self.reader.next()? {
            Ok(found) => found,
            Err(error) => {
                self.ended = true;
                return Some(Err(Fault::Format(reason(error))));
            }
        };
        match found.place.filter(|_| self.is_divided) {
            Some(place) => {
                self.spot = Spot { offset: self.from + place.offset + place.len, passed: 0 };
            }
            None => self.spot.passed += 1,
        }
        Some(Ok(StreamRecord { record: found.record, behind: self.spot }))
    }
}

/// What is wrong with a record. Its number is left out: the reader counts from where it
/// began.
fn reason(error: store::Error) -> String {
    let reason = match error {
        store::Error::Corrupt { reason, .. } => reason,
        other => return other.to_string(),
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match reason.strip_prefix("record ").and_then(|rest| rest.split_once(": ")) {
        Some((number, rest)) if is_number(number) => rest.to_owned(),
        _ => reason,
    }
}

/// What a record tells of a page.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Tells {
    /// Nothing: it is about something else, or about a failure, which is no reason to
    /// think otherwise of a page.
    Nothing,
    /// It cannot be read.
    Unreadable,
    /// The page was there.
    Page(Box<ArchivedPage>),
    Gone {
        url: String,
        /// Why, in a word.
        why: &'static str,
    },
}

/// A page that was there.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ArchivedPage {
    pub url: String,
    /// The status it was answered with; 0 where there was none.
    pub status: u16,
    /// The server's name for itself.
    pub server: String,
    pub facts: Facts,
}

/// Why a page is not there that was answered with a status. `None` if it may be.
pub fn gone(status: u16) -> Option<&'static str> {
    match status {
        404 | 410 => Some("gone"),
        // It is what it was.
        304 => None,
        300..=399 => Some("redirected"),
        _ => None,
    }
}

/// Whether a record is an extract, as WAT archives have them.
pub fn is_extract(record: &Record) -> bool {
    record.kind() == "metadata" && is_json(record)
}

fn is_json(record: &Record) -> bool {
    let declared = record.header("content-type").unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// What a record tells. `is_wat`: its archive has a name of those that hold extracts.
pub fn record_kind(record: &Record, is_wat: bool) -> Tells {
    let is_told = match record.kind() {
        "response" | "resource" => true,
        "metadata" => is_wat || is_extract(record),
        _ => false,
    };
    let Some(url) = url_of(record).filter(|_| is_told) else { return Tells::Nothing };
    match record.kind() {
        "response" => of_response(record, url),
        "resource" => {
            let facts = content::facts(&url, record.header("content-type"), &record.block);
            Tells::Page(Box::new(ArchivedPage { url, status: 0, server: String::new(), facts }))
        }
        _ => of_extract(record, url),
    }
}

fn of_response(record: &Record, url: String) -> Tells {
    let Some(answer) = http_head::parse(&record.block) else { return Tells::Unreadable };
    let Some(status) = answer.status() else { return Tells::Unreadable };
    if let Some(why) = gone(status) {
        return Tells::Gone { url, why };
    }
    let server = answer.header("server").map(short).unwrap_or_default();
    match response(record, &url) {
        Some(it) => Tells::Page(Box::new(ArchivedPage { url, status, server, facts: it.facts })),
        None => Tells::Nothing,
    }
}

fn of_extract(record: &Record, url: String) -> Tells {
    if let Some(extract) = wat::read(&record.block) {
        let server = extract.server().map(short).unwrap_or_default();
        let facts = extract.facts(&url);
        return Tells::Page(Box::new(ArchivedPage { url, status: super::OK, server, facts }));
    }
    match wat::record_status(&record.block) {
        wat::RecordStatus::NoAnswer => Tells::Nothing,
        wat::RecordStatus::Unreadable | wat::RecordStatus::Answer(super::OK) => Tells::Unreadable,
        wat::RecordStatus::Answer(status) => match gone(status) {
            Some(why) => Tells::Gone { url, why },
            None => Tells::Nothing,
        },
    }
}

fn short(text: &str) -> String {
    collapse(text, SHORT_TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests;
