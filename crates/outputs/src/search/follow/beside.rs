//! Shards that are made anew, beside what is published of them.
//!
//! An index of another make, or one that is made anew by hand, would otherwise answer with the
//! first documents it has. Invariant: what is published stays as it is until the new shard has all
//! that was committed when it was begun; then the new one takes its place in one transaction.

use super::{SearchIndexConsumer, closed};
use crate::follow::{AppliedBatch, PartWork};
use std::time::Instant;
use store::tables::chunks::{self, Task};
use store::tables::leases::{self, Lease};
use store::{Result, clock};

/// Documents between two commits of a shard that nobody sees yet: what is deleted of it is kept
/// in memory until then.
const COMMITTED_DOCUMENTS: usize = 20_000;

impl SearchIndexConsumer {
    /// Whether a shard of these parts is made beside what is published.
    pub(super) fn is_beside(&self, work: &[PartWork]) -> bool {
        let mut shards = work.iter().map(|it| self.context.shard_of(it.lease.part));
        shards.any(|part| self.shards.get(&part).is_some_and(|(shard, _)| shard.is_beside()))
    }

    /// Fills shards that are made beside what is published with everything there is, and puts
    /// them in its place. Nothing of them is seen before, so it is done in one go.
    pub(super) fn make_beside(&mut self, work: &[PartWork]) -> Result<AppliedBatch> {
        let (mut all, mut work) = (AppliedBatch::default(), work.to_vec());
        let (mut uncommitted, mut renewed) = (0, Instant::now());
        loop {
            let (applied, taken, documents) = self.fill(&work)?;
            for it in &mut work {
                let reached = applied.reached.iter().find(|(part, _)| *part == it.lease.part);
                it.at = reached.map_or(it.at, |(_, at)| *at);
            }
            all.reached = applied.reached;
            all.committed_ms.extend(applied.committed_ms);
            all.left_out.extend(applied.left_out);
            uncommitted += documents;
            for (part, chunks) in &taken {
                let Some((shard, _)) = self.shards.get_mut(part) else { return Err(closed(*part)) };
                shard.mark(chunks, Task::Building)?;
                if uncommitted >= COMMITTED_DOCUMENTS {
                    shard.writer.commit()?;
                }
            }
            uncommitted %= COMMITTED_DOCUMENTS;
            if work.iter().all(|it| it.at >= it.head) {
                break;
            }
            self.renew(&work, &mut renewed)?;
        }
        for (part, leases) in self.by_shard(work.iter().map(|it| &it.lease)) {
            let Some((shard, _)) = self.shards.remove(&part) else { return Err(closed(part)) };
            shard.switch(&leases)?;
            (self.published)();
            let now_ms = clock::now_ms();
            self.db().write(move |tx| {
                let (from, to) = (Task::Building, Task::Propagated);
                leases.iter().try_for_each(|it| chunks::move_tasks(tx, it, from, to, now_ms))
            })?;
            if !self.is_anew {
                // It is tended to from here on.
                self.open(part)?;
            }
        }
        Ok(all)
    }

    /// Renews leases in the middle of what takes long.
    fn renew(&self, work: &[PartWork], renewed: &mut Instant) -> Result<()> {
        let lease_ms = self.context.claimant.lease_ms;
        let is_due =
            i64::try_from(renewed.elapsed().as_millis()).unwrap_or(i64::MAX) > lease_ms / 4;
        if !is_due {
            return Ok(());
        }
        *renewed = Instant::now();
        let leases: Vec<Lease> = work.iter().map(|it| it.lease.clone()).collect();
        self.db().write(move |tx| {
            let deadline_ms = clock::now_ms() + lease_ms;
            leases.iter().try_for_each(|it| leases::renew(tx, it, deadline_ms))
        })
    }
}
