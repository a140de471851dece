//! What the worker does next: which jobs and bins have work, when a chunk is committed,
//! when a part is given back.
//!
//! Invariants: one turn of a part at a time; what is claimed of a part that is to be
//! given back goes back with it.

use super::fetching::Claimed;
use super::job::JobWork;
use super::steps::fresh_chunk;
use super::turn::{Done, Turn};
use super::turns::{TURNS_MAX, Turned};
use super::{Item, Older, Worker};
use crate::frontier::{HostKey, Want};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use store::ids::{BinId, JobId, Part, QueueId};
use store::tables::bins::{self, Bin};
use store::tables::jobs::{self, Attended};
use store::tables::leases;
use store::tables::queue::{self, Place};
use store::{Error, Result, Tx, disk};

/// Hosts known at once; those beyond wait until others have no work.
const HOSTS_MAX: usize = 10_000;
/// Bins looked up at once, of a part.
const BINS_MAX: u32 = 1_000;
/// Jobs that can be attended to at once.
const JOBS_MAX: u32 = 1_000;
/// Documents woken at once.
const WAKE_MAX: u32 = 1_000;
/// With nothing to do, the tables are looked at again after this long at first.
const IDLE_MS: i64 = 20;

/// Where a walk over marked bins begins.
pub(super) const FIRST: (JobId, BinId) = (JobId(i64::MIN), BinId(i64::MIN));

/// What a look at a part found.
struct Found {
    /// Where the next look goes on.
    marked_after: (JobId, BinId),
    bins: Vec<(JobId, Bin)>,
    older: Vec<(JobId, Older)>,
    due: Vec<(JobId, Option<i64>)>,
}

impl Worker {
    /// Looks at the tables for what is new: jobs, bins with work, documents that fall
    /// due. Now and then, and when there is nothing to do. Returns whether all of it has
    /// been seen.
    pub(super) fn look(&mut self) -> Result<bool> {
        let now_ms = self.now.ms();
        if self.is_stopping() || now_ms < self.next_look_ms() {
            return Ok(false);
        }
        // The longer there is nothing, the less often it is worth a look.
        self.idle_ms = match self.frontier.is_idle() {
            true => (self.idle_ms * 2).clamp(IDLE_MS, self.settings.poll_ms),
            false => 0,
        };
        // Before the look, so that whatever asks for another one meanwhile gets it.
        self.looked_ms = now_ms;
        self.look_at_disk()?;
        self.look_for_jobs(now_ms)?;
        self.hosts.tidy(|host| self.frontier.knows(host));
        let parts: Vec<Part> =
            self.parts.iter().filter(|(_, held)| !held.leaving).map(|(part, _)| *part).collect();
        for part in parts {
            self.look_at(part, now_ms)?;
        }
        // What was woken is ready, but in the frontier only after that other look.
        Ok(self.looked_ms != i64::MIN)
    }

    /// Pauses while the disk is almost full, and goes on by itself (T31).
    fn look_at_disk(&mut self) -> Result<()> {
        let Some(path) = &self.settings.disk else { return Ok(()) };
        let free_percent = disk::room(path)?.free_percent();
        let (least, was) = (self.settings.disk_free_percent, self.paused);
        self.paused = free_percent < least;
        if self.paused {
            self.progress.waits_for(Some(format!(
                "the disk that holds {} is almost full ({free_percent} % free, {least} % are \
                 needed); the crawl goes on when there is room",
                path.display()
            )));
        } else if was {
            self.progress.waits_for(None);
        }
        Ok(())
    }

    /// When the tables are looked at again.
    fn next_look_ms(&self) -> i64 {
        let wait_ms = if self.frontier.is_idle() { self.idle_ms } else { self.settings.poll_ms };
        self.looked_ms.saturating_add(wait_ms)
    }

    fn look_for_jobs(&mut self, now_ms: i64) -> Result<()> {
        let attended = match self.attended(now_ms) {
            Ok(attended) => attended,
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            Err(error) => return Err(error),
        };
        let gone: Vec<JobId> = self
            .jobs
            .values()
            .filter(|work| !attended.iter().any(|it| it.job.id == work.id && it.run == work.run))
            .map(|work| work.id)
            .collect();
        for job in gone {
            if let Some(work) = self.jobs.remove(&job) {
                self.former_jobs.insert(job, work);
            }
            let parts: Vec<Part> = self.parts.keys().copied().collect();
            for part in parts {
                for item in self.frontier.forget(part, Some(job)) {
                    self.give_back(part, item);
                }
            }
        }
        for it in attended {
            if !self.jobs.contains_key(&it.job.id) {
                match JobWork::new(&it, &self.ground) {
                    Ok(work) => {
                        // Another run has its own links to find, and its own documents
                        // to look at again.
                        self.known.clear();
                        for place in self.places.iter_mut().filter(|(key, _)| key.1 == work.id) {
                            place.1.older = Older::Unknown;
                        }
                        self.former_jobs.remove(&work.id);
                        self.jobs.insert(work.id, Arc::new(work));
                    }
                    Err(bad) if it.job.id == self.attends => {
                        return Err(Error::Refused(bad.to_string()));
                    }
                    // Whoever attends to it is told; it is no reason to stop others.
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The jobs that somebody attends to. Of several processes that attend to one job its
    /// row names one; when that one has gone, another takes its place.
    fn attended(&self, now_ms: i64) -> Result<Vec<Attended>> {
        let heard_since_ms = now_ms - self.settings.lease_ms - self.settings.skew_ms;
        let read = || self.db.read(move |tx| jobs::attended(tx, heard_since_ms, JOBS_MAX));
        let (job, node) = (self.attends, self.ids.node());
        let attended = read()?;
        if attended.iter().any(|it| it.job.id == job) {
            return Ok(attended);
        }
        match self.db.write(move |tx| jobs::attend(tx, job, node))? {
            true => read(),
            false => Ok(attended),
        }
    }

    fn look_at(&mut self, part: Part, now_ms: i64) -> Result<()> {
        if self.parts.get(&part).is_some_and(|held| !held.weighed) {
            match self.restore_budgets(part) {
                Err(error) if error.passes() => return Ok(()),
                restored => restored?,
            }
            if let Some(held) = self.parts.get_mut(&part) {
                held.weighed = true;
            }
        }
        let room = HOSTS_MAX.saturating_sub(self.frontier.hosts());
        let limit = u32::try_from(room).unwrap_or(BINS_MAX).min(BINS_MAX);
        let after = self.parts.get(&part).map_or(FIRST, |held| held.marked_after);
        let works: Vec<(JobId, store::ids::Run, Older)> = self
            .jobs
            .values()
            .map(|work| {
                let place = self.places.entry((part, work.id)).or_default();
                (work.id, work.run, place.older)
            })
            .collect();
        let found = self.db.read(move |tx| look_at(tx, (part, after), &works, limit));
        let found = match found {
            Err(error) if error.passes() => return Ok(()),
            found => found?,
        };
        if let Some(held) = self.parts.get_mut(&part) {
            held.marked_after = found.marked_after;
        }
        for (job, older) in found.older {
            self.places.entry((part, job)).or_default().older = older;
        }
        for (job, bin) in found.bins {
            self.has_work(part, job, &bin);
        }
        for (job, due_ms) in found.due {
            self.places.entry((part, job)).or_default().due_ms = due_ms;
            if due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
                self.wake(part, job, now_ms)?;
            }
        }
        Ok(())
    }

    /// Documents of a part have fallen due.
    fn wake(&mut self, part: Part, job: JobId, now_ms: i64) -> Result<()> {
        let Some(held) = self.parts.get(&part) else { return Ok(()) };
        let (lease, place) = (held.lease.clone(), Place { part, job });
        let woken = self.db.write(move |tx| {
            leases::fence(tx, &lease)?;
            let count = queue::wake(tx, place, now_ms, WAKE_MAX)?;
            Ok((count, queue::next_due(tx, place)?))
        });
        match woken {
            Ok((_, due_ms)) => {
                self.places.entry((part, job)).or_default().due_ms = due_ms;
                // Their bins are marked now.
                self.looked_ms = i64::MIN;
                Ok(())
            }
            Err(Error::LeaseLost { .. }) => {
                self.lose(part);
                Ok(())
            }
            Err(error) if error.passes() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn has_work(&mut self, part: Part, job: JobId, bin: &Bin) {
        let (Some(work), Some(held)) = (self.jobs.get(&job), self.parts.get(&part)) else { return };
        if held.leaving {
            return;
        }
        let host = HostKey { part, bin: bin.bin };
        self.hosts.learn(host, bin);
        let delays = (work.spec.delay_ms, work.spec.crawl_delay_max_ms);
        let politeness = self.hosts.politeness(host, delays, held.since_ms);
        self.frontier.has_work(host, job, politeness);
    }

    /// Sends the turns that are due. Returns how long nothing else will be.
    pub(super) fn plan(&mut self) -> Result<Duration> {
        let now_ms = self.now.ms();
        let stopping = self.is_stopping();
        let closing = stopping && self.drained();
        let mut wants = self.wants(now_ms, stopping || self.paused);
        let keys: Vec<(Part, JobId)> = self.places.keys().copied().collect();
        for key in keys {
            let asked = wants.remove(&key).unwrap_or_default();
            let free = self.parts.get(&key.0).is_some_and(|held| !held.busy);
            let place = &self.places[&key];
            let starving = self.frontier.in_flight() == 0;
            let full = place.batch.is_full(self.settings.chunk_documents);
            let due = place.batch.first_ms.is_some_and(|ms| now_ms - ms >= self.settings.chunk_ms);
            let half = place.batch.documents() * 2 >= self.settings.chunk_documents;
            let hungry = !asked.is_empty() && half;
            let commits = !place.batch.is_empty() && (full || due || starving || hungry || closing);
            if !free || self.turns_under_way >= TURNS_MAX || (!commits && asked.is_empty()) {
                for want in asked {
                    self.frontier.claimed(want, Vec::new(), false);
                }
                continue;
            }
            self.send_turn(key, asked, commits);
        }
        self.leave_parts();
        Ok(self.until_next(now_ms))
    }

    /// What the frontier wants, by job and part.
    fn wants(&mut self, now_ms: i64, stopping: bool) -> BTreeMap<(Part, JobId), Vec<Want>> {
        let mut by_place: BTreeMap<(Part, JobId), Vec<Want>> = BTreeMap::new();
        if stopping || self.turns_under_way >= TURNS_MAX {
            return by_place;
        }
        let parts = &self.parts;
        let free = |part: Part| parts.get(&part).is_some_and(|held| !held.busy && !held.leaving);
        for want in self.frontier.wants(now_ms, false, free) {
            by_place.entry((want.host.part, want.job)).or_default().push(want);
        }
        by_place
    }

    fn send_turn(&mut self, (part, job): (Part, JobId), mut wants: Vec<Want>, commits: bool) {
        let now_ms = self.now.ms();
        let Some(work) = self.jobs.get(&job).or_else(|| self.former_jobs.get(&job)).cloned() else {
            return;
        };
        let leaving = self.parts.get(&part).is_none_or(|held| held.leaving);
        let claims =
            !leaving && !self.is_stopping() && !self.paused && self.jobs.contains_key(&job);
        if commits && wants.is_empty() && claims {
            // A commit may as well fill up.
            let more = self.frontier.wants(now_ms, true, |other| other == part);
            let (mine, others): (Vec<Want>, Vec<Want>) =
                more.into_iter().partition(|want| want.job == job);
            wants = mine;
            for want in others {
                self.frontier.claimed(want, Vec::new(), false);
            }
        }
        let held = self.parts.get_mut(&part).expect("a turn is sent for a part that is held");
        held.busy = true;
        let lease = held.lease.clone();
        let place = self.places.entry((part, job)).or_default();
        let current = place.chunk(&work, &self.ids);
        let mut active: Vec<QueueId> = place.active.iter().copied().collect();
        let (commit, open, is_open) = if commits {
            let mut batch = std::mem::take(&mut place.batch);
            batch.traps = self.budgets.take_changed(part);
            let next = fresh_chunk(&work, &self.ids);
            place.chunk = Some(next);
            (Some((current, batch)), next, false)
        } else {
            // What is finished but not committed is active for the tables, too.
            active.extend(place.batch.settled.iter().map(|it| it.id));
            (None, current, place.is_open)
        };
        self.turns_under_way += 1;
        self.idle_ms = 0;
        self.turns.send(Turn { lease, job: work, commit, open, is_open, active, wants, now_ms });
    }

    /// A turn is over.
    pub(super) fn turned(&mut self, turned: Turned) -> Result<()> {
        self.turns_under_way -= 1;
        let Turned { ready, outcome, part, token } = turned;
        let Some(ready) = ready else {
            return self.failed((part, token), outcome.err(), (0, &[]));
        };
        let turn = ready.turn();
        let documents = turn.commit.as_ref().map_or(0, |(_, batch)| batch.documents());
        match outcome {
            Ok(done) => {
                self.frontier.committed(documents);
                if let Some((_, batch)) = &turn.commit {
                    batch.remember(turn.job.id, &mut self.known);
                    self.progress.committed(done.new);
                }
                self.take_over(part, turn, done);
                Ok(())
            }
            Err(error) => self.failed((part, token), Some(error), (documents, &turn.wants)),
        }
    }

    fn take_over(&mut self, part: Part, turn: &Turn, done: Done) {
        let job = turn.job.id;
        let is_ours = self.parts.get(&part).is_some_and(|it| it.lease.token == turn.lease.token);
        if let Some(held) = self.parts.get_mut(&part).filter(|_| is_ours) {
            held.busy = false;
        }
        let leaving = self.parts.get(&part).is_none_or(|held| held.leaving) || !is_ours;
        let mut back: Vec<Item> = Vec::new();
        for (want, claimed, exhausted) in done.claimed {
            if is_ours {
                let place = self.places.entry((part, job)).or_default();
                place.active.extend(claimed.iter().map(|it| it.entry.id));
            }
            let items: Vec<Item> =
                claimed.into_iter().map(|it: Claimed| Item::new(job, it)).collect();
            if leaving || !self.frontier.knows(want.host) || !self.jobs.contains_key(&job) {
                let kept = Want { documents: want.documents - items.len(), ..want };
                // Nothing more is wanted here, so that the host can be forgotten.
                self.frontier.claimed(kept, Vec::new(), true);
                back.extend(items);
            } else {
                self.frontier.claimed(want, items, exhausted);
            }
        }
        for item in back {
            self.give_back(part, item);
        }
        if is_ours {
            let place = self.places.entry((part, job)).or_default();
            place.is_open = done.is_open;
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
            self.frontier.claimed(*want, Vec::new(), true);
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
                let idle =
                    |place: &super::PlaceWork| place.active.is_empty() && place.batch.is_empty();
                let mut places = self.places.iter().filter(|(key, _)| key.0 == **part);
                held.leaving
                    && !held.busy
                    && places.all(|(_, place)| idle(place))
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
        let next_ms = [Some(poll_ms), commit_ms, start_ms].into_iter().flatten().min();
        self.now.until(next_ms.unwrap_or(now_ms)).max(Duration::from_millis(1))
    }
}

fn look_at(
    tx: &mut Tx<'_>,
    (part, after): (Part, (JobId, BinId)),
    works: &[(JobId, store::ids::Run, Older)],
    limit: u32,
) -> Result<Found> {
    let marked = bins::marked(tx, part, after, limit)?;
    // A page that is not full was the last; the next look begins again.
    let last = marked.last().filter(|_| marked.len() == limit as usize);
    let marked_after = last.map_or(FIRST, |mark| (mark.job, mark.bin));
    let (bins, older, due) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = Found { marked_after, bins, older, due };
    let mut wanted: Vec<(JobId, BinId)> = marked
        .into_iter()
        .filter(|mark| works.iter().any(|work| work.0 == mark.job))
        .map(|mark| (mark.job, mark.bin))
        .collect();
    for (job, run, older) in works {
        let place = Place { part, job: *job };
        found.due.push((*job, queue::next_due(tx, place)?));
        let mut at = match older {
            Older::Done => continue,
            Older::Unknown => BinId(i64::MIN),
            Older::After(bin) => *bin,
        };
        let mut state = Older::Done;
        for count in 0..=limit {
            match queue::next_older_bin(tx, place, *run, at)? {
                Some(_) if count == limit => state = Older::After(at),
                Some(bin) => {
                    wanted.push((*job, bin));
                    at = bin;
                }
                None => break,
            }
        }
        found.older.push((*job, state));
    }
    let keys: Vec<BinId> = wanted.iter().map(|(_, bin)| *bin).collect();
    let loaded: HashMap<BinId, Bin> =
        bins::load(tx, part, &keys)?.into_iter().map(|bin| (bin.bin, bin)).collect();
    let known = wanted.into_iter().filter_map(|(job, bin)| Some((job, loaded.get(&bin)?.clone())));
    found.bins.extend(known);
    Ok(found)
}
