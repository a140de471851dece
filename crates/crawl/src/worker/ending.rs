//! When a run is over.
//!
//! Relies on the counters of all parts, and on a look at the tables for what can be done
//! here. Invariants: a run ends only when nothing is left of it, or when what is left
//! cannot be done for longer than the job's patience and nobody else works on it;
//! whoever attends to a run ends with it, whoever ended it.

use super::job::JobWork;
use super::{Ended, Older, Worker};
use crate::frontier::HostKey;
use std::collections::BTreeMap;
use store::ids::{BinId, JobId, Part, Run};
use store::tables::queue::{self, Place};
use store::tables::{counters, jobs};
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
        let held: Vec<Part> = self.parts.keys().copied().collect();
        let parts = self.ground.parts;
        let now_ms = self.now.ms();
        let left = match self.db.read(move |tx| left(tx, (job, run), parts, &held)) {
            Ok(Left::Nothing) => 0,
            Ok(Left::Ours(count)) if left_before == Some(count) => count,
            // Others may have added some of it since the look of this round; if as many
            // are left after another look, that one has seen them all.
            Ok(Left::Ours(count)) => {
                self.left_before = Some(count);
                self.looked_ms = i64::MIN;
                return Ok(None);
            }
            Ok(Left::Others) => return Ok(None),
            Err(error) if error.passes() => return Ok(None),
            Err(error) => return Err(error),
        };
        // Nothing is at work and nothing can be soon, so nothing changes this any more.
        let ended = self.db.write(move |tx| {
            // Another process that attends to the job may have ended its run just now.
            jobs::lock(tx, job)?;
            let state = jobs::state(tx, job)?;
            if state.phase == "active" && state.run == run {
                jobs::end_run(tx, job, run, now_ms)?;
            }
            Ok(())
        });
        match ended {
            Ok(()) => Ok(Some(Ended::Finished { left })),
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
        let state = match self.db.read(move |tx| jobs::state(tx, job)) {
            Err(error) if error.passes() => return Ok(None),
            state => state?,
        };
        let over = state.phase != "active" || run.is_some_and(|run| run != state.run);
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
    /// So many documents, all in parts that are held here.
    Ours(i64),
    /// Something that others hold, or that is at work.
    Others,
}

fn left(tx: &mut Tx<'_>, (job, run): (JobId, Run), parts: u32, held: &[Part]) -> Result<Left> {
    let mut ours = 0;
    for number in 0..parts {
        let part = Part(i64::from(number));
        let counted: BTreeMap<String, i64> =
            counters::in_part(tx, part, job)?.into_iter().collect();
        let count = |name: &str| counted.get(name).copied().unwrap_or(0);
        if count("active") > 0 {
            return Ok(Left::Others);
        }
        let place = Place { part, job };
        let older = match run.0 > 1 && !counted.is_empty() {
            true => queue::next_older_bin(tx, place, run, BinId(i64::MIN))?.is_some(),
            false => false,
        };
        let open = count("ready") + count("waiting");
        if (open > 0 || older) && !held.contains(&part) {
            return Ok(Left::Others);
        }
        ours += open + i64::from(older);
    }
    Ok(if ours == 0 { Left::Nothing } else { Left::Ours(ours) })
}
