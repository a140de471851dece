//! Work spread over a few threads.
//!
//! Invariants: what waits is bounded; after the first error nothing more is begun, and that
//! error is returned. With one thread all happens in order, on the caller's.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use store::{Error, Result};

/// Items that wait for a thread.
const WAITING_MAX: usize = 64;

/// Hands items to whoever works on them.
pub(super) enum Sender<'w, T> {
    Inline(&'w (dyn Fn(T) -> Result<()> + Sync)),
    Queue(SyncSender<T>),
}

impl<T> Sender<'_, T> {
    pub(super) fn send(&self, item: T) -> Result<()> {
        match self {
            Sender::Inline(work) => work(item),
            // The workers have stopped at an error, which is returned in the end.
            Sender::Queue(queue) => queue.send(item).map_err(|_| stopped()),
        }
    }
}

fn stopped() -> Error {
    Error::Internal { reason: "the threads of a mirror have stopped".to_owned() }
}

/// Works on all that `produce` sends, with so many threads.
pub(super) fn spread<T: Send>(
    threads: usize,
    produce: impl FnOnce(&Sender<'_, T>) -> Result<()>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    if threads <= 1 {
        return produce(&Sender::Inline(&work));
    }
    let (queue, items) = sync_channel(WAITING_MAX);
    let items = Mutex::new(Some(items));
    let run = || drain(&items, &work);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let produced = produce(&Sender::Queue(queue));
        let mut outcome = Ok(());
        for worker in workers {
            let worked = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(worked);
        }
        // That the workers have stopped says less than why.
        outcome.and(produced)
    })
}

fn drain<T>(items: &Mutex<Option<Receiver<T>>>, work: &impl Fn(T) -> Result<()>) -> Result<()> {
    loop {
        let item = {
            let items = items.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(queue) = items.as_ref() else { return Ok(()) };
            match queue.recv() {
                Ok(item) => item,
                Err(_) => return Ok(()),
            }
        };
        if let Err(error) = work(item) {
            // Without a receiver whoever sends is told.
            *items.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return Err(error);
        }
    }
}
