//! The null output: takes documents and keeps nothing, to try a job or to measure one.

use super::base;
use crate::output::{Operation, Outcome, Output, Unavailable, Wants};
use store::catalog::Connector;
use store::tables::connections::ConnectionKind;

/// Opens an output that takes everything and keeps nothing.
pub fn open(_config: &str) -> Result<Box<dyn Output>, String> {
    Ok(Box::new(Null))
}

/// A null output, open.
pub struct Null;

impl Output for Null {
    fn wants(&self) -> Wants {
        Wants::Name
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, Unavailable> {
        Ok(vec![Outcome::Taken; operations.len()])
    }
}

/// Registers the output, which has no settings.
pub const CONNECTOR: Connector = base(
    ConnectionKind::Output,
    "null",
    "accepts documents and discards them, to test or measure a job",
);
