//! The transformations between the stored facts and an output, in order.
//!
//! Invariant: what comes out depends on what goes in and on the settings, and on nothing
//! else, so that a document may be sent again.

use crate::output::{Content, Wants};
use crate::transformations::{self, Refusal, Transformation};
use store::tables::outlets::Step;

/// The way of a job's documents to an output.
pub(super) struct Way {
    steps: Vec<Box<dyn Transformation>>,
}

impl Way {
    /// Opens the steps. The error is a sentence that names the one that cannot be used.
    pub fn open(steps: &[Step]) -> Result<Way, String> {
        let opened = steps.iter().map(|it| {
            let opened = transformations::open(&it.classname, &it.config, &it.spec);
            opened.map_err(|why| format!("transformation {} cannot be used: {why}", it.name))
        });
        Ok(Way { steps: opened.collect::<Result<_, _>>()? })
    }

    /// What it needs of documents.
    pub fn wants(&self) -> Wants {
        self.steps.iter().map(|it| it.wants()).max().unwrap_or(Wants::Name)
    }

    /// Changes what is given of a document, or says why it is not to be sent.
    pub fn walk(&self, uri: &str, content: &mut Content) -> Result<(), Refusal> {
        self.steps.iter().try_for_each(|it| it.change(uri, content))
    }
}
