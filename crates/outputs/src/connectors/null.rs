//! The null output: takes documents and keeps nothing, to try a job or to measure one.

use super::{read, written};
use serde::{Deserialize, Serialize};
use store::catalog::Connector;
use store::tables::connections::Kind;

/// Its configuration and its specification: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nothing {}

/// The connector.
pub const CONNECTOR: Connector = Connector {
    kind: Kind::Output,
    name: "null",
    about: "takes documents and keeps nothing, to try a job or to measure one",
    settings: &[],
    spec: &[],
    link_types: &[],
    check_config: |text| written(&read::<Nothing>(text)?),
    check_spec: |text| written(&read::<Nothing>(text)?),
    install: None,
    deinstall: None,
};
