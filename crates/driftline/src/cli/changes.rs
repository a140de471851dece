//! The verbs that change definitions, carried out: one dispatcher for every process that
//! may write, so that a verb does the same whoever carries it out.
//!
//! A process that holds a data directory carries out what others ask of it through its
//! socket; a verb that finds nobody takes the directory itself. Invariant: a change is
//! one transaction, and what it changed is told in plain lines.

use super::answers::read;
use super::{authority, connection, connector, import};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use store::socket::Question;
use store::{Db, Error, Tx, clock};

use crate::definitions::{self, Definitions};

/// The verbs that change definitions.
const VERBS: [&str; 5] = ["connector", "authgroup", "authdomain", "connection", "import"];

/// Who carries out changes, and on what.
#[derive(Clone)]
pub struct Changes {
    /// The rows.
    pub db: Db,
}

/// What a change came to.
#[derive(Debug, Serialize, Deserialize)]
pub struct Changed {
    /// What is different now, or would be.
    pub changes: Vec<String>,
    /// Whether it was done; otherwise it was only looked at.
    pub applied: bool,
}

impl Changes {
    /// Whether a verb changes definitions.
    pub fn knows(verb: &str) -> bool {
        VERBS.contains(&verb)
    }

    /// Carries out a change; the error is a sentence for people.
    pub fn change(&self, question: &Question) -> Result<Json, String> {
        self.dispatch(question).map_err(|error| format!("{error:#}"))
    }

    fn dispatch(&self, question: &Question) -> anyhow::Result<Json> {
        let args = &question.args;
        let changed = match question.verb.as_str() {
            "connector" => connector::change(self, read(args)?)?,
            "authgroup" | "authdomain" => authority::change(self, read(args)?)?,
            "connection" => connection::change(self, read(args)?)?,
            "import" => import::change(self, read(args)?)?,
            verb => anyhow::bail!("{verb:?} changes no definitions"),
        };
        Ok(serde_json::to_value(changed)?)
    }

    /// Makes definitions what a document says, which `make` builds from what is stored.
    /// A dry run only tells what would be different.
    pub fn define(
        &self,
        dry_run: bool,
        mut make: impl FnMut(&mut Tx<'_>, &Definitions) -> anyhow::Result<Definitions> + Send + 'static,
    ) -> anyhow::Result<Changed> {
        let now_ms = clock::now_ms();
        let run = move |tx: &mut Tx<'_>| {
            let stored = definitions::collect(tx)?;
            let made = make(tx, &stored).map_err(refused)?;
            let new = definitions::checked(&stored, &made).map_err(refused)?;
            let changes = definitions::difference(&stored, &new);
            if !dry_run {
                definitions::apply(tx, &stored, &new, now_ms)?;
            }
            Ok(changes)
        };
        let changes = if dry_run { self.db.read(run)? } else { self.db.write(run)? };
        Ok(Changed { changes, applied: !dry_run })
    }
}

/// What cannot be met as asked. An error of the store stays what it is: some of them are
/// tried again.
fn refused(error: anyhow::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Refused(format!("{error:#}")),
    }
}
