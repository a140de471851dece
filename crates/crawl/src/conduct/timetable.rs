//! Starting, holding back and waking jobs by their schedules.
//!
//! Relies on `schedule` for when. Nothing is polled for its own sake: what a schedule
//! will say next is known, and nobody asks before. Invariants: a start by schedule sets
//! the window's end, one by hand has none; a job whose window is over waits for the next
//! one and is not started anew; one whose schedule was taken away waits for nothing.

use super::{Advance, ConductorState};
use crate::lifecycle::JobEvent;
use crate::schedule::{Since, Start, StartMethod, decide, next_event};
use crate::stored_times;
use store::ids::JobId;
use store::tables::job_states::{self, JobState, Phase, ScheduledJob};
use store::tables::schedules::{self, Schedule};
use store::{Result, clock};

/// Jobs with schedules that one process looks after.
const JOBS_MAX: u32 = 10_000;

/// A job's schedules as they were read, and when they may say something else.
pub(super) struct JobSchedules {
    version: i64,
    last_ms: Option<i64>,
    schedules: Vec<Schedule>,
    next_ms: Option<i64>,
}

impl ConductorState {
    /// Starts and wakes jobs whose time has come. Returns when the next may be.
    pub(super) fn look_at_clock(&mut self) -> Result<Option<i64>> {
        let jobs = self.context.db.read(|tx| job_states::scheduled(tx, JOBS_MAX))?;
        self.timetable.retain(|job, _| jobs.iter().any(|it| it.job == *job));
        let mut next_ms: Option<i64> = None;
        for it in jobs {
            if !self.terms.attends.includes(it.job) {
                continue;
            }
            match self.start_by_clock(&it) {
                Ok(at_ms) => next_ms = next_ms.into_iter().chain(at_ms).min(),
                // Another process was faster.
                Err(store::Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(next_ms)
    }

    fn start_by_clock(&mut self, it: &ScheduledJob) -> Result<Option<i64>> {
        let now_ms = clock::now_ms();
        let state = &it.state;
        let waits = state.phase == Phase::Active && state.waiting && !state.stopping;
        if state.phase != Phase::Inactive && !waits {
            return Ok(None);
        }
        self.read_schedules(it)?;
        let Some(entry) = self.timetable.get_mut(&it.job) else { return Ok(None) };
        let is_scheduled = it.method != StartMethod::Manual && !entry.schedules.is_empty();
        if waits && !is_scheduled {
            self.change(it.job, JobEvent::WindowOpens { window_end_ms: None })?;
            return Ok(Some(now_ms));
        }
        let last_ms = state.last_ms.map(|ms| stored_times::looked_at_ms(ms, now_ms));
        let Some(last_ms) = last_ms else {
            // Never looked at before: from now on.
            let job = it.job;
            self.context.db.write(move |tx| job_states::set_last(tx, job, now_ms))?;
            return Ok(Some(now_ms));
        };
        if entry.next_ms.is_some_and(|next_ms| next_ms > now_ms) {
            return Ok(entry.next_ms);
        }
        let since = Since { last_ms, ran_ms: it.ran_ms };
        let start = decide(it.method, &entry.schedules, since, now_ms);
        entry.next_ms = next_event(it.method, &entry.schedules, since, now_ms);
        let next_ms = entry.next_ms;
        if let Some(Start { window_end_ms, minimal, .. }) = start {
            let event = match waits {
                true => JobEvent::WindowOpens { window_end_ms },
                false => JobEvent::ScheduledStart { minimal, window_end_ms },
            };
            self.change(it.job, event)?;
            return Ok(Some(now_ms));
        }
        Ok(next_ms)
    }

    /// Reads a job's schedules, if they or the time they count from may have changed.
    fn read_schedules(&mut self, it: &ScheduledJob) -> Result<()> {
        let known = self.timetable.get(&it.job);
        if known
            .is_some_and(|known| (known.version, known.last_ms) == (it.version, it.state.last_ms))
        {
            return Ok(());
        }
        let job = it.job;
        let schedules = self.context.db.read(move |tx| schedules::load(tx, job))?;
        let (version, last_ms) = (it.version, it.state.last_ms);
        self.timetable.insert(job, JobSchedules { version, last_ms, schedules, next_ms: None });
        Ok(())
    }

    /// Holds a job back whose window is over.
    pub(super) fn close_window(&self, job: JobId, state: &JobState) -> Result<Option<Advance>> {
        let is_over = state.window_end_ms.is_some_and(|end_ms| end_ms <= clock::now_ms());
        let pausing = state.paused && state.stopping;
        if !is_over || state.waiting || state.resuming || pausing {
            return Ok(None);
        }
        self.moved(job, JobEvent::WindowCloses).map(Some)
    }
}

#[cfg(test)]
mod tests;
