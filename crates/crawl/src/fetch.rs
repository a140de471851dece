//! Fetching: one URL asked for, politely bounded, judged as a value.
pub mod backoff;
pub mod decode;
pub mod guard;
pub mod outcome;
