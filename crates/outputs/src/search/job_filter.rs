//! Which jobs want their documents to be found, and which documents are for readers at all.
//!
//! Invariant: what a job has left that is gone is found.

use crate::perjob::PerJob;
use page::facts::{Facts, LinkKind};
use store::catalog::Searchable;
use store::ids::JobId;
use store::{Db, Error, Result};

/// Whether a document is one for readers. A sitemap is not: it has neither title nor text, and
/// lists pages for crawlers.
pub fn is_for_readers(facts: &Facts) -> bool {
    let lists_pages = facts.links.iter().any(|link| link.kind == LinkKind::Sitemap);
    !(lists_pages && facts.title.is_empty() && facts.text.is_empty())
}

/// Which jobs want their documents in the search index, read once for each version of a job.
#[derive(Default)]
pub struct JobFilter {
    known: PerJob<bool>,
}

impl JobFilter {
    /// A batch begins: jobs may have changed their minds.
    pub fn begin(&mut self) {
        self.known.begin();
    }

    /// Whether a job wants its documents to be found.
    pub fn of(&mut self, db: &Db, job: JobId) -> Result<bool> {
        self.known.of(db, job, |found| {
            let Some(found) = found else { return Ok(true) };
            // Its documents wait in their chunks until somebody can read what is wanted of them.
            let said = Searchable::of(&found.job.docspec).ok_or_else(|| {
                Error::corrupt(format!("job {job}"), "its specification cannot be read".to_owned())
            })?;
            Ok(said.0)
        })
    }
}
