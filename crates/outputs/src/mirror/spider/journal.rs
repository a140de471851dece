//! The journal: operations that were delivered and are in no x-file yet, a file for each call.
//!
//! Invariant: numbers only grow; an entry is visible when its blobs are on the disk.

use super::member::Member;
use crate::mirror::Mirror;
use crate::mirror::digest::Digest;
use crate::mirror::disk::Disk;
use crate::mirror::sealed::{Kind, open, seal, write_record};
use crate::mirror::sorter::{Sorted, Sorter};
use crate::mirror::x_files::{DIGITS, number_of};
use page::mirror::names::HashName;
use serde::{Deserialize, Serialize};
use std::sync::PoisonError;
use store::Result;

const DIR: &str = "journal";

/// What was delivered for a URL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::mirror) struct Entry {
    pub(in crate::mirror) url: String,
    /// What is there now; `None` removes it.
    pub(in crate::mirror) content: Option<Member>,
}

fn path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}")
}

fn numbers(disk: &Disk) -> Result<Vec<u64>> {
    Ok(disk.names(DIR)?.iter().filter_map(|name| number_of(name, "")).collect())
}

/// Appends entries whose blobs are written; on the disk when it returns.
pub(super) fn append(mirror: &Mirror, entries: &[Entry]) -> Result<()> {
    let bytes = seal(Kind::Journal, entries);
    mirror.disk.sync()?;
    let _numbering = mirror.journal.lock().unwrap_or_else(PoisonError::into_inner);
    let number = newest(mirror)? + 1;
    mirror.disk.write_durably(path(number), &bytes)
}

/// The number of the last entry that there is or was.
pub(super) fn newest(mirror: &Mirror) -> Result<u64> {
    let covered = super::cursor(mirror)?.journal;
    Ok(numbers(&mirror.disk)?.last().copied().unwrap_or(0).max(covered))
}

fn entries(disk: &Disk, number: u64) -> Result<Vec<Entry>> {
    let path = path(number);
    let bytes = disk.read(&path)?;
    open(Kind::Journal, &bytes, &disk.place(path).display().to_string())
}

/// Entries up to a number, by hash name; for each URL the last is what counts.
pub(super) fn sorted(mirror: &Mirror, through: u64) -> Result<Sorted> {
    let mut sorter = Sorter::new(&mirror.disk);
    for number in numbers(&mirror.disk)?.into_iter().take_while(|it| *it <= through) {
        for entry in entries(&mirror.disk, number)? {
            let hash = HashName::of(&entry.url);
            sorter.push(hash.as_bytes().to_vec(), write_record(Vec::new(), &entry))?;
        }
    }
    sorter.finish()
}

/// Removes entries that an x-file covers.
pub(super) fn remove(disk: &Disk, through: u64) -> Result<()> {
    let covered = numbers(disk)?.into_iter().take_while(|it| *it <= through);
    covered.into_iter().try_for_each(|number| disk.remove(path(number)))
}

/// The digests of all bytes that entries name.
pub(in crate::mirror) fn digests(disk: &Disk, found: &mut dyn FnMut(&Digest)) -> Result<()> {
    for number in numbers(disk)? {
        for entry in entries(disk, number)? {
            if let Some(member) = entry.content {
                found(&member.sha256);
            }
        }
    }
    Ok(())
}
