//! Rows of a SQLite file, looked at. What is different on PostgreSQL is tested where the
//! database is opened, and by the whole program.

use super::*;
use store::Db;
use store::foreign::Address;

struct Shop {
    _folder: tempfile::TempDir,
    path: String,
    db: Db,
}

const DOCUMENT: &str = "SELECT version, title, content, media_type, author, url FROM items \
                        WHERE id = $1";

impl Shop {
    fn new() -> Shop {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        let db = Db::open_sqlite(&path).unwrap();
        let shop = Shop { path: path.to_str().unwrap().to_owned(), _folder: folder, db };
        shop.run(
            "CREATE TABLE items (id TEXT, version BIGINT, title TEXT, content TEXT,
             media_type TEXT, author TEXT, url TEXT)",
        );
        shop.run(
            "INSERT INTO items (id, version, title, content, author) \
                  VALUES ('a/1', 1, 'First', 'words', 'Ada')",
        );
        shop
    }

    fn run(&self, sql: &'static str) {
        self.db.write(move |tx| tx.execute(sql, &[])).unwrap();
    }

    fn rows(&self, document: &str, url: &str) -> SqlRepository {
        let [ids, document, url] = ["SELECT id FROM items", document, url].map(str::to_owned);
        let spec = SqlSpec { ids, document, url, ..SqlSpec::default() };
        SqlRepository::new(
            Foreign::new(Address::parse(&self.path, None).unwrap()),
            spec.check().unwrap(),
        )
    }
}

fn look(rows: &SqlRepository, docid: &str, version: Option<&str>) -> LookResult {
    rows.look(docid, KnownVersion { version, data: &Data::new() })
}

#[track_caller]
fn read(looked: LookResult) -> Read {
    match looked {
        LookResult::Read(read) => *read,
        LookResult::Trouble { detail, .. } => panic!("{detail}"),
        _ => panic!("it was not read"),
    }
}

#[test]
fn a_row_is_read_once_for_each_version_and_missing_when_it_is_gone() {
    let shop = Shop::new();
    let rows = shop.rows(DOCUMENT, "");
    let mut ids = Vec::new();
    rows.seed(None, 5, &mut |id| ids.push(id)).unwrap();
    assert_eq!(ids, ["a/1"]);
    let first = read(look(&rows, "a/1", None));
    assert_eq!((&*first.facts.title, &*first.facts.text), ("First", "words"));
    assert_eq!(first.fields, Data::from([("author".to_owned(), ["Ada".to_owned()].into())]));
    assert_eq!((&*first.facts.media_type, &first.body[..]), ("text/plain", &b"words"[..]));
    assert!(matches!(look(&rows, "a/1", Some(&first.version)), LookResult::Same));
    shop.run("UPDATE items SET title = 'Other'");
    assert!(
        matches!(look(&rows, "a/1", Some(&first.version)), LookResult::Same),
        "so says its version"
    );
    shop.run("UPDATE items SET version = 2");
    let second = read(look(&rows, "a/1", Some(&first.version)));
    assert_ne!(second.facts.content_hash, first.facts.content_hash, "the title counts");
    shop.run("DELETE FROM items");
    assert!(matches!(look(&rows, "a/1", None), LookResult::Missing));
}

#[test]
fn without_a_version_every_column_counts() {
    let shop = Shop::new();
    let rows = shop.rows("SELECT title, author FROM items WHERE id = $1", "");
    let first = read(look(&rows, "a/1", None));
    assert!(matches!(look(&rows, "a/1", Some(&first.version)), LookResult::Same));
    shop.run("UPDATE items SET author = 'Eve'");
    let second = read(look(&rows, "a/1", Some(&first.version)));
    assert!(second.facts.text.is_empty() && second.fields["author"].contains("Eve"));
    // A hash is never taken for a version that somebody wrote.
    assert!(first.version.starts_with("hash "), "{}", first.version);
}

#[test]
fn a_field_that_is_too_long_is_cut_between_characters() {
    let shop = Shop::new();
    let document = "SELECT 'x' || replace(hex(zeroblob(40000)), '00', 'é') AS long, x'00' AS raw, \
                    NULL AS none FROM items WHERE id = $1";
    let fields = read(look(&shop.rows(document, ""), "a/1", None)).fields;
    let lengths: Vec<usize> = fields["long"].iter().map(String::len).collect();
    assert_eq!(lengths, [VALUE_BYTES_MAX - 1]);
    assert_eq!(fields.len(), 1, "bytes and nothing say nothing: {:?}", fields.keys());
}

#[test]
fn html_is_parsed_at_the_address_of_the_row() {
    let shop = Shop::new();
    shop.run(
        "UPDATE items SET title = NULL, media_type = 'text/html', url = 'https://shop.example/a/1',
         content = '<title>Näme</title><a href=b>b</a>'",
    );
    let rows = shop.rows(DOCUMENT, "https://out.example/{id}?x");
    let page = read(look(&rows, "a/1", None)).facts;
    assert_eq!((&*page.title, &*page.links[0].url), ("Näme", "https://shop.example/a/b"));
    assert_eq!(page.canonical.as_deref(), Some("https://shop.example/a/1"));
    assert_eq!(rows.uri("a/1"), "https://out.example/a%2F1?x");
    assert_eq!(shop.rows(DOCUMENT, "").uri("ä"), "sql:%C3%A4");
}

#[test]
fn a_wrong_query_stays_wrong_and_a_file_that_is_away_may_come_back() {
    let shop = Shop::new();
    let wrong = shop.rows("SELECT nothing FROM items WHERE id = $1", "");
    let LookResult::Trouble { code, passes, .. } = look(&wrong, "a/1", None) else { panic!() };
    assert_eq!((code, passes), ("query", false));
    let refused = wrong.seed(None, 5, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.starts_with("document: ") && refused.contains("nothing"), "{refused}");
    let rows = shop.rows(DOCUMENT, "");
    std::fs::rename(&shop.path, format!("{}.away", shop.path)).unwrap();
    let LookResult::Trouble { code, passes, .. } = look(&rows, "a/1", None) else { panic!() };
    assert_eq!((code, passes), ("database", true));
    assert!(rows.seed(None, 5, &mut |_| ()).unwrap_err().passes());
    std::fs::rename(format!("{}.away", shop.path), &shop.path).unwrap();
    read(look(&rows, "a/1", None));
}
