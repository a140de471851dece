//! The verbs of the link index, as a person and as a script meets them: on a directory that
//! nobody holds, and on one that somebody holds.

use std::process::Output;
use std::sync::Arc;

use outputs::links::{ChangeBatch, LinkIndex, PageChange, PageContent, What, keys};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use serde_json::{Value, json};
use store::Db;
use store::datadir::DataDir;
use store::socket::{self, SocketRequest};
use store::sorted::{EmbeddedMap, InRows, MapLocation as Files, SortedMap};
use store::testing::{FreshDatabase, skipped};

use super::{Place, assert_trouble, bare, said, text};

const TARGET: &str = "https://b.example/";
/// More than an answer has at most, so that an export needs several of them.
const SOURCES: u64 = 2_100;

/// A directory whose index has a page that many link to.
fn linked() -> Place {
    let place = Place::empty();
    fill_files(&place.hold());
    place
}

fn fill_files(held: &DataDir) {
    let files = Files { path: held.layout().links(), families: keys::FAMILIES };
    fill(Arc::new(EmbeddedMap::open(&files).unwrap()));
}

fn fill(map: Arc<dyn SortedMap>) {
    let index = LinkIndex::new(map, 4);
    let changes = (0..SOURCES).map(|number| page(number, true)).collect();
    index.apply(ChangeBatch { changes, marks: Vec::new() }, &[]).unwrap();
    index.apply(ChangeBatch { changes: vec![page(7, false)], marks: Vec::new() }, &[]).unwrap();
}

fn page(number: u64, has_link: bool) -> PageChange {
    let anchor = if number == 8 { "=cmd(), \"8\"".to_owned() } else { format!("link {number}") };
    let rel = if number == 9 { Rel::NOFOLLOW } else { Rel::default() };
    let uri = "example.b>>s>/".to_owned();
    let links = vec![OutLink { uri, anchor, kind: LinkKind::A, rel }];
    let links = if has_link { links } else { Vec::new() };
    let content =
        PageContent { status: 200, title: "\u{1b}T".into(), server: String::new(), links };
    let date_ms = if has_link { 1_769_860_800_000 } else { 1_769_947_200_000 };
    let uri = format!("example.a>>s>/{number:04}");
    PageChange { uri, date_ms, job: 0, in_order: false, what: What::Page(Box::new(content)) }
}

fn parsed(text: &str) -> Value {
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    serde_json::from_str(text).unwrap()
}

/// What a run printed that ended with "no".
#[track_caller]
fn denied(output: &Output) -> (String, String) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_person_reads_who_links_to_what() {
    let place = linked();
    let links = place.succeeds(&["links", TARGET]);
    assert!(links.starts_with("https://b.example/\n    2099 in-links, not crawled\n"), "{links}");
    let page = place.succeeds(&["page", "a.example/0003"]);
    assert!(page.contains("    title            \\u{1b}T\n"), "{page}");
    assert!(page.contains("    jobs             (loaded)\n"), "{page}");
    let top = place.succeeds(&["top", "--limit", "2", "--by", "score"]);
    let words = |at: usize| top.lines().nth(at).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(1), ["2099", "2099", "no", "https://b.example/"], "{top}");
    assert_eq!(words(2), ["0", "1", "yes", "https://a.example/0000"], "{top}");
    let domains = place.succeeds(&["domains"]);
    assert_eq!(domains, "pages  domain\n 2100  a.example\n    1  b.example\n");
    let lost = place.succeeds(&["links", TARGET, "--lost", "--since", "2026-02-01"]);
    assert!(
        lost.contains("page changed  a     no        link 7  https://a.example/0007"),
        "{lost}"
    );
}

#[test]
fn the_commands_that_are_printed_go_on_and_back() {
    let place = linked();
    let follow = |said_before: &str, way: &str| {
        let line = said_before.lines().find(|line| line.starts_with(way)).unwrap();
        let (_, command) = line.split_once("driftline ").unwrap();
        said(&bare(&command.split_whitespace().collect::<Vec<_>>()))
    };
    for args in [
        &["links", TARGET, "--in", "--limit", "3", "--nofollow", "no"][..],
        &["top", "--domain", "a.example", "--by", "score"],
    ] {
        let first = place.succeeds(args);
        let second = follow(&first, "next page: ");
        let entries = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains("//a.example")).map(str::to_owned).collect()
        };
        assert!(entries(&second).iter().all(|line| !first.contains(line)), "{second}");
        assert_eq!(entries(&second).len(), entries(&first).len());
        let back = follow(&second, "previous page: ");
        assert_eq!(entries(&back), entries(&first));
    }
}

#[test]
fn an_export_has_every_entry_and_no_formula() {
    let place = linked();
    let csv = place.succeeds(&["links", TARGET, "--in", "--csv"]);
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len() as u64, SOURCES, "a head, and all but the one that was lost");
    assert_eq!(lines[0], "url,anchor,kind,nofollow,first_seen,last_seen");
    let times = "2026-01-31T12:00:00.000Z,2026-01-31T12:00:00.000Z";
    let eighth = format!("https://a.example/0008,\"'=cmd(), \"\"8\"\"\",a,no,{times}");
    assert!(lines.contains(&&*eighth), "{eighth}");
    assert!(lines.contains(&&*format!("https://a.example/0009,link 9,a,yes,{times}")));
    let lost = place.succeeds(&["links", TARGET, "--lost", "--csv"]);
    assert!(lost.starts_with("url,anchor,kind,nofollow,first_seen,last_seen,lost,reason\r\n"));
    assert!(lost.ends_with(",2026-02-01T12:00:00.000Z,page changed\r\n"), "{lost}");
    let top = place.succeeds(&["top", "--csv", "--limit", "2050"]);
    assert_eq!(top.split_terminator("\r\n").count(), 2_051);
    assert!(top.starts_with("url,incount,score,crawled\r\nhttps://b.example/,2099,2099,no\r\n"));
    let domains = place.succeeds(&["domains", "--csv"]);
    assert_eq!(domains, "domain,pages\r\na.example,2100\r\nb.example,1\r\n");
}

#[test]
fn what_is_not_known_is_a_no_and_says_what_to_do() {
    let place = linked();
    for verb in ["links", "page"] {
        let (told, _) = denied(&place.run(&[verb, "https://nobody.example/"]));
        assert!(told.contains("nothing is known about https://nobody.example/"), "{told}");
        assert!(told.contains("driftline why https://nobody.example/ --data "), "{told}");
        let (json, _) = denied(&place.run(&[verb, "https://nobody.example/", "--json"]));
        assert_eq!(parsed(&json)["page"], Value::Null);
    }
    let (told, _) = denied(&place.run(&["top", "--domain", "nobody.example"]));
    assert!(told.contains("no page of nobody.example is known"), "{told}");
    // Who exports reads the answer elsewhere.
    for args in
        [&["links", "nobody.example", "--in", "--csv"][..], &["top", "--domain", "d", "--csv"]]
    {
        let (told, errors) = denied(&place.run(args));
        assert!(told.is_empty() && errors.contains("known"), "{told} {errors}");
    }
    assert_trouble(&place.run(&["links", "hello"]), &["hello", "https://example.com/page"]);
    assert_trouble(&place.run(&["links", TARGET, "--cursor", "nAA"]), &["--in, --out or --lost"]);
    assert_trouble(&place.run(&["top", "--cursor", "!"]), &["\"!\" is not a cursor"]);
    assert_trouble(&place.run(&["domains", "--csv", "--json"]), &["either --json or --csv"]);
    assert_trouble(&place.run(&["top", "--limit", "3000"]), &["1000", "--csv"]);
    assert_trouble(&place.run(&["top", "--by", "name"]), &["incount", "score"]);
}

#[test]
fn an_empty_index_says_so_and_a_missing_directory_is_named() {
    let place = Place::empty();
    for verb in ["top", "domains"] {
        assert_eq!(place.succeeds(&[verb]), "no page has been crawled yet\n");
    }
    let nowhere = Place::new();
    let asked =
        [&["links", TARGET][..], &["page", TARGET], &["top"], &["domains"], &["domains", "--csv"]];
    for args in asked {
        assert_trouble(&nowhere.run(args), &["no data directory", "--data"]);
    }
    assert_eq!(std::fs::read_dir(nowhere.folder.path()).unwrap().count(), 0, "nothing was made");
    place.execute("INSERT INTO schema_versions (version, name, applied_ms) VALUES (99, 'x', 0)");
    for args in asked {
        assert_trouble(&place.run(args), &["schema 99", "newer driftline"]);
    }
}

#[test]
fn the_process_that_holds_the_directory_answers_page_by_page() {
    let place = linked();
    let held = place.hold();
    let answering = |question: SocketRequest| match question.verb.as_str() {
        "domains" => {
            let is_first = question.args["cursor"].is_null();
            let (name, next) = if is_first { ("one", Some("n")) } else { ("t\u{1b}wo", None) };
            let items = json!([{"domain": name, "pages": 3}]);
            Ok(json!({"items": items, "next": next, "previous": null}))
        }
        verb => Err(format!("it is too busy for {verb}")),
    };
    let listening = socket::listen(held.layout(), Arc::new(answering)).unwrap();
    assert_eq!(place.succeeds(&["domains", "--csv"]), "domain,pages\r\none,3\r\nt\u{1b}wo,3\r\n");
    assert!(place.succeeds(&["domains"]).contains("    3  one\nnext page: driftline domains"));
    for args in [&["links", TARGET][..], &["page", TARGET], &["top"], &["top", "--csv"]] {
        assert_trouble(&place.run(args), &["it is too busy for"]);
    }
    drop(listening);
    drop(held);
    // Nobody holds it any more, so whoever asks does for a moment.
    assert_eq!(place.succeeds(&["domains"]).lines().count(), 3);
}

#[test]
fn a_database_is_asked_directly() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let place = Place::new();
    let at = ["--database", &database.url];
    let objects = place.path("objects");
    said(&bare(&[&["init", "--parts", "4", "--objects", text(&objects)], &at[..]].concat()));
    fill(Arc::new(InRows::new(&Db::open_postgres(&database.url).unwrap())));
    let answer = |args: &[&str]| said(&bare(&[args, &at].concat()));
    assert!(answer(&["links", TARGET]).contains("2099 in-links"));
    assert!(answer(&["page", "a.example/0003"]).contains("(loaded)"));
    assert!(answer(&["top", "--domain", "b.example"]).starts_with("b.example: 1 page\n"));
    assert_eq!(answer(&["domains", "--csv"]), "domain,pages\r\na.example,2100\r\nb.example,1\r\n");
    let exported = answer(&["links", TARGET, "--in", "--csv"]);
    assert_eq!(exported.split_terminator("\r\n").count() as u64, SOURCES);
}
