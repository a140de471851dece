//! The threads that run turns, so that the worker never waits for a disk or a network.
//!
//! Trouble with the database or the disk is waited out here: a turn is tried again
//! until it succeeds, its lease is lost, or the process is told to end. One that panics is
//! tried a few times, because its cause may pass, and then answered as an error. Invariant: a
//! turn that was sent is answered once, also when it panics.

use crate::hops::Spread;
use crate::worker::WorkerDeps;
use crate::worker::commit::turn::{ReadyTurn, Runner, Turn, TurnDone};
use crate::worker::progress::{Progress, Waiter};
use crate::worker::read::stored_links::StoredLinks;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::panics::caught;
use store::{Error, Result};

/// Turns under way at once, each of another part.
pub const TURNS_MAX: usize = 4;
/// The first wait after trouble; it doubles up to [`WAIT_MAX`].
const WAIT_MIN: Duration = Duration::from_millis(100);
/// How often a turn that panics is tried.
const PANICS_MAX: u32 = 3;
/// The longest wait after trouble.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What came of a turn.
pub struct TurnResult {
    /// The turn, and what was made of it.
    pub ready: Arc<ReadyTurn>,
    pub outcome: Result<TurnDone>,
}

pub struct TurnThreads {
    turns: Option<SyncSender<Turn>>,
    threads: Vec<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
}

impl TurnThreads {
    pub fn start(
        deps: &WorkerDeps,
        links: &Arc<StoredLinks>,
        report: impl Fn(TurnResult) -> bool + Clone + Send + 'static,
    ) -> Result<TurnThreads> {
        let (turns, incoming) = sync_channel(TURNS_MAX);
        let incoming = Arc::new(Mutex::new(incoming));
        let ending = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for number in 0..TURNS_MAX {
            let (deps, links, report) = (deps.clone(), links.clone(), report.clone());
            let (incoming, ending) = (incoming.clone(), ending.clone());
            let thread = std::thread::Builder::new()
                .name(format!("commit-{number}"))
                .spawn(move || {
                    let runner = Runner { db: &deps.db, objects: &deps.objects, links: &links };
                    let patience = Patience { progress: &deps.progress, ending: &ending };
                    serve(&runner, &incoming, &patience, report);
                })
                .map_err(|error| Error::io("commits", error))?;
            threads.push(thread);
        }
        Ok(TurnThreads { turns: Some(turns), threads, ending })
    }

    /// Hands a turn over. There are never more than [`TURNS_MAX`] under way.
    pub fn send(&self, turn: Turn) {
        let sent = self.turns.as_ref().expect("it is there until the end").try_send(turn);
        assert!(sent.is_ok(), "no more turns are sent than there are threads");
    }

    /// Ends the threads. A turn that is waiting out trouble is given up.
    pub fn stop(mut self) {
        self.ending.store(true, Ordering::SeqCst);
        self.turns = None;
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn serve(
    runner: &Runner<'_>,
    incoming: &Mutex<Receiver<Turn>>,
    patience: &Patience<'_>,
    report: impl Fn(TurnResult) -> bool,
) {
    loop {
        let next = incoming.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(turn) = next else { return };
        let (ready, prepared) = prepare(runner, turn, patience);
        let ready = Arc::new(ready);
        let outcome = prepared.and_then(|()| run(runner, &ready, patience));
        // Nobody listens only when the process ends.
        let _ = report(TurnResult { ready, outcome });
    }
}

/// Waits out trouble, and says what it waits for.
struct Patience<'a> {
    progress: &'a Progress,
    ending: &'a AtomicBool,
}

impl Patience<'_> {
    /// Whether to try again after this error, having waited.
    fn bears(&self, error: &Error, wait: &mut Duration) -> bool {
        let is_internal = matches!(error, Error::Internal { .. });
        if !(error.passes() || is_internal) || self.ending.load(Ordering::SeqCst) {
            return false;
        }
        self.progress
            .waits_for(Waiter::Commit, Some(format!("{error}; retrying until it succeeds")));
        std::thread::park_timeout(*wait);
        *wait = (*wait * 2).min(WAIT_MAX);
        true
    }
}

/// Prepares a turn. One that panics may be half prepared, and is not tried again.
fn prepare(
    runner: &Runner<'_>,
    mut turn: Turn,
    patience: &Patience<'_>,
) -> (ReadyTurn, Result<()>) {
    let mut wait = WAIT_MIN;
    loop {
        let error = match caught(|| runner.prepare(&mut turn)).flatten() {
            Ok(prepared) => return (ReadyTurn::new(turn, prepared), Ok(())),
            Err(error) => error,
        };
        if matches!(error, Error::Internal { .. }) || !patience.bears(&error, &mut wait) {
            return (ReadyTurn::new(turn, None), Err(error));
        }
    }
}

fn run(runner: &Runner<'_>, ready: &Arc<ReadyTurn>, patience: &Patience<'_>) -> Result<TurnDone> {
    let mut wait = WAIT_MIN;
    let (mut again, mut panics) = (false, 0);
    loop {
        match caught(|| runner.run(ready, again)).flatten() {
            Ok(mut done) => {
                if wait > WAIT_MIN {
                    patience.progress.waits_for(Waiter::Commit, None);
                }
                return match caught(|| runner.spread(ready.turn(), &mut done)).flatten() {
                    Ok(()) => Ok(done),
                    // The next turn meets it, too, and goes on from there.
                    Err(error) if error.passes() || matches!(error, Error::LeaseLost { .. }) => {
                        done.spread = Spread::More;
                        Ok(done)
                    }
                    Err(error) => Err(error),
                };
            }
            Err(error) => {
                panics += u32::from(matches!(error, Error::Internal { .. }));
                if panics >= PANICS_MAX || !patience.bears(&error, &mut wait) {
                    return Err(error);
                }
                again = true;
            }
        }
    }
}
