//! When a run is over.
//!
//! Relies on the counters of all parts, and on a look at the tables for what can be done
//! here; what follows is the conductor's affair. Invariants: a run ends only when nothing
//! is left of it, or when what is left cannot be done for longer than the job's patience
//! and nobody else works on it; whoever attends to one job ends with it, whoever ended
//! it.

use crate::conduct::{self, Attends};
use crate::frontier::NextHost;
use crate::job::{JobMode, JobWork};
use crate::lifecycle::JobEvent;
use crate::worker::finish;
use crate::worker::jobs::Idle;
use crate::worker::progress::Waiter;
use crate::worker::{CrawlEnd, Worker};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::ids::{JobId, Part, Run};
use store::tables::job_states::{self, Phase, RunKind, runs};
use store::tables::queue::sweep;
use store::tables::queue::{self, Place};
use store::tables::{bins, counters, events, hops, ingests, jobs, settings};
use store::{Error, Result, Tx, clock};

/// It is worth saying what is waited for when it takes longer than this.
const WORTH_SAYING_MS: i64 = 2_000;

impl Worker {
    /// Ends the work, or the runs of jobs, if they are over. `has_seen_all` says that the tables
    /// were looked at just now.
    pub(super) fn end_if_over(&mut self, has_seen_all: bool) -> Result<Option<CrawlEnd>> {
        if self.control.is_stopping() {
            return self.end_if_quiet();
        }
        if !has_seen_all || self.control.is_paused() {
            return Ok(None);
        }
        if let Attends::One(job) = self.jobs.attends()
            && !self.jobs.is_attended(job)
        {
            return self.job_end(job);
        }
        if self.settings.until_idle && self.jobs.is_empty() {
            let busy = self.deps.db.read(|tx| {
                let jobs = job_states::busy(tx, JobId(i64::MIN), 1)?;
                Ok(!jobs.is_empty() || ingests::is_any_due(tx)?)
            });
            if busy.is_ok_and(|busy| !busy) {
                return Ok(Some(CrawlEnd::Finished { left: 0 }));
            }
        }
        if self.parts.is_any_behind() {
            // What waits for a consumer looks as if nothing could be done for it.
            return Ok(None);
        }
        let works: Vec<Arc<JobWork>> = self.jobs.attended().cloned().collect();
        for work in works {
            if work.mode == JobMode::Crawl && self.jobs.attends().includes(work.id) {
                self.try_to_end(&work)?;
            }
        }
        Ok(None)
    }

    /// When stopping: ends what repositories are at, and the work once all is committed, or it
    /// has taken too long.
    fn end_if_quiet(&mut self) -> Result<Option<CrawlEnd>> {
        self.jobs.all().for_each(|it| it.interrupt());
        let is_quiet = !self.threads.is_turn_under_way() && self.places.is_all_committed();
        let is_over = (is_quiet && self.drain()) || self.control.is_overdue(clock::now_ms());
        if is_over && is_quiet {
            self.save_leftovers(true)?;
        }
        Ok(is_over.then_some(self.control.ended()))
    }

    /// How the one job that is attended to has come to rest, if it has.
    fn job_end(&self, job: JobId) -> Result<Option<CrawlEnd>> {
        if self.jobs.is_former(job) {
            // Something of it is uncommitted.
            return Ok(None);
        }
        match self.deps.db.read(move |tx| last_run_end(tx, job)) {
            Err(error) if error.passes() => Ok(None),
            ended => ended,
        }
    }

    /// Ends the run of a job, if all is done that can be.
    fn try_to_end(&mut self, work: &JobWork) -> Result<()> {
        let left_before = self.jobs.take_left(work.id);
        if work.definition.continuous && work.definition.reseed_ms.is_some() {
            // However little there is, seeds may bring more.
            return Ok(());
        }
        let is_quiet = !self.parts.is_empty() && self.places.is_quiet(work.id);
        if !is_quiet || self.has_work_soon(work) {
            return Ok(());
        }
        let question = self.ask_what_is_left(work, clock::now_ms());
        let asked = question.clone();
        match self.deps.db.read(move |tx| remaining_work(tx, &asked)) {
            Ok(RemainingWork::Nothing) => self.end_run(question),
            // What they lead to is named again when they are given up.
            Ok(RemainingWork::Idle(count)) => {
                match self.jobs.on_idle(work.id, left_before, count) {
                    Idle::LookAgain => self.schedule.want(),
                    Idle::GiveUp => self.give_up(work.id, question.horizon_ms),
                    Idle::GiveUpAll => self.give_up(work.id, i64::MIN),
                }
                Ok(())
            }
            Ok(RemainingWork::AtWork) => Ok(()),
            Err(error) if error.passes() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks what is left of the run of a job, of all parts.
    fn ask_what_is_left(&self, work: &JobWork, now_ms: i64) -> LeftQuestion {
        LeftQuestion {
            job: work.id,
            run: work.run,
            is_incremental: work.kind == RunKind::Incremental,
            // A continuous job has never done all there is, unless there is nothing.
            horizon_ms: match work.definition.continuous {
                true => i64::MAX,
                false => now_ms.saturating_add(work.settings.patience.most_ms),
            },
            counts_hops: work.hops.is_some(),
            parts: self.deps.shared.parts,
            held: self.parts.parts().collect(),
            now_ms,
        }
    }

    /// Ends a run of which nothing is left. Nothing is at work and nothing can be soon; but a
    /// process that has just joined the run may bring seeds, which it does under this lock.
    fn end_run(&mut self, question: LeftQuestion) -> Result<()> {
        let ended = self.deps.db.write(move |tx| {
            let (job, run) = (question.job, question.run);
            let state = job_states::lock(tx, job)?;
            if !state.is_some_and(|it| it.is_active() && it.run == run) {
                // Another process that attends to the job has ended its run just now.
                return Ok(());
            }
            if matches!(remaining_work(tx, &question)?, RemainingWork::Nothing) {
                conduct::change(tx, job, &JobEvent::QueueDone, question.now_ms)?;
            }
            Ok(())
        });
        match ended {
            Ok(()) => {
                self.schedule.want();
                self.threads.wake_conductor();
                Ok(())
            }
            // Another look will try it again.
            Err(Error::Refused(_)) => Ok(()),
            Err(error) if error.passes() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives up what can only be looked at after a time, in the parts that are held here.
    fn give_up(&mut self, job: JobId, horizon_ms: i64) {
        for part in self.parts.parts() {
            self.places.give_up(Place { part, job }, horizon_ms);
        }
        self.schedule.want();
    }

    /// Whether something of a job can be done within its patience.
    fn has_work_soon(&mut self, work: &JobWork) -> bool {
        let now_ms = clock::now_ms();
        let horizon_ms = now_ms.saturating_add(work.settings.patience.most_ms);
        let host = self.frontier.next_host(work.id);
        let due_ms = self.places.due_ms(work.id);
        if self.jobs.attends() == Attends::One(work.id) {
            self.say_what_is_waited_for(host, due_ms, now_ms);
        }
        let next_ms = host.map(|it| it.next_ms).into_iter().chain(due_ms).min();
        self.places.is_walking(work.id) || next_ms.is_some_and(|ms| ms <= horizon_ms)
    }

    fn say_what_is_waited_for(&mut self, host: Option<NextHost>, due_ms: Option<i64>, now_ms: i64) {
        let next_ms = host.map(|it| it.due_ms).into_iter().chain(due_ms).min();
        let what = match (next_ms, host) {
            (Some(ms), Some(it)) if ms == it.due_ms && ms > now_ms + WORTH_SAYING_MS => {
                Some(self.hosts.describe_wait(it.host, it.due_ms > it.next_ms))
            }
            (Some(ms), _) if ms > now_ms + WORTH_SAYING_MS => {
                Some("documents in trouble wait for another try".to_owned())
            }
            _ => None,
        };
        self.deps.progress.waits_for(Waiter::Run, what);
    }
}

/// What is left of a run.
enum RemainingWork {
    Nothing,
    /// So many documents, for which nothing can be done within the job's patience.
    Idle(i64),
    /// Something that is at work, or that others can do soon.
    AtWork,
}

/// Which run is asked about, and until when something would be soon.
#[derive(Clone)]
struct LeftQuestion {
    job: JobId,
    run: Run,
    /// Whether all that older runs settled is looked at again.
    is_incremental: bool,
    horizon_ms: i64,
    /// Whether it counts how far documents are.
    counts_hops: bool,
    /// How many parts there are.
    parts: u32,
    /// Those that are held here: what can be done in them the caller knows better.
    held: BTreeSet<Part>,
    now_ms: i64,
}

/// Looks at all parts in one snapshot.
fn remaining_work(tx: &mut Tx<'_>, question: &LeftQuestion) -> Result<RemainingWork> {
    let LeftQuestion { job, run, is_incremental, horizon_ms, .. } = *question;
    if question.counts_hops && !hops::under_way(tx, job)?.is_nothing() {
        return Ok(RemainingWork::AtWork);
    }
    let mut idle = 0;
    for part in (0..i64::from(question.parts)).map(Part) {
        let counted: BTreeMap<String, i64> =
            counters::in_part(tx, part, job)?.into_iter().collect();
        let count = |name: &str| counted.get(name).copied().unwrap_or(0);
        let place = Place { part, job };
        let open = count("ready") + count("waiting");
        let stays = horizon_ms == i64::MAX && open + count("done") > 0;
        if count("active") > 0 || stays {
            return Ok(RemainingWork::AtWork);
        }
        let is_older =
            is_incremental && run.0 > 1 && !counted.is_empty() && queue::has_older(tx, place, run)?;
        let is_open = |tx: &mut Tx<'_>| Ok::<_, Error>(open > 0 && is_due(tx, place, horizon_ms)?);
        if !question.held.contains(&part) && (is_older || is_open(tx)?) {
            return Ok(RemainingWork::AtWork);
        }
        idle += open + i64::from(is_older);
    }
    Ok(match idle {
        0 => RemainingWork::Nothing,
        // Some of it may only wait for somebody to log in.
        _ if events::is_any(tx)? => RemainingWork::AtWork,
        _ => RemainingWork::Idle(idle),
    })
}

/// How the last run of a job has ended; `None` while the job is not inactive.
fn last_run_end(tx: &mut Tx<'_>, job: JobId) -> Result<Option<CrawlEnd>> {
    let state = job_states::state(tx, job)?;
    match (state.phase, state.end_ms) {
        (Phase::Inactive, Some(_)) => {
            let parts = settings::parts(tx)?;
            Ok(Some(CrawlEnd::Finished { left: given_up(tx, job, state.run, parts)? }))
        }
        (Phase::Inactive, None) => Ok(Some(CrawlEnd::Aborted)),
        _ => Ok(None),
    }
}

/// How a run of a job has ended, whoever worked on it; `None` while it is under way. One that
/// is paused, with nothing of it under way, has stopped. A job that is gone was aborted.
pub fn run_end(tx: &mut Tx<'_>, job: JobId, run: Run) -> Result<Option<CrawlEnd>> {
    if jobs::load(tx, job)?.is_none() {
        return Ok(Some(CrawlEnd::Aborted));
    }
    let state = job_states::state(tx, job)?;
    if state.run == run {
        let rests = state.is_active() && state.paused && !state.stopping;
        return if rests { Ok(Some(CrawlEnd::Stopped)) } else { last_run_end(tx, job) };
    }
    // Somebody has started another one since.
    let row = runs::last(tx, job, Run(run.0 + 1), 1)?.pop().filter(|row| row.run == run.0);
    let is_done = row.is_some_and(|row| row.outcome.as_deref() == Some("done"));
    Ok(Some(if is_done { CrawlEnd::Finished { left: 0 } } else { CrawlEnd::Aborted }))
}

/// How many documents a run has given up.
fn given_up(tx: &mut Tx<'_>, job: JobId, run: Run, parts: u32) -> Result<i64> {
    let mut count = 0;
    for part in (0..i64::from(parts)).map(Part) {
        for reason in finish::GIVEN_UP {
            count += sweep::given_up(tx, Place { part, job }, run, reason)?;
        }
    }
    Ok(count)
}

/// Whether something of a job in a part can be done before a time.
fn is_due(tx: &mut Tx<'_>, place: Place, horizon_ms: i64) -> Result<bool> {
    let waking = queue::next_due(tx, place)?.is_some_and(|due_ms| due_ms <= horizon_ms);
    Ok(waking || bins::has_due(tx, place.part, place.job, horizon_ms)?)
}
