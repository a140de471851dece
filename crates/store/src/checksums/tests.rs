//! Every covered column of every covered table: what is changed in it is named.

use super::walk::{KeyValue, page, schema_of};
use super::*;
use crate::copy::schema;
use crate::db::Db;
use crate::dialect::ValueKind;
use crate::ids::{CommitNumber, ConnectionId, DocumentId, JobId, ObjectId, Part, Run};
use crate::objects::{Location, Objects};
use crate::tables::chunk_storage::{PackedChunk, set_packed};
use crate::tables::connections::{self, Connection};
use crate::tables::documents::{self, Document, Trust};
use crate::tables::ingests::{self, Ingest, Move};
use crate::tables::jobs::{self, Job};
use crate::tables::notifications::{self, Notification};
use crate::tables::pipelines::{self, PipelineStage, StageKind};
use crate::tables::schedules::{self, Schedule, TimeField};
use crate::tables::throttles::{self, Throttle};
use crate::tables::{chunks, cursors, hopfilters, job_states};
use crate::testing::{both_databases, commit_sample, damages_rows};
use crate::verify::{Finding, verify};
use crate::{migrate, owned};
use page::ids::DocHash;
use std::collections::BTreeSet;
use std::path::Path;

const JOB: JobId = JobId(1);
const TITLE: &str = "a title of its own";

fn document() -> Document {
    let url = "https://example.com/";
    let mut it = Document::new(DocumentId(1), DocHash::of(url), url.into(), 5);
    it.title = Some(TITLE.into());
    it.etag = Some("\"a tag of its own\"".into());
    it.content_hash = Some(b"0123456789abcdef".to_vec());
    it.redirect = Some((Part(1), DocHash::of("x")));
    it
}

/// A row in every table that carries checksums, written as the program does it.
fn fill_tables(db: &Db, objects: &Path) -> Result<Objects> {
    let store = Objects::open(&Location::Directory(objects.to_owned()))?;
    commit_sample(db, &store, Part(0), 0)?;
    db.write(|tx| {
        let key = (Part(0), ConnectionId(1));
        documents::save(tx, key.0, key.1, &[document()])?;
        let looked = documents::load(tx, key.0, key.1, &[document().dochash])?;
        documents::note_looks(tx, key.0, &looked)?;
        let mut ingest = Ingest::new(1, key.1, document().dochash);
        (ingest.uri, ingest.version) = (Some("https://example.com/".into()), Some("v1".into()));
        let moved = Move { before: None, after: Some(ingest) };
        ingests::save(tx, Part(0), ConnectionId(3), &[moved])?;
        cursors::advance(tx, Part(0), cursors::LINKS, CommitNumber(0), CommitNumber(1), 7)?;
        cursors::advance(tx, Part(0), cursors::LINKS, CommitNumber(1), CommitNumber(2), 8)?;
        cursors::set(tx, Part(0), cursors::SEARCH, CommitNumber(2), 8)?;
        define(tx)
    })?;
    Ok(store)
}

fn define(tx: &mut Tx<'_>) -> Result<()> {
    use connections::ConnectionKind::{Notification as Told, Output, Repository};
    for (id, kind, name) in [(1, Repository, "web"), (3, Output, "files"), (4, Told, "mail")] {
        connections::save(tx, kind, &Connection::new(ConnectionId(id), name, "web"), 0)?;
    }
    let gently = Throttle {
        matches: "a".into(),
        description: None,
        per_ms: Some(0.5),
        connections_max: Some(2),
        bytes_per_s_max: None,
    };
    throttles::replace(tx, ConnectionId(1), &[gently])?;
    jobs::save(tx, &Job::new(JOB, "docs", ConnectionId(1)), 0)?;
    let (connection, description, spec) = (ConnectionId(3), None, "{}".to_owned());
    let kind = StageKind::Output;
    let stage =
        PipelineStage { prerequisite: None, kind, connection, description, spec: spec.clone() };
    pipelines::replace(tx, JOB, &[stage], 0)?;
    let told = Notification { connection: ConnectionId(4), description: None, spec };
    notifications::replace(tx, JOB, &[told], 0)?;
    hopfilters::replace(tx, JOB, &[("link".to_owned(), 3)].into(), 0)?;
    let daily = Schedule {
        years: TimeField::Any,
        months: TimeField::Any,
        dates: TimeField::Any,
        days: TimeField::Any,
        hours: TimeField::of([3]),
        minutes: TimeField::of([0]),
        timezone: None,
        window_ms: None,
        repeat_ms: None,
        minimal: false,
    };
    schedules::replace(tx, JOB, &[daily], 0)?;
    let before = job_states::state(tx, JOB)?;
    let mut now = before.clone();
    now.run = Run(1);
    job_states::save(tx, JOB, &before, &now, 9)
}

/// What `verify` says of rows.
fn findings(db: &Db, store: &Objects) -> Vec<Finding> {
    let report = verify(db, store, false).unwrap();
    report.findings.into_iter().filter(|it| it.problem.contains("checksum")).collect()
}

#[test]
fn every_column_of_these_tables_is_covered_or_left_out_with_a_reason() {
    let tables = schema::tables(owned::ALL);
    for table in &tables {
        let Some(summed) = coverage::TABLES.iter().find(|it| it.table == table.name) else {
            let reason = coverage::WITHOUT.iter().find(|it| it.0 == table.name);
            assert!(
                reason.is_some_and(|it| !it.1.is_empty()),
                "{}: say in checksums/declared.rs whether its rows carry checksums",
                table.name
            );
            continue;
        };
        let there: BTreeSet<&str> = table.columns.iter().map(|it| it.name).collect();
        let covered: Vec<&str> = summed.covered.split(", ").collect();
        let left_out = summed.left_out.iter().map(|it| it.0);
        let said: Vec<&str> = covered.iter().copied().chain(left_out).chain([COLUMN]).collect();
        let distinct: BTreeSet<&str> = said.iter().copied().collect();
        assert_eq!(distinct.len(), said.len(), "{}: a column is named twice", table.name);
        assert_eq!(
            distinct, there,
            "{}: say in checksums/declared.rs of each column whether it is covered",
            table.name
        );
    }
    let names = coverage::TABLES.iter().map(|it| it.table);
    for name in names.chain(coverage::WITHOUT.iter().map(|it| it.0)) {
        assert!(tables.iter().any(|table| table.name == name), "there is no table {name}");
    }
}

/// Another value that the schema lets a column hold.
fn changed(table: &str, column: &str, value: Option<String>) -> String {
    let other = match (table, column) {
        ("objects", "kind") => "pack",
        ("connections", "kind") => "mapping",
        ("jobpipelines", "kind") => "transformation",
        ("job_definitions", "startmethod") => "window begin",
        ("job_definitions", "hopcountmode") => "no delete",
        ("job_definitions", "type") => "continuous",
        ("job_definitions", "refetch") => "fixed",
        ("job_definitions", "onfailure") => "abort",
        ("job_states", "phase") => "deleting",
        ("job_states", "restart") => "minimal",
        ("job_states", "run_kind") => "partial",
        _ => {
            let mut bytes = value.unwrap_or_default().into_bytes();
            match bytes.first_mut() {
                Some(first) => *first ^= 1,
                None => bytes.push(b'x'),
            }
            return String::from_utf8(bytes).unwrap();
        }
    };
    other.to_owned()
}

/// Flips a bit in a column of a table's first row, asks which rows are damaged, and takes it
/// back.
fn damaged_by(db: &Db, summed: &'static ChecksummedTable, column: schema::Column) -> Vec<String> {
    let table = schema_of(summed);
    let undone = db.write(move |tx| {
        let first = page(tx, summed, &table, None, 1)?.remove(0).key;
        let key: Vec<String> = table.key_list().split(", ").map(str::to_owned).collect();
        let at: Vec<(&str, Value<'_>)> =
            key.iter().map(String::as_str).zip(first.iter().map(KeyValue::value)).collect();
        let mut values: Vec<Value<'_>> = at.iter().map(|it| it.1).collect();
        let sql = format!("SELECT {} FROM {} WHERE {}", column.name, summed.table, condition(&at));
        let (text, blob);
        values.push(match column.kind {
            ValueKind::Int => {
                let now: Option<i64> = tx.query_one(&sql, &values, |row| row.get(0))?;
                (now.unwrap_or(0) ^ 1).into()
            }
            ValueKind::Real => 7.5.into(),
            ValueKind::Text => {
                let now: Option<String> = tx.query_one(&sql, &values, |row| row.get(0))?;
                text = changed(summed.table, column.name, now);
                (&text).into()
            }
            ValueKind::Blob => {
                let now: Option<Vec<u8>> = tx.query_one(&sql, &values, |row| row.get(0))?;
                blob = match now {
                    Some(mut bytes) if !bytes.is_empty() => {
                        bytes[0] ^= 1;
                        bytes
                    }
                    _ => vec![1],
                };
                (&blob).into()
            }
        });
        let (name, place) = (column.name, values.len());
        let set = format!("UPDATE {} SET {name} = ${place}", summed.table);
        assert_eq!(tx.execute(&format!("{set} WHERE {}", condition(&at)), &values)?, 1);
        let all = page(tx, summed, &table, None, 100)?;
        let damaged = all.into_iter().filter(|row| !row.is_whole).map(|row| row.name);
        Err::<(), Error>(Error::Refused(damaged.collect::<Vec<_>>().join("\n")))
    });
    let said = undone.unwrap_err().to_string();
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_flipped_bit_in_any_covered_column_is_noticed() {
    both_databases(|db| {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let store = fill_tables(db, place.path())?;
        assert_eq!(findings(db, &store), []);
        for summed in coverage::TABLES.iter().copied() {
            for column in schema_of(summed).columns {
                if !summed.covered.split(", ").any(|name| name == column.name) {
                    continue;
                }
                let damaged = damaged_by(db, summed, column);
                assert_eq!(damaged.len(), 1, "{}.{}", summed.table, column.name);
            }
        }
        assert_eq!(findings(db, &store), [], "all of it was taken back");
        Ok(())
    });
}

#[test]
fn verify_names_the_table_and_the_key_of_a_damaged_row_and_says_what_to_do() {
    both_databases(|db| {
        damages_rows();
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let store = fill_tables(db, place.path())?;
        db.write(|tx| {
            tx.execute("UPDATE documents SET etag = 'b'", &[])?;
            tx.execute("UPDATE cursors SET seq = 3 WHERE consumer = 'links'", &[])
        })?;
        let found = findings(db, &store);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_eq!(found[0].what, "the row of table documents with part 0, id 1");
        assert!(found[0].remedy.contains("fetches all of it"), "{found:#?}");
        assert_eq!(found[1].what, "the row of table cursors with part 0, consumer \"links\"");
        assert!(found[1].remedy.contains("links rebuild"), "{found:#?}");
        let refused = db.read(|tx| cursors::get(tx, Part(0), cursors::LINKS)).unwrap_err();
        assert!(refused.to_string().contains("table cursors is corrupt"), "{refused}");
        assert!(db.read(|tx| cursors::slowest(tx, Part(0))).is_err());
        Ok(())
    });
}

#[test]
fn a_flipped_bit_in_the_database_file_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let (path, objects) = (place.path().join("rows.sqlite"), place.path().join("objects"));
    let db = Db::open_sqlite(&path).unwrap();
    migrate::migrate(&db, 0).unwrap();
    db.write(|tx| crate::tables::registrations::register(tx, &crate::testing::WEB, 0)).unwrap();
    fill_tables(&db, &objects).unwrap();
    db.write(|tx| tx.query("PRAGMA wal_checkpoint", &[], |_| Ok(()))).ok();
    drop(db);
    let whole = std::fs::read(&path).unwrap();
    // The highest bit makes text that is none.
    for (needle, bit) in [(TITLE, 1), (TITLE, 0x80), ("\"a tag of its own\"", 4), ("docs", 2)] {
        let mut bytes = whole.clone();
        let at = bytes.windows(needle.len()).rposition(|it| it == needle.as_bytes()).unwrap();
        bytes[at + 1] ^= bit;
        std::fs::write(&path, bytes).unwrap();
        let db = Db::open_sqlite(&path).unwrap();
        let store = Objects::open(&Location::Directory(objects.clone())).unwrap();
        let found = findings(&db, &store);
        assert_eq!(found.len(), 1, "{needle}: {found:#?}");
        if needle == TITLE {
            assert_eq!(found[0].what, "the row of table documents with part 0, id 1");
            let load = |tx: &mut Tx<'_>| {
                documents::load(tx, Part(0), ConnectionId(1), &[document().dochash])
            };
            let loaded = db.read(load).unwrap();
            assert_eq!((loaded[0].trust, loaded[0].title.as_deref()), (Trust::Damaged, None));
        }
    }
}

#[test]
fn a_damaged_document_is_written_anew_only_by_who_has_looked_at_it() {
    both_databases(|db| {
        let key = (Part(0), ConnectionId(1));
        let load = || db.read(move |tx| documents::load(tx, key.0, key.1, &[document().dochash]));
        let save = |it: Document| {
            db.write(move |tx| documents::save(tx, key.0, key.1, std::slice::from_ref(&it)))
        };
        save(Document { chunk: Some(crate::ids::ChunkId(7)), ..document() })?;
        db.write(|tx| tx.execute("UPDATE documents SET checks = 9", &[]))?;
        let damaged = load()?.remove(0);
        assert_eq!((damaged.trust, damaged.etag.as_deref()), (Trust::Damaged, None));
        let anew = damaged.if_damaged_anew("https://example.com/", 50);
        assert_eq!((anew.trust, anew.first_ms, anew.chunk.is_some()), (Trust::Doubtful, 50, true));
        save(Document { missing: 1, ..anew })?;
        let doubtful = load()?.remove(0);
        assert_eq!((doubtful.trust, doubtful.missing), (Trust::Doubtful, 1), "it is counted on");
        assert_eq!(doubtful.clone().if_damaged_anew("", 60), doubtful);
        save(Document { trust: Trust::Whole, ..doubtful })?;
        assert_eq!(load()?[0].trust, Trust::Whole);
        Ok(())
    });
}

#[test]
fn what_an_output_has_of_a_damaged_row_is_sent_again() {
    both_databases(|db| {
        damages_rows();
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        fill_tables(db, place.path())?;
        let load = || {
            db.write(|tx| {
                let (output, connection) = (ConnectionId(3), ConnectionId(1));
                ingests::load(tx, Part(0), output, connection, &[document().dochash])
            })
        };
        assert_eq!(load()?[0].version.as_deref(), Some("v1"));
        db.write(|tx| tx.execute("UPDATE ingests SET lastversion = 'v0'", &[]))?;
        let damaged = load()?.remove(0);
        assert_eq!((damaged.version, damaged.uri.is_some()), (None, true));
        Ok(())
    });
}

#[test]
fn a_change_of_a_part_of_a_damaged_row_leaves_it_damaged() {
    both_databases(|db| {
        damages_rows();
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let store = fill_tables(db, place.path())?;
        let chunk = db.read(|tx| chunks::after(tx, Part(0), CommitNumber::NONE, 1))?.remove(0);
        let chunks::Facts::Inline(facts) = chunk.facts else { panic!("inline facts") };
        let piece = PackedChunk { id: chunk.id, offset: 0, len: facts.len() as i64 };
        db.write(|tx| tx.execute("UPDATE chunks SET run = 9", &[]))?;
        assert_eq!(findings(db, &store).len(), 1);
        db.write(move |tx| set_packed(tx, Part(0), ObjectId(5), &[piece]))?;
        assert_eq!(findings(db, &store).len(), 1, "nobody has said that its run is 9");
        Ok(())
    });
}

#[test]
fn a_damaged_definition_starts_no_run_and_is_whole_again_when_it_is_saved() {
    both_databases(|db| {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        fill_tables(db, place.path())?;
        db.read(|tx| jobs::require_whole(tx, JOB))?;
        for damage in [
            "UPDATE job_definitions SET priority = 9",
            "UPDATE jobpipelines SET spec = '[]'",
            "UPDATE jobhopfilters SET maxhops = 7",
            "UPDATE throttles SET connections_max = 100",
            "UPDATE connections SET maxcount = 100 WHERE id = 1",
            "UPDATE job_definitions SET checksum = 0",
        ] {
            db.write(|tx| tx.execute(damage, &[]))?;
            let refused = db.read(|tx| jobs::require_whole(tx, JOB)).unwrap_err().to_string();
            assert!(refused.contains("driftline import"), "{refused}");
            db.write(define)?;
            db.read(|tx| jobs::require_whole(tx, JOB))?;
        }
        Ok(())
    });
}

#[test]
fn a_database_of_the_schema_before_gets_its_checksums() {
    both_databases(|db| {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let store = fill_tables(db, place.path())?;
        // More than a page of the walk that adds them.
        db.write(|tx| {
            let all: Vec<Document> = (0..2_500)
                .map(|n| {
                    let url = format!("https://example.com/{n}");
                    Document::new(DocumentId(10 + n), DocHash::of(&url), url, 0)
                })
                .collect();
            documents::save(tx, Part(2), ConnectionId(1), &all)
        })?;
        db.write(|tx| {
            for summed in coverage::TABLES {
                tx.run_schema(&format!("ALTER TABLE {} DROP COLUMN checksum", summed.table))?;
            }
            tx.run_schema("ALTER TABLE chunks DROP COLUMN claim")?;
            tx.run_schema("DROP TABLE audit_chain")?;
            tx.run_schema("DROP TABLE looks")?;
            for column in ["outside", "bytes"] {
                tx.run_schema(&format!("ALTER TABLE traps DROP COLUMN {column}"))?;
            }
            tx.run_schema("DROP INDEX queue_unlinked")?;
            for column in [
                "queue.requisite",
                "queue.unlinked",
                "queue.needed_run",
                "queue.levels",
                "documents.requisite",
                "registrations.requisites",
            ] {
                let (table, name) = column.split_once('.').expect("a table and a column");
                tx.run_schema(&format!("ALTER TABLE {table} DROP COLUMN {name}"))?;
            }
            tx.execute("DELETE FROM schema_versions WHERE version > 5", &[])
        })?;
        assert_eq!(migrate::migrate(db, 0)?, [6, 7, 8, 9]);
        assert_eq!(findings(db, &store), []);
        assert!(verify(db, &store, false)?.rows > 2_500);
        db.read(|tx| cursors::get(tx, Part(0), cursors::LINKS))
            .map(|seq| assert_eq!(seq, CommitNumber(2)))
    });
}

#[test]
fn values_that_lie_side_by_side_are_told_apart() {
    let places = coverage::SETTINGS.places("name, value");
    let all = [
        places.of(&["ab".into(), "c".into()]),
        places.of(&["a".into(), "bc".into()]),
        places.of(&["abc".into(), "".into()]),
        places.of(&["abc".into(), Value::Null]),
        places.of(&[Value::Blob(b"abc"), Value::Null]),
    ];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}
