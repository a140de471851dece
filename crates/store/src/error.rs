//! The crate's one error type. A variant exists only if a caller acts on it.

/// What can go wrong with durable things, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// A statement failed for a reason no retry helps: a bug or a broken database.
    #[error("the database refused a statement: {reason}")]
    Statement {
        /// The database's own words.
        reason: String,
    },
    /// A unique key is already there; the caller knows whether that is fine.
    #[error("already there: {reason}")]
    Duplicate {
        /// The database's own words.
        reason: String,
    },
    /// Lost against concurrent work more often than `db::ATTEMPTS_MAX`; try later.
    #[error("the database is too busy: {reason}")]
    Conflict { reason: String },
    /// The database or object store cannot be reached; nothing was written.
    #[error("{what} cannot be reached: {reason}")]
    Unavailable { what: String, reason: String },
    /// The connection broke during a commit: it may or may not have happened.
    /// The caller looks, or repeats, since every write is safe to repeat.
    #[error("the connection broke during a commit, whose outcome is unknown: {reason}")]
    CommitUnknown { reason: String },
    /// Somebody else holds the lease now: stop, and forget uncommitted work.
    #[error("the lease on part {part} for {role} is lost")]
    LeaseLost { part: i64, role: String },
    /// The disk is full: pause, and go on when there is room.
    #[error("no space left on the disk that holds {what}")]
    Full {
        /// What could not be written.
        what: String,
    },
    /// Another process holds the data directory.
    #[error(
        "{path} is in use by process {owner}; `driftline status` asks it, \
         for other commands stop it first"
    )]
    InUse {
        path: String,
        /// The process that holds it.
        owner: String,
    },
    /// The schema is newer than this program.
    #[error(
        "the database has schema {found}, this program knows {known}; \
         use a newer driftline (nothing was changed)"
    )]
    NewerSchema {
        /// The schema that was found.
        found: i64,
        /// The newest this program knows.
        known: i64,
    },
    /// Stored bytes are not what was written: quarantine and restore.
    #[error("{what} is corrupt: {reason}")]
    Corrupt {
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A thing is larger than its format allows: the caller leaves it out.
    #[error("{what} has {bytes} bytes, more than the {max} allowed")]
    TooLarge { what: String, bytes: u64, max: u64 },
    /// Text with a NUL byte, which PostgreSQL cannot hold and so neither may SQLite.
    #[error("text contains a NUL byte: {start:?}")]
    Nul {
        /// How the text starts.
        start: String,
    },
    /// What the program relies on does not hold, by a bug of it or because somebody else has
    /// written what is not theirs: nothing was changed, and nobody can ask for it otherwise.
    #[error("{reason}")]
    Invariant {
        /// What was found instead.
        reason: String,
    },
    /// A request that cannot be met as asked; the message says what to change.
    #[error("{0}")]
    Refused(String),
    /// A unit of work met a bug of this program: it failed, and nothing else did.
    #[error("internal error: {reason}")]
    Internal {
        /// What the panic said.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    Io {
        path: String,
        /// Why. Not called `source`: it is in the message already.
        error: std::io::Error,
    },
    /// An object could not be read or written.
    #[error("object {path}: {reason}")]
    Object { path: String, reason: String },
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Stored bytes that are not what was written.
    pub fn corrupt(what: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Corrupt { what: what.into(), reason: reason.into() }
    }

    /// What the program relies on does not hold.
    pub fn invariant(reason: impl Into<String>) -> Error {
        Error::Invariant { reason: reason.into() }
    }

    /// Whether a bug of this program ended a unit of work.
    pub fn is_internal(&self) -> bool {
        matches!(self, Error::Internal { .. })
    }

    /// Whether the same may succeed later without anything being changed here: the
    /// database, the store or the disk was away, busy or full.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Error::Unavailable { .. }
                | Error::CommitUnknown { .. }
                | Error::Conflict { .. }
                | Error::Full { .. }
                | Error::Io { .. }
                | Error::Object { .. }
        )
    }

    /// The same error for another caller.
    pub(crate) fn copied(&self) -> Error {
        match self {
            Error::Full { what } => Error::Full { what: what.clone() },
            Error::Conflict { reason } => Error::Conflict { reason: reason.clone() },
            Error::Io { path, error } => {
                let error = match error.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(error.kind(), error.to_string()),
                };
                Error::Io { path: path.clone(), error }
            }
            Error::Corrupt { what, reason } => Error::corrupt(what, reason),
            other => Error::Statement { reason: other.to_string() },
        }
    }

    /// An I/O error with the file it is about; a full disk is told apart.
    pub fn io(path: impl AsRef<std::path::Path>, error: std::io::Error) -> Error {
        let path = path.as_ref().display().to_string();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Error::Full { what: path }
            }
            _ => Error::Io { path, error },
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        use rusqlite::ErrorCode::{
            CannotOpen, ConstraintViolation, DatabaseBusy, DatabaseCorrupt, DiskFull, ReadOnly,
            SystemIoFailure,
        };
        use std::io::ErrorKind::{Other, ReadOnlyFilesystem};
        let reason = error.to_string();
        let code = match &error {
            rusqlite::Error::SqliteFailure(code, _) => code,
            // What a column holds by its schema is not what is in it.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..) => {
                let next = "`driftline verify` names the row";
                return Error::corrupt("a row of the database", format!("{reason}; {next}"));
            }
            _ => return Error::Statement { reason },
        };
        // SQLite does not tell what the system said, but it tells these from a broken file.
        let io = |kind, reason| Error::Io {
            path: "the database".into(),
            error: std::io::Error::new(kind, reason),
        };
        match code.code {
            SystemIoFailure | CannotOpen => io(Other, reason),
            ReadOnly => io(ReadOnlyFilesystem, reason),
            DatabaseBusy => Error::Conflict { reason },
            DiskFull => Error::Full { what: "the database".into() },
            DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase => damaged(&reason),
            ConstraintViolation if is_unique(code.extended_code) => Error::Duplicate { reason },
            _ => Error::Statement { reason },
        }
    }
}

/// A database file that SQLite cannot read, with what to do about it.
fn damaged(reason: &str) -> Error {
    let next = "`driftline verify` tells what is left of it; the last backup comes back with \
                `driftline restore BACKUP --data NEW_DIRECTORY`, and the next crawl brings the rest";
    Error::corrupt("the database", format!("{reason}; {next}"))
}

fn is_unique(extended_code: i32) -> bool {
    matches!(
        extended_code,
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
    )
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Error {
        use postgres::error::SqlState;
        // The driver's own text is only "db error"; the server's words are inside.
        let reason = match error.as_db_error() {
            Some(inside) => format!("{} ({})", inside.message(), inside.code().code()),
            None => error.to_string(),
        };
        let unreachable = |reason| Error::Unavailable { what: "PostgreSQL".into(), reason };
        let Some(state) = error.code() else {
            let broken = error.is_closed() || std::error::Error::source(&error).is_some_and(is_io);
            return if broken { unreachable(reason) } else { Error::Statement { reason } };
        };
        match *state {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::LOCK_NOT_AVAILABLE => Error::Conflict { reason },
            SqlState::UNIQUE_VIOLATION => Error::Duplicate { reason },
            SqlState::DISK_FULL => Error::Full { what: "PostgreSQL's data".into() },
            SqlState::IO_ERROR => {
                Error::Io { path: "PostgreSQL's data".into(), error: std::io::Error::other(reason) }
            }
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
                Error::Corrupt { what: "PostgreSQL's data".into(), reason }
            }
            SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::TOO_MANY_CONNECTIONS
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            | SqlState::CONNECTION_EXCEPTION
            | SqlState::CONNECTION_FAILURE
            | SqlState::CONNECTION_DOES_NOT_EXIST => unreachable(reason),
            _ => Error::Statement { reason },
        }
    }
}

fn is_io(source: &(dyn std::error::Error + 'static)) -> bool {
    source.is::<std::io::Error>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_sqlite(code: i32) -> Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None).into()
    }

    #[test]
    fn trouble_of_the_disk_is_not_called_corruption() {
        use rusqlite::ffi;
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_FSYNC] {
            let error = of_sqlite(code);
            assert!(matches!(&error, Error::Io { .. }) && error.passes(), "{error}");
            assert!(error.to_string().contains("disk I/O error"), "{error}");
        }
        assert!(matches!(of_sqlite(ffi::SQLITE_FULL), Error::Full { .. }));
        let read_only = of_sqlite(ffi::SQLITE_READONLY);
        assert!(matches!(
            &read_only,
            Error::Io { error, .. } if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem
        ));
        assert!(matches!(of_sqlite(ffi::SQLITE_CORRUPT), Error::Corrupt { .. }));
        let copied = of_sqlite(ffi::SQLITE_IOERR).copied();
        assert!(matches!(copied, Error::Io { .. }), "whoever shares a commit is told the same");
    }
}
