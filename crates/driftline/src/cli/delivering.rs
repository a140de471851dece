//! Deliveries beside the work: every verb that crawls also takes to outputs what its
//! commits decide, keeps the link index up to date, and tells people what became of jobs.
//!
//! Joins `crawl`, which decides, and `outputs`, which delivers; neither knows the other.
//! Invariants: the worker learns of every delivery that may end a job, and the deliveries
//! of every commit that decides something; no job waits for a notification.

use super::place::Held;
use ::crawl::conduct::{self, Herald};
use ::crawl::lifecycle::Event;
use ::crawl::worker::job::Manners;
use ::crawl::worker::progress::{Progress, Waiter};
use ::crawl::worker::{Settings, Stopper};
use outputs::delays::Delays;
use outputs::delivery::{self, Bell, Delivery, Listener, Means, Ready};
use outputs::links::follow::{self, Follower};
use outputs::notifications::telling::{self, Board, Teller};
use outputs::rights::Claimant;
use std::sync::{Arc, OnceLock};
use store::ids::{IdMaker, JobId};
use store::patience::Patience;
use store::tables::job_states::State;
use store::tables::jobs::{self, OnFailure};
use store::tables::notifications::Occasion;
use store::{Db, clock};

/// Deliveries that begin when the worker is there.
pub struct Delivering {
    ready: Ready,
    telling: telling::Ready,
    following: follow::Ready,
    post: Arc<Post>,
}

/// Deliveries that are made, news that are told, and an index that follows.
pub struct Delivered {
    delivery: Delivery,
    follower: Follower,
    teller: Teller,
}

impl Delivered {
    /// Ends, when what is under way has arrived. Returns how long the links of chunks
    /// took to be visible.
    pub fn stop(self) -> Delays {
        self.delivery.stop();
        let delays = self.follower.stop();
        self.teller.stop();
        delays
    }
}

/// What stands between the worker and the deliveries.
struct Post {
    db: Db,
    bell: Bell,
    links: follow::Bell,
    board: Board,
    /// Wakes the worker, once it is there.
    worker: OnceLock<Stopper>,
    progress: Arc<Progress>,
}

impl Delivering {
    /// Makes them ready.
    pub fn new(held: &Held, progress: &Arc<Progress>) -> Delivering {
        let (ready, telling, following) = (delivery::ready(), telling::ready(), follow::ready());
        let post = Post {
            db: held.db.clone(),
            bell: ready.bell(),
            links: following.bell(),
            board: telling.board(),
            worker: OnceLock::new(),
            progress: progress.clone(),
        };
        Delivering { ready, telling, following, post: Arc::new(post) }
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
    ) -> store::Result<Delivered> {
        let _ = self.post.worker.set(worker.clone());
        let means = telling::Means {
            db: held.db.clone(),
            ids: ids.clone(),
            waits_ms: telling::WAITS_MS.to_vec(),
        };
        let teller = self.telling.start(means)?;
        let claimant = Claimant {
            db: held.db.clone(),
            ids,
            node_name: settings.node_name.clone(),
            lease_ms: settings.lease_ms,
            skew_ms: settings.skew_ms,
        };
        let (db, objects) = (held.db.clone(), held.objects.clone());
        let means = follow::Means {
            db: db.clone(),
            objects: objects.clone(),
            index: held.links()?,
            claimant: claimant.clone(),
            poll_ms: settings.poll_ms,
        };
        let progress = self.post.progress.clone();
        let listener: follow::Listener =
            Arc::new(move |why| progress.waits_for(Waiter::Links, why));
        let follower = self.following.start(means, listener)?;
        let means = Means { db, objects, claimant, poll_ms: settings.poll_ms };
        Ok(Delivered { delivery: self.ready.start(means, self.post)?, follower, teller })
    }
}

impl Herald for Post {
    fn committed(&self) {
        self.links.ring();
    }

    fn decided(&self) {
        self.bell.ring();
    }

    fn run_over(&self, job: JobId) -> store::Result<()> {
        delivery::job_over(&self.db, job)
    }

    fn happened(&self, job: JobId, occasion: Occasion, state: &State) {
        self.board.leave(job, occasion, state);
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
        self.progress.waits_for(Waiter::Outputs, why);
    }
}
