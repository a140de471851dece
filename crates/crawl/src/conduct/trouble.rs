//! Trouble of a job itself: it cannot be started up, seeded or told of just now.
//!
//! The first trouble says until when and how often it is tried again, as the job deals
//! with its documents. Invariant: what passes is waited out and leaves no trace; what
//! does not ends the run with its reason, or, when only somebody could not be told of its
//! end, ends it all the same and says so. While it is waited out, a row of `outages` names
//! what is waited for.

use super::{JobContext, change, try_to};
use crate::job::JobSettings;
use crate::lifecycle::{JobEvent, after};
use store::ids::JobId;
use store::patience::Patience;
use store::tables::job_states::{self, JobState, Phase};
use store::tables::outages::{self, Failure, Unreachable};
use store::tables::{connections, jobs};
use store::{Error, Result, Tx, clock};

/// A job was interrupted. Returns when it is tried again; `None` if it is not.
pub fn interrupted(context: &JobContext, job: JobId, why: &str) -> Result<Option<i64>> {
    let (node, now_ms, why) = (context.ids.node(), clock::now_ms(), why.to_owned());
    context.db.write(move |tx| {
        let Some(state) = job_states::lock(tx, job)? else { return Ok(None) };
        let Some(returns) = returning(&state) else { return Ok(None) };
        let again = patience(tx, job)?.again(state.failcount, state.fail_ms, now_ms);
        if again.is_over {
            let event = match state.phase {
                Phase::Notifying => JobEvent::NotifyDone { error: Some(why.clone()) },
                _ => JobEvent::Fail(why.clone()),
            };
            change(tx, job, &event, now_ms)?;
            return Ok(None);
        }
        let mut next =
            after(&state, &returns, now_ms).map_err(|refused| Error::Refused(refused.0))?;
        (next.failcount, next.fail_ms) = (Some(again.failcount), Some(again.failtime));
        job_states::save(tx, job, &state, &next, now_ms)?;
        let what = waited_for(tx, job, state.phase)?;
        let failure = Failure { what, node, since_ms: now_ms, why: why.clone() };
        outages::record(tx, &failure, now_ms)?;
        Ok(Some(again.check_ms))
    })
}

/// Puts a job back whose seeding was ended on purpose: that is no failure, and nobody is waited
/// for.
pub fn put_back(context: &JobContext, job: JobId) -> Result<()> {
    let now_ms = clock::now_ms();
    context.db.write(move |tx| {
        let state = job_states::lock(tx, job)?;
        match state.and_then(|state| returning(&state)) {
            Some(returns) => try_to(tx, job, &returns, now_ms).map(|_| ()),
            None => Ok(()),
        }
    })
}

/// What puts a job back to where it is tried again.
fn returning(state: &JobState) -> Option<JobEvent> {
    match state.phase {
        Phase::StartingUp => Some(JobEvent::StartupReturns),
        Phase::Active if state.seeding => Some(JobEvent::SeedingReturns),
        Phase::Notifying => Some(JobEvent::NotifyReturns),
        _ => None,
    }
}

/// What a job waits for that was interrupted in a phase.
fn waited_for(tx: &mut Tx<'_>, job: JobId, phase: Phase) -> Result<Unreachable> {
    let repository = jobs::load(tx, job)?.filter(|_| phase != Phase::Notifying);
    Ok(match repository {
        Some(definition) => Unreachable::Repository(definition.connection, job),
        None => Unreachable::RunEnd(job),
    })
}

/// How a job deals with what fails: its own way, or the usual one if it is gone.
pub fn patience(tx: &mut Tx<'_>, job: JobId) -> Result<Patience> {
    let Some(job) = jobs::load(tx, job)? else { return Ok(JobSettings::default().patience) };
    let connector = connections::connector_of(tx, job.connection)?.unwrap_or_default();
    Ok(JobSettings::of(&connector, &job.docspec).unwrap_or_default().patience)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::conduct::{Attends, Observer, Terms, bring};
    use crate::definitions::WebSpec;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use store::Db;
    use store::ids::{ConnectionId, IdMaker};
    use store::objects::{Location, Objects};
    use store::tables::connections::{Connection, ConnectionKind};
    use store::tables::jobs::Job;
    use store::tables::nodes::{self, NewNode};
    use store::tables::settings;
    use store::testing::both_databases;

    const JOB: JobId = JobId(3);

    /// Cannot be told so many times.
    struct Deaf {
        times: usize,
        told: AtomicUsize,
    }

    impl Observer for Deaf {
        fn on_commit(&self) {}

        fn on_decisions(&self) {}

        fn on_run_end(&self, _job: JobId) -> Result<()> {
            let told = self.told.fetch_add(1, Ordering::SeqCst);
            match told < self.times {
                true => Err(Error::Unavailable { what: "output".into(), reason: "away".into() }),
                false => Ok(()),
            }
        }
    }

    pub const TERMS: Terms = Terms { attends: Attends::All, silence_ms: 60_000, poll_ms: 50 };

    /// What a conductor works with, on a node of its own.
    pub fn context(db: &Db, observer: Arc<dyn Observer>) -> Result<JobContext> {
        let node = NewNode {
            name: "one".into(),
            roles: "crawl".into(),
            address: None,
            version: "0".into(),
        };
        let node = db.write(move |tx| nodes::register(tx, &node, store::clock::now_ms()))?;
        let folder = tempfile::tempdir().expect("a folder");
        Ok(JobContext {
            db: db.clone(),
            objects: Objects::open(&Location::Directory(folder.path().to_owned()))?,
            ids: Arc::new(IdMaker::new(node)?),
            shared: crate::begin::shared(db, Vec::new())?,
            observer,
        })
    }

    fn at_its_end(db: &Db, observer: Arc<Deaf>) -> Result<JobContext> {
        db.write(|tx| {
            settings::freeze(tx, 2)?;
            let web = Connection::new(ConnectionId(1), "web", "web");
            connections::save(tx, ConnectionKind::Repository, &web, 1)?;
            let mut job = Job::new(JOB, "site", ConnectionId(1));
            let seeds = vec!["http://a.example/".to_owned()];
            let spec = WebSpec { seeds, retries: 2, retry_ms: 1, ..WebSpec::default() };
            job.docspec = spec.to_json();
            jobs::save(tx, &job, 1)?;
            let before = job_states::state(tx, JOB)?;
            let next = JobState { phase: Phase::ReadyForNotify, ..before.clone() };
            job_states::save(tx, JOB, &before, &next, 1)
        })?;
        context(db, observer)
    }

    fn waited_for(db: &Db) -> Result<Vec<outages::Outage>> {
        db.read(|tx| outages::list(tx, store::clock::now_ms()))
    }

    #[test]
    fn a_job_whose_repository_cannot_be_reached_says_so_until_it_is_aborted() {
        both_databases(|db| {
            db.write(|tx| {
                settings::freeze(tx, 2)?;
                let shop = Connection {
                    // Nobody listens there.
                    config: r#"{"database":"postgres://reader@127.0.0.1:1/shop"}"#.to_owned(),
                    ..Connection::new(ConnectionId(1), "shop", "sql")
                };
                connections::save(tx, ConnectionKind::Repository, &shop, 1)?;
                let mut job = Job::new(JOB, "items", ConnectionId(1));
                job.docspec = r#"{"ids":"VALUES (1)","document":"VALUES ($1)"}"#.to_owned();
                jobs::save(tx, &job, 1)?;
                change(tx, JOB, &JobEvent::Start { minimal: false }, 2).map(|_| ())
            })?;
            let context = context(db, Arc::new(Deaf { times: 0, told: AtomicUsize::new(0) }))?;
            let state = bring(&context, TERMS, JOB, |state| state.failcount.is_some())?;
            assert_eq!(state.phase, Phase::ReadyForStartup, "it is tried again");
            let found = waited_for(db)?;
            let [outage] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!(
                (outage.connection.as_str(), &*outage.jobs),
                ("shop", &["items".into()][..])
            );
            assert!(outage.why.contains("PostgreSQL"), "{outage:?}");
            db.write(|tx| change(tx, JOB, &JobEvent::Abort, 9))?;
            assert_eq!(waited_for(db)?, []);
            Ok(())
        });
    }

    #[test]
    fn who_cannot_be_told_is_told_again_and_given_up_in_the_end() {
        for (times, told, error) in [(2, 3, None), (9, 3, Some("away"))] {
            both_databases(|db| {
                let observer = Arc::new(Deaf { times, told: AtomicUsize::new(0) });
                let context = at_its_end(db, observer.clone())?;
                let state = bring(&context, TERMS, JOB, |state| state.phase == Phase::Inactive)?;
                assert_eq!(observer.told.load(Ordering::SeqCst), told);
                assert_eq!((state.fail_ms, state.failcount), (None, None));
                assert_eq!(waited_for(db)?, [], "it is over");
                match error {
                    None => assert_eq!(state.error, None),
                    Some(error) => assert!(state.error.is_some_and(|it| it.contains(error))),
                }
                Ok(())
            });
        }
    }
}
