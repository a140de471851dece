//! Sorts more records than fit into memory: sorted runs in files, then one merge.
//!
//! One thread fills a buffer while another sorts the last one and writes it out. Invariants:
//! memory is bounded by [`Sorter::new`]'s bytes, a few times, whatever is pushed; the files
//! are gone with the sorter or the merge.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering as AtomicOrdering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use store::{Error, Result};

/// Bytes of a record at most: an anchor and two URIs fit many times.
const RECORD_BYTES_MAX: usize = 1 << 20;
/// Bytes that are read and written at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of a record that are compared without looking at it.
const PREFIX_BYTES: usize = 16;

/// Shortens a record, given the one before it in its run.
pub type Shorten = fn(before: &[u8], record: &[u8], out: &mut Vec<u8>);

/// Takes records in any order.
pub struct Sorter {
    buffer: Buffer,
    bytes_max: usize,
    full: Option<SyncSender<Buffer>>,
    writing: Option<JoinHandle<Result<Vec<PathBuf>>>>,
}

/// Records, and where they begin and how they sort.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    places: Vec<RecordPlace>,
}

/// Where a record lies in a buffer.
#[derive(Clone, Copy)]
struct RecordPlace {
    /// Its first bytes, which decide most comparisons.
    prefix: u128,
    begin: u32,
    end: u32,
}

impl Buffer {
    fn record(&self, place: RecordPlace) -> &[u8] {
        &self.bytes[place.begin as usize..place.end as usize]
    }

    fn push(&mut self, record: &[u8]) {
        let mut prefix = [0; PREFIX_BYTES];
        let count = record.len().min(PREFIX_BYTES);
        prefix[..count].copy_from_slice(&record[..count]);
        let from = self.bytes.len();
        self.bytes.extend_from_slice(record);
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (begin, end) = (narrow(from), narrow(self.bytes.len()));
        self.places.push(RecordPlace { prefix: u128::from_be_bytes(prefix), begin, end });
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|one, other| {
            one.prefix.cmp(&other.prefix).then_with(|| self.record(*one).cmp(self.record(*other)))
        });
        self.places = places;
    }
}

impl Sorter {
    /// Sorts in files of a directory, with buffers of so many bytes.
    pub fn new(directory: &Path, bytes_max: usize, shorten: Shorten) -> Result<Sorter> {
        let (full, incoming) = sync_channel(1);
        let directory = directory.to_owned();
        let writing = std::thread::Builder::new()
            .name("links-sort".into())
            .spawn(move || write_runs(&directory, &incoming, shorten))
            .map_err(|error| Error::io("links-sort", error))?;
        let (full, writing) = (Some(full), Some(writing));
        Ok(Sorter { buffer: Buffer::default(), bytes_max, full, writing })
    }

    /// Adds a record; writes a sorted run out when memory is full.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        if self.buffer.bytes.len() + record.len() > self.bytes_max && !self.buffer.places.is_empty()
        {
            self.hand_over()?;
        }
        self.buffer.push(record);
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        let capacity = self.bytes_max.min(self.buffer.bytes.capacity());
        let places = self.buffer.places.len();
        let empty =
            Buffer { bytes: Vec::with_capacity(capacity), places: Vec::with_capacity(places) };
        let full = std::mem::replace(&mut self.buffer, empty);
        match self.full.as_ref().map(|sender| sender.send(full)) {
            Some(Ok(())) => Ok(()),
            // It has ended before its time: it says why.
            _ => self.runs().and(Err(Error::invariant("sorting has ended too early"))),
        }
    }

    /// The runs, when all are written.
    fn runs(&mut self) -> Result<Vec<PathBuf>> {
        self.full = None;
        let Some(writing) = self.writing.take() else { return Ok(Vec::new()) };
        writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// All records in order. What fits into memory has seen no file.
    pub fn finish(mut self) -> Result<Merge> {
        let runs = self.runs()?;
        let mut last = std::mem::take(&mut self.buffer);
        last.sort();
        let mut merge = Merge { last, at: 0, runs: BinaryHeap::new(), files: runs.clone() };
        for (order, path) in runs.iter().enumerate() {
            let file = File::open(path).map_err(|error| Error::io(path, error))?;
            let input = BufReader::with_capacity(BUFFER_BYTES, file);
            let mut run = Run { input, record: Vec::new(), order, path: path.clone() };
            if run.advance()? {
                merge.runs.push(Reverse(run));
            }
        }
        Ok(merge)
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        for path in self.runs().unwrap_or_default() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Runs of this process so far: their files are told apart by it.
static RUNS: AtomicU64 = AtomicU64::new(0);

fn write_runs(
    directory: &Path,
    incoming: &Receiver<Buffer>,
    shorten: Shorten,
) -> Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    let written = write_each(directory, incoming, shorten, &mut runs);
    if written.is_err() {
        for path in &runs {
            let _ = std::fs::remove_file(path);
        }
    }
    written.map(|()| runs)
}

fn write_each(
    directory: &Path,
    incoming: &Receiver<Buffer>,
    shorten: Shorten,
    runs: &mut Vec<PathBuf>,
) -> Result<()> {
    let mut short = Vec::new();
    for mut buffer in incoming {
        buffer.sort();
        let number = RUNS.fetch_add(1, AtomicOrdering::Relaxed);
        let path = directory.join(format!("run-{}-{number}", std::process::id()));
        runs.push(path.clone());
        let failed = |error| Error::io(&path, error);
        let file = File::options().write(true).create_new(true).open(&path).map_err(failed)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut before: &[u8] = &[];
        for place in &buffer.places {
            let record = buffer.record(*place);
            short.clear();
            shorten(before, record, &mut short);
            let length = u32::try_from(short.len()).unwrap_or(u32::MAX);
            out.write_all(&length.to_le_bytes()).map_err(failed)?;
            out.write_all(&short).map_err(failed)?;
            before = record;
        }
        out.flush().map_err(failed)?;
    }
    Ok(())
}

/// All records in order.
pub struct Merge {
    last: Buffer,
    at: usize,
    runs: BinaryHeap<Reverse<Run>>,
    files: Vec<PathBuf>,
}

struct Run {
    input: BufReader<File>,
    record: Vec<u8>,
    order: usize,
    path: PathBuf,
}

impl Run {
    fn advance(&mut self) -> Result<bool> {
        let mut length = [0; 4];
        match self.input.read_exact(&mut length) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read.map_err(|error| Error::io(&self.path, error))?,
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > RECORD_BYTES_MAX {
            return Err(Error::corrupt(self.path.display().to_string(), "a record is too long"));
        }
        self.record.resize(length, 0);
        self.input.read_exact(&mut self.record).map_err(|error| Error::io(&self.path, error))?;
        Ok(true)
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Run) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Run {}
impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Run) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Run {
    fn cmp(&self, other: &Run) -> Ordering {
        self.record.cmp(&other.record).then(self.order.cmp(&other.order))
    }
}

impl Merge {
    /// Puts the next record into `out`; `false` behind the last one.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let last = self.last.places.get(self.at).map(|place| self.last.record(*place));
        let run = self.runs.peek_mut();
        let take_run = match (&run, last) {
            (None, None) => return Ok(false),
            (Some(run), Some(last)) => run.0.record.as_slice() <= last,
            (Some(_), None) => true,
            (None, Some(_)) => false,
        };
        match run.filter(|_| take_run) {
            Some(mut run) => {
                std::mem::swap(out, &mut run.0.record);
                if !run.0.advance()? {
                    PeekMut::pop(run);
                }
            }
            None => {
                out.extend_from_slice(last.unwrap_or_default());
                self.at += 1;
            }
        }
        Ok(true)
    }
}

impl Drop for Merge {
    fn drop(&mut self) {
        for path in &self.files {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(_: &[u8], record: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(record);
    }

    proptest! {
        #[test]
        fn records_come_back_sorted(
            records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..300),
            bytes_max in 1usize..2_000,
        ) {
            let place = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(place.path(), bytes_max, whole).unwrap();
            for record in &records {
                sorter.push(record).unwrap();
            }
            let mut merge = sorter.finish().unwrap();
            let (mut found, mut out) = (Vec::new(), Vec::new());
            while merge.next(&mut out).unwrap() {
                found.push(out.clone());
            }
            let mut expected = records;
            expected.sort();
            prop_assert_eq!(found, expected);
            drop(merge);
            prop_assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn sorters_of_one_directory_do_not_get_in_each_others_way() {
        let place = tempfile::tempdir().unwrap();
        let mut merges = Vec::new();
        for _ in 0..3 {
            let mut sorter = Sorter::new(place.path(), 64, whole).unwrap();
            for number in 0..100u8 {
                sorter.push(&[number; 8]).unwrap();
            }
            merges.push(sorter.finish().unwrap());
        }
        for mut merge in merges {
            let (mut count, mut out) = (0, Vec::new());
            while merge.next(&mut out).unwrap() {
                assert_eq!(out, [count; 8]);
                count += 1;
            }
            assert_eq!(count, 100);
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let mut sorter = Sorter::new(Path::new("/no/such/place"), 8, whole).unwrap();
        let mut pushed = Ok(());
        for _ in 0..1_000 {
            pushed = pushed.and_then(|()| sorter.push(b"a record"));
        }
        let error = pushed.and_then(|()| sorter.finish().map(|_| ())).unwrap_err().to_string();
        assert!(error.contains("/no/such/place"), "{error}");
    }
}
