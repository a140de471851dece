//! The whole database at a glance, from counters and small tables only: it costs
//! the same with ten documents as with ten million.

use crate::ids::JobId;
use crate::{Result, Tx};

/// Jobs shown; an overview is not a list.
const JOBS_MAX: i64 = 100;

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Overview {
    /// Parts of the database.
    pub parts: u32,
    /// The schema's version.
    pub schema: i64,
    /// Commits over all parts.
    pub commits: i64,
    /// Jobs with their documents by state.
    pub jobs: Vec<JobOverview>,
}

/// One job's documents, by state.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct JobOverview {
    /// The job.
    pub id: i64,
    /// Its name, if it is defined.
    pub name: Option<String>,
    /// Counters that are not zero, by name.
    pub counters: std::collections::BTreeMap<String, i64>,
}

/// Reads the overview.
pub fn read(tx: &mut Tx<'_>) -> Result<Overview> {
    let schema = tx.query_one("SELECT MAX(version) FROM schema_versions", &[], |row| row.get(0))?;
    let commits = tx.query_one(
        "SELECT COALESCE(CAST(SUM(seq) AS BIGINT), 0) FROM leases WHERE role = 'crawl'",
        &[],
        |row| row.get(0),
    )?;
    let jobs: Vec<(JobId, Option<String>)> = tx.query(
        "SELECT j.jobid, d.name
         FROM (SELECT DISTINCT jobid FROM counters WHERE jobid > 0) j
         LEFT JOIN job_definitions d ON d.id = j.jobid
         ORDER BY j.jobid LIMIT $1",
        &[JOBS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut overview =
        Overview { parts: super::settings::parts(tx)?, schema, commits, jobs: Vec::new() };
    for (job, name) in jobs {
        let counters = super::counters::of_job(tx, job)?
            .into_iter()
            .filter(|(_, value)| *value != 0)
            .collect();
        overview.jobs.push(JobOverview { id: job.0, name, counters });
    }
    Ok(overview)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Part;
    use crate::objects::{Location, Objects};
    use crate::testing::{both_databases, commit_sample};

    #[test]
    fn an_overview_tells_jobs_commits_and_documents() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            commit_sample(db, &store, Part(0), 0)?;
            commit_sample(db, &store, Part(2), 0)?;
            let overview = db.read(read)?;
            assert_eq!((overview.parts, overview.commits, overview.jobs.len()), (4, 2, 1));
            let counters: Vec<_> = overview.jobs[0].counters.clone().into_iter().collect();
            assert_eq!(counters, [("done".to_owned(), 4), ("ready".to_owned(), 2)]);
            Ok(())
        });
    }
}
