//! Mistakes at the command line, and what is there before anything is made: each is answered
//! with what is wrong and what to do.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::definitions::{made, parsed};
use super::{PROGRAM, Place, assert_trouble, bare, said, text};

#[test]
fn a_usage_error_is_json_for_who_asks_for_json() {
    for args in [
        &["status", "--json", "--nosuch"][..],
        &["nosuch", "--json"],
        &["crawl", "--json", "http://a.example/", "--delay", "soon"],
    ] {
        let output = bare(args);
        assert_trouble(&output, &[]);
        let error = parsed(&String::from_utf8_lossy(&output.stderr));
        assert!(error["error"].is_string(), "{error}");
    }
    assert!(said(&bare(&["crawl", "--help", "--json"])).contains("Usage"), "help is no error");
}

#[test]
fn a_number_or_a_span_that_is_none_is_answered_in_our_words() {
    let delay = bare(&["crawl", "http://a.example/", "--delay", "soon"]);
    assert_trouble(&delay, &["--delay", "give a number of seconds, such as 0.5"]);
    let pages = bare(&["crawl", "http://a.example/", "--max-pages", "many"]);
    assert_trouble(&pages, &["--max-pages", "give a whole number, such as 10"]);
    assert_trouble(&bare(&["documents", "--limit", "x"]), &["--limit", "give a whole number"]);
}

#[test]
fn a_path_is_not_crawled_as_a_host() {
    let place = Place::new();
    let refused = place.run(&["crawl", "/etc/passwd"]);
    assert_trouble(&refused, &["/etc/passwd", "https://example.com/", "files connector"]);
    assert_trouble(&place.run(&["crawl", "http:/example.com"]), &["http:/example.com"]);
    assert!(!place.data.exists());
}

#[test]
fn a_text_that_is_no_url_is_a_mistake_of_who_asks_why() {
    let place = made();
    assert_trouble(&place.run(&["why", "notaurl"]), &["notaurl", "https://example.com/page"]);
    let output = place.run(&["why", "notaurl", "--json"]);
    assert_trouble(&output, &["\"error\""]);
}

#[test]
fn a_directory_that_cannot_be_read_is_not_called_missing() {
    let place = Place::new();
    // Nobody can look through a link to itself, whatever rights they have.
    symlink(&place.data, &place.data).unwrap();
    let output = place.run(&["status"]);
    assert_trouble(&output, &["cannot be read", text(&place.data)]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("init"), "nothing is to be made");
}

#[test]
fn connectors_are_listed_before_there_is_a_directory() {
    let place = Place::new();
    assert!(place.succeeds(&["connector", "list"]).contains("  web  "));
    assert!(place.succeeds(&["connector", "show", "web"]).contains("scope.reach"));
    let listed = parsed(&place.succeeds(&["connector", "list", "--json"]));
    assert!(listed.as_array().unwrap().len() > 5, "{listed}");
    assert!(!place.data.exists(), "nothing is made");
}

#[test]
fn the_environment_names_the_directory() {
    let place = made();
    let run = |args: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(args).env("DRIFTLINE_DATA", &place.data).current_dir(place.folder.path());
        command.output().unwrap()
    };
    assert!(said(&run(&["status"])).starts_with(text(&place.data)));
    assert_trouble(&run(&["status", "--data", "other"]), &["other"]);
    // It is a default, so another place is no contradiction.
    let database = ["--database", "postgres://127.0.0.1:1/none"];
    assert_trouble(&run(&[&["status"], &database[..]].concat()), &["cannot be reached"]);
}

#[test]
fn a_damaged_database_says_what_to_do() {
    let place = Place::filled();
    let path = place.layout().database();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    assert_trouble(&place.run(&["status"]), &["corrupt", "driftline verify", "driftline restore"]);
}

#[test]
fn a_connection_has_the_same_defaults_however_it_is_made() {
    let place = made();
    place.run(&["crawl", "http://127.0.0.1:1/"]);
    place.succeeds(&["connection", "create", "web2", "--connector", "web"]);
    let file = place.path("more.toml");
    std::fs::write(&file, "[connections.repository.web3]\nconnector = \"web\"\n").unwrap();
    place.succeeds(&["import", text(&file)]);
    let form = |name: &str| {
        let shown = parsed(&place.succeeds(&["connection", "show", name, "--json"]));
        shown["definition"].clone()
    };
    assert_eq!(form("web")["max_connections"], 256);
    assert_eq!(form("web2"), form("web"));
    assert_eq!(form("web3"), form("web"));
}

#[test]
fn an_export_leaves_out_what_goes_without_saying() {
    let place = made();
    place.run(&["crawl", "http://127.0.0.1:1/", "--delay", "3", "--exclude", "x"]);
    let text_of = place.succeeds(&["export"]);
    for usual in ["agent", "priority", "concurrency", "policy", "max_connections", "contact"] {
        assert!(!text_of.contains(usual), "{usual}: {text_of}");
    }
    for told in ["delay_ms = 3000", "seeds", "exclude"] {
        assert!(text_of.contains(told), "{told}: {text_of}");
    }
    let file = place.path("all.toml");
    std::fs::write(&file, &text_of).unwrap();
    assert!(place.succeeds(&["import", text(&file)]).contains("nothing"), "it means the same");
    let other = made();
    other.succeeds(&["import", text(&file)]);
    assert_eq!(other.succeeds(&["export"]), text_of);
}
