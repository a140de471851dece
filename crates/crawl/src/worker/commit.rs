//! Commits: what is finished of a job in a part is written, and what it looks at next is claimed
//! in the same transaction.
//!
//! Invariant: nothing is remembered as done before the commit that says so has succeeded.

pub mod effects;
pub mod isolation;
pub mod leftovers;
pub mod places;
pub mod prepare;
pub mod turn;
pub mod turn_threads;

use crate::frontier::DocumentDemand;
use crate::worker::commit::places::{Commit, TurnEnd};
use crate::worker::commit::turn::{ClaimDone, SweptDocument, Turn, TurnDone};
use crate::worker::commit::turn_threads::TurnResult;
use crate::worker::leases::check::LeaseKey;
use crate::worker::progress::Waiter;
use crate::worker::{FrontierItem, Worker};
use store::ids::{JobId, Part, QueueId};
use store::tables::bins::Bin;
use store::{Error, Result, clock};

impl Worker {
    /// A turn is over.
    pub(super) fn on_turned(&mut self, turned: TurnResult) -> Result<()> {
        self.threads.on_turned();
        let TurnResult { ready, outcome } = turned;
        let turn = ready.turn();
        // There is one turn of a part at a time.
        self.places.end_turn(turn.lease.part);
        match outcome {
            Ok(done) => {
                self.on_committed(turn, &done);
                self.take_over(turn, done);
                Ok(())
            }
            Err(Error::Internal { reason }) => {
                self.on_panicked(turn, &reason);
                self.abandon(turn);
                Ok(())
            }
            Err(Error::LeaseLost { .. }) => {
                self.abandon(turn);
                Ok(())
            }
            Err(error) => {
                self.give_up_claims(turn);
                Err(error)
            }
        }
    }

    /// What follows from a commit that has succeeded.
    fn on_committed(&mut self, turn: &Turn, done: &TurnDone) {
        if self.places.take_panics_over() {
            self.deps.progress.waits_for(Waiter::Commit, None);
        }
        let Some(Commit { batch, .. }) = &turn.commit else { return };
        self.frontier.committed(batch.claimed());
        self.links.on_committed(turn.job.id, batch);
        self.places.on_committed(turn.place(), batch);
        self.deps.progress.committed(turn.job.run_key(), done.new);
        self.deps.observer.on_commit();
        if !turn.job.outlets.is_empty() || turn.job.has_siblings {
            self.deps.observer.on_decisions();
        }
    }

    /// A turn panicked, again and again. Its part is given back as if this process had
    /// crashed: whoever takes it abandons the chunk and claims its documents anew.
    fn on_panicked(&mut self, turn: &Turn, reason: &str) {
        let (part, job) = (turn.lease.part, &turn.job);
        let what = if turn.commit.is_some() { "a commit" } else { "a claim" };
        let why = format!(
            "{what} of job {} in part {part} failed with an internal error ({reason}); retrying \
             with fewer documents",
            job.name
        );
        self.deps.progress.waits_for(Waiter::Commit, Some(why));
        self.places.on_panic(turn.place(), turn.commit.as_ref().map(|it| &it.batch), reason);
        if self.parts.holds(LeaseKey::from(&turn.lease)) {
            self.threads.give_lease_back(part, false);
        }
    }

    /// What a turn was to claim and to commit is not ours, or not any more.
    fn abandon(&mut self, turn: &Turn) {
        self.give_up_claims(turn);
        // If the part has been taken again meanwhile, that is another lease.
        if self.parts.holds(LeaseKey::from(&turn.lease)) {
            self.lose(turn.lease.part);
        }
    }

    fn give_up_claims(&mut self, turn: &Turn) {
        turn.wants.iter().for_each(|want| self.frontier.abandon(*want));
        self.frontier.committed(turn.commit.as_ref().map_or(0, |it| it.batch.claimed()));
    }

    /// Takes over what a turn has claimed.
    fn take_over(&mut self, turn: &Turn, done: TurnDone) {
        let (part, job, place) = (turn.lease.part, turn.job.id, turn.place());
        let is_ours = self.parts.end_turn(LeaseKey::from(&turn.lease));
        if done.claimed.iter().any(|it| !it.documents.is_empty()) {
            self.schedule.on_work();
        }
        let mut back: Vec<FrontierItem> = Vec::new();
        for claim in done.claimed {
            if is_ours {
                let documents = claim.documents.iter().map(|it| it.entry.id);
                self.places.on_claimed(place, documents);
            }
            let is_staying = is_ours && self.parts.is_staying(part);
            back.extend(self.line_up(job, is_staying, claim));
        }
        for item in back {
            self.give_back(part, item);
        }
        if is_ours {
            self.take_over_swept(turn, done.swept);
            let due_ms = turn.commit.as_ref().and_then(|it| it.batch.due_ms);
            let end = TurnEnd { is_open: done.is_open, spread: done.spread, due_ms };
            self.places.on_turn_done(place, end);
        }
        for woken in done.woken {
            self.on_work_at(woken.part, job, &woken.bin);
        }
    }

    /// Hands what was claimed to the frontier. Returns what nobody asks for here any more.
    fn line_up(&mut self, job: JobId, is_staying: bool, claim: ClaimDone) -> Vec<FrontierItem> {
        let ClaimDone { want, documents, is_exhausted } = claim;
        let items: Vec<FrontierItem> =
            documents.into_iter().map(|it| FrontierItem::new(job, it)).collect();
        if is_staying && self.frontier.knows(want.host) && self.jobs.is_attended(job) {
            self.frontier.claimed(want, items, is_exhausted);
            return Vec::new();
        }
        // Nothing more is wanted here, so that the host can be forgotten.
        self.frontier.abandon(DocumentDemand { documents: want.documents - items.len(), ..want });
        items
    }

    fn take_over_swept(&mut self, turn: &Turn, swept: Vec<SweptDocument>) {
        let Some(sweep) = turn.sweep else { return };
        let found: Vec<QueueId> = swept.iter().map(|it| it.claimed.entry.id).collect();
        self.places.on_swept(turn.place(), turn.question, &found);
        self.finish_swept(turn.lease.part, &turn.job, sweep, swept);
    }

    /// A bin has something ready for a job.
    pub(super) fn on_work_at(&mut self, part: Part, job: JobId, bin: &Bin) {
        let Some(work) = self.jobs.get(job).filter(|_| self.parts.is_staying(part)) else { return };
        let host = crate::frontier::HostKey { part, bin: bin.bin };
        let terms = self.hosts.admit(work, host, bin, self.parts.terms(part), clock::now_ms());
        // One that is stopped has no work, as far as anybody here is concerned.
        let Some(terms) = terms else { return };
        self.frontier.add_work(host, job, terms.politeness, terms.pace);
    }
}
