//! One transaction, on either database: the synchronous shim all SQL goes through.
//!
//! Statements are written once, with `$1` placeholders; arguments are checked for
//! what only one of the databases could hold; prepared statements are cached with
//! the connection. A `Tx` lives inside a closure given to [`crate::Db`], so it can
//! be neither leaked nor left open.

use crate::dialect::{Dialect, ValueKind, in_list, typed_values_list, values_list};
use crate::sealing::Keys;
use crate::value::{Row, Value};
use crate::{Error, Result};
use page::domain::SuffixList;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

mod one_by_one;

/// Parameters in one statement. SQLite allows 32,766, PostgreSQL 65,535.
const PARAMETERS_MAX: usize = 30_000;
/// Rows in one `VALUES` list. More gain nothing and make statements long.
const ROWS_MAX: usize = 512;
/// Prepared statements kept with a PostgreSQL connection.
const STATEMENTS_MAX: usize = 512;

/// A running transaction.
///
/// A transaction in which a statement failed cannot be committed, even if the caller
/// thinks the failure harmless: PostgreSQL has given it up already, and SQLite would
/// keep half of it. The shim remembers the first failure for both.
pub enum Tx<'a> {
    #[allow(missing_docs)]
    Sqlite {
        connection: &'a rusqlite::Connection,
        texts: &'a mut Texts,
        failed: Option<String>,
        own: Own,
    },
    #[allow(missing_docs)]
    Postgres {
        transaction: postgres::Transaction<'a>,
        statements: &'a mut Statements,
        failed: Option<String>,
        own: Own,
    },
}

/// What a handle on a database brings into its transactions; clones share it.
#[derive(Clone, Default)]
pub struct Own {
    /// What secrets are sealed with.
    pub(crate) keys: Keys,
    /// The public suffix list, once it was read: it never changes, and reading it takes
    /// longer than most questions.
    pub(crate) suffixes: Arc<OnceLock<Arc<SuffixList>>>,
}

/// Statement texts as SQLite wants them, so that each is rewritten once.
pub type Texts = HashMap<Box<str>, Box<str>>;
/// Prepared statements of one PostgreSQL connection.
pub type Statements = HashMap<Box<str>, postgres::Statement>;

/// Where a statement for many keys has their list.
const KEYS: &str = "IN ($keys)";

/// A statement for many keys, with a comparison in the place of their list.
pub(crate) fn with_keys(sql: &str, comparison: &str) -> String {
    let (before, after) = sql.split_once(KEYS).expect("a statement for many keys has their list");
    [before, comparison, after].concat()
}

impl Tx<'_> {
    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        match self {
            Tx::Sqlite { .. } => Dialect::Sqlite,
            Tx::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// What the database's handle brings along.
    pub(crate) fn own(&self) -> &Own {
        let (Tx::Sqlite { own, .. } | Tx::Postgres { own, .. }) = self;
        own
    }

    /// Whoever asks for the transaction has this.
    pub(crate) fn give(&mut self, given: &Own) {
        let (Tx::Sqlite { own, .. } | Tx::Postgres { own, .. }) = self;
        own.clone_from(given);
    }

    /// What secrets are sealed with.
    pub fn keys(&self) -> Keys {
        self.own().keys.clone()
    }

    /// The first statement that failed, if one did.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Tx::Sqlite { failed, .. } | Tx::Postgres { failed, .. } => failed.as_deref(),
        }
    }

    /// Remembers that a statement failed.
    fn noted<T>(&mut self, outcome: Result<T>) -> Result<T> {
        let (Tx::Sqlite { failed, .. } | Tx::Postgres { failed, .. }) = self;
        if let Err(error) = &outcome {
            failed.get_or_insert_with(|| error.to_string());
        }
        outcome
    }

    /// Runs a statement and returns how many rows it touched.
    pub fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        let outcome = self.execute_now(sql, values);
        self.noted(outcome)
    }

    fn execute_now(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        check(values)?;
        match self {
            Tx::Sqlite { connection, texts, .. } => {
                let mut statement = connection.prepare_cached(sqlite_text(texts, sql))?;
                let rows = statement.execute(rusqlite::params_from_iter(values))?;
                Ok(rows as u64)
            }
            Tx::Postgres { transaction, statements, .. } => {
                let statement = prepared(transaction, statements, sql)?;
                Ok(transaction.execute(&statement, &borrowed(values))?)
            }
        }
    }

    /// Runs a query and maps its rows. The statement carries its own `LIMIT`.
    pub fn query<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let outcome = self.query_now(sql, values, map);
        self.noted(outcome)
    }

    fn query_now<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        check(values)?;
        let mut out = Vec::new();
        match self {
            Tx::Sqlite { connection, texts, .. } => {
                let mut statement = connection.prepare_cached(sqlite_text(texts, sql))?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    out.push(map(&Row::Sqlite(row))?);
                }
                #[cfg(test)]
                {
                    drop(rows);
                    crate::testing::steps::count(connection, &statement);
                }
            }
            Tx::Postgres { transaction, statements, .. } => {
                let statement = prepared(transaction, statements, sql)?;
                for row in transaction.query(&statement, &borrowed(values))? {
                    out.push(map(&Row::Postgres(&row))?);
                }
            }
        }
        Ok(out)
    }

    /// Runs a query that answers with one row or none.
    pub fn query_opt<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, values, map)?.into_iter().next())
    }

    /// Runs a query that always answers with a row, such as a count.
    pub fn query_one<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.query_opt(sql, values, map)?
            .ok_or_else(|| Error::Statement { reason: format!("no row came back from: {sql}") })
    }

    /// Runs one statement for many rows: `before VALUES (…), (…) after`. Returns
    /// how many rows it touched in all.
    ///
    /// PostgreSQL gets batches, whose sizes are powers of two so that few distinct
    /// statements have to be prepared. SQLite gets row after row (`one_by_one`).
    pub fn insert_rows(
        &mut self,
        before: &str,
        rows: &[Vec<Value<'_>>],
        after: &str,
    ) -> Result<u64> {
        let Some(first) = rows.first() else { return Ok(0) };
        let columns = first.len();
        let text = |size| format!("{before} VALUES {} {after}", values_list(0, size, columns));
        let mut touched = 0;
        if let Tx::Sqlite { connection, texts, .. } = self {
            let outcome = one_by_one::execute(connection, sqlite_text(texts, &text(1)), &[], rows);
            return self.noted(outcome);
        }
        self.each_batch(rows, |tx, size, values| {
            touched += tx.execute(&text(size), values)?;
            Ok(())
        })?;
        Ok(touched)
    }

    /// Changes many rows, each in its own way, with one statement for each batch:
    /// `before FROM (VALUES …) AS v after`. The columns of `v` are `column1`,
    /// `column2` … of the given kinds; both databases call them so. `fixed` are the
    /// values of `$1`, `$2` … that are the same for all rows.
    pub fn update_rows(
        &mut self,
        before: &str,
        fixed: &[Value<'_>],
        kinds: &[ValueKind],
        rows: &[Vec<Value<'_>>],
        after: &str,
    ) -> Result<u64> {
        if let Tx::Sqlite { connection, texts, .. } = self {
            let columns = kinds.len();
            let text = one_by_one::update_text(before, after, fixed.len(), columns);
            let outcome = one_by_one::execute(connection, sqlite_text(texts, &text), fixed, rows);
            return self.noted(outcome);
        }
        let dialect = self.dialect();
        let mut touched = 0;
        self.each_batch(rows, |tx, size, values| {
            let list = typed_values_list(dialect, fixed.len(), size, kinds);
            let sql = format!("{before} FROM (VALUES {list}) AS v {after}");
            touched += tx.execute(&sql, &[fixed, values].concat())?;
            Ok(())
        })?;
        Ok(touched)
    }

    /// Runs a query for many keys: a whole statement with `IN ($keys)` in it, where `fixed`
    /// are the values of `$1`, `$2` …. What it orders is in order for each key only.
    ///
    /// The list is padded with its last key to a power of two.
    pub fn query_in<T>(
        &mut self,
        sql: &str,
        fixed: &[Value<'_>],
        keys: &[Value<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if let Tx::Sqlite { connection, texts, .. } = self {
            let text = with_keys(sql, &format!("= ${}", fixed.len() + 1));
            let text = sqlite_text(texts, &text);
            let outcome = one_by_one::query(connection, text, fixed, keys, map);
            return self.noted(outcome);
        }
        let mut out = Vec::new();
        for keys in keys.chunks(ROWS_MAX) {
            let size = keys.len().next_power_of_two();
            let last = keys.last().expect("a chunk of a list is not empty");
            let padding = std::iter::repeat_n(last, size - keys.len());
            let values: Vec<Value<'_>> = fixed.iter().chain(keys).chain(padding).copied().collect();
            let text = with_keys(sql, &format!("IN {}", in_list(fixed.len() + 1, size)));
            out.append(&mut self.query(&text, &values, &mut map)?);
        }
        Ok(out)
    }

    /// Splits `rows` into batches and hands each, flat, with its size to `run`.
    fn each_batch(
        &mut self,
        rows: &[Vec<Value<'_>>],
        mut run: impl FnMut(&mut Self, usize, &[Value<'_>]) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let columns = first.len();
        let batch_max = ROWS_MAX.min(PARAMETERS_MAX / columns.max(1));
        let mut rest = rows;
        while !rest.is_empty() {
            let size = 1 << rest.len().min(batch_max).ilog2();
            let (batch, after_batch) = rest.split_at(size);
            let values: Vec<Value<'_>> = batch.iter().flatten().copied().collect();
            assert_eq!(values.len(), size * columns, "all rows of a batch have the same columns");
            run(self, size, &values)?;
            rest = after_batch;
        }
        Ok(())
    }

    /// Runs schema text: many statements, no arguments.
    pub(crate) fn run_schema(&mut self, sql: &str) -> Result<()> {
        let sql = self.dialect().schema(sql);
        let outcome = match self {
            Tx::Sqlite { connection, .. } => connection.execute_batch(&sql).map_err(Error::from),
            Tx::Postgres { transaction, .. } => {
                transaction.batch_execute(&sql).map_err(Error::from)
            }
        };
        self.noted(outcome)
    }
}

fn check(values: &[Value<'_>]) -> Result<()> {
    values.iter().try_for_each(Value::check)
}

fn borrowed<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn postgres::types::ToSql + Sync)> {
    values.iter().map(|value| value as _).collect()
}

fn sqlite_text<'a>(texts: &'a mut Texts, sql: &str) -> &'a str {
    if !texts.contains_key(sql) {
        if texts.len() >= STATEMENTS_MAX {
            texts.clear();
        }
        texts.insert(sql.into(), Dialect::Sqlite.statement(sql).into());
    }
    &texts[sql]
}

fn prepared(
    transaction: &mut postgres::Transaction<'_>,
    statements: &mut Statements,
    sql: &str,
) -> Result<postgres::Statement> {
    if let Some(statement) = statements.get(sql) {
        return Ok(statement.clone());
    }
    if statements.len() >= STATEMENTS_MAX {
        statements.clear();
    }
    let statement = transaction.prepare(&Dialect::Postgres.statement(sql))?;
    statements.insert(sql.into(), statement.clone());
    Ok(statement)
}

/// What follows `DO UPDATE SET` in an upsert that overwrites a row with a checksum: all columns
/// of a list but the keys, and the checksum.
pub(crate) fn overwritten(columns: &str, keys: &[&str]) -> String {
    let changed = columns.split(", ").chain(["checksum"]).filter(|column| !keys.contains(column));
    let changed: Vec<String> =
        changed.map(|column| format!("{column} = excluded.{column}")).collect();
    changed.join(", ")
}
