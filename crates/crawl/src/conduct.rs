//! What carries jobs from state to state: start-ups, seedings, ends, deletions.
//!
//! A thread of each process that works, so that a slow seeding holds up nothing else.
//! Relies on `lifecycle` for what follows what and on the row of a job for agreement
//! between processes: every step is one transaction under its lock, and work that takes
//! longer is bound to the node that does it. Invariants: whatever a dead process left
//! half done is begun again by whoever notices; nothing waits for a poll that this
//! process could have told itself.

mod bring;
mod garbage;
mod interrupter;
mod journal;
mod observer;
pub mod removals;
mod retention;
mod run_end;
mod startup;
mod timetable;
mod trouble;
mod watch;

pub use bring::{bring, wait_for};
pub use observer::{NoObserver, Observer};
pub use run_end::cleans;
pub use startup::takes_seeds;
pub use trouble::patience;

use crate::job::CrawlEnvironment;
use crate::lifecycle::{JobEvent, after};
use garbage::CollectionSchedule;
use interrupter::Interrupter;
use retention::Retention;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{IdMaker, JobId};
use store::objects::Objects;
use store::panics::caught;
use store::tables::job_states::{self, AbortedFrom, JobState, Phase};
use store::tables::{nodes, outages};
use store::{Db, Error, Result, Tx, clock};
use watch::Watch;

/// Jobs looked at in one go.
const JOBS_MAX: u32 = 1_000;
/// Start-ups and seedings under way at once in one process.
const STARTUPS_MAX: usize = 4;
/// While a job is on its way to another state, it is looked at this often: others may
/// do the work that is waited for.
const GLANCE_MS: i64 = 20;

/// Which jobs are conducted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Attends {
    /// One, until it is inactive.
    One(JobId),
    All,
}

impl Attends {
    /// Whether a job is among them.
    pub fn includes(self, job: JobId) -> bool {
        match self {
            Attends::One(one) => one == job,
            Attends::All => true,
        }
    }
}

/// What a conductor works with.
#[derive(Clone)]
pub struct JobContext {
    /// The database of the jobs.
    pub db: Db,
    /// The store of what is too large for it.
    pub objects: Objects,
    /// Makes ids for this node, which is registered.
    pub ids: Arc<IdMaker>,
    /// What all jobs share.
    pub shared: CrawlEnvironment,
    /// Who is told of what happens.
    pub observer: Arc<dyn Observer>,
}

/// How a conductor conducts.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Terms {
    pub attends: Attends,
    /// How long a silent node counts as alive.
    pub silence_ms: i64,
    /// How often it looks for what others did.
    pub poll_ms: i64,
}

/// Changes where a job stands by an event. Refused events are errors that say why.
pub fn change(tx: &mut Tx<'_>, job: JobId, event: &JobEvent, now_ms: i64) -> Result<JobState> {
    let before = job_states::lock(tx, job)?
        .ok_or_else(|| Error::Refused("there is no such job any more".to_owned()))?;
    let next = after(&before, event, now_ms).map_err(|refused| Error::Refused(refused.0))?;
    job_states::save(tx, job, &before, &next, now_ms)?;
    // Whatever it waited for was reached, or is not waited for any more.
    let was_in_trouble = before.failcount.is_some();
    if was_in_trouble && (next.failcount.is_none() || next.phase == Phase::Aborting) {
        outages::clear_job(tx, job)?;
    }
    journal::note(tx, job, event, &before, &next, now_ms)?;
    Ok(next)
}

/// The same, but an event that is refused is none: somebody else was faster.
pub fn try_to(
    tx: &mut Tx<'_>,
    job: JobId,
    event: &JobEvent,
    now_ms: i64,
) -> Result<Option<JobState>> {
    match change(tx, job, event, now_ms) {
        Ok(state) => Ok(Some(state)),
        Err(Error::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The thread that carries jobs from state to state.
pub struct Conductor {
    wake: SyncSender<()>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Conductor {
    /// Starts it. `changed` is called whenever a job has moved on.
    pub fn start(
        context: JobContext,
        terms: Terms,
        changed: impl Fn() + Send + Clone + 'static,
    ) -> Result<Conductor> {
        let (wake, woken) = sync_channel(1);
        let (again, stop) = (wake.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("conductor".into())
            .spawn(move || {
                let mut watch = Watch::new(context.db.clone());
                let mut collecting = CollectionSchedule::new(clock::now_ms());
                let mut conductor = ConductorState::new(context, terms, again);
                while !stopped.load(Ordering::SeqCst) {
                    conductor.collect();
                    watch.note();
                    // A database that is away is met again at the next look.
                    let looked = caught(|| conductor.look(&changed)).flatten();
                    let wait_ms = looked.unwrap_or(terms.poll_ms);
                    let forgot = caught(|| conductor.forget_history());
                    let wait_ms = wait_ms.min(forgot.unwrap_or(terms.poll_ms));
                    let wait_ms = wait_ms.min(collecting.step(&conductor.context));
                    let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
                    if watch.wait(&woken, wait) {
                        changed();
                    }
                }
                // What is under way is bound to this node, and is not left behind.
                conductor.working.values().for_each(|it| it.interrupter.interrupt());
                collecting.end();
                for (_, working) in conductor.working.drain() {
                    let _ = working.thread.join();
                }
            })
            .map_err(|error| Error::io("conductor", error))?;
        Ok(Conductor { wake, stop, thread })
    }

    /// Something has happened that may move a job on.
    pub fn wake(&self) {
        // One that waits already is enough.
        let _ = self.wake.try_send(());
    }

    /// Ends it, when what it is at is done or interrupted.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
        let _ = self.thread.join();
    }
}

/// Work on a thread of its own, and what ends it early.
struct BackgroundWork {
    thread: JoinHandle<()>,
    interrupter: Interrupter,
}

/// Where the conductor stands.
struct ConductorState {
    context: JobContext,
    terms: Terms,
    /// Work that takes longer, by job.
    working: HashMap<JobId, BackgroundWork>,
    /// For that work, to say that it is done.
    again: SyncSender<()>,
    timetable: HashMap<JobId, timetable::JobSchedules>,
    /// Until when jobs are left alone that were in trouble themselves.
    resting: Arc<Mutex<HashMap<JobId, i64>>>,
    /// What is forgotten of the history.
    retention: Retention,
    /// When removals of jobs that run were last looked at, and judged.
    removal_checks: HashMap<JobId, removals::RemovalCheckTimes>,
}

impl ConductorState {
    fn new(context: JobContext, terms: Terms, again: SyncSender<()>) -> ConductorState {
        let (working, timetable, resting) = (HashMap::new(), HashMap::new(), Arc::default());
        let retention = Retention::default();
        let removal_checks = HashMap::new();
        ConductorState {
            context,
            terms,
            working,
            again,
            timetable,
            resting,
            retention,
            removal_checks,
        }
    }

    /// Forgets history that is not kept any longer. Returns how long to wait for more.
    fn forget_history(&mut self) -> i64 {
        let step = self.retention.step(&self.context.db, clock::now_ms());
        step.unwrap_or(self.terms.poll_ms)
    }

    /// Forgets work that is done.
    fn collect(&mut self) {
        for (_, done) in self.working.extract_if(|_, working| working.thread.is_finished()) {
            let _ = done.thread.join();
        }
    }

    /// Looks at all jobs, and moves on what can be. Returns how long to wait.
    fn look(&mut self, changed: &(impl Fn() + Send + Clone + 'static)) -> Result<i64> {
        let mut wait_ms = self.terms.poll_ms;
        if self.terms.attends == Attends::All
            && let Some(next_ms) = self.look_at_clock()?
        {
            wait_ms = wait_ms.min((next_ms - clock::now_ms()).max(0));
        }
        let mut after = JobId(i64::MIN);
        loop {
            let jobs = self.context.db.read(move |tx| job_states::busy(tx, after, JOBS_MAX))?;
            let Some((last, _)) = jobs.last() else { return Ok(wait_ms) };
            after = *last;
            for (job, state) in jobs {
                if !self.terms.attends.includes(job) {
                    continue;
                }
                if let Some(working) = self.working.get(&job) {
                    if interrupter::is_to_end(&state) {
                        working.interrupter.interrupt();
                    }
                    continue;
                }
                match caught(|| self.advance(job, &state, changed)).flatten() {
                    Ok(Advance::Moved) => {
                        changed();
                        wait_ms = 0;
                    }
                    Ok(Advance::Waits) => wait_ms = wait_ms.min(GLANCE_MS),
                    Ok(Advance::Rests(until_ms)) => {
                        wait_ms = wait_ms.min((until_ms - clock::now_ms()).max(0));
                    }
                    Ok(Advance::Settled) => {}
                    // Another process was faster, or the job is not what it was.
                    Err(Error::Refused(_)) => wait_ms = wait_ms.min(GLANCE_MS),
                    Err(error) if error.passes() => {}
                    // A bug that one job meets is its own trouble, and no other's.
                    Err(error @ Error::Internal { .. }) => {
                        let now_ms = clock::now_ms();
                        let fails = JobEvent::Fail(error.to_string());
                        self.context.db.write(move |tx| try_to(tx, job, &fails, now_ms))?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    fn change(&self, job: JobId, event: JobEvent) -> Result<JobState> {
        let (now_ms, told) = (clock::now_ms(), event.clone());
        let state = self.context.db.write(move |tx| change(tx, job, &event, now_ms))?;
        if let Some(occasion) = observer::occasion(&told, &state) {
            self.context.observer.on_event(job, occasion, &state);
        }
        Ok(state)
    }

    /// Moves one job on, if it can be.
    fn advance(
        &mut self,
        job: JobId,
        state: &JobState,
        changed: &(impl Fn() + Send + Clone + 'static),
    ) -> Result<Advance> {
        if let Some(event) = self.left_behind(state)? {
            self.change(job, event)?;
            return Ok(Advance::Moved);
        }
        if state.phase == Phase::Active
            && let Some(closed) = self.close_window(job, state)?
        {
            return Ok(closed);
        }
        if state.phase == Phase::Active && self.judge_continuous(job)? {
            return Ok(Advance::Moved);
        }
        match state.phase {
            Phase::ReadyForStartup => self.spawn(job, changed, startup::run),
            Phase::Active if state.resuming => self.moved(job, JobEvent::Resumed),
            Phase::Active if state.stopping => self.quiet(job),
            Phase::Active if state.reseed_ms.is_some_and(|ms| ms <= clock::now_ms()) => {
                match state.paused || state.waiting || state.seeding {
                    true => Ok(Advance::Settled),
                    false => self.spawn(job, changed, startup::reseed),
                }
            }
            Phase::Aborting => self.quiet(job),
            Phase::ShuttingDown => self.shutting_down(job, state),
            Phase::ReadyForNotify => self.spawn(job, changed, run_end::notify),
            Phase::ReadyForDelete if state.outputs_present => {
                self.change(job, JobEvent::DeleteBegins { node: self.context.ids.node() })?;
                self.moved(job, JobEvent::DeletePrepared)
            }
            Phase::Deleting if state.outputs_present => self.deleting(job),
            Phase::ReadyForDeleteNotify => self.spawn(job, changed, run_end::notify_deletion),
            _ => Ok(Advance::Settled),
        }
    }

    fn moved(&self, job: JobId, event: JobEvent) -> Result<Advance> {
        self.change(job, event)?;
        Ok(Advance::Moved)
    }

    /// What ends the work that a dead process has left behind.
    fn left_behind(&self, state: &JobState) -> Result<Option<JobEvent>> {
        let event = match state.phase {
            Phase::StartingUp => JobEvent::StartupReturns,
            Phase::Aborting if state.aborted_from == Some(AbortedFrom::StartingUp) => {
                JobEvent::StartupReturns
            }
            Phase::Active | Phase::Aborting if state.seeding => JobEvent::SeedingReturns,
            Phase::Notifying | Phase::NotifyingOfDeletion => JobEvent::NotifyReturns,
            Phase::DeleteStartingUp => JobEvent::DeleteReturns,
            _ => return Ok(None),
        };
        let Some(node) = state.node else { return Ok(Some(event)) };
        let heard_since_ms = clock::now_ms() - self.terms.silence_ms;
        // Our own work of this job would be among what is under way.
        let is_ours = node == self.context.ids.node();
        let alive =
            !is_ours && self.context.db.read(move |tx| nodes::is_live(tx, node, heard_since_ms))?;
        Ok((!alive).then_some(event))
    }

    /// Until when a job is left alone, if it is.
    fn rests_until(&self, job: JobId) -> Option<i64> {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        let until_ms = *resting.get(&job)?;
        if until_ms <= clock::now_ms() {
            resting.remove(&job);
            return None;
        }
        Some(until_ms)
    }

    /// Work that takes longer, on a thread of its own.
    fn spawn(
        &mut self,
        job: JobId,
        changed: &(impl Fn() + Send + Clone + 'static),
        work: fn(&JobContext, JobId, &Interrupter) -> Result<()>,
    ) -> Result<Advance> {
        if self.working.len() >= STARTUPS_MAX {
            return Ok(Advance::Waits);
        }
        if let Some(until_ms) = self.rests_until(job) {
            return Ok(Advance::Rests(until_ms));
        }
        let (context, changed, again) = (self.context.clone(), changed.clone(), self.again.clone());
        let (resting, interrupter) = (self.resting.clone(), Interrupter::default());
        let interrupted = interrupter.clone();
        let thread = std::thread::Builder::new()
            .name("startup".into())
            .spawn(move || {
                match caught(|| work(&context, job, &interrupted)).flatten() {
                    Ok(()) => {}
                    // If this cannot be written, whoever looks at the job next does it.
                    Err(_) if interrupted.is_interrupted() => {
                        let _ = trouble::put_back(&context, job);
                    }
                    // A job that cannot be what it is told to be is aborted, and says why;
                    // trouble that passes, or may be, is tried again.
                    Err(error) if !error.passes() && !error.is_internal() => {
                        let (event, now_ms) = (JobEvent::Fail(error.to_string()), clock::now_ms());
                        let _ = context.db.write(move |tx| change(tx, job, &event, now_ms));
                    }
                    Err(error) => {
                        let until = trouble::interrupted(&context, job, &error.to_string());
                        match until {
                            Ok(Some(until_ms)) => {
                                let mut resting =
                                    resting.lock().unwrap_or_else(PoisonError::into_inner);
                                resting.insert(job, until_ms);
                            }
                            // A bug that it meets before it has begun would be met for ever.
                            Ok(None) if error.is_internal() => {
                                let (event, now_ms) =
                                    (JobEvent::Fail(error.to_string()), clock::now_ms());
                                let _ = context.db.write(move |tx| try_to(tx, job, &event, now_ms));
                            }
                            _ => {}
                        }
                    }
                }
                changed();
                let _ = again.try_send(());
            })
            .map_err(|error| Error::io("startup", error))?;
        self.working.insert(job, BackgroundWork { thread, interrupter });
        Ok(Advance::Settled)
    }
}

/// What came of looking at a job.
enum Advance {
    /// It is in another state.
    Moved,
    /// It is on its way, and others must do something first.
    Waits,
    /// It was in trouble, and is tried again at a time.
    Rests(i64),
    /// There is nothing to do for it here.
    Settled,
}
