//! Which removals take effect with the next commit, and which are only marked.
//!
//! A removal that the document itself has proved goes at once, as long as the part has some
//! of its share left: the small limit of the job, given to its parts by what they had when
//! the run began. What a part has used is read from its own rows and counted on here, which
//! is exact because a part has one holder. Invariant: all parts together let no more
//! documents go at once than the job's small limit says; when in doubt, a removal is marked.

use crate::job::JobWork;
use crate::worker::leases::check::LeaseKey;
use std::cell::RefCell;
use std::collections::HashMap;
use store::chunkfile::document::RemoveReason;
use store::ids::{JobId, Part, Run};
use store::tables::removals::{self, RemovalLimits};
use store::{Db, Result};

/// How long a continuous job waits before a part that has used its share is asked again.
const ASK_AGAIN_MS: i64 = 10 * 60 * 1_000;

/// Reads what is left of the share of a job in a part at a time.
type ReadShare = Box<dyn Fn(&JobWork, Part, i64) -> Result<i64> + Send>;

/// Decides which removals take effect at once.
pub struct RemovalGate {
    read: ReadShare,
    left: RefCell<HashMap<(JobId, Part), RemovalShare>>,
}

/// What is left of the share of a job in a part.
#[derive(Clone, Copy)]
struct RemovalShare {
    run: Run,
    /// The lease under which it was read.
    token: i64,
    documents: i64,
    asked_ms: i64,
}

impl RemovalGate {
    /// A gate that reads shares from these rows.
    pub fn new(db: Db) -> RemovalGate {
        RemovalGate::with_shares(move |job, part, now_ms| read_share(&db, job, part, now_ms))
    }

    /// A gate that is told what is left.
    fn with_shares(
        read: impl Fn(&JobWork, Part, i64) -> Result<i64> + Send + 'static,
    ) -> RemovalGate {
        RemovalGate { read: Box::new(read), left: RefCell::default() }
    }

    /// Decides whether the removal of a document takes effect at once; the share is used then.
    pub fn let_go(
        &self,
        job: &JobWork,
        lease: LeaseKey,
        reason: RemoveReason,
        now_ms: i64,
    ) -> bool {
        if reason.is_by_person() {
            return true;
        }
        // While removals are held, those that come later wait with them: what is held would
        // otherwise go bit by bit, a small share with every run.
        if !reason.is_proven() || job.removals.held_ms.is_some() {
            return false;
        }
        let LeaseKey { part, token } = lease;
        let mut left = self.left.borrow_mut();
        let known = left.get(&(job.id, part)).copied().filter(|it| {
            let is_stale = job.definition.continuous
                && it.documents == 0
                && now_ms - it.asked_ms > ASK_AGAIN_MS;
            it.run == job.run && it.token == token && !is_stale
        });
        let known = match known {
            Some(known) => known,
            None => {
                let Ok(documents) = (self.read)(job, part, now_ms) else { return false };
                RemovalShare { run: job.run, token, documents, asked_ms: now_ms }
            }
        };
        let goes = known.documents > 0;
        let documents = known.documents - i64::from(goes);
        left.insert((job.id, part), RemovalShare { documents, ..known });
        goes
    }
}

fn read_share(db: &Db, job: &JobWork, part: Part, now_ms: i64) -> Result<i64> {
    let (id, period) = (job.id, job.removal_period(now_ms));
    let limits = RemovalLimits::of(&job.definition);
    db.read(move |tx| {
        let base = removals::base(tx, id)?;
        let share = base.share(part, limits.at_once(base.documents()));
        let lost = removals::lost(tx, id, Some(part), period)?;
        let proven: i64 = lost.iter().filter(|it| it.0.is_proven()).map(|it| it.1).sum();
        Ok((share - proven).max(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixture::work;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use store::Error;

    const GONE: RemoveReason = RemoveReason::Gone;
    const LEASE: LeaseKey = LeaseKey { part: Part(1), token: 7 };

    /// A gate with a share of so many, and how often it was asked for.
    fn gate(share: i64) -> (RemovalGate, Arc<AtomicI64>) {
        let reads = Arc::new(AtomicI64::new(0));
        let counted = reads.clone();
        let gate = RemovalGate::with_shares(move |_, _, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(share)
        });
        (gate, reads)
    }

    #[test]
    fn a_share_is_read_once_for_a_lease_and_used_up() {
        let (gate, reads) = gate(2);
        let job = work(1);
        let let_go = |lease: LeaseKey| gate.let_go(&job, lease, GONE, 0);
        assert_eq!([let_go(LEASE), let_go(LEASE), let_go(LEASE)], [true, true, false]);
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        assert!(let_go(LeaseKey { token: 8, ..LEASE }), "another holder may have used it up");
        assert!(gate.let_go(&work(2), LEASE, GONE, 0), "another run has its own");
        assert_eq!(reads.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_continuous_job_asks_again_after_a_while() {
        let (gate, reads) = gate(0);
        let mut job = work(1);
        job.definition.continuous = true;
        for now_ms in [0, ASK_AGAIN_MS, ASK_AGAIN_MS + 1] {
            assert!(!gate.let_go(&job, LEASE, GONE, now_ms));
        }
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn in_doubt_a_removal_is_marked_and_a_person_has_no_doubt() {
        let (gate, reads) = gate(9);
        let mut held = work(1);
        assert!(!gate.let_go(&held, LEASE, RemoveReason::Unreachable, 0), "nothing proves it");
        held.removals.held_ms = Some(1);
        assert!(!gate.let_go(&held, LEASE, GONE, 0), "it waits with the others");
        assert!(gate.let_go(&held, LEASE, RemoveReason::JobDeleted, 0));
        assert_eq!(reads.load(Ordering::SeqCst), 0);
        let away = RemovalGate::with_shares(|_, _, _| Err(Error::Refused("away".into())));
        assert!(!away.let_go(&work(1), LEASE, GONE, 0));
    }
}
