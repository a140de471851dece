//! What a continuous job has learned of how to spend its fetches, as a line of text that
//! only the crawl understands.
//!
//! Invariant: it is no part of where the job stands, so writing it moves nothing; of two
//! processes that write, the last one is kept, which is as good as the other.

use crate::ids::JobId;
use crate::{Result, Tx};

/// What was learned; `None` if nothing was.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<Option<String>> {
    let found =
        tx.query_opt("SELECT refetch FROM job_states WHERE jobid = $1", &[job.into()], |row| {
            row.get::<Option<String>>(0)
        })?;
    Ok(found.flatten())
}

/// Keeps what was learned.
pub fn save(tx: &mut Tx<'_>, job: JobId, learned: &str) -> Result<()> {
    tx.execute(
        "UPDATE job_states SET refetch = $2 WHERE jobid = $1",
        &[job.into(), learned.into()],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionId;
    use crate::tables::connections::{self, Connection, ConnectionKind};
    use crate::tables::job_states;
    use crate::tables::jobs::{self, Job};
    use crate::testing::both_databases;

    #[test]
    fn what_was_learned_is_kept_and_changes_nothing_else() {
        both_databases(|db| {
            let job = JobId(1);
            db.write(move |tx| {
                let web = Connection::new(ConnectionId(1), "web", "web");
                connections::save(tx, ConnectionKind::Repository, &web, 0)?;
                jobs::save(tx, &Job::new(job, "a", ConnectionId(1)), 1)
            })?;
            let before = db.read(move |tx| job_states::state(tx, job))?;
            assert_eq!(db.read(move |tx| load(tx, job))?, None);
            db.write(move |tx| save(tx, job, "1 2 3"))?;
            assert_eq!(db.read(move |tx| load(tx, job))?.as_deref(), Some("1 2 3"));
            assert_eq!(db.read(move |tx| job_states::state(tx, job))?, before);
            Ok(())
        });
    }
}
