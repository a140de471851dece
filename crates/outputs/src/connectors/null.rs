//! The null output: takes documents and keeps nothing, to try a job or to measure one.

use super::check_nothing;
use crate::output::{Operation, Outcome, Output, Unavailable, Wants};
use store::catalog::Connector;
use store::tables::connections::Kind;

/// Opens it.
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

/// The connector.
pub const CONNECTOR: Connector = Connector {
    kind: Kind::Output,
    name: "null",
    about: "takes documents and keeps nothing, to try a job or to measure one",
    settings: &[],
    not_destination: &[],
    spec: &[],
    link_types: &[],
    takes_bodies: false,
    check_config: check_nothing,
    check_spec: check_nothing,
    install: None,
    deinstall: None,
};
