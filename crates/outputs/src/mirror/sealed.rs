//! Small binary files of a mirror: a kind, a version, records, a checksum.
//!
//! Invariant: what does not carry its checksum is named as damaged and never used.

use serde::{Serialize, de::DeserializeOwned};
use store::{Error, Result};

/// Raised when a record changes; an older file is then made anew from the x-files.
const VERSION: u8 = 1;
/// The letters that all begin with.
const MAGIC: &[u8; 4] = b"DLMI";
/// Magic, kind, version.
const HEAD_BYTES: usize = MAGIC.len() + 2;
/// A BLAKE3 of what stands before it.
const SUM_BYTES: usize = 32;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Journal = b'j',
    SpiderMembers = b's',
    ReactorMembers = b'm',
    References = b'r',
    Sheets = b'c',
    Leaving = b'l',
    Listing = b'd',
    Cursor = b'n',
    Plan = b'p',
}

/// The bytes of a file with these records.
pub(super) fn seal<T: Serialize>(kind: Kind, records: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + SUM_BYTES + records.len() * 64);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[kind as u8, VERSION]);
    for record in records {
        bytes = write_record(bytes, record);
    }
    let sum = blake3::hash(&bytes);
    bytes.extend_from_slice(sum.as_bytes());
    bytes
}

/// Appends a record.
pub(super) fn write_record<T: Serialize>(bytes: Vec<u8>, record: &T) -> Vec<u8> {
    postcard::to_extend(record, bytes).expect("a vector takes all that is written")
}

/// One record on its own.
pub(super) fn read_record<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| Error::corrupt(what, error.to_string()))
}

/// The records of a file; `what` names it.
pub(super) fn open<T: DeserializeOwned>(kind: Kind, bytes: &[u8], what: &str) -> Result<Vec<T>> {
    let mut rest = payload(kind, bytes, what)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, after) = postcard::take_from_bytes(rest)
            .map_err(|error| Error::corrupt(what, error.to_string()))?;
        records.push(record);
        rest = after;
    }
    Ok(records)
}

/// The one record of a file.
pub(super) fn open_one<T: DeserializeOwned>(kind: Kind, bytes: &[u8], what: &str) -> Result<T> {
    let mut records = open(kind, bytes, what)?;
    match (records.pop(), records.is_empty()) {
        (Some(record), true) => Ok(record),
        _ => Err(Error::corrupt(what, "it does not hold one record")),
    }
}

fn payload<'b>(kind: Kind, bytes: &'b [u8], what: &str) -> Result<&'b [u8]> {
    let damaged = |reason: &str| Err(Error::corrupt(what, reason));
    if bytes.len() < HEAD_BYTES + SUM_BYTES || !bytes.starts_with(MAGIC) {
        return damaged("it is cut short, or no file of a mirror");
    }
    let (head, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
    if blake3::hash(head).as_bytes() != sum {
        return damaged("its checksum does not match");
    }
    if head[MAGIC.len()] != kind as u8 {
        return damaged("it is another file of a mirror");
    }
    if head[MAGIC.len() + 1] != VERSION {
        return damaged("it was written by another version of the program");
    }
    Ok(&head[HEAD_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_damage_is_named() {
        let bytes = seal(Kind::Leaving, &["a".to_owned(), "b".to_owned()]);
        assert_eq!(open::<String>(Kind::Leaving, &bytes, "x").unwrap(), ["a", "b"]);
        assert!(open_one::<String>(Kind::Leaving, &bytes, "x").is_err());
        assert!(open::<String>(Kind::Listing, &bytes, "x").is_err(), "another kind");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let refused =
                open::<String>(Kind::Leaving, &damaged, "the list").unwrap_err().to_string();
            assert!(refused.contains("the list is corrupt"), "{refused}");
            assert!(open::<String>(Kind::Leaving, &bytes[..at], "x").is_err());
        }
    }
}
