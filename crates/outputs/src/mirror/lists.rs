//! Lists: what a step of the reactor changed in the webroot.
//!
//! Text, a line for each path: `<sha256> <path>`, or `- <path>` for one that goes; the first
//! line says which x-file it is for, the last has the digest of those before it. Invariant: a
//! list is read when all of it matches its digest.

use super::digest::{Digest, Digesting};
use super::disk::Disk;
use super::sorter::Sorter;
use super::x_files::{DIGITS, number_of};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use store::{Error, Result};

pub(super) const DIR: &str = "worker/reactor/lists";
const END: &str = "end ";
/// Bytes of the last line.
const END_BYTES: u64 = 4 + 64 + 1;

/// A change of the webroot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: String,
    /// What the path shows; `None` when it goes.
    pub(super) file: Option<Digest>,
}

pub(super) fn path(step: u64) -> String {
    format!("{DIR}/{step:0DIGITS$}")
}

/// The steps that there are lists of, ascending.
pub(super) fn steps(disk: &Disk) -> Result<Vec<u64>> {
    Ok(disk.names(DIR)?.iter().filter_map(|name| number_of(name, "")).collect())
}

/// Collects the changes of a step, in any order.
pub(super) struct Collector<'d> {
    sorter: Sorter<'d>,
}

impl<'d> Collector<'d> {
    pub(super) fn new(disk: &'d Disk) -> Collector<'d> {
        Collector { sorter: Sorter::new(disk) }
    }

    /// A path shows a file; that counts more than that it goes.
    pub(super) fn shows(&mut self, path: &str, file: &Digest) -> Result<()> {
        self.sorter.push(key(path, 1), file.0.to_vec())
    }

    pub(super) fn goes(&mut self, path: &str) -> Result<()> {
        self.sorter.push(key(path, 0), Vec::new())
    }

    /// Writes the list of a step. Returns how many paths it has.
    pub(super) fn finish(self, disk: &Disk, step: u64, number: u64) -> Result<u64> {
        let mut sorted = self.sorter.finish()?;
        let mut out = Digesting::new(disk.begin()?);
        let failed = |error| Error::io(disk.place(path(step)), error);
        writeln!(out, "list {number}").map_err(failed)?;
        let (mut count, mut next) = (0, sorted.next()?);
        while let Some(record) = next {
            next = sorted.next()?;
            let shown = &record.key[..record.key.len() - 1];
            let is_last = next.as_ref().is_none_or(|it| it.key[..it.key.len() - 1] != *shown);
            if !is_last {
                continue;
            }
            let shown = String::from_utf8_lossy(shown).replace('\0', "/");
            match <[u8; 32]>::try_from(record.value) {
                Ok(digest) => writeln!(out, "{} {shown}", Digest(digest)),
                Err(_) => writeln!(out, "- {shown}"),
            }
            .map_err(failed)?;
            count += 1;
        }
        let done = out.finish();
        let mut file = done.inner;
        writeln!(file, "{END}{}", done.digest).map_err(failed)?;
        let written = file.finish()?;
        disk.sync()?;
        written.name(path(step))?;
        Ok(count)
    }
}

/// Sorts what is in a folder together: nothing in a path is less than 0.
fn key(path: &str, rank: u8) -> Vec<u8> {
    let mut key: Vec<u8> = path.bytes().map(|byte| if byte == b'/' { 0 } else { byte }).collect();
    key.push(rank);
    key
}

/// The order of paths in a list.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    let bytes = |path: &str| -> Vec<u8> { key(path, 0) };
    bytes(a).cmp(&bytes(b))
}

/// A list as it is read.
pub(super) struct List {
    lines: BufReader<std::io::Take<File>>,
    /// The x-file that it is for.
    pub(super) number: u64,
    what: String,
}

impl List {
    pub(super) fn open(disk: &Disk, step: u64) -> Result<List> {
        let place = disk.place(path(step));
        let what = place.display().to_string();
        let damaged = || Error::corrupt(&*what, "it does not match its digest");
        let failed = |error| Error::io(&place, error);
        let mut file = disk.open_file(path(step))?;
        let length = file.metadata().map_err(failed)?.len();
        let body = length.checked_sub(END_BYTES).ok_or_else(damaged)?;
        let mut digesting = Digesting::new(std::io::sink());
        std::io::copy(&mut (&mut file).take(body), &mut digesting).map_err(failed)?;
        let mut end = String::new();
        file.read_to_string(&mut end).map_err(failed)?;
        if end != format!("{END}{}\n", digesting.finish().digest) {
            return Err(damaged());
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut lines = BufReader::new(file.take(body));
        let mut first = String::new();
        lines.read_line(&mut first).map_err(failed)?;
        let number = first.strip_prefix("list ").and_then(|it| it.trim_end().parse().ok());
        let number = number.ok_or_else(damaged)?;
        Ok(List { lines, number, what })
    }

    pub(super) fn next(&mut self) -> Result<Option<Change>> {
        let mut line = String::new();
        self.lines.read_line(&mut line).map_err(|error| Error::io(&self.what, error))?;
        if line.is_empty() {
            return Ok(None);
        }
        let damaged = || Error::corrupt(&*self.what, "a line of it cannot be read");
        let (file, path) = line.trim_end_matches('\n').split_once(' ').ok_or_else(damaged)?;
        let file = match file {
            "-" => None,
            digest => Some(Digest::parse(digest).ok_or_else(damaged)?),
        };
        Ok(Some(Change { path: path.to_owned(), file }))
    }
}
