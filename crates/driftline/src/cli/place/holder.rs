//! The process that holds a data directory, as other commands see it.

use super::Place;
use crate::cli::{serve, work};
use serde::Deserialize;
use serde_json::Value as Json;
use store::socket::{self, Question};

/// Who holds a directory.
#[derive(Debug, Clone, Deserialize)]
pub struct Holder {
    /// The number of the process.
    pub process: u32,
    /// The verb that it carries out.
    pub doing: String,
}

/// What is read of the answer to `status`.
#[derive(Deserialize)]
struct Status {
    holder: Option<Holder>,
}

impl Holder {
    /// Whether it works on all jobs, and so takes crawls over.
    pub fn works(&self) -> bool {
        [work::WORKING, serve::WORKING].contains(&self.doing.as_str())
    }
}

impl Place {
    /// Who holds the directory and listens; `None` when nobody does.
    pub fn holder(&self) -> anyhow::Result<Option<Holder>> {
        let question = Question { verb: "status".to_owned(), args: Json::Null };
        let Some(answer) = socket::ask(&self.data.layout(), &question)? else { return Ok(None) };
        Ok(serde_json::from_value::<Status>(answer)?.holder)
    }

    /// Asks the process that holds the directory; `None` when there is none any more.
    pub fn ask_holder(
        &self,
        verb: &str,
        args: impl serde::Serialize,
    ) -> anyhow::Result<Option<Json>> {
        let question = Question { verb: verb.to_owned(), args: serde_json::to_value(args)? };
        Ok(socket::ask(&self.data.layout(), &question)?)
    }
}

/// Whether trouble is that another process holds the directory.
pub fn is_in_use(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(store::Error::InUse { .. }))
}
