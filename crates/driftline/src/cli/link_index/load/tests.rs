//! Files of every kind, loaded whole, in pieces, in any order and damaged, into an index.

use super::file::{Read, load};
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use outputs::links::dump::Dump;
use outputs::links::{LinkIndex, keys};
use page::domain::SuffixList;
use std::io::Write as _;
use std::path::Path;
use store::chunkfile::ChunkKey;
use store::chunkfile::warc::{self, Capture, Record, RecordId};
use store::sorted::{EmbeddedMap, MapLocation as Files};

const ONE: &str = "https://a.com/1";
const TWO: &str = "https://a.com/2";
const OLD_MS: i64 = 1_500_000_000_000;
const NEW_MS: i64 = 1_600_000_000_000;
/// The pages of Webindex, where they are at hand.
const ORIGINAL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/linkindex/5-pages.txt");

fn id() -> RecordId {
    RecordId::of([7; 16], ChunkKey { part: 0, id: 0 }, 0)
}

/// An answer with links to these.
fn answer((url, date_ms): (&str, i64), status: u16, links: &[&str]) -> Record {
    let links: Vec<String> = links.iter().map(|it| format!("<a href={it}>{it}</a>")).collect();
    let body = format!("<title>{url}</title>{}", links.concat());
    let headers = [("content-type", &b"text/html"[..]), ("server", b"s")];
    let capture = Capture {
        target_uri: url,
        date_ms,
        ip: None,
        status,
        headers: &headers,
        body: body.as_bytes(),
        truncated: false,
    };
    warc::response(&id(), &capture)
}

fn plain(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    records.iter().for_each(|record| record.write_to(&mut out));
    out
}

/// So many records in each compressed member.
fn gzip(records: &[Record], each: usize) -> Vec<u8> {
    let member = |records: &[Record]| {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(&plain(records)).unwrap();
        out.finish().unwrap()
    };
    records.chunks(each).flat_map(member).collect()
}

/// An empty index, and a place for files.
struct Scene {
    index: LinkIndex,
    folder: tempfile::TempDir,
}

/// How a file is loaded.
#[derive(Clone, Copy)]
struct How {
    policy: LinkPolicy,
    again: bool,
    pages: usize,
    /// After which it stops.
    batches: u64,
}

const WHOLE: How = How { policy: LinkPolicy::All, again: false, pages: 10_000, batches: u64::MAX };

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let files = Files { path: folder.path().join("links"), families: keys::FAMILIES };
        let index = LinkIndex::new(Arc::new(EmbeddedMap::open(&files).unwrap()), 4);
        Scene { index, folder }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn load(&self, path: &Path, how: How) -> LoadedFile {
        let limits = BatchLimits { pages: how.pages, ..BatchLimits::default() };
        let means = LoadContext {
            index: &self.index,
            leases: &[],
            list: SuffixList::bundled(),
            policy: how.policy,
            again: how.again,
            limits,
            stop: &|batches| batches >= how.batches,
            watch: &|_| (),
        };
        load(&means, &SourceFile::look(path).unwrap()).unwrap()
    }

    /// All that can be seen of the index, as Webindex would print it.
    fn cells(&self) -> Vec<String> {
        let mut cells = Vec::new();
        let mut take = |line: &str| {
            cells.push(line.to_owned());
            Ok(())
        };
        Dump::default().write(&self.index, self.folder.path(), &mut take).unwrap();
        cells
    }

    /// Cells whose row and column begin like this.
    fn count(&self, begin: &str) -> usize {
        self.cells().iter().filter(|cell| cell.starts_with(begin)).count()
    }
}

#[test]
fn the_pages_of_the_original_make_its_index() {
    let path = Path::new(ORIGINAL);
    if !path.exists() {
        return store::testing::skipped("5-pages.txt: the oracles are not at hand");
    }
    let scene = Scene::new();
    let loaded = scene.load(path, How { policy: LinkPolicy::Webindex, ..WHOLE });
    assert_eq!(loaded.ended, LoadOutcome::Finished);
    let Read { records, pages, unreadable, gone, .. } = loaded.read;
    assert_eq!((records, pages, unreadable, gone), (5, 5, 0, 0));
    let cells = scene.cells();
    assert_eq!(cells.len(), 174);
    assert_eq!(cells.iter().filter(|cell| cell.contains("|page|incount|")).count(), 37);
}

#[test]
fn the_newest_capture_counts_in_whatever_order_they_come() {
    let history = [
        answer((ONE, OLD_MS), 200, &["https://b.com/old"]),
        answer((ONE, NEW_MS), 200, &["https://b.com/new"]),
        answer((TWO, OLD_MS), 200, &["https://b.com/two"]),
        answer((TWO, NEW_MS), 404, &[]),
        answer(("https://a.com/3", OLD_MS), 200, &["https://b.com/three"]),
        answer(("https://a.com/3", NEW_MS), 301, &[]),
        answer(("https://a.com/4", OLD_MS), 200, &["https://b.com/four"]),
        answer(("https://a.com/4", NEW_MS), 503, &[]),
    ];
    let backwards: Vec<Record> = history.iter().rev().cloned().collect();
    let mut seen = Vec::new();
    for records in [&history[..], &backwards] {
        let scene = Scene::new();
        let loaded = scene.load(&scene.write("a.warc.gz", &gzip(records, 1)), WHOLE);
        assert_eq!((loaded.read.pages, loaded.read.gone), (5, 2), "a failure is none");
        assert_eq!(scene.count("p:com.b>>s>/new|inlinks|com.a>>s>/1|"), 1);
        assert_eq!(scene.count("p:com.b>>s>/four|inlinks|com.a>>s>/4|"), 1);
        assert_eq!(scene.cells().iter().filter(|it| it.contains("|inlinks|")).count(), 2);
        seen.push(scene.cells());
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn an_older_file_changes_nothing_that_a_newer_one_told() {
    let scene = Scene::new();
    let newer = [
        answer((TWO, NEW_MS - 1), 200, &["https://b.com/two"]),
        answer((ONE, NEW_MS), 200, &["https://b.com/new"]),
        answer((TWO, NEW_MS), 404, &[]),
    ];
    let older = [
        answer((ONE, OLD_MS), 200, &["https://b.com/old"]),
        answer((TWO, OLD_MS), 200, &["https://b.com/two"]),
        answer((ONE, OLD_MS + 1), 404, &[]),
    ];
    scene.load(&scene.write("newer.warc", &plain(&newer)), WHOLE);
    let before = scene.cells();
    let loaded = scene.load(&scene.write("older.warc", &plain(&older)), WHOLE);
    assert_eq!((loaded.read.pages, loaded.applied.told), (2, 3));
    assert_eq!(scene.cells(), before);
}

#[test]
fn a_page_of_which_only_its_end_is_known_stays_gone() {
    let scene = Scene::new();
    let gone = answer((ONE, NEW_MS), 404, &[]);
    let page = answer((ONE, OLD_MS), 200, &["https://b.com/"]);
    scene.load(&scene.write("newer.warc", &plain(&[gone])), WHOLE);
    scene.load(&scene.write("older.warc", &plain(&[page])), WHOLE);
    assert_eq!(scene.cells(), Vec::<String>::new());
}

/// Captures of many pages, now and then of one that is gone, and records about other things.
fn many() -> Vec<Record> {
    let mut records = vec![warc::warcinfo(&id(), OLD_MS, &[("software", "x")])];
    for number in 0..40 {
        let url = format!("https://a{}.com/{}", number % 5, number % 25);
        let target = format!("https://b.com/{}", number % 7);
        let status = if number % 9 == 8 { 404 } else { 200 };
        records.push(answer((&url, OLD_MS + number * 1_000), status, &[&target, ONE]));
    }
    records
}

#[test]
fn a_load_that_was_cut_off_goes_on_and_comes_to_the_same() {
    let records = many();
    let whole = Scene::new();
    whole.load(&whole.write("a.warc", &plain(&records)), WHOLE);
    let divisions =
        [plain(&records), gzip(&records, 1), gzip(&records, 3), gzip(&records, records.len())];
    for (division, bytes) in divisions.iter().enumerate() {
        let scene = Scene::new();
        let path = scene.write("a.warc", bytes);
        let (mut done, mut runs) = (0, 0);
        loop {
            let loaded = scene.load(&path, How { pages: 7, batches: 2, ..WHOLE });
            assert_eq!(loaded.before, done, "division {division}: no record twice, none left out");
            done += loaded.read.records;
            runs += 1;
            if loaded.ended == LoadOutcome::Finished {
                break;
            }
            assert_eq!((loaded.ended, loaded.applied.told), (LoadOutcome::Stopped, 14));
        }
        assert_eq!((done, runs), (41, 3), "division {division}");
        assert_eq!(scene.cells(), whole.cells(), "division {division}");
    }
}

#[test]
fn a_file_is_loaded_once_until_it_changes_or_somebody_asks() {
    let scene = Scene::new();
    let page = answer((ONE, OLD_MS), 200, &[TWO]);
    let path = scene.write("a.warc", &plain(std::slice::from_ref(&page)));
    let records = |how: How| {
        let loaded = scene.load(&path, how);
        (loaded.read.records, loaded.ended == LoadOutcome::Already)
    };
    assert_eq!(records(WHOLE), (1, false));
    assert_eq!(records(WHOLE), (0, true));
    let cells = scene.cells();
    assert_eq!(records(How { again: true, ..WHOLE }), (1, false));
    assert_eq!(scene.cells(), cells, "told again, it changes nothing");
    assert_eq!(records(How { policy: LinkPolicy::External, ..WHOLE }), (1, false));
    assert_eq!(scene.count("p:com.a>>s>/2|"), 0, "the other policy does not count it");
    scene.write("a.warc", &plain(&[page, answer((TWO, OLD_MS), 200, &[ONE])]));
    assert_eq!(records(WHOLE), (2, false), "it is another file now");
    let link = scene.folder.path().join("link.warc");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(scene.load(&link, WHOLE).ended, LoadOutcome::Already, "it is the same file");
}

#[test]
fn what_is_before_the_damage_is_loaded_and_the_damage_is_told() {
    let records: Vec<Record> =
        [ONE, TWO].iter().map(|url| answer((url, OLD_MS), 200, &["https://b.com/"])).collect();
    for (name, bytes) in [("plain", plain(&records)), ("gzip", gzip(&records, 1))] {
        let scene = Scene::new();
        let first = match name {
            "plain" => plain(&records[..1]).len(),
            _ => gzip(&records[..1], 1).len(),
        };
        let path = scene.write("cut.warc", &bytes[..bytes.len() - 9]);
        for before in [0, 1] {
            let loaded = scene.load(&path, WHOLE);
            assert_eq!((loaded.before, loaded.read.records), (before, 1 - before));
            let LoadOutcome::Failed(error) = loaded.ended else { panic!("{name}: it is damaged") };
            let place = format!("record 2, at byte {first}, cannot be read: ");
            assert!(error.starts_with(&place) && error.contains("intact copy"), "{name}: {error}");
        }
        assert_eq!(scene.count("p:com.b>>s>/|inlinks|"), 1);
        // The whole copy has another size, and begins anew.
        scene.write("cut.warc", &bytes);
        assert_eq!(scene.load(&path, WHOLE).read.records, 2);
        assert_eq!(scene.count("p:com.b>>s>/|inlinks|"), 2);
    }
    let scene = Scene::new();
    let noise = scene.write("noise.warc.gz", &[&[0x1f, 0x8b][..], &[7; 100]].concat());
    let LoadOutcome::Failed(error) = scene.load(&noise, WHOLE).ended else { panic!("it is noise") };
    assert!(error.starts_with("record 1, at byte 0,"), "{error}");
}

/// A record of a WAT archive about a URL.
fn extract(part: &str) -> Record {
    let headers = [
        ("WARC-Type", "metadata"),
        ("WARC-Target-URI", ONE),
        ("WARC-Date", "2015-07-28T03:06:17Z"),
        ("Content-Type", "application/json"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let block = format!(r#"{{"Envelope": {{"Payload-Metadata": {{{part}}}}}}}"#);
    Record { version: "1.0".into(), headers, block: block.into() }
}

#[test]
fn records_about_requests_leave_the_page_of_their_url_alone() {
    let told = r#""HTTP-Response-Metadata": {"Response-Message": {"Status": "200"},
        "HTML-Metadata": {"Links": [{"path": "A@/href", "url": "https://b.com/"}]}}"#;
    let records = [
        extract(r#""HTTP-Request-Metadata": {}"#),
        extract(told),
        extract(r#""WARC-Metadata-Metadata": {}"#),
        extract(r#""HTTP-Request-Metadata": {}"#),
    ];
    for policy in [LinkPolicy::All, LinkPolicy::External, LinkPolicy::Webindex] {
        for name in ["a.warc.wat.gz", "told-by-content"] {
            let scene = Scene::new();
            let path = scene.write(name, &gzip(&records, 1));
            let loaded = scene.load(&path, How { policy, ..WHOLE });
            assert_eq!((loaded.read.pages, loaded.read.gone, loaded.read.unreadable), (1, 0, 0));
            assert_eq!(scene.count("p:com.b>>s>/|inlinks|com.a>>s>/1|"), 1, "{policy:?} {name}");
        }
    }
}

#[test]
fn a_page_that_loses_all_its_links_loses_them_in_the_index() {
    let line = |date: &str, links: &str| {
        format!(r#"{{"url": "{ONE}", "crawlDate": "{date}", "outboundLinks": [{links}]}}"#)
    };
    let first = line("2015-07-28T03:06:17Z", r#"{"url": "https://b.com/", "anchorText": "b"}"#);
    let second = line("2016-07-28T03:06:17Z", "");
    for policy in [LinkPolicy::All, LinkPolicy::External, LinkPolicy::Webindex] {
        let scene = Scene::new();
        let how = How { policy, ..WHOLE };
        scene.load(&scene.write("1.txt", format!("{first}\nno page\n").as_bytes()), how);
        assert_eq!(scene.count("p:com.b>>s>/|inlinks|"), 1);
        let loaded = scene.load(&scene.write("2.txt", second.as_bytes()), how);
        assert_eq!((loaded.applied.changed, loaded.applied.lost), (1, 1));
        assert_eq!(scene.count("p:com.b>>s>/|"), 0, "{policy:?}: nobody knows of it any more");
        let is_known = scene.count("p:com.a>>s>/1|") > 0;
        assert_eq!(is_known, policy != LinkPolicy::Webindex);
    }
}

#[test]
fn a_summary_tells_what_came_of_a_file() {
    let scene = Scene::new();
    let text = format!("{{\"url\": \"{ONE}\", \"outboundLinks\": [{{\"url\": \"{TWO}\"}}]}}\nx\n");
    let path = scene.write("p\u{1b}.txt", text.as_bytes());
    let source = SourceFile::look(&path).unwrap();
    let loaded = scene.load(&path, WHOLE);
    let told = show::lines(&source, &loaded);
    assert!(told[0].ends_with("p\\u{1b}.txt: 2 records, 1 page with 1 link, 0 gone, 1 unreadable"));
    assert_eq!(told[1..], ["    1 page changed; 1 link new, 0 altered, 0 lost"]);
    let json = show::json(&source, &loaded);
    assert_eq!((&json["ended"], &json["links_new"]), (&json!("loaded"), &json!(1)));
    let again = show::lines(&source, &scene.load(&path, WHOLE));
    assert!(again[0].contains("already loaded; use --again"), "{again:?}");
    let cut = LoadedFile { before: 3, ended: LoadOutcome::Stopped, ..loaded };
    let told = show::lines(&source, &cut).join("\n");
    assert!(told.contains("after 3 records") && told.contains("same command"), "{told}");
}
