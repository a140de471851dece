//! From schedule to committed chunk: what to fetch next, fetching it politely,
//! and judging what came back.
//!
//! The crate meets `outputs` only in the committed chunk; neither may depend on
//! the other. In the order a link meets them: [`scope`] and [`trap`] decide whether
//! it belongs, [`frontier`] when its turn comes, [`fetch`] asks for it, [`compare`]
//! says what has changed. The worker that joins them comes with the first crawl.

pub mod begin;
pub mod compare;
pub mod definitions;
pub mod fetch;
pub mod frontier;
pub mod robots;
pub mod scope;
pub mod trap;
pub mod worker;
