//! From schedule to committed chunk: what to fetch next, fetching it politely,
//! and judging what came back.
//!
//! The crate meets `outputs` only in the committed chunk; neither may depend on
//! the other. So far it decides which links belong to a crawl: [`scope`] by the
//! job's rules, [`trap`] by their shape; [`frontier`] which
//! document comes next; and [`compare`] what has changed.

pub mod compare;
pub mod frontier;
pub mod scope;
pub mod trap;
