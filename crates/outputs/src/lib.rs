//! From committed chunk to answers: every output consumes changes, in order,
//! idempotently, and keeps its cursor in the same atomic write as its effect.
//!
//! The crate meets `crawl` only in the committed chunk; neither may depend on
//! the other. So far it has what [`connectors`] say of themselves: the link index and the
//! text index move in with their own first queries, and nothing of them lives elsewhere
//! until then.

pub mod connectors;
