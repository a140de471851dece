//! The same verbs on a PostgreSQL database with its objects.

use std::process::Output;

use store::testing::{FreshDatabase, skipped};

use super::{Place, assert_trouble, bare, check_archive, said, text};

/// A database and a directory for its objects.
struct Shared {
    place: Place,
    database: FreshDatabase,
    objects: String,
}

impl Shared {
    /// Empty, or none and a line that says so.
    fn empty() -> Option<Shared> {
        let Some(database) = FreshDatabase::from_environment() else {
            skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
            return None;
        };
        let place = Place::filled();
        let objects = text(&place.path("objects")).to_owned();
        Some(Shared { place, database, objects })
    }

    /// With what a filled directory has.
    fn filled() -> Option<Shared> {
        let shared = Shared::empty()?;
        let to = ["copy", "--to", &shared.database.url, "--to-objects", &shared.objects];
        shared.place.succeeds(&to);
        Some(shared)
    }

    fn run(&self, args: &[&str]) -> Output {
        bare(&[args, &["--database", &self.database.url, "--objects", &self.objects]].concat())
    }
}

#[test]
fn every_verb_that_looks_takes_a_database() {
    let Some(shared) = Shared::filled() else { return };
    assert!(said(&shared.run(&["status"])).contains("3 chunks committed"));
    assert!(said(&shared.run(&["verify"])).contains("3 chunks, 3 objects"));
    assert!(said(&shared.run(&["hosts"])).contains("example.com"));
    assert!(said(&shared.run(&["why", "http://a.example/"])).contains("There is no job yet"));
    let doctor = shared.run(&["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("PostgreSQL 1") && told.contains("objects          one was"), "{told}");
    let archive = shared.place.path("a.warc.gz");
    said(&shared.run(&["export", "warc", text(&archive)]));
    assert_eq!(check_archive(&archive).responses, 6);
    assert!(said(&shared.run(&["gc"])).contains("dropped the facts of 3 chunks"));
    assert!(said(&shared.run(&["init"])).contains("is up to date: 4 parts"));
}

#[test]
fn an_empty_database_is_made_ready_and_a_backup_of_it_is_explained() {
    let Some(shared) = Shared::empty() else { return };
    assert!(said(&shared.run(&["init", "--parts", "8"])).contains("8 parts"));
    assert!(said(&shared.run(&["status"])).contains("0 chunks committed"));
    let copy = shared.place.path("copy");
    assert_trouble(&shared.run(&["backup", text(&copy)]), &["pg_dump", "bucket"]);
    let url = &shared.database.url;
    assert_trouble(&bare(&["verify", "--database", url]), &["--objects"]);
    assert!(said(&bare(&["status", "--database", url])).contains("8 parts"), "rows are enough");
}

#[test]
fn a_database_that_is_not_there_is_told_without_its_password() {
    let url = "postgres://me:hunter2@127.0.0.1:1/none";
    let refused = bare(&["status", "--database", url]);
    assert_trouble(&refused, &["given with --database", "cannot be reached"]);
    assert!(!String::from_utf8_lossy(&refused.stderr).contains("hunter2"));
}
