//! From schedule to committed chunk: what to fetch next, fetching it politely,
//! and judging what came back.
//!
//! The crate meets `outputs` only in the committed chunk; neither may depend on
//! the other. [`schedule`] says when a job starts by itself (it is to be asked by the life
//! cycle of jobs). In the order a link meets them: [`definitions`] and [`begin`] say what a
//! run is, [`scope`], [`trap`] and [`budget`] decide whether a link belongs, [`frontier`]
//! when its turn comes, [`robots`] whether it may be asked for, [`fetch`] asks,
//! [`compare`] says what has changed, [`refetch`] when it is looked at again, [`connectors`] what other repositories there are,
//! and [`worker`] joins them all but [`budget`], which
//! it is to ask next.

pub mod begin;
pub mod budget;
pub mod carrydown;
pub mod compare;
pub mod conduct;
pub mod connectors;
pub mod definitions;
pub mod fetch;
pub mod frontier;
pub mod hops;
pub mod ingest;
pub mod lifecycle;
pub mod refetch;
pub mod repository;
pub mod robots;
pub mod schedule;
pub mod scope;
pub mod throttle;
pub mod trap;
pub mod worker;
