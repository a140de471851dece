//! Secrets where they are stored: sealed in a data directory and in a database, on the way
//! between the two, and in a backup; and what a user is told when the key is missing.

use std::path::Path;
use std::process::Output;
use store::testing::{FreshDatabase, skipped};

use super::definitions::{made, parsed};
use super::{assert_trouble, bare, run, said, text};
use crate::crawl::secrets_key;

const SECRET: &str = "hunter2-canary";

fn create(run: &dyn Fn(&[&str]) -> Output) -> Output {
    let password = format!("password={SECRET}");
    let it = ["connection", "create", "solr", "--connector", "solr", &password];
    run(&[&it[..], &["url=http://127.0.0.1:9/solr/x", "user=me"]].concat())
}

/// The secret as whoever has the key is told it.
fn exported(output: &Output) -> String {
    let all = parsed(&said(output));
    let found = &all["connections"]["output"]["solr"]["settings"]["password"];
    found.as_str().unwrap_or_else(|| panic!("{all}")).to_owned()
}

/// Files below a directory that have the secret in the open.
fn in_the_open(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let about = path.symlink_metadata().unwrap();
        if about.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else if about.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

const EXPORT: [&str; 4] = ["export", "--secrets", "--format", "json"];

#[test]
fn a_directory_and_its_backup_have_them_sealed_and_the_key_beside_them() {
    let place = made();
    assert!(!place.layout().secrets_key().exists(), "nothing to seal yet");
    said(&create(&|args| place.run(args)));
    assert_eq!(in_the_open(&place.data), [""; 0]);
    assert_eq!(exported(&place.run(&EXPORT)), SECRET);
    let (copy, back) = (place.path("copy"), place.path("back"));
    place.succeeds(&["backup", text(&copy)]);
    assert_eq!(in_the_open(&copy), [""; 0]);
    said(&bare(&["restore", text(&copy), "--data", text(&back)]));
    assert_eq!(exported(&run(&EXPORT, &back)), SECRET);
    // Without the key all but the settings is there, and whoever needs them is told why.
    let key = std::fs::read_to_string(place.layout().secrets_key()).unwrap();
    std::fs::remove_file(place.layout().secrets_key()).unwrap();
    place.succeeds(&["status"]);
    assert_trouble(&place.run(&EXPORT), &["sealed with key", "secrets.key", "forget-sealed"]);
    // A new one takes its place beside the old one, and what can be opened is sealed with it.
    std::fs::write(place.layout().secrets_key(), format!("{}\n{key}", "3f".repeat(32))).unwrap();
    assert_eq!(exported(&place.run(&EXPORT)), SECRET);
    place.succeeds(&["init"]);
    std::fs::write(place.layout().secrets_key(), "3f".repeat(32)).unwrap();
    assert_eq!(exported(&place.run(&EXPORT)), SECRET, "the old key is not needed any more");
    // A key that is lost takes the settings along, and nothing else.
    let kept = place.succeeds(&["connection", "forget-sealed"]);
    assert!(kept.contains("nothing changed"), "{kept}");
    std::fs::write(place.layout().secrets_key(), "4f".repeat(32)).unwrap();
    assert_trouble(&place.run(&["connection", "delete", "solr"]), &["forget-sealed"]);
    let gone = place.succeeds(&["connection", "forget-sealed"]);
    assert_eq!(gone, "output connection solr: its settings were deleted\n");
    let edit = ["connection", "edit", "solr", "url=http://127.0.0.1:9/solr/x", "user=me"];
    place.succeeds(&[&edit[..], &[&format!("password={SECRET}")]].concat());
    assert_eq!(exported(&place.run(&EXPORT)), SECRET);
}

#[test]
fn a_stored_secret_is_not_led_elsewhere_by_an_edit() {
    let place = made();
    said(&create(&|args| place.run(args)));
    let edit = |more: &[&str]| place.run(&[&["connection", "edit", "solr"], more].concat());
    // What says where or how it travels takes the secret with it, or is refused.
    for elsewhere in ["url=http://127.0.0.1:8/solr/x", "user=other", "ca_file=/etc/hosts"] {
        let name = elsewhere.split('=').next().unwrap_or_default();
        assert_trouble(&edit(&[elsewhere]), &[name, "password=", "stored secret"]);
    }
    said(&edit(&["timeout_ms=5s", "id_field=key", "--description", "ours"]));
    assert_eq!(exported(&place.run(&EXPORT)), SECRET, "it goes where it went");
    let document = place.path("all.json");
    let shown = said(&place.run(&["export", "--format", "json"]));
    std::fs::write(&document, shown.replace("127.0.0.1:9", "127.0.0.1:8")).unwrap();
    assert_trouble(&place.run(&["import", text(&document)]), &["url", "password"]);
    said(&edit(&["url=http://127.0.0.1:8/solr/x", "password=new"]));
    assert_eq!(exported(&place.run(&EXPORT)), "new");
    said(&edit(&["url=http://127.0.0.1:7/solr/x", "password=", "user="]));
    let found = parsed(&said(&place.run(&EXPORT)));
    assert_eq!(found["connections"]["output"]["solr"]["settings"].get("password"), None);
}

#[test]
fn an_audit_log_that_somebody_rewrote_is_noticed() {
    let place = made();
    said(&create(&|args| place.run(args)));
    let whole = place.succeeds(&["audit", "verify"]);
    assert!(whole.contains("the chain is intact; head: 3 "), "{whole}");
    place.succeeds(&["verify"]);
    place.execute("UPDATE audit SET who = 'somebody else'");
    let found = place.run(&["audit", "verify"]);
    let (code, told) = (found.status.code(), text_of(&found.stdout));
    assert!(code == Some(1) && told.contains("was changed, or is gone"), "{code:?} {told}");
    let found = place.run(&["verify"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(text_of(&found.stdout).contains("the audit log"), "{}", text_of(&found.stdout));
    let json = parsed(&text_of(&place.run(&["audit", "verify", "--json"]).stdout));
    assert_eq!((&json["events"], json["problems"].as_array().unwrap().len()), (&3.into(), 1));
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_database_takes_secrets_only_with_a_key_and_a_copy_seals_them_anew() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let place = made();
    said(&create(&|args| place.run(args)));
    let objects = format!("file://{}", text(&place.path("objects")));
    let key = secrets_key(place.folder.path());
    let key = ["--secrets-key", text(&key)];
    let out = ["copy", "--to", &database.url, "--to-objects", &objects];
    assert_trouble(&place.run(&out), &["connections have secrets", "--secrets-key", "urandom"]);
    place.succeeds(&[&out[..], &key].concat());

    let on = |args: &[&str]| bare(&[args, &["--database", &database.url]].concat());
    let with_key = |args: &[&str]| on(&[args, &key].concat());
    assert_eq!(exported(&with_key(&EXPORT)), SECRET);
    assert_trouble(&on(&EXPORT), &["sealed with key", "--secrets-key"]);
    let edit = ["connection", "edit", "solr", "password=another"];
    assert_trouble(&on(&edit), &["sealed with key", "--secrets-key"]);
    said(&with_key(&["connection", "delete", "solr"]));
    // Without a key there is a use for a database, but not for secrets in it.
    assert_trouble(&create(&on), &["stored unencrypted", "--secrets-key"]);
    said(&on(&[
        "connection",
        "create",
        "disk",
        "--connector",
        "files",
        "--kind",
        "output",
        "directory=/x",
    ]));
    said(&create(&with_key));

    let back = place.path("back");
    let args =
        ["copy", "--from", &database.url, "--from-objects", &objects, "--to-data", text(&back)];
    assert_trouble(&bare(&args), &["sealed with key", "--secrets-key"]);
    said(&bare(&[&args[..], &key].concat()));
    assert_eq!(in_the_open(&back), [""; 0]);
    assert_eq!(exported(&run(&EXPORT, &back)), SECRET, "with a key of its own");
}
