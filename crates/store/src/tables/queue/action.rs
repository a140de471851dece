//! What is done with a document of the queue when its turn comes.

use crate::names::names;

/// What is to be done with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It is looked at.
    Fetch,
    /// It has lived long enough, and is removed.
    Expire,
    /// It leaves the job, because no run has found it again or because its removal was decided.
    Clean,
    /// It leaves the job, which is being deleted.
    Delete,
}

names!(Action of "a row of the queue" {
    Fetch = "fetch",
    Expire = "expire",
    Clean = "clean",
    Delete = "delete",
});

impl Action {
    /// Whether the document leaves its job without being looked at.
    pub fn sweeps(self) -> bool {
        matches!(self, Action::Clean | Action::Delete)
    }
}
