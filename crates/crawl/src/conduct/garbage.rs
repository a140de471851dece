//! Garbage collection beside the work: nobody has to call it.
//!
//! A thread of its own now and then, so that nothing waits for it. It collects the parts that
//! this process works on, under their leases, and those that nobody works on. Invariants: at
//! most one collection is under way in a process; its transactions are small, and what it
//! rewrites at a time is bounded ([`Keep::aside`]).

use super::JobContext;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use store::clock;
use store::gc::{self, Collector, Keep};
use store::panics::caught;

/// From the start of a process to its first collection: a short crawl has one at its end.
const FIRST_MS: i64 = 30 * 60_000;
/// Between two collections. Facts and bodies stay for a day in any case.
const EVERY_MS: i64 = 4 * 60 * 60_000;
/// While one is under way, it is looked at this often.
const GLANCE_MS: i64 = 60_000;

/// When collections come, and the one that is under way.
pub(super) struct CollectionSchedule {
    next_ms: i64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CollectionSchedule {
    pub(super) fn new(now_ms: i64) -> CollectionSchedule {
        CollectionSchedule { next_ms: now_ms + FIRST_MS, stop: Arc::default(), thread: None }
    }

    /// Starts a collection, if it is time. Returns how long to wait for the next.
    pub(super) fn step(&mut self, context: &JobContext) -> i64 {
        let now_ms = clock::now_ms();
        if let Some(ended) = self.thread.take_if(|thread| thread.is_finished()) {
            let _ = ended.join();
        }
        // A clock that was set back makes nobody wait for longer than usual.
        self.next_ms = self.next_ms.min(now_ms + EVERY_MS);
        if now_ms < self.next_ms || self.thread.is_some() {
            return (self.next_ms - now_ms).max(GLANCE_MS);
        }
        self.next_ms = now_ms + EVERY_MS;
        let (context, stop) = (context.clone(), self.stop.clone());
        let thread = std::thread::Builder::new().name("collector".into());
        // One that cannot be started, or fails, is tried again the next time.
        self.thread = thread.spawn(move || collect(&context, &stop)).ok();
        EVERY_MS
    }

    /// Ends it, when the part that it is at is done.
    pub(super) fn end(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn collect(context: &JobContext, stop: &AtomicBool) {
    let stops = || stop.load(Ordering::SeqCst);
    let node_name = format!("collector-{}", context.ids.node());
    let collector = Collector { ids: &context.ids, node_name: &node_name, clock: clock::now_ms };
    let _ = caught(|| gc::all(&context.db, &context.objects, &collector, &Keep::aside(), &stops));
}
