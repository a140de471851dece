//! Working on a run, from its begin to its end: somebody may watch, Ctrl-C is obeyed.
//!
//! The same for every verb that crawls. Invariant: however the work ends, its node is
//! marked as stopped before the answer, so that nobody waits for it.

use super::{live, signals};
use crate::cli::crawls::deliveries::{PreparedOutputs, Visible};
use crate::cli::crawls::extract;
use crate::place::OpenPlace;
use crate::verbs::crawl::mirror::MirrorTarget;
use ::crawl::begin::{self, Begun};
use ::crawl::conduct::Attends;
use ::crawl::definitions::WebSpec;
use ::crawl::worker::progress::{Progress, ProgressCounts};
use ::crawl::worker::{CrawlEnd, ROLE as CRAWL_ROLE, Worker, WorkerDeps, WorkerSettings};
use std::net::SocketAddr;
use std::sync::Arc;
use store::clock;
use store::ids::{IdMaker, NodeId};
use store::tables::nodes::{self, NewNode};

/// What is to be done.
pub struct CrawlWork<'a> {
    pub held: &'a OpenPlace,
    /// Addresses of our own that no crawl may reach.
    pub own: Vec<SocketAddr>,
    /// The job, which is made if it is not there.
    pub name: &'a str,
    /// What it is told.
    pub spec: &'a WebSpec,
    /// Where it keeps a browsable copy from now on.
    pub mirror: Option<&'a MirrorTarget>,
    pub settings: WorkerSettings,
    /// Whether nothing is shown meanwhile.
    pub quiet: bool,
}

pub struct CrawlWorkDone {
    pub begun: Begun,
    /// What this process did.
    pub did: ProgressCounts,
    pub ended: CrawlEnd,
    /// From the commits of chunks until they were visible in the indexes.
    pub visible: Visible,
}

impl CrawlWork<'_> {
    /// Begins the job's next run, or goes on with it, and works until it is over or
    /// somebody stops it.
    pub fn run(
        self,
        announce: impl FnOnce(&Begun) -> store::Result<()>,
    ) -> anyhow::Result<CrawlWorkDone> {
        let db = &self.held.db;
        let node = NewNode {
            name: self.settings.node_name.clone(),
            roles: CRAWL_ROLE.to_owned(),
            address: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let worked = self.attend(node, announce);
        let stopped = db.write(move |tx| nodes::stop(tx, node, clock::now_ms()));
        // What went wrong first is what matters.
        let worked = worked?;
        stopped?;
        Ok(worked)
    }

    fn attend(
        self,
        node: NodeId,
        announce: impl FnOnce(&Begun) -> store::Result<()>,
    ) -> anyhow::Result<CrawlWorkDone> {
        let (db, objects) = (&self.held.db, &self.held.objects);
        let ids = Arc::new(IdMaker::new(node)?);
        let mut shared = begin::shared(db, self.own)?;
        shared.extractor = Arc::new(extract::extractor());
        let progress = Arc::new(Progress::default());
        let delivering = PreparedOutputs::new(self.held, &progress);
        let deps = WorkerDeps {
            db: db.clone(),
            objects: objects.clone(),
            ids: ids.clone(),
            shared,
            progress: progress.clone(),
            observer: delivering.observer(),
        };
        let (at, terms) = (deps.context(), self.settings.terms(Attends::All));
        if let Some(mirror) = self.mirror {
            begin::define(&at, self.name, self.spec)?;
            mirror.ensure(db, self.name)?;
        }
        let begun = begin::begin(&at, terms, self.name, self.spec)?;
        announce(&begun)?;
        let (worker, stopper) =
            Worker::start(deps, self.settings.clone(), Attends::One(begun.job))?;
        let delivery = delivering.start(self.held, ids, &self.settings, &stopper)?;
        let stopping = signals::listen(stopper)?;
        let watching = live::watch(&self.held.db, &progress, begun.job, self.quiet)?;
        let ended = worker.run();
        let visible = delivery.stop();
        watching.stop();
        drop(stopping);
        Ok(CrawlWorkDone { begun, did: progress.snapshot(), ended: ended?, visible })
    }
}
