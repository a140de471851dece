//! Archives made by hand, looked at: whole ones, long ones and damaged ones.

use super::*;
use crate::connectors::warc::archive::RECORDS_AT_ONCE;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use store::chunkfile::warc::Record;

fn record(kind: &str, url: &str, date: &str, block: &str) -> Vec<u8> {
    let headers = [
        ("WARC-Type", kind),
        ("WARC-Target-URI", url),
        ("WARC-Date", date),
        ("WARC-Record-ID", "<urn:uuid:00000000-0000-0000-0000-000000000000>"),
        ("Content-Type", if kind == "resource" { "text/plain" } else { "application/http" }),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut out = Vec::new();
    Record { version: "1.0".into(), headers, block: block.into() }.write_to(&mut out);
    out
}

fn page(url: &str, date: &str, words: &str) -> Vec<u8> {
    let html = format!("<title>{words}</title><p>{words} <a href=\"/next\">next</a>");
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
    record("response", url, date, &block)
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

const ONE: &str = "https://a.example/1";
const TWO: &str = "https://a.example/2";
const OLD: &str = "2020-01-01T00:00:00Z";
const NEW: &str = "2021-01-01T00:00:00Z";

struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Shelf {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("shelf/more")).unwrap();
        Shelf { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("shelf").join(name)
    }

    fn docid(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().trim_end_matches('/').to_owned()
    }

    fn write(&self, name: &str, records: &[Vec<u8>]) {
        let records: Vec<Vec<u8>> = match name.ends_with(".gz") {
            true => records.iter().map(|it| member(it)).collect(),
            false => records.to_vec(),
        };
        std::fs::write(self.path(name), records.concat()).unwrap();
    }

    fn archives(&self) -> Archives {
        let spec = WarcSpec { paths: vec![self.docid("")], ..WarcSpec::default() };
        Archives::new(spec.check().unwrap(), AllowedRoots::default())
    }
}

fn look(archives: &Archives, docid: &str, (version, data): (Option<&str>, &Data)) -> LookResult {
    archives.look(docid, KnownVersion { version, data })
}

#[track_caller]
fn leads(archives: &Archives, docid: &str) -> Vec<Reference> {
    match look(archives, docid, (None, &Data::new())) {
        LookResult::Container { references } => references,
        LookResult::Trouble { detail, .. } => panic!("{detail}"),
        _ => panic!("{docid} leads nowhere"),
    }
}

/// What all archives hand a page.
fn handed(archives: &Archives, names: &[String], url: &str) -> Data {
    let found = names.iter().flat_map(|it| leads(archives, it)).filter(|it| it.docid == url);
    let values: BTreeSet<String> = found.flat_map(|it| it.data[CAPTURE].clone()).collect();
    Data::from([(CAPTURE.to_owned(), values)])
}

#[track_caller]
fn read(looked: LookResult) -> Read {
    match looked {
        LookResult::Read(read) => *read,
        LookResult::Trouble { detail, .. } => panic!("{detail}"),
        _ => panic!("it was not read"),
    }
}

#[track_caller]
fn fault(looked: LookResult) -> (&'static str, bool, String) {
    let LookResult::Trouble { code, detail, passes } = looked else {
        panic!("there is no trouble")
    };
    (code, passes, detail)
}

#[test]
fn a_directory_leads_to_archives_and_these_to_pages_that_were_there() {
    let shelf = Shelf::new();
    let gone = "HTTP/1.1 404 Not Found\r\n\r\n";
    let records = [
        record("warcinfo", "", OLD, "software: by hand"),
        page(ONE, OLD, "first"),
        record("request", ONE, NEW, "GET /1 HTTP/1.1\r\n\r\n"),
        record("response", "https://a.example/gone", OLD, gone),
        record("response", "dns:a.example", OLD, "20200101000000\na.example. 1 IN A 1.1.1.1"),
        record("resource", TWO, OLD, "plain words"),
    ];
    shelf.write("a.warc.gz", &records);
    shelf.write("more/b.warc", &records);
    std::fs::write(shelf.path("notes.txt"), "no archive").unwrap();
    std::os::unix::fs::symlink(shelf.path("a.warc.gz"), shelf.path("link.warc.gz")).unwrap();
    let archives = shelf.archives();
    let mut seeds = Vec::new();
    archives.seed(None, 5, &mut |seed| seeds.push(seed)).unwrap();
    let found: Vec<String> = leads(&archives, &seeds[0]).into_iter().map(|it| it.docid).collect();
    assert_eq!(found, [shelf.docid("a.warc.gz"), shelf.docid("more")]);
    for name in ["a.warc.gz", "more/b.warc"] {
        let found = leads(&archives, &shelf.docid(name));
        let urls: Vec<&str> = found.iter().map(|it| &*it.docid).collect();
        assert_eq!(urls, [ONE, TWO], "{name}");
        let first = read(look(&archives, ONE, (None, &found[0].data)));
        assert_eq!((&*first.facts.title, first.facts.links.len()), ("first", 1));
        let second = read(look(&archives, TWO, (None, &found[1].data)));
        assert_eq!((&*second.facts.text, &*second.facts.media_type), ("plain words", "text/plain"));
    }
    let link = look(&archives, &shelf.docid("link.warc.gz"), (None, &Data::new()));
    assert!(matches!(link, LookResult::Missing), "links are not followed");
    assert!(archives.unwanted("/etc/a.warc").is_some() && archives.unwanted(ONE).is_none());
}

#[test]
fn a_page_is_its_newest_capture_and_falls_back_when_that_goes() {
    let shelf = Shelf::new();
    shelf.write("new.warc.gz", &[page(ONE, OLD, "oldest"), page(ONE, NEW, "newest")]);
    shelf.write("old.warc.gz", &[page(ONE, OLD, "older")]);
    let names = ["new.warc.gz", "old.warc.gz"].map(|it| shelf.docid(it));
    let archives = shelf.archives();
    let data = handed(&archives, &names, ONE);
    assert_eq!(data[CAPTURE].len(), 2, "one for each archive: {data:?}");
    let first = read(look(&archives, ONE, (None, &data)));
    assert_eq!(first.facts.title, "newest");
    assert!(matches!(look(&archives, ONE, (Some(&first.version), &data)), LookResult::Same));
    // Nothing outside the job's paths is read, whoever handed it.
    let other = Data::from([(CAPTURE.to_owned(), [format!("{NEW} 0 /etc/passwd.warc")].into())]);
    assert!(matches!(look(&archives, ONE, (None, &other)), LookResult::Missing));
    std::fs::remove_file(shelf.path("new.warc.gz")).unwrap();
    let second = read(look(&archives, ONE, (Some(&first.version), &data)));
    assert_eq!(second.facts.title, "older");
    std::fs::remove_file(shelf.path("old.warc.gz")).unwrap();
    assert!(matches!(look(&archives, ONE, (None, &data)), LookResult::Missing));
}

#[test]
fn a_long_archive_comes_in_parts() {
    let shelf = Shelf::new();
    let count = RECORDS_AT_ONCE + 3;
    let pages: Vec<Vec<u8>> =
        (0..count).map(|it| page(&format!("https://a.example/{it}"), OLD, "words")).collect();
    for name in ["long.warc", "long.warc.gz"] {
        shelf.write(name, &pages);
        let archives = shelf.archives();
        let mut first = leads(&archives, &shelf.docid(name));
        let next = first.pop().unwrap();
        assert_eq!((first.len() as u64, next.link), (RECORDS_AT_ONCE, CHILD));
        let rest = leads(&archives, &next.docid);
        assert_eq!(rest.len(), 3, "{}", next.docid);
        read(look(&archives, &rest[0].docid, (None, &rest[0].data)));
        // The archive has become shorter: there is no such part any more.
        shelf.write(name, &pages[..1]);
        assert!(matches!(look(&archives, &next.docid, (None, &Data::new())), LookResult::Missing));
    }
}

#[test]
fn what_is_before_the_damage_is_listed_and_the_damage_is_told() {
    let shelf = Shelf::new();
    let whole = [page(ONE, OLD, "first"), page(TWO, OLD, "second")];
    for name in ["cut.warc", "cut.warc.gz"] {
        shelf.write(name, &whole);
        let bytes = std::fs::read(shelf.path(name)).unwrap();
        std::fs::write(shelf.path(name), &bytes[..bytes.len() - 9]).unwrap();
        let archives = shelf.archives();
        let found = leads(&archives, &shelf.docid(name));
        let [first, broken] = &found[..] else { panic!("{name}: {found:?}") };
        assert_eq!(read(look(&archives, ONE, (None, &first.data))).facts.title, "first");
        let (code, passes, detail) = fault(look(&archives, &broken.docid, (None, &Data::new())));
        assert_eq!((code, passes), ("archive", false), "{name}: {detail}");
    }
}

#[test]
fn hostile_archives_are_trouble_of_their_own() {
    let shelf = Shelf::new();
    let wrong_length = String::from_utf8(page(ONE, OLD, "first")).unwrap();
    let at = wrong_length.find("Content-Length: ").unwrap() + "Content-Length: ".len();
    let with_length = |text: &str| {
        let rest = wrong_length[at..].split_once('\r').unwrap().1;
        format!("{}{text}\r{rest}", &wrong_length[..at]).into_bytes()
    };
    let whole_as_one = member(&[page(ONE, OLD, "a"), page(TWO, OLD, "b")].concat());
    for (name, bytes) in [
        ("text.warc", b"this is no archive\r\n\r\n".to_vec()),
        ("short.warc", with_length("3")),
        ("long.warc", with_length("99999999999999999999")),
        ("far.warc", with_length("18446744073709551615")),
        ("negative.warc", with_length("-1")),
        ("noise.warc.gz", [&[0x1f, 0x8b][..], &[7; 100]].concat()),
        ("one.warc.gz", whole_as_one),
    ] {
        std::fs::write(shelf.path(name), bytes).unwrap();
        let archives = shelf.archives();
        let (code, passes, detail) =
            fault(look(&archives, &shelf.docid(name), (None, &Data::new())));
        assert_eq!((code, passes), ("archive", false), "{name}: {detail}");
    }
    std::fs::write(shelf.path("empty.warc"), "").unwrap();
    assert_eq!(leads(&shelf.archives(), &shelf.docid("empty.warc")), []);
}

#[test]
fn a_capture_that_is_another_record_by_now_is_tried_again() {
    let shelf = Shelf::new();
    shelf.write("a.warc", &[page(ONE, OLD, "first")]);
    let archives = shelf.archives();
    let data = handed(&archives, &[shelf.docid("a.warc")], ONE);
    shelf.write("a.warc", &[page(TWO, OLD, "second")]);
    let (code, passes, _) = fault(look(&archives, ONE, (None, &data)));
    assert_eq!((code, passes), ("archive", true));
}

#[test]
fn encodings_of_answers_are_taken_off() {
    let shelf = Shelf::new();
    let packed = member(b"<title>packed</title>");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n";
    let mut zipped = Vec::new();
    let headers = [("WARC-Type", "response"), ("WARC-Target-URI", ONE), ("WARC-Date", OLD)];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let block = [head.as_bytes(), &packed].concat();
    Record { version: "1.1".into(), headers, block }.write_to(&mut zipped);
    let plain = record("response", TWO, OLD, &format!("{head}<title>plain</title>"));
    shelf.write("a.warc", &[zipped, plain]);
    let archives = shelf.archives();
    for (url, title) in [(ONE, "packed"), (TWO, "plain")] {
        let data = handed(&archives, &[shelf.docid("a.warc")], url);
        assert_eq!(read(look(&archives, url, (None, &data))).facts.title, title);
    }
}

#[test]
fn extracts_tell_title_and_links() {
    let shelf = Shelf::new();
    let json = r#"{"Envelope": {"Payload-Metadata": {"HTTP-Response-Metadata": {
        "Response-Message": {"Status": "200"}, "HTML-Metadata": {"Head": {"Title": "Told"},
        "Links": [{"path": "A@/href", "url": "/2"}]}}}}}"#;
    let request = r#"{"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {}}}}"#;
    let records = [record("metadata", ONE, OLD, json), record("metadata", TWO, OLD, request)];
    shelf.write("a.wat.gz", &records);
    let archives = shelf.archives();
    let found = leads(&archives, &shelf.docid("a.wat.gz"));
    assert_eq!(found.len(), 1);
    let told = read(look(&archives, ONE, (None, &found[0].data)));
    assert_eq!((&*told.facts.title, &*told.facts.links[0].url), ("Told", TWO));
    assert!(told.body.is_empty());
}
