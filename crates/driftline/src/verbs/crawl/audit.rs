//! What a crawl changes of its job, written down as every other change of definitions is.
//!
//! Invariant: a crawl that changes nothing leaves no entry.

use crate::definitions::{self, Definitions};
use crate::verbs::access::COMMAND_LINE;
use crate::verbs::audit_trail::{self, AuditSubject};
use store::Db;
use store::tables::audit as rows;

/// A change that is begun.
pub struct AuditedChange<'a> {
    db: &'a Db,
    id: i64,
    before: Definitions,
}

impl<'a> AuditedChange<'a> {
    /// Notes that a crawl is about to make or to edit a job.
    pub fn begin(db: &'a Db, job: &str) -> anyhow::Result<AuditedChange<'a>> {
        let entry = AuditSubject::of("crawl", "define", job).begun_by(COMMAND_LINE)?;
        let before = db.read(definitions::collect)?;
        let id = entry.id;
        db.write(move |tx| rows::begin(tx, &entry))?;
        Ok(AuditedChange { db, id, before })
    }

    /// It is done: what is different now is noted.
    pub fn done(&self) -> store::Result<()> {
        let after = self.db.read(definitions::collect)?;
        let lines = definitions::difference(&self.before, &after).join("\n");
        let told = audit_trail::with_definitions(lines, None, || Some(after));
        let id = self.id;
        self.db.write(move |tx| rows::complete(tx, id, "done", &told)).map(|_| ())
    }

    /// Nothing came of it.
    pub fn refused(&self, error: &anyhow::Error) {
        let (id, told) = (self.id, format!("{error:#}"));
        // If this cannot be written, it stays begun, which is true of it.
        let _ = self.db.write(move |tx| rows::complete(tx, id, "refused", &told));
    }
}
