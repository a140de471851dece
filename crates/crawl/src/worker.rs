//! The worker: joins frontier, fetcher and tables into a crawl that survives anything.
//!
//! A document passes the rooms `leases`, `claim`, `ask`, `read`, `finish` and `commit`, in this
//! order, and the claim for chunk n + 1 happens inside the commit of chunk n: one transaction says
//! what was found and what is looked at next.
//!
//! One thread decides (this one). It has owners for what it knows, which do not know each other,
//! and what joins two of them is a method of [`Worker`]; see `docs/decisions/worker-owners.md`.
//! The other threads fetch and read, commit, and keep leases. They report here as events, and
//! whatever they have under way is bounded by what this thread sends them.
//!
//! Invariants: a part is worked on only while its lease is held; what is claimed and
//! not committed never exceeds the limit; nothing is remembered as done before its
//! commit has succeeded; when this thread ends in good order, nothing is left claimed.

mod ask;
mod claim;
mod clock;
mod commit;
mod control;
pub mod finish;
mod jobs;
pub(crate) mod leases;
pub mod progress;
mod read;
mod run_end;
mod schedule;
mod settings;
mod threads;

pub use leases::keeper::ROLE;
pub use run_end::run_end;
pub use settings::{Late, UNCOMMITTED_MAX, WorkerSettings};
pub use threads::Stopper;

use crate::conduct::{self, Attends, Observer};
use crate::frontier::Frontier;
use crate::job::CrawlEnvironment;
use ask::host_access::HostAccess;
use ask::tasks::{ClaimedDocument, FetchReport};
use commit::places::Places;
use control::RunControl;
use finish::job_limits::JobLimits;
use jobs::JobSet;
use leases::held_parts::HeldParts;
use progress::Progress;
use read::link_filter::LinkFilter;
use read::stored_links::StoredLinks;
use schedule::LookSchedule;
use std::sync::Arc;
use std::time::Duration;
use store::clock::{Moment, now_ms};
use store::ids::{IdMaker, JobId};
use store::objects::Objects;
use store::panics::caught;
use store::{Db, Result};
use threads::{Threads, WorkerEvent};

/// How a crawl ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrawlEnd {
    /// The run is over.
    Finished {
        /// How many documents wait for the next run, because their hosts cannot be reached.
        left: i64,
    },
    /// Somebody asked it to stop; the run goes on next time.
    Stopped,
    /// The job was aborted; where it stands says why.
    Aborted,
    /// Another process goes by this node's name.
    Replaced,
}

/// A document that waits in the frontier.
struct FrontierItem {
    job: JobId,
    claimed: ClaimedDocument,
}

impl FrontierItem {
    fn new(job: JobId, claimed: ClaimedDocument) -> FrontierItem {
        FrontierItem { job, claimed }
    }
}

/// What a worker works with.
#[derive(Clone)]
pub struct WorkerDeps {
    /// The database of the jobs.
    pub db: Db,
    /// The store of what is too large for it.
    pub objects: Objects,
    /// Makes ids for this node, which is registered.
    pub ids: Arc<IdMaker>,
    /// What all jobs share.
    pub shared: CrawlEnvironment,
    /// What is counted for whoever watches.
    pub progress: Arc<Progress>,
    /// Hears of what happens.
    pub observer: Arc<dyn Observer>,
}

impl WorkerDeps {
    /// What jobs are conducted with.
    pub fn context(&self) -> conduct::JobContext {
        conduct::JobContext {
            db: self.db.clone(),
            objects: self.objects.clone(),
            ids: self.ids.clone(),
            shared: self.shared.clone(),
            observer: self.observer.clone(),
        }
    }
}

/// Works on the jobs that somebody attends to, until one of them is done.
pub struct Worker {
    deps: WorkerDeps,
    settings: WorkerSettings,
    control: RunControl,
    schedule: LookSchedule,
    jobs: JobSet,
    parts: HeldParts,
    places: Places,
    limits: JobLimits,
    hosts: HostAccess,
    links: LinkFilter,
    frontier: Frontier<FrontierItem>,
    threads: Threads,
}

impl Worker {
    /// A worker that attends to one job until it is inactive, or to all. Its threads run.
    pub fn start(
        deps: WorkerDeps,
        settings: WorkerSettings,
        attends: Attends,
    ) -> Result<(Worker, Stopper)> {
        let links = LinkFilter::new(deps.shared.suffixes.clone());
        let stored = StoredLinks::new(deps.ids.clone(), links.known().clone());
        let (threads, stopper) = Threads::start(&deps, &settings, attends, stored)?;
        let worker = Worker {
            control: RunControl::new(stopper.flag()),
            schedule: LookSchedule::new(settings.poll_ms, Moment::now()),
            jobs: JobSet::new(attends, now_ms()),
            parts: HeldParts::new(settings.late),
            places: Places::default(),
            limits: JobLimits::new(deps.db.clone()),
            hosts: HostAccess::default(),
            links,
            frontier: Frontier::new(settings.limits()),
            threads,
            deps,
            settings,
        };
        Ok((worker, stopper))
    }

    /// Works until the job is done, or somebody asks to stop.
    pub fn run(mut self) -> Result<CrawlEnd> {
        // A bug in this thread ends the process in good order, and says so.
        let outcome = caught(|| self.work()).flatten();
        // Whatever happened, the threads end and the leases are given back.
        let in_order = self.leases_in_order();
        self.threads.stop(in_order);
        outcome
    }

    fn work(&mut self) -> Result<CrawlEnd> {
        loop {
            self.follow_clock(Moment::now());
            let has_seen_all = self.look()?;
            self.look_at_consumers()?;
            self.ask()?;
            let wait = self.send_turns()?;
            if let Some(ended) = self.end_if_over(has_seen_all)? {
                return Ok(ended);
            }
            self.take_events(wait)?;
        }
    }

    /// Waits for an event, then takes all that are there.
    fn take_events(&mut self, wait: Duration) -> Result<()> {
        let is_busy = self.frontier.in_slots() * 2 > self.settings.in_flight_max;
        let mut next = self.threads.wait(is_busy, wait)?;
        while let Some(event) = next {
            self.on_event(event)?;
            next = self.threads.next_event();
        }
        Ok(())
    }

    fn on_event(&mut self, event: WorkerEvent) -> Result<()> {
        match event {
            WorkerEvent::Fetched(FetchReport::Document(done)) => self.on_document(*done)?,
            WorkerEvent::Fetched(FetchReport::Login(done)) => self.on_login(*done),
            WorkerEvent::Fetched(FetchReport::Robots(done)) => self.on_robots_txt(*done),
            WorkerEvent::Fetched(FetchReport::Looked(done)) => self.on_looked(*done),
            WorkerEvent::Fetched(FetchReport::NotAsked(task)) => self.on_not_asked(task),
            WorkerEvent::Fetched(FetchReport::NotYet(task, until_ms)) => {
                self.on_not_yet(task, until_ms)
            }
            WorkerEvent::Turned(turned) => self.on_turned(*turned)?,
            WorkerEvent::Lease(event) => self.on_lease(event),
            WorkerEvent::JobMoved => self.schedule.want(),
            WorkerEvent::Nudge => {
                // What is under way of a job that is to stop is given up at once.
                self.schedule.want();
                self.threads.wake_conductor();
            }
            WorkerEvent::Wake => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
