//! Who is told of what happens: outputs and notifications, which a crawl does not know.

use store::Result;
use store::ids::JobId;

/// Who is told.
pub trait Herald: Send + Sync {
    /// A commit has decided what outputs must hear.
    fn committed(&self);

    /// A run of a job is over. An error says that somebody could not be told; if it passes,
    /// they are told again.
    fn run_over(&self, job: JobId) -> Result<()>;
}

/// Nobody is told: there are no outputs.
pub struct Silence;

impl Herald for Silence {
    fn committed(&self) {}

    fn run_over(&self, _job: JobId) -> Result<()> {
        Ok(())
    }
}
