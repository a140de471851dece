//! What can go wrong with durable things, one variant per way a caller acts.

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something durable could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Stored bytes are not what was written: the caller quarantines them.
    #[error("{what} is corrupt: {reason}")]
    Corrupt {
        /// The thing, and where in it.
        what: String,
        /// What was found.
        reason: String,
    },
    /// The operating system refused a file.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The object store refused, and would refuse again: settings, rights, or a name in use.
    #[error("object {path}: {reason}")]
    Object {
        /// The object's path.
        path: String,
        /// The store's answer.
        reason: String,
    },
    /// A service did not answer in time: the caller tries later.
    #[error("{what} is unavailable: {reason}")]
    Unavailable {
        /// The service or thing.
        what: String,
        /// What happened.
        reason: String,
    },
    /// A thing is larger than its format allows: the caller leaves it out.
    #[error("{what} has {bytes} bytes, more than the {max} allowed")]
    TooLarge {
        /// The thing.
        what: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
}

impl Error {
    /// Stored bytes that are not what was written.
    pub fn corrupt(what: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Corrupt { what: what.into(), reason: reason.into() }
    }
}
