//! A SQLite file of somebody else's, opened for reading.
//!
//! Invariant: no statement changes the file, attaches another, or runs past its deadline or an
//! interrupt.

use super::{BUSY_TIMEOUT, Columns, ForeignValue, VALUE_BYTES_MAX, check_shape, too_long};
use crate::{Error, Result, ours};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps of SQLite's machine between two looks at the clock.
const STEPS_UNWATCHED: i32 = 10_000;

pub(super) struct Reader {
    connection: Connection,
    statement_max: Duration,
    opened: Instant,
    /// Milliseconds from the opening until when the statement at work may take.
    until_ms: Arc<AtomicU64>,
}

impl Reader {
    /// Opens a file whose statements end after a time, or when a flag is set.
    pub(super) fn open(
        path: &Path,
        statement_max: Duration,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Reader> {
        if ours::is_within(path) {
            return Err(Error::Refused(format!("{}: {}", path.display(), ours::REFUSED)));
        }
        let away = |error: rusqlite::Error| match failed(error) {
            Error::Corrupt { reason, .. } => Error::corrupt(path.display().to_string(), reason),
            error if error.passes() => {
                Error::Unavailable { what: path.display().to_string(), reason: error.to_string() }
            }
            error => error,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(away)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(away)?;
        let most = i32::try_from(VALUE_BYTES_MAX).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most).map_err(away)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(away)?;
        // The last statement reads the file, so that what is no database is told at once.
        connection
            .execute_batch(
                "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA schema_version;",
            )
            .map_err(away)?;
        let (opened, until_ms) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
        let until = until_ms.clone();
        let ends = move || {
            interrupted.load(Ordering::Relaxed) || ms_since(opened) > until.load(Ordering::Relaxed)
        };
        connection.progress_handler(STEPS_UNWATCHED, Some(ends)).map_err(away)?;
        Ok(Reader { connection, statement_max, opened, until_ms })
    }

    /// Gives a statement its time.
    fn grant(&self) {
        let until_ms = ms_since(self.opened).saturating_add(millis(self.statement_max));
        self.until_ms.store(until_ms, Ordering::Relaxed);
    }

    pub(super) fn check(&self, sql: &str, takes_id: bool) -> Result<()> {
        self.prepared(sql, takes_id).map(|_| ())
    }

    pub(super) fn ids(&self, sql: &str, name: &mut dyn FnMut(String)) -> Result<()> {
        let mut statement = self.prepared(sql, false)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if let Some(ForeignValue::Text(id)) = cell(row.get_ref(0).map_err(failed)?) {
                name(id);
                // Whoever takes them may be slow.
                self.grant();
            }
        }
        Ok(())
    }

    pub(super) fn row(&self, sql: &str, id: &str) -> Result<Option<Columns>> {
        let mut statement = self.prepared(sql, true)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([id]).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else { return Ok(None) };
        let mut columns = Columns::new();
        for (index, name) in names.into_iter().enumerate() {
            let cell = cell(row.get_ref(index).map_err(failed)?);
            columns.extend(cell.map(|cell| (name, cell)));
        }
        if rows.next().map_err(failed)?.is_some() {
            return Err(several());
        }
        Ok(Some(columns))
    }

    /// A statement that only reads, and has its time from now on.
    fn prepared(&self, sql: &str, takes_id: bool) -> Result<Statement<'_>> {
        self.grant();
        let statement = self.connection.prepare(sql).map_err(failed)?;
        check_shape(statement.column_count(), statement.parameter_count(), takes_id)?;
        if !statement.readonly() {
            let reason = "the query would change the database".to_owned();
            return Err(Error::Statement { reason });
        }
        Ok(statement)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn ms_since(then: Instant) -> u64 {
    millis(then.elapsed())
}

/// More than one row is for one id.
pub(super) fn several() -> Error {
    Error::Statement { reason: "the query finds more than one row for the id".to_owned() }
}

fn cell(value: ValueRef<'_>) -> Option<ForeignValue> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(number) => ForeignValue::Text(number.to_string()),
        ValueRef::Real(number) => ForeignValue::Text(number.to_string()),
        ValueRef::Text(text) => ForeignValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => ForeignValue::Bytes(bytes.to_vec()),
    })
}

/// What went wrong, by whether it may pass.
fn failed(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => too_long(),
        Some(ErrorCode::TooBig) => Error::TooLarge {
            what: "a value".to_owned(),
            bytes: VALUE_BYTES_MAX as u64 + 1,
            max: VALUE_BYTES_MAX as u64,
        },
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::PermissionDenied,
        ) => Error::Unavailable { what: "the file".into(), reason: error.to_string() },
        _ => Error::from(error),
    }
}
