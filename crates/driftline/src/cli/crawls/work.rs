//! `driftline work`: works on every job there is, until it is stopped.
//!
//! Jobs are started, paused and stopped by other processes, or by their schedules; this
//! one carries them out, and the crawls that other commands hand over. Invariants: whatever
//! ends the process, the next one goes on where the last commit was; its exit code comes
//! from the rows of the runs that ended, whoever worked on them.

mod status_lines;
mod summary;

use super::crawl::signals;
use super::deliveries::{self, PreparedOutputs};
use super::run_as::RunAs;
use crate::cli::say;
use crate::place::holder::DOING_WORK;
use crate::place::{OpenPlace, Place};
use crate::stderr;
use crate::text::shown;
use crate::verbs::crawl::flags;
use crate::verbs::crawl::hosted_runs::{CrawlHosting, HostedCrawls};
use crate::verbs::jobs::job_status::WORK_ROLE;
use ::crawl::begin;
use ::crawl::conduct::Attends;
use ::crawl::definitions::WebSpec;
use ::crawl::worker::progress::{Progress, ProgressCounts};
use ::crawl::worker::{CrawlEnd, ROLE as CRAWL_ROLE, Worker, WorkerDeps, WorkerSettings};
use clap::Args as ClapArgs;
pub use status_lines::Audience;
use status_lines::StatusPrinterThread;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use store::clock;
use store::ids::{IdMaker, NodeId};
use store::tables::nodes::{self, NewNode};
use store::tables::settings;
use summary::{RunsBefore, WorkSummary};

/// Work on all jobs until stopped
///
/// Jobs are defined, started and stopped with `driftline job`, on this machine or another, or start
/// on schedule. While this process holds a data directory, `driftline crawl` hands its crawls to
/// it. Several processes can work on one database, but only one at a time on a data directory.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  driftline work
  driftline work --until-idle
  driftline work --user driftline    # started by root
  driftline work --database postgres://driftline@db/driftline --objects s3://crawl/objects

Exit code: 0 no run failed, 1 a run failed, 2 error. A run fails if an error aborts it, or if it
could fetch nothing. A run that a user aborts has not failed.")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Exit when no job has anything left to do
    #[arg(long)]
    until_idle: bool,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    run_as: RunAs,
}

/// How a process works on jobs.
#[derive(ClapArgs)]
pub struct Effort {
    /// Number of documents to work on at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    concurrency: usize,
    /// Name of this process among those that share the database; keep it the same across restarts
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Seconds without a heartbeat after which a process loses its parts of the database
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = flags::seconds)]
    lease: f64,
    /// Pause while less than this percentage of the data directory's disk is free, or less than
    /// about 900 MB, which a commit, a merge and a checkpoint may write; 0 continues until the disk
    /// is full
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    min_free: u64,
    /// Number of parts of a new database; more parts can be spread over more machines
    #[arg(long, value_name = "N", default_value_t = settings::PARTS_DEFAULT)]
    parts: u32,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let warning = args.run_as.begin()?;
    let mut working = WorkProcess::prepare(&args.place, &args.effort)?;
    if let Some(warning) = warning {
        stderr::line(&format!("driftline: {warning}"));
    }
    // Ends before the directory is given back.
    let _listening = working.held.listen_and_host(DOING_WORK, Some(working.hosted.clone()))?;
    let db = working.held.db.clone();
    let before = RunsBefore::read(&db)?;
    let audience = if args.place.json() { Audience::Nobody } else { Audience::terminal() };
    let worked = working.run(&args.place, args.until_idle, audience, || Ok(()), || ())?;
    let summary = WorkSummary::read(&db, &before, worked)?;
    match args.place.json() {
        true => say(&serde_json::to_string(&summary)?),
        false => summary.lines().iter().for_each(|line| say(line)),
    }
    if args.until_idle {
        crate::cli::data::gc::after_work(&working.held);
    }
    Ok(if summary.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What a process that works on all jobs did.
pub struct WorkOutcome {
    pub ended: CrawlEnd,
    pub did: ProgressCounts,
}

/// A process that is about to work on all jobs of a place.
pub struct WorkProcess {
    /// Crawls of other commands. Declared first and so dropped first: it uses the place.
    pub hosted: Arc<HostedCrawls>,
    pub held: OpenPlace,
    settings: WorkerSettings,
    /// Where this process listens: no crawl may go there.
    pub own: Vec<SocketAddr>,
}

impl WorkProcess {
    /// Takes the place, and makes or upgrades it first.
    pub fn prepare(place: &Place, effort: &Effort) -> anyhow::Result<WorkProcess> {
        let lease_ms = flags::milliseconds("--lease", effort.lease)?.max(100);
        let held = place.patiently(|place| place.hold_or_make(effort.parts))?;
        let node_name = crate::cli::crawls::crawl::node_name(effort.node.as_deref(), &held);
        let mut settings =
            WorkerSettings::new(&node_name, effort.concurrency.max(1)).with_lease(lease_ms);
        settings.disk_free_percent = effort.min_free;
        settings.disk = held.layout().map(|layout| layout.root().to_owned());
        settings.late = Some(deliveries::late(&held));
        // Each web job says who it is; this is for what belongs to none.
        let usual = WebSpec::default();
        (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
        Ok(WorkProcess { hosted: Arc::default(), held, settings, own: Vec::new() })
    }

    /// Works until it is stopped, or until nothing is left to do. `began` is called when it
    /// can be stopped in good order, `stops` when somebody asks for it.
    pub fn run(
        &mut self,
        place: &Place,
        until_idle: bool,
        audience: Audience,
        began: impl FnOnce() -> anyhow::Result<()>,
        stops: impl Fn() + Send + 'static,
    ) -> anyhow::Result<WorkOutcome> {
        self.settings.until_idle = until_idle;
        let node = NewNode {
            name: self.settings.node_name.clone(),
            roles: format!("{} {WORK_ROLE}", CRAWL_ROLE),
            address: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let db = &self.held.db;
        let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let worked = self.work(place, node, audience, began, stops);
        let stopped = db.write(move |tx| nodes::stop(tx, node, clock::now_ms()));
        let worked = worked?;
        stopped?;
        match worked.ended {
            CrawlEnd::Replaced => anyhow::bail!(
                "another process has started with the name {}, so this one has stopped; give each \
                 process its own --node NAME",
                shown(&self.settings.node_name)
            ),
            _ => Ok(worked),
        }
    }

    fn work(
        &self,
        place: &Place,
        node: NodeId,
        audience: Audience,
        began: impl FnOnce() -> anyhow::Result<()>,
        stops: impl Fn() + Send + 'static,
    ) -> anyhow::Result<WorkOutcome> {
        let (held, settings) = (&self.held, &self.settings);
        let ids = Arc::new(IdMaker::new(node)?);
        let own = [place.addresses()?, self.own.clone()].concat();
        let mut shared = begin::shared(&held.db, own)?;
        shared.extractor = Arc::new(crate::cli::crawls::extract::extractor());
        let progress = Arc::new(Progress::default());
        let delivering = PreparedOutputs::new(held, &progress);
        let deps = WorkerDeps {
            db: held.db.clone(),
            objects: held.objects.clone(),
            ids: ids.clone(),
            shared,
            progress: progress.clone(),
            observer: delivering.observer(),
        };
        let context = deps.context();
        let (worker, stopper) = Worker::start(deps, settings.clone(), Attends::All)?;
        let delivery = delivering.start(held, ids, settings, &stopper)?;
        let running =
            CrawlHosting { stopper: stopper.clone(), progress: progress.clone(), context };
        self.hosted.started(running);
        let stopping = signals::heed("work", move || {
            stops();
            stopper.stop();
        })?;
        began()?;
        let telling = StatusPrinterThread::start(&held.db, progress.clone(), audience)?;
        let ended = worker.run();
        self.hosted.end();
        let _ = delivery.stop();
        telling.stop();
        drop(stopping);
        Ok(WorkOutcome { ended: ended?, did: progress.snapshot() })
    }
}
