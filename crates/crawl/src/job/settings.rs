//! How a job works, whatever it works on: its delays, its patience, what it keeps.

use crate::connectors;
use crate::definitions::{BadSpec, WebSpec};
use store::patience::Patience;

/// The delays that a job keeps: its own, and the most it lets a host ask for.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Delays {
    pub job_ms: i64,
    pub crawl_delay_max_ms: i64,
}

/// How a job works, whatever it works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSettings {
    /// From the end of one request to a host to the start of the next.
    pub delay_ms: i64,
    /// The longest delay that a host may ask for.
    pub crawl_delay_max_ms: i64,
    /// How often and how long what fails is tried again, and how long a run waits for what
    /// cannot be done now.
    pub patience: Patience,
    /// Whether the bytes of documents are kept.
    pub bodies: bool,
    /// Documents the job takes in; `None` is no limit.
    pub pages_max: Option<i64>,
}

impl Default for JobSettings {
    fn default() -> JobSettings {
        JobSettings::of_web(&WebSpec::default())
    }
}

impl JobSettings {
    /// The delays that it keeps.
    pub fn delays(&self) -> Delays {
        Delays { job_ms: self.delay_ms, crawl_delay_max_ms: self.crawl_delay_max_ms }
    }

    pub(super) fn of_web(spec: &WebSpec) -> JobSettings {
        JobSettings {
            delay_ms: spec.delay_ms,
            crawl_delay_max_ms: spec.crawl_delay_max_ms,
            patience: Patience {
                retries: spec.retries,
                retry_ms: spec.retry_ms,
                most_ms: spec.patience_ms,
            },
            bodies: spec.bodies,
            pages_max: spec.pages_max,
        }
    }

    /// How a job of a connector works.
    pub fn of(connector: &str, docspec: &str) -> Result<JobSettings, BadSpec> {
        match connector {
            _ if connectors::is_web(connector) => {
                Ok(JobSettings::of_web(&WebSpec::from_json(docspec)?))
            }
            _ => Ok(JobSettings::of_others()),
        }
    }

    /// Of what is near at hand: nobody has to be spared.
    pub(super) fn of_others() -> JobSettings {
        let usual = JobSettings::of_web(&WebSpec::default());
        JobSettings { delay_ms: 0, bodies: false, ..usual }
    }
}
