//! Databases that others made, read: the same answers from a file and from a server.

use super::*;
use crate::dialect::Dialect;
use crate::tables::settings;
use crate::testing::{FreshDatabase, skipped};
use crate::{Db, ours};
use std::path::Path;

const TABLE: &str =
    "CREATE TABLE items (id BIGINT, name TEXT, price DOUBLE PRECISION, picture BLOB)";
const IDS: &str = "SELECT id FROM items ORDER BY id -- all of them\n;\n";
const DOCUMENT: &str = "SELECT id AS version, name AS title, price, picture FROM items\n\
                        WHERE id = $1 -- the one\n";

/// Runs a test on a SQLite file and on PostgreSQL, with two rows in a table.
fn both(test: impl Fn(&Db, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.db");
    let db = Db::open_sqlite(&path).unwrap();
    fill(&db, TABLE);
    test(&db, path.to_str().unwrap());
    let Some(fresh) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let db = Db::open_postgres(&fresh.url).unwrap();
    fill(&db, &TABLE.replace("BLOB", "BYTEA"));
    test(&db, &fresh.url);
}

fn fill(db: &Db, table: &str) {
    let table = table.to_owned();
    db.write(move |tx| {
        tx.execute(&table, &[])?;
        let insert = "INSERT INTO items (id, name, price, picture) VALUES ($1, $2, $3, $4)";
        let picture: &[u8] = &[0, 255];
        tx.execute(insert, &[7_i64.into(), "Seven".into(), 1.5.into(), picture.into()])?;
        let none = crate::Value::Null;
        tx.execute(insert, &[8_i64.into(), "Eight".into(), none, none])
    })
    .unwrap();
}

fn foreign(database: &str) -> Foreign {
    Foreign::new(Address::parse(database, None).unwrap())
}

fn text(name: &str, value: &str) -> (String, ForeignValue) {
    (name.to_owned(), ForeignValue::Text(value.to_owned()))
}

#[test]
fn ids_come_one_after_the_other_and_a_row_with_the_names_of_its_columns() {
    both(|_, database| {
        let theirs = foreign(database);
        theirs.check().unwrap();
        let mut ids = Vec::new();
        theirs.ids(IDS, &mut |id| ids.push(id)).unwrap();
        assert_eq!(ids, ["7", "8"], "{database}");
        let row = theirs.row(DOCUMENT, "7").unwrap().unwrap();
        let picture = ("picture".to_owned(), ForeignValue::Bytes(vec![0, 255]));
        assert_eq!(
            row,
            [text("version", "7"), text("title", "Seven"), text("price", "1.5"), picture]
        );
        let row = theirs.row(DOCUMENT, "8").unwrap().unwrap();
        assert_eq!(
            row,
            [text("version", "8"), text("title", "Eight")],
            "what is null is not there"
        );
        assert_eq!(theirs.row(DOCUMENT, "9").unwrap(), None);
    });
}

#[test]
fn more_ids_than_are_held_at_once_all_come() {
    both(|_, database| {
        let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
                    SELECT i FROM n";
        let mut count = 0;
        foreign(database).ids(many, &mut |_| count += 1).unwrap();
        assert_eq!(count, 2_500);
        // What cannot be an identifier is passed over.
        let odd = "SELECT CAST(NULL AS TEXT) UNION ALL SELECT '' UNION ALL SELECT name FROM items";
        let mut ids = Vec::new();
        foreign(database).ids(odd, &mut |id| ids.push(id)).unwrap();
        assert_eq!(ids.len(), 2, "{ids:?}");
    });
}

#[test]
fn nothing_is_written_whatever_a_query_says() {
    both(|db, database| {
        let theirs = foreign(database);
        for sql in [
            "DELETE FROM items",
            "DELETE FROM items RETURNING id",
            "INSERT INTO items (id) VALUES (9) RETURNING id",
            "SELECT id FROM items; DELETE FROM items",
            "DROP TABLE items",
            "ATTACH '/tmp/other.db' AS other",
        ] {
            let refused = theirs.ids(sql, &mut |_| ()).unwrap_err();
            assert!(!refused.passes(), "{sql}: {refused}");
        }
        let count = |tx: &mut crate::Tx<'_>| {
            tx.query_one("SELECT COUNT(*) FROM items", &[], |row| row.get::<i64>(0))
        };
        assert_eq!(db.read(count).unwrap(), 2);
    });
}

#[test]
fn a_wrong_query_stays_wrong_and_a_database_that_is_away_may_come_back() {
    both(|_, database| {
        let theirs = foreign(database);
        for (sql, takes_id) in [
            ("SELECT nothing FROM nowhere", false),
            ("SELECT id FROM items WHERE id = $1", false),
            ("SELECT id FROM items", true),
            ("SELECT id FROM items WHERE id = $1 OR id = $2", true),
            ("", false),
        ] {
            let error = theirs.check_query(sql, takes_id).unwrap_err();
            assert!(!error.passes(), "{sql}: {error}");
        }
        theirs.check_query(DOCUMENT, true).unwrap();
        let two = "SELECT id FROM items WHERE id > $1 - 1000";
        let error = theirs.row(two, "1").unwrap_err().to_string();
        assert!(error.contains("more than one row"), "{error}");
        theirs.row(DOCUMENT, "7").unwrap().unwrap();
    });
    for away in ["/nowhere/theirs.db", "host=/nowhere user=nobody dbname=none"] {
        let error = foreign(away).check().unwrap_err();
        assert!(error.passes(), "{away}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "no database at all, but long enough to be looked at ".repeat(20))
        .unwrap();
    let error = foreign(path.to_str().unwrap()).check().unwrap_err();
    assert!(!error.passes() && error.to_string().contains("notes.txt"), "{error}");
}

#[test]
fn a_value_that_is_too_long_is_an_error_of_its_row() {
    both(|db, database| {
        db.write(|tx| {
            let long = "x".repeat(VALUE_BYTES_MAX - 2);
            tx.execute("UPDATE items SET name = $1", &[(&long).into()])
        })
        .unwrap();
        let theirs = foreign(database);
        let twice = "SELECT name || 'abcdef' AS title FROM items WHERE id = $1";
        let error = theirs.row(twice, "7").unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        let once = "SELECT name AS title FROM items WHERE id = $1";
        assert_eq!(theirs.row(once, "7").unwrap().unwrap().len(), 1);
    });
}

#[test]
fn a_database_is_a_path_or_leads_to_a_server_and_shows_no_password() {
    let refused = |database: &str, password: Option<&str>| match Address::parse(database, password)
    {
        Ok(_) => panic!("{database} was taken"),
        Err(error) => error.to_string(),
    };
    assert!(refused("theirs.db", None).contains("theirs.db"));
    assert!(refused("postgres://me:hush@db.example/shop", None).contains("password=…"));
    assert!(refused("host=db.example password=hush", None).contains("password=…"));
    assert!(!refused("postgres://me:hush@[::/shop", None).contains("hush"));
    assert!(refused("user=me", None).contains("names no host"));
    assert!(refused("/theirs.db", Some("hush")).contains("no password"));
    for (database, password) in
        [("/theirs.db", None), ("/theirs.db", Some("")), ("postgres://me@db.example/a", Some("p"))]
    {
        assert!(Address::parse(database, password).is_ok(), "{database}");
    }
}

/// Names a thousand ids, and never comes to an end.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (
         SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n)
     SELECT i FROM n WHERE i <= 1000";

#[test]
fn a_query_without_an_end_is_over_when_it_is_interrupted() {
    both(|_, database| {
        let theirs = Foreign { statement_max: Duration::from_secs(36_000), ..foreign(database) };
        let (begun, is_begun) = std::sync::mpsc::channel();
        let error = std::thread::scope(|scope| {
            let asked = scope.spawn(|| theirs.ids(ENDLESS, &mut |id| drop(begun.send(id))));
            assert_eq!(is_begun.iter().take(1_000).count(), 1_000, "{database}");
            theirs.interrupt();
            asked.join().unwrap().unwrap_err()
        });
        assert!(error.passes() && error.to_string().contains("interrupted"), "{error}");
        let later = theirs.row(DOCUMENT, "7").unwrap_err();
        assert!(later.passes() && later.to_string().contains("interrupted"), "{later}");
        assert!(foreign(database).row(DOCUMENT, "7").unwrap().is_some(), "others go on");
    });
}

#[test]
fn the_programs_own_database_is_refused() {
    both(|db, database| {
        foreign(database).check().unwrap();
        match db.dialect() {
            Dialect::Sqlite => ours::claim(Path::new(database)),
            Dialect::Postgres => {
                crate::migrate::migrate(db, 0).unwrap();
                db.write(|tx| settings::freeze(tx, 4)).unwrap();
                ours::claim_installation(db.read(settings::installation).unwrap());
            }
        }
        let refused = foreign(database).check().unwrap_err().to_string();
        assert!(refused.contains(ours::REFUSED), "{refused}");
    });
}
