//! Operations for tests of outputs: a document is put, a document goes.

use crate::fields;
use crate::output::{Content, Operation};
use page::facts::Facts;

/// A document with a text.
pub fn put(uri: &str, text: &str) -> Operation {
    let facts = Facts { title: "A title".into(), text: text.to_owned(), ..Facts::default() };
    let content = Some(Content { fields: fields::of(&facts, &[]), facts, ..Content::default() });
    Operation { uri: uri.to_owned(), stale: Vec::new(), content }
}

/// A document that goes.
pub fn drop_(uri: &str) -> Operation {
    Operation { uri: uri.to_owned(), stale: Vec::new(), content: None }
}

/// What an output is to hold: identifiers and texts.
pub fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}
