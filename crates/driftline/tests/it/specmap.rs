//! The specification map: `docs/spec-map.md` has a row for everything the chapter
//! on ManifoldCF's data structures names, and what its rows refer to exists.
//!
//! Relies on the map's form: tables whose first cell is the item, whose second
//! says where it is and whose third says why it differs. A check is a function
//! from the map's text to complaints, so that each has a test that it complains.

mod chapter;
mod tree;

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use tree::Schema;

const MAP: &str = "docs/spec-map.md";
/// The specification itself, where it is at hand.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/seeds");
const CHAPTER_PREFIX: &str = "002_";
const PIECES_HEADING: &str = "## Pieces to come";
const TO_COME: &str = "to come";

/// One row of the map: `| item | where it is | how it differs, and why |`.
struct MapRow<'a> {
    line: usize,
    item: &'a str,
    place: &'a str,
    text: &'a str,
}

/// The rows of the map's tables of three cells, without their headings.
fn rows(map: &str) -> Vec<MapRow<'_>> {
    let mut rows = Vec::new();
    for (index, text) in map.lines().enumerate() {
        let Some(inner) = text.strip_prefix("| ").and_then(|rest| rest.strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        if let [item, place, _] = cells[..]
            && item != "item"
        {
            rows.push(MapRow { line: index + 1, item, place, text });
        }
    }
    rows
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// Everything of the chapter that must be the item of a row.
fn wanted() -> Vec<String> {
    let mut wanted = Vec::new();
    for table in &chapter::TABLES {
        for name in table.names.split(' ') {
            wanted.push(format!("`{name}`"));
            let mut seen = HashSet::new();
            for column in table.columns.split_whitespace() {
                let again = if seen.insert(column) { "" } else { " (second)" };
                wanted.push(format!("`{name}.{column}`{again}"));
            }
        }
    }
    let job_states = chapter::JOB_STATES.iter().chain(&chapter::FURTHER_JOB_STATES);
    wanted.extend(job_states.map(|state| format!("`jobs.status = {state}`")));
    let document_states = chapter::DOCUMENT_STATES.iter();
    wanted.extend(document_states.map(|state| format!("`jobqueue.status = {state}`")));
    wanted
}

fn missing_items(map: &str) -> Vec<String> {
    let items: HashSet<&str> = rows(map).iter().map(|row| row.item).collect();
    wanted().into_iter().filter(|item| !items.contains(item.as_str())).collect()
}

/// Rows that say nothing, and items that have two rows.
fn broken_rows(map: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut complaints = Vec::new();
    for row in rows(map) {
        if row.item.is_empty() || row.place.is_empty() {
            complaints.push(format!("{MAP}:{}: an empty cell", row.line));
        }
        if !seen.insert(row.item) {
            complaints.push(format!("{MAP}:{}: {} has a row already", row.line, row.item));
        }
    }
    complaints
}

/// Files and modules that are named and do not exist.
fn missing_files(map: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in quoted(map) {
        let (first, is_module) =
            name.split_once("::").map_or((name, false), |(first, _)| (first, true));
        if name.starts_with("crates/") && !tree::root().join(name).is_file() {
            complaints.push(format!("{MAP}: there is no file {name}"));
        } else if is_module && tree::CRATES.contains(&first) {
            complaints.extend(tree::missing_module(name));
        }
    }
    complaints
}

/// Tables, columns and views that a row places something in and that do not exist.
fn missing_relations(map: &str, schema: &Schema) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in rows(map) {
        let mut before = "";
        for (index, text) in row.place.split('`').enumerate() {
            if index % 2 == 0 {
                before = text;
                continue;
            }
            let exists = match text.split_once('.') {
                Some((table, column)) if is_name(table) && is_name(column) => {
                    schema.has_column(table, column)
                }
                None if is_name(text) && before.ends_with("view ") => schema.has_view(text),
                None if is_name(text) => schema.mentions(text),
                _ => true,
            };
            if !exists {
                complaints.push(format!("{MAP}:{}: the schema has no {text}", row.line));
            }
        }
    }
    complaints
}

/// Rows that promise something without naming a piece that the map lists.
fn unknown_pieces(map: &str) -> Vec<String> {
    let listed = map.split(PIECES_HEADING).nth(1).unwrap_or_default();
    let listed = listed.split("\n## ").next().unwrap_or_default();
    let pieces: HashSet<&str> =
        listed.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    let mut complaints = Vec::new();
    for row in rows(map) {
        for (at, _) in row.text.match_indices(TO_COME) {
            let named = row.text[at + TO_COME.len()..].strip_prefix(": ").unwrap_or_default();
            let piece = named.split([' ', ',', ';', '.', ')']).next().unwrap_or_default();
            if !pieces.contains(piece) {
                complaints.push(format!("{MAP}:{}: {piece:?} is not a listed piece", row.line));
            }
        }
        for word in row.text.split([' ', ',', ';', '.', '(', ')', ':']) {
            let of_ours = word.split_once('/').is_some_and(|(it, _)| tree::CRATES.contains(&it));
            if of_ours && !pieces.contains(word) {
                complaints.push(format!("{MAP}:{}: {word} is not a listed piece", row.line));
            }
        }
    }
    complaints
}

fn hold(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_table_column_and_state_of_the_chapter_has_a_row() {
    let missing = missing_items(&tree::file(MAP));
    assert!(missing.is_empty(), "{MAP} has no row for:\n{}\n", missing.join("\n"));
}

/// A column of the chapter is a column of a table or view of that name, whatever ours are,
/// unless the map says that it is left out, and why.
#[test]
fn every_column_of_the_chapter_can_be_looked_at_in_both_databases() {
    let map = tree::file(MAP);
    let left_out: HashSet<&str> =
        rows(&map).iter().filter(|row| row.place == "none").map(|row| row.item).collect();
    store::testing::both_databases(|db| {
        let mut missing = Vec::new();
        for table in &chapter::TABLES {
            for name in table.names.split(' ') {
                for column in table.columns.split_whitespace() {
                    let sql = format!("SELECT {column} FROM {name} LIMIT 1");
                    let is_left_out = left_out.contains(format!("`{name}.{column}`").as_str());
                    match db.read(move |tx| tx.query(&sql, &[], |_| Ok(()))) {
                        Err(error) if !is_left_out => {
                            missing.push(format!("{name}.{column}: {error}"));
                        }
                        Ok(_) if is_left_out => {
                            missing.push(format!("{name}.{column} is there; the map says none"));
                        }
                        _ => {}
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
        Ok(())
    });
}

#[test]
fn every_row_says_where_its_item_is_and_no_item_has_two() {
    hold(&broken_rows(&tree::file(MAP)));
}

#[test]
fn every_file_and_module_that_the_map_names_exists() {
    hold(&missing_files(&tree::file(MAP)));
}

#[test]
fn every_table_column_and_view_that_the_map_names_exists() {
    hold(&missing_relations(&tree::file(MAP), &Schema::of_checkout()));
}

#[test]
fn whatever_is_to_come_names_its_piece() {
    hold(&unknown_pieces(&tree::file(MAP)));
}

#[test]
fn the_lists_are_what_the_chapter_prints() {
    let is_chapter = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(CHAPTER_PREFIX))
    };
    let found = fs::read_dir(SEEDS)
        .ok()
        .and_then(|entries| entries.filter_map(|it| Some(it.ok()?.path())).find(is_chapter));
    let Some(path) = found else {
        println!("SKIPPED: seeds/{CHAPTER_PREFIX}* is missing: the lists are not compared with it");
        return;
    };
    let text = fs::read_to_string(path).expect("the chapter can be read");
    let (states, columns): (Vec<_>, Vec<_>) =
        chapter::read(&text).into_iter().partition(|table| table.heading == "State");
    let ours = chapter::TABLES.iter().map(|table| (table.names, table.columns));
    assert_eq!(columns.len(), chapter::TABLES.len());
    for ((names, listed), printed) in ours.zip(&columns) {
        assert_eq!(printed.heading, "Column");
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), printed.names, "{names}");
    }
    assert_eq!(states.len(), 2);
    assert_eq!(states[0].names, chapter::JOB_STATES);
    assert_eq!(states[1].names, chapter::DOCUMENT_STATES);
}

#[test]
fn a_map_without_a_row_or_with_a_wrong_name_is_refused() {
    let map = tree::file(MAP);
    for gone in
        ["`jobqueue.docid`", "`mapconnections.mappingname` (second)", "`jobs.status = PAUSED`"]
    {
        let start = format!("| {gone} |");
        let kept: Vec<&str> = map.lines().filter(|line| !line.starts_with(&start)).collect();
        assert_eq!(missing_items(&kept.join("\n")), [gone]);
    }
    let bad = "## Pieces to come\n\n| page/uri | the row form |\n\n## Rows\n\n\
        | item | where it is | how it differs, and why |\n|---|---|---|\n\
        | a | `crates/store/src/no.rs`, `store::nothing::at_all` | |\n\
        | b | `queue.no_such_column`, view `queue`, `no_such_name` | |\n\
        | c | to come: page/nothing | |\n| c | to come some day | |\n| d | | |\n";
    assert_eq!(missing_files(bad).len(), 2);
    assert_eq!(missing_relations(bad, &Schema::of_checkout()).len(), 3);
    assert_eq!(unknown_pieces(bad).len(), 3);
    assert_eq!(broken_rows(bad).len(), 2);
}

/// What ManifoldCF and Webindex suffer from has tests here, by their names.
#[test]
fn every_defect_and_pain_of_the_original_has_a_test_that_exists() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let list = fs::read_to_string(root.join("docs/originals.md")).unwrap();
    let sources = crate::tidy::sources();
    let rows = list.lines().filter(|line| line.starts_with("| ") && line.contains(" | "));
    let rows: Vec<&str> = rows.filter(|line| !line.ends_with("| Here |")).collect();
    assert!(rows.len() > 25, "{}", rows.len());
    for row in rows {
        let names: Vec<&str> = quoted(row).collect();
        assert!(!names.is_empty() || row.contains(TO_COME), "{row} names nothing");
        for name in names {
            let is_test = || sources.iter().any(|text| text.contains(&format!("fn {name}(")));
            assert!(root.join(name).is_dir() || is_test(), "{name} is neither a test nor a bench");
        }
    }
}
