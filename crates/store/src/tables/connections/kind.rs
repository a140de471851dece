//! The kinds of connections, by their names in tables and on the command line.

use crate::{Error, Result};

/// What a connection connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ConnectionKind {
    Repository,
    Output,
    Authority,
    Mapping,
    Transformation,
    Notification,
}

impl ConnectionKind {
    /// All kinds, in the order in which they refer to each other.
    pub const ALL: [ConnectionKind; 6] = [
        ConnectionKind::Repository,
        ConnectionKind::Output,
        ConnectionKind::Transformation,
        ConnectionKind::Authority,
        ConnectionKind::Mapping,
        ConnectionKind::Notification,
    ];

    /// The kind of a name.
    pub fn parse(name: &str) -> Option<ConnectionKind> {
        ConnectionKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind that a row has.
    pub(in crate::tables) fn read(name: &str) -> Result<ConnectionKind> {
        ConnectionKind::parse(name).ok_or_else(|| {
            Error::corrupt("a row of connections", format!("there is no kind {name:?}"))
        })
    }

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionKind::Repository => "repository",
            ConnectionKind::Output => "output",
            ConnectionKind::Authority => "authority",
            ConnectionKind::Mapping => "mapping",
            ConnectionKind::Transformation => "transformation",
            ConnectionKind::Notification => "notification",
        }
    }
}
