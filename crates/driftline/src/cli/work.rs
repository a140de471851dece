//! `driftline work`: works on every job there is, until it is stopped.
//!
//! Jobs are started, paused and stopped by other processes, or by their schedules; this
//! one carries them out. Invariant: whatever ends the process, the next one goes on where
//! the last commit was.

use super::crawl::{flags, stopping};
use super::delivering::{self, Delivering};
use super::place::{Held, Place};
use super::{say, shown};
use ::crawl::begin;
use ::crawl::conduct::Attends;
use ::crawl::definitions::WebSpec;
use ::crawl::worker::progress::Progress;
use ::crawl::worker::{Ended, Parts, Settings, Stopper, Worker, holdings};
use clap::Args as ClapArgs;
use std::collections::BTreeMap;
use std::net::SocketAddr;
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
    #[command(flatten)]
    effort: Effort,
}

/// How a process works on jobs.
#[derive(ClapArgs)]
pub struct Effort {
    /// Documents under way at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    concurrency: usize,
    /// This process's name among those that share a database; the same after a restart
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// How many seconds a silent process keeps its parts of a database
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = flags::seconds)]
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
    let mut working = Working::prepare(&args.place, &args.effort)?;
    let nudge = working.nudge();
    // Ends before the directory is given back.
    let _listening = working.held.answer_and("work", nudge)?;
    let tell: Option<Tell> = (!args.place.json()).then(|| Box::new(|line: &str| say(line)) as Tell);
    working.run((&args.place, args.until_idle), tell, (|| Ok(()), || ()))?;
    Ok(ExitCode::SUCCESS)
}

/// Who is told what happens.
pub type Tell = Box<dyn Fn(&str) + Send>;

/// A process that is about to work on all jobs of a place.
pub struct Working {
    /// The place.
    pub held: Held,
    settings: Settings,
    nudging: Arc<OnceLock<Stopper>>,
    /// Where this process listens: no crawl may go there (T7).
    pub own: Vec<SocketAddr>,
}

impl Working {
    /// Takes the place, and makes or upgrades it first.
    pub fn prepare(place: &Place, effort: &Effort) -> anyhow::Result<Working> {
        let lease_ms = flags::milliseconds("--lease", effort.lease)?.max(100);
        let held = place.patiently(|place| place.hold_or_make(effort.parts))?;
        let node_name = super::crawl::node_name(effort.node.as_deref(), &held);
        let mut settings =
            Settings::new(&node_name, effort.concurrency.max(1)).with_lease(lease_ms);
        settings.disk_free_percent = effort.min_free;
        settings.disk = held.layout().map(|layout| layout.root().to_owned());
        settings.late = Some(delivering::late(&held));
        // Each web job says who it is; this is for what belongs to none.
        let usual = WebSpec::default();
        (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
        Ok(Working { held, settings, nudging: Arc::default(), own: Vec::new() })
    }

    /// Tells it that something was changed.
    pub fn nudge(&self) -> impl Fn() + Send + Sync + 'static {
        let nudging = self.nudging.clone();
        move || {
            if let Some(stopper) = nudging.get() {
                stopper.nudge();
            }
        }
    }

    /// Works until it is stopped, or until nothing is left to do. `began` is called when it
    /// can be stopped in good order, `stops` when somebody asks for it.
    pub fn run(
        &mut self,
        (place, until_idle): (&Place, bool),
        tell: Option<Tell>,
        (began, stops): (impl FnOnce() -> anyhow::Result<()>, impl Fn() + Send + 'static),
    ) -> anyhow::Result<()> {
        self.settings.until_idle = until_idle;
        let node = NewNode {
            name: self.settings.node_name.clone(),
            roles: format!("{} {ROLE}", holdings::ROLE),
            address: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let db = &self.held.db;
        let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let ended = self.work((place, node), tell, (began, stops));
        let stopped = db.write(move |tx| nodes::stop(tx, node, clock::now_ms()));
        let ended = ended?;
        stopped?;
        match ended {
            Ended::Replaced => anyhow::bail!(
                "another process has started under the name {}, so this one has stopped; give \
                 each its own --node NAME",
                shown(&self.settings.node_name)
            ),
            _ => Ok(()),
        }
    }

    fn work(
        &self,
        (place, node): (&Place, NodeId),
        tell: Option<Tell>,
        (began, stops): (impl FnOnce() -> anyhow::Result<()>, impl Fn() + Send + 'static),
    ) -> anyhow::Result<Ended> {
        let (held, settings) = (&self.held, &self.settings);
        let ids = Arc::new(IdMaker::new(node)?);
        let own = [place.addresses()?, self.own.clone()].concat();
        let mut ground = begin::ground(&held.db, own)?;
        ground.extractor = Arc::new(super::extract::extractor());
        let progress = Arc::new(Progress::default());
        let delivering = Delivering::new(held, &progress);
        let herald = delivering.herald();
        let (db, objects) = (&held.db, &held.objects);
        let parts =
            Parts { db, objects, ids: ids.clone(), ground, progress: progress.clone(), herald };
        let (worker, stopper) = Worker::start(parts, settings.clone(), Attends::All)?;
        let delivery = delivering.start((held, ids), settings, &stopper)?;
        let _ = self.nudging.set(stopper.clone());
        let stopping = stopping::heed("work", move || {
            stops();
            stopper.stop();
        })?;
        began()?;
        let telling = tell.map(|tell| Telling::start(&held.db, progress, tell)).transpose()?;
        let ended = worker.run();
        let _ = delivery.stop();
        if let Some(telling) = telling {
            telling.stop();
        }
        drop(stopping);
        Ok(ended?)
    }
}

/// Tells of every change of a job's state, as far as it can be seen.
struct Telling {
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Telling {
    fn start(db: &Db, progress: Arc<Progress>, say: Tell) -> anyhow::Result<Telling> {
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
                let _ = tell(&db, &mut told, &say);
                if let Err(RecvTimeoutError::Disconnected) = stopped.recv_timeout(GLANCE) {
                    let _ = tell(&db, &mut told, &say);
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

fn tell(db: &Db, told: &mut BTreeMap<JobId, String>, say: &Tell) -> store::Result<()> {
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
