//! The transaction of a turn: documents settle, links join the queue, files and history are
//! written, and what is next is claimed.
//!
//! Invariant: it begins with the lease, so nobody else writes for the part meanwhile.

use super::{OpenChunk, Turn, TurnDone, woken_bins};
use crate::batch::{Batch, JobChanges};
use crate::ingest::{self, IngestCommit};
use crate::worker::commit::effects::Effects;
use crate::worker::commit::prepare::PreparedCommit;
use std::collections::BTreeSet;
use store::ids::{BinId, CommitNumber, QueueId};
use store::objects::{ChunkKey, ObjectPath};
use store::panics::FaultPoint;
use store::tables::chunks::ChunkOpening;
use store::tables::documents::{self, Document};
use store::tables::leases;
use store::tables::objects::{self as object_rows, ObjectKind};
use store::tables::queue::{self, Presences};
use store::tables::removals;
use store::tables::{addresses, bins, chunks, events, history, robots, traps};
use store::{Result, Tx};

impl Turn {
    pub(super) fn transact(
        &self,
        tx: &mut Tx<'_>,
        prepared: Option<&PreparedCommit>,
        effects: &Effects,
        done: &mut TurnDone,
    ) -> Result<()> {
        let part = self.lease.part;
        let seq = match &self.commit {
            Some(_) => leases::number_commit(tx, &self.lease)?,
            None => {
                leases::fence(tx, &self.lease)?;
                CommitNumber::NONE
            }
        };
        let raised = self.settle(tx, effects, done)?;
        done.is_open |= self.is_open && self.commit.is_none();
        if self.commit.is_some() && !self.active.is_empty() {
            self.open_next(tx, done)?;
        }
        for want in &self.wants {
            self.job.shared.faults.at(FaultPoint::Claim, &self.job.name);
            self.claim(tx, *want, done)?;
        }
        if let Some(sweep) = self.sweep {
            self.claim_swept(tx, sweep, done)?;
        }
        if let (Some(commit), Some(prepared)) = (&self.commit, prepared) {
            let batch = &commit.batch;
            self.write_documents(tx, batch)?;
            self.publish_files(tx, commit.chunk, prepared)?;
            let at = IngestCommit { ids: &self.ids, part, seq, now_ms: self.now_ms };
            ingest::commit(tx, at, &self.job, batch)?;
            let visits: Vec<_> = batch.hosts.visits.values().cloned().collect();
            bins::visited(tx, part, &visits)?;
            let (chunk, summary) = (commit.chunk.id, &prepared.summary);
            chunks::commit(tx, &self.lease, chunk, seq, summary, self.now_ms)?;
        }
        done.woken = woken_bins(tx, part, &raised)?;
        Ok(())
    }

    /// Settles the documents of the commit, with what follows for others. Returns the bins that
    /// have something ready because of it.
    fn settle(
        &self,
        tx: &mut Tx<'_>,
        effects: &Effects,
        done: &mut TurnDone,
    ) -> Result<BTreeSet<BinId>> {
        let Some(commit) = &self.commit else { return Ok(BTreeSet::new()) };
        let (part, batch) = (self.lease.part, &commit.batch);
        self.inject_faults(batch);
        // Before rows of the queue, as everybody locks who adds documents within a limit.
        let round = match batch.marks_removals() {
            true => removals::lock_round(tx, self.job.id)?,
            false => 0,
        };
        let added = effects.apply(tx, self, part)?;
        effects.record_done(tx, self)?;
        done.new += added.new;
        let JobChanges { presences, roles, .. } = &batch.job;
        let presences = Presences { by_id: presences, round, roles };
        let (claim, run) = (commit.chunk.claim, self.job.run);
        queue::settle_with(tx, self.place(), claim, run, &batch.settled, presences)?;
        let period = self.job.removal_period(self.now_ms);
        removals::record(tx, self.place(), self.job.run, period, &batch.job.lost)?;
        let waits = batch.job.waits.iter().map(|(id, event)| (*id, event.as_str()));
        let waits: Vec<(QueueId, &str)> = waits.collect();
        events::depend(tx, part, &waits)?;
        Ok(added.woken)
    }

    /// Where tests make a commit panic.
    fn inject_faults(&self, batch: &Batch) {
        let faults = &self.job.shared.faults;
        if !faults.is_none() {
            batch.records.iter().for_each(|it| faults.at(FaultPoint::CommitDocument, &it.docid));
        }
    }

    /// What is known of documents and hosts, and what was done.
    fn write_documents(&self, tx: &mut Tx<'_>, batch: &Batch) -> Result<()> {
        let part = self.lease.part;
        let (looks, rows): (Vec<&Document>, Vec<&Document>) =
            batch.documents.iter().partition(|it| batch.looks.contains(&it.dochash));
        documents::save(tx, part, self.job.connection, rows)?;
        documents::note_looks(tx, part, looks)?;
        history::append(tx, part, &batch.history)?;
        for stored in &batch.hosts.robots {
            robots::save(tx, part, stored)?;
        }
        addresses::note(tx, part, &batch.hosts.addresses, self.now_ms)?;
        traps::save(tx, part, &batch.hosts.traps, self.now_ms)
    }

    /// The objects of the chunk are there; those that were announced and are not needed are
    /// forgotten.
    fn publish_files(
        &self,
        tx: &mut Tx<'_>,
        chunk: OpenChunk,
        prepared: &PreparedCommit,
    ) -> Result<()> {
        let part = self.lease.part;
        for file in prepared.facts.iter().chain(&prepared.bodies) {
            file.written.publish(tx, self.now_ms)?;
        }
        if chunk.announces && prepared.facts.is_none() {
            object_rows::unstage(tx, part, chunk.facts)?;
        }
        let bodies = chunk.bodies.filter(|_| chunk.announces && prepared.bodies.is_none());
        if let Some(bodies) = bodies {
            object_rows::unstage(tx, part, bodies)?;
        }
        Ok(())
    }

    /// Opens the next chunk and announces the objects it is expected to have, if that is not done.
    pub(super) fn open_next(&self, tx: &mut Tx<'_>, done: &mut TurnDone) -> Result<()> {
        if done.is_open {
            return Ok(());
        }
        let part = self.lease.part;
        let OpenChunk { id: chunk, claim, .. } = self.open;
        let opening = ChunkOpening { chunk, claim, job: self.job.id, run: self.job.run };
        chunks::open_for(tx, &self.lease, opening, self.now_ms)?;
        done.is_open = true;
        if !self.open.announces {
            return Ok(());
        }
        let key = ChunkKey::new(part, self.open.id)?;
        let facts = ObjectPath::facts(key);
        object_rows::stage(
            tx,
            part,
            self.open.facts,
            ObjectKind::Facts,
            facts.as_str(),
            self.now_ms,
        )?;
        if let Some(bodies) = self.open.bodies {
            let path = ObjectPath::bodies(key);
            object_rows::stage(tx, part, bodies, ObjectKind::Bodies, path.as_str(), self.now_ms)?;
        }
        Ok(())
    }
}
