//! Archives in every container, cut, hostile, and made by others.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::chunkfile::export::export_warc_gz;
use crate::chunkfile::{bodies, http_head};
use crate::testing::skipped;

fn read_all(bytes: &[u8]) -> Result<Vec<FoundRecord>> {
    WarcReader::open("test.warc", bytes, 1 << 20)?.collect()
}

fn records(bytes: &[u8]) -> Result<Vec<Record>> {
    Ok(read_all(bytes)?.into_iter().map(|found| found.record).collect())
}

fn plain(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    records.iter().for_each(|record| record.write_to(&mut out));
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The records in every container: plain, gzip and zstd, by record and in one.
fn containers(all: &[Record]) -> Vec<Vec<u8>> {
    let whole = plain(all);
    let mut by_record = Vec::new();
    export_warc_gz(all.iter().cloned().map(Ok), &mut by_record).unwrap();
    let frames = all.iter().map(|one| zstd::bulk::compress(&plain(std::slice::from_ref(one)), 1));
    let frames: Vec<_> = frames.map(|frame| frame.unwrap()).collect();
    // Members that do not end where records do.
    let halves = [gzip(&whole[..whole.len() / 2]), gzip(&whole[whole.len() / 2..])].concat();
    let one_frame = zstd::bulk::compress(&whole, 1).unwrap();
    vec![whole.clone(), by_record, gzip(&whole), halves, frames.concat(), one_frame]
}

fn record(kind: &str, block: &[u8]) -> Record {
    let headers = [("WARC-Type", kind), ("WARC-Record-ID", "<urn:uuid:1>")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Record { version: "1.1".to_owned(), headers, block: block.to_vec() }
}

#[test]
fn every_container_gives_the_same_records() {
    let all = [record("response", b"one"), record("metadata", b""), record("x", &[0; 200_000])];
    for (number, bytes) in containers(&all).iter().enumerate() {
        assert_eq!(records(bytes).unwrap(), all, "container {number}");
    }
}

#[test]
fn the_place_of_a_record_is_enough_to_read_it_again() {
    let all = [record("response", b"one"), record("metadata", b""), record("x", &[7; 100_000])];
    for at in [0, 1, 4] {
        let bytes = &containers(&all)[at];
        let mut end = 0;
        for found in read_all(bytes).unwrap() {
            let ByteRange { offset, len } = found.place.unwrap();
            assert_eq!(offset, end, "container {at}");
            end = offset + len;
            let piece = &bytes[usize::try_from(offset).unwrap()..usize::try_from(end).unwrap()];
            assert_eq!(records(piece).unwrap(), [found.record]);
        }
        assert_eq!(end, bytes.len() as u64);
    }
    let one_member = &containers(&all)[2];
    assert!(read_all(one_member).unwrap()[1].place.is_none());
}

#[test]
fn the_seal_of_our_own_files_belongs_to_no_record() {
    let (bytes, places) = bodies::tests::sample();
    let found = read_all(&bytes).unwrap();
    let read: Vec<_> = found[1..].iter().map(|found| found.place.unwrap()).collect();
    assert_eq!(read, places);
}

#[test]
fn a_dictionary_at_the_head_of_a_zstd_archive_is_used() {
    let all = [record("response", b"a word of the dictionary"), record("metadata", b"more")];
    let dictionary = b"WARC/1.1\r\nWARC-Type: response\r\na word of the dictionary".repeat(20);
    for packed in [dictionary.clone(), zstd::bulk::compress(&dictionary, 3).unwrap()] {
        let mut bytes = 0x184d_2a5du32.to_le_bytes().to_vec();
        bytes.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
        bytes.extend(&packed);
        let mut compressor = zstd::bulk::Compressor::with_dictionary(1, &dictionary).unwrap();
        for one in &all {
            bytes.extend(compressor.compress(&plain(std::slice::from_ref(one))).unwrap());
        }
        assert_eq!(records(&bytes).unwrap(), all);
    }
}

#[test]
fn a_cut_anywhere_is_noticed_or_falls_between_two_records() {
    let all = [record("response", b"one"), record("metadata", b"two, longer")];
    for (number, bytes) in containers(&all).iter().enumerate() {
        let between: Vec<_> = read_all(bytes)
            .unwrap()
            .iter()
            .filter_map(|found| found.place)
            .map(|place| place.offset)
            .collect();
        for len in 0..bytes.len() {
            let read = records(&bytes[..len]);
            let at_border = len == 0 || between.contains(&(len as u64));
            assert_eq!(read.is_ok(), at_border, "container {number} cut at {len}: {read:?}");
        }
    }
}

#[test]
fn a_block_beyond_the_limit_is_cut_and_the_next_record_is_read() {
    let all = [record("response", &[1; 5_000]), record("metadata", b"next")];
    for bytes in containers(&all) {
        let found: Vec<_> =
            WarcReader::open("t", bytes.as_slice(), 100).unwrap().collect::<Result<_>>().unwrap();
        assert_eq!((found[0].record.block.len(), found[0].block_bytes), (100, 5_000));
        assert_eq!(found[1].record, all[1]);
    }
}

#[test]
fn hostile_archives_are_refused_with_a_reason() {
    let long_line = format!("WARC/1.1\r\nA: {}\r\n", "x".repeat(HEADER_BYTES_MAX + 10));
    let many_lines = format!("WARC/1.1\r\n{}", "A: b\r\n".repeat(HEADER_BYTES_MAX));
    let no_line_end = "W".repeat(300_000);
    let blank = "\r\n".repeat(BLANK_LINES_MAX + 1);
    for (input, reason) in [
        ("GIF89a", "the file ends inside its header"),
        ("GIF89a\r\n", "it does not begin with WARC/"),
        (
            "WARC/1.0é\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
            "does not begin with WARC/ and a version",
        ),
        ("WARC/1.0\r\nnoise\r\n\r\n", "a header line has no colon"),
        ("WARC/1.0\r\nWARC-Type: x\r\n\r\n", "no Content-Length"),
        ("WARC/1.0\r\nContent-Length: -1\r\n\r\n", "no Content-Length"),
        ("WARC/1.0\r\nContent-Length: 18446744073709551615\r\n\r\nx", "ends inside its block"),
        ("WARC/1.0\r\nContent-Length: 1\r\n\r\nabc\r\n\r\n", "two line ends must follow"),
        (&long_line, "a header line is longer than 65.5 kB"),
        (&many_lines, "its header is longer than 65.5 kB"),
        (&no_line_end, "a header line is longer than 65.5 kB"),
        (&blank, "too many empty lines"),
    ] {
        let message = read_all(input.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(reason), "{message:?} should say {reason:?}");
    }
}

#[test]
fn a_fold_of_nothing_adds_nothing() {
    let bytes = b"WARC/1.1\r\nA: b\r\n \r\nC:\r\n d\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let record = &records(bytes).unwrap()[0];
    assert_eq!((record.header("A"), record.header("C")), (Some("b"), Some("d")));
}

#[test]
fn a_zstd_frame_with_a_giant_window_is_refused() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&plain(&[record("x", b"y")])).unwrap();
    assert!(read_all(&encoder.finish().unwrap()).is_err());
}

#[test]
fn the_example_of_another_crawler_is_read_in_both_forms() {
    let oracles = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/warc");
    let file = |name: &str| std::fs::read(format!("{oracles}/{name}"));
    let (Ok(plain), Ok(gzip)) = (file("example.warc"), file("example.warc.gz")) else {
        return skipped("WARC oracle: example.warc and example.warc.gz are not there");
    };
    let all = records(&plain).unwrap();
    let kinds: Vec<_> = all.iter().map(Record::kind).collect();
    assert_eq!(kinds, ["warcinfo", "warcinfo", "response", "request", "revisit", "request"]);
    assert_eq!(records(&gzip).unwrap().len(), all.len());
    for record in &all {
        bodies::check_digests("example.warc", record).unwrap();
    }
    let response = http_head::parse(&all[2].block).unwrap();
    assert_eq!(response.status(), Some(200));
    assert_eq!(all[2].target_uri(), Some("http://example.com/"));
    assert_eq!(all[2].date_ms(), Some(1_488_772_926_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(
        all in prop::collection::vec(
            ("[A-Za-z-]{1,12}", "[a-zA-Z0-9:;<>é ]{0,20}", prop::collection::vec(any::<u8>(), 0..300)),
            1..5,
        ),
    ) {
        let all = all.into_iter().filter(|(name, ..)| name != "Content-Length");
        let all: Vec<_> = all.map(|(name, value, block)| Record {
            version: "1.1".to_owned(),
            headers: vec![(name, value.trim().to_owned())],
            block,
        }).collect();
        for bytes in containers(&all) {
            prop_assert_eq!(&records(&bytes).unwrap(), &all);
        }
    }

    #[test]
    fn foreign_bytes_never_panic(
        head in prop::sample::select(vec![
            b"".to_vec(), b"WARC/1.0\r\nContent-Length: 9\r\n".to_vec(), vec![0x1f, 0x8b, 8, 0],
            vec![0x28, 0xb5, 0x2f, 0xfd], vec![0x5d, 0x2a, 0x4d, 0x18, 9, 0, 0, 0],
        ]),
        tail in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = read_all(&[head, tail].concat());
    }
}

#[test]
fn an_archive_of_empty_members_is_given_up() {
    for empty in [zstd::bulk::compress(b"", 1).unwrap(), gzip(b"")] {
        let few = empty.repeat(50);
        assert!(WarcReader::open("few", few.as_slice(), 1_000).unwrap().all(|it| it.is_ok()));
        let many = empty.repeat(5_000);
        let outcome = WarcReader::open("many", many.as_slice(), 1_000)
            .and_then(|reader| reader.collect::<Result<Vec<_>>>());
        let error = outcome.expect_err("it goes on for ever").to_string();
        assert!(error.contains("empty members"), "{error}");
    }
}
