//! The worker: joins frontier, fetcher and tables into a crawl that survives anything.
//!
//! One thread decides (this one); others fetch and read (`fetching`), run turns
//! (`turns`), and keep leases (`holdings`). They report here as events, and whatever
//! they have under way is bounded by what this thread sends them. The steps, in the
//! order a document meets them: `looking` finds it, `plan` claims it, `steps` asks for
//! it, `reading` reads it, `finish` says what that means, `batch` collects it, `turn`
//! commits it.
//!
//! Invariants: a part is worked on only while its lease is held; what is claimed and
//! not committed never exceeds the limit; nothing is remembered as done before its
//! commit has succeeded; when this thread ends in good order, nothing is left claimed.

mod admissions;
mod allowances;
pub mod batch;
mod clockwork;
mod control;
mod effects;
mod ending;
pub mod fetching;
pub mod finish;
pub mod holdings;
pub mod hosts;
mod isolation;
pub mod job;
mod jobs;
pub mod known;
mod lagging;
pub mod leaving;
mod leftovers;
pub mod links;
mod logins;
mod looking;
pub mod now;
mod origins;
mod others;
mod plan;
pub mod prepare;
pub mod progress;
pub mod reading;
mod schedule;
mod settings;
mod statistics;
mod steps;
pub mod sure;
pub mod tasks;
mod throttling;
pub mod turn;
pub mod turns;
mod worth;

pub use ending::run_end;
pub use settings::{Late, Settings, UNCOMMITTED_MAX};

use crate::budget::{self, Budgets};
use crate::conduct::{Attends, Conductor, Herald, Means};
use crate::frontier::Frontier;
use crate::hops::Spread;
use crate::robots::RobotsCache;
use allowances::Allowances;
use batch::Batch;
use control::RunControl;
use fetching::Fetching;
use holdings::{Holding, Holdings};
use hosts::Hosts;
use isolation::Isolation;
use job::Ground;
use jobs::JobSet;
use known::KnownLinks;
use lagging::Lags;
use leaving::RemovalGate;
use links::StoredLinks;
use logins::Sessions;
use now::Now;
use progress::Progress;
use schedule::LookSchedule;
use statistics::Statistics;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use store::clock::Moment;
use store::ids::{BinId, IdMaker, JobId, Part, QueueId};
use store::objects::Objects;
use store::panics::caught;
use store::tables::leases::Lease;
use store::{Db, Error, Result};
use sure::Sure;
use tasks::{Claimed, Fetched};
use throttling::Throttling;
use turn::OpenChunk;
use turns::{Turned, Turns};

/// Events that may wait for the worker beyond what is under way.
const EVENTS_SPARE: usize = 5_000;
/// With most requests under way, answers are gathered for so long.
const GATHER: Duration = Duration::from_millis(2);
/// The longest wait for an event: a missed wake-up costs no more than this.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How a crawl ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The run is over. So many documents wait for the next one, because their hosts
    /// cannot be reached.
    Finished {
        /// How many.
        left: i64,
    },
    /// Somebody asked it to stop; the run goes on next time.
    Stopped,
    /// The job was aborted; where it stands says why.
    Aborted,
    /// Another process goes by this node's name.
    Replaced,
}

/// What the threads report.
enum Event {
    Fetched(Fetched),
    Turned(Box<Turned>),
    Holding(Holding),
    /// A job has moved on.
    Moved,
    /// Somebody has told a job something.
    Nudge,
    Wake,
}

/// Asks a worker to stop.
#[derive(Clone)]
pub struct Stopper {
    flag: Arc<AtomicBool>,
    events: SyncSender<Event>,
}

impl Stopper {
    /// Finish what is under way, commit, and end.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::SeqCst);
        let _ = self.events.try_send(Event::Wake);
    }

    /// Look now what jobs have been told, and not at the next look.
    pub fn nudge(&self) {
        let _ = self.events.try_send(Event::Nudge);
    }
}

/// A part that is held.
struct PartWork {
    lease: Lease,
    /// Hosts wait a full delay from then on; 0 when the last holder left in order.
    since_ms: i64,
    /// A turn is under way.
    busy: bool,
    /// It is to be given back.
    leaving: bool,
    /// A consumer of what is committed is behind: nothing is claimed.
    lags: bool,
    /// It is by more chunks than it may be.
    is_far_behind: bool,
    /// It is for longer than it may be.
    is_late: bool,
    /// The tallies of its patterns are in memory.
    weighed: bool,
    /// Where the walk over its marked bins stands.
    marked_after: (JobId, BinId),
}

/// A job in a part.
#[derive(Default)]
struct PlaceWork {
    /// The chunk that the batch will commit, and that claims go into.
    chunk: Option<OpenChunk>,
    /// Whether the tables have it.
    is_open: bool,
    batch: Batch,
    /// Claimed and not yet finished.
    active: HashSet<QueueId>,
    /// When a waiting document falls due.
    due_ms: Option<i64>,
    /// Where the walk over bins with older documents stands.
    older: Older,
    /// A turn of it is under way.
    turning: bool,
    /// Nothing is scheduled that an earlier, continuous life of the job has left behind.
    is_unscheduled: bool,
    /// There was nothing to sweep when it was last asked.
    is_swept: bool,
    /// What can only be looked at after this time is given up for this run.
    gives_up_ms: Option<i64>,
    /// How its graphs stand.
    spread: Spread,
}

impl PlaceWork {
    /// Whether nothing of it is under way or uncommitted.
    fn is_idle(&self) -> bool {
        self.active.is_empty() && self.batch.is_empty() && !self.turning
    }
}

/// A walk over the bins with documents that an older run settled.
#[derive(Clone, Copy, Default)]
enum Older {
    #[default]
    Unknown,
    After(BinId),
    Done,
}

/// What waits in the frontier.
struct Item {
    job: JobId,
    claimed: Claimed,
}

impl Item {
    fn new(job: JobId, claimed: Claimed) -> Item {
        Item { job, claimed }
    }
}

/// Works on the jobs that somebody attends to, until one of them is done.
pub struct Worker {
    db: Db,
    ids: Arc<IdMaker>,
    settings: Settings,
    now: Now,
    ground: Ground,
    attends: Attends,
    conductor: Conductor,
    frontier: Frontier<Item>,
    hosts: Hosts,
    throttling: Throttling,
    robots: RobotsCache,
    sessions: Sessions,
    known: KnownLinks,
    budgets: Budgets,
    allowances: Allowances,
    gate: RemovalGate,
    jobs: JobSet,
    parts: BTreeMap<Part, PartWork>,
    places: BTreeMap<(Part, JobId), PlaceWork>,
    fetching: Fetching,
    turns: Turns,
    turns_under_way: usize,
    holdings: Holdings,
    statistics: Statistics,
    lags: Lags,
    sure: Sure,
    progress: Arc<Progress>,
    herald: Arc<dyn Herald>,
    events: Receiver<Event>,
    control: RunControl,
    schedule: LookSchedule,
    /// When this worker began.
    began_ms: i64,
    /// Which documents make commits panic.
    isolation: Isolation,
    /// Origins whose sitemaps have been named to a job.
    told: HashSet<(JobId, String)>,
    /// Since when links are remembered.
    known_since_ms: i64,
}

/// What a worker is made from.
pub struct Parts<'a> {
    /// The rows.
    pub db: &'a Db,
    /// The objects.
    pub objects: &'a Objects,
    /// Makes ids for this node, which is registered.
    pub ids: Arc<IdMaker>,
    /// What all jobs share.
    pub ground: Ground,
    /// Who watches.
    pub progress: Arc<Progress>,
    /// Who is told of what happens.
    pub herald: Arc<dyn Herald>,
}

impl Parts<'_> {
    /// What jobs are conducted with.
    pub fn means(&self, now: Now) -> Means {
        Means {
            db: self.db.clone(),
            objects: self.objects.clone(),
            ids: self.ids.clone(),
            ground: self.ground.clone(),
            now,
            herald: self.herald.clone(),
        }
    }
}

impl Worker {
    /// A worker that attends to one job until it is inactive, or to all. Its threads run.
    pub fn start(
        parts: Parts<'_>,
        settings: Settings,
        attends: Attends,
    ) -> Result<(Worker, Stopper)> {
        let now = Now;
        let (events, incoming) = sync_channel(EVENTS_SPARE + settings.under_way_max());
        let sure = Sure::default();
        let room = settings.under_way_max() + logins::LOGINS_MAX;
        let threads = (settings.fetch_threads, room, now, &sure);
        let fetching = Fetching::start(&settings.fetch, threads, &events, Event::Fetched)?;
        let turned = events.clone();
        let known = KnownLinks::default();
        let links = Arc::new(StoredLinks::new(parts.ids.clone(), known.clone()));
        let turns = Turns::start((parts.db, parts.objects, &links), &parts.progress, move |it| {
            let _ = turned.send(Event::Turned(Box::new(it)));
        })?;
        let held = events.clone();
        let terms = settings.lease_terms(&parts);
        let holdings =
            Holdings::start(parts.db.clone(), terms, (now, sure.clone()), move |holding| {
                held.send(Event::Holding(holding)).is_ok()
            })?;
        let moved = events.clone();
        let conductor = Conductor::start(parts.means(now), settings.terms(attends), move || {
            let _ = moved.try_send(Event::Moved);
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopper = Stopper { flag: stop.clone(), events };
        let worker = Worker {
            db: parts.db.clone(),
            ids: parts.ids,
            now,
            budgets: Budgets::new(budget::Limits::default(), parts.ground.suffixes.clone()),
            allowances: Allowances::default(),
            gate: RemovalGate::new(parts.db.clone()),
            ground: parts.ground,
            attends,
            conductor,
            frontier: Frontier::new(settings.limits()),
            hosts: Hosts::default(),
            throttling: Throttling::default(),
            robots: RobotsCache::default(),
            sessions: Sessions::default(),
            known,
            jobs: JobSet::default(),
            parts: BTreeMap::new(),
            places: BTreeMap::new(),
            fetching,
            turns,
            turns_under_way: 0,
            holdings,
            statistics: Statistics::start(parts.db)?,
            lags: Lags::default(),
            sure,
            progress: parts.progress,
            herald: parts.herald,
            events: incoming,
            control: RunControl::new(stop),
            schedule: LookSchedule::new(settings.poll_ms, Moment::now()),
            began_ms: now.ms(),
            isolation: Isolation::default(),
            told: HashSet::new(),
            known_since_ms: i64::MIN,
            settings,
        };
        Ok((worker, stopper))
    }

    /// Works until the job is done, or somebody asks to stop.
    pub fn run(mut self) -> Result<Ended> {
        // A bug in this thread ends the process in good order, and says so.
        let outcome = caught(|| self.work()).flatten();
        let in_order = self.parts.iter().filter(|(part, _)| self.is_in_order(**part));
        let in_order = in_order.map(|(part, held)| (*part, held.lease.token)).collect();
        // Whatever happened, the threads end and the leases are given back.
        self.fetching.stop();
        self.conductor.stop();
        self.turns.stop();
        self.statistics.stop();
        self.holdings.stop(in_order);
        outcome
    }

    fn work(&mut self) -> Result<Ended> {
        loop {
            self.follow_clock(Moment::now());
            let looked = self.look()?;
            self.look_at_lags()?;
            self.ask()?;
            let wait = self.plan()?;
            if let Some(ended) = self.ended(looked)? {
                return Ok(ended);
            }
            self.take_events(wait)?;
        }
    }

    /// Waits for an event, then takes all that are there.
    fn take_events(&mut self, wait: Duration) -> Result<()> {
        if self.frontier.in_slots() * 2 > self.settings.in_flight_max {
            // The fetching threads have enough to do: better to be woken once for
            // several answers than for each.
            std::thread::park_timeout(GATHER);
        }
        let first = match self.events.recv_timeout(wait.min(WAIT_MAX)) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Refused("the worker's threads have ended".into()));
            }
        };
        let mut next = Some(first);
        while let Some(event) = next {
            match event {
                Event::Fetched(Fetched::Document(done)) => self.document(*done)?,
                Event::Fetched(Fetched::Login(done)) => self.logged_in(*done),
                Event::Fetched(Fetched::Robots(done)) => self.robots_txt(*done),
                Event::Fetched(Fetched::Looked(done)) => self.looked(*done),
                Event::Fetched(Fetched::NotAsked(task)) => self.not_asked(task),
                Event::Fetched(Fetched::NotYet(task, until_ms)) => self.not_yet(task, until_ms),
                Event::Turned(turned) => self.turned(*turned)?,
                Event::Holding(holding) => self.holding(holding),
                Event::Moved => self.schedule.want(),
                Event::Nudge => {
                    // What is under way of a job that is to stop is given up at once.
                    self.schedule.want();
                    self.conductor.wake();
                }
                Event::Wake => {}
            }
            next = self.events.try_recv().ok();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
