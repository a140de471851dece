//! Crawls that other commands hand over to this process, which works on all jobs.
//!
//! The job is defined while the other command waits; its run is begun on a thread of its own,
//! because that can take longer than anybody waits for an answer. Invariants: at most a few
//! runs are begun at once, of each job one; no thread outlives the work.

use super::handover::{BegunRun, HandedProgress, HandoverAccepted, RunStart, Ticket};
use super::request::CrawlRequest;
use crate::definitions;
use ::crawl::begin;
use ::crawl::conduct::JobContext;
use ::crawl::definitions::WebSpec;
use ::crawl::worker::Stopper;
use ::crawl::worker::progress::{Progress, RunKey};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::ids::{JobId, Run};
use store::tables::job_states;

/// Runs that are begun at once.
const BEGINNING_MAX: usize = 16;
/// Jobs whose last begin is remembered.
const JOBS_MAX: usize = 1_000;
/// Hosts that are told of.
const HOSTS_MAX: usize = 10;
/// How long a command waits for a process that is about to work.
const READY_WAIT: Duration = Duration::from_secs(10);
/// The wait before it looks again.
const GLANCE: Duration = Duration::from_millis(10);

/// What crawls that are handed over need of the process that works.
pub struct CrawlHosting {
    pub stopper: Stopper,
    pub progress: Arc<Progress>,
    /// What runs are begun with.
    pub context: JobContext,
}

/// Crawls that were handed over.
#[derive(Default)]
pub struct HostedCrawls {
    running: OnceLock<CrawlHosting>,
    is_ending: AtomicBool,
    jobs: Mutex<BTreeMap<JobId, RunStartState>>,
}

/// The last begin of a job's run.
struct RunStartState {
    /// The last request, and the one whose begin is done.
    asked: u64,
    answered: u64,
    spec: WebSpec,
    outcome: RunStart,
    thread: Option<JoinHandle<()>>,
}

impl HostedCrawls {
    /// The process works from now on.
    pub fn started(&self, running: CrawlHosting) {
        let _ = self.running.set(running);
    }

    /// Tells the worker that something was changed.
    pub fn nudge(&self) {
        if let Some(running) = self.running.get() {
            running.stopper.nudge();
        }
    }

    /// The process ends: no crawl is taken over any more, and none is being begun.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        let threads: Vec<JoinHandle<()>> =
            self.jobs().values_mut().filter_map(|hosted| hosted.thread.take()).collect();
        threads.into_iter().for_each(|thread| {
            let _ = thread.join();
        });
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, RunStartState>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// The process at work, which may be about to begin.
    fn running(&self) -> anyhow::Result<&CrawlHosting> {
        let since = Instant::now();
        loop {
            ensure!(
                !self.is_ending() && since.elapsed() < READY_WAIT,
                "process {}, which holds the directory, is exiting or not ready yet; try again",
                std::process::id()
            );
            match self.running.get() {
                Some(running) => return Ok(running),
                None => std::thread::park_timeout(GLANCE),
            }
        }
    }

    /// Takes a crawl over: defines or edits its job, and begins its run.
    pub fn take_over(self: &Arc<Self>, request: &CrawlRequest) -> anyhow::Result<HandoverAccepted> {
        let running = self.running()?;
        let db = &running.context.db;
        let known = request.known(db)?;
        let spec = request.spec(known.as_ref())?;
        if let Some(job) = known.as_ref().filter(|_| request.reopen) {
            begin::reopen(db, job.id)?;
        }
        let before = db.read(definitions::collect)?;
        let (job, is_new_job) = begin::define(&running.context, &request.name, &spec)?;
        if let Some(mirror) = &request.mirror {
            mirror.ensure(db, &request.name)?;
        }
        let changes = definitions::difference(&before, &db.read(definitions::collect)?);
        let id = job.id;
        let run_before = db.read(move |tx| job_states::state(tx, id))?.run.0;
        let number = self.begin(id, &request.name, spec)?;
        Ok(HandoverAccepted {
            ticket: Ticket { job: id.0, number },
            run_before,
            is_new_job,
            changes,
        })
    }

    /// Begins a run, unless one of the job is being begun: then it is begun again after that.
    fn begin(self: &Arc<Self>, job: JobId, name: &str, spec: WebSpec) -> anyhow::Result<u64> {
        let mut jobs = self.jobs();
        // Whoever ends takes this lock after saying so, and then waits for the threads.
        ensure!(!self.is_ending(), "process {} is exiting; try again", std::process::id());
        let is_busy = |hosted: &RunStartState| hosted.answered < hosted.asked;
        let beginning = jobs.values().filter(|hosted| is_busy(hosted)).count();
        ensure!(beginning < BEGINNING_MAX, "{beginning} crawls are being started; try again");
        if jobs.len() >= JOBS_MAX && !jobs.contains_key(&job) {
            jobs.retain(|_, hosted| is_busy(hosted));
        }
        let hosted = jobs.entry(job).or_insert_with(|| RunStartState {
            asked: 0,
            answered: 0,
            spec: spec.clone(),
            outcome: RunStart::UnderWay,
            thread: None,
        });
        let is_under_way = is_busy(hosted);
        hosted.asked += 1;
        hosted.spec = spec;
        let asked = hosted.asked;
        if !is_under_way {
            let (crawls, name) = (self.clone(), name.to_owned());
            let thread = std::thread::Builder::new()
                .name("begin".into())
                .spawn(move || crawls.begin_all(job, &name))
                .context("the crawl cannot be started")?;
            // An older thread of the job has done its last step.
            hosted.thread = Some(thread);
        }
        Ok(asked)
    }

    /// Begins runs of a job until nobody asks for another.
    fn begin_all(&self, job: JobId, name: &str) {
        loop {
            let Some((asked, spec)) = self.jobs().get(&job).map(|it| (it.asked, it.spec.clone()))
            else {
                return;
            };
            let outcome = self.begin_once(name, &spec);
            let mut jobs = self.jobs();
            let Some(hosted) = jobs.get_mut(&job) else { return };
            (hosted.answered, hosted.outcome) = (asked, outcome);
            if hosted.asked == asked {
                return;
            }
        }
    }

    fn begin_once(&self, name: &str, spec: &WebSpec) -> RunStart {
        let Some(running) = self.running.get() else { return RunStart::Unknown };
        let wake = || {
            running.stopper.nudge();
            !self.is_ending()
        };
        match begin::begin_beside(&running.context, name, spec, &wake) {
            Ok(begun) => RunStart::Begun(BegunRun::of(&begun)),
            Err(error) => RunStart::Failed(error.to_string()),
        }
    }

    /// How far a crawl is.
    pub fn progress(&self, ticket: Ticket) -> anyhow::Result<HandedProgress> {
        let running = self.running()?;
        let begin = match self.jobs().get(&JobId(ticket.job)) {
            Some(hosted) if hosted.answered >= ticket.number => hosted.outcome.clone(),
            Some(hosted) if hosted.asked >= ticket.number => RunStart::UnderWay,
            _ => RunStart::Unknown,
        };
        let RunStart::Begun(BegunRun { run, .. }) = begin else {
            let (did, slowest) = Default::default();
            return Ok(HandedProgress { begin, did, slowest });
        };
        let key = RunKey { job: JobId(ticket.job), run: Run(run) };
        let did = running.progress.snapshot_of(key);
        let slowest = did.slowest(HOSTS_MAX);
        Ok(HandedProgress { begin, did, slowest })
    }
}
