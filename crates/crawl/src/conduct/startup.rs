//! Starting a job up: what the run means for its documents is decided, its seeds are
//! queued, and it is active.
//!
//! Nothing is rewritten for it, however many documents the job has: a run's number and
//! kind say what older documents are. Invariant: repeating a start-up that was cut short
//! does nothing twice.

use super::interrupter::Interrupter;
use super::{JobContext, try_to};
use crate::begin::{self, SeedResult};
use crate::job::JobWork;
use crate::lifecycle::{JobEvent, RunOptions, run_kind};
use std::sync::Arc;
use store::ids::JobId;
use store::panics::FaultPoint;
use store::tables::job_states::{self, AttendedJob, Phase};
use store::tables::jobs::{self, Job};
use store::tables::removals;
use store::{Error, Result, clock};

/// Starts a job up that is ready for it.
pub fn run(context: &JobContext, job: JobId, interrupter: &Interrupter) -> Result<()> {
    let (node, now_ms, shared) = (context.ids.node(), clock::now_ms(), context.shared.clone());
    shared.faults.at(FaultPoint::StartJob, &job.to_string());
    let attended = context.db.write(move |tx| {
        let job = definition(tx, job)?;
        let before = job_states::state(tx, job.id)?;
        let options = RunOptions {
            continuous: job.continuous,
            from_beginning: before.seeding_version.is_none(),
            minimal: before.minimal,
        };
        let mut attended = AttendedJob::new(tx, job, before)?;
        let work =
            JobWork::new(&attended, &shared).map_err(|bad| Error::Refused(bad.to_string()))?;
        let kind = run_kind(work.model(), options);
        let begins = JobEvent::StartupBegins { node, kind };
        let state = try_to(tx, attended.job.id, &begins, now_ms)?;
        if state.is_some() {
            removals::note_base(tx, attended.job.id, now_ms)?;
        }
        Ok(state.map(|state| {
            attended.state = state;
            attended
        }))
    })?;
    let Some(attended) = attended else { return Ok(()) };
    let work =
        JobWork::new(&attended, &context.shared).map_err(|bad| Error::Refused(bad.to_string()))?;
    let work = Arc::new(work);
    interrupter.watch(&work);
    let admission = work.web().map(|web| web.spec.admission()).unwrap_or_default();
    let since = attended.state.seeding_version.as_deref();
    let event = match begin::seed(context, &work, since)? {
        SeedResult::Done(seeding_version) => {
            JobEvent::StartupDone { seeding_version, reseed_ms: reseed_ms(&attended.job, now_ms) }
        }
        // Somebody has aborted it meanwhile.
        SeedResult::Over => JobEvent::StartupReturns,
    };
    let now_ms = clock::now_ms();
    context.db.write(move |tx| {
        job_states::set_admission(tx, job, &admission)?;
        try_to(tx, job, &event, now_ms).map(|_| ())
    })
}

/// Asks for the seeds of a job that runs.
pub fn reseed(context: &JobContext, job: JobId, interrupter: &Interrupter) -> Result<()> {
    let (node, now_ms) = (context.ids.node(), clock::now_ms());
    let attended = context.db.write(move |tx| {
        let job = definition(tx, job)?;
        let state = try_to(tx, job.id, &JobEvent::SeedingBegins { node }, now_ms)?;
        state.map(|state| AttendedJob::new(tx, job, state)).transpose()
    })?;
    let Some(attended) = attended else { return Ok(()) };
    let work =
        JobWork::new(&attended, &context.shared).map_err(|bad| Error::Refused(bad.to_string()))?;
    let work = Arc::new(work);
    interrupter.watch(&work);
    let since = attended.state.seeding_version.as_deref();
    let event = match begin::seed(context, &work, since)? {
        SeedResult::Done(seeding_version) => {
            JobEvent::SeedingDone { seeding_version, reseed_ms: reseed_ms(&attended.job, now_ms) }
        }
        SeedResult::Over => JobEvent::SeedingReturns,
    };
    let now_ms = clock::now_ms();
    context.db.write(move |tx| try_to(tx, job, &event, now_ms).map(|_| ()))
}

/// When a job is seeded again; a blank interval is never.
fn reseed_ms(job: &Job, now_ms: i64) -> Option<i64> {
    let interval_ms = job.reseed_ms.filter(|_| job.continuous)?;
    Some(now_ms.saturating_add(interval_ms))
}

/// A job's definition, by its id. Seeding goes by it, so none of it may be damaged.
pub fn definition(tx: &mut store::Tx<'_>, job: JobId) -> Result<Job> {
    jobs::require_whole(tx, job)?;
    jobs::load(tx, job)?.ok_or_else(|| Error::Refused("there is no such job any more".to_owned()))
}

/// Whether seeds may be added to a run now.
pub fn takes_seeds(phase: Phase) -> bool {
    matches!(phase, Phase::StartingUp | Phase::Active)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::ConnectionId;

    #[test]
    fn a_blank_reseed_interval_is_never() {
        let job = Job::new(JobId(1), "docs", ConnectionId(1));
        let with = |continuous, interval_ms| {
            reseed_ms(&Job { continuous, reseed_ms: interval_ms, ..job.clone() }, 1_000)
        };
        assert_eq!(with(true, None), None);
        assert_eq!(with(true, Some(500)), Some(1_500));
        assert_eq!(with(false, Some(500)), None, "one that scans once is seeded once");
    }
}
