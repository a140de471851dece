//! The verbs that change definitions, or where jobs stand, carried out: one dispatcher
//! for every process that may write, so that a verb does the same whoever carries it out.
//!
//! A process that holds a data directory carries out what others ask of it through its
//! socket; a verb that finds nobody takes the directory itself. Invariant: a change of
//! definitions is one transaction, and what it changed is told in plain lines; who did it is
//! written down.

use super::answers::read;
use super::links::retention;
use super::{audit, authority, connection, connector, import, job, token};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use store::socket::Question;
use store::tables::audit as rows;
use store::{Db, Error, Tx, clock};

use crate::definitions::{self, Definitions};
use crate::refusal::{self, refuse};

/// Who carries out changes, and on what.
#[derive(Clone)]
pub struct Changes {
    /// The rows.
    pub db: Db,
    /// In whose name.
    who: String,
}

/// What a change came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// What is different now, or would be.
    pub changes: Vec<String>,
    /// Whether it was done; otherwise it was only looked at.
    pub applied: bool,
    /// Whether only a piece of it was done: asking again does the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl Changed {
    /// All of it was done, and came to this.
    pub fn done(changes: Vec<String>) -> Changed {
        Changed { changes, applied: true, more: false }
    }
}

impl Changes {
    /// The verbs that change something.
    pub const VERBS: [&str; 8] = [
        "connector",
        "authgroup",
        "authdomain",
        "connection",
        "import",
        "job",
        retention::VERB,
        "token",
    ];

    /// In somebody's name.
    pub fn new(db: Db, who: &str) -> Changes {
        Changes { db, who: who.to_owned() }
    }

    /// For whoever can use the command line here.
    pub fn by_command_line(db: Db) -> Changes {
        Changes::new(db, audit::COMMAND_LINE)
    }

    /// Whether a verb changes something.
    pub fn knows(verb: &str) -> bool {
        Changes::VERBS.contains(&verb)
    }

    /// Carries out a change; the error is a sentence for people.
    pub fn change(&self, question: &Question) -> Result<Json, String> {
        self.carry_out(question).map_err(|error| format!("{error:#}"))
    }

    /// Carries out a change, and writes down who did it: before it, and what came of it. What
    /// is only looked at is not written down.
    pub fn carry_out(&self, question: &Question) -> anyhow::Result<Json> {
        if question.args["dry_run"] == Json::Bool(true) {
            return self.dispatch(question);
        }
        self.recorded(question, || self.dispatch(question))
    }

    /// Does something that is a change, and writes down who did it: before it, and what came
    /// of it.
    pub fn recorded(
        &self,
        question: &Question,
        carry_out: impl FnOnce() -> anyhow::Result<Json>,
    ) -> anyhow::Result<Json> {
        let entry = audit::begun(&self.who, question)?;
        let id = entry.id;
        self.db.write(move |tx| rows::begin(tx, &entry))?;
        let collected = || self.db.read(definitions::collect).ok();
        let before = audit::takes_away(question).then(collected).flatten();
        let outcome = carry_out();
        // What failed for a reason of ours may be done in part: nobody knows.
        let is_known = outcome.as_ref().err().is_none_or(|error| refusal::told(error).is_some());
        if is_known {
            let (word, told) = audit::outcome(&outcome);
            let told = match word {
                "done" => audit::whole(told, before.as_ref(), collected),
                _ => told,
            };
            // If this cannot be written, it stays begun, which is true of it.
            if let Ok(head) = self.db.write(move |tx| rows::complete(tx, id, word, &told)) {
                audit::tell_head(head);
            }
        }
        outcome
    }

    fn dispatch(&self, question: &Question) -> anyhow::Result<Json> {
        let args = &question.args;
        let changed = match question.verb.as_str() {
            "connector" => connector::change(self, read(args)?)?,
            "authgroup" | "authdomain" => authority::change(self, read(args)?)?,
            "connection" => connection::change(self, read(args)?)?,
            "import" => import::change(self, read(args)?)?,
            retention::VERB => retention::change(self, read(args)?)?,
            // Not all it does is a change of definitions.
            "job" => return job::change(self, read(args)?),
            "token" => return token::change(self, read(args)?),
            verb => refuse!("{verb:?} changes nothing"),
        };
        Ok(serde_json::to_value(changed)?)
    }

    /// Makes definitions what a document says, which `make` builds from what is stored.
    /// A dry run only tells what would be different.
    pub fn define(
        &self,
        dry_run: bool,
        mut make: impl FnMut(&Definitions) -> anyhow::Result<Definitions> + Send + 'static,
    ) -> anyhow::Result<Changed> {
        let now_ms = clock::now_ms();
        let changes = match dry_run {
            true => self.db.read(move |tx| compare(tx, &mut make).map(|it| it.lines))?,
            false => self.db.write(move |tx| define(tx, now_ms, &mut make))?,
        };
        Ok(Changed { changes, applied: !dry_run, more: false })
    }
}

/// What is stored, what it is to become, and the difference.
struct Compared {
    stored: Definitions,
    new: Definitions,
    lines: Vec<String>,
}

fn compare(
    tx: &mut Tx<'_>,
    make: &mut dyn FnMut(&Definitions) -> anyhow::Result<Definitions>,
) -> store::Result<Compared> {
    let stored = definitions::collect(tx)?;
    let made = make(&stored).map_err(as_stored)?;
    let new = definitions::checked(&stored, &made).map_err(as_stored)?;
    let lines = definitions::difference(&stored, &new);
    Ok(Compared { stored, new, lines })
}

/// As [`Changes::define`], within a transaction that does something else too. Returns
/// what is different now.
pub fn define(
    tx: &mut Tx<'_>,
    now_ms: i64,
    make: &mut dyn FnMut(&Definitions) -> anyhow::Result<Definitions>,
) -> store::Result<Vec<String>> {
    let Compared { stored, new, lines } = compare(tx, make)?;
    definitions::apply(tx, &stored, &new, now_ms)?;
    Ok(lines)
}

/// An error as a transaction takes it. A refusal keeps all of its text; an error of the store
/// stays what it is, since some of them are tried again; everything else is a bug.
fn as_stored(error: anyhow::Error) -> Error {
    if let Some(why) = refusal::told(&error) {
        return Error::Refused(why);
    }
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Internal { reason: format!("{error:#}") },
    }
}
