//! What the worker does next: when a chunk is committed, what is claimed with it, when a
//! part is given back.
//!
//! Invariants: one turn of a part at a time; what is claimed of a part that is to be
//! given back goes back with it.

use super::job::Doing;
use super::progress::Waiter;
use super::steps::fresh_chunk;
use super::tasks::Claimed;
use super::turn::{Done, Turn};
use super::turns::{TURNS_MAX, Turned};
use super::{Item, PartWork, Worker};
use crate::frontier::Want;
use crate::hops::Spread;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::ids::{JobId, Part, QueueId};
use store::tables::queue::sweep::Sweep;
use store::{Error, Result};

impl Worker {
    /// Sends the turns that are due. Returns how long nothing else will be.
    pub(super) fn plan(&mut self) -> Result<Duration> {
        let now_ms = self.now.ms();
        let stopping = self.control.is_stopping();
        let closing = stopping && self.drained();
        let mut wants = self.wants(now_ms, stopping || self.control.is_paused());
        // Commits first: what one job asks for may wait for what another has not committed.
        let mut keys: Vec<((Part, JobId), bool)> = Vec::with_capacity(self.places.len());
        for key in self.places.keys() {
            let asks = wants.contains_key(key);
            keys.push((*key, closing || self.is_to_commit(*key, asks, now_ms)));
        }
        keys.sort_by_key(|(_, commits)| !commits);
        for (key, commits) in keys {
            let asked = wants.remove(&key).unwrap_or_default();
            let free = self.parts.get(&key.0).is_some_and(|held| !held.busy);
            let commits = commits && !self.places[&key].batch.is_empty();
            let sweeps = self.sweep_of(key).is_some() && !stopping && !self.control.is_paused();
            let spreads = self.places[&key].spread == Spread::More && !closing;
            let idle = !commits && asked.is_empty() && !sweeps && !spreads;
            if !free || self.turns_under_way >= TURNS_MAX || idle {
                for want in asked {
                    self.frontier.cancel(want);
                }
                continue;
            }
            self.send_turn(key, asked, commits);
        }
        self.leave_parts();
        Ok(self.until_next(now_ms))
    }

    /// Whether what is finished of a job in a part is to be committed now.
    fn is_to_commit(&self, key: (Part, JobId), asks: bool, now_ms: i64) -> bool {
        let batch = &self.places[&key].batch;
        let documents_max = self.chunk_documents_max(key);
        let due = batch.first_ms.is_some_and(|ms| now_ms - ms >= self.settings.chunk_ms);
        let hungry = asks && batch.documents() * 2 >= documents_max;
        // Nothing else keeps a sweep from its next step, nor documents that wait for room.
        let starving = self.frontier.in_flight() == 0 || batch.swept > 0 || self.frontier.is_full();
        !batch.is_empty() && (batch.is_full(documents_max) || due || starving || hungry)
    }

    /// What of a job in a part is to be swept, as far as anybody knows.
    fn sweep_of(&self, (part, job): (Part, JobId)) -> Option<Sweep> {
        let place = self.places.get(&(part, job))?;
        let claims = self.parts.get(&part).is_some_and(PartWork::claims);
        if place.is_swept || !claims {
            return None;
        }
        match self.jobs.get(job)?.doing {
            Doing::Sweep(sweep) => Some(sweep),
            Doing::Crawl => {
                let left = place.gives_up_ms.map(|horizon_ms| Sweep::Left { horizon_ms });
                left.or_else(|| self.leaving_of(job))
            }
        }
    }

    /// What a continuous job loses while it goes on; others wait for the end of the run, in
    /// which it may be found again.
    fn leaving_of(&self, job: JobId) -> Option<Sweep> {
        let work = self.jobs.get(job)?;
        let released = work.removals.released;
        let loses = work.definition.continuous && released > 0;
        loses.then_some(Sweep::Leaving(released))
    }

    /// What the frontier wants, by job and part.
    fn wants(&mut self, now_ms: i64, stopping: bool) -> BTreeMap<(Part, JobId), Vec<Want>> {
        let mut by_place: BTreeMap<(Part, JobId), Vec<Want>> = BTreeMap::new();
        if stopping || self.turns_under_way >= TURNS_MAX {
            return by_place;
        }
        let parts = &self.parts;
        let free = |part: Part| parts.get(&part).is_some_and(|held| !held.busy && held.claims());
        for want in self.frontier.wants(now_ms, false, free) {
            by_place.entry((want.host.part, want.job)).or_default().push(want);
        }
        by_place
    }

    fn send_turn(&mut self, (part, job): (Part, JobId), mut wants: Vec<Want>, commits: bool) {
        let now_ms = self.now.ms();
        let Some(work) = self.jobs.get_any(job).cloned() else {
            wants.into_iter().for_each(|want| self.frontier.cancel(want));
            return;
        };
        let claims = self.parts.get(&part).is_some_and(PartWork::claims)
            && self.control.may_claim()
            && self.jobs.is_attended(job);
        if commits && wants.is_empty() && claims {
            // A commit may as well fill up.
            let more = self.frontier.wants(now_ms, true, |other| other == part);
            let (mine, others): (Vec<Want>, Vec<Want>) =
                more.into_iter().partition(|want| want.job == job);
            wants = mine;
            for want in others {
                self.frontier.cancel(want);
            }
        }
        let sweep = self.sweep_of((part, job)).filter(|_| claims);
        let held = self.parts.get_mut(&part).expect("a turn is sent for a part that is held");
        held.busy = true;
        let lease = held.lease.clone();
        let place = self.places.entry((part, job)).or_default();
        place.turning = true;
        let current = place.chunk(&work, &self.ids);
        let mut active: Vec<QueueId> = place.active.iter().copied().collect();
        let (commit, open, is_open) = if commits {
            let mut batch = std::mem::take(&mut place.batch);
            batch.traps = self.budgets.take_changed(part);
            let mut next = fresh_chunk(&work, &self.ids);
            if !active.is_empty() {
                next.claim = current.claim;
            }
            next.announces = batch.records.iter().any(|it| it.facts.is_some());
            place.chunk = Some(next);
            (Some((current, batch)), next, false)
        } else {
            // What is finished but not committed is active for the tables, too.
            active.extend(place.batch.settled.iter().map(|it| it.id));
            (None, current, place.is_open)
        };
        self.turns_under_way += 1;
        if commit.is_some() {
            self.schedule.on_work();
        }
        let (job, ids) = (work, self.ids.clone());
        let turn = Turn { lease, job, ids, commit, open, is_open, active, wants, sweep, now_ms };
        self.turns.send(turn);
    }

    /// A turn is over.
    pub(super) fn turned(&mut self, turned: Turned) -> Result<()> {
        self.turns_under_way -= 1;
        let Turned { ready, outcome } = turned;
        let (part, token) = (ready.turn().lease.part, ready.turn().lease.token);
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.0 == part) {
            // There is one turn of a part at a time.
            place.turning = false;
        }
        let turn = ready.turn();
        let documents = turn.commit.as_ref().map_or(0, |(_, batch)| batch.claimed());
        match outcome {
            Ok(done) => {
                self.frontier.committed(documents);
                if self.isolation.take_told() {
                    self.progress.waits_for(Waiter::Commit, None);
                }
                if let Some((_, batch)) = &turn.commit {
                    batch.remember(turn.job.id, &self.known);
                    let settled = batch.settled.iter().map(|it| it.id);
                    self.isolation.on_commit((part, turn.job.id), settled);
                    self.progress.committed(turn.job.run_key(), done.new);
                    self.herald.committed();
                    if !turn.job.outlets.is_empty() || turn.job.has_siblings {
                        self.herald.decided();
                    }
                }
                self.take_over(part, turn, done);
                Ok(())
            }
            Err(Error::Internal { reason }) => {
                self.panicked(turn, &reason);
                self.failed((part, token), None, (documents, &turn.wants))
            }
            Err(error) => self.failed((part, token), Some(error), (documents, &turn.wants)),
        }
    }

    /// A turn panicked, again and again. Its part is given back as if this process had
    /// crashed: whoever takes it abandons the chunk and claims its documents anew.
    fn panicked(&mut self, turn: &Turn, reason: &str) {
        let (part, job) = (turn.lease.part, &turn.job);
        let documents: Vec<QueueId> = match &turn.commit {
            Some((_, batch)) => batch.with_contents().collect(),
            None => Vec::new(),
        };
        self.isolation.on_panic((part, job.id), &documents, reason);
        let what = if turn.commit.is_some() { "a commit" } else { "a claim" };
        let why = format!(
            "{what} of job {} in part {part} failed with an internal error ({reason}); it is \
             tried again with fewer documents",
            job.name
        );
        self.progress.waits_for(Waiter::Commit, Some(why));
        self.isolation.tell();
        if self.holds(part, turn.lease.token) {
            self.holdings.leave(part, false);
        }
    }

    /// How many documents a chunk may have: fewer while one is searched for that makes
    /// commits panic.
    pub(super) fn chunk_documents_max(&self, place: (Part, JobId)) -> usize {
        let usual = self.settings.chunk_documents;
        self.isolation.documents_max(place).map_or(usual, |most| most.min(usual))
    }

    /// Whether a document that is finished must wait for another chunk, because this one
    /// may have few.
    pub(super) fn is_isolated(&self, place: (Part, JobId)) -> bool {
        let most = self.isolation.documents_max(place);
        let has = || self.places.get(&place).map_or(0, |it| it.batch.with_contents().count());
        most.is_some_and(|most| has() >= most)
    }

    fn take_over(&mut self, part: Part, turn: &Turn, done: Done) {
        let job = turn.job.id;
        let is_ours = self.parts.get(&part).is_some_and(|it| it.lease.token == turn.lease.token);
        if let Some(held) = self.parts.get_mut(&part).filter(|_| is_ours) {
            held.busy = false;
        }
        let leaving = self.parts.get(&part).is_none_or(|held| held.leaving) || !is_ours;
        let mut back: Vec<Item> = Vec::new();
        if done.claimed.iter().any(|(_, claimed, _)| !claimed.is_empty()) {
            self.schedule.on_work();
        }
        for (want, claimed, exhausted) in done.claimed {
            if is_ours {
                let place = self.places.entry((part, job)).or_default();
                place.active.extend(claimed.iter().map(|it| it.entry.id));
            }
            let items: Vec<Item> =
                claimed.into_iter().map(|it: Claimed| Item::new(job, it)).collect();
            if leaving || !self.frontier.knows(want.host) || !self.jobs.is_attended(job) {
                let kept = Want { documents: want.documents - items.len(), ..want };
                // Nothing more is wanted here, so that the host can be forgotten.
                self.frontier.abandon(kept);
                back.extend(items);
            } else {
                self.frontier.claimed(want, items, exhausted);
            }
        }
        for item in back {
            self.give_back(part, item);
        }
        if let Some(sweep) = turn.sweep.filter(|_| is_ours) {
            // A turn from before the job changed has not seen what is to be swept since then.
            let is_current = self.jobs.get(job).is_some_and(|now| Arc::ptr_eq(now, &turn.job));
            let place = self.places.entry((part, job)).or_default();
            place.is_swept = done.swept.is_empty() && is_current;
            if place.is_swept {
                place.gives_up_ms = None;
            }
            place.active.extend(done.swept.iter().map(|it| it.claimed.entry.id));
            self.sweep(part, (&turn.job, sweep), done.swept);
        }
        if is_ours {
            let place = self.places.entry((part, job)).or_default();
            place.is_open = done.is_open;
            place.spread = done.spread;
            if let Some(due_ms) = turn.commit.as_ref().and_then(|(_, batch)| batch.due_ms) {
                place.due_ms = Some(place.due_ms.map_or(due_ms, |known| known.min(due_ms)));
            }
        }
        for (woken_part, bin) in done.woken {
            self.has_work(woken_part, job, &bin);
        }
    }

    fn failed(
        &mut self,
        (part, token): (Part, i64),
        error: Option<Error>,
        (documents, wants): (usize, &[Want]),
    ) -> Result<()> {
        for want in wants {
            self.frontier.abandon(*want);
        }
        self.frontier.committed(documents);
        match error {
            // If the part has been taken again meanwhile, that is another lease.
            Some(Error::LeaseLost { .. }) | None if !self.holds(part, token) => Ok(()),
            Some(Error::LeaseLost { .. }) | None => {
                self.lose(part);
                Ok(())
            }
            Some(error) => Err(error),
        }
    }

    /// Gives parts back that others should have, once nothing of them is under way.
    fn leave_parts(&mut self) {
        let leaving: Vec<Part> = self
            .parts
            .iter()
            .filter(|(part, held)| {
                let mut places = self.places.iter().filter(|(key, _)| key.0 == **part);
                held.leaving
                    && !held.busy
                    && places.all(|(_, place)| place.is_idle())
                    && self.frontier.in_flight_in(**part) == 0
            })
            .map(|(part, _)| *part)
            .collect();
        for part in leaving {
            let in_order = self.is_in_order(part);
            self.parts.remove(&part);
            self.places.retain(|key, _| key.0 != part);
            self.hosts.forget(part);
            self.budgets.forget(part);
            self.holdings.leave(part, in_order);
            self.repace_all();
        }
    }

    /// Whether all that was asked of a part's hosts is in the tables.
    pub(super) fn is_in_order(&self, part: Part) -> bool {
        let mut places = self.places.iter().filter(|(key, _)| key.0 == part);
        let booked = places.all(|(_, place)| place.batch.visits.is_empty());
        let busy = self.parts.get(&part).is_some_and(|held| held.busy);
        booked && !busy && self.frontier.in_flight_in(part) == 0
    }

    /// How long nothing will be, unless an event comes.
    fn until_next(&self, now_ms: i64) -> Duration {
        let poll_ms = self.next_look_ms();
        let commit_ms = self
            .places
            .values()
            .filter_map(|place| place.batch.first_ms)
            .min()
            .map(|first_ms| first_ms + self.settings.chunk_ms);
        let start_ms = self.frontier.next_start().filter(|ms| *ms > now_ms);
        let lag_ms = self.next_lag_look_ms();
        let next_ms = [Some(poll_ms), commit_ms, start_ms, lag_ms].into_iter().flatten().min();
        self.now.until(next_ms.unwrap_or(now_ms)).max(Duration::from_millis(1))
    }
}
