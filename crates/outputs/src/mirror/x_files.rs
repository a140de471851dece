//! X-files on disk: found, verified, opened.
//!
//! Invariant: an x-file counts once it is there under its number, and its digest was there
//! before; what does not match its digest is never read.

use super::digest::{Digest, Digesting};
use super::disk::{Disk, Written};
use page::mirror::xfile::{Content, Event, Reader};
use std::fs::File;
use std::io::BufReader;
use store::{Error, Result};

pub(super) const DIR: &str = "x";
/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Digits of a number in names, so that names sort as numbers do.
pub(super) const DIGITS: usize = 20;

/// The path of a published x-file.
pub(super) fn path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}.xml")
}

/// The path of what a run has announced.
pub(super) fn announced_path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}.announced.xml")
}

fn digest_path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}.sha256")
}

fn snapshot_path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}.snapshot.xml")
}

/// The number in the name of a file: all digits and the ending.
pub(super) fn number_of(name: &str, ending: &str) -> Option<u64> {
    let digits = name.strip_suffix(ending)?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// The numbers of published x-files, ascending.
pub(super) fn numbers(disk: &Disk) -> Result<Vec<u64>> {
    let names = disk.names(DIR)?;
    Ok(names.iter().filter_map(|name| number_of(name, ".xml")).collect())
}

/// The number of the newest published x-file; 0 for none.
pub(super) fn newest(disk: &Disk) -> Result<u64> {
    Ok(numbers(disk)?.last().copied().unwrap_or(0))
}

/// An x-file that has the digest it was published with.
pub(super) struct XFile {
    pub(super) reader: Reader<BufReader<File>>,
    pub(super) digest: Digest,
}

pub(super) fn open(disk: &Disk, number: u64) -> Result<XFile> {
    let digest = verify(disk, number)?;
    let reader = reader(disk, number, &path(number))?;
    Ok(XFile { reader, digest })
}

/// An x-file as a module applies it: one that begins takes the snapshot of its number, if there
/// is no other way. Either leads to the same state, from which the next x-file goes on.
pub(super) fn open_after(disk: &Disk, cursor: u64, number: u64) -> Result<XFile> {
    if number == cursor + 1 {
        return open(disk, number);
    }
    let stated = disk.read(snapshot_digest_path(number))?;
    verify_file(disk, &snapshot_path(number), digest_in(&stated))?;
    let reader = reader(disk, number, &snapshot_path(number))?;
    Ok(XFile { reader, digest: verify(disk, number)? })
}

fn reader(disk: &Disk, number: u64, path: &str) -> Result<Reader<BufReader<File>>> {
    let file = disk.open_file(path)?;
    let reader = Reader::new(BufReader::with_capacity(BUFFER_BYTES, file));
    reader.map_err(|error| failed(disk, number, error))
}

/// The digest of an x-file, which it has.
pub(super) fn verify(disk: &Disk, number: u64) -> Result<Digest> {
    let stated = disk.read_if_there(digest_path(number))?;
    verify_file(disk, &path(number), stated.and_then(|stated| digest_in(&stated)))
}

/// The digest in a line as `sha256sum` writes it.
fn digest_in(line: &[u8]) -> Option<Digest> {
    Digest::parse(std::str::from_utf8(line.get(..64)?).ok()?)
}

fn verify_file(disk: &Disk, path: &str, stated: Option<Digest>) -> Result<Digest> {
    let what = || disk.place(path).display().to_string();
    let Some(stated) = stated else {
        return Err(Error::corrupt(what(), "its digest is missing or damaged"));
    };
    let mut file = disk.open_file(path)?;
    let mut digesting = Digesting::new(std::io::sink());
    std::io::copy(&mut file, &mut digesting).map_err(|error| Error::io(disk.place(path), error))?;
    if digesting.finish().digest != stated {
        return Err(Error::corrupt(what(), "it does not have the SHA-256 it was published with"));
    }
    Ok(stated)
}

/// Makes an x-file visible. All that it names is on the disk.
pub(super) fn publish(disk: &Disk, number: u64, written: Written<'_>) -> Result<()> {
    let line = format!("{}  {number:0DIGITS$}.xml\n", written.digest);
    disk.write(digest_path(number), line.as_bytes())?;
    disk.sync()?;
    written.name(path(number))?;
    disk.sync()
}

fn snapshot_digest_path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}.snapshot.sha256")
}

/// Makes a snapshot visible.
pub(super) fn publish_snapshot(disk: &Disk, number: u64, written: Written<'_>) -> Result<()> {
    let line = format!("{}  {number:0DIGITS$}.snapshot.xml\n", written.digest);
    disk.write(snapshot_digest_path(number), line.as_bytes())?;
    disk.sync()?;
    written.name(snapshot_path(number))
}

/// The numbers of snapshots, ascending.
pub(super) fn snapshots(disk: &Disk) -> Result<Vec<u64>> {
    let names = disk.names(DIR)?;
    Ok(names.iter().filter_map(|name| number_of(name, ".snapshot.xml")).collect())
}

pub(super) fn remove_snapshot(disk: &Disk, number: u64) -> Result<()> {
    disk.remove(snapshot_path(number))?;
    disk.remove(snapshot_digest_path(number))
}

/// An error of reading or writing an x-file.
pub(super) fn failed(disk: &Disk, number: u64, error: page::mirror::Error) -> Error {
    let place = disk.place(path(number));
    match error {
        page::mirror::Error::Io(error) => Error::io(place, error),
        other => Error::corrupt(place.display().to_string(), other.to_string()),
    }
}

/// Removes an x-file that nobody needs any more.
pub(super) fn remove(disk: &Disk, number: u64) -> Result<()> {
    disk.remove(path(number))?;
    disk.remove(announced_path(number))?;
    disk.remove(digest_path(number))
}

/// The digests of all bytes that an x-file names.
pub(super) fn digests(disk: &Disk, number: u64, found: &mut dyn FnMut(&Digest)) -> Result<()> {
    digests_of(disk, number, open(disk, number)?.reader, found)
}

/// The digests of all bytes that a snapshot names.
pub(super) fn snapshot_digests(
    disk: &Disk,
    number: u64,
    found: &mut dyn FnMut(&Digest),
) -> Result<()> {
    let stated = disk.read(snapshot_digest_path(number))?;
    verify_file(disk, &snapshot_path(number), digest_in(&stated))?;
    digests_of(disk, number, reader(disk, number, &snapshot_path(number))?, found)
}

fn digests_of(
    disk: &Disk,
    number: u64,
    mut reader: Reader<BufReader<File>>,
    found: &mut dyn FnMut(&Digest),
) -> Result<()> {
    while let Some(event) = reader.next().map_err(|error| failed(disk, number, error))? {
        if let Event::Open(node) = event
            && let Content::Stored(stored) = &node.content
        {
            found(&stored.sha256.into());
        }
    }
    Ok(())
}

/// The x-file that a module applies after its cursor: the next, or for one that begins that of
/// the oldest snapshot.
pub(super) fn after(disk: &Disk, cursor: u64) -> Result<u64> {
    let found = numbers(disk)?.into_iter().find(|number| *number > cursor);
    match (found, snapshots(disk)?.first()) {
        (Some(number), _) if number == cursor + 1 => Ok(number),
        (_, Some(number)) if cursor == 0 => Ok(*number),
        _ => Err(Error::corrupt(
            disk.place(path(cursor + 1)).display().to_string(),
            "it is missing, and x-files are applied one after the other",
        )),
    }
}
