//! What an output connector does with documents: takes them in, and lets them go.
//!
//! Invariant: whatever an output is told, it may be told again, and the second time
//! changes nothing; only what it answers to is taken as done.

use crate::fields::Fields;
use bytes::Bytes;
use page::facts::Facts;
use store::chunkfile::document::DocumentRole;

/// An open output connection.
pub trait Output: Send {
    /// Whether it can be reached and used: a connection is checked with this.
    fn check(&mut self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What it needs of documents.
    fn wants(&self) -> Wants;

    /// Applies operations in order, as a job specifies. One outcome for each, in order; an
    /// error is for all of them: nothing can be said to the output just now, and no
    /// document is to blame.
    fn apply(&mut self, spec: &str, operations: &[Operation]) -> Result<Vec<Outcome>, Unavailable>;

    /// A run of a job is over: whatever is kept back goes out.
    fn job_over(&mut self) -> Result<(), Unavailable> {
        Ok(())
    }
}

/// What an output needs of a document, each with what comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Wants {
    Name,
    Facts,
    Bytes,
}

/// A document that is to be put under a URI, or to be removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Where the document is kept.
    pub uri: String,
    /// Where it was kept, and must not be any more.
    pub stale: Vec<String>,
    /// What is there now; `None` removes it.
    pub content: Option<Content>,
}

/// What an output is given of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// What it says; empty unless wanted.
    pub facts: Facts,
    /// What is said of it, by name: made of the facts, changed by transformations.
    pub fields: Fields,
    /// Its size in bytes, as far as it is known.
    pub length: Option<i64>,
    /// Its bytes; `None` unless wanted, or if nobody has kept them.
    pub bytes: Option<Bytes>,
    /// The authority group that says who may see it.
    pub authority: Option<String>,
    /// When it changed last.
    pub changed_ms: Option<i64>,
    /// Whether it is a page, or only needed to show pages.
    pub role: DocumentRole,
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The output has the document, or has removed it.
    Taken,
    /// The document is not wanted, and nothing of it is there.
    Rejected {
        /// A word for the history.
        code: &'static str,
        /// A sentence for people.
        detail: String,
    },
    /// It is not done, and may be tried again.
    Trouble {
        /// A word for the history.
        code: &'static str,
        /// A sentence for people.
        detail: String,
    },
    /// It is not done, because the output has no room for it just now: the document is
    /// not to blame, and the output rests.
    Later(Unavailable),
}

/// Nothing can be said to an output just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Why, in a sentence.
    pub why: String,
    /// After how long it wants to be asked again, if it says so.
    pub retry_ms: Option<i64>,
}

impl Unavailable {
    /// For a reason, without a word on how long.
    pub fn because(why: impl Into<String>) -> Unavailable {
        Unavailable { why: why.into(), retry_ms: None }
    }
}
