//! Deliveries beside the work: every verb that crawls also takes to outputs what its
//! commits decide.
//!
//! Joins `crawl`, which decides, and `outputs`, which delivers; neither knows the other.
//! Invariant: the worker learns of every delivery that may end a job, and the deliveries
//! of every commit that decides something.

use super::place::Held;
use ::crawl::conduct::{self, Herald};
use ::crawl::lifecycle::Event;
use ::crawl::worker::job::Manners;
use ::crawl::worker::progress::Progress;
use ::crawl::worker::{Settings, Stopper};
use outputs::delivery::{self, Bell, Delivery, Listener, Means, Ready};
use std::sync::{Arc, OnceLock};
use store::ids::{IdMaker, JobId};
use store::patience::Patience;
use store::tables::jobs::{self, OnFailure};
use store::{Db, clock};

/// Deliveries that begin when the worker is there.
pub struct Delivering {
    ready: Ready,
    post: Arc<Post>,
}

/// What stands between the worker and the deliveries.
struct Post {
    db: Db,
    bell: Bell,
    /// Wakes the worker, once it is there.
    worker: OnceLock<Stopper>,
    progress: Arc<Progress>,
}

impl Delivering {
    /// Makes them ready.
    pub fn new(held: &Held, progress: &Arc<Progress>) -> Delivering {
        let ready = delivery::ready();
        let post = Post {
            db: held.db.clone(),
            bell: ready.bell(),
            worker: OnceLock::new(),
            progress: progress.clone(),
        };
        Delivering { ready, post: Arc::new(post) }
    }

    /// Whom the worker tells.
    pub fn herald(&self) -> Arc<dyn Herald> {
        self.post.clone()
    }

    /// Begins, for a worker that is there.
    pub fn start(
        self,
        (held, ids): (&Held, Arc<IdMaker>),
        settings: &Settings,
        worker: &Stopper,
    ) -> store::Result<Delivery> {
        let _ = self.post.worker.set(worker.clone());
        let means = Means {
            db: held.db.clone(),
            objects: held.objects.clone(),
            ids,
            node_name: settings.node_name.clone(),
            lease_ms: settings.lease_ms,
            skew_ms: settings.skew_ms,
            poll_ms: settings.poll_ms,
        };
        self.ready.start(means, self.post)
    }
}

impl Herald for Post {
    fn committed(&self) {
        self.bell.ring();
    }

    fn run_over(&self, job: JobId) -> store::Result<()> {
        delivery::job_over(&self.db, job)
    }
}

impl Listener for Post {
    fn patience(&self, job: JobId) -> Patience {
        let known = self.db.read(move |tx| conduct::patience(tx, job));
        known.unwrap_or_else(|_| Manners::default().patience)
    }

    fn delivered(&self) {
        if let Some(worker) = self.worker.get() {
            worker.nudge();
        }
    }

    fn gave_up(&self, job: JobId, why: &str) {
        let known = self.db.read(move |tx| jobs::load(tx, job)).ok().flatten();
        if !known.is_some_and(|job| job.on_failure == OnFailure::Abort) {
            return;
        }
        let (event, now_ms) = (Event::Fail(why.to_owned()), clock::now_ms());
        // If this cannot be written now, the next failure, or the next run, writes it.
        let _ = self.db.write(move |tx| conduct::try_to(tx, job, &event, now_ms));
        self.delivered();
    }

    fn waits_for(&self, why: Option<String>) {
        self.progress.waits_for(why);
    }
}
