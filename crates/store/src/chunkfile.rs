//! The chunk on disk: what a crawler learned of its documents, and their bodies.
//!
//! Two files per chunk, both immutable, both described in `docs/formats`:
//! [`facts`] holds one [`DocumentRecord`] per document and is what every output
//! reads; [`bodies`] holds the answers as received, as WARC records. [`warc`]
//! and [`warc_reader`] speak WARC in general, for export and for archives that
//! others made; [`http_head`] reads the HTTP message inside a record.
//!
//! Invariant: a file that was changed or cut anywhere is refused, and the error
//! names the place.

pub mod bodies;
pub mod document;
pub mod export;
pub mod facts;
pub mod http_head;
pub mod warc;
pub mod warc_reader;

pub use crate::objects::ChunkKey;
pub use document::{Access, Body, Change, DocumentRecord, Fetch, Field, Hop, RemoveReason};
