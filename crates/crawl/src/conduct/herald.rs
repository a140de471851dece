//! Who is told of what happens: outputs and notifications, which a crawl does not know.

use store::ids::JobId;

/// Who is told.
pub trait Herald: Send + Sync {
    /// A commit has decided what outputs must hear.
    fn committed(&self);

    /// A run of a job is over. The error is a sentence: somebody could not be told.
    fn run_over(&self, job: JobId) -> Result<(), String>;
}

/// Nobody is told: there are no outputs.
pub struct Silence;

impl Herald for Silence {
    fn committed(&self) {}

    fn run_over(&self, _job: JobId) -> Result<(), String> {
        Ok(())
    }
}
