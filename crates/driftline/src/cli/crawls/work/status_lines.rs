//! What is told while a process works on all jobs: a line for every change of a job's state,
//! as far as it can be seen, and on a terminal one line for all that goes on.
//!
//! Invariant: one that cannot be told of is no reason to stop working.

use crate::cli::crawls::crawl::live::{EVERY, LiveStatus, ProgressLine};
use crate::cli::say;
use crate::text::shown;
use crate::verbs::status::outages::News;
use ::crawl::worker::progress::{Progress, Waiter};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use store::ids::JobId;
use store::tables::{job_states, jobs, outages};
use store::{Db, clock};

/// The states of jobs are looked at every so many drawings.
const DRAWINGS_A_LOOK: u64 = 2;
/// Jobs whose states are told.
const JOBS_MAX: u32 = 1_000;

/// Who is told what happens.
pub enum Audience {
    /// Whoever looks at the terminal, or reads the output later.
    Terminal(ProgressLine),
    /// A log, which takes lines.
    Log(Box<dyn Fn(&str) + Send>),
    Nobody,
}

impl Audience {
    /// The terminal, with a line that lives if it is one.
    pub fn terminal() -> Audience {
        Audience::Terminal(ProgressLine::new(false))
    }

    fn print(&mut self, line: &str) {
        match self {
            Audience::Terminal(live) => live.aside(|| say(line)),
            Audience::Log(log) => log(line),
            Audience::Nobody => {}
        }
    }

    fn draw(&mut self, db: &Db, progress: &Progress) {
        if let Audience::Terminal(live) = self
            && live.is_live()
        {
            live.draw(&progress.snapshot(), &LiveStatus::of_all(db));
        }
    }
}

/// Tells until it is stopped.
pub struct StatusPrinterThread {
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl StatusPrinterThread {
    pub fn start(
        db: &Db,
        progress: Arc<Progress>,
        audience: Audience,
    ) -> anyhow::Result<StatusPrinterThread> {
        let (stop, stopped) = sync_channel(0);
        let teller = StatusPrinter {
            db: db.clone(),
            progress,
            audience,
            printed: BTreeMap::new(),
            waits_for: None,
            outages: News::default(),
        };
        let thread = std::thread::Builder::new()
            .name("telling".into())
            .spawn(move || teller.print_until(&stopped))?;
        Ok(StatusPrinterThread { stop, thread })
    }

    /// Tells the last of it.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

struct StatusPrinter {
    db: Db,
    progress: Arc<Progress>,
    audience: Audience,
    /// The state of each job that was told of last.
    printed: BTreeMap<JobId, String>,
    waits_for: Option<String>,
    /// What cannot be reached, as it was told of last.
    outages: News,
}

impl StatusPrinter {
    fn print_until(mut self, stopped: &Receiver<()>) {
        self.audience.print("working on all jobs; press Ctrl-C to stop");
        for drawing in 0_u64.. {
            if drawing.is_multiple_of(DRAWINGS_A_LOOK) {
                self.look();
            }
            self.audience.draw(&self.db, &self.progress);
            if let Err(RecvTimeoutError::Disconnected) = stopped.recv_timeout(EVERY) {
                self.look();
                break;
            }
        }
        if let Audience::Terminal(live) = &mut self.audience {
            live.clear();
        }
    }

    fn look(&mut self) {
        // Outputs are told of with all that cannot be reached.
        let mut waits = self.progress.snapshot().waits;
        waits.remove(&Waiter::Outputs);
        let waits_for = waits.into_values().next();
        if self.waits_for != waits_for {
            let why = waits_for.as_deref().map(|why| format!("waiting: {}", shown(why)));
            self.audience.print(&why.unwrap_or_else(|| "going on".to_owned()));
            self.waits_for = waits_for;
        }
        let now_ms = clock::now_ms();
        if let Ok(found) = self.db.read(move |tx| outages::list(tx, now_ms)) {
            for line in self.outages.lines(found, now_ms) {
                self.audience.print(&line);
            }
        }
        let _ = self.look_at_jobs();
    }

    fn look_at_jobs(&mut self) -> store::Result<()> {
        let all = self.db.read(|tx| jobs::list(tx, "", JOBS_MAX))?;
        for job in all {
            let id = job.id;
            let state = self.db.read(move |tx| job_states::state(tx, id))?;
            let name = state.name();
            let before = self.printed.insert(id, name.clone());
            let is_news = before.as_ref().is_some_and(|before| *before != name);
            if is_news || (before.is_none() && name != "INACTIVE") {
                let error = state.error.map(|error| format!(": {}", shown(&error)));
                let line = format!("job {}: {name}{}", shown(&job.name), error.unwrap_or_default());
                self.audience.print(&line);
            }
        }
        Ok(())
    }
}
