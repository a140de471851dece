//! The places of a worker: what is under way of a job in a part.
//!
//! Invariants: a document that was claimed is active until it is settled in the batch, once; a
//! batch is committed into the chunk that its documents were claimed for; what a turn says of a
//! sweep counts only if the job has not changed since the turn was sent; a document that makes
//! commits panic fails alone.

mod looks;
mod sweeps;
mod turns;

pub use looks::{DueAction, DueLook, OlderWalk};
pub use sweeps::SweepQuestion;
pub use turns::{Commit, CommitTerms, TurnEnd, TurnWork};

use crate::batch::{Batch, HostRows};
use crate::frontier::HostKey;
use crate::hops::Spread;
use crate::worker::commit::isolation::Isolation;
use crate::worker::commit::turn::OpenChunk;
use std::collections::{BTreeMap, HashSet};
use store::ids::{ChunkId, JobId, Part, QueueId};
use store::tables::bins::Visit;
use store::tables::history::Activity;
use store::tables::queue::{Entry, Place};
use store::tables::robots::StoredRobots;
use sweeps::SweepState;

#[derive(Default)]
pub struct Places {
    places: BTreeMap<(Part, JobId), PlaceWork>,
    /// Which documents make commits panic.
    isolation: Isolation,
}

#[derive(Default)]
struct PlaceWork {
    /// The chunk that the batch will commit, and that claims go into.
    chunk: Option<OpenChunk>,
    /// Whether the tables have it.
    is_open: bool,
    batch: Batch,
    /// Claimed and not yet finished.
    active: HashSet<QueueId>,
    /// When a waiting document falls due.
    due_ms: Option<i64>,
    older: OlderWalk,
    turn_under_way: bool,
    /// Nothing is scheduled that an earlier, continuous life of the job has left behind.
    is_unscheduled: bool,
    sweep: SweepState,
    spread: Spread,
}

fn key(place: Place) -> (Part, JobId) {
    (place.part, place.job)
}

impl PlaceWork {
    /// Whether nothing of it is under way or uncommitted.
    fn is_idle(&self) -> bool {
        self.active.is_empty() && self.batch.is_empty() && !self.turn_under_way
    }
}

impl Places {
    fn place(&mut self, place: Place) -> &mut PlaceWork {
        self.places.entry(key(place)).or_default()
    }

    fn get(&self, place: Place) -> Option<&PlaceWork> {
        self.places.get(&key(place))
    }

    fn of_job(&self, job: JobId) -> impl Iterator<Item = &PlaceWork> {
        self.places.iter().filter(move |(key, _)| key.1 == job).map(|(_, place)| place)
    }

    fn of_part(&self, part: Part) -> impl Iterator<Item = &PlaceWork> {
        self.places.range((part, JobId(i64::MIN))..=(part, JobId(i64::MAX))).map(|it| it.1)
    }

    /// All places, in the order of their parts.
    pub fn all(&self) -> Vec<Place> {
        self.places.keys().map(|(part, job)| Place { part: *part, job: *job }).collect()
    }

    /// Takes a place in that may have something to do.
    pub fn add(&mut self, place: Place) {
        self.place(place);
    }

    pub fn has_job(&self, job: JobId) -> bool {
        self.of_job(job).next().is_some()
    }

    // What is claimed and settled.

    /// Documents of a place were claimed: they are active.
    pub fn on_claimed(&mut self, place: Place, documents: impl Iterator<Item = QueueId>) {
        self.place(place).active.extend(documents);
    }

    /// Has a document settled in the batch, which the chunk will commit; it is active no longer.
    pub fn settle<T>(
        &mut self,
        place: Place,
        document: QueueId,
        fresh: impl FnOnce() -> OpenChunk,
        settle: impl FnOnce(ChunkId, &mut Batch) -> T,
    ) -> T {
        let work = self.place(place);
        let chunk = work.chunk.get_or_insert_with(fresh).id;
        let settled = settle(chunk, &mut work.batch);
        let last = work.batch.settled.last();
        debug_assert!(last.is_some_and(|it| it.id == document), "the document was settled");
        work.active.remove(&document);
        settled
    }

    /// A document that will not be asked for now: ready again with the next commit.
    pub fn put_back(&mut self, place: Place, entry: &Entry, now_ms: i64) {
        let work = self.place(place);
        work.active.remove(&entry.id);
        work.batch.put_back(entry, now_ms);
    }

    /// A document waits for an event, once it is back.
    pub fn wait_for(&mut self, place: Place, document: QueueId, event: String) {
        self.place(place).batch.job.waits.push((document, event));
    }

    // What is written with the next commit.

    pub fn book_visit(&mut self, place: Place, visit: Visit) {
        self.place(place).batch.hosts.book(visit);
    }

    pub fn note_robots(&mut self, place: Place, stored: StoredRobots) {
        self.place(place).batch.hosts.robots.push(stored);
    }

    pub fn note_history(&mut self, place: Place, rows: impl IntoIterator<Item = Activity>) {
        self.place(place).batch.history.extend(rows);
    }

    /// Has links of no document taken in.
    pub fn note_links(&mut self, place: Place, name: impl FnOnce(&mut Batch)) {
        name(&mut self.place(place).batch);
    }

    // The end of a run, a job, a part.

    /// Whether nothing of a job is under way or uncommitted.
    pub fn is_quiet(&self, job: JobId) -> bool {
        self.of_job(job).all(PlaceWork::is_idle)
    }

    /// Whether older documents of a job are still looked for.
    pub fn is_walking(&self, job: JobId) -> bool {
        self.of_job(job).any(|place| place.older != OlderWalk::Done)
    }

    /// When the first waiting document of a job falls due.
    pub fn due_ms(&self, job: JobId) -> Option<i64> {
        self.of_job(job).filter_map(|place| place.due_ms).min()
    }

    /// Whether nothing of a part is under way or uncommitted.
    pub fn is_idle(&self, part: Part) -> bool {
        self.of_part(part).all(PlaceWork::is_idle)
    }

    /// Whether requests to hosts of a part are not in the tables.
    pub fn has_visits(&self, part: Part) -> bool {
        self.of_part(part).any(|place| !place.batch.hosts.visits.is_empty())
    }

    /// Whether what is known here of a host may not be in the tables.
    pub fn is_unsaved(&self, host: HostKey) -> bool {
        let is_unsaved = |place: &PlaceWork| {
            place.turn_under_way || place.batch.hosts.visits.contains_key(&host.bin)
        };
        self.of_part(host.part).any(is_unsaved)
    }

    /// Forgets a part. Returns how many documents were claimed and are not committed.
    pub fn forget_part(&mut self, part: Part) -> usize {
        let gone = self.places.extract_if(.., |key, _| key.0 == part);
        gone.map(|(_, place)| place.batch.claimed()).sum()
    }

    /// Forgets places that `is_needed` says no to, and that have nothing under way or to write.
    pub fn forget_idle(&mut self, is_needed: impl Fn(Place) -> bool) {
        self.places.retain(|(part, job), place| {
            let is_over = place.is_idle() && place.batch.hosts.visits.is_empty();
            !is_over || is_needed(Place { part: *part, job: *job })
        });
    }

    /// Places that have requests to write and no document to commit them with.
    pub fn with_leftovers(&self, may: impl Fn(Place) -> bool) -> Vec<Place> {
        let has_some = |it: &PlaceWork| it.is_idle() && !it.batch.hosts.visits.is_empty();
        let places = self.places.iter().filter(|(_, it)| has_some(it));
        let places = places.map(|((part, job), _)| Place { part: *part, job: *job });
        places.filter(|place| may(*place)).collect()
    }

    /// What a place has to write of hosts, and of what was done.
    pub fn leftovers(&self, place: Place) -> Option<(&HostRows, &[Activity])> {
        self.get(place).map(|it| (&it.batch.hosts, it.batch.history.as_slice()))
    }

    /// What a place had to write of hosts is written.
    pub fn on_leftovers_saved(&mut self, place: Place) {
        let batch = &mut self.place(place).batch;
        batch.hosts.visits.clear();
        batch.hosts.robots.clear();
        batch.history.clear();
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        for place in self.places.values_mut() {
            place.batch.first_ms = place.batch.first_ms.map(|ms| ms.saturating_add(jump_ms));
            let gives_up_ms = &mut place.sweep.gives_up_ms;
            *gives_up_ms = gives_up_ms.filter(|ms| *ms == i64::MIN);
        }
    }
}

#[cfg(test)]
mod tests;
