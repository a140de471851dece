//! The bounds of fetching, all in one place.
//!
//! Every wait, every buffer and every pool of the fetcher takes its bound from here.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// How long and how much. The defaults suit the open web; tests use milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
// tidy: wide one limit each, set together
pub struct Limits {
    /// Resolving, connecting and the TLS handshake together.
    pub connect: Duration,
    /// From the request to the whole head of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// The whole request, from the wait for a connection to the last byte.
    pub total: Duration,
    /// What a bound on bytes a second may add to that: our own waits, not the server's.
    pub paced: Duration,
    /// A body must bring `rate_bytes` in every such stretch of time.
    pub rate_window: Duration,
    /// See `rate_window`.
    pub rate_bytes: u64,
    /// How many headers an answer may have.
    pub headers_max: usize,
    /// How large the head of an answer may be. HTTP/1 needs at least 8 KiB.
    pub header_bytes_max: usize,
    /// How much is kept of HTML and text.
    pub page_bytes_max: usize,
    /// How much is kept of everything else.
    pub other_bytes_max: usize,
    /// Open connections, busy or idle, of one fetcher.
    pub connections_max: usize,
    /// Open connections to one origin.
    pub connections_per_origin_max: usize,
    /// How long a connection is kept without use.
    pub keep_idle: Duration,
    /// Names being looked up at a time.
    pub lookups_max: usize,
    /// How long an answer of the resolver is believed.
    pub names_kept: Duration,
    /// How many names are remembered.
    pub names_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
            idle: Duration::from_secs(15),
            total: Duration::from_secs(120),
            paced: Duration::from_secs(3_600),
            rate_window: Duration::from_secs(30),
            rate_bytes: 30 * 1024,
            headers_max: 128,
            header_bytes_max: 64 * KIB,
            page_bytes_max: 16 * MIB,
            other_bytes_max: 64 * MIB,
            connections_max: 512,
            connections_per_origin_max: 8,
            keep_idle: Duration::from_secs(60),
            lookups_max: 32,
            names_kept: Duration::from_secs(300),
            names_max: 20_000,
        }
    }
}
