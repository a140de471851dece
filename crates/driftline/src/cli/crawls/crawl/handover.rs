//! A crawl whose directory another process holds and works on: that process crawls, and this
//! one shows what comes of it.
//!
//! Ctrl-C pauses the job, so that the same command goes on with the run later. Invariants: how
//! the run has ended is read from its rows, so the exit code is right whoever worked on it;
//! the other process is asked at most a few times a second.

use super::live::{EVERY, LiveStatus, ProgressLine};
use super::show::CrawlSummary;
use super::signals::{self, Words};
use super::work::CrawlWorkDone;
use crate::cli::crawls::deliveries::Visible;
use crate::cli::say;
use crate::place::Place;
use crate::place::holder::Holder;
use crate::text::shown;
use crate::verbs::crawl::handover::{BegunRun, HandedProgress, HandoverAccepted, RunStart};
use crate::verbs::crawl::request::CrawlRequest;
use crate::verbs::crawl::{CrawlProgress, HandOverCrawl};
use crate::verbs::jobs::actions::{ActOnJob, ActRequest, JobAction};
use crate::verbs::jobs::job_status;
use ::crawl::begin::Begun;
use ::crawl::worker::progress::ProgressCounts;
use ::crawl::worker::{self, CrawlEnd};
use anyhow::bail;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use store::Db;
use store::ids::JobId;
use store::tables::job_states::{self, JobState, Phase};
use store::tables::jobs;

/// A crawl that another process carries out.
pub struct HandedOverCrawl<'a> {
    pub place: &'a Place,
    pub holder: Holder,
    pub request: &'a CrawlRequest,
}

/// What came of it.
pub struct CrawlOutcome {
    pub summary: CrawlSummary,
    pub ended: CrawlEnd,
    /// The rows, to look at.
    pub db: Db,
}

/// What is known while the other process crawls.
struct WatchedCrawl {
    /// The rows, to look at.
    db: Db,
    accepted: HandoverAccepted,
    begun: Begun,
    did: ProgressCounts,
    line: ProgressLine,
    /// What was waited for when it was last said.
    noted: Option<String>,
}

impl WatchedCrawl {
    /// Takes news, unless they are of another run that has begun since.
    fn take(&mut self, news: HandedProgress) {
        if news.did.documents() >= self.did.documents() {
            self.did = news.did;
            self.did.hosts = news.slowest.into_iter().collect();
        }
    }

    /// How the run has ended; `None` while it is under way.
    fn ended(&self) -> anyhow::Result<Option<CrawlEnd>> {
        let (job, run) = (self.begun.job, self.begun.run);
        Ok(self.db.read(move |tx| worker::run_end(tx, job, run))?)
    }

    fn show(&mut self, state: &JobState) {
        let is_plain = state.is_active() && !state.waiting && !state.paused;
        if self.did.waiting_for.is_none() && !is_plain {
            self.did.waiting_for = Some(format!("the job is {}", job_status::word(state)));
        } else if self.noted != self.did.waiting_for {
            self.noted.clone_from(&self.did.waiting_for);
            if let Some(what) = &self.noted {
                self.line.note(what);
            }
        }
        if self.line.is_live() {
            self.line.draw(&self.did, &LiveStatus::of_job(&self.db, self.begun.job));
        }
    }
}

impl HandedOverCrawl<'_> {
    /// Hands the crawl over, and watches it until its run is over or somebody stops it.
    /// `None` when the other process has ended before it took the crawl.
    pub fn run(&self, announce: impl FnOnce(&Begun)) -> anyhow::Result<Option<CrawlOutcome>> {
        self.request.flags.can_be_handed_over()?;
        let (stop, signal) = Signal::new();
        let _stopping = signals::heed_saying(self.words(), stop)?;
        let accepted = self.place.change_at_holder::<HandOverCrawl>(self.request)?;
        let Some(accepted) = accepted else { return Ok(None) };
        if !self.place.json() {
            say(&format!("{} holds the directory and runs the crawl", self.name()));
        }
        let db = self.place.rows()?;
        let begun = self.wait_for_begin(&db, &accepted, &signal)?;
        announce(&begun);
        let (did, noted) = (ProgressCounts::default(), None);
        let line = ProgressLine::new(self.place.json());
        let mut watched = WatchedCrawl { db, accepted, begun, did, line, noted };
        let ended = self.watch(&mut watched, &signal);
        watched.line.clear();
        let ended = ended?;
        let WatchedCrawl { db, begun, did, .. } = watched;
        let worked = CrawlWorkDone { begun, did, ended, visible: Visible::default() };
        let summary = CrawlSummary::read(&db, &self.request.name, &worked)?;
        Ok(Some(CrawlOutcome { summary, ended, db }))
    }

    fn name(&self) -> String {
        format!("process {} ({})", self.holder.process, shown(&self.holder.doing))
    }

    fn words(&self) -> Words {
        let name = self.name();
        Words {
            first: format!(
                "{name} pauses the job; run the same command to continue it\ndriftline: interrupt \
                 again to exit at once"
            ),
            second: format!("exited at once; {name} continues the crawl"),
        }
    }

    /// Asks how far the crawl is; `None` when the other process has ended.
    fn progress(&self, accepted: &HandoverAccepted) -> anyhow::Result<Option<HandedProgress>> {
        self.place.ask_holder::<CrawlProgress>(&accepted.ticket)
    }

    fn wait_for_begin(
        &self,
        db: &Db,
        accepted: &HandoverAccepted,
        signal: &Signal,
    ) -> anyhow::Result<Begun> {
        loop {
            match self.progress(accepted)?.map(|progress| progress.begin) {
                Some(RunStart::Begun(begun)) => return Ok(begun.begun(accepted)),
                Some(RunStart::Failed(error)) => bail!("{error}"),
                Some(RunStart::UnderWay) => {}
                Some(RunStart::Unknown) | None => return self.begun_before_it_ended(db, accepted),
            }
            signal.wait();
        }
    }

    /// The run that the other process has begun before it ended, as its rows tell.
    fn begun_before_it_ended(&self, db: &Db, accepted: &HandoverAccepted) -> anyhow::Result<Begun> {
        let job = JobId(accepted.ticket.job);
        let state = db.read(move |tx| job_states::state(tx, job))?;
        let is_new = state.run.0 > accepted.run_before;
        if !is_new && !state.is_active() {
            bail!("{} ended before the run began; run the same command again", self.name());
        }
        let begun = BegunRun { run: state.run.0, is_new, was_paused: false, let_in: 0 };
        Ok(begun.begun(accepted))
    }

    fn watch(&self, watched: &mut WatchedCrawl, signal: &Signal) -> anyhow::Result<CrawlEnd> {
        let (mut is_pausing, mut failures) = (false, 0);
        loop {
            // The rows are looked at before the counts, which are whole when the run is over.
            let mut ended = watched.ended()?;
            match self.progress(&watched.accepted) {
                Ok(Some(it)) if it.begin != RunStart::Unknown => {
                    failures = 0;
                    watched.take(it);
                }
                Ok(_) => ended = Some(self.left_alone(watched)?),
                // It may be busy for a moment.
                Err(_) if failures < FAILURES_MAX => failures += 1,
                Err(error) => return Err(error),
            }
            if let Some(ended) = ended {
                return Ok(ended);
            }
            let job = watched.begun.job;
            let state = watched.db.read(move |tx| job_states::state(tx, job))?;
            if signal.is_stopped() && !is_pausing {
                if is_past_stopping(&state) {
                    let name = self.name();
                    watched
                        .line
                        .note(&format!("everything is fetched; {name} is finishing the run"));
                    return Ok(CrawlEnd::Stopped);
                }
                is_pausing = self.pause()?;
            }
            watched.show(&state);
            signal.wait();
        }
    }

    /// How a run stands whose process has ended.
    fn left_alone(&self, watched: &mut WatchedCrawl) -> anyhow::Result<CrawlEnd> {
        if let Some(ended) = watched.ended()? {
            return Ok(ended);
        }
        let name = self.name();
        watched.line.note(&format!(
            "{name} ended before the run was over; run the same command to continue it"
        ));
        Ok(CrawlEnd::Stopped)
    }

    /// Has the job paused. False if that is not possible yet: it may be starting up.
    fn pause(&self) -> anyhow::Result<bool> {
        let (name, action) = (self.request.name.clone(), JobAction::Pause);
        match self.place.change_at_holder::<ActOnJob>(&ActRequest { name, action }) {
            Ok(_) => Ok(true),
            Err(error) if is_refused(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Answers in a row that may fail to come.
const FAILURES_MAX: u32 = 20;

/// Whether somebody wants to stop, and the waits that end when they do.
struct Signal {
    is_stopped: Arc<AtomicBool>,
    woken: Receiver<()>,
}

impl Signal {
    /// With what a signal calls.
    fn new() -> (impl Fn() + Send + 'static, Signal) {
        let (wake, woken) = sync_channel(1);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = is_stopped.clone();
        let stop = move || {
            stopped.store(true, Ordering::SeqCst);
            let _ = wake.try_send(());
        };
        (stop, Signal { is_stopped, woken })
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    fn wait(&self) {
        let _ = self.woken.recv_timeout(EVERY);
    }
}

/// Whether a run has nothing more to fetch, so that there is nothing to stop.
fn is_past_stopping(state: &JobState) -> bool {
    matches!(state.phase, Phase::ShuttingDown | Phase::ReadyForNotify | Phase::Notifying)
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(store::Error::Refused(_)))
}

/// Why a job was aborted, unless somebody did it.
pub fn error_of(db: &Db, name: &str) -> anyhow::Result<Option<String>> {
    let name = name.to_owned();
    Ok(db.read(move |tx| {
        let Some(job) = jobs::find(tx, &name)? else { return Ok(None) };
        Ok(job_states::state(tx, job.id)?.error)
    })?)
}
