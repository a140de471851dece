//! What we export, judged by ourselves and by the archives' own tool.

use std::process::Command;

use super::*;
use crate::chunkfile::ChunkKey;
use crate::chunkfile::bodies::tests::sample;
use crate::chunkfile::warc::{self, RecordId};
use crate::ids::Part;
use crate::objects::{Location, ObjectPath, Objects};
use crate::testing::{both_databases, commit_sample, environment, skipped};

fn exported() -> Vec<u8> {
    let (bytes, _) = sample();
    let mut out = Vec::new();
    assert_eq!(export_warc_gz(bodies::records("sample", &bytes), &mut out).unwrap(), 4);
    out
}

fn check_bytes(bytes: &[u8]) -> ArchiveReport {
    check("test.warc.gz", bytes, 1 << 20).unwrap()
}

#[test]
fn an_exported_archive_holds_the_same_records_and_passes_the_check() {
    let (bytes, _) = sample();
    let ours: Vec<_> = bodies::records("sample", &bytes).collect::<Result<_>>().unwrap();
    let theirs = exported();
    let read = WarcReader::open("t", theirs.as_slice(), 1 << 20).unwrap();
    let read: Vec<_> = read.map(|found| found.unwrap()).collect();
    assert!(read.iter().all(|found| found.place.is_some()), "one member per record");
    assert_eq!(read.into_iter().map(|found| found.record).collect::<Vec<_>>(), ours);
    let report = check_bytes(&theirs);
    let expected =
        ArchiveReport { records: 4, responses: 1, revisits: 2, ..ArchiveReport::default() };
    assert_eq!(report, expected);
}

#[test]
fn the_check_finds_what_common_tools_forgive() {
    let whole = exported();
    assert!(!check_bytes(&whole[..whole.len() - 1]).faults.is_empty(), "a cut");
    let (bytes, _) = sample();
    let all: Vec<_> = bodies::records("sample", &bytes).collect::<Result<_>>().unwrap();
    let report_of = |all: Vec<Record>| {
        let mut out = Vec::new();
        export_warc_gz(all.into_iter().map(Ok), &mut out).unwrap();
        check_bytes(&out)
    };
    let mut bare = all.clone();
    bare[1].headers.retain(|(name, _)| !name.ends_with("Digest"));
    assert_eq!(report_of(bare).faults.len(), 2, "no digests");
    let mut changed = all.clone();
    changed[1].block.push(b'!');
    assert_eq!(report_of(changed).faults.len(), 1, "a changed body");
    let mut orphans = all.clone();
    orphans.remove(1);
    assert_eq!(report_of(orphans).revisits_without_target, 2);
    let twice = [all.clone(), all].concat();
    assert_eq!(report_of(twice).faults.len(), 4, "every id twice");
}

fn export_info() -> Record {
    let id = RecordId::of([7; 16], ChunkKey { part: 0, id: 0 }, 0);
    warc::warcinfo(&id, 0, &[("software", "driftline")])
}

#[test]
fn everything_stored_becomes_one_archive_that_passes_the_check() {
    both_databases(|db| {
        let place = tempfile::tempdir().unwrap();
        let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
        for (part, round) in [(3, 0), (0, 0), (0, 1)] {
            commit_sample(db, &store, Part(part), round)?;
        }
        let mut out = Vec::new();
        let exported = export_stored(db, &store, &export_info(), &mut out)?;
        assert_eq!(exported, ExportSummary { chunks: 3, records: 10 });
        let expected = ArchiveReport { records: 10, responses: 6, ..ArchiveReport::default() };
        assert_eq!(check_bytes(&out), expected);
        let read = WarcReader::open("t", out.as_slice(), 1 << 20)?;
        let pages: Vec<String> = read
            .filter_map(|found| found.unwrap().record.target_uri().map(str::to_owned))
            .collect();
        assert_eq!(pages[0], "http://example.com/1000000");
        assert_eq!(pages[5], "http://example.com/4000001");
        Ok(())
    });
}

#[test]
fn a_stored_object_with_other_bytes_is_not_exported() {
    both_databases(|db| {
        let place = tempfile::tempdir().unwrap();
        let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
        commit_sample(db, &store, Part(0), 0)?;
        let path = ObjectPath::bodies(ChunkKey { part: 0, id: 1_000_010 });
        let mut bytes = store.get(&path)?;
        // The seal is the last frame, which every WARC reader passes over.
        *bytes.last_mut().unwrap() ^= 1;
        store.delete(&path)?;
        store.put(&path, bytes)?;
        let refused = export_stored(db, &store, &export_info(), Vec::new());
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        Ok(())
    });
}

/// `warcio check` is the archives' own validator; here it judges what we export.
#[test]
fn warcio_accepts_what_is_exported() {
    let Some(python) = environment("DRIFTLINE_TEST_PYTHON") else {
        return skipped("warcio: DRIFTLINE_TEST_PYTHON is not set");
    };
    let has_warcio = Command::new(&python).args(["-c", "import warcio"]).output();
    if !has_warcio.is_ok_and(|output| output.status.success()) {
        return skipped(&format!("warcio: {python} cannot import it"));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.warc.gz");
    let judged = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let run = "from warcio.cli import main; main()";
        let args = ["-c", run, "check", "-v"];
        Command::new(&python).args(args).arg(&file).output().unwrap()
    };
    let good = judged(&exported());
    let output = String::from_utf8_lossy(&good.stdout).into_owned();
    assert!(good.status.success(), "{output}");
    assert!(output.contains("digest pass"), "{output}");
    // The judge must be awake: one member for all is an error to it.
    let (bytes, _) = sample();
    let mut plain = Vec::new();
    for record in bodies::records("sample", &bytes) {
        record.unwrap().write_to(&mut plain);
    }
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all(&plain).unwrap();
    assert!(!judged(&member.finish().unwrap()).status.success());
}
