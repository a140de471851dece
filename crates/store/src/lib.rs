//! Everything durable: rows and objects, and nothing else. Synchronous.
//!
//! Rows live in SQLite (one data directory) or PostgreSQL (many machines), behind
//! one shim and one SQL text: [`db`] owns the connections and their threads,
//! [`tx`] runs statements, [`dialect`] knows the few words that differ,
//! [`migrate`] keeps the schema. [`tables`] has one file for each table family,
//! as free functions over `&mut Tx`; the caller owns the transaction.
//!
//! Objects (chunk files, later shards and generations) live in a directory or an
//! S3 bucket behind [`objects`]; [`chunkfile`] is what a chunk's files look like.
//! [`sorted`] are maps for indexes that write at random.
//! [`datadir`] is all of it in one directory, with its lock; [`socket`] is how other
//! commands ask the process that holds it; [`backup`] copies it, [`copy`] moves it to
//! PostgreSQL and back, [`verify`] checks it, [`gc`] gives back what nothing needs any
//! more. Rows that matter carry checksums (`checksums`).
//!
//! [`memory`] divides what is kept in memory among caches and buffers; [`panics`] makes a panic in a unit of work a value.
//!
//! [`catalog`] is the form in which connectors, which live elsewhere, say what they are.
//!
//! Nothing here may be called inside an async task: calls block until the
//! database has answered.

pub mod backup;
pub mod beneath;
pub mod catalog;
pub(crate) mod checksums;
pub mod chunkfile;
pub mod clock;
pub mod collect;
pub mod copy;
pub mod datadir;
pub mod db;
pub mod dialect;
pub mod disk;
pub mod error;
pub mod foreign;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gc;
pub mod ids;
pub mod memory;
pub mod migrate;
mod names;
pub mod objects;
pub mod open_files;
pub mod ours;
pub mod owned;
pub mod pack;
pub mod panics;
pub mod patience;
pub mod sealing;
pub mod socket;
pub mod sorted;
pub mod tables;
pub mod targets;
pub mod tx;
pub mod value;
pub mod verify;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use db::Db;
pub use error::{Error, Result};
pub use tx::Tx;
pub use value::{Row, Value};
