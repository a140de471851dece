//! The null output: takes documents and keeps nothing, to try a job or to measure one.

use super::{read, written};
use crate::output::{Away, Deed, Outcome, Output, Wants};
use serde::{Deserialize, Serialize};
use store::catalog::Connector;
use store::tables::connections::Kind;

/// Its configuration and its specification: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nothing {}

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

    fn take(&mut self, _spec: &str, deeds: &[Deed]) -> Result<Vec<Outcome>, Away> {
        Ok(vec![Outcome::Taken; deeds.len()])
    }
}

/// The connector.
pub const CONNECTOR: Connector = Connector {
    kind: Kind::Output,
    name: "null",
    about: "takes documents and keeps nothing, to try a job or to measure one",
    settings: &[],
    spec: &[],
    link_types: &[],
    takes_bodies: false,
    check_config: |text| written(&read::<Nothing>(text)?),
    check_spec: |text| written(&read::<Nothing>(text)?),
    install: None,
    deinstall: None,
};
