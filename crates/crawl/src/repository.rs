//! What a repository connector does for a job at work, when it is not the web.
//!
//! The web has its own path, because politeness, robots.txt and redirects are its
//! affair alone. Every other connector names seeds and looks at one document at a time;
//! the worker does the rest. Invariant: a connector says what it found and never what
//! follows from it, so that all of them retry, compare and commit alike.

use crate::lifecycle::Model;
use bytes::Bytes;
use page::facts::Facts;
use store::tables::carrydown::Data;
use store::tables::queue::ReasonCode;

/// A connector with a job's specification.
pub trait Repository: Send + Sync {
    /// What it can tell of changes.
    fn model(&self) -> Model;

    /// Names the documents where a run begins. `since` is what it returned last time, if
    /// anything; what it returns says how far it has come. An error that passes has it
    /// tried again, any other ends the run.
    fn seed(
        &self,
        since: Option<&str>,
        now_ms: i64,
        name: &mut dyn FnMut(String),
    ) -> store::Result<Option<String>>;

    /// Fails, with an error that passes, while the repository is not there, or has nothing
    /// although the job has documents of it (`has_documents`): neither means that these are
    /// gone.
    fn check_available(&self, _has_documents: bool) -> store::Result<()> {
        Ok(())
    }

    /// What a document's turn is counted by; the same for all, unless it says otherwise.
    fn bin<'a>(&self, _docid: &'a str) -> &'a str {
        ""
    }

    /// What a document lies together with: those of a group are found and committed
    /// together, because they are in the same part. Never changes for a document.
    fn group<'a>(&self, docid: &'a str) -> &'a str {
        docid
    }

    /// Where outputs keep a document: at its identifier, unless it says otherwise.
    fn uri(&self, docid: &str) -> String {
        docid.to_owned()
    }

    /// Why a document does not belong to the job any more.
    fn unwanted(&self, _docid: &str) -> Option<(ReasonCode, String)> {
        None
    }

    /// Whether documents hand values to those they lead to.
    fn carries(&self) -> bool {
        false
    }

    /// Looks at a document.
    fn look(&self, docid: &str, known: KnownVersion<'_>) -> LookResult;

    /// Ends what is under way, because the job or the process stops, and returns at once.
    /// Seedings and looks fail from now on, with trouble that passes. Who never takes long
    /// need not.
    fn interrupt(&self) {}

    /// Whether that has happened.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// What is known of a document before it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct KnownVersion<'a> {
    /// What the connector said of it when it was read last; `None` has it read again.
    pub version: Option<&'a str>,
    /// What those that lead to it have handed it.
    pub data: &'a Data,
}

/// What a look at a document has found.
#[allow(missing_docs)]
pub enum LookResult {
    /// There is no such document.
    Missing,
    /// It leads to others, and says nothing itself.
    Container { references: Vec<Reference> },
    /// It is as it was.
    Same,
    /// It is new, or different.
    Read(Box<Read>),
    /// It cannot be looked at.
    Trouble {
        /// A word for the tables.
        code: &'static str,
        /// A sentence for people.
        detail: String,
        /// Whether it is worth another try.
        passes: bool,
    },
}

/// A document that was read.
#[allow(missing_docs)]
pub struct Read {
    /// What it is recognised by next time.
    pub version: String,
    pub facts: Facts,
    /// What its repository says of it beside that, by name; outputs get it as fields.
    pub fields: Data,
    pub body: Bytes,
    /// When it was changed, if anybody knows.
    pub modified_ms: Option<i64>,
    pub references: Vec<Reference>,
}

/// A document that another leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Reference {
    pub docid: String,
    /// How: one of the connector's link types.
    pub link: &'static str,
    /// What it is handed.
    pub data: Data,
}
