//! Databases of others, read for their rows.
//!
//! The queries are the user's; what is written here only opens the database and wraps
//! them. Invariants: nothing is ever changed there (a SQLite file is opened for reading,
//! every PostgreSQL transaction is read-only); every statement has a deadline, and ends before
//! it when it is interrupted; of a list at most [`ROWS_AT_ONCE`] rows are held, of a value
//! [`VALUE_BYTES_MAX`] bytes.

mod postgresql;
mod sqlite;
mod statements;

use crate::{Error, Result};
use postgres::{CancelToken, Config};
use statements::RunningStatements;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of one value. Longer ones are an error of their row.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// Columns of one row.
pub const COLUMNS_MAX: usize = 200;
/// Bytes of a query.
pub const QUERY_BYTES_MAX: usize = 64 << 10;
/// Bytes of an id; rows with longer ones are passed over.
pub const ID_BYTES_MAX: usize = 1_024;
/// Rows of a list that are held at once.
const ROWS_AT_ONCE: i32 = 1_000;
/// How long a statement may take; for a list, until its next rows.
const STATEMENT_MAX: Duration = Duration::from_secs(60);
/// How long to wait for whoever writes to a SQLite file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections kept for later.
const IDLE_MAX: usize = 8;

/// Where a database is.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum Address {
    Sqlite(PathBuf),
    /// A PostgreSQL server and a database on it.
    Postgres(Box<Config>),
}

impl Address {
    /// Reads the absolute path of a SQLite file, or a URL or string that leads to
    /// PostgreSQL.
    pub fn parse(database: &str, password: Option<&str>) -> Result<Address> {
        let password = password.filter(|it| !it.is_empty());
        let refused = |reason: String| Err(Error::Refused(format!("database: {reason}")));
        if database.starts_with('/') {
            return match password {
                Some(_) => refused("a SQLite file has no password".to_owned()),
                None => Ok(Address::Sqlite(PathBuf::from(database))),
            };
        }
        let Ok(mut config) = database.parse::<Config>() else {
            return refused(format!(
                "{:?} is neither the absolute path of a SQLite file nor leads to PostgreSQL, as \
                 postgres://user@host/name does",
                // What comes before an @ may hold a password.
                database.rsplit('@').next().unwrap_or_default()
            ));
        };
        if config.get_password().is_some() {
            return refused(
                "leave the password out of it, and give it as password=…, which is shown to nobody"
                    .to_owned(),
            );
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return refused("it names no host; a socket is host=/its/directory".to_owned());
        }
        if let Some(password) = password {
            config.password(password);
        }
        Ok(Address::Postgres(Box::new(config)))
    }
}

/// A value that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ForeignValue {
    /// As text, whatever its type.
    Text(String),
    Bytes(Vec<u8>),
}

/// The columns of a row that are not null, with their names.
pub type Columns = Vec<(String, ForeignValue)>;

/// A foreign database, and connections to it that nobody uses at the moment.
pub struct Foreign {
    address: Address,
    statement_max: Duration,
    idle: Mutex<Vec<ForeignReader>>,
    running: Arc<RunningStatements>,
}

enum ForeignReader {
    Sqlite(Box<sqlite::Reader>),
    Postgres(Box<postgresql::Reader>),
}

impl ForeignReader {
    /// What ends a statement that a server is at.
    fn cancel_token(&self) -> Option<CancelToken> {
        match self {
            ForeignReader::Sqlite(_) => None,
            ForeignReader::Postgres(it) => it.cancel_token(),
        }
    }
}

impl Foreign {
    /// Connects to nothing yet.
    pub fn new(address: Address) -> Foreign {
        let (idle, running) = (Mutex::default(), Arc::default());
        Foreign { address, statement_max: STATEMENT_MAX, idle, running }
    }

    /// Ends what is under way, and returns at once. Whatever is asked now or later fails with
    /// an error that passes.
    pub fn interrupt(&self) {
        self.running.interrupt();
    }

    /// Whether that has happened.
    pub fn is_interrupted(&self) -> bool {
        self.running.is_interrupted()
    }

    /// Whether it can be opened.
    pub fn check(&self) -> Result<()> {
        self.with(|_| Ok(()))
    }

    /// Whether a query can be asked at all: for a list, or for one row by its id.
    pub fn check_query(&self, sql: &str, takes_id: bool) -> Result<()> {
        self.with(|open| match open {
            ForeignReader::Sqlite(it) => it.check(sql, takes_id),
            ForeignReader::Postgres(it) => it.check(sql, takes_id),
        })
    }

    /// Names the first column of every row, in the order in which they come. What is null,
    /// empty or too long is no id. Some may be named twice when the connection is lost.
    pub fn ids(&self, sql: &str, name: &mut dyn FnMut(String)) -> Result<()> {
        let mut named = |id: String| {
            if !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.contains('\0') {
                name(id);
            }
        };
        self.with(|open| match open {
            ForeignReader::Sqlite(it) => it.ids(sql, &mut named),
            ForeignReader::Postgres(it) => it.ids(sql, &mut named),
        })
    }

    /// The row that a query finds for an id.
    pub fn row(&self, sql: &str, id: &str) -> Result<Option<Columns>> {
        self.with(|open| match open {
            ForeignReader::Sqlite(it) => it.row(sql, id),
            ForeignReader::Postgres(it) => it.row(sql, id),
        })
    }

    fn open(&self) -> Result<ForeignReader> {
        Ok(match &self.address {
            Address::Sqlite(path) => {
                let interrupted = self.running.flag();
                ForeignReader::Sqlite(Box::new(sqlite::Reader::open(
                    path,
                    self.statement_max,
                    interrupted,
                )?))
            }
            Address::Postgres(config) => ForeignReader::Postgres(Box::new(
                postgresql::Reader::open(config, self.statement_max)?,
            )),
        })
    }

    fn with<T>(&self, mut work: impl FnMut(&mut ForeignReader) -> Result<T>) -> Result<T> {
        self.running.check()?;
        let held = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = held().pop();
        let reused = waiting.is_some();
        let mut open = match waiting {
            Some(open) => open,
            None => self.open()?,
        };
        let mut outcome = self.running.during(open.cancel_token(), || work(&mut open));
        // A connection may have died since it was used last, unnoticed.
        if reused && matches!(outcome, Err(Error::Unavailable { .. })) {
            open = self.open()?;
            outcome = self.running.during(open.cancel_token(), || work(&mut open));
        }
        // A SQLite file may be replaced by another one, so each look opens it again.
        let is_kept = matches!(open, ForeignReader::Postgres(_))
            && !matches!(outcome, Err(Error::Unavailable { .. }))
            && !self.is_interrupted();
        let mut idle = held();
        if is_kept && idle.len() < IDLE_MAX {
            idle.push(open);
        }
        outcome
    }
}

/// A query without what ends it.
fn stripped(sql: &str) -> &str {
    sql.trim_end_matches(|it: char| it.is_whitespace() || it == ';')
}

fn too_long() -> Error {
    let reason = format!("the query took longer than {} s", STATEMENT_MAX.as_secs());
    Error::Conflict { reason }
}

/// Refuses what is not a query for a list, or for one row by its id.
fn check_shape(columns: usize, parameters: usize, takes_id: bool) -> Result<()> {
    let reason = match (columns, parameters, takes_id) {
        (0, _, _) => "it returns no columns".to_owned(),
        (COLUMNS_MAX.., _, _) => format!("it returns {COLUMNS_MAX} columns or more"),
        (_, 1, true) | (_, 0, false) => return Ok(()),
        (_, _, true) => "it must take one parameter, $1, which is the id".to_owned(),
        (_, _, false) => "it takes a parameter, but there is none to give".to_owned(),
    };
    Err(Error::Statement { reason: format!("the query cannot be used: {reason}") })
}

fn sized(name: &str, cell: ForeignValue) -> Result<ForeignValue> {
    let bytes = match &cell {
        ForeignValue::Text(text) => text.len(),
        ForeignValue::Bytes(bytes) => bytes.len(),
    };
    if bytes > VALUE_BYTES_MAX {
        let (what, max) = (format!("column {name}"), VALUE_BYTES_MAX as u64);
        return Err(Error::TooLarge { what, bytes: bytes as u64, max });
    }
    Ok(cell)
}

#[cfg(test)]
mod tests;
