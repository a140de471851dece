//! The end of a run, and of a job: cleaning up is watched, everybody is told, and what
//! is deleted goes.

use super::interrupter::Interrupter;
use super::{Advance, ConductorState, JobContext, try_to};
use crate::connectors;
use crate::job::JobRun;
use crate::lifecycle::JobEvent;
use store::ids::{JobId, Part, QueueId, Run};
use store::tables::job_states::{self, JobState, RunKind};
use store::tables::queue::sweep::{self, Sweep};
use store::tables::queue::{self, Place};
use store::tables::{connections, counters, ingests, jobs, removals};
use store::{Result, Tx, clock};

/// Rows of a job that are removed in one transaction.
const ROWS_MAX: u32 = 1_000;

impl ConductorState {
    /// A job that is to stop has stopped when none of its documents is worked on.
    pub(super) fn quiet(&self, job: JobId) -> Result<Advance> {
        let active = self.context.db.read(move |tx| counters::total(tx, job, "active"))?;
        if active > 0 {
            return Ok(Advance::Waits);
        }
        self.moved(job, JobEvent::Quiet)
    }

    /// A job is cleaned up when nothing is left that its run has not found again.
    pub(super) fn shutting_down(&self, job: JobId, state: &JobState) -> Result<Advance> {
        let (parts, run, decided) = (self.context.shared.parts, state.run, state.removals);
        let it = JobRun { job, run, kind: state.run_kind };
        let swept = self.context.db.read(move |tx| {
            // In the order of the flow: what was not seen in one place has moved on to the
            // next by then. It is over when its outputs have heard of everything.
            let mut sweeps = Vec::new();
            if !decided.only && cleans(tx, &it)? {
                sweeps.push(Sweep::Clean(run));
            }
            if decided.released > 0 && !removals::marked(tx, job)?.is_empty() {
                sweeps.push(Sweep::Leaving(decided.released));
            }
            for (sweep, part) in
                sweeps.into_iter().flat_map(|it| (0..i64::from(parts)).map(move |n| (it, Part(n))))
            {
                let place = Place { part, job };
                let is_left = match sweep {
                    Sweep::Clean(run) => {
                        queue::has_older(tx, place, run)? || queue::has_unlinked(tx, place, run)?
                    }
                    other => !sweep::peek(tx, place, other, 1)?.is_empty(),
                };
                if is_left {
                    return Ok(false);
                }
            }
            let active = counters::total(tx, job, "active")?;
            Ok(active == 0 && counters::total(tx, job, ingests::UNDELIVERED)? == 0)
        })?;
        if !swept {
            return Ok(Advance::Waits);
        }
        if decided.only {
            return self.moved(job, JobEvent::CleanedUp);
        }
        if self.context.db.read(move |tx| cleans(tx, &it))? {
            for part in (0..i64::from(parts)).map(Part) {
                self.forget_cut(Place { part, job }, run)?;
            }
        }
        self.end_or_sweep(job)
    }

    /// Forgets what older runs have named and this one has not.
    fn forget_cut(&self, place: Place, run: Run) -> Result<()> {
        let mut at = Some((String::new(), QueueId(i64::MIN)));
        while let Some((reason, id)) = at {
            at = self
                .context
                .db
                .write(move |tx| sweep::forget_cut(tx, place, run, &reason, id, ROWS_MAX))?;
        }
        Ok(())
    }

    /// A job's documents are deleted when there are none.
    pub(super) fn deleting(&self, job: JobId) -> Result<Advance> {
        let left = self.context.db.read(move |tx| counters::of_job(tx, job))?;
        let states = ["ready", "waiting", "active", "done", "cut", "failed", ingests::UNDELIVERED];
        let count: i64 =
            left.iter().filter(|it| states.contains(&it.0.as_str())).map(|it| it.1).sum();
        match count {
            0 => self.moved(job, JobEvent::Deleted),
            _ => Ok(Advance::Waits),
        }
    }
}

/// Whether the end of a run cleans up what it has not found again. While documents are
/// left that could not be looked at, their links have not been read, and what they lead
/// to stays; and so does what is in a directory that could not be listed.
pub fn cleans(tx: &mut Tx<'_>, it: &JobRun) -> Result<bool> {
    let JobRun { job, run, kind } = *it;
    if kind != RunKind::Full {
        return Ok(false);
    }
    let left = counters::total(tx, job, "ready")? + counters::total(tx, job, "waiting")?;
    if left > 0 || counters::total(tx, job, "failed")? == 0 {
        return Ok(left == 0);
    }
    let Some(known) = jobs::load(tx, job)? else { return Ok(false) };
    let connector = connections::connector_of(tx, known.connection)?.unwrap_or_default();
    // What the web leads to is named again from what is stored of it.
    Ok(!(connectors::leads_on(&connector) && sweep::is_any_unlisted(tx, job, run)?))
}

/// Tells everybody who wants to know that a run is over.
pub fn notify(context: &JobContext, job: JobId, _: &Interrupter) -> Result<()> {
    let (node, now_ms) = (context.ids.node(), clock::now_ms());
    let begins = JobEvent::NotifyBegins { node };
    if context.db.write(move |tx| try_to(tx, job, &begins, now_ms))?.is_none() {
        return Ok(());
    }
    let error = match context.observer.on_run_end(job) {
        Err(error) if error.passes() => return Err(error),
        told => told.err().map(|error| error.to_string()),
    };
    let done = JobEvent::NotifyDone { error };
    let now_ms = clock::now_ms();
    context.db.write(move |tx| try_to(tx, job, &done, now_ms).map(|_| ()))
}

/// Tells everybody that a job is gone, and removes the last of it.
pub fn notify_deletion(context: &JobContext, job: JobId, _: &Interrupter) -> Result<()> {
    let (node, now_ms) = (context.ids.node(), clock::now_ms());
    let begins = JobEvent::NotifyBegins { node };
    if context.db.write(move |tx| try_to(tx, job, &begins, now_ms))?.is_none() {
        return Ok(());
    }
    for part in (0..i64::from(context.shared.parts)).map(Part) {
        while context.db.write(move |tx| job_states::forget(tx, part, job, ROWS_MAX))? > 0 {}
    }
    context.db.write(move |tx| jobs::delete(tx, job).map(|_| ()))
}

#[cfg(test)]
mod tests;
