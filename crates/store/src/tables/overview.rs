//! The whole database at a glance, from counters and small tables: it costs the same
//! with ten documents as with ten million.
//!
//! What the last run of a job changed is summed from its chunks, of which there is
//! one for a hundred documents or more; the sum has a bound and says when it was hit.

use crate::ids::{JobId, Run};
use crate::tables::cursors::{self, LINKS, Lag, SEARCH};
use crate::tables::job_states::Phase;
use crate::tables::settings::{self, LoadedArchives};
use crate::value::column;
use crate::{Result, Tx};
use std::collections::BTreeMap;

/// Jobs shown; an overview is not a list.
const JOBS_MAX: i64 = 100;
/// Chunks that are summed for a job.
const CHUNKS_MAX: i64 = 50_000;
const NODES_MAX: i64 = 100;
/// Blocked bins that are counted.
const BLOCKED_MAX: i64 = 100_000;

/// What there is. What an older process does not tell is missing.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "Summary")]
#[allow(missing_docs)]
pub struct Overview {
    /// Parts of the database.
    pub parts: u32,
    pub schema: i64,
    /// Commits over all parts.
    pub commits: i64,
    /// Hosts that are left alone after trouble.
    #[serde(default)]
    pub hosts_blocked: i64,
    /// How far the link index is behind the crawl, where there is or will be one.
    #[serde(default)]
    pub links: Option<Lag>,
    /// What archives have brought into the link index, if anything.
    #[serde(default)]
    pub loaded: Option<LoadedArchives>,
    /// How far the search index is behind, if anything was committed.
    #[serde(default)]
    pub search: Option<Lag>,
    /// Processes that hold a lease.
    #[serde(default)]
    pub nodes: Vec<NodeOverview>,
    /// Jobs with their documents by state.
    pub jobs: Vec<JobOverview>,
}

/// A process that holds a lease.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "NodeSummary")]
#[allow(missing_docs)]
pub struct NodeOverview {
    pub id: i64,
    pub name: String,
    /// The roles of its leases, separated by commas.
    pub roles: String,
    /// When it was last heard of.
    pub heartbeat_ms: i64,
}

/// How one job stands, its documents by state, and what its last run changed.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "JobSummary")]
#[allow(missing_docs)]
pub struct JobOverview {
    pub id: i64,
    /// `null` if it is not defined any more.
    pub name: Option<String>,
    pub standing: RunState,
    /// The current or last run; 0 before the first.
    pub run: i64,
    /// When that run began.
    pub start_ms: Option<i64>,
    /// When it ended well.
    pub end_ms: Option<i64>,
    /// Why it was aborted.
    pub error: Option<String>,
    /// Counters that are not zero, by name.
    pub counters: BTreeMap<String, i64>,
    /// What that run has committed so far.
    pub last_run: RunTotals,
}

/// Where a job stands, as people see it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It has had no run.
    #[default]
    New,
    /// A process works on it.
    Running,
    /// Its run has not ended, and nobody works on it.
    Interrupted,
    /// Its last run has ended.
    Ended,
}

/// What a run has committed.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct RunTotals {
    /// Committed chunks that are summed up.
    pub chunks: i64,
    /// Documents settled.
    pub documents: i64,
    /// Documents that are new.
    pub adds: i64,
    /// Documents that are different.
    pub updates: i64,
    /// Documents that are gone.
    pub removes: i64,
    /// Documents that are as they were.
    pub keeps: i64,
    /// Documents that failed.
    pub errors: i64,
    /// Bytes received.
    pub bytes: i64,
    /// There were more chunks than are summed: the numbers are least values.
    pub more: bool,
}

impl RunTotals {
    /// Whether something was tried, and nothing at all could be had.
    pub fn is_in_vain(&self) -> bool {
        self.errors > 0 && self.adds + self.updates + self.removes + self.keeps == 0
    }
}

/// Reads the overview in one snapshot.
pub fn read(tx: &mut Tx<'_>, now_ms: i64) -> Result<Overview> {
    let schema = tx.query_one("SELECT MAX(version) FROM schema_versions", &[], |row| row.get(0))?;
    let commits: i64 = tx.query_one(
        "SELECT COALESCE(CAST(SUM(seq) AS BIGINT), 0) FROM leases WHERE role = 'crawl'",
        &[],
        |row| row.get(0),
    )?;
    let hosts_blocked = tx.query_one(
        "SELECT COUNT(*) FROM (SELECT 1 AS one FROM bins WHERE blocked_ms > $1 LIMIT $2) b",
        &[now_ms.into(), BLOCKED_MAX.into()],
        |row| row.get(0),
    )?;
    let parts = settings::parts(tx)?;
    let (links, loaded) = (links(tx, now_ms)?, settings::loaded_archives(tx)?);
    let is_any = commits > 0;
    let search = is_any.then(|| cursors::lag(tx, SEARCH, now_ms)).transpose()?;
    let nodes = holders(tx, now_ms)?;
    let jobs = jobs(tx, &nodes)?;
    Ok(Overview { parts, schema, commits, hosts_blocked, links, loaded, search, nodes, jobs })
}

/// The link index is nobody's business where it has read nothing and no job is of the web.
fn links(tx: &mut Tx<'_>, now_ms: i64) -> Result<Option<Lag>> {
    let concerns: Option<i64> = tx.query_opt(
        "SELECT part FROM cursors WHERE consumer = $1
         UNION ALL
         SELECT d.id FROM job_definitions d JOIN connections c ON c.id = d.connectionid
         WHERE c.classname = 'web'
         LIMIT 1",
        &[LINKS.into()],
        |row| row.get(0),
    )?;
    concerns.map(|_| cursors::lag(tx, LINKS, now_ms)).transpose()
}

const HOLDER: &str = "id, name, roles, heartbeat_ms";

/// Processes that hold a lease now.
fn holders(tx: &mut Tx<'_>, now_ms: i64) -> Result<Vec<NodeOverview>> {
    tx.query(
        &format!(
            "SELECT {HOLDER} FROM nodes
             WHERE state <> 'stopped' AND id IN (SELECT node FROM leases WHERE deadline_ms > $1)
             ORDER BY id LIMIT $2"
        ),
        &[now_ms.into(), NODES_MAX.into()],
        |row| {
            Ok(NodeOverview {
                id: row.get(column!(HOLDER, "id"))?,
                name: row.get(column!(HOLDER, "name"))?,
                roles: row.get(column!(HOLDER, "roles"))?,
                heartbeat_ms: row.get(column!(HOLDER, "heartbeat_ms"))?,
            })
        },
    )
}

const JOB: &str = "j.jobid, d.name, s.phase, s.run, s.starttime, s.endtime, s.errortext, s.node";

fn jobs(tx: &mut Tx<'_>, nodes: &[NodeOverview]) -> Result<Vec<JobOverview>> {
    // A queue may have documents of a job whose definition is gone.
    let mut jobs: Vec<JobOverview> = tx.query(
        &format!(
            "SELECT {JOB}
             FROM (SELECT jobid FROM counters WHERE jobid > 0
                   UNION SELECT id FROM job_definitions) j
             LEFT JOIN job_definitions d ON d.id = j.jobid
             LEFT JOIN job_states s ON s.jobid = j.jobid
             ORDER BY j.jobid LIMIT $1"
        ),
        &[JOBS_MAX.into()],
        |row| {
            let phase: Option<Phase> = row.get(column!(JOB, "phase"))?;
            let run: Option<i64> = row.get(column!(JOB, "run"))?;
            let at_work = at_work(nodes, row.get(column!(JOB, "node"))?);
            Ok(JobOverview {
                id: row.get(column!(JOB, "jobid"))?,
                name: row.get(column!(JOB, "name"))?,
                standing: run_state(phase, run.unwrap_or(0), at_work),
                run: run.unwrap_or(0),
                start_ms: row.get(column!(JOB, "starttime"))?,
                end_ms: row.get(column!(JOB, "endtime"))?,
                error: row.get(column!(JOB, "errortext"))?,
                ..JobOverview::default()
            })
        },
    )?;
    for job in &mut jobs {
        let counters = super::counters::of_job(tx, JobId(job.id))?;
        job.counters = counters.into_iter().filter(|(_, value)| *value != 0).collect();
        job.last_run = run_totals(tx, JobId(job.id), Run(job.run))?;
    }
    Ok(jobs)
}

/// A job that names its node is run by that one; another by whoever crawls.
fn at_work(nodes: &[NodeOverview], node: Option<i64>) -> bool {
    let is_it = |id: i64| node.is_none_or(|node| node == id);
    nodes.iter().any(|node| node.roles.contains("crawl") && is_it(node.id))
}

fn run_state(phase: Option<Phase>, run: i64, at_work: bool) -> RunState {
    match phase {
        None => RunState::New,
        Some(Phase::Inactive) if run == 0 => RunState::New,
        Some(Phase::Inactive) => RunState::Ended,
        Some(_) if at_work => RunState::Running,
        Some(_) => RunState::Interrupted,
    }
}

/// Where one job stands.
pub fn run_state_of(tx: &mut Tx<'_>, job: JobId, now_ms: i64) -> Result<RunState> {
    let nodes = holders(tx, now_ms)?;
    let found = tx.query_opt(
        "SELECT phase, run, node FROM job_states WHERE jobid = $1",
        &[job.into()],
        |row| {
            let phase: Phase = row.get(0)?;
            Ok(run_state(Some(phase), row.get(1)?, at_work(&nodes, row.get(2)?)))
        },
    )?;
    Ok(found.unwrap_or_default())
}

const TOTALS: &str = "COUNT(*) AS chunks,
    COALESCE(CAST(SUM(documents) AS BIGINT), 0) AS all_documents,
    COALESCE(CAST(SUM(adds) AS BIGINT), 0) AS all_adds,
    COALESCE(CAST(SUM(updates) AS BIGINT), 0) AS all_updates,
    COALESCE(CAST(SUM(removes) AS BIGINT), 0) AS all_removes,
    COALESCE(CAST(SUM(keeps) AS BIGINT), 0) AS all_keeps,
    COALESCE(CAST(SUM(errors) AS BIGINT), 0) AS all_errors,
    COALESCE(CAST(SUM(bytes) AS BIGINT), 0) AS all_bytes";

/// What a run of a job has committed so far.
pub fn run_totals(tx: &mut Tx<'_>, job: JobId, run: Run) -> Result<RunTotals> {
    // The leases name the parts that have chunks; each is a range of an index. The
    // cross join keeps SQLite from walking all chunks instead.
    tx.query_one(
        &format!(
            "SELECT {TOTALS}
             FROM (SELECT c.documents, c.adds, c.updates, c.removes, c.keeps, c.errors, c.bytes
                   FROM leases l CROSS JOIN chunks c
                   WHERE l.role = 'crawl' AND c.part = l.part AND c.jobid = $1 AND c.run = $2
                     AND c.state = 'crawled'
                   LIMIT $3) t"
        ),
        &[job.into(), run.into(), CHUNKS_MAX.into()],
        |row| {
            let chunks = row.get(column!(TOTALS, "chunks"))?;
            Ok(RunTotals {
                chunks,
                documents: row.get(column!(TOTALS, "all_documents"))?,
                adds: row.get(column!(TOTALS, "all_adds"))?,
                updates: row.get(column!(TOTALS, "all_updates"))?,
                removes: row.get(column!(TOTALS, "all_removes"))?,
                keeps: row.get(column!(TOTALS, "all_keeps"))?,
                errors: row.get(column!(TOTALS, "all_errors"))?,
                bytes: row.get(column!(TOTALS, "all_bytes"))?,
                more: chunks >= CHUNKS_MAX,
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommitNumber, ConnectionId, NodeId, Part};
    use crate::objects::{Location, Objects};
    use crate::tables::connections::{self, Connection, ConnectionKind};
    use crate::tables::leases::{self, LeaseRequest};
    use crate::tables::nodes::{self, NewNode};
    use crate::tables::{bins, job_states, jobs};
    use crate::testing::{SAMPLE_JOB, both_databases, commit_sample};

    #[test]
    fn an_overview_tells_jobs_commits_and_documents() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            commit_sample(db, &store, Part(0), 0)?;
            commit_sample(db, &store, Part(2), 0)?;
            let overview = db.read(|tx| read(tx, 5_000))?;
            assert_eq!((overview.parts, overview.commits, overview.jobs.len()), (4, 2, 1));
            let counters: Vec<_> = overview.jobs[0].counters.clone().into_iter().collect();
            assert_eq!(counters, [("done".to_owned(), 4), ("ready".to_owned(), 2)]);
            let totals = db.read(|tx| run_totals(tx, SAMPLE_JOB, Run(1)))?;
            assert_eq!((totals.chunks, totals.documents, totals.adds), (2, 4, 4));
            assert_eq!(db.read(|tx| run_totals(tx, SAMPLE_JOB, Run(2)))?, RunTotals::default());
            Ok(())
        });
    }

    #[test]
    fn the_link_index_is_told_of_where_somebody_may_ask_for_it() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            commit_sample(db, &store, Part(0), 0)?;
            let links = || db.read(|tx| read(tx, 5_000)).map(|it| it.links);
            assert_eq!(links()?, None, "no job is of the web");
            db.write(|tx| {
                let web = Connection::new(ConnectionId(1), "pages", "web");
                connections::save(tx, ConnectionKind::Repository, &web, 0)?;
                jobs::save(tx, &jobs::Job::new(JobId(1), "a", ConnectionId(1)), 0)
            })?;
            assert_eq!(links()?, Some(Lag { behind_chunks: 1, behind_ms: 5_000 }));
            db.write(|tx| cursors::set(tx, Part(0), LINKS, CommitNumber(1), 0))?;
            db.write(|tx| jobs::delete(tx, JobId(1)))?;
            assert_eq!(links()?, Some(Lag::default()), "its cursor is there still");
            Ok(())
        });
    }

    #[test]
    fn a_job_is_running_while_a_crawler_holds_a_lease() {
        both_databases(|db| {
            db.write(|tx| super::super::settings::freeze(tx, 4))?;
            let job = jobs::Job::new(JobId(1), "a", ConnectionId(1));
            db.write(move |tx| jobs::save(tx, &job, 1))?;
            let standing = |now_ms| -> Result<RunState> {
                let alone = db.read(move |tx| run_state_of(tx, JobId(1), now_ms))?;
                let overview = db.read(move |tx| read(tx, now_ms))?;
                assert_eq!(overview.jobs[0].standing, alone);
                Ok(alone)
            };
            assert_eq!(standing(2)?, RunState::New);
            db.write(|tx| job_states::start_run(tx, JobId(1), NodeId(2), 2))?;
            assert_eq!(standing(3)?, RunState::Interrupted);
            let node = |roles: &str| NewNode {
                name: roles.into(),
                roles: roles.into(),
                address: None,
                version: "test".into(),
            };
            for (part, roles) in [(0, "gc"), (1, "crawl")] {
                let new = node(roles);
                let id = db.write(move |tx| nodes::register(tx, &new, 3))?;
                let asking = LeaseRequest {
                    node: id,
                    node_name: roles.into(),
                    now_ms: 3,
                    lease_ms: 100,
                    skew_ms: 0,
                };
                db.write(move |tx| leases::take(tx, Part(part), "crawl", &asking))?;
                let expected = [RunState::Interrupted, RunState::Running];
                assert_eq!(standing(4)?, expected[usize::from(roles == "crawl")], "{roles}");
            }
            assert_eq!(standing(200)?, RunState::Interrupted, "the lease is over");
            db.write(|tx| job_states::end_run(tx, JobId(1), Run(1), 5))?;
            assert_eq!(standing(6)?, RunState::Ended);
            Ok(())
        });
    }

    #[test]
    fn bins_with_an_open_breaker_are_counted() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            commit_sample(db, &store, Part(0), 0)?;
            let bin = db.read(|tx| bins::list(tx, Part(0), crate::ids::BinId(-1), 9))?.remove(0);
            let visit = bins::Visit {
                bin: bin.bin,
                next_ms: 1,
                delay_ms: None,
                failures: 9,
                blocked_ms: Some(100),
                blocked_by: Some("dns".into()),
                fetches: 1,
                errors: 1,
                bytes: 0,
                busy_ms: 0,
            };
            db.write(move |tx| bins::visited(tx, Part(0), std::slice::from_ref(&visit)))?;
            for (now_ms, blocked) in [(99, 1), (100, 0)] {
                assert_eq!(db.read(move |tx| read(tx, now_ms))?.hosts_blocked, blocked);
            }
            Ok(())
        });
    }
}
