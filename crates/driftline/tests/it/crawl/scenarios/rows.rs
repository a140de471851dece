//! Rows of somebody else's database as documents: added, changed and deleted, on SQLite
//! and on PostgreSQL, and a database that is away for a while.

use std::path::Path;

use ::outputs::testing::receiver::Receiver;
use store::Db;
use store::testing::{FreshDatabase, skipped};

use super::super::Home;
use super::{comes, ends_well, listed, output, told, work};

const IDS: &str = "ids=select id from products where price > 0";
const DOCUMENT: &str = "document=select changed as version, name as title, body as content, \
                        'text/html' as media_type, price from products where id = $1";

/// A shop's database.
struct Shop {
    db: Db,
    /// How the program is told where it is.
    database: String,
    _fresh: Option<FreshDatabase>,
}

impl Shop {
    fn on_sqlite(folder: &Path) -> Shop {
        let path = folder.join("shop.db");
        let db = Db::open_sqlite(&path).unwrap();
        let database = format!("database={}", path.display());
        Shop { db, database, _fresh: None }.filled()
    }

    fn on_postgres() -> Option<Shop> {
        let Some(fresh) = FreshDatabase::from_environment() else {
            skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
            return None;
        };
        let db = Db::open_postgres(&fresh.url).unwrap();
        let database = format!("database={}", fresh.url);
        Some(Shop { db, database, _fresh: Some(fresh) }.filled())
    }

    fn filled(self) -> Shop {
        self.run(
            "CREATE TABLE products
             (id BIGINT PRIMARY KEY, changed BIGINT, name TEXT, body TEXT, price BIGINT)",
        );
        for sql in [
            "INSERT INTO products VALUES (1, 1, 'Lamp', '<p>A <b>lamp</b>', 20)",
            "INSERT INTO products VALUES (2, 1, 'Chair', '<p>A chair', 30)",
            "INSERT INTO products VALUES (3, 1, 'Not for sale', '<p>A ghost', 0)",
        ] {
            self.run(sql);
        }
        self
    }

    fn run(&self, sql: &'static str) {
        self.db.write(move |tx| tx.execute(sql, &[])).unwrap();
    }
}

fn make(home: &Home, shop: &Shop) -> std::path::PathBuf {
    let out = home.folder.path().join("out");
    told(home, &["init"]);
    told(home, &["connection", "create", "shop", "--connector", "sql", &shop.database]);
    output(home, &out);
    let create = ["job", "create", "products", "--connection", "shop", "--pipeline", "copy"];
    let url = "url=https://shop.example/item/{id}";
    told(home, &[&create[..], &[IDS, DOCUMENT, url]].concat());
    out.join("https/shop.example/item")
}

#[track_caller]
fn run(home: &Home) -> i64 {
    told(home, &["job", "start", "products"]);
    ends_well(work(home, &["--node", "a"]));
    let line = listed(home).unwrap();
    assert_eq!((&line["word"], &line["failed"]), (&"done".into(), &0.into()), "{line}");
    home.verify();
    line["processed"].as_i64().unwrap()
}

const LIVE: &str = "SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL";
const UPDATED: &str = "SELECT COUNT(*) FROM documents WHERE changes > 0";

fn rows_are_added_changed_and_deleted(home: &Home, shop: &Shop) {
    let out = make(home, shop);
    let check = told(home, &["connection", "check", "shop"]);
    assert!(check.contains("can be used"), "{check}");
    assert_eq!(run(home), 2);
    assert_eq!((home.number(LIVE), home.number(UPDATED)), (2, 0));
    let titles = home.texts("SELECT title FROM documents");
    assert_eq!(titles.into_iter().collect::<Vec<_>>(), ["Chair", "Lamp"]);
    let uris = home.texts("SELECT docuri FROM ingeststatus");
    assert!(uris.contains("https://shop.example/item/1"), "{uris:?}");
    assert!(out.exists(), "outputs keep them at their addresses");

    assert_eq!(run(home), 2);
    assert_eq!(home.number(UPDATED), 0, "nothing has changed");
    shop.run("UPDATE products SET body = '<p>A better chair' WHERE id = 2");
    assert_eq!(run(home), 2);
    assert_eq!(home.number(UPDATED), 0, "its version says that it is the same");
    shop.run("UPDATE products SET changed = 2 WHERE id = 2");
    assert_eq!(run(home), 2);
    assert_eq!(home.number(UPDATED), 1);

    shop.run("INSERT INTO products VALUES (4, 1, 'Table', '<p>A table', 90)");
    shop.run("DELETE FROM products WHERE id = 1");
    assert_eq!(run(home), 2);
    let left = home.texts("SELECT docid FROM documents WHERE removed_ms IS NULL");
    assert_eq!(left.into_iter().collect::<Vec<_>>(), ["2", "4"]);
    // What the list does not name any more leaves, though its row is there.
    shop.run("UPDATE products SET price = 0 WHERE id = 4");
    assert_eq!(run(home), 1);
    assert_eq!(home.texts("SELECT docuri FROM ingeststatus").len(), 1);
    let read_only = "SELECT COUNT(*) FROM products";
    let count = |tx: &mut store::Tx<'_>| tx.query_one(read_only, &[], |row| row.get::<i64>(0));
    assert_eq!(shop.db.read(count).unwrap(), 3, "nothing was written there");
}

#[test]
fn rows_are_added_changed_and_deleted_in_a_sqlite_file() {
    let home = Home::directory();
    let shop = Shop::on_sqlite(home.folder.path());
    rows_are_added_changed_and_deleted(&home, &shop);
}

#[test]
fn rows_are_added_changed_and_deleted_in_postgres_with_a_database_of_our_own_there() {
    let (Some(home), Some(shop)) = (Home::database(), Shop::on_postgres()) else { return };
    rows_are_added_changed_and_deleted(&home, &shop);
}

#[test]
fn a_list_of_rows_that_comes_back_empty_is_trouble_and_removes_nothing() {
    let home = Home::directory();
    let shop = Shop::on_sqlite(home.folder.path());
    make(&home, &shop);
    assert_eq!(run(&home), 2);
    shop.run("DELETE FROM products");
    told(&home, &["job", "start", "products"]);
    let working = work(&home, &[]);
    let troubled = "SELECT COUNT(*) FROM job_states WHERE failcount IS NOT NULL";
    comes("the empty list is trouble", || home.number(troubled) == 1);
    drop(working);
    assert_eq!(home.number(LIVE), 2);
    home.verify();
}

#[test]
fn columns_without_a_meaning_of_their_own_are_fields_that_outputs_get() {
    let home = Home::directory();
    let shop = Shop::on_sqlite(home.folder.path());
    let far = Receiver::start();
    make(&home, &shop);
    let url = format!("url={}", far.server.url());
    told(
        &home,
        &["connection", "create", "far", "--kind", "output", "--connector", "webhook", &url],
    );
    told(&home, &["job", "edit", "products", "--pipeline", "far"]);
    run(&home);
    let price =
        |id: &str| far.shelf.kept().documents[&format!("https://shop.example/item/{id}")].clone();
    assert_eq!((&price("1")["price"], &price("1")["text"]), (&"20".into(), &"A lamp".into()));
    shop.run("UPDATE products SET price = 25, changed = 2 WHERE id = 1");
    run(&home);
    assert_eq!(price("1")["price"], "25", "a field alone makes a document another one");
}

/// One row is read, and the others wait; meanwhile the connection is told of another file.
#[test]
fn a_changed_configuration_is_taken_over_in_mid_run() {
    let home = Home::directory();
    let shop = Shop::on_sqlite(home.folder.path());
    make(&home, &shop);
    told(&home, &["connection", "edit", "shop", "--throttle", "=1/h"]);
    let elsewhere = home.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = Shop::on_sqlite(&elsewhere);
    other.run("UPDATE products SET name = 'Another'");
    told(&home, &["job", "start", "products"]);
    let work = work(&home, &["--node", "a"]);
    comes("one is read", || listed(&home).unwrap()["processed"] == 1);
    told(&home, &["connection", "edit", "shop", "--throttle", "=", &other.database]);
    ends_well(work);
    let another = "SELECT COUNT(*) FROM documents WHERE title = 'Another'";
    assert_eq!((home.number(LIVE), home.number(another)), (2, 1));
}

#[test]
fn a_connection_to_what_is_no_database_cannot_be_used() {
    let home = Home::directory();
    told(&home, &["init"]);
    let missing = format!("database={}", home.folder.path().join("missing.db").display());
    told(&home, &["connection", "create", "shop", "--connector", "sql", &missing]);
    let check = home.command(&["connection", "check", "shop"]).output().unwrap();
    let said = super::text(&check.stdout);
    assert!(check.status.code() == Some(1) && said.contains("missing.db"), "{said}");
    let secret = ["password=hush", "database=host=/nowhere user=me"];
    told(&home, &[&["connection", "create", "pg", "--connector", "sql"][..], &secret].concat());
    let shown = told(&home, &["connection", "show", "pg"]);
    assert!(shown.contains("***") && !shown.contains("hush"), "{shown}");
    let check = home.command(&["connection", "check", "pg"]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
}
