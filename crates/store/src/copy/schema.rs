//! The tables and columns there are, read from the text that makes them.
//!
//! The text is ours and is written in one way: a line for each column, with its name
//! and its kind first, also where a later version adds it. The tests hold what is read here against what both databases
//! say of themselves, so a text written otherwise does not go unnoticed.

use crate::dialect::ValueKind;
use crate::migrate;
use crate::owned::OwnedTables;

/// A table of the schema.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Table {
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Places of the primary key's columns, in the key's order.
    pub key: Vec<usize>,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct Column {
    pub name: &'static str,
    pub kind: ValueKind,
}

impl Table {
    /// The place of a column.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// All columns, as a statement lists them.
    pub fn column_list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        names.join(", ")
    }

    /// The columns of the primary key, as a statement lists them.
    pub fn key_list(&self) -> String {
        let names: Vec<&str> = self.key.iter().map(|place| self.columns[*place].name).collect();
        names.join(", ")
    }
}

/// Every table of the newest schema, in the order of its text, and those of these
/// connectors. The table of the schema's own versions is not among them: a target has
/// its own.
pub fn tables(owned: &[&'static OwnedTables]) -> Vec<Table> {
    let mut tables = Vec::new();
    for text in migrate::texts().chain(owned.iter().map(|owned| owned.text)) {
        read_text(&mut tables, text);
    }
    tables
}

/// Adds the tables of a text, and does what it does to tables of earlier ones.
fn read_text(tables: &mut Vec<Table>, text: &'static str) {
    let mut inside = false;
    for line in text.lines() {
        let line = line.split("--").next().unwrap_or_default().trim();
        if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
            let name = rest.trim_start_matches("IF NOT EXISTS ").trim_end_matches('(').trim();
            tables.push(Table { name, columns: Vec::new(), key: Vec::new() });
            inside = true;
        } else if let Some(rest) = line.strip_prefix("ALTER TABLE ") {
            let (name, change) = rest.trim_end_matches(';').split_once(' ').unwrap_or_default();
            let Some(table) = tables.iter_mut().find(|table| table.name == name) else { continue };
            if let Some(column) = change.strip_prefix("ADD COLUMN ") {
                read_line(table, column);
            } else if let Some(new_name) = change.strip_prefix("RENAME TO ") {
                table.name = new_name;
            }
        } else if let Some(name) = line.strip_prefix("DROP TABLE ") {
            tables.retain(|table| table.name != name.trim_end_matches(';'));
        } else if line == ");" {
            inside = false;
        } else if inside && let Some(table) = tables.last_mut() {
            read_line(table, line);
        }
    }
}

/// One line of a table: a column, its primary key, or the rest of a longer check.
fn read_line(table: &mut Table, line: &'static str) {
    if let Some(rest) = line.strip_prefix("PRIMARY KEY (") {
        let names = rest.split(')').next().unwrap_or_default();
        table.key = names.split(", ").filter_map(|name| table.place(name)).collect();
        return;
    }
    let mut words = line.split([' ', ',']).filter(|word| !word.is_empty());
    let (Some(name), Some(kind)) = (words.next(), words.next()) else { return };
    let kind = match kind {
        "BIGINT" => ValueKind::Int,
        "DOUBLE" => ValueKind::Real,
        "TEXT" => ValueKind::Text,
        "BLOB" => ValueKind::Blob,
        _ => return,
    };
    if line.contains(" PRIMARY KEY") {
        table.key = vec![table.columns.len()];
    }
    table.columns.push(Column { name, kind });
}
