//! Why a file of a mirror is not taken, or cannot be written.

/// What stops a consumer or a writer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a file of this kind, or a damaged one; no part of it is to be used.
    #[error("not well-formed near byte {at}: {what}")]
    Malformed {
        /// Where reading stopped.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// Beyond a limit, in reading or in writing.
    #[error("{what}: more than {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The most that is taken.
        limit: usize,
    },
    /// Written by a later version; whoever reads it now would miss what it means.
    #[error("format {found} is not known here, the newest that is: {known}")]
    UnknownFormat {
        /// As the file says.
        found: String,
        /// What is known.
        known: u32,
    },
    /// An operation that is not known here; whoever went on would lose what it means.
    #[error("operation {0:?} is not known here")]
    UnknownOperation(String),
    /// An x-file that does not follow the last one.
    #[error("x-file {found} does not follow {last}")]
    Gap {
        /// The last x-file that was applied.
        last: u64,
        /// The one that came.
        found: u64,
    },
    /// The mirror was built anew, and numbers began again: a snapshot is needed.
    #[error("x-file of epoch {found:?} for a directory of epoch {known:?}")]
    OtherEpoch {
        /// That of the directory index.
        known: String,
        /// That of the x-file.
        found: String,
    },
    /// An x-file that contradicts itself or the directory index.
    #[error("{url}: {what}")]
    Contradiction {
        /// The node concerned.
        url: String,
        /// What cannot be.
        what: &'static str,
    },
    /// Rules that cannot be meant so.
    #[error("{0}")]
    Rules(String),
    /// The reader or writer underneath.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
