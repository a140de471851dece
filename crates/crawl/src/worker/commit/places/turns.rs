//! What a turn takes with it of a job in a part, and what it leaves behind.
//!
//! Invariants: a batch is committed into the chunk that its documents were claimed for; a document
//! that makes commits panic fails alone.

use super::{Places, SweepQuestion};
use crate::batch::Batch;
use crate::hops::Spread;
use crate::worker::commit::turn::OpenChunk;
use store::ids::{Part, QueueId};
use store::tables::queue::Place;

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

impl Places {
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
        let question = work.sweep.question();
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
}
