//! Sorts more records than memory holds: sorted runs in files, merged.
//!
//! Invariant: at most [`RUN_BYTES`] are in memory while records come, and a buffer for each run
//! while they go. Records with the same key keep the order in which they came.

use super::disk::Disk;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use store::{Error, Result};

/// Bytes of records in memory. A million nodes of an x-file make ten runs.
const RUN_BYTES: usize = 32 << 20;
/// What a record costs besides its bytes.
const RECORD_BYTES: usize = 48;
/// Bytes read at a time from each run.
const BUFFER_BYTES: usize = 256 << 10;
/// Longest key or value: a folder of a listing is not among them, a node of an x-file is.
const FIELD_BYTES_MAX: usize = 16 << 20;

/// A record, by its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Takes records in any order.
pub(super) struct Sorter<'d> {
    disk: &'d Disk,
    run_bytes: usize,
    held: Vec<Record>,
    held_bytes: usize,
    runs: Vec<File>,
}

impl<'d> Sorter<'d> {
    pub(super) fn new(disk: &'d Disk) -> Sorter<'d> {
        Sorter { disk, run_bytes: RUN_BYTES, held: Vec::new(), held_bytes: 0, runs: Vec::new() }
    }

    pub(super) fn push(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        self.held_bytes += key.len() + value.len() + RECORD_BYTES;
        self.held.push(Record { key, value });
        if self.held_bytes < self.run_bytes {
            return Ok(());
        }
        self.spill()
    }

    fn spill(&mut self) -> Result<()> {
        self.held.sort_by(|a, b| a.key.cmp(&b.key));
        let mut file = self.disk.begin()?;
        for record in self.held.drain(..) {
            for field in [record.key, record.value] {
                let length = u32::try_from(field.len()).unwrap_or(u32::MAX).to_le_bytes();
                file.write_all(&length)
                    .and_then(|()| file.write_all(&field))
                    .map_err(|error| Error::io(self.disk.place("writing"), error))?;
            }
        }
        self.held_bytes = 0;
        self.runs.push(file.reopen()?);
        Ok(())
    }

    /// The records in order.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.held.sort_by(|a, b| a.key.cmp(&b.key));
            return Ok(Sorted {
                held: self.held.into_iter(),
                runs: Vec::new(),
                next: BinaryHeap::new(),
            });
        }
        if !self.held.is_empty() {
            self.spill()?;
        }
        let mut runs: Vec<Run> = Vec::with_capacity(self.runs.len());
        let mut next = BinaryHeap::with_capacity(self.runs.len());
        for (at, file) in self.runs.into_iter().enumerate() {
            let mut run = Run { file: BufReader::with_capacity(BUFFER_BYTES, file) };
            if let Some(record) = run.next()? {
                next.push(Reverse(Head { key: record.key, run: at, value: record.value }));
            }
            runs.push(run);
        }
        Ok(Sorted { held: Vec::new().into_iter(), runs, next })
    }
}

/// The first record of a run that has not been taken. Runs that came first win.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: Vec<u8>,
    run: usize,
    value: Vec<u8>,
}

struct Run {
    file: BufReader<File>,
}

impl Run {
    fn next(&mut self) -> Result<Option<Record>> {
        let Some(key) = self.field()? else { return Ok(None) };
        let cut_short = || Error::corrupt("a file of a mirror's sort", "it is cut short");
        let value = self.field()?.ok_or_else(cut_short)?;
        Ok(Some(Record { key, value }))
    }

    fn field(&mut self) -> Result<Option<Vec<u8>>> {
        let failed = |error| Error::io("a file of a mirror's sort", error);
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(failed)?,
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > FIELD_BYTES_MAX {
            return Err(Error::corrupt("a file of a mirror's sort", "a record is too long"));
        }
        let mut field = vec![0; length];
        self.file.read_exact(&mut field).map_err(failed)?;
        Ok(Some(field))
    }
}

/// Records in the order of their keys.
pub(super) struct Sorted {
    held: std::vec::IntoIter<Record>,
    runs: Vec<Run>,
    next: BinaryHeap<Reverse<Head>>,
}

impl Sorted {
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        if self.runs.is_empty() {
            return Ok(self.held.next());
        }
        let Some(Reverse(head)) = self.next.pop() else { return Ok(None) };
        if let Some(record) = self.runs[head.run].next()? {
            self.next.push(Reverse(Head { key: record.key, run: head.run, value: record.value }));
        }
        Ok(Some(Record { key: head.key, value: head.value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_in_order_of_their_keys_whether_they_fit_in_memory_or_not() {
        let place = tempfile::tempdir().unwrap();
        let disk = Disk::open(place.path()).unwrap();
        for run_bytes in [RUN_BYTES, 500, 1] {
            let mut sorter = Sorter { run_bytes, ..Sorter::new(&disk) };
            for number in 0..300_u32 {
                let key = (number * 7 % 100).to_be_bytes().to_vec();
                sorter.push(key, number.to_be_bytes().to_vec()).unwrap();
            }
            let mut sorted = sorter.finish().unwrap();
            let mut records = Vec::new();
            while let Some(record) = sorted.next().unwrap() {
                records.push(record);
            }
            assert_eq!(records.len(), 300);
            assert!(records.is_sorted(), "same keys in the order in which they came");
            assert!(disk.names("writing").unwrap().is_empty(), "nothing is left");
        }
    }
}
