//! Archives for others: `.warc.gz` with one member per record, and a check of
//! any archive that is stricter than the usual tools.
//!
//! Relies on [`super::warc_reader`] for reading. Invariant: what is exported
//! holds every record it was given, in order, unchanged.

use std::collections::HashSet;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::bodies;
use super::warc::Record;
use super::warc_reader::WarcReader;
use crate::{Error, Result};

#[cfg(test)]
mod tests;
mod whole;

pub use whole::{ExportSummary, export_stored};

/// Record ids and faults a check remembers; beyond that it only counts.
const REMEMBERED_MAX: usize = 1_000_000;
/// Faults a report lists.
pub const FAULTS_MAX: usize = 100;

/// Writes records as `.warc.gz`, one gzip member each; returns how many.
pub fn export_warc_gz(
    records: impl IntoIterator<Item = Result<Record>>,
    out: impl Write,
) -> Result<u64> {
    let mut writer = WarcGzWriter::new(out);
    for record in records {
        writer.push(&record?)?;
    }
    writer.finish()
}

/// An archive that grows by a gzip member for each record.
struct WarcGzWriter<W: Write> {
    out: W,
    plain: Vec<u8>,
    records: u64,
}

impl<W: Write> WarcGzWriter<W> {
    fn new(out: W) -> WarcGzWriter<W> {
        WarcGzWriter { out, plain: Vec::new(), records: 0 }
    }

    fn push(&mut self, record: &Record) -> Result<()> {
        self.plain.clear();
        record.write_to(&mut self.plain);
        let mut member = GzEncoder::new(&mut self.out, Compression::default());
        member.write_all(&self.plain).map_err(refused)?;
        member.finish().map_err(refused)?;
        self.records += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.out.flush().map_err(refused)?;
        Ok(self.records)
    }
}

fn refused(source: std::io::Error) -> Error {
    Error::io("the exported archive", source)
}

/// What an archive holds, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ArchiveReport {
    pub records: u64,
    /// Those of type `response`.
    pub responses: u64,
    /// Those of type `revisit`.
    pub revisits: u64,
    /// Revisits that name a record which is not in the archive before them.
    pub revisits_without_target: u64,
    /// Everything that is wrong, at most [`FAULTS_MAX`] lines.
    pub faults: Vec<String>,
}

/// Reads an archive to its end: structure, digests, and targets of revisits.
///
/// A damaged archive is a report with faults, not an error: whoever checks wants
/// to know what was readable.
pub fn check(name: &str, input: impl Read, block_bytes_max: usize) -> Result<ArchiveReport> {
    let mut report = ArchiveReport::default();
    let mut known: HashSet<u64> = HashSet::new();
    let key = |id: &str| {
        let hash = page::ids::hash128(id.as_bytes());
        u64::from_le_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
    };
    for found in WarcReader::open(name, input, block_bytes_max)? {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                report.fault(error.to_string());
                break;
            }
        };
        let record = &found.record;
        report.records += 1;
        report.check_fields(record);
        if found.block_bytes == record.block.len() as u64
            && let Err(error) = bodies::check_digests(name, record)
        {
            report.fault(error.to_string());
        }
        if record.kind() == "revisit" {
            report.revisits += 1;
            let target = record.header("WARC-Refers-To").map(|id| id.trim_matches(['<', '>']));
            if !target.is_some_and(|id| known.contains(&key(id))) {
                report.revisits_without_target += 1;
            }
        }
        if let Some(id) = record.id()
            && known.len() < REMEMBERED_MAX
            && !known.insert(key(id))
        {
            report.fault(format!("{name}: two records have the id {id}"));
        }
    }
    Ok(report)
}

impl ArchiveReport {
    fn fault(&mut self, fault: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    /// Fields that every record, or every response and revisit, must have.
    fn check_fields(&mut self, record: &Record) {
        let mut needed = vec!["WARC-Type", "WARC-Record-ID", "WARC-Date"];
        match record.kind() {
            "response" => {
                self.responses += 1;
                needed.extend(["WARC-Target-URI", "WARC-Block-Digest", "WARC-Payload-Digest"]);
            }
            "revisit" => needed.extend(["WARC-Target-URI", "WARC-Profile"]),
            _ => {}
        }
        for name in needed {
            if record.header(name).is_none_or(str::is_empty) {
                let id = record.id().unwrap_or("(none)");
                self.fault(format!("record {} ({id}) has no {name}", self.records));
            }
        }
    }
}
