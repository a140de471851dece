//! The transformations: what changes documents on their way to an output; one file and
//! one line each.
//!
//! Help, checks, forms and documents come from this list, as from that of the outputs.
//! Invariants: a transformation is a pure function of the document and its settings; it
//! never fails, but may say that a document is not to be sent.

pub mod allowed;
pub mod html;
pub mod language;
pub mod limiter;
pub mod metadata;

use crate::output::{Content, Wants};
use store::catalog::Connector;

/// Something that changes documents.
pub trait Transformation: Send {
    /// What it needs of documents.
    fn wants(&self) -> Wants {
        Wants::Facts
    }

    /// Changes what is given of a document, or says why it is not to be sent.
    fn change(&self, uri: &str, content: &mut Content) -> Result<(), Refusal>;
}

/// Why a document is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A word for the history.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

/// Opens a transformation with its configuration. The error is a sentence.
pub type Open = fn(&str) -> Result<Box<dyn Transformation>, String>;

/// Every transformation, and what opens it.
pub const ALL: &[(Connector, Open)] = &[
    (allowed::CONNECTOR, allowed::open),
    (html::CONNECTOR, html::open),
    (language::CONNECTOR, language::open),
    (limiter::CONNECTOR, limiter::open),
    (metadata::CONNECTOR, metadata::open),
];

/// Opens a transformation. What a job specifies is nothing for any of them so far.
pub fn open(class: &str, config: &str, spec: &str) -> Result<Box<dyn Transformation>, String> {
    let found = ALL.iter().find(|it| it.0.name == class);
    let (connector, open) =
        found.ok_or_else(|| format!("this program has no transformation {class}"))?;
    (connector.check_spec)(spec)?;
    open(config)
}
