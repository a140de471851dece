//! Runs begin once, are joined by others, and take seeds only while they last.

use super::*;
use crate::conduct::NoObserver;
use store::ids::{IdMaker, NodeId};
use store::objects::{Location, Objects};
use store::tables::counters;
use store::tables::nodes::{self, NewNode};
use store::testing::both_databases;

const PARTS: u32 = 4;

fn ids(db: &Db, name: &str) -> Result<Arc<IdMaker>> {
    let node = NewNode {
        name: name.to_owned(),
        roles: "crawl".to_owned(),
        address: None,
        version: "0".to_owned(),
    };
    let node: NodeId = db.write(move |tx| nodes::register(tx, &node, 1))?;
    Ok(Arc::new(IdMaker::new(node)?))
}

fn spec(seeds: &[&str]) -> WebSpec {
    let seeds = seeds.iter().map(|seed| (*seed).to_owned()).collect();
    WebSpec { seeds, ..WebSpec::default() }
}

#[test]
fn a_run_is_joined_while_it_lasts_and_seeds_are_never_lost_in_one_that_is_over() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::open(&Location::Directory(folder.path().to_owned()))?;
        let [one, two] = [ids(db, "one")?, ids(db, "two")?];
        let shared = shared(db, Vec::new())?;
        let at = |ids: &Arc<IdMaker>| JobContext {
            db: db.clone(),
            objects: objects.clone(),
            ids: ids.clone(),
            shared: shared.clone(),
            observer: Arc::new(NoObserver),
        };
        let terms = Terms { attends: Attends::All, silence_ms: 60_000, poll_ms: 1_000 };
        let first = begin(&at(&one), terms, "site", &spec(&["http://a.example/"]))?;
        assert_eq!((first.run, first.is_new, first.is_new_job), (Run(1), true, true));
        let joined = begin(&at(&two), terms, "site", &spec(&["http://b.example/"]))?;
        assert_eq!((joined.run, joined.is_new, joined.is_new_job), (Run(1), false, false));
        let ready = |job| db.read(move |tx| counters::pages_let_in(tx, job));
        assert_eq!(ready(first.job)?, 2);

        // A process has joined, and the run ends before its seeds are in.
        let mut job = db.read(|tx| jobs::find(tx, "site"))?.expect("it was made");
        job.docspec = spec(&["http://c.example/"]).to_json();
        let id = job.id;
        let state = db.read(move |tx| job_states::state(tx, id))?;
        let late = JobWork::new(&attended(&job, state), &shared);
        let late = Arc::new(late.expect("a job"));
        db.write(move |tx| job_states::end_run(tx, job.id, Run(1), 9))?;
        assert_eq!(seed(&at(&two), &late, None)?, SeedResult::Over, "the run is over");
        assert_eq!(ready(first.job)?, 2, "nothing was added");
        let next = begin(&at(&two), terms, "site", &spec(&["http://c.example/"]))?;
        assert_eq!((next.run, next.is_new), (Run(2), true));
        assert_eq!(ready(first.job)?, 3);
        Ok(())
    });
}

fn attended(job: &Job, state: JobState) -> AttendedJob {
    let (connector, config) = (CONNECTOR.to_owned(), "{}".to_owned());
    let (job, outlets, hops) = (job.clone(), Vec::new(), Default::default());
    let (authority, has_siblings) = (None, false);
    AttendedJob { job, state, connector, config, authority, outlets, has_siblings, hops }
}
