//! What must hold for every input of every file format here, one function for each.
//!
//! As `page::fuzzing`, whose functions run these too: the programs in `fuzz/` feed
//! them endlessly, the tests replay the corpora. Compiled for tests and with the
//! feature `fuzzing`; never part of the program.

use page::fuzzing::Target;

use crate::Result;
use crate::chunkfile::document::DocumentRecord;
use crate::chunkfile::facts::{self, FactsFile, FactsStream};
use crate::chunkfile::warc::Record;
use crate::chunkfile::warc_reader::{FoundRecord, HEADER_BYTES_MAX, WarcReader};
use crate::chunkfile::{bodies, http_head};
use crate::objects::{ChunkKey, ObjectPath};

/// Every target of this crate, by the name its corpus goes by.
pub const TARGETS: &[(&str, Target)] = &[
    ("bodies", sealed_bodies),
    ("facts", facts_file),
    ("http_head", http_message),
    ("object_path", object_path),
    ("warc", warc),
];

/// The chunk whose files the inputs are.
const CHUNK: ChunkKey = ChunkKey { part: 3, id: 17 };
/// Of a longer block only this much is kept.
const BLOCK_BYTES_MAX: usize = 1_000;
/// A zstd archive that begins so needs its beginning to read any record.
const DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// The input is an archive: plain, gzip or zstd.
fn warc(input: &[u8]) {
    let (found, _) = archive(input);
    for found in found {
        let kept = found.record.block.len();
        assert_eq!(kept as u64, found.block_bytes.min(BLOCK_BYTES_MAX as u64));
        let headers: usize = found.record.headers.iter().map(|(k, v)| k.len() + v.len()).sum();
        assert!(headers <= 3 * HEADER_BYTES_MAX, "each byte may become U+FFFD");
        let _ = (found.record.id(), found.record.target_uri(), found.record.date_ms());
        if let Some(place) = found.place
            && !input.starts_with(&DICTIONARY_MAGIC)
        {
            let end = usize::try_from(place.offset + place.len).expect("inside the input");
            let piece = &input[end - usize::try_from(place.len).expect("inside the input")..end];
            let (again, whole) = archive(piece);
            assert!(whole && again.len() == 1 && again[0].record == found.record, "alone");
        }
        written_and_read(&found.record);
    }
}

/// The records of an archive, and whether it was whole.
fn archive(bytes: &[u8]) -> (Vec<FoundRecord>, bool) {
    let mut all = Vec::new();
    let Ok(reader) = WarcReader::open("input", bytes, BLOCK_BYTES_MAX) else {
        return (all, false);
    };
    for found in reader {
        match found {
            Ok(found) => all.push(found),
            Err(_) => return (all, false),
        }
    }
    (all, true)
}

fn written_and_read(record: &Record) {
    let mut bytes = Vec::new();
    record.write_to(&mut bytes);
    if bytes.len() > HEADER_BYTES_MAX {
        return;
    }
    let (again, whole) = archive(&bytes);
    assert!(whole && again.len() == 1, "{record:?}");
    assert_eq!(again[0].record, *record);
}

/// The input is a bodies file.
fn sealed_bodies(input: &[u8]) {
    let verified = bodies::verify(CHUNK, input);
    let read: Result<Vec<Record>> = bodies::records("input", input).collect();
    if let Ok(records) = verified {
        assert_eq!(read.expect("a verified file is read").len() as u64, records);
    }
}

/// The input is an HTTP message as an archive holds it.
fn http_message(input: &[u8]) {
    let Some(message) = http_head::parse(input) else { return };
    let head_bytes = input.len() - message.payload.len();
    assert!(head_bytes <= http_head::HEAD_BYTES_MAX && input.ends_with(message.payload));
    assert!(message.dechunked().len() <= message.payload.len());
    for (name, value) in &message.headers {
        assert!(name.trim() == name && value.trim() == value, "{name:?}: {value:?}");
        assert!(message.header(name).is_some());
    }
    let _ = message.status();
}

/// The input is the path of an object, as a row or a manifest names it.
fn object_path(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(path) = ObjectPath::parse(&text) else { return };
    assert_eq!(path.as_str(), text);
    let inside = |part: std::path::Component| matches!(part, std::path::Component::Normal(_));
    assert!(std::path::Path::new(path.as_str()).components().all(inside), "{text:?}");
}

/// The input is a facts file; or, behind `r`, the records of its only block; or,
/// behind `p` and a length, the block's payload. Sums cannot be guessed, so a
/// fuzzer would never get behind them.
fn facts_file(input: &[u8]) {
    match input {
        [b'r', raw @ ..] => {
            let payload = zstd::bulk::compress(raw, 1).expect("memory takes what is written");
            read_in_both_ways(&sealed(u32::try_from(raw.len()).unwrap_or(u32::MAX), &payload));
        }
        [b'p', a, b, c, payload @ ..] => {
            read_in_both_ways(&sealed(u32::from_le_bytes([*a, *b, *c, 0]), payload));
        }
        _ => read_in_both_ways(input),
    }
}

fn read_in_both_ways(bytes: &[u8]) {
    let streamed: Result<Vec<DocumentRecord>> =
        FactsStream::open(CHUNK, bytes).and_then(Iterator::collect);
    let Ok(streamed) = streamed else {
        // Reading by number checks less, and must fail or answer all the same.
        let _ = FactsFile::open(CHUNK, bytes).and_then(|file| file.get(0));
        return;
    };
    let file = FactsFile::open(CHUNK, bytes).expect("what can be streamed can be opened");
    assert_eq!(file.len(), streamed.len());
    for (number, record) in streamed.iter().enumerate() {
        assert_eq!(&file.get(number).expect("what can be streamed can be read"), record);
    }
    let written = facts::encode(CHUNK, &streamed).expect("what was read can be written");
    let again = FactsStream::open(CHUNK, written.as_slice()).and_then(Iterator::collect);
    assert_eq!(again.ok(), Some(streamed));
}

/// A facts file of one block, by the letter of `docs/formats/chunk-facts.md`. Its
/// record count is right if each record has the length it says.
fn sealed(raw_bytes: u32, payload: &[u8]) -> Vec<u8> {
    let mut file = b"DLFACTS\n\x01\0\0\0".to_vec();
    file.extend(CHUNK.part.to_le_bytes());
    file.extend(CHUNK.id.to_le_bytes());
    let header_sum = page::ids::hash128(&file);
    file.extend(header_sum);
    let sum = |bytes: &[u8]| page::ids::hash128(&[&header_sum, bytes].concat());
    let records = records_in(payload, raw_bytes);
    let payload_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let numbers = [payload_bytes, raw_bytes, 0, records].map(u32::to_le_bytes).concat();
    let head = [b"BLCK".as_slice(), &numbers].concat();
    let block_at = file.len() as u64;
    file.extend(&head);
    file.extend(sum(&[&head, payload].concat()));
    file.extend(payload);
    let index_at = (file.len() as u64).to_le_bytes();
    let index = [b"INDX".as_slice(), &1u32.to_le_bytes(), &records.to_le_bytes()].concat();
    let index = [index.as_slice(), &block_at.to_le_bytes(), &0u32.to_le_bytes()].concat();
    file.extend(&index);
    file.extend(sum(&index));
    file.extend(index_at);
    file.extend(sum(&[index_at.as_slice(), b"DLFEND.\n"].concat()));
    file.extend(b"DLFEND.\n");
    file
}

/// How many records a payload holds, at least 1.
fn records_in(payload: &[u8], raw_bytes: u32) -> u32 {
    let raw = zstd::bulk::decompress(payload, raw_bytes as usize).unwrap_or_default();
    let mut rest = raw.as_slice();
    let mut records = 0;
    while let Some((len, behind)) = rest.split_first_chunk::<4>() {
        records += 1;
        rest = behind.get(u32::from_le_bytes(*len) as usize..).unwrap_or_default();
    }
    records.max(1)
}

#[cfg(test)]
mod tests;
