//! From a data directory to PostgreSQL and back, as an operator does it.

use store::Db;
use store::testing::{FreshDatabase, skipped};

use super::{Place, assert_trouble, bare, run, said, text};

/// A fresh database, or none and a line that says so.
fn database() -> Option<FreshDatabase> {
    let found = FreshDatabase::from_environment();
    if found.is_none() {
        skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    }
    found
}

#[test]
fn a_directory_goes_to_postgresql_and_comes_back() {
    let Some(database) = database() else { return };
    let place = Place::filled();
    let objects = format!("file://{}", text(&place.path("objects")));
    let out = ["copy", "--to", &database.url, "--to-objects", &objects];
    let done = place.succeeds(&out);
    assert!(done.contains("PostgreSQL database driftline_"), "{done}");
    assert!(done.contains("is ready") && done.contains("and 3 objects"), "{done}");
    assert_trouble(&place.run(&out), &["not empty", "objects"]);

    let back = place.path("back");
    let args =
        ["copy", "--from", &database.url, "--from-objects", &objects, "--to-data", text(&back)];
    let json: serde_json::Value =
        serde_json::from_str(&said(&bare(&[&args[..], &["--json"]].concat()))).unwrap();
    let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["bytes", "copy", "objects", "rows", "tables"]);
    assert_eq!((json["objects"].as_u64(), json["copy"].as_str()), (Some(3), Some(text(&back))));
    assert!(said(&run(&["verify"], &back)).contains("3 chunks, 3 objects"));
    assert_trouble(&bare(&args), &[text(&back), "not empty"]);
}

#[test]
fn a_directory_that_somebody_holds_is_not_copied() {
    let Some(database) = database() else { return };
    let place = Place::filled();
    let _held = place.hold();
    let objects = place.path("objects");
    let out = ["copy", "--to", &database.url, "--to-objects", text(&objects)];
    assert_trouble(&place.run(&out), &["in use by process", "stop it first"]);
    assert!(!objects.exists(), "nothing was made");
}

#[test]
fn an_incomplete_copy_is_refused_by_every_verb() {
    let place = Place::filled();
    place.execute("INSERT INTO settings (name, value) VALUES ('copying', '1/1 x')");
    let (copy, archive) = (place.path("copy"), place.path("a.warc.gz"));
    for args in [
        vec!["init"],
        vec!["status"],
        vec!["verify"],
        vec!["gc"],
        vec!["backup", text(&copy)],
        vec!["export", "warc", text(&archive)],
        vec!["copy", "--to", "postgres://x", "--to-objects", "y"],
    ] {
        assert_trouble(&place.run(&args), &["is incomplete", "run the same copy again"]);
    }
    assert!(!archive.exists() && !copy.exists());
}

#[test]
fn a_direction_is_whole_or_refused_with_what_is_missing() {
    for (args, words) in [
        (vec!["copy"], vec!["--to", "--from"]),
        (vec!["copy", "--to", "postgres://x"], vec!["--to-objects"]),
        (vec!["copy", "--from", "postgres://x", "--to-data", "y"], vec!["--from-objects"]),
        (
            vec!["copy", "--from", "x", "--from-objects", "y", "--to-data", "z", "--data", "a"],
            vec!["--data", "cannot be used with"],
        ),
        (
            vec!["copy", "--from", "x", "--from-objects", "y", "--to-data", "z", "--to", "a"],
            vec!["cannot be used with"],
        ),
    ] {
        assert_trouble(&bare(&args), &words);
    }
    let place = Place::filled();
    let nowhere = ["copy", "--to", "postgres://nobody@127.0.0.1:1/none", "--to-objects", "ftp://x"];
    assert_trouble(&place.run(&nowhere), &["ftp://x", "s3://bucket/prefix"]);
    let objects = place.path("objects");
    let nobody =
        ["copy", "--to", "postgres://nobody@127.0.0.1:1/none", "--to-objects", text(&objects)];
    assert_trouble(&place.run(&nobody), &["given with --to", "cannot be reached"]);
    assert!(!objects.exists(), "nothing was made");
}

#[test]
fn keys_of_a_bucket_come_from_a_file_and_are_not_shown() {
    let place = Place::filled();
    let keys = place.path("keys");
    std::fs::write(&keys, "only-hunter2\n").unwrap();
    let args =
        ["copy", "--to", "postgres://x", "--to-objects", "s3://crawl", "--s3-keys", text(&keys)];
    let refused = place.run(&args);
    assert_trouble(&refused, &[text(&keys), "two lines"]);
    assert!(!String::from_utf8_lossy(&refused.stderr).contains("hunter2"));
    std::fs::remove_file(&keys).unwrap();
    assert_trouble(&place.run(&args), &[text(&keys), "--s3-keys"]);
}

#[test]
fn a_copy_that_was_cut_off_starts_over() {
    let Some(database) = database() else { return };
    let place = Place::filled();
    let objects = place.path("objects");
    let out = ["copy", "--to", &database.url, "--to-objects", text(&objects)];
    let damaged = place.layout().objects().join("chunks/3/4000010.warc.zst");
    let bytes = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, "x").unwrap();
    assert_trouble(&place.run(&out), &["chunks/3/4000010.warc.zst", "driftline verify"]);
    let back = place.path("back");
    let again = [
        "copy",
        "--from",
        &database.url,
        "--from-objects",
        text(&objects),
        "--to-data",
        text(&back),
    ];
    assert_trouble(&bare(&again), &["is incomplete"]);
    assert!(!back.exists(), "nothing was made");
    std::fs::write(&damaged, bytes).unwrap();
    place.succeeds(&out);
    store::migrate::check(&Db::open_postgres(&database.url).unwrap()).unwrap();
}
