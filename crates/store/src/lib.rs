//! Everything durable.

pub mod chunkfile;
pub mod error;
pub mod objects;

pub use error::{Error, Result};
