//! The places of a worker: what is under way of a job in a part.
//!
//! Invariants: a document that was claimed is active until it is settled in the batch, once; a
//! batch is committed into the chunk that its documents were claimed for; what a turn says of a
//! sweep counts only if the job has not changed since the turn was sent; a document that makes
//! commits panic fails alone.

use crate::batch::{Batch, HostRows};
use crate::frontier::HostKey;
use crate::hops::Spread;
use crate::job::{Doing, JobWork};
use crate::worker::commit::isolation::Isolation;
use crate::worker::commit::turn::OpenChunk;
use std::collections::{BTreeMap, HashSet};
use store::ids::{BinId, ChunkId, JobId, Part, QueueId};
use store::tables::bins::Visit;
use store::tables::history::Activity;
use store::tables::queue::sweep::Sweep;
use store::tables::queue::{Entry, Place};
use store::tables::robots::Stored;

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

/// What is known of documents that are to leave.
#[derive(Debug, Default)]
struct SweepState {
    /// There was nothing to sweep when it was last asked.
    is_done: bool,
    /// What can only be looked at after this time is given up for this run.
    gives_up_ms: Option<i64>,
    /// Counts how often the job has changed: what was asked before is out of date.
    version: u64,
}

/// A question whether there is something to sweep, of a job as it was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepQuestion(u64);

/// A walk over the bins with documents that an older run settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OlderWalk {
    #[default]
    Unknown,
    After(BinId),
    Done,
}

/// What decides whether a batch is committed now.
#[derive(Debug, Clone, Copy)]
pub struct CommitTerms {
    pub documents_max: usize,
    /// It is committed this long after its first finished document.
    pub chunk_ms: i64,
    /// Documents are to be claimed, which a commit can do as well.
    pub is_hungry: bool,
    /// Nothing is asked for, or nothing may be before something is committed.
    pub is_starving: bool,
    pub now_ms: i64,
}

/// What a turn takes with it.
pub struct TurnWork {
    pub commit: Option<Commit>,
    /// The chunk that takes what stays active and what is claimed.
    pub open: OpenChunk,
    /// Whether the tables have that chunk.
    pub is_open: bool,
    /// What stays active: claimed before, and not committed with this turn.
    pub active: Vec<QueueId>,
    pub question: SweepQuestion,
}

/// A chunk to commit, and what it says.
pub struct Commit {
    pub chunk: OpenChunk,
    pub batch: Batch,
}

/// What a turn leaves behind.
#[derive(Debug, Clone, Copy)]
pub struct TurnEnd {
    pub is_open: bool,
    pub spread: Spread,
    /// When a document of its commit falls due again.
    pub due_ms: Option<i64>,
}

/// When documents of a job in a part fall due, and by what that is judged.
#[derive(Debug, Clone, Copy)]
pub struct DueLook {
    pub due_ms: Option<i64>,
    /// The job scans once, so nothing is scheduled for later but another try.
    pub scans_once: bool,
    /// When another try is due at the latest.
    pub latest_ms: i64,
    pub now_ms: i64,
}

/// What is done about documents that wait for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueAction {
    Nothing,
    /// They have fallen due.
    Wake,
    /// They were scheduled when the job went on for ever: they are settled.
    Unschedule,
    /// The clock was wrong when their time was written.
    PullIn,
}

fn key(place: Place) -> (Part, JobId) {
    (place.part, place.job)
}

impl PlaceWork {
    /// Whether nothing of it is under way or uncommitted.
    fn is_idle(&self) -> bool {
        self.active.is_empty() && self.batch.is_empty() && !self.turn_under_way
    }

    /// The job is not what it was: what is swept of it is asked anew.
    fn ask_sweep_anew(&mut self) {
        self.sweep.is_done = false;
        self.sweep.version += 1;
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

    /// Documents were claimed.
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

    pub fn note_robots(&mut self, place: Place, stored: Stored) {
        self.place(place).batch.hosts.robots.push(stored);
    }

    pub fn note_history(&mut self, place: Place, rows: impl IntoIterator<Item = Activity>) {
        self.place(place).batch.history.extend(rows);
    }

    /// Has links of no document taken in.
    pub fn note_links(&mut self, place: Place, name: impl FnOnce(&mut Batch)) {
        name(&mut self.place(place).batch);
    }

    // Turns.

    /// Whether what is finished of a place is to be committed now.
    pub fn is_to_commit(&self, place: Place, terms: CommitTerms) -> bool {
        let Some(batch) = self.get(place).map(|it| &it.batch).filter(|it| !it.is_empty()) else {
            return false;
        };
        let is_due = batch.first_ms.is_some_and(|ms| terms.now_ms - ms >= terms.chunk_ms);
        let is_hungry = terms.is_hungry && batch.len() * 2 >= terms.documents_max;
        // Nothing else keeps a sweep from its next step.
        let is_starving = terms.is_starving || batch.swept > 0;
        batch.is_full(terms.documents_max) || is_due || is_hungry || is_starving
    }

    pub fn has_batch(&self, place: Place) -> bool {
        self.get(place).is_some_and(|it| !it.batch.is_empty())
    }

    /// Whether the job's graphs have something to be done for in the part.
    pub fn is_to_spread(&self, place: Place) -> bool {
        self.get(place).is_some_and(|it| it.spread == Spread::More)
    }

    /// When the first batch is to be committed, at the latest.
    pub fn next_commit_ms(&self, chunk_ms: i64) -> Option<i64> {
        let first = self.places.values().filter_map(|place| place.batch.first_ms).min();
        first.map(|first_ms| first_ms + chunk_ms)
    }

    /// Whether everything that is finished is committed.
    pub fn is_all_committed(&self) -> bool {
        self.places.values().all(|place| place.batch.is_empty())
    }

    /// A turn begins, which commits the batch or not. `fresh` makes the chunk that is open then.
    pub fn begin_turn(
        &mut self,
        place: Place,
        commits: bool,
        fresh: impl Fn() -> OpenChunk,
    ) -> TurnWork {
        let work = self.place(place);
        work.turn_under_way = true;
        let current = *work.chunk.get_or_insert_with(&fresh);
        let mut active: Vec<QueueId> = work.active.iter().copied().collect();
        let question = SweepQuestion(work.sweep.version);
        if !commits {
            // What is finished but not committed is active for the tables, too.
            active.extend(work.batch.settled.iter().map(|it| it.id));
            let (open, is_open) = (current, work.is_open);
            return TurnWork { commit: None, open, is_open, active, question };
        }
        let batch = std::mem::take(&mut work.batch);
        let mut next = fresh();
        if !active.is_empty() {
            next.claim = current.claim;
        }
        next.announces = batch.records.iter().any(|it| it.facts.is_some());
        work.chunk = Some(next);
        let commit = Some(Commit { chunk: current, batch });
        TurnWork { commit, open: next, is_open: false, active, question }
    }

    /// A turn of a part is over, whatever came of it: there is one at a time.
    pub fn end_turn(&mut self, part: Part) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.0 == part) {
            place.turn_under_way = false;
        }
    }

    /// A turn has done its work under a lease that is still held.
    pub fn on_turn_done(&mut self, place: Place, end: TurnEnd) {
        let work = self.place(place);
        work.is_open = end.is_open;
        work.spread = end.spread;
        work.due_ms = work.due_ms.into_iter().chain(end.due_ms).min();
    }

    // Commits that panic.

    /// How many documents a chunk may have, of `usual`: fewer while one is searched for that
    /// makes commits panic.
    pub fn documents_max(&self, place: Place, usual: usize) -> usize {
        self.isolation.documents_max(place).map_or(usual, |most| most.min(usual))
    }

    /// Whether a document that is finished must wait for another chunk, because this one may have
    /// few.
    pub fn is_isolated(&self, place: Place) -> bool {
        let has = || self.get(place).map_or(0, |it| it.batch.with_contents().count());
        self.isolation.documents_max(place).is_some_and(|most| has() >= most)
    }

    /// Whether a document was found out to make commits panic; then what the panic said, once.
    pub fn take_condemned(&mut self, document: QueueId) -> Option<String> {
        self.isolation.take_condemned(document)
    }

    /// A commit has succeeded.
    pub fn on_committed(&mut self, place: Place, batch: &Batch) {
        self.isolation.on_commit(place, batch.settled.iter().map(|it| it.id));
    }

    /// A turn panicked, again and again; `batch` is what it was to commit.
    pub fn on_panic(&mut self, place: Place, batch: Option<&Batch>, message: &str) {
        let documents: Vec<QueueId> = batch.into_iter().flat_map(Batch::with_contents).collect();
        self.isolation.on_panic(place, &documents, message);
        self.isolation.announce();
    }

    /// Whether people must hear that panics are over, now that something has succeeded.
    pub fn take_panics_over(&mut self) -> bool {
        self.isolation.take_announced()
    }

    // Sweeps.

    /// What of a job in a part is to be swept, as far as anybody knows.
    pub fn sweep(&self, place: Place, work: &JobWork) -> Option<Sweep> {
        let state = &self.get(place)?.sweep;
        if state.is_done {
            return None;
        }
        match work.doing {
            Doing::Sweep(sweep) => Some(sweep),
            Doing::Crawl => {
                let left = state.gives_up_ms.map(|horizon_ms| Sweep::Left { horizon_ms });
                left.or_else(|| work.released_removals())
            }
        }
    }

    /// A turn has claimed what it found to be swept.
    pub fn on_swept(&mut self, place: Place, question: SweepQuestion, found: &[QueueId]) {
        let work = self.place(place);
        // A turn from before the job changed has not seen what is to be swept since then.
        let is_current = question == SweepQuestion(work.sweep.version);
        work.sweep.is_done = found.is_empty() && is_current;
        if work.sweep.is_done {
            work.sweep.gives_up_ms = None;
        }
        work.active.extend(found);
    }

    /// Gives up what can only be looked at after a time.
    pub fn give_up(&mut self, place: Place, horizon_ms: i64) {
        let work = self.place(place);
        work.sweep.gives_up_ms = Some(horizon_ms);
        work.ask_sweep_anew();
    }

    /// A job is defined anew.
    pub fn on_job_changed(&mut self, job: JobId) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.1 == job) {
            place.sweep.version += 1;
        }
    }

    /// More removals of a job are released.
    pub fn on_released(&mut self, job: JobId) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.1 == job) {
            place.ask_sweep_anew();
        }
    }

    /// Another run of a job has its own documents to look at again, and to sweep.
    pub fn on_run(&mut self, job: JobId) {
        for (_, place) in self.places.iter_mut().filter(|(key, _)| key.1 == job) {
            (place.older, place.is_unscheduled) = (OlderWalk::Unknown, false);
            place.sweep.gives_up_ms = None;
            place.ask_sweep_anew();
        }
    }

    // Looks at the tables.

    /// Where the walk over bins with older documents stands.
    pub fn older(&mut self, place: Place) -> OlderWalk {
        self.place(place).older
    }

    pub fn set_older(&mut self, place: Place, older: OlderWalk) {
        self.place(place).older = older;
    }

    pub fn want_spread(&mut self, place: Place) {
        self.place(place).spread = Spread::More;
    }

    pub fn set_due(&mut self, place: Place, due_ms: Option<i64>) {
        self.place(place).due_ms = due_ms;
    }

    /// Takes over when documents fall due. Returns what is done about it.
    pub fn on_due_look(&mut self, place: Place, look: DueLook) -> DueAction {
        let work = self.place(place);
        work.due_ms = look.due_ms;
        let Some(due_ms) = look.due_ms else { return DueAction::Nothing };
        if look.scans_once && !work.is_unscheduled {
            DueAction::Unschedule
        } else if look.scans_once && due_ms > look.latest_ms {
            DueAction::PullIn
        } else if due_ms <= look.now_ms {
            DueAction::Wake
        } else {
            DueAction::Nothing
        }
    }

    /// What was scheduled is settled; whether all of it.
    pub fn on_unscheduled(&mut self, place: Place, is_all: bool) {
        self.place(place).is_unscheduled = is_all;
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

    /// That is written.
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
