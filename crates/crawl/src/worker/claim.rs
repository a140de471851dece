//! What the worker does next: when a chunk is committed, what is claimed with it.
//!
//! Invariants: one turn of a part at a time; what is claimed of a part that is to be
//! given back goes back with it.

mod job_look;
mod look;
mod part_look;

use crate::frontier::DocumentDemand;
use crate::worker::Worker;
use crate::worker::commit::places::{CommitTerms, TurnWork};
use crate::worker::commit::turn::{OpenChunk, Turn};
use std::collections::HashMap;
use std::time::Duration;
use store::ids::Part;
use store::tables::queue::Place;
use store::tables::queue::sweep::Sweep;
use store::{Result, clock};

/// What the frontier wants, by job and part.
type Wants = HashMap<Place, Vec<DocumentDemand>>;

impl Worker {
    /// Sends the turns that are due. Returns how long nothing else will be.
    pub(super) fn send_turns(&mut self) -> Result<Duration> {
        let now_ms = clock::now_ms();
        let is_stopping = self.control.is_stopping();
        let is_closing = is_stopping && self.drain();
        let mut wants = self.wants(now_ms);
        // Commits first: what one job asks for may wait for what another has not committed.
        let places = self.places.all().into_iter().map(|place| {
            let is_hungry = wants.contains_key(&place);
            (place, is_closing || self.is_to_commit(place, is_hungry, now_ms))
        });
        let mut places: Vec<(Place, bool)> = places.collect();
        places.sort_by_key(|(_, commits)| !commits);
        for (place, commits) in places {
            let wanted = wants.remove(&place).unwrap_or_default();
            let commits = commits && self.places.has_batch(place);
            let spreads = self.places.is_to_spread(place) && !is_closing;
            let is_idle = !commits && wanted.is_empty() && !self.sweeps(place) && !spreads;
            let is_free = self.parts.is_free(place.part) && self.threads.has_room_for_turn();
            match is_free && !is_idle {
                true => self.send_turn(place, wanted, commits),
                false => wanted.into_iter().for_each(|want| self.frontier.cancel(want)),
            }
        }
        self.give_parts_back();
        Ok(self.until_next(now_ms))
    }

    /// When stopping: gives back what waits. Returns whether nothing is under way, or it has
    /// taken too long.
    pub(super) fn drain(&mut self) -> bool {
        self.control.begin_drain(clock::now_ms());
        for part in self.parts.parts().collect::<Vec<Part>>() {
            for item in self.frontier.forget(part, None) {
                self.give_back(part, item);
            }
        }
        self.frontier.in_flight() == 0 || self.control.is_overdue(clock::now_ms())
    }

    /// Whether what is finished of a job in a part is to be committed now.
    fn is_to_commit(&self, place: Place, is_hungry: bool, now_ms: i64) -> bool {
        let terms = CommitTerms {
            documents_max: self.places.documents_max(place, self.settings.chunk_documents),
            chunk_ms: self.settings.chunk_ms,
            is_hungry,
            // Documents may wait for room. One whose host is asked again before long does not: a
            // slow crawl of one host makes no commit for each document.
            is_starving: !self.frontier.is_busy(now_ms + self.settings.chunk_ms)
                || self.frontier.is_full(),
            now_ms,
        };
        self.places.is_to_commit(place, terms)
    }

    /// What of a job in a part is to be swept, as far as anybody knows.
    fn sweep_of(&self, place: Place) -> Option<Sweep> {
        let work = self.jobs.get(place.job).filter(|_| self.parts.may_claim(place.part))?;
        self.places.sweep(place, work)
    }

    fn sweeps(&self, place: Place) -> bool {
        self.control.may_claim() && self.sweep_of(place).is_some()
    }

    /// What the frontier wants, by job and part.
    fn wants(&mut self, now_ms: i64) -> Wants {
        let mut by_place = Wants::new();
        if !self.control.may_claim() || !self.threads.has_room_for_turn() {
            return by_place;
        }
        let parts = &self.parts;
        let is_free = |part: Part| parts.is_free(part) && parts.may_claim(part);
        for want in self.frontier.wants(now_ms, false, is_free) {
            let place = Place { part: want.host.part, job: want.job };
            by_place.entry(place).or_default().push(want);
        }
        by_place
    }

    fn send_turn(&mut self, place: Place, mut wants: Vec<DocumentDemand>, commits: bool) {
        let now_ms = clock::now_ms();
        let Some(job) = self.jobs.get_any(place.job).cloned() else {
            wants.into_iter().for_each(|want| self.frontier.cancel(want));
            return;
        };
        let claims = self.parts.may_claim(place.part)
            && self.control.may_claim()
            && self.jobs.is_attended(place.job);
        if commits && wants.is_empty() && claims {
            wants = self.fill_up(place, now_ms);
        }
        let sweep = self.sweep_of(place).filter(|_| claims);
        let lease = self.parts.begin_turn(place.part);
        let ids = self.deps.ids.clone();
        let work = self.places.begin_turn(place, commits, || OpenChunk::new(&job, &ids));
        let TurnWork { mut commit, open, is_open, active, question } = work;
        if let Some(commit) = &mut commit {
            commit.batch.hosts.traps = self.links.take_changed(place.part);
            self.schedule.on_work();
        }
        self.threads.send_turn(Turn {
            lease,
            job,
            ids,
            commit,
            open,
            is_open,
            active,
            wants,
            sweep,
            question,
            now_ms,
        });
    }

    /// What a commit claims that nobody has asked to claim: it may as well fill up.
    fn fill_up(&mut self, place: Place, now_ms: i64) -> Vec<DocumentDemand> {
        let more = self.frontier.wants(now_ms, true, |part| part == place.part);
        let (mine, others): (Vec<DocumentDemand>, Vec<DocumentDemand>) =
            more.into_iter().partition(|want| want.job == place.job);
        others.into_iter().for_each(|want| self.frontier.cancel(want));
        mine
    }

    /// How long nothing will be, unless an event comes.
    fn until_next(&self, now_ms: i64) -> Duration {
        let commit_ms = self.places.next_commit_ms(self.settings.chunk_ms);
        let start_ms = self.frontier.next_start().filter(|ms| *ms > now_ms);
        let lag_ms = self.parts.next_lag_look_ms();
        let next_ms = [commit_ms, start_ms, lag_ms].into_iter().flatten().min();
        let next_ms = next_ms.map_or(self.next_look_ms(), |ms| ms.min(self.next_look_ms()));
        let wait_ms = next_ms.saturating_sub(clock::now_ms());
        Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).max(Duration::from_millis(1))
    }
}
