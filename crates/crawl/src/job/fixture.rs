//! A job for the tests of those who work on one.

use super::{CrawlEnvironment, JobWork};
use crate::connectors::web::CONNECTOR;
use crate::definitions::WebSpec;
use page::domain::SuffixList;
use std::sync::Arc;
use store::ids::{ConnectionId, JobId, Run};
use store::panics::Faults;
use store::tables::job_states::{AttendedJob, JobState};
use store::tables::jobs::Job;

pub const JOB: JobId = JobId(7);

/// A web job in a run.
pub fn attended(run: i64) -> AttendedJob {
    let seeds = vec!["http://a.example/".to_owned()];
    let docspec = WebSpec { seeds, ..WebSpec::default() }.to_json();
    AttendedJob {
        job: Job { docspec, ..Job::new(JOB, "site", ConnectionId(1)) },
        state: JobState { run: Run(run), ..JobState::default() },
        connector: CONNECTOR.name.to_owned(),
        config: "{}".to_owned(),
        authority: None,
        outlets: Vec::new(),
        has_siblings: false,
        hops: Default::default(),
    }
}

pub fn work(run: i64) -> JobWork {
    let shared = CrawlEnvironment {
        suffixes: Arc::new(SuffixList::parse(b"example\n").expect("a list")),
        parts: 4,
        installation: [0; 16],
        own: Vec::new(),
        extractor: Arc::default(),
        faults: Faults::default(),
    };
    JobWork::new(&attended(run), &shared).expect("a definition that is right")
}
