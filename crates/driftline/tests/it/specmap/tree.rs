//! What the map may refer to: files, modules and their items, tables, columns and
//! views. Reads the checkout as text and relies on nothing but its layout.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace.
pub const CRATES: [&str; 5] = ["page", "store", "crawl", "outputs", "driftline"];

/// A module of fewer lines is a name without content.
const MODULE_LINES_MIN: usize = 5;

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a file of the checkout.
pub fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of a text: names as Rust and SQL spell them.
fn words(text: &str) -> HashSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// Why a path such as `store::tables::queue::claim` leads nowhere. The modules must
/// be files with content, and the file must mention every name behind them.
pub fn missing_module(path: &str) -> Option<String> {
    let mut names = path.split("::").peekable();
    let mut dir = root().join("crates").join(names.next()?).join("src");
    let mut source = dir.join("lib.rs");
    while let Some(name) = names.peek() {
        let next = dir.join(format!("{name}.rs"));
        if !next.is_file() {
            break;
        }
        dir = dir.join(name);
        source = next;
        names.next();
    }
    let Ok(text) = fs::read_to_string(&source) else {
        return Some(format!("{path}: {} is missing", source.display()));
    };
    if text.lines().count() < MODULE_LINES_MIN {
        return Some(format!("{path}: {} is empty", source.display()));
    }
    let known = words(&text);
    names
        .find(|name| !known.contains(name))
        .map(|name| format!("{path}: {} has no {name}", source.display()))
}

/// The tables and views of the migrations.
pub struct Schema {
    /// The words of each table's or view's definition, by its name.
    relations: HashMap<String, HashSet<String>>,
    /// Which of them are views.
    views: HashSet<String>,
    /// Every name in the schema, those of indexes too.
    names: HashSet<String>,
}

impl Schema {
    /// Reads the migrations of the checkout.
    pub fn of_checkout() -> Schema {
        let dir = root().join("crates/store/migrations");
        let mut text = String::new();
        for entry in fs::read_dir(&dir).expect("the migrations can be listed") {
            let path = entry.expect("the migrations can be listed").path();
            text += &fs::read_to_string(path).expect("a migration can be read");
        }
        Schema::parse(&text)
    }

    fn parse(text: &str) -> Schema {
        let code: String = text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default())
            .flat_map(|line| [line, "\n"])
            .collect();
        let owned = |set: HashSet<&str>| set.into_iter().map(str::to_owned).collect();
        let mut schema =
            Schema { relations: HashMap::new(), views: HashSet::new(), names: owned(words(&code)) };
        for statement in code.split(';') {
            let statement = statement.trim_start();
            let is_view = statement.starts_with("CREATE VIEW ");
            if !is_view && !statement.starts_with("CREATE TABLE ") {
                continue;
            }
            let name = statement.replace("IF NOT EXISTS ", "");
            let Some(name) = name.split_whitespace().nth(2) else { continue };
            let columns = if is_view { words(statement) } else { columns_of(statement) };
            schema.relations.insert(name.into(), owned(columns));
            if is_view {
                schema.views.insert(name.into());
            }
        }
        schema
    }

    /// Whether a table has a column, or a view mentions it.
    pub fn has_column(&self, relation: &str, column: &str) -> bool {
        self.relations.get(relation).is_some_and(|columns| columns.contains(column))
    }

    /// Whether there is such a view.
    pub fn has_view(&self, name: &str) -> bool {
        self.views.contains(name)
    }

    /// Whether anything in the schema has this name.
    pub fn mentions(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// In the migrations each column of a table has a line of its own.
fn columns_of(statement: &str) -> HashSet<&str> {
    let first_words = statement.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    first_words.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

#[test]
fn the_schema_is_read_as_it_is_written() {
    let schema = Schema::parse(
        "-- CREATE TABLE not_one (\nCREATE TABLE a (\n    b BIGINT NOT NULL, -- c\n    \
         PRIMARY KEY (b)\n);\nCREATE VIEW v AS\n    SELECT b AS d FROM a;\n\
         CREATE TABLE IF NOT EXISTS own (\n    e TEXT\n);\n",
    );
    assert!(schema.has_column("own", "e"));
    assert!(schema.has_column("a", "b"));
    assert!(!schema.has_column("a", "c") && !schema.has_column("not_one", "b"));
    assert!(schema.has_view("v") && !schema.has_view("a") && schema.has_column("v", "d"));
}

#[test]
fn a_path_that_leads_nowhere_is_told() {
    assert_eq!(missing_module("store::tables::queue::claim"), None);
    assert_eq!(missing_module("store::db::Db::open_sqlite"), None);
    assert!(missing_module("store::tables::queue::no_such_function").is_some());
    assert!(missing_module("store::no_such_module").is_some());
    assert!(missing_module("no_such_crate::anything").is_some());
}
