//! How much memory the process keeps to be fast: the caches and write buffers of everything
//! that a crawl with both indexes has open, divided in one place.
//!
//! A larger share makes its owner write or read less; what it buys was measured for each
//! (bench/crawl, bench/queue, bench/links, bench/growth). Invariant: the shares stay within
//! [`TOTAL_BYTES`] together, so that none of them grows at the expense of the machine. What is
//! under way besides (pages that are being fetched and read, batches that wait for their
//! commit) is bounded where it arises, and comes to about as much again.

/// The sum of all shares below.
pub const TOTAL_BYTES: usize = 480 << 20;

/// Page cache of the connection that writes to SQLite.
pub const SQLITE_WRITER_BYTES: usize = 32 << 20;
/// Page cache of each connection that reads from SQLite.
pub const SQLITE_READER_BYTES: usize = 8 << 20;
/// Connections that read from SQLite.
pub const SQLITE_READERS: usize = 2;

/// Blocks of the link index that are kept in memory; a small index does not fill them. With 40 MB
/// a rebuild of a million pages takes 15 % longer.
pub const LINK_CACHE_BYTES: usize = 96 << 20;
/// The newest rows of one tree of a small link index, before they are written out. A larger index
/// has a sixteenth of its size for each, so that less is merged, up to the second number.
pub const LINK_TREE_BYTES: usize = 8 << 20;
/// The same of a large one, which is what the sum below counts with.
pub const LINK_TREE_BYTES_MAX: usize = 32 << 20;
/// Trees of the link index that are written to at full speed: pages, URIs, in-links, ranks.
const LINK_TREES_BUSY: usize = 4;

/// What one writer of the search index collects before it writes a segment. A crawl commits long
/// before; a rebuild takes 4 % longer with half of it.
pub const SEARCH_WRITER_BYTES: usize = 48 << 20;
/// Writers of the search index that are open at a time: one for a data directory, one for each
/// of so many parts beside PostgreSQL.
pub const SEARCH_WRITERS_MAX: usize = 4;

const _: () = assert!(
    SQLITE_WRITER_BYTES
        + SQLITE_READERS * SQLITE_READER_BYTES
        + LINK_CACHE_BYTES
        + LINK_TREES_BUSY * LINK_TREE_BYTES_MAX
        + SEARCH_WRITERS_MAX * SEARCH_WRITER_BYTES
        <= TOTAL_BYTES,
    "the shares exceed what there is to divide"
);
