//! Deliveries beside the work: every verb that crawls also takes to outputs what its
//! commits decide, keeps the link index up to date, and tells people what became of jobs.
//!
//! Joins `crawl`, which decides, and `outputs`, which delivers; neither knows the other.
//! Invariants: the worker learns of every delivery that may end a job, and the deliveries
//! of every commit that decides something; no job waits for a notification.

use crate::place::OpenPlace;
use ::crawl::conduct::{self, Observer};
use ::crawl::job::JobSettings;
use ::crawl::lifecycle::JobEvent;
use ::crawl::worker::progress::{Progress, Waiter};
use ::crawl::worker::{Late, Stopper, WorkerSettings};
use outputs::delays::Delays;
use outputs::delivery::{self, Delivery, DeliveryContext, Listener, PreparedDeliveries, Wakeup};
use outputs::follow::{self, Follower};
use outputs::links::follow::LinkIndexConsumer;
use outputs::notifications::notifier::{self, Board, Notifier};
use outputs::rights::Claimant;
use outputs::search::follow::SearchIndexConsumer;
use std::sync::{Arc, OnceLock};
use store::ids::{IdMaker, JobId};
use store::panics::Faults;
use store::patience::Patience;
use store::tables::job_states::JobState;
use store::tables::jobs::{self, OnFailure};
use store::tables::notifications::Occasion;
use store::{Db, clock};

/// Commits that an index does not have after this long hold the crawl up, so that what is
/// committed is found within two seconds: the rest is for what is under way, and for the
/// batch that takes it.
const LATE_MS: i64 = 700;

/// How late an index may be before the crawl waits for it. Beside a database each part has a
/// shard of its own, served in turn with those of others.
pub fn late(held: &OpenPlace) -> Late {
    match held.layout() {
        Some(_) => Late::Together(LATE_MS),
        None => Late::ByPart(LATE_MS),
    }
}

/// Deliveries that begin when the worker is there.
pub struct PreparedOutputs {
    ready: PreparedDeliveries,
    telling: notifier::PreparedNotifier,
    following: follow::PreparedFollower,
    finding: follow::PreparedFollower,
    post: Arc<OutputWiring>,
}

/// From the commits of chunks until they were visible in the indexes.
#[derive(Default)]
pub struct Visible {
    /// In the link index.
    pub links: Delays,
    /// In the search index.
    pub search: Delays,
}

/// Deliveries that are made, news that are told, and an index that follows.
pub struct RunningOutputs {
    delivery: Delivery,
    follower: Follower,
    finder: Follower,
    notifier: Notifier,
}

impl RunningOutputs {
    /// Ends, when what is under way has arrived.
    pub fn stop(self) -> Visible {
        self.delivery.stop();
        let links = self.follower.stop();
        // Behind the link index, whose words it takes.
        let search = self.finder.stop();
        self.notifier.stop();
        Visible { links, search }
    }
}

/// What stands between the worker and the deliveries.
struct OutputWiring {
    db: Db,
    wakeup: Wakeup,
    links: follow::Wakeup,
    search: follow::Wakeup,
    board: Board,
    /// Wakes the worker, once it is there.
    worker: OnceLock<Stopper>,
    progress: Arc<Progress>,
}

impl PreparedOutputs {
    pub fn new(held: &OpenPlace, progress: &Arc<Progress>) -> PreparedOutputs {
        let (ready, telling) = (delivery::ready(), notifier::ready());
        let (following, finding) = (follow::ready(), follow::ready());
        let post = OutputWiring {
            db: held.db.clone(),
            wakeup: ready.wakeup(),
            links: following.wakeup(),
            search: finding.wakeup(),
            board: telling.board(),
            worker: OnceLock::new(),
            progress: progress.clone(),
        };
        PreparedOutputs { ready, telling, following, finding, post: Arc::new(post) }
    }

    /// What reacts to the worker.
    pub fn observer(&self) -> Arc<dyn Observer> {
        self.post.clone()
    }

    /// Begins, for a worker that is there.
    pub fn start(
        self,
        held: &OpenPlace,
        ids: Arc<IdMaker>,
        settings: &WorkerSettings,
        worker: &Stopper,
    ) -> store::Result<RunningOutputs> {
        let _ = self.post.worker.set(worker.clone());
        let means = notifier::NotifierContext {
            db: held.db.clone(),
            ids: ids.clone(),
            waits_ms: notifier::WAITS_MS.to_vec(),
        };
        let notifier = self.telling.start(means)?;
        let claimant = Claimant {
            db: held.db.clone(),
            ids,
            node_name: settings.node_name.clone(),
            lease_ms: settings.lease_ms,
            skew_ms: settings.skew_ms,
        };
        let (db, objects) = (held.db.clone(), held.objects.clone());
        let means = follow::FollowContext { claimant: claimant.clone(), poll_ms: settings.poll_ms };
        let links = LinkIndexConsumer::new(db.clone(), objects.clone(), held.link_index()?)?;
        let listener = self.post.listener(Waiter::Links);
        let follower = self.following.start(means.clone(), Box::new(links), listener)?;
        let search = held.search_index().clone();
        let published = Box::new(move || search.catch_up());
        let search = SearchIndexConsumer::new(held.search_means(&claimant)?, published)?;
        let listener = self.post.listener(Waiter::Search);
        let finder = self.finding.start(means, Box::new(search), listener)?;
        let (poll_ms, faults) = (settings.poll_ms, Faults::default());
        let means = DeliveryContext { db, objects, claimant, poll_ms, faults };
        Ok(RunningOutputs {
            delivery: self.ready.start(means, self.post)?,
            follower,
            finder,
            notifier,
        })
    }
}

impl OutputWiring {
    /// Who hears what a follower waits for.
    fn listener(&self, who: Waiter) -> follow::Listener {
        let progress = self.progress.clone();
        Arc::new(move |why| progress.waits_for(who, why))
    }
}

impl Observer for OutputWiring {
    fn on_commit(&self) {
        self.links.wake();
        self.search.wake();
    }

    fn on_decisions(&self) {
        self.wakeup.wake();
    }

    fn on_run_end(&self, job: JobId) -> store::Result<()> {
        delivery::job_over(&self.db, job)
    }

    fn on_event(&self, job: JobId, occasion: Occasion, state: &JobState) {
        self.board.leave(job, occasion, state);
    }
}

impl Listener for OutputWiring {
    fn patience(&self, job: JobId) -> Patience {
        let known = self.db.read(move |tx| conduct::patience(tx, job));
        known.unwrap_or_else(|_| JobSettings::default().patience)
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
        let (event, now_ms) = (JobEvent::Fail(why.to_owned()), clock::now_ms());
        // If this cannot be written now, the next failure, or the next run, writes it.
        let _ = self.db.write(move |tx| conduct::try_to(tx, job, &event, now_ms));
        self.delivered();
    }

    fn waits_for(&self, why: Option<String>) {
        self.progress.waits_for(Waiter::Outputs, why);
    }
}
