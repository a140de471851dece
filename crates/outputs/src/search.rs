//! The search index: text search over everything that was crawled, at the cost of the
//! change.
//!
//! In the order of the flow: [`follow`] reads committed chunks of jobs that want it
//! ([`job_filter`]); [`schema`] says what the index has of a document, [`words`] what its words
//! are, [`access`] who may see it, [`anchor_text`] what others say of it; [`writer`] takes
//! documents, [`shard`] publishes versions of them, [`refresh`] looks what others say by now,
//! beside what the index has ([`indexed_links`]); [`server`] opens versions, whose files are
//! checked ([`file_checks`]) and which [`files`] show to the library; [`ask`] answers; [`rebuild`] makes the
//! whole anew, [`verify`] compares it with what is committed. Builder and server know
//! each other only by what is published.

pub mod access;
pub mod anchor_text;
pub mod ask;
pub mod file_checks;
pub mod files;
pub mod follow;
pub mod indexed_links;
mod job_filter;
pub mod rebuild;
pub mod refresh;
pub mod schema;
pub mod server;
pub mod shard;
pub mod verify;
pub mod words;
pub mod writer;

#[cfg(test)]
mod tests;
