//! What changes are made on, and what they come to.
//!
//! Invariant: a change of definitions is one transaction, and what it changed is told in plain
//! lines.

use super::crawl::hosted_runs::HostedCrawls;
use crate::definitions::{self, Definitions};
use crate::refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Db, Error, Tx, clock};

/// What changes are made on.
#[derive(Clone)]
pub struct ChangeContext {
    pub db: Db,
    /// Crawls that were handed over to this process, if it works on all jobs.
    pub hosted: Option<Arc<HostedCrawls>>,
}

/// What a change came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeResult {
    /// What is different now, or would be.
    pub changes: Vec<String>,
    /// Whether it was done; otherwise it was only tried.
    pub applied: bool,
    /// Whether only a piece of it was done: the same request does the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl ChangeResult {
    /// A change that was made as a whole.
    pub fn done(changes: Vec<String>) -> ChangeResult {
        ChangeResult { changes, applied: true, more: false }
    }

    /// What the audit log says of it.
    pub fn text(&self) -> String {
        self.changes.join("\n")
    }
}

impl ChangeContext {
    /// On rows, in a process that takes no crawls over.
    pub fn of_rows(db: Db) -> ChangeContext {
        ChangeContext { db, hosted: None }
    }

    /// Makes definitions what a document says, which `make` builds from what is stored.
    /// A dry run only tells what would be different.
    pub fn define(
        &self,
        dry_run: bool,
        mut make: impl FnMut(&Definitions) -> anyhow::Result<Definitions> + Send + 'static,
    ) -> anyhow::Result<ChangeResult> {
        let now_ms = clock::now_ms();
        let changes = match dry_run {
            true => self.db.read(move |tx| compare(tx, &mut make).map(|it| it.lines))?,
            false => self.db.write(move |tx| define(tx, now_ms, &mut make))?,
        };
        Ok(ChangeResult { changes, applied: !dry_run, more: false })
    }
}

/// What is stored, what it is to become, and the difference.
struct ComparedDefinition {
    stored: Definitions,
    new: Definitions,
    lines: Vec<String>,
}

fn compare(
    tx: &mut Tx<'_>,
    make: &mut dyn FnMut(&Definitions) -> anyhow::Result<Definitions>,
) -> store::Result<ComparedDefinition> {
    let stored = definitions::collect(tx)?;
    let made = make(&stored).map_err(as_stored)?;
    let new = definitions::checked(&stored, &made).map_err(as_stored)?;
    let lines = definitions::difference(&stored, &new);
    Ok(ComparedDefinition { stored, new, lines })
}

/// As [`ChangeContext::define`], within a transaction that does something else too. Returns
/// what is different now.
pub fn define(
    tx: &mut Tx<'_>,
    now_ms: i64,
    make: &mut dyn FnMut(&Definitions) -> anyhow::Result<Definitions>,
) -> store::Result<Vec<String>> {
    let ComparedDefinition { stored, new, lines } = compare(tx, make)?;
    definitions::apply(tx, &stored, &new, now_ms)?;
    Ok(lines)
}

/// An error as a transaction takes it. A refusal keeps all of its text; an error of the store
/// stays what it is, since some of them are tried again; everything else is a bug.
fn as_stored(error: anyhow::Error) -> Error {
    if let Some(why) = refusal::message(&error) {
        return Error::Refused(why);
    }
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Internal { reason: format!("{error:#}") },
    }
}
