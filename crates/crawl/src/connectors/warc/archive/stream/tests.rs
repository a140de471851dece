//! Archives of every division, read in one go and from every place between two records.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::PathBuf;

const URL: &str = "https://a.example/1";

fn record(kind: &str, media_type: &str, block: &str) -> Record {
    let headers = [
        ("WARC-Type", kind),
        ("WARC-Target-URI", URL),
        ("WARC-Date", "2020-01-01T00:00:00Z"),
        ("Content-Type", media_type),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Record { version: "1.1".into(), headers, block: block.into() }
}

fn answer(status: &str) -> Record {
    let html = "<title>T</title><a href=/2>two</a>";
    let head = format!("HTTP/1.1 {status} x\r\nServer: ngi\0nx\r\nContent-Type: text/html");
    record("response", "application/http", &format!("{head}\r\n\r\n{html}"))
}

fn extract(status: &str) -> Record {
    let json = format!(
        r#"{{"Envelope": {{"Payload-Metadata": {{"HTTP-Response-Metadata": {{
            "Response-Message": {{"Status": "{status}"}}, "Headers": {{"Server": "s"}},
            "HTML-Metadata": {{"Links": [{{"path": "A@/href", "url": "/2"}}]}}}}}}}}}}"#
    );
    record("metadata", "Application/JSON; charset=utf-8", &json)
}

fn bytes(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    records.iter().for_each(|record| record.write_to(&mut out));
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// With a dictionary at its head, which every frame needs.
fn zstd_with_dictionary(records: &[Record]) -> Vec<u8> {
    let dictionary = bytes(&records[..1]);
    let mut out = DICTIONARY_MAGIC.to_vec();
    out.extend(u32::try_from(dictionary.len()).unwrap().to_le_bytes());
    out.extend(&dictionary);
    for record in records {
        let mut encoder = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
        out.extend(encoder.compress(&bytes(std::slice::from_ref(record))).unwrap());
    }
    out
}

struct Shelf(tempfile::TempDir);

impl Shelf {
    fn put(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("a.warc");
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// The blocks from a place on, and the places behind them.
fn read(path: &Path, from: Spot) -> Vec<(Vec<u8>, Spot)> {
    let steps = stream(path, from).unwrap().map(Result::unwrap);
    steps.map(|step| (step.record.block, step.behind)).collect()
}

#[test]
fn an_archive_goes_on_from_every_place_between_its_records() {
    let shelf = Shelf(tempfile::tempdir().unwrap());
    let records: Vec<Record> =
        (0..7).map(|it| record("resource", "text/plain", &format!("block {it}"))).collect();
    let divided = |size| records.chunks(size).flat_map(|it| gzip(&bytes(it))).collect();
    let archives: [(&str, Vec<u8>, bool); 6] = [
        ("plain", bytes(&records), true),
        ("blank lines", [b"\r\n\r\n".to_vec(), bytes(&records)].concat(), true),
        ("one by one", divided(1), true),
        ("in pairs", divided(2), false),
        ("all at once", divided(7), false),
        ("dictionary", zstd_with_dictionary(&records), false),
    ];
    for (name, bytes, has_offsets) in archives {
        let path = shelf.put(&bytes);
        let whole = read(&path, Spot::default());
        assert_eq!(whole.len(), 7, "{name}");
        for (at, (_, behind)) in whole.iter().enumerate() {
            assert_eq!(read(&path, *behind), whole[at + 1..], "{name}: behind record {at}");
        }
        assert_eq!(whole.iter().all(|(_, behind)| behind.passed == 0), has_offsets, "{name}");
    }
}

#[test]
fn what_is_before_the_damage_is_read_and_the_damage_has_a_place() {
    let shelf = Shelf(tempfile::tempdir().unwrap());
    let records = [answer("200"), answer("200")];
    let members = records.iter().map(|it| gzip(&bytes(std::slice::from_ref(it))));
    let members: Vec<Vec<u8>> = members.collect();
    for whole in [bytes(&records), members.concat()] {
        let path = shelf.put(&whole[..whole.len() - 9]);
        let mut archive = stream(&path, Spot::default()).unwrap();
        let behind = archive.next().unwrap().unwrap().behind;
        let fault = archive.next().unwrap().unwrap_err().to_string();
        assert!(!fault.contains("record ") && !fault.contains("a.warc"), "{fault}");
        assert_eq!((archive.spot(), archive.next().is_none()), (behind, true));
        // Opened there again, it is the same.
        let again = stream(&path, behind).unwrap().next().unwrap().unwrap_err().to_string();
        assert_eq!(again, fault);
    }
}

/// In a word.
fn word(record: &Record, is_wat: bool) -> String {
    match record_kind(record, is_wat) {
        Tells::Nothing => "nothing".to_owned(),
        Tells::Unreadable => "unreadable".to_owned(),
        Tells::Gone { why, .. } => why.to_owned(),
        Tells::Page(it) => format!("{} {} {}", it.status, it.server, it.facts.links.len()),
    }
}

#[test]
fn a_status_says_whether_a_page_is_there() {
    for (status, expected) in [
        ("404", "gone"),
        ("410", "gone"),
        ("301", "redirected"),
        ("308", "redirected"),
        ("304", "nothing"),
        ("403", "nothing"),
        ("500", "nothing"),
        ("204", "nothing"),
    ] {
        assert_eq!(word(&answer(status), false), expected, "{status}");
        assert_eq!(word(&extract(status), false), expected, "{status}");
    }
    assert_eq!(word(&answer("200"), false), "200 ngi\0nx 1".replace('\0', ""), "no NUL");
    assert_eq!(word(&extract("200"), false), "200 s 1");
    assert_eq!(word(&answer("x"), false), "unreadable");
    assert_eq!(word(&record("resource", "text/html", "<a href=/2>"), false), "0  1");
}

#[test]
fn records_about_something_else_tell_nothing() {
    let request = r#"{"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {}}}}"#;
    for (kind, media_type, block) in [
        ("warcinfo", "application/warc-fields", "software: x"),
        ("request", "application/http", "GET / HTTP/1.1\r\n\r\n"),
        ("revisit", "application/http", "HTTP/1.1 200 OK\r\n\r\n"),
        ("metadata", "application/json", request),
        ("metadata", "application/json", "{}"),
        ("metadata", "application/warc-fields", "via: x"),
    ] {
        assert_eq!(word(&record(kind, media_type, block), false), "nothing", "{kind} {block}");
    }
    let mut dns = record("response", "text/dns", "20200101000000\na.example. 1 IN A 1.1.1.1");
    dns.headers[1].1 = "dns:a.example".to_owned();
    assert_eq!(word(&dns, false), "nothing");
    // A name says that what is declared otherwise is an extract.
    let mut undeclared = extract("200");
    undeclared.headers[3].1 = "application/http".to_owned();
    assert_eq!(word(&undeclared, false), "nothing");
    assert_eq!(word(&undeclared, true), "200 s 1");
    assert_eq!(word(&record("metadata", "application/json", "{"), true), "unreadable");
}
