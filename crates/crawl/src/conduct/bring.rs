//! Brings a job to a state that somebody waits for.
//!
//! Invariant: whoever waits is told in the end why the job stays where it is.

use super::{ConductorState, GLANCE_MS, JobContext, Terms};
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use store::ids::JobId;
use store::tables::job_states::{self, JobState};
use store::tables::outages;
use store::{Error, Result, clock};

/// How long a job may take to come to a state that somebody waits for.
const BRING_MS_MAX: i64 = 120_000;

/// Brings a job to a state that satisfies, without a thread of its own: what `crawl` does
/// before it works. Fails when nothing has come of it for long.
pub fn bring(
    context: &JobContext,
    terms: Terms,
    job: JobId,
    satisfies: impl Fn(&JobState) -> bool,
) -> Result<JobState> {
    let (again, woken) = sync_channel(1);
    let mut conductor = ConductorState::new(context.clone(), terms, again);
    let give_up_ms = clock::now_ms() + BRING_MS_MAX;
    loop {
        let state = context.db.read(move |tx| job_states::state(tx, job))?;
        if satisfies(&state) {
            return Ok(state);
        }
        if clock::now_ms() > give_up_ms {
            return Err(stays(context, job, &state)?);
        }
        conductor.collect();
        let wait_ms = conductor.look(&|| {})?.min(GLANCE_MS);
        let _ = woken.recv_timeout(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)));
    }
}

/// Waits until the conductor of this process has brought a job to a state that satisfies.
/// `wake` makes it look; when that says no, or nothing has come of it for long, this fails.
pub fn wait_for(
    context: &JobContext,
    job: JobId,
    satisfies: impl Fn(&JobState) -> bool,
    wake: &dyn Fn() -> bool,
) -> Result<JobState> {
    let give_up_ms = clock::now_ms() + BRING_MS_MAX;
    loop {
        let state = context.db.read(move |tx| job_states::state(tx, job))?;
        if satisfies(&state) {
            return Ok(state);
        }
        if !wake() {
            return Err(Error::Refused("this process is about to exit".to_owned()));
        }
        if clock::now_ms() > give_up_ms {
            return Err(stays(context, job, &state)?);
        }
        std::thread::park_timeout(Duration::from_millis(GLANCE_MS.unsigned_abs()));
    }
}

fn stays(context: &JobContext, job: JobId, state: &JobState) -> Result<Error> {
    let name = state.name();
    let why = context.db.read(move |tx| outages::why_of_job(tx, job))?;
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    Ok(Error::Refused(format!("the job remains {name}{why}; try again later")))
}
