//! The process that holds a data directory, as other commands see it.

use super::Place;
use super::calls::question;
pub use crate::verbs::status::Holder;
use crate::verbs::status::Status;
use crate::verbs::{Change, Verb, wire};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::socket;

/// What a process is doing that holds a data directory and works on all of its jobs,
pub const DOING_WORK: &str = "work";
/// or that also answers callers;
pub const DOING_SERVE: &str = "serve";
/// and one that works on a single job.
pub const DOING_CRAWL: &str = "crawl";
/// What processes are doing that work on all jobs.
const WORKING: [&str; 2] = [DOING_WORK, DOING_SERVE];

/// What is read of the response to `status`.
#[derive(Deserialize)]
struct StatusHolder {
    holder: Option<Holder>,
}

impl Holder {
    /// Whether it works on all jobs, and so takes crawls over.
    pub fn works(&self) -> bool {
        WORKING.contains(&self.doing.as_str())
    }
}

impl Place {
    /// Who holds the directory and listens; `None` when nobody does.
    pub fn holder(&self) -> anyhow::Result<Option<Holder>> {
        let status = self.ask_socket::<StatusHolder>(Status::NAME, &())?;
        Ok(status.and_then(|status| status.holder))
    }

    /// Asks the process that holds the directory; `None` when there is none any more.
    pub fn ask_holder<V: Verb>(&self, request: &V::Request) -> anyhow::Result<Option<V::Response>> {
        self.ask_socket(V::NAME, request)
    }

    /// Has the process that holds the directory make a change; `None` when there is none any
    /// more.
    pub fn change_at_holder<C: Change>(
        &self,
        request: &C::Request,
    ) -> anyhow::Result<Option<C::Response>> {
        self.ask_socket(C::NAME, request)
    }

    fn ask_socket<T: DeserializeOwned>(
        &self,
        name: &str,
        request: &impl serde::Serialize,
    ) -> anyhow::Result<Option<T>> {
        let response = socket::ask(&self.data.layout(), &question(name, request)?)?;
        response.map(wire::response).transpose()
    }
}

/// Whether trouble is that another process holds the directory.
pub fn is_in_use(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(store::Error::InUse { .. }))
}
