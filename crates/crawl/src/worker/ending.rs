//! When a run is over.
//!
//! Relies on the counters of all parts, and on a look at the tables for what can be done
//! here. Invariants: a run ends only when nothing is left of it, or when what is left
//! cannot be done for longer than the job's patience and nobody else works on it;
//! whoever attends to a run ends with it, whoever ended it.

use super::job::JobWork;
use super::{Ended, Older, Worker};
use crate::frontier::HostKey;
use std::collections::{BTreeMap, BTreeSet};
use store::ids::{BinId, JobId, Part, Run};
use store::tables::queue::{self, Place};
use store::tables::{bins, counters, job_states};
use store::{Result, Tx};

impl Worker {
    /// Whether the crawl is over.
    pub(super) fn ended(&mut self, looked: bool) -> Result<Option<Ended>> {
        let quiet =
            self.turns_under_way == 0 && self.places.values().all(|place| place.batch.is_empty());
        if self.is_stopping() {
            let ended = if self.replaced { Ended::Replaced } else { Ended::Stopped };
            let over = (quiet && self.drained()) || self.stops_too_long();
            return Ok(over.then_some(ended));
        }
        let left_before = self.left_before.take();
        if !looked || !quiet || self.frontier.in_flight() > 0 || self.paused {
            return Ok(None);
        }
        let Some(work) = self.jobs.get(&self.attends).cloned() else {
            return self.ended_by_others();
        };
        if self.parts.is_empty() || !self.nothing_soon(&work) {
            return Ok(None);
        }
        let (job, run) = (work.id, work.run);
        let held: BTreeSet<Part> = self.parts.keys().copied().collect();
        let parts = self.ground.parts;
        let now_ms = self.now.ms();
        let horizon_ms = now_ms.saturating_add(work.spec.patience_ms);
        let asking = Asking { job, run, horizon_ms };
        let looked_at = held.clone();
        let left = match self.db.read(move |tx| left(tx, asking, parts, &looked_at)) {
            Ok(Left::Nothing) => 0,
            Ok(Left::Idle(count)) if left_before == Some(count) => count,
            // Others may have added some of it since the look of this round; if as many
            // are left after another look, that one has seen them all.
            Ok(Left::Idle(count)) => {
                self.left_before = Some(count);
                self.looked_ms = i64::MIN;
                return Ok(None);
            }
            Ok(Left::AtWork) => return Ok(None),
            Err(error) if error.passes() => return Ok(None),
            Err(error) => return Err(error),
        };
        // Nothing is at work and nothing can be soon; but a process that has just joined
        // the run may bring seeds, which it does under this lock.
        let ended = self.db.write(move |tx| {
            job_states::lock(tx, job)?;
            let state = job_states::state(tx, job)?;
            if !state.is_active() || state.run != run {
                // Another process that attends to the job has ended its run just now.
                return Ok(true);
            }
            let is_over = match self::left(tx, asking, parts, &held)? {
                Left::Nothing => true,
                Left::Idle(count) => count == left,
                Left::AtWork => false,
            };
            if is_over {
                job_states::end_run(tx, job, run, now_ms)?;
            }
            Ok(is_over)
        });
        match ended {
            Ok(true) => Ok(Some(Ended::Finished { left })),
            Ok(false) => Ok(None),
            // Another look will try it again.
            Err(error) if error.passes() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether somebody else has ended the run that this process attends to, perhaps
    /// before it had its first look.
    fn ended_by_others(&self) -> Result<Option<Ended>> {
        let job = self.attends;
        let run = self.former_jobs.get(&job).map(|work| work.run);
        let state = match self.db.read(move |tx| job_states::state(tx, job)) {
            Err(error) if error.passes() => return Ok(None),
            state => state?,
        };
        let over = !state.is_active() || run.is_some_and(|run| run != state.run);
        Ok(over.then_some(Ended::Finished { left: 0 }))
    }

    /// Whether nothing of a job can be done for longer than its patience.
    fn nothing_soon(&mut self, work: &JobWork) -> bool {
        let now_ms = self.now.ms();
        let horizon_ms = now_ms.saturating_add(work.spec.patience_ms);
        let host = self.frontier.next_host();
        let due_ms = self.places.values().filter_map(|place| place.due_ms).min();
        let walking = self.places.values().any(|place| !matches!(place.older, Older::Done));
        let next_ms = host.map(|(ms, _)| ms).into_iter().chain(due_ms).min();
        self.say_what_is_waited_for(host, due_ms, now_ms);
        !walking && next_ms.is_none_or(|ms| ms > horizon_ms)
    }

    fn say_what_is_waited_for(
        &mut self,
        host: Option<(i64, HostKey)>,
        due_ms: Option<i64>,
        now_ms: i64,
    ) {
        const WORTH_SAYING_MS: i64 = 2_000;
        let next_ms = host.map(|(ms, _)| ms).into_iter().chain(due_ms).min();
        let what = match (next_ms, host) {
            (Some(ms), Some((host_ms, key))) if ms == host_ms && ms > now_ms + WORTH_SAYING_MS => {
                let host = self.hosts.get(key);
                let why = host.blocked_by.as_deref().unwrap_or("its delay");
                Some(format!("{} is left alone until its time comes ({why})", host.name))
            }
            (Some(ms), _) if ms > now_ms + WORTH_SAYING_MS => {
                Some("documents in trouble wait for another try".to_owned())
            }
            _ => None,
        };
        self.progress.waits_for(what);
    }
}

/// What is left of a run.
enum Left {
    /// Nothing.
    Nothing,
    /// So many documents, for which nothing can be done within the job's patience.
    Idle(i64),
    /// Something that is at work, or that others can do soon.
    AtWork,
}

/// Which run is asked about, and until when something would be soon.
#[derive(Clone, Copy)]
struct Asking {
    job: JobId,
    run: Run,
    horizon_ms: i64,
}

/// Looks at all parts in one snapshot. What can be done in those that are held the caller
/// knows better; of the others the tables tell.
fn left(tx: &mut Tx<'_>, asking: Asking, parts: u32, held: &BTreeSet<Part>) -> Result<Left> {
    let Asking { job, run, horizon_ms } = asking;
    let mut idle = 0;
    for part in (0..i64::from(parts)).map(Part) {
        let counted: BTreeMap<String, i64> =
            counters::in_part(tx, part, job)?.into_iter().collect();
        let count = |name: &str| counted.get(name).copied().unwrap_or(0);
        let place = Place { part, job };
        let is_older = run.0 > 1
            && !counted.is_empty()
            && queue::next_older_bin(tx, place, run, BinId(i64::MIN))?.is_some();
        let open = count("ready") + count("waiting");
        let is_soon = count("active") > 0
            || (!held.contains(&part) && is_older)
            || (!held.contains(&part) && open > 0 && is_due(tx, place, horizon_ms)?);
        if is_soon {
            return Ok(Left::AtWork);
        }
        idle += open + i64::from(is_older);
    }
    Ok(if idle == 0 { Left::Nothing } else { Left::Idle(idle) })
}

/// Whether something of a job in a part can be done before a time.
fn is_due(tx: &mut Tx<'_>, place: Place, horizon_ms: i64) -> Result<bool> {
    let waking = queue::next_due(tx, place)?.is_some_and(|due_ms| due_ms <= horizon_ms);
    Ok(waking || bins::has_due(tx, (place.part, place.job), horizon_ms)?)
}
