//! `driftline work`: works on every job there is, until it is stopped.
//!
//! Jobs are started, paused and stopped by other processes, or by their schedules; this
//! one carries them out. Invariant: whatever ends the process, the next one goes on where
//! the last commit was.

use super::crawl::{flags, stopping};
use super::delivering::Delivering;
use super::place::{Held, Place};
use super::{say, shown};
use ::crawl::begin;
use ::crawl::conduct::Attends;
use ::crawl::definitions::WebSpec;
use ::crawl::worker::progress::Progress;
use ::crawl::worker::{Ended, Parts, Settings, Stopper, Worker, holdings};
use clap::Args as ClapArgs;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{IdMaker, JobId, NodeId};
use store::tables::nodes::{self, NewNode};
use store::tables::{job_states, jobs, settings};
use store::{Db, clock};

/// The role of a process that works on all jobs.
pub(super) const ROLE: &str = "work";
/// How often the states of jobs are looked at to tell of them.
const GLANCE: Duration = Duration::from_millis(500);
/// Jobs whose states are told.
const JOBS_MAX: u32 = 1_000;

/// Work on all jobs, until stopped
///
/// Jobs are defined, started and stopped with `driftline job`, by this machine or others,
/// or start by their schedules. Several processes may work on one database; a data
/// directory has one at a time.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  driftline work
  driftline work --until-idle
  driftline work --database postgres://driftline@db/driftline --objects s3://crawl/objects

Exit code: 0 it was stopped in good order or nothing is left to do, 2 it could not be done.")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// End when no job has anything to do
    #[arg(long)]
    until_idle: bool,
    /// Documents under way at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    concurrency: usize,
    /// This process's name among those that share a database; the same after a restart
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// How many seconds a silent process keeps its parts of a database
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    lease: f64,
    /// Pause while less than so much of the data directory's disk is free
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    min_free: u64,
    /// The number of parts of a new database: more for more machines
    #[arg(long, value_name = "N", default_value_t = settings::PARTS_DEFAULT)]
    parts: u32,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let lease_ms = flags::milliseconds("--lease", args.lease)?.max(100);
    let held = args.place.patiently(|place| place.hold_or_make(args.parts))?;
    let nudging: Arc<OnceLock<Stopper>> = Arc::default();
    let nudged = nudging.clone();
    let _listening = held.answer_and("work", move || {
        if let Some(stopper) = nudged.get() {
            stopper.nudge();
        }
    })?;
    let node_name = super::crawl::node_name(args.node.as_deref(), &held);
    let mut settings = Settings::new(&node_name, args.concurrency.max(1)).with_lease(lease_ms);
    settings.disk_free_percent = args.min_free;
    settings.disk = held.layout().map(|layout| layout.root().to_owned());
    settings.until_idle = args.until_idle;
    // Each web job says who it is; this is for what belongs to none.
    let usual = WebSpec::default();
    (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
    let node = NewNode {
        name: node_name.clone(),
        roles: format!("{} {ROLE}", holdings::ROLE),
        address: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let db = &held.db;
    let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    let ended = work((&args, &held), node, settings, &nudging);
    let stopped = db.write(move |tx| nodes::stop(tx, node, clock::now_ms()));
    let ended = ended?;
    stopped?;
    match ended {
        Ended::Replaced => anyhow::bail!(
            "another process has started under the name {}, so this one has stopped; give each \
             its own --node NAME",
            shown(&node_name)
        ),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn work(
    (args, held): (&Args, &Held),
    node: NodeId,
    settings: Settings,
    nudging: &OnceLock<Stopper>,
) -> anyhow::Result<Ended> {
    let ids = Arc::new(IdMaker::new(node)?);
    let mut ground = begin::ground(&held.db, args.place.addresses()?)?;
    ground.extractor = Arc::new(super::extract::extractor());
    let progress = Arc::new(Progress::default());
    let delivering = Delivering::new(held, &progress);
    let herald = delivering.herald();
    let (db, objects) = (&held.db, &held.objects);
    let parts = Parts { db, objects, ids: ids.clone(), ground, progress: progress.clone(), herald };
    let (worker, stopper) = Worker::start(parts, settings.clone(), Attends::All)?;
    let delivery = delivering.start((held, ids), &settings, &stopper)?;
    let _ = nudging.set(stopper.clone());
    let stopping = stopping::listen(stopper)?;
    let telling = (!args.place.json()).then(|| Telling::start(&held.db, progress)).transpose()?;
    let ended = worker.run();
    let _ = delivery.stop();
    if let Some(telling) = telling {
        telling.stop();
    }
    drop(stopping);
    Ok(ended?)
}

/// Tells of every change of a job's state, as far as it can be seen.
struct Telling {
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Telling {
    fn start(db: &Db, progress: Arc<Progress>) -> anyhow::Result<Telling> {
        let (stop, stopped) = sync_channel(0);
        let db = db.clone();
        say("working on all jobs; Ctrl-C ends it in good order");
        let thread = std::thread::Builder::new().name("telling".into()).spawn(move || {
            let mut told: BTreeMap<JobId, String> = BTreeMap::new();
            let mut waits = None;
            loop {
                let waits_for = progress.snapshot().waiting_for;
                if waits != waits_for {
                    let why = waits_for
                        .as_deref()
                        .map_or("going on".to_owned(), |why| format!("waiting: {}", shown(why)));
                    say(&why);
                    waits = waits_for;
                }
                // One that cannot be told of is no reason to stop working.
                let _ = tell(&db, &mut told);
                if let Err(RecvTimeoutError::Disconnected) = stopped.recv_timeout(GLANCE) {
                    let _ = tell(&db, &mut told);
                    return;
                }
            }
        })?;
        Ok(Telling { stop, thread })
    }

    fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

fn tell(db: &Db, told: &mut BTreeMap<JobId, String>) -> store::Result<()> {
    let all = db.read(|tx| jobs::list(tx, "", JOBS_MAX))?;
    for job in all {
        let id = job.id;
        let state = db.read(move |tx| job_states::state(tx, id))?;
        let name = state.name();
        let before = told.insert(id, name.clone());
        let is_news = before.as_ref().is_some_and(|before| *before != name);
        if is_news || (before.is_none() && name != "INACTIVE") {
            let error = state.error.map(|error| format!(": {}", shown(&error)));
            say(&format!("job {}: {name}{}", shown(&job.name), error.unwrap_or_default()));
        }
    }
    Ok(())
}
