//! An archive of XML parts, unpacked within bounds.
//!
//! Relies on the zip crate. Invariants: at most [`BYTES_MAX`] bytes are unpacked of one
//! document, whatever the archive says of itself; one with more than [`FILES_MAX`] files
//! is refused; an archive within it is not opened.

use super::Unreadable;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, Read};
use zip::ZipArchive;
use zip::result::ZipError;

/// Bytes that are unpacked of one document.
pub(super) const BYTES_MAX: u64 = 64 << 20;
/// Files of an archive.
pub(super) const FILES_MAX: usize = 10_000;

/// A ZIP archive in memory.
pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// The names of its files, in an order that counts numbers as numbers.
    pub names: Vec<String>,
    /// Bytes that may still be unpacked.
    left: Cell<u64>,
    /// A part needs a password.
    pub is_locked: bool,
}

impl<'a> Archive<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Archive<'a>, Unreadable> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(Unreadable::broken)?;
        if zip.len() > FILES_MAX {
            let reason = format!("it has {} files, more than {FILES_MAX}", zip.len());
            return Err(Unreadable::Broken(reason));
        }
        let mut names: Vec<String> =
            zip.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
        names.sort_by_cached_key(|name| place_of(name));
        Ok(Archive { zip, names, left: Cell::new(BYTES_MAX), is_locked: false })
    }

    /// Whether there is a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// Opens a file; `None` if it cannot be opened.
    pub fn part(&mut self, name: &str) -> Option<impl BufRead> {
        match self.zip.by_name(name) {
            Ok(file) => Some(BufReader::new(BoundedMember { file, left: &self.left })),
            Err(error) => {
                let password = ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED);
                self.is_locked |= error.to_string() == password.to_string();
                None
            }
        }
    }

    /// Whether nothing more may be unpacked.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

/// A file that ends when the archive's bytes are used up.
struct BoundedMember<'a, R> {
    file: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for BoundedMember<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.left.get()).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let count = self.file.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - count as u64);
        Ok(count)
    }
}

/// By name, but numbers in it count as numbers: slide10 comes after slide9.
fn place_of(name: &str) -> (String, u64) {
    let (mut letters, mut number) = (String::new(), 0_u64);
    for ch in name.chars() {
        match ch.to_digit(10) {
            Some(digit) => number = number.saturating_mul(10).saturating_add(u64::from(digit)),
            None => letters.push(ch),
        }
    }
    (letters, number)
}
