//! What is written into the audit log: a change before it is made, and what came of it.
//!
//! Invariants: nothing that is completed is changed or taken back; what is kept has no secrets,
//! because before a change only names are written, and after it only what it says of itself.

use crate::definitions::{self, Definitions};
use crate::refusal;
use std::sync::{Mutex, PoisonError};
use store::tables::audit::chain::ChainHead;
use store::tables::audit::{self, AuditEntry};
use store::{Db, clock};

/// The newest event of the log that this process has added, until somebody writes it down.
static NEWS: Mutex<Option<ChainHead>> = Mutex::new(None);

/// Notes an event that was committed.
pub fn note_head(head: Option<ChainHead>) {
    if head.is_some() {
        *NEWS.lock().unwrap_or_else(PoisonError::into_inner) = head;
    }
}

/// The newest event since the last call, for a log: whoever rewrites the database cannot
/// rewrite that, too.
pub fn take_head() -> Option<String> {
    NEWS.lock().unwrap_or_else(PoisonError::into_inner).take().map(|head| head.to_string())
}

/// What a change is about, as the audit log names it. It has names only, since the rest of a
/// request may have secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSubject {
    /// The command, such as `job`.
    pub verb: &'static str,
    /// What is done, such as `start`.
    pub action: String,
    /// What it is done to, if that has a name.
    pub name: Option<String>,
}

impl AuditSubject {
    /// A change of something that has a name.
    pub fn of(verb: &'static str, action: impl Into<String>, name: &str) -> AuditSubject {
        AuditSubject { verb, action: action.into(), name: Some(name.to_owned()) }
    }

    /// A change of something that has none.
    pub fn unnamed(verb: &'static str, action: &str) -> AuditSubject {
        AuditSubject { verb, action: action.to_owned(), name: None }
    }

    /// The entry of a change that is about to be made.
    pub fn begun_by(&self, who: &str) -> anyhow::Result<AuditEntry> {
        let changes = match &self.name {
            Some(name) => format!("{} {name}", self.action),
            None => self.action.clone(),
        };
        let (id, at_ms) = (new_id()?, clock::now_ms());
        let (who, verb, outcome) = (who.to_owned(), self.verb.to_owned(), String::new());
        Ok(AuditEntry { id, at_ms, who, verb, outcome, changes })
    }

    /// Whether definitions may be deleted: then they are read before.
    fn is_deletion(&self) -> bool {
        self.action == "delete"
    }
}

/// Makes a change, and writes down who did it: before it, and what came of it, of which
/// `outcome` tells.
pub fn recorded<T>(
    db: &Db,
    who: &str,
    subject: &AuditSubject,
    outcome: impl FnOnce(&T) -> String,
    make: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let entry = subject.begun_by(who)?;
    let id = entry.id;
    db.write(move |tx| audit::begin(tx, &entry))?;
    let collected = || db.read(definitions::collect).ok();
    let before = if subject.is_deletion() { collected() } else { None };
    let made = make();
    let (word, text) = match &made {
        Ok(made) => ("done", with_definitions(outcome(made), before.as_ref(), collected)),
        Err(error) if refusal::message(error).is_some() => ("refused", format!("{error:#}")),
        // What failed for a reason of ours may be done in part: nobody knows, and it stays begun.
        Err(_) => return made,
    };
    // If this cannot be written, it stays begun, which is true of it.
    if let Ok(head) = db.write(move |tx| audit::complete(tx, id, word, &text)) {
        note_head(head);
    }
    made
}

/// What came of a change, with each definition that is new or gone as a whole: later nobody
/// could tell.
pub fn with_definitions(
    changes: String,
    before: Option<&Definitions>,
    after: impl FnOnce() -> Option<Definitions>,
) -> String {
    let is_new = |line: &&str| line.ends_with(": new");
    let after = if changes.lines().any(|line| is_new(&line)) { after() } else { None };
    let mut out = String::new();
    for line in changes.lines() {
        out.push_str(line);
        out.push('\n');
        let label = line.rsplit_once(": ").map_or(line, |(label, _)| label);
        let (word, found) = match (is_new(&line), &after, before) {
            (true, Some(after), _) => ("is", definitions::one_line(after, label)),
            (false, _, Some(before)) => ("was", definitions::one_line(before, label)),
            _ => continue,
        };
        if let Some(found) = found {
            out.push_str(&format!("{label} {word} {found}\n"));
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// A random number, for an entry or a token.
pub fn new_id() -> anyhow::Result<i64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(i64::from_le_bytes(bytes) & i64::MAX)
}
