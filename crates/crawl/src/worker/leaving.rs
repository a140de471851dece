//! Which removals take effect with the next commit, and which are only marked.
//!
//! A removal that the document itself has proved goes at once, as long as the part has some
//! of its share left: the small limit of the job, given to its parts by what they had when
//! the run began. What a part has used is read from its own rows and counted on here, which
//! is exact because a part has one holder. Invariant: all parts together let no more
//! documents go at once than the job's small limit says; when in doubt, a removal is marked.

use super::job::JobWork;
use std::cell::RefCell;
use std::collections::HashMap;
use store::chunkfile::document::RemoveReason;
use store::ids::{JobId, Part, Run};
use store::tables::removals::{self, RemovalLimits};
use store::{Db, Result};

/// How long a continuous job waits before a part that has used its share is asked again.
const ASK_AGAIN_MS: i64 = 10 * 60 * 1_000;

/// Decides which removals take effect at once.
pub struct RemovalGate {
    db: Db,
    left: RefCell<HashMap<(JobId, Part), Left>>,
}

/// What is left of the share of a job in a part.
#[derive(Clone, Copy)]
struct Left {
    run: Run,
    /// The lease under which it was read.
    token: i64,
    documents: i64,
    asked_ms: i64,
}

impl RemovalGate {
    /// A gate that reads shares from these rows.
    pub fn new(db: Db) -> RemovalGate {
        RemovalGate { db, left: RefCell::default() }
    }

    /// Whether the removal of a document takes effect at once; the share is used then.
    pub fn goes_at_once(
        &self,
        job: &JobWork,
        (part, token): (Part, i64),
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
                let Ok(documents) = self.read(job, part, now_ms) else { return false };
                Left { run: job.run, token, documents, asked_ms: now_ms }
            }
        };
        let goes = known.documents > 0;
        let documents = known.documents - i64::from(goes);
        left.insert((job.id, part), Left { documents, ..known });
        goes
    }

    fn read(&self, job: &JobWork, part: Part, now_ms: i64) -> Result<i64> {
        let (id, period) = (job.id, job.removal_period(now_ms));
        let limits = RemovalLimits::of(&job.definition);
        self.db.read(move |tx| {
            let base = removals::base(tx, id)?;
            let share = base.share(part, limits.at_once(base.documents()));
            let lost = removals::lost(tx, id, Some(part), period)?;
            let proven: i64 = lost.iter().filter(|it| it.0.is_proven()).map(|it| it.1).sum();
            Ok((share - proven).max(0))
        })
    }
}
