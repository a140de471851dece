//! From schedule to committed chunk: what to fetch next, fetching it politely,
//! and judging what came back.
//!
//! The crate meets `outputs` only in the committed chunk; neither may depend on
//! the other. So far it has the fetcher; the frontier and the worker move in with
//! the first crawl, and nothing of them lives elsewhere until then.

pub mod fetch;
