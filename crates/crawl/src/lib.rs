//! From schedule to committed chunk: what to fetch next, fetching it politely,
//! and judging what came back.
//!
//! The crate meets `outputs` only in the committed chunk; neither may depend on
//! the other. In the order a link meets them: [`definitions`] and [`begin`] say what a
//! run is, [`scope`] and [`trap`] decide whether a link belongs, [`frontier`] when its
//! turn comes, [`robots`] whether it may be asked for, [`fetch`] asks, [`compare`] says
//! what has changed, and [`worker`] joins them all.

pub mod begin;
pub mod compare;
pub mod definitions;
pub mod fetch;
pub mod frontier;
pub mod robots;
pub mod scope;
pub mod trap;
pub mod worker;
