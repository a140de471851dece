//! From schedule to committed chunk: what to fetch next, fetching it politely,
//! and judging what came back.
//!
//! The crate meets `outputs` only in the committed chunk; neither may depend on the other.
//! [`schedule`] says when a job starts by itself, [`lifecycle`] and [`conduct`] carry it from
//! state to state. In the order a link meets them: [`definitions`] and [`begin`] say what a
//! run is, [`scope`], [`trap`], [`budget`] and [`hops`] decide whether a link belongs,
//! [`throttle`] and [`frontier`] when its turn comes, [`robots`] whether it may be asked for,
//! [`fetch`] asks, as whoever [`login`] has made of us, [`extract`] has read what is neither
//! HTML nor text, [`compare`] says what has changed, [`refetch`] when it is looked at again.
//! `stored_times` judges times that come from the tables. [`connectors`] are the repositories
//! there are, [`repository`] what those have in common that are not the web. [`job`] is a job
//! while it runs, `targets` the links of a page that it follows, `batch` what its commit will
//! write, [`ingest`] what outputs must hear of that, [`carrydown`] what documents hand to those
//! they lead to, `outbox` how it gets to other parts, and [`worker`] joins them all.
//! [`ask_again`] is what is asked for at once when a person starts a job.

pub mod ask_again;
mod batch;
pub mod begin;
pub mod budget;
pub mod carrydown;
pub mod compare;
pub mod conduct;
pub mod connectors;
pub mod definitions;
pub mod extract;
pub mod fetch;
pub mod frontier;
pub mod hops;
pub mod ingest;
pub mod job;
pub mod lifecycle;
pub mod login;
mod outbox;
pub mod refetch;
pub mod repository;
pub mod robots;
pub mod schedule;
pub mod scope;
mod stored_times;
mod targets;
pub mod throttle;
pub mod trap;
pub mod worker;
