//! Parts whose consumer is behind, in workers that run: nothing is claimed there, and
//! everything elsewhere.

use super::*;
use crate::begin;
use crate::conduct::{self, Attends, NoObserver};
use crate::connectors::files;
use crate::lifecycle::JobEvent;
use crate::worker::progress::Progress;
use crate::worker::{CrawlEnd, Worker, WorkerDeps, WorkerSettings};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::ids::{CommitNumber, ConnectionId, IdMaker, JobId, NodeId};
use store::objects::{Location, Objects};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::jobs::{self, Job};
use store::tables::leases::{self, LeaseRequest};
use store::tables::nodes::{self, NewNode};
use store::tables::{counters, registrations, settings};
use store::testing::both_databases;
use store::{Db, Result, clock};

const JOB: JobId = JobId(1);
const PARTS: u32 = 4;
/// Directories of the job: enough that each part has some.
const ROOTS: usize = 64;
/// Commits that every part has had.
const COMMITS: i64 = LAG_CHUNKS_MAX + 2;
/// What a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(50);

fn parts() -> impl Iterator<Item = Part> {
    (0..i64::from(PARTS)).map(Part)
}

fn asking(name: &str, now_ms: i64, lease_ms: i64) -> LeaseRequest {
    LeaseRequest { node: NodeId(900), node_name: name.into(), now_ms, lease_ms, skew_ms: 0 }
}

/// A job over some directories that has been told to start, in parts with commits of which
/// a consumer has applied one.
fn made(db: &Db, folder: &std::path::Path, consumer_lease_ms: i64) -> Result<()> {
    let mut roots = Vec::new();
    for number in 0..ROOTS {
        // What lies in one directory lies in one part.
        let root = folder.join(format!("d{number}/docs"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("a.txt"), "a text").unwrap();
        roots.push(root.to_str().unwrap().to_owned());
    }
    let docspec = serde_json::json!({"roots": roots}).to_string();
    let docspec = (files::CONNECTOR.check_spec)(&docspec).unwrap();
    db.write(move |tx| {
        settings::freeze(tx, PARTS)?;
        registrations::register(tx, &files::CONNECTOR, 0)?;
        let connection = Connection::new(ConnectionId(1), "disk", files::CONNECTOR.name);
        connections::save(tx, ConnectionKind::Repository, &connection, 0)?;
        let job = Job { docspec: docspec.clone(), ..Job::new(JOB, "disk", ConnectionId(1)) };
        jobs::save(tx, &job, 0)?;
        conduct::change(tx, JOB, &JobEvent::Start { minimal: false }, clock::now_ms())?;
        Ok(())
    })?;
    db.write(move |tx| {
        for part in parts() {
            let before = leases::take(tx, part, "crawl", &asking("before", 0, 1))?;
            let before = before.expect("nobody has it");
            for _ in 0..COMMITS {
                leases::number_commit(tx, &before)?;
            }
            leases::release(tx, &before, true)?;
            cursors::set(tx, part, cursors::LINKS, CommitNumber(1), 0)?;
            let follower = asking("follower", clock::now_ms(), consumer_lease_ms);
            leases::take(tx, part, cursors::LINKS, &follower)?;
        }
        Ok(())
    })
}

/// A worker at work until no job has anything to do.
fn work(db: &Db, objects: &Objects) -> Result<(Arc<Progress>, JoinHandle<Result<CrawlEnd>>)> {
    let node =
        NewNode { name: "one".into(), roles: "crawl".into(), address: None, version: "0".into() };
    let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    let progress = Arc::new(Progress::default());
    let deps = WorkerDeps {
        db: db.clone(),
        objects: objects.clone(),
        ids: Arc::new(IdMaker::new(node)?),
        shared: begin::shared(db, Vec::new())?,
        progress: progress.clone(),
        observer: Arc::new(NoObserver),
    };
    let mut settings = WorkerSettings::new("one", 4).with_lease(1_000);
    settings.until_idle = true;
    let usual = crate::definitions::WebSpec::default();
    (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
    let (worker, _stopper) = Worker::start(deps, settings, Attends::All)?;
    Ok((progress, std::thread::spawn(move || worker.run())))
}

/// Looks again and again until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Documents of a part: those that nobody has looked at, and the others.
fn documents(db: &Db, part: Part) -> (i64, i64) {
    let counted = db.read(move |tx| counters::in_part(tx, part, JOB)).unwrap();
    let (ready, others): (Vec<_>, Vec<_>) =
        counted.into_iter().partition(|(name, _)| name == "ready");
    let sum = |counts: Vec<(String, i64)>| counts.into_iter().map(|(_, count)| count).sum();
    (sum(ready), sum(others))
}

/// The index has applied all but so many commits of the worker's time in a part.
fn catch_up(db: &Db, part: Part, but: i64) -> Result<()> {
    db.write(move |tx| cursors::set(tx, part, cursors::LINKS, CommitNumber(COMMITS - but), 0))
}

#[test]
fn a_part_whose_consumer_is_behind_waits_for_it_and_says_so() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::open(&Location::Directory(folder.path().join("objects")))?;
        made(db, folder.path(), 3_600_000)?;
        let (progress, worker) = work(db, &objects)?;
        let said = || progress.snapshot().waiting_for;
        until("it says what it waits for", || said().is_some());
        let words = "the link index is 201 chunks behind; the crawl waits for it";
        assert_eq!(said().as_deref(), Some(words));
        until("its seeds are queued", || parts().all(|part| documents(db, part).0 > 0));

        let (last, others) = (Part(3), [Part(0), Part(1), Part(2)]);
        for part in others {
            catch_up(db, part, LAG_CHUNKS_ENOUGH)?;
        }
        // So it has planned what to claim many times.
        until("all is done in other parts", || {
            others.into_iter().all(|part| documents(db, part).0 == 0)
        });
        assert_eq!(documents(db, last).1, 0, "nothing was claimed of this one");
        assert_eq!(said().as_deref(), Some(words), "it waits still");
        assert!(!worker.is_finished(), "a run does not end because of what waits here");

        catch_up(db, last, LAG_CHUNKS_ENOUGH)?;
        assert_eq!(worker.join().unwrap()?, CrawlEnd::Finished { left: 0 });
        assert_eq!(said(), None);
        let done: i64 = parts().map(|part| documents(db, part).1).sum();
        assert!(done >= i64::try_from(ROOTS).unwrap(), "{done}");
        Ok(())
    });
}

#[test]
fn a_consumer_that_nobody_runs_is_not_waited_for() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::open(&Location::Directory(folder.path().join("objects")))?;
        made(db, folder.path(), 0)?;
        let (progress, worker) = work(db, &objects)?;
        assert_eq!(worker.join().unwrap()?, CrawlEnd::Finished { left: 0 });
        assert_eq!(progress.take_notices(), [""; 0]);
        assert!(parts().all(|part| documents(db, part).0 == 0));
        Ok(())
    });
}

#[test]
fn a_part_stops_beyond_the_limit_and_goes_on_at_half_of_it() {
    let mut lagging = false;
    for (chunks, expected) in [
        (LAG_CHUNKS_MAX, false),
        (LAG_CHUNKS_MAX + 1, true),
        (LAG_CHUNKS_ENOUGH + 1, true),
        (LAG_CHUNKS_ENOUGH, false),
        (LAG_CHUNKS_MAX, false),
    ] {
        lagging = is_far_behind(lagging, chunks);
        assert_eq!(lagging, expected, "{chunks}");
    }
    let of = |consumer: &str, chunks| Behind {
        part: Part(1),
        consumer: consumer.into(),
        chunks,
        since_ms: None,
        moved_ms: 0,
    };
    let slowest = slowest(vec![of("links", 150), of("search", 170), of("x", 160)]);
    assert_eq!(slowest[&Part(1)].consumer, "search");
}

#[test]
fn somebody_is_late_by_the_first_commit_that_is_missed_and_until_it_is_half_as_old() {
    let moved = |since_ms, moved_ms| Behind {
        part: Part(1),
        consumer: "search".into(),
        chunks: 1,
        since_ms,
        moved_ms,
    };
    let since = |since_ms| moved(since_ms, 0);
    let both = |ms| [since(Some(ms + 300)), since(Some(ms)), since(None)];
    for (was_late, age_ms, expected) in [
        (false, 700, false),
        (false, 701, true),
        (true, 701, true),
        (true, 351, true),
        (true, 350, false),
        (false, 351, false),
    ] {
        assert_eq!(is_late(was_late, &both(10_000 - age_ms), 10_000, 700), expected, "{age_ms}");
    }
    assert!(!is_late(true, &[since(None)], 10_000, 700), "nobody knows when");
    assert!(is_late(true, &[moved(Some(1_000), 5_001)], 10_000, 700), "it comes on");
    assert!(!is_late(true, &[moved(Some(1_000), 5_000)], 10_000, 700), "it is stuck");
    assert!(!is_late(false, &[moved(Some(5_000), 1_000)], 10_000, 700), "from the first on");
    assert!(!is_late(true, &[], 10_000, 700), "all is in");
}

#[test]
fn a_consumer_that_takes_part_after_part_has_two_rounds() {
    let behind = |moved_ms| Behind {
        part: Part(1),
        consumer: cursors::SEARCH.to_owned(),
        chunks: 1,
        since_ms: Some(0),
        moved_ms,
    };
    let mut rounds = Rounds::default();
    rounds.note(&behind(1_000));
    assert_eq!(rounds.of(&behind(1_000)), 0, "nothing is known yet");
    rounds.note(&behind(1_000));
    rounds.note(&behind(2_500));
    assert_eq!(rounds.of(&behind(2_500)), 1_500);
    rounds.note(&behind(2_500));
    assert_eq!(rounds.of(&behind(2_500)), 1_500, "it has not come round since");
    rounds.note(&behind(900_000));
    assert_eq!(rounds.of(&behind(900_000)), STUCK_MS, "it had nothing to do");
    let other = Behind { part: Part(2), ..behind(0) };
    assert_eq!(rounds.of(&other), 0, "each part for itself");
}

#[test]
fn a_wait_for_a_consumer_is_said_when_it_begins_and_when_it_is_over() {
    let held = [Part(1), Part(2)];
    let of = |part, chunks| Behind {
        part: Part(part),
        consumer: cursors::LINKS.to_owned(),
        chunks,
        since_ms: None,
        moved_ms: 0,
    };
    let mut lag = ConsumerLag::new(None);
    assert_eq!(lag.begin_look(1_000), LAG_CHUNKS_ENOUGH, "others are of no interest");
    assert_eq!(lag.due_ms(), 1_000 + LOOK_SHARED_MS);
    let waits = "the link index is 201 chunks behind; the crawl waits for it".to_owned();
    assert_eq!(lag.on_look(&held, vec![of(1, 201)], 0), Some(LagNews::Waits(waits)));
    assert!(lag.is_behind(Part(1)) && !lag.is_behind(Part(2)) && lag.is_any_behind());
    assert_eq!(lag.on_look(&held, vec![of(1, 150), of(2, 250)], 0), None, "it is said once");
    assert!(lag.is_behind(Part(1)) && lag.is_behind(Part(2)));
    lag.forget(Part(2));
    assert!(!lag.is_behind(Part(2)));
    assert_eq!(lag.on_look(&held, vec![of(1, 100)], 0), Some(LagNews::Over));
    assert!(!lag.is_any_behind());
    lag.look_now();
    assert_eq!(lag.due_ms(), LOOK_SHARED_MS);
}

#[test]
fn all_parts_wait_for_one_who_takes_them_together_and_each_for_itself_otherwise() {
    let held = [Part(1), Part(2)];
    let late = |part| Behind {
        part: Part(part),
        consumer: cursors::SEARCH.to_owned(),
        chunks: 1,
        since_ms: Some(9_000),
        moved_ms: 9_500,
    };
    for (limit, expected) in
        [(Late::Together(700), [true, true]), (Late::ByPart(700), [true, false])]
    {
        let mut lag = ConsumerLag::new(Some(limit));
        assert_eq!(lag.begin_look(10_000), 0);
        assert_eq!(lag.on_look(&held, vec![late(1)], 10_000), None, "that is usual");
        assert_eq!(held.map(|part| lag.is_behind(part)), expected);
    }
}
