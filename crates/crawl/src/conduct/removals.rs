//! What becomes of removals that are marked: swept when they stay within the job's limit,
//! held for a person when they do not.
//!
//! Decided at the end of a run, and now and then for a continuous job. Relies on the lock of
//! the job's row, under which marks get their round and decisions end it. Invariants: without
//! an approval a job loses no more in a run (a continuous one in a day) than its limit; what
//! is held stays held until a person decides, or it is found again.

use super::{Advance, ConductorState, change, observer};
use crate::lifecycle::JobEvent;
use store::ids::{JobId, Part};
use store::tables::job_states::{self, JobState, Phase};
use store::tables::jobs::{self, Job};
use store::tables::queue::Place;
use store::tables::removals::{self, Period, RemovalLimits, WINDOW_MS};
use store::{Result, Tx, clock};

/// A continuous job is judged this often, so that a source that breaks is seen as a whole;
/// a few removals are not kept waiting for that.
pub(super) const JUDGED_EVERY_MS: i64 = 10 * 60 * 1_000;

/// How often it is looked whether a continuous job has marked something.
const LOOKED_EVERY_MS: i64 = 1_000;

/// When the removals of a job were last looked at, and judged as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RemovalCheckTimes {
    looked_ms: i64,
    judged_ms: i64,
}

/// What is found about the removals of a job that are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalVerdict {
    /// No removal is marked.
    Nothing,
    /// They are within the limit.
    Release,
    /// They are not, or older ones are held already.
    Hold {
        /// Whether there are more of them than when somebody was last told.
        is_news: bool,
    },
}

/// What a job has, has lost and is to lose, and how much it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalBalance {
    /// Documents when the run began, or the day.
    pub base: i64,
    /// Documents lost since without an approval.
    pub lost: i64,
    /// Documents that may still go at once, and are not given away twice.
    pub reserved: i64,
    /// Documents that are marked.
    pub marked: i64,
    /// Documents that may be lost without an approval.
    pub limit: i64,
    /// Documents that any job may lose, however few it has.
    pub least: i64,
}

impl RemovalBalance {
    /// Whether all that is marked may go, if so many may.
    fn fits(&self, limit: i64) -> bool {
        self.lost.saturating_add(self.reserved).saturating_add(self.marked) <= limit
    }
}

/// Adds up what a job loses.
pub fn weigh(tx: &mut Tx<'_>, job: &Job, state: &JobState, now_ms: i64) -> Result<RemovalBalance> {
    let limits = RemovalLimits::of(job);
    let noted = removals::base(tx, job.id)?;
    let base = noted.documents();
    let marked: i64 = removals::marked(tx, job.id)?.values().sum();
    let limit = limits.all.documents(base);
    let (period, at_once) = match job.continuous {
        true => (Period::DayBefore(now_ms), limits.at_once(base)),
        false => (Period::Run(state.run), 0),
    };
    let lost = removals::lost(tx, job.id, None, period)?;
    // Each part has its share of what may go at once, whatever the others have used.
    let mut reserved = 0;
    for part in noted.by_part.keys().copied().filter(|_| at_once > 0) {
        let of_part = removals::lost(tx, job.id, Some(part), period)?;
        let proven: i64 = of_part.iter().filter(|it| it.0.is_proven()).map(|it| it.1).sum();
        reserved += (noted.share(part, at_once) - proven).max(0);
    }
    let lost = lost.values().sum();
    Ok(RemovalBalance { base, lost, reserved, marked, limit, least: limits.all.documents(0) })
}

/// Judges what is marked. The caller holds the job's lock.
pub fn judge(
    tx: &mut Tx<'_>,
    job: &Job,
    parts: u32,
    state: &JobState,
    now_ms: i64,
) -> Result<RemovalVerdict> {
    if removals::marked(tx, job.id)?.is_empty() {
        // All that was held has been found again.
        let is_held = state.removals.held_ms.is_some();
        return Ok(if is_held { RemovalVerdict::Release } else { RemovalVerdict::Nothing });
    }
    let it = weigh(tx, job, state, now_ms)?;
    let (mut is_held, mut is_new) = (false, false);
    for part in (0..i64::from(parts)).map(Part) {
        let place = Place { part, job: job.id };
        is_held |= state.removals.held > 0 && removals::is_any(tx, place, state.removals.held)?;
        is_new |= removals::is_marked_in(tx, place, state.removals.current)?;
    }
    Ok(match is_held {
        true => RemovalVerdict::Hold { is_news: is_new },
        false if it.fits(it.limit) => RemovalVerdict::Release,
        false => RemovalVerdict::Hold { is_news: true },
    })
}

impl ConductorState {
    /// A run has nothing more to do but for what is marked: it ends, or sweeps that first.
    pub(super) fn end_or_sweep(&self, job: JobId) -> Result<Advance> {
        let (now_ms, parts) = (clock::now_ms(), self.context.shared.parts);
        let events = self.context.db.write(move |tx| judge_ending(tx, job, parts, now_ms))?;
        self.notify(job, &events);
        Ok(Advance::Moved)
    }

    /// A continuous job has no end at which its removals are judged. Returns whether something
    /// was decided.
    pub(super) fn judge_continuous(&mut self, job: JobId) -> Result<bool> {
        let (now_ms, parts) = (clock::now_ms(), self.context.shared.parts);
        let judged = self
            .removal_checks
            .entry(job)
            .or_insert(RemovalCheckTimes { looked_ms: 0, judged_ms: now_ms });
        if now_ms - judged.looked_ms < LOOKED_EVERY_MS {
            return Ok(false);
        }
        judged.looked_ms = now_ms;
        let is_due = now_ms - judged.judged_ms >= JUDGED_EVERY_MS;
        if is_due {
            judged.judged_ms = now_ms;
        } else if self.context.db.read(move |tx| removals::marked(tx, job))?.is_empty() {
            return Ok(false);
        }
        let events =
            self.context.db.write(move |tx| judge_active(tx, job, parts, is_due, now_ms))?;
        self.notify(job, &events);
        Ok(!events.is_empty())
    }

    fn notify(&self, job: JobId, events: &[(JobState, JobEvent)]) {
        for (state, event) in events {
            if let Some(occasion) = observer::occasion(event, state) {
                self.context.observer.on_event(job, occasion, state);
            }
        }
    }
}

/// Judges the removals of a run that has nothing else to do: it ends, or sweeps them first.
pub fn judge_ending(
    tx: &mut Tx<'_>,
    job: JobId,
    parts: u32,
    now_ms: i64,
) -> Result<Vec<(JobState, JobEvent)>> {
    let ending = job_states::lock(tx, job)?.filter(|it| it.phase == Phase::ShuttingDown);
    let (Some(state), Some(known)) = (ending, jobs::load(tx, job)?) else {
        return Ok(Vec::new());
    };
    let events = match judge(tx, &known, parts, &state, now_ms)? {
        RemovalVerdict::Release => vec![JobEvent::RemovalsReleased],
        RemovalVerdict::Hold { is_news: true } => vec![JobEvent::RemovalsHeld, JobEvent::CleanedUp],
        _ => vec![JobEvent::CleanedUp],
    };
    events.into_iter().map(|it| Ok((change(tx, job, &it, now_ms)?, it))).collect()
}

/// Judges the removals of a continuous job that runs, and notes once a day what it has.
pub fn judge_active(
    tx: &mut Tx<'_>,
    job: JobId,
    parts: u32,
    is_due: bool,
    now_ms: i64,
) -> Result<Vec<(JobState, JobEvent)>> {
    let Some(state) = job_states::lock(tx, job)?.filter(JobState::is_active) else {
        return Ok(Vec::new());
    };
    let Some(known) = jobs::load(tx, job)?.filter(|it| it.continuous) else {
        return Ok(Vec::new());
    };
    if removals::base(tx, job)?.noted_ms.saturating_add(WINDOW_MS) <= now_ms {
        removals::note_base(tx, job, now_ms)?;
    }
    let weighed = weigh(tx, &known, &state, now_ms)?;
    if !is_due && !weighed.fits(weighed.least) {
        return Ok(Vec::new());
    }
    let event = match judge(tx, &known, parts, &state, now_ms)? {
        RemovalVerdict::Release => JobEvent::RemovalsReleased,
        RemovalVerdict::Hold { is_news: true } => JobEvent::RemovalsHeld,
        _ => return Ok(Vec::new()),
    };
    Ok(vec![(change(tx, job, &event, now_ms)?, event)])
}

#[cfg(test)]
mod tests;
