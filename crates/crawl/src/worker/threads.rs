//! The threads of a worker: those that fetch, commit, keep leases, conduct jobs, and look after
//! the database. What they have to say comes as events.
//!
//! Invariant: whatever is sent is answered by one event, and no more turns are under way than
//! there are threads for.

mod statistics;

use crate::conduct::{Attends, Conductor};
use crate::worker::ask::fetch_threads::FetchThreads;
use crate::worker::ask::sessions::LOGINS_MAX;
use crate::worker::ask::tasks::{FetchReport, Task};
use crate::worker::commit::turn::Turn;
use crate::worker::commit::turn_threads::{TURNS_MAX, TurnResult, TurnThreads};
use crate::worker::leases::check::{LeaseCheck, LeaseKey};
use crate::worker::leases::keeper::{LeaseEvent, LeaseKeeper};
use crate::worker::read::stored_links::StoredLinks;
use crate::worker::{WorkerDeps, WorkerSettings};
use statistics::Statistics;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use store::ids::Part;
use store::{Error, Result};

/// Events that may wait for the worker beyond what is under way.
const EVENTS_SPARE: usize = 5_000;
/// With most requests under way, answers are gathered for so long.
const GATHER: Duration = Duration::from_millis(2);
/// The longest wait for an event: a missed wake-up costs no more than this.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What the threads report.
pub enum WorkerEvent {
    Fetched(FetchReport),
    Turned(Box<TurnResult>),
    Lease(LeaseEvent),
    /// A job has moved on.
    JobMoved,
    /// Somebody has told a job something.
    Nudge,
    /// The worker is to look whether it goes on.
    Wake,
}

/// Asks a worker to stop.
#[derive(Clone)]
pub struct Stopper {
    flag: Arc<AtomicBool>,
    events: SyncSender<WorkerEvent>,
}

impl Stopper {
    /// Finish what is under way, commit, and end.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::SeqCst);
        let _ = self.events.try_send(WorkerEvent::Wake);
    }

    /// Look now what jobs have been told, and not at the next look.
    pub fn nudge(&self) {
        let _ = self.events.try_send(WorkerEvent::Nudge);
    }

    /// What is set when the worker is to stop.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }
}

pub struct Threads {
    fetching: FetchThreads,
    turns: TurnThreads,
    turns_under_way: usize,
    keeper: LeaseKeeper,
    conductor: Conductor,
    statistics: Statistics,
    events: Events,
    lease_check: LeaseCheck,
}

impl Threads {
    pub fn start(
        deps: &WorkerDeps,
        settings: &WorkerSettings,
        attends: Attends,
        links: StoredLinks,
    ) -> Result<(Threads, Stopper)> {
        let (events, incoming) = sync_channel(EVENTS_SPARE + settings.under_way_max());
        let lease_check = LeaseCheck::default();
        let fetching = FetchThreads::start(
            &settings.fetch,
            settings.fetch_threads,
            settings.under_way_max() + LOGINS_MAX,
            lease_check.clone(),
            reporting(&events, WorkerEvent::Fetched),
        )?;
        let turned = |turned| WorkerEvent::Turned(Box::new(turned));
        let turns = TurnThreads::start(deps, &Arc::new(links), reporting(&events, turned))?;
        let keeper = LeaseKeeper::start(
            deps.db.clone(),
            settings.lease_terms(deps),
            lease_check.clone(),
            reporting(&events, WorkerEvent::Lease),
        )?;
        let moved = events.clone();
        let conductor = Conductor::start(deps.context(), settings.terms(attends), move || {
            let _ = moved.try_send(WorkerEvent::JobMoved);
        })?;
        let statistics = Statistics::start(&deps.db)?;
        let (turns_under_way, events_in) = (0, Events { incoming });
        let threads = Threads {
            fetching,
            turns,
            turns_under_way,
            keeper,
            conductor,
            statistics,
            events: events_in,
            lease_check,
        };
        Ok((threads, Stopper { flag: Arc::default(), events }))
    }

    /// Whether any part is held for sure, so that something may be asked for.
    pub fn may_ask(&self, now_ms: i64) -> bool {
        self.lease_check.is_any_held(now_ms)
    }

    /// Has something fetched. The caller keeps within what may be under way.
    pub fn fetch(&mut self, task: Task) {
        self.fetching.send(task);
    }

    /// Whether another turn can be sent.
    pub fn has_room_for_turn(&self) -> bool {
        self.turns_under_way < TURNS_MAX
    }

    pub fn is_turn_under_way(&self) -> bool {
        self.turns_under_way > 0
    }

    pub fn send_turn(&mut self, turn: Turn) {
        self.turns_under_way += 1;
        self.turns.send(turn);
    }

    /// A turn has been answered.
    pub fn on_turned(&mut self) {
        self.turns_under_way -= 1;
    }

    /// Gives a part back: nothing of it is under way any more. `in_order` says that every
    /// request is in the tables.
    pub fn give_lease_back(&self, part: Part, in_order: bool) {
        self.keeper.give_back(part, in_order);
    }

    /// Something has happened that may move a job on.
    pub fn wake_conductor(&self) {
        self.conductor.wake();
    }

    /// Waits for an event; `None` if none comes. While the fetching threads are busy, it is better
    /// to be woken once for several answers than for each.
    pub fn wait(&self, is_busy: bool, wait: Duration) -> Result<Option<WorkerEvent>> {
        if is_busy {
            std::thread::park_timeout(GATHER);
        }
        self.events.wait(wait)
    }

    /// An event that is there.
    pub fn next_event(&self) -> Option<WorkerEvent> {
        self.events.next()
    }

    /// Ends them, and gives all leases back, these in good order.
    pub fn stop(self, in_order: BTreeSet<LeaseKey>) {
        self.fetching.stop();
        self.conductor.stop();
        self.turns.stop();
        self.statistics.stop();
        self.keeper.stop(in_order);
    }
}

/// Reports what a thread has to say as an event. Returns whether anybody listens, which nobody
/// does only when the process ends.
fn reporting<T>(
    events: &SyncSender<WorkerEvent>,
    event: impl Fn(T) -> WorkerEvent + Clone + Send + 'static,
) -> impl Fn(T) -> bool + Clone + Send + 'static {
    let events = events.clone();
    move |it| events.send(event(it)).is_ok()
}

/// What the threads have to say.
struct Events {
    incoming: Receiver<WorkerEvent>,
}

impl Events {
    fn wait(&self, wait: Duration) -> Result<Option<WorkerEvent>> {
        match self.incoming.recv_timeout(wait.min(WAIT_MAX)) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::Refused("the worker's threads have ended".into()))
            }
        }
    }

    fn next(&self) -> Option<WorkerEvent> {
        self.incoming.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_one_by_one_and_their_end_is_an_error() {
        let (sender, incoming) = sync_channel(4);
        let events = Events { incoming };
        let stopper = Stopper { flag: Arc::default(), events: sender.clone() };
        let report = reporting(&sender, WorkerEvent::Lease);
        drop(sender);
        assert!(events.wait(Duration::ZERO).unwrap().is_none());
        stopper.stop();
        stopper.nudge();
        assert!(report(LeaseEvent::Lost(Part(3))));
        assert!(stopper.flag().load(Ordering::SeqCst));
        assert!(matches!(events.wait(WAIT_MAX).unwrap(), Some(WorkerEvent::Wake)));
        assert!(matches!(events.next(), Some(WorkerEvent::Nudge)));
        assert!(matches!(events.next(), Some(WorkerEvent::Lease(LeaseEvent::Lost(Part(3))))));
        assert!(events.next().is_none());
        drop((stopper, report));
        assert!(events.wait(WAIT_MAX).is_err());
    }
}
