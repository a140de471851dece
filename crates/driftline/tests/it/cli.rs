//! The program as its users meet it: the real binary, run on data directories that
//! were filled as a crawl fills them.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod beside;
mod copy;
mod database;
mod dead_letters;
mod definitions;
mod generated;
mod in_use;
mod jobs;
mod json;
mod links;
mod links_kept;
mod load;
mod looking;
mod mistakes;
mod reports;
mod secrets;

pub use generated::listed as listed_commands;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use store::Db;
use store::chunkfile::export::{ArchiveReport, check};
use store::datadir::{DataDir, Layout};
use store::ids::Part;
use store::objects::{Location, Objects};
use store::testing::commit_sample;

const PROGRAM: &str = env!("CARGO_BIN_EXE_driftline");
/// Chunks in a filled directory, and records of an archive of it: a `warcinfo` of
/// its own, and for each chunk another and two responses.
const CHUNKS: u64 = 3;
const RECORDS: u64 = 1 + 3 * CHUNKS;

/// A place for one test, with a data directory in it.
struct Place {
    folder: tempfile::TempDir,
    data: PathBuf,
}

impl Place {
    /// Without a data directory.
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        Place { folder, data }
    }

    /// With an empty data directory.
    fn empty() -> Place {
        let place = Place::new();
        place.hold();
        place
    }

    /// With [`CHUNKS`] committed chunks.
    fn filled() -> Place {
        let place = Place::new();
        let held = place.hold();
        let objects = Objects::open(&Location::Directory(held.layout().objects())).unwrap();
        for (part, round) in [(0, 0), (0, 1), (3, 0)] {
            commit_sample(held.db(), &objects, Part(part), round).unwrap();
        }
        drop(held);
        place
    }

    /// Holds the directory in this process.
    fn hold(&self) -> DataDir {
        DataDir::open(&self.data, 4, 0).unwrap()
    }

    fn layout(&self) -> Layout {
        Layout::new(&self.data)
    }

    /// Changes rows behind the program's back.
    fn execute(&self, sql: &'static str) {
        let db = Db::open_sqlite(&self.layout().database()).unwrap();
        db.write(move |tx| {
            tx.execute(sql, &[])?;
            store::testing::sum_rows(tx)
        })
        .unwrap();
    }

    /// Reads a column behind the program's back.
    fn texts(&self, sql: &'static str) -> Vec<String> {
        let db = Db::open_sqlite(&self.layout().database()).unwrap();
        db.read(move |tx| tx.query(sql, &[], |row| row.get(0))).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a verb on the data directory.
    fn run(&self, args: &[&str]) -> Output {
        run(args, &self.data)
    }

    fn succeeds(&self, args: &[&str]) -> String {
        said(&self.run(args))
    }
}

fn run(args: &[&str], data: &Path) -> Output {
    Command::new(PROGRAM).args(args).arg("--data").arg(data).output().unwrap()
}

/// Runs the program with these arguments and no others.
fn bare(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).output().unwrap()
}

/// What a run printed that went well.
fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    // Who runs the tests as root is warned by `work`, which is no error.
    let mut errors = errors.lines().filter(|it| !it.contains("this process runs as root"));
    assert_eq!(errors.next(), None, "nothing is printed as an error");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts that a run ended with 2, printed no answer, and said these words.
#[track_caller]
fn assert_trouble(output: &Output, words: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    for word in words {
        assert!(errors.contains(word), "{word:?} is not in: {errors}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn check_archive(path: &Path) -> ArchiveReport {
    check("archive", std::fs::File::open(path).unwrap(), 1 << 20).unwrap()
}

#[test]
fn a_directory_is_made_once_and_keeps_its_parts() {
    let place = Place::new();
    assert!(place.succeeds(&["init", "--parts", "8"]).contains("is ready: 8 parts"));
    let again = place.succeeds(&["init", "--parts", "9"]);
    assert!(again.contains("is up to date: 8 parts") && again.contains("keeps its 8"), "{again}");
    assert!(place.succeeds(&["status"]).contains("not in use\n0 chunks committed"));
}

#[test]
fn wrong_arguments_end_with_2_and_a_hint() {
    assert_trouble(&bare(&[]), &["Usage: driftline", "export", "gc"]);
    assert_trouble(&bare(&["statsu"]), &["unrecognized subcommand", "status"]);
    assert_trouble(&bare(&["gc", "--dat", "x"]), &["--dat", "--data"]);
    assert_trouble(&bare(&["export", "wrc"]), &["wrc", "warc"]);
    assert_trouble(&bare(&["export", "warc", "a.zip"]), &["a.zip", "ends with .warc.gz"]);
    assert_trouble(&bare(&["init", "--parts", "many"]), &["many", "--parts"]);
    let place = Place::new();
    assert_trouble(&place.run(&["init", "--parts", "0"]), &["1 to 4096 parts"]);
}

#[test]
fn a_missing_directory_is_named_and_nothing_is_made() {
    let place = Place::new();
    let archive = place.path("a.warc.gz");
    let copy = place.path("copy");
    for args in [
        vec!["status"],
        vec!["documents"],
        vec!["why", "http://a.example/"],
        vec!["hosts"],
        vec!["verify"],
        vec!["gc"],
        vec!["backup", text(&copy)],
        vec!["export", "warc", text(&archive)],
    ] {
        assert_trouble(&place.run(&args), &["no data directory", text(&place.data), "--data"]);
    }
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_newer_schema_is_refused_by_every_verb_that_opens_it() {
    let place = Place::filled();
    place.execute("INSERT INTO schema_versions (version, name, applied_ms) VALUES (99, 'x', 0)");
    let archive = place.path("a.warc.gz");
    for args in [
        vec!["init"],
        vec!["status"],
        vec!["documents"],
        vec!["why", "http://a.example/"],
        vec!["hosts"],
        vec!["verify"],
        vec!["gc"],
        vec!["export", "warc", text(&archive)],
    ] {
        assert_trouble(&place.run(&args), &["schema 99", "newer driftline"]);
    }
    assert!(!archive.exists());
}

#[test]
fn a_backup_restores_to_what_it_was() {
    let place = Place::filled();
    let (copy, back) = (place.path("copy"), place.path("back"));
    let done = place.succeeds(&["backup", text(&copy)]);
    assert!(done.contains(&format!("holds {} files", CHUNKS + 1)), "{done}");
    assert_trouble(&place.run(&["backup", text(&copy)]), &[text(&copy)]);
    assert!(said(&run(&["restore", text(&copy)], &back)).contains("is ready"));
    assert!(said(&run(&["verify"], &back)).contains("3 chunks, 3 objects"));
    for (data, archive) in [(&place.data, "a.warc.gz"), (&back, "b.warc.gz")] {
        let archive = place.path(archive);
        said(&run(&["export", "warc", text(&archive)], data));
        assert_eq!(check_archive(&archive).responses, 2 * CHUNKS);
    }
}

#[test]
fn a_damaged_object_is_found_and_not_exported() {
    let place = Place::filled();
    let path = place.layout().objects().join("chunks/3/4000010.warc.zst");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let verified = place.run(&["verify"]);
    assert_eq!(verified.status.code(), Some(1));
    let findings = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(findings.contains("chunks/3/4000010.warc.zst"), "{findings}");
    assert!(findings.contains("1 finding"), "{findings}");
    let archive = place.path("a.warc.gz");
    let refused = place.run(&["export", "warc", text(&archive)]);
    assert_trouble(&refused, &["chunks/3/4000010.warc.zst", "restore from a backup"]);
    let left: Vec<_> = std::fs::read_dir(place.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "neither the archive nor a part of it is left");
}

#[test]
fn an_export_is_whole_and_replaces_nothing() {
    let place = Place::filled();
    let (archive, partial) = (place.path("a.warc.gz"), place.path("a.warc.gz.partial"));
    // A killed export left this.
    std::fs::write(&partial, vec![b'x'; 1 << 16]).unwrap();
    place.succeeds(&["export", "warc", text(&archive)]);
    let expected =
        ArchiveReport { records: RECORDS, responses: 2 * CHUNKS, ..ArchiveReport::default() };
    assert_eq!(check_archive(&archive), expected);
    assert!(!partial.exists());
    let before = std::fs::read(&archive).unwrap();
    assert_trouble(&place.run(&["export", "warc", text(&archive)]), &["exists already"]);
    assert_eq!(std::fs::read(&archive).unwrap(), before);
    assert!(!partial.exists());
}

#[test]
fn an_export_writes_through_no_link_and_is_private() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = Place::filled();
    let (archive, partial) = (place.path("a.warc.gz"), place.path("a.warc.gz.partial"));
    let victim = place.path("victim");
    std::fs::write(&victim, "mine").unwrap();
    symlink(&victim, &partial).unwrap();
    assert_trouble(&place.run(&["export", "warc", text(&archive)]), &["symbolic link"]);
    assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
    std::fs::remove_file(&partial).unwrap();
    // What a killed export left may be open to others.
    std::fs::write(&partial, "x").unwrap();
    std::fs::set_permissions(&partial, std::fs::Permissions::from_mode(0o644)).unwrap();
    place.succeeds(&["export", "warc", text(&archive)]);
    let mode = archive.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let table = place.path("report.csv");
    symlink(&victim, &table).unwrap();
    let report = ["report", "documents", "--csv", text(&table)];
    assert_trouble(&place.run(&report), &["symbolic link"]);
    assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
}

#[test]
fn an_export_of_nothing_is_a_valid_archive() {
    let place = Place::empty();
    let archive = place.path("a.warc.gz");
    place.succeeds(&["export", "warc", text(&archive)]);
    assert_eq!(check_archive(&archive), ArchiveReport { records: 1, ..ArchiveReport::default() });
}

#[test]
fn gc_drops_what_nothing_needs_and_removes_it_when_its_grace_is_over() {
    let place = Place::filled();
    // A document of chunk 4000010 is still there, with its facts and its body.
    place.execute(
        "INSERT INTO documents (part, id, connectionid, dochash, docid, outcome, first_ms,
             checked_ms, checks, changes, quiet_ms, restless_ms, chunk, ordinal, bodychunk, missing)
         VALUES (3, 1, 1, x'00', 'http://example.com/4000000', 'ok', 0, 0, 1, 0, 0, 0, 4000010,
             0, 4000010, 0)",
    );
    let first = place.succeeds(&["gc"]);
    assert!(
        first.contains("facts of 2 chunks and the bodies of 2; 2 objects marked for removal"),
        "{first}"
    );
    assert!(first.contains("removed 0 objects"), "{first}");
    // Their grace passes.
    place.execute("UPDATE objects SET condemned_ms = 0 WHERE state = 'condemned'");
    assert!(place.succeeds(&["gc"]).contains("removed 2 objects"));
    let verified = place.succeeds(&["verify"]);
    let whole = verified.contains("1 chunks, 1 objects") && verified.contains("no errors");
    assert!(whole, "what nothing needs is forgotten, and that is no gap: {verified}");
    let archive = place.path("a.warc.gz");
    place.succeeds(&["export", "warc", text(&archive)]);
    assert_eq!(check_archive(&archive).responses, 2, "what is needed is still there");
}

#[test]
fn gc_lists_orphans_and_deletes_them_only_when_asked() {
    let place = Place::filled();
    let orphan = place.layout().objects().join("packs/2/77.facts");
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::write(&orphan, "12345").unwrap();
    let young = place.succeeds(&["gc"]);
    assert!(!young.contains("no row refers to"), "{young}");
    let old = std::time::UNIX_EPOCH;
    std::fs::File::options().write(true).open(&orphan).unwrap().set_modified(old).unwrap();
    let listed = place.succeeds(&["gc"]);
    assert!(listed.contains("found 1 objects that no row refers to, 5 bytes"), "{listed}");
    assert!(listed.contains("packs/2/77.facts") && orphan.exists(), "{listed}");
    let deleted = place.succeeds(&["gc", "--delete-orphans"]);
    assert!(deleted.contains("deleted 1 objects") && !orphan.exists(), "{deleted}");
}
