//! From committed chunk to answers: every output consumes changes, in order,
//! idempotently, and keeps its cursor in the same atomic write as its effect.
//!
//! The crate meets `crawl` only in the committed chunk and in what its commit has decided
//! for each output; neither may depend on the other. [`delivery`] takes decisions through
//! [`transformations`] to [`output`]s, of which [`connectors`] has one file each;
//! [`notifications`] tell people what became of jobs. The two indexes, [`links`] and
//! [`search`], are consumers that [`follow`] hands committed chunks to, in order. [`rights`]
//! are the leases under which all of them work.

pub mod connectors;
pub mod delays;
pub mod delivery;
pub mod fields;
pub mod follow;
pub mod http;
pub mod links;
pub mod mirror;
pub mod notifications;
pub mod output;
mod perjob;
pub mod rights;
pub mod search;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transformations;
