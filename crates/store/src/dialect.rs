//! The few words in which SQLite and PostgreSQL differ. Everything else is one text.
//!
//! Statements are written with `$1`, `$2` … and, where a row must be locked, with
//! the comments `/*skip locked*/` or `/*for update*/`. Schema text is written with
//! `BLOB` and `TEXT`, and with `/*clustered*/` after a table whose rows are to lie in the
//! order of its key where that can be had.

use std::fmt::Write;

/// Which database a connection speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Embedded, in one data directory.
    Sqlite,
    /// A server that many machines share.
    Postgres,
}

impl Dialect {
    /// The statement as this database wants it.
    ///
    /// SQLite numbers `$name` parameters by first appearance, so `SELECT $2, $1`
    /// would silently swap its arguments; it must see `?2, ?1`. It has one writer
    /// at a time, so locking comments mean nothing to it.
    pub fn statement(self, sql: &str) -> String {
        match self {
            Dialect::Sqlite => number_placeholders(sql),
            Dialect::Postgres => sql
                .replace("/*skip locked*/", "FOR UPDATE SKIP LOCKED")
                .replace("/*for update*/", "FOR UPDATE"),
        }
    }

    /// Schema text as this database wants it. Text compares bytewise on both:
    /// SQLite does so by itself, PostgreSQL by collation.
    pub fn schema(self, sql: &str) -> String {
        match self {
            Dialect::Sqlite => sql.replace("/*clustered*/", "WITHOUT ROWID"),
            Dialect::Postgres => {
                replace_words(sql, &[("BLOB", "BYTEA"), ("TEXT", "TEXT COLLATE \"C\"")])
            }
        }
    }

    /// The way out when a statement must differ for speed. At most five uses,
    /// counted by the tidy test.
    pub fn pick<'a>(self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match self {
            Dialect::Sqlite => sqlite,
            Dialect::Postgres => postgres,
        }
    }
}

/// `$1` becomes `?1`, except inside quotes.
fn number_placeholders(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut quote = None;
    let mut chars = sql.chars().peekable();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (None, '$') if chars.peek().is_some_and(char::is_ascii_digit) => out.push('?'),
            (None, '\'' | '"') => {
                quote = Some(char);
                out.push(char);
            }
            (Some(open), _) if char == open => {
                quote = None;
                out.push(char);
            }
            _ => out.push(char),
        }
    }
    out
}

/// Replaces whole words outside comments and quotes.
fn replace_words(sql: &str, words: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(sql.len() + sql.len() / 8);
    for line in sql.split_inclusive('\n') {
        let (code, comment) = line.split_at(line.find("--").unwrap_or(line.len()));
        let mut quoted = false;
        for piece in code.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let found = words.iter().find(|(from, _)| *from == word && !quoted);
            match found {
                Some((from, to)) => {
                    out.push_str(to);
                    out.push_str(&piece[from.len()..]);
                }
                None => out.push_str(piece),
            }
            if piece.matches('\'').count() % 2 == 1 {
                quoted = !quoted;
            }
        }
        out.push_str(comment);
    }
    out
}

/// The kind of a value where a statement does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ValueKind {
    Int,
    Real,
    Text,
    Blob,
}

impl ValueKind {
    fn name(self, dialect: Dialect) -> &'static str {
        match self {
            ValueKind::Int => "BIGINT",
            ValueKind::Real => "DOUBLE PRECISION",
            ValueKind::Text => "TEXT",
            ValueKind::Blob => match dialect {
                Dialect::Sqlite => "BLOB",
                Dialect::Postgres => "BYTEA",
            },
        }
    }
}

/// As [`values_list`], with the kinds of the columns: PostgreSQL takes them from
/// the first row and would otherwise call everything text.
pub fn typed_values_list(
    dialect: Dialect,
    after: usize,
    rows: usize,
    kinds: &[ValueKind],
) -> String {
    let mut out = String::from("(");
    for (index, kind) in kinds.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let number = after + index + 1;
        write!(out, "{comma}CAST(${number} AS {})", kind.name(dialect))
            .expect("writing to a string cannot fail");
    }
    out.push(')');
    let plain = values_list(after, rows, kinds.len());
    if let Some(rest) = plain.find("), (") {
        out.push_str(&plain[rest + 1..]);
    }
    out
}

/// A list of `count` placeholders from `$first` on, in parentheses.
pub fn in_list(first: usize, count: usize) -> String {
    let numbers: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
    format!("({})", numbers.join(", "))
}

/// A `VALUES` list of `rows` rows of `columns` placeholders each, numbered from
/// after `after` on.
pub fn values_list(after: usize, rows: usize, columns: usize) -> String {
    let mut out = String::with_capacity(rows * columns * 6);
    for row in 0..rows {
        out.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns {
            let comma = if column == 0 { "" } else { ", " };
            let number = after + row * columns + column + 1;
            write!(out, "{comma}${number}").expect("writing to a string cannot fail");
        }
        out.push(')');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_keep_their_numbers() {
        let sqlite = Dialect::Sqlite.statement("SELECT $2, '$1', \"$1\", $10 /*skip locked*/");
        assert_eq!(sqlite, "SELECT ?2, '$1', \"$1\", ?10 /*skip locked*/");
    }

    #[test]
    fn locking_comments_speak_on_postgres_only() {
        let sql = "SELECT 1 LIMIT $1 /*skip locked*/";
        assert_eq!(Dialect::Postgres.statement(sql), "SELECT 1 LIMIT $1 FOR UPDATE SKIP LOCKED");
        assert_eq!(Dialect::Postgres.statement("SELECT 1 /*for update*/"), "SELECT 1 FOR UPDATE");
    }

    #[test]
    fn schema_words_change_only_as_whole_words_of_code() {
        let sql = "a TEXT NOT NULL, CONTEXT BLOB, -- TEXT here\n b TEXT CHECK (b IN ('TEXT'))";
        assert_eq!(
            Dialect::Postgres.schema(sql),
            "a TEXT COLLATE \"C\" NOT NULL, CONTEXT BYTEA, -- TEXT here\n \
             b TEXT COLLATE \"C\" CHECK (b IN ('TEXT'))"
        );
        assert_eq!(Dialect::Sqlite.schema(sql), sql);
    }

    #[test]
    fn values_lists_count_on() {
        assert_eq!(values_list(0, 2, 3), "($1, $2, $3), ($4, $5, $6)");
        let typed = typed_values_list(Dialect::Postgres, 1, 2, &[ValueKind::Int, ValueKind::Blob]);
        assert_eq!(typed, "(CAST($2 AS BIGINT), CAST($3 AS BYTEA)), ($4, $5)");
        assert_eq!(in_list(3, 2), "($3, $4)");
    }
}
