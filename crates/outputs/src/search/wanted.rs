//! Which jobs want their documents to be found.
//!
//! Invariant: what a job has left that is gone is found.

use crate::perjob::PerJob;
use store::catalog::Searchable;
use store::ids::JobId;
use store::{Db, Error, Result};

/// What jobs say.
#[derive(Default)]
pub struct Wanted {
    known: PerJob<bool>,
}

impl Wanted {
    /// Whether a job wants its documents to be found.
    pub fn of(&mut self, db: &Db, job: JobId) -> Result<bool> {
        self.known.of(db, job, |found| {
            let Some(found) = found else { return Ok(true) };
            // Its documents wait in their chunks until somebody can read what is wanted of them.
            let said = Searchable::of(&found.docspec).ok_or_else(|| {
                Error::corrupt(format!("job {job}"), "its specification cannot be read".to_owned())
            })?;
            Ok(said.0)
        })
    }
}
