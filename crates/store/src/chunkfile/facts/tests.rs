//! Facts files: round trips, and damage of every byte.

use page::facts::{Directives, Facts, Heading, Link, LinkKind, Rel, Requisite, Truncated};
use page::mirror::references::ReferenceKind;
use proptest::prelude::*;

use super::*;
use crate::chunkfile::document::{
    Access, Body, Change, DocumentRole, Fetch, Field, Hop, Level, RemoveReason, Token,
};
use crate::objects::Location;

const CHUNK: ChunkKey = ChunkKey { part: 3, id: 17 };

/// A record in which every field holds something.
fn full_record() -> DocumentRecord {
    let facts = Facts {
        media_type: "text/html".into(),
        charset: "UTF-8".into(),
        language: Some("pt-BR".into()),
        title: "Olá".into(),
        description: "A page".into(),
        headings: vec![Heading { level: 2, text: "Two".into() }],
        links: vec![Link {
            url: "https://example.com/next".into(),
            anchor: "next".into(),
            kind: LinkKind::Next,
            rel: Rel::UGC,
        }],
        directives: Directives { nofollow: true, ..Directives::default() },
        canonical: Some("https://example.com/".into()),
        text: "Running text".into(),
        content_hash: [7; 16],
        text_hash: [8; 16],
        simhash: 0x0123_4567_89ab_cdef,
        truncated: Truncated { links: true, ..Truncated::default() },
        requisites: vec![Requisite {
            url: "https://example.com/a.css".into(),
            kind: ReferenceKind::Stylesheet,
        }],
    };
    let fetch = Fetch {
        status: 200,
        fetched_ms: 1_700_000_000_123,
        final_url: Some("https://example.com/".into()),
        redirects: vec![Hop { url: "http://example.com/".into(), status: 301 }],
        etag: Some("\"abc\"".into()),
        last_modified: Some("Fri, 09 Aug 2013 23:54:35 GMT".into()),
    };
    DocumentRecord {
        fetch: Some(fetch),
        facts: Some(facts),
        fields: vec![Field { name: "author".into(), values: vec!["A".into(), "B".into()] }],
        access: Access {
            allow: vec![Token::new(Level::Document, "ad:S-1-5")],
            deny: vec![Token::new(Level::Share, "ad:S-1-6")],
        },
        body: Body::Earlier { chunk: 9, offset: 100, len: 200 },
        role: DocumentRole::Requisite,
        ..DocumentRecord::new("http://example.com/", 42, Change::Update)
    }
}

fn removed(number: usize) -> DocumentRecord {
    let change = Change::Remove(RemoveReason::Gone);
    DocumentRecord::new(format!("https://example.com/{number}"), 1, change)
}

/// Reads a file in both ways; they must agree.
fn read(bytes: &[u8]) -> Result<Vec<DocumentRecord>> {
    let streamed: Result<Vec<_>> = FactsStream::open(CHUNK, bytes).and_then(Iterator::collect);
    let file = FactsFile::open(CHUNK, bytes);
    let by_number: Result<Vec<_>> =
        file.and_then(|file| (0..file.len()).map(|at| file.get(at)).collect());
    match (streamed, by_number) {
        (Ok(streamed), Ok(by_number)) => {
            assert_eq!(streamed, by_number);
            Ok(streamed)
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

#[test]
fn the_layout_of_a_record_is_frozen() {
    // If this fails, files written before can no longer be read: give the format a new
    // number, keep a reader for the old one, and say so in docs/formats/chunk-facts.md.
    let bytes = postcard::to_stdvec(&full_record()).unwrap();
    assert_eq!(page::ids::hash128(&bytes), FROZEN);
}

const FROZEN: [u8; 16] = [149, 111, 176, 160, 12, 124, 192, 55, 20, 99, 2, 193, 8, 217, 113, 231];

#[test]
fn a_file_of_format_1_is_read_as_it_was_written() {
    let chunk = |id| ChunkKey { part: 6, id };
    let stream = |id, bytes: &'static [u8]| -> Vec<DocumentRecord> {
        FactsStream::open(chunk(id), bytes).unwrap().collect::<Result<_>>().unwrap()
    };
    let page = include_bytes!("fixtures/format1_page.facts");
    let records = stream(1_099_511_627_779, page);
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((&*record.docid, record.change), ("http://127.0.0.1:8765/", Change::Add));
    assert_eq!(record.role, DocumentRole::Page);
    assert!(matches!(record.body, Body::Here { .. }) && record.access == Access::default());
    let fetch = record.fetch.as_ref().unwrap();
    assert!(fetch.status == 200 && fetch.last_modified.is_some() && fetch.etag.is_none());
    let facts = record.facts.as_ref().unwrap();
    assert_eq!((&*facts.title, facts.language.as_deref()), ("Olá", Some("pt-BR")));
    assert_eq!((&*facts.description, &*facts.charset), ("A page", "UTF-8"));
    assert_eq!(facts.headings, [Heading { level: 1, text: "One".into() }]);
    let links: Vec<_> = facts.links.iter().map(|it| (&*it.url, &*it.anchor, it.rel)).collect();
    assert!(links.contains(&("http://127.0.0.1:8765/next.html", "next", Rel::UGC)), "{links:?}");
    assert_eq!(facts.canonical.as_deref(), Some("http://127.0.0.1:8765/"));
    assert!(facts.text.contains("Running text") && facts.content_hash != [0; 16]);
    assert_eq!((&facts.requisites[..], facts.truncated), (&[][..], Truncated::default()));

    let rest = include_bytes!("fixtures/format1_rest.facts");
    let streamed = stream(1_099_511_627_786, rest);
    let file = FactsFile::open(chunk(1_099_511_627_786), &rest[..]).unwrap();
    assert_eq!(streamed, [file.get(0).unwrap(), file.get(1).unwrap()]);
    let gone = streamed.iter().find(|it| it.change == Change::NoContent).unwrap();
    assert_eq!((&*gone.docid, &gone.facts), ("http://127.0.0.1:8765/gone.html", &None));
}

#[test]
fn a_format_that_is_not_known_yet_is_refused() {
    let newer = FORMAT_VERSION + 1;
    let (header, _) = layout::header(CHUNK, newer);
    let rest = &encode(CHUNK, &[]).unwrap()[layout::HEADER_BYTES..];
    let message = read(&[&header[..], rest].concat()).unwrap_err().to_string();
    assert!(message.contains(&format!("format {newer}; this program reads 1 to 2")), "{message}");
}

#[test]
fn records_come_back_in_order_and_by_number() {
    let records = vec![full_record(), removed(1), full_record(), removed(2)];
    let bytes = encode(CHUNK, &records).unwrap();
    assert_eq!(read(&bytes).unwrap(), records);
    let file = FactsFile::open(CHUNK, bytes.as_slice()).unwrap();
    assert_eq!(file.get(3).unwrap(), removed(2));
    assert!(file.get(4).is_err());
    assert_eq!(read(&encode(CHUNK, &[]).unwrap()).unwrap(), []);
}

#[test]
fn many_blocks_are_read_like_one() {
    let mut large = full_record();
    large.facts.as_mut().unwrap().text = "words ".repeat(20_000);
    let records: Vec<_> =
        (0..20).map(|n| if n % 3 == 0 { large.clone() } else { removed(n) }).collect();
    let bytes = encode(CHUNK, &records).unwrap();
    let file = FactsFile::open(CHUNK, bytes.as_slice()).unwrap();
    assert_eq!(file.get(13).unwrap(), records[13]);
    assert_eq!(read(&bytes).unwrap(), records);
}

#[test]
fn a_changed_bit_anywhere_is_noticed_by_both_readers() {
    let bytes = encode(CHUNK, &[full_record(), removed(1)]).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let streamed = FactsStream::open(CHUNK, damaged.as_slice());
            let streamed: Result<Vec<_>> = streamed.and_then(Iterator::collect);
            let error = streamed.expect_err("a changed bit must be noticed");
            assert!(matches!(error, Error::Corrupt { .. }), "byte {at}: {error}");
            let file = FactsFile::open(CHUNK, damaged.as_slice());
            let by_number = file.and_then(|file| Ok((file.get(0)?, file.get(1)?)));
            assert!(by_number.is_err(), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn a_cut_or_longer_file_is_noticed_by_both_readers() {
    let bytes = encode(CHUNK, &[full_record(), removed(1)]).unwrap();
    for len in 0..bytes.len() {
        let cut = &bytes[..len];
        assert!(
            FactsStream::open(CHUNK, cut).and_then(Iterator::collect::<Result<Vec<_>>>).is_err()
        );
        assert!(FactsFile::open(CHUNK, cut).is_err(), "{len} bytes");
    }
    let longer = [bytes.as_slice(), b"\0"].concat();
    assert!(read(&longer).is_err());
    assert!(FactsFile::open(CHUNK, longer.as_slice()).is_err());
}

#[test]
fn damage_is_named() {
    let mut bytes = encode(CHUNK, &[full_record()]).unwrap();
    bytes[100] ^= 1;
    let message = read(&bytes).unwrap_err().to_string();
    assert_eq!(message, "facts of chunk 3/17 is corrupt: block at byte 40: checksum mismatch");
}

#[test]
fn the_file_or_a_block_of_another_chunk_is_refused() {
    let other = ChunkKey { part: 3, id: 18 };
    let theirs = encode(other, &[full_record()]).unwrap();
    let message = read(&theirs).unwrap_err().to_string();
    assert!(message.contains("it is the file of chunk 3/18"), "{message}");
    let mut ours = encode(CHUNK, &[full_record()]).unwrap();
    let header = layout::HEADER_BYTES;
    ours[header..].copy_from_slice(&theirs[header..]);
    assert!(read(&ours).is_err());
}

#[test]
fn a_record_beyond_the_limit_is_refused_and_the_file_stays_whole() {
    let mut writer = FactsWriter::new(CHUNK);
    writer.push(&removed(1)).unwrap();
    let mut large = full_record();
    large.facts.as_mut().unwrap().text = "x".repeat(RECORD_BYTES_MAX);
    assert!(matches!(writer.push(&large), Err(Error::TooLarge { .. })));
    writer.push(&removed(2)).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).unwrap(), [removed(1), removed(2)]);
}

#[test]
fn a_writer_that_is_used_again_writes_what_a_new_one_would() {
    let mut writer = FactsWriter::new(ChunkKey { part: 9, id: 9 });
    writer.push(&full_record()).unwrap();
    writer.finish().unwrap();
    writer.restart(ChunkKey { part: 8, id: 8 });
    writer.push(&full_record()).unwrap();
    writer.restart(CHUNK);
    writer.push(&removed(1)).unwrap();
    assert_eq!(writer.finish().unwrap(), encode(CHUNK, &[removed(1)]).unwrap());
}

#[test]
fn a_file_inside_a_pack_is_read_by_range() {
    let root = tempfile::tempdir().unwrap();
    let objects = Objects::open(&Location::Directory(root.path().to_owned())).unwrap();
    let bytes = encode(CHUNK, &[full_record(), removed(1)]).unwrap();
    let path = ObjectPath::pack(3, 1);
    objects.put(&path, [b"before".as_slice(), &bytes, b"behind"].concat()).unwrap();
    let len = bytes.len() as u64;
    let file = InObject { objects: &objects, path, offset: 6, len };
    let file = FactsFile::open(CHUNK, file).unwrap();
    assert_eq!(file.get(1).unwrap(), removed(1));
}

fn any_record() -> impl Strategy<Value = DocumentRecord> {
    let links = prop::collection::vec(("[a-z/:.]{0,30}", any::<String>()), 0..8);
    let change = prop::sample::select(vec![
        Change::Add,
        Change::Update,
        Change::Keep,
        Change::Remove(RemoveReason::Operator),
    ]);
    (any::<String>(), any::<i64>(), change, links, any::<String>()).prop_map(
        |(docid, job, change, links, text)| {
            let mut record = DocumentRecord::new(docid, job, change);
            let links = links.into_iter().map(|(url, anchor)| Link {
                url,
                anchor,
                kind: LinkKind::A,
                rel: Rel::default(),
            });
            let links = links.collect();
            record.facts = Some(Facts { links, text, ..Facts::default() });
            record
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(records in prop::collection::vec(any_record(), 0..12)) {
        prop_assert_eq!(read(&encode(CHUNK, &records).unwrap()).unwrap(), records);
    }

    #[test]
    fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&bytes).is_err());
    }
}
