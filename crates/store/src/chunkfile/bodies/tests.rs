//! Bodies files: what is written, and damage of every byte.

use super::*;
use crate::chunkfile::warc::{Capture, Original, RecordId};
use crate::objects::Location;

const CHUNK: ChunkKey = ChunkKey { part: 2, id: 5 };

fn id(ordinal: u64) -> RecordId {
    RecordId::of([9; 16], CHUNK, ordinal)
}

/// A small file: warcinfo, a response, a 304 and a repetition of the same bytes.
pub(crate) fn sample() -> (Vec<u8>, Vec<ByteRange>) {
    let info = warc::warcinfo(&id(0), 1_700_000_000_000, &[("software", "driftline")]);
    let mut writer = BodiesWriter::new(CHUNK, &info).unwrap();
    let headers: &[(&str, &[u8])] = &[
        ("Content-Type", b"text/html"),
        ("Content-Encoding", b"gzip"),
        ("Transfer-Encoding", b"chunked"),
        ("Content-Length", b"17"),
        ("X-Evil\r\nName", b"a\r\nSet-Cookie: b"),
    ];
    let capture = Capture {
        target_uri: "https://example.com/a b",
        date_ms: 1_700_000_000_123,
        ip: Some([192, 0, 2, 1].into()),
        status: 200,
        headers,
        body: b"<p>hello</p>",
        truncated: false,
    };
    let response = warc::response(&id(1), &capture);
    let original = Original {
        record_id: &id(1).0,
        target_uri: capture.target_uri,
        date_ms: capture.date_ms,
        payload_digest: response.header("WARC-Payload-Digest").unwrap(),
    };
    let later = Capture { date_ms: 1_700_000_900_000, body: b"", ..capture };
    let not_modified = Capture { status: 304, headers: &headers[..1], ..later };
    let places = vec![
        writer.push(&response).unwrap(),
        writer.push(&warc::revisit(&id(2), &not_modified, &original)).unwrap(),
        writer.push(&warc::revisit(&id(3), &later, &original)).unwrap(),
    ];
    (writer.finish(), places)
}

#[test]
fn a_record_is_read_by_its_place_alone() {
    let root = tempfile::tempdir().unwrap();
    let objects = Objects::open(&Location::Directory(root.path().to_owned())).unwrap();
    let (bytes, places) = sample();
    objects.put(&ObjectPath::bodies(CHUNK), bytes).unwrap();
    let record = read(&objects, &ObjectPath::bodies(CHUNK), places[0]).unwrap();
    assert_eq!(record.target_uri(), Some("https://example.com/a%20b"));
    assert_eq!(record.date_ms(), Some(1_700_000_000_123));
    assert_eq!(record.header("warc-date"), Some("2023-11-14T22:13:20.123Z"));
    assert_eq!(record.header("WARC-IP-Address"), Some("192.0.2.1"));
    let message = crate::chunkfile::http_head::parse(&record.block).unwrap();
    assert_eq!((message.status(), message.payload), (Some(200), b"<p>hello</p>".as_slice()));
    let wrong = ByteRange { offset: places[0].offset + 1, ..places[0] };
    assert!(read(&objects, &ObjectPath::bodies(CHUNK), wrong).is_err());
    let two = ByteRange { len: places[0].len + places[1].len, ..places[0] };
    assert!(read(&objects, &ObjectPath::bodies(CHUNK), two).is_err());
}

#[test]
fn heads_describe_the_stored_body_and_cannot_forge_fields() {
    let (bytes, _) = sample();
    let all: Vec<_> = records("sample", &bytes).collect::<Result<_>>().unwrap();
    let head = |at: usize| String::from_utf8(all[at].block.clone()).unwrap();
    assert_eq!(
        head(1),
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Archive-Orig-Content-Encoding: gzip\r\n\
         X-Archive-Orig-Transfer-Encoding: chunked\r\nX-Archive-Orig-Content-Length: 17\r\n\
         X-Evil__Name: a  Set-Cookie: b\r\nContent-Length: 12\r\n\r\n<p>hello</p>"
    );
    assert_eq!(head(2), "HTTP/1.1 304 Not Modified\r\nContent-Type: text/html\r\n\r\n");
}

#[test]
fn revisits_name_their_profile_and_their_original() {
    let (bytes, _) = sample();
    let all: Vec<_> = records("sample", &bytes).collect::<Result<_>>().unwrap();
    assert_eq!(all[2].header("WARC-Profile"), Some(warc::PROFILE_NOT_MODIFIED));
    assert_eq!(all[3].header("WARC-Profile"), Some(warc::PROFILE_SAME_PAYLOAD));
    for revisit in &all[2..] {
        let id = format!("<{}>", all[1].id().unwrap());
        assert_eq!(revisit.header("WARC-Refers-To"), Some(id.as_str()));
        assert_eq!(revisit.header("WARC-Refers-To-Date"), all[1].header("WARC-Date"));
        assert_eq!(revisit.header("WARC-Refers-To-Target-URI"), all[1].target_uri());
        assert_eq!(revisit.header("WARC-Payload-Digest"), all[1].header("WARC-Payload-Digest"));
    }
}

#[test]
fn ids_are_uuids_that_differ_by_installation_chunk_and_number() {
    let one = RecordId::of([0; 16], CHUNK, 1).0;
    assert_eq!(one.len(), "urn:uuid:".len() + 36);
    assert_eq!(one.as_bytes()[9 + 14], b'8', "{one} is of version 8");
    let others = [
        RecordId::of([1; 16], CHUNK, 1).0,
        RecordId::of([0; 16], CHUNK, 2).0,
        RecordId::of([0; 16], ChunkKey { part: 2, id: 6 }, 1).0,
    ];
    assert!(!others.contains(&one));
}

#[test]
fn verify_notices_every_changed_bit() {
    let (bytes, _) = sample();
    assert_eq!(verify(CHUNK, &bytes).unwrap(), 4);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(verify(CHUNK, &damaged).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn verify_notices_every_cut_and_every_addition() {
    let (bytes, places) = sample();
    for len in 0..bytes.len() {
        assert!(verify(CHUNK, &bytes[..len]).is_err(), "{len} bytes");
    }
    assert!(verify(CHUNK, &[&bytes[..], b"\0"].concat()).is_err());
    let record = usize::try_from(places[0].len).unwrap();
    assert!(verify(CHUNK, &[&bytes[..record], &bytes[..]].concat()).is_err());
    assert!(verify(ChunkKey { part: 2, id: 6 }, &bytes).is_err());
}

#[test]
fn damage_is_named_by_record_and_byte() {
    let (mut bytes, places) = sample();
    let at = places[0].offset;
    bytes[usize::try_from(at).unwrap() + 20] ^= 1;
    let message = verify(CHUNK, &bytes).unwrap_err().to_string();
    let expected =
        format!("bodies of chunk 2/5, record 1 at byte {at} is corrupt: checksum mismatch");
    assert_eq!(message, expected);
}

#[test]
fn a_block_beyond_the_limit_is_refused_and_the_file_stays_whole() {
    let info = warc::warcinfo(&id(0), 0, &[]);
    let mut writer = BodiesWriter::new(CHUNK, &info).unwrap();
    let block = vec![0; BLOCK_BYTES_MAX + 1];
    let large = Record { block, ..info };
    assert!(matches!(writer.push(&large), Err(Error::TooLarge { .. })));
    assert_eq!(verify(CHUNK, &writer.finish()).unwrap(), 1);
}
