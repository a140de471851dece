//! There and back again: every table, every kind of value, every way to be refused.

use super::rows::{RowValue, page};
use super::schema::{Column, tables};
use super::*;
use crate::clock;
use crate::datadir::DataDir;
use crate::dialect::ValueKind;
use crate::objects::Location;
use crate::sealing::Keys;
use crate::tables::registrations;
use crate::testing::{FreshDatabase, WEB, both_databases, commit_sample, skipped};
use crate::value::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Rows put into every table: more than a first page.
const FILL: i64 = 3 * rows::ROWS_FIRST as i64;
/// Parts of the rows that are put into every table; `verify` knows nothing of them.
const FILL_PART: i64 = 100;
/// A copy of what has no link index.
fn copy(source: &Home, target: &Home, now_ms: i64) -> Result<CopySummary> {
    super::copy(source, target, now_ms, &mut || Ok(()))
}

const NOW_MS: i64 = 1_000_000;

type Dump = BTreeMap<&'static str, Vec<Vec<RowValue>>>;

/// A data directory in `folder`, held, as the program opens one.
fn filled(folder: &Path) -> (DataDir, Home) {
    let data = DataDir::open(&folder.join("data"), 4, 0).unwrap();
    let home = embedded(&data);
    home.db.write(|tx| registrations::register(tx, &WEB, 0)).unwrap();
    for (part, round) in [(0, 0), (0, 1), (3, 0)] {
        commit_sample(&home.db, &home.objects, Part(part), round).unwrap();
    }
    (data, home)
}

fn embedded(data: &DataDir) -> Home {
    home(data.db().clone(), &data.layout().objects())
}

fn home(db: Db, objects: &Path) -> Home {
    let location = Location::Directory(objects.to_owned());
    let objects_at = objects.display().to_string();
    Home { db, objects: Objects::open(&location).unwrap(), objects_at }
}

/// Everything in a database; `schema_versions` is each database's own.
fn dump(db: &Db) -> Dump {
    let read = |table: Table| {
        let name = table.name;
        (name, db.read(move |tx| page(tx, &table, None, 100_000)).unwrap())
    };
    tables(&db.read(owned::present).unwrap()).into_iter().map(read).collect()
}

/// What a dump is after a copy.
fn at_rest(mut dump: Dump) -> Dump {
    for row in dump.get_mut("leases").unwrap() {
        row[5] = RowValue::Int(0);
    }
    for row in dump.get_mut("nodes").unwrap() {
        if row[5] != RowValue::Text("stopped".into()) {
            row[5] = RowValue::Text("stopped".into());
            row[9] = RowValue::Int(NOW_MS);
        }
    }
    dump
}

/// Whether a table is copied row by row: the link index is carried otherwise, and the
/// search index made anew.
fn is_carried(name: &str) -> bool {
    name != link_rows::TABLE && !shards::TABLES.contains(&name)
}

/// Puts rows into every table, with every kind of value that its columns take. The link
/// index is carried otherwise.
fn fill(db: &Db) {
    for table in tables(owned::ALL).into_iter().filter(|it| is_carried(it.name)) {
        let nullable = nullable(db, table.name);
        let row = |n: i64| -> Vec<RowValue> {
            let columns = (n..).zip(&table.columns);
            columns
                .map(|(shift, column)| match nullable.iter().any(|name| name == column.name) {
                    true if shift % 3 == 0 => RowValue::Null,
                    _ => cell(&table, column, n),
                })
                .collect()
        };
        let rows: Vec<Vec<RowValue>> = (0..FILL).map(row).collect();
        let before = format!("INSERT INTO {} ({})", table.name, table.column_list());
        let name = table.name;
        db.write(move |tx| {
            let values: Vec<Vec<Value<'_>>> =
                rows.iter().map(|row| row.iter().map(RowValue::value).collect()).collect();
            tx.insert_rows(&before, &values, "")
        })
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    db.write(crate::testing::sum_rows).unwrap();
}

fn nullable(db: &Db, table: &'static str) -> Vec<String> {
    db.read(move |tx| {
        tx.query(
            "SELECT name FROM pragma_table_info($1) WHERE \"notnull\" = 0",
            &[table.into()],
            |row| row.get(0),
        )
    })
    .unwrap()
}

/// The value of a column in the `n`-th row. No two rows have the same.
fn cell(table: &Table, column: &Column, n: i64) -> RowValue {
    let choices = choices(table.name, column.name);
    let choice = |count: usize| usize::try_from(n).unwrap() % count;
    match (table.name, column.name, column.kind) {
        // Several rows to a part, so that a page ends inside one.
        (_, "part", _) => RowValue::Int(FILL_PART + n / 5),
        // A published object would have to be there.
        ("objects", "state", _) => RowValue::Text(["staged", "condemned"][choice(2)].into()),
        ("job_definitions", "priority", _) => RowValue::Int(n % 10 + 1),
        (_, _, ValueKind::Text) if !choices.is_empty() => {
            RowValue::Text(choices[choice(choices.len())].clone())
        }
        (_, _, ValueKind::Int) if !choices.is_empty() => RowValue::Int(n % 2),
        (_, _, ValueKind::Int) => RowValue::Int([n, -n - 1, i64::MAX - n, i64::MIN + n][choice(4)]),
        (_, _, ValueKind::Real) => {
            RowValue::Real([0.1 + n as f64, -1.5e300, f64::MIN_POSITIVE, f64::INFINITY][choice(4)])
        }
        (_, _, ValueKind::Text) => {
            RowValue::Text(format!("'{}\" é\n\u{1d11e} {n}", ["", "Z", "a"][choice(3)]))
        }
        (_, _, ValueKind::Blob) => {
            RowValue::Blob([&[0, 255][..choice(3)], &n.to_be_bytes()].concat())
        }
    }
}

/// What the schema lets a column hold, where it says so.
fn choices(table: &str, column: &str) -> Vec<String> {
    let text: String = migrate::texts().chain(owned::ALL.iter().map(|owned| owned.text)).collect();
    let start = [format!("CREATE TABLE {table} ("), format!("IF NOT EXISTS {table} (")]
        .iter()
        .find_map(|start| text.find(start))
        .unwrap();
    let body = &text[start..start + text[start..].find("\n);").unwrap()];
    let Some(at) = body.find(&format!("({column} IN (")) else { return Vec::new() };
    let list = body[at..].split("IN (").nth(1).unwrap().split(')').next().unwrap();
    list.split(',').map(|word| word.trim().trim_matches('\'').to_owned()).collect()
}

#[test]
fn the_tables_that_are_copied_are_those_that_the_databases_have() {
    both_databases(|db| {
        let sql = match db.dialect() {
            Dialect::Sqlite => {
                "SELECT t.name, c.name, c.pk FROM sqlite_master t, pragma_table_info(t.name) c
                 WHERE t.type = 'table' ORDER BY t.name, c.cid"
            }
            Dialect::Postgres => {
                "SELECT c.table_name::text, c.column_name::text,
                        COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0)
                 FROM information_schema.columns c
                 JOIN pg_class t ON t.relname = c.table_name AND t.relkind = 'r'
                 JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = c.column_name
                 JOIN pg_index i ON i.indrelid = t.oid AND i.indisprimary
                 WHERE c.table_schema = 'public' ORDER BY c.table_name, c.ordinal_position"
            }
        };
        let found: Vec<(String, String, i64)> = db.read(move |tx| {
            tx.query(sql, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        })?;
        let mut there: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
        for (table, column, key) in found {
            there.entry(table).or_default().push((column, key));
        }
        assert!(there.remove("schema_versions").is_some());
        let copied: BTreeMap<String, Vec<(String, i64)>> = tables(owned::ALL)
            .iter()
            .map(|table| {
                let columns = table.columns.iter().enumerate().map(|(at, column)| {
                    let key = table.key.iter().position(|place| *place == at);
                    (column.name.to_owned(), key.map_or(0, |key| key as i64 + 1))
                });
                (table.name.to_owned(), columns.collect())
            })
            .collect();
        assert_eq!(copied, there);
        Ok(())
    });
}

#[test]
fn there_and_back_again_every_row_is_the_same() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let folder = tempfile::tempdir().unwrap();
    let (_held, source) = filled(folder.path());
    fill(&source.db);
    let all = dump(&source.db);
    let filled = all.iter().filter(|(name, _)| is_carried(name));
    assert!(filled.into_iter().all(|(_, rows)| rows.len() as i64 >= FILL));
    // Objects of the search index stay where they are.
    source.db.write(shards::forget_all).unwrap();
    let before = at_rest(dump(&source.db));

    let db = Db::open_postgres(&database.url).unwrap();
    let middle = home(db, &folder.path().join("objects"));
    let there = copy(&source, &middle, NOW_MS).unwrap();
    let rows: usize = before.values().map(Vec::len).sum();
    assert_eq!((there.rows, there.objects), (rows as u64, 3));
    assert_eq!(dump(&middle.db), before);

    let data = DataDir::open_for_copy(&folder.path().join("back")).unwrap();
    let back = embedded(&data);
    assert_eq!(copy(&middle, &back, NOW_MS + 1).unwrap(), there);
    // But for what a directory seals.
    let (open, keys) = (back.db.clone().with_keys(Keys::default()), back.db.keys().clone());
    let sealed = before["connections"].len() + before["sessions"].len();
    assert_eq!(open.write(move |tx| connections::reseal(tx, &keys)).unwrap(), sealed as u64);
    assert_eq!(dump(&back.db), before);
    for home in [&source, &middle, &back] {
        let mut report = crate::verify::verify(&home.db, &home.objects, true).unwrap();
        // Their rows are made up: no chain, and nothing that counts would agree on.
        let made_up = ["the audit log", "the count of"];
        report.findings.retain(|it| !made_up.iter().any(|name| it.what.starts_with(name)));
        assert_eq!((report.findings.as_slice(), report.objects), ([].as_slice(), 3));
    }
    drop((back, data));
    DataDir::open(&folder.path().join("back"), 9, 0).unwrap();
}

/// Runs `test` with a filled directory and an empty home of each kind.
fn into_both(test: impl Fn(&Home, &Home, &Path)) {
    both_databases(|db| {
        let folder = tempfile::tempdir().unwrap();
        let (_held, source) = filled(folder.path());
        let target = home(db.clone(), &folder.path().join("objects"));
        db.write(|tx| registrations::deregister(tx, &WEB, 0))?;
        test(&source, &target, folder.path());
        Ok(())
    });
}

#[test]
fn a_copy_that_was_cut_off_is_refused_by_all_and_starts_over() {
    into_both(|source, target, folder| {
        let name = "chunks/3/4000010.warc.zst";
        let object = folder.join("data/objects").join(name);
        let bytes = std::fs::read(&object).unwrap();
        std::fs::write(&object, "damaged").unwrap();
        let cut = copy(source, target, NOW_MS).unwrap_err().to_string();
        assert!(cut.contains(name) && cut.contains("driftline verify"), "{cut}");
        assert!(!dump(&target.db)["queue"].is_empty(), "rows are there already");

        let other = home(source.db.clone(), &folder.join("elsewhere"));
        for refused in [
            migrate::check(&target.db),
            migrate::migrate(&target.db, 0).map(|_| ()),
            copy(target, &other, NOW_MS).map(|_| ()),
        ] {
            let message = refused.expect_err("it is incomplete").to_string();
            assert!(message.contains("run the same copy again"), "{message}");
        }

        std::fs::write(&object, bytes).unwrap();
        copy(source, target, NOW_MS + 1).unwrap();
        migrate::check(&target.db).unwrap();
        assert_eq!(dump(&target.db), at_rest(dump(&source.db)), "nothing is there twice");
    });
}

#[test]
fn a_target_that_is_not_empty_is_refused_and_left_alone() {
    into_both(|source, target, _| {
        target
            .db
            .write(|tx| {
                crate::tables::counters::add(tx, Part(0), crate::ids::JobId(0), &[("x", 1)])
            })
            .unwrap();
        let before = dump(&target.db);
        let refused = copy(source, target, NOW_MS).unwrap_err().to_string();
        assert!(refused.contains("table counters has rows"), "{refused}");
        assert_eq!(dump(&target.db), before);
    });
}

#[test]
fn objects_of_somebody_else_are_refused_also_when_a_copy_starts_over() {
    into_both(|source, target, folder| {
        let foreign = ObjectPath::parse("packs/2/77.facts").unwrap();
        target.objects.put(&foreign, vec![1]).unwrap();
        let refused = copy(source, target, NOW_MS).unwrap_err().to_string();
        assert!(refused.contains(foreign.as_str()) && refused.contains("not empty"), "{refused}");
        let elsewhere = folder.join("elsewhere");
        target
            .db
            .write(move |tx| settings::set_copying(tx, &format!("1/1 {}", elsewhere.display())))
            .unwrap();
        let refused = copy(source, target, NOW_MS).unwrap_err().to_string();
        assert!(refused.contains(foreign.as_str()), "{refused}");
    });
}

#[test]
fn the_later_of_two_copies_goes_on_and_the_earlier_stops() {
    into_both(|source, target, _| {
        let earlier = begin(target, owned::ALL, 1).unwrap();
        copy(source, target, NOW_MS).unwrap();
        let writer = rows::Writer { db: target.db.clone(), mark: earlier, now_ms: 1 };
        let stopped = copy_rows(&source.db, tables(owned::ALL), writer).unwrap_err().to_string();
        assert!(stopped.contains("another copy"), "{stopped}");
        assert_eq!(dump(&target.db), at_rest(dump(&source.db)));
    });
}

#[test]
fn a_cluster_that_works_is_not_copied() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let folder = tempfile::tempdir().unwrap();
    let source = home(Db::open_postgres(&database.url).unwrap(), &folder.path().join("objects"));
    commit_sample(&source.db, &source.objects, Part(0), 0).unwrap();
    let data = DataDir::open_for_copy(&folder.path().join("data")).unwrap();
    // The sample's lease ends at 1,000.
    let refused = copy(&source, &embedded(&data), 999).unwrap_err().to_string();
    assert!(refused.contains("node sample holds part 0 for crawl"), "{refused}");
    copy(&source, &embedded(&data), clock::now_ms()).unwrap();
}

#[test]
fn a_value_that_the_other_database_cannot_hold_is_named_and_stops_the_copy() {
    into_both(|source, target, _| {
        for (bad, words) in [("x'6100'", "NUL byte"), ("x'61ff'", "utf-8")] {
            let sql = format!("UPDATE bins SET name = CAST({bad} AS TEXT) WHERE part = 3");
            source.db.write(move |tx| tx.execute(&sql, &[])).unwrap();
            let refused = copy(source, target, NOW_MS).unwrap_err().to_string();
            assert!(refused.contains("table bins") && refused.contains(words), "{refused}");
        }
        source.db.write(|tx| tx.execute("UPDATE bins SET name = 'a'", &[])).unwrap();
        copy(source, target, NOW_MS).unwrap();
        assert_eq!(dump(&target.db), at_rest(dump(&source.db)));
    });
}

#[test]
fn a_number_that_is_none_is_refused_and_not_made_nothing() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let folder = tempfile::tempdir().unwrap();
    let source = home(Db::open_postgres(&database.url).unwrap(), &folder.path().join("objects"));
    let sql = "INSERT INTO throttles (ownerid, matchstring, throttle) VALUES (1, 'a', 'NaN')";
    source.db.write(move |tx| tx.execute(sql, &[])).unwrap();
    let data = DataDir::open_for_copy(&folder.path().join("data")).unwrap();
    let refused = copy(&source, &embedded(&data), NOW_MS).unwrap_err().to_string();
    assert!(refused.contains("table throttles") && refused.contains("not a number"), "{refused}");
}
