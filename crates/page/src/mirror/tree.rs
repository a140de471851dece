//! What x-files and directory indexes have in common: `website` with a `node`, which has nodes
//! in its `nodeList`, and so on. Fields stand in elements, what is ours in attributes.
//!
//! Invariant: at most [`DEPTH_MAX`] nodes in each other and [`NODES_MAX`] in all; nothing is
//! held but the fields of one node and a flag for each level.

mod read;
mod write;

pub(super) use self::read::{Event, Fields, TreeReader};
pub(super) use self::write::TreeWriter;

/// Nodes in each other: site, columns in columns, list, article.
pub const DEPTH_MAX: usize = 64;
/// Nodes of one file.
pub const NODES_MAX: usize = 10_000_000;
/// Bytes of a value: URLs, titles and what is said of a site.
pub const VALUE_BYTES_MAX: usize = 16 << 10;

fn too_deep() -> super::Error {
    super::Error::TooLarge { what: "nodes in each other", limit: DEPTH_MAX }
}

fn too_many() -> super::Error {
    super::Error::TooLarge { what: "nodes", limit: NODES_MAX }
}
