//! What the worker does with a document that is finished: it is settled in its batch, and its
//! summary is told.
//!
//! Documents that no host is asked for wait for nobody, but they are claimed, finished and
//! committed like every other document. Invariant: what came of a document under a lease that is
//! over is nobody's to write.

use crate::batch::Batch;
use crate::conduct;
use crate::fetch::Outcome;
use crate::frontier::{HostKey, Pause};
use crate::job::JobWork;
use crate::lifecycle::JobEvent;
use crate::worker::ask::hosts::HostRequest;
use crate::worker::ask::tasks::{ClaimedDocument, DocumentDone, LookedDone};
use crate::worker::commit::turn::{OpenChunk, SweptDocument};
use crate::worker::finish::{self, Exclusion, FinishContext, LeftAlone, ResultClass};
use crate::worker::{FrontierItem, Worker};
use page::url::host_of;
use store::chunkfile::document::RemoveReason;
use store::ids::{Part, QueueId};
use store::tables::jobs::OnFailure;
use store::tables::queue::sweep::Sweep;
use store::{Result, clock};

impl Worker {
    /// Runs `settle` on a claimed document, in the batch of its job in its part.
    pub(crate) fn settle(
        &mut self,
        part: Part,
        job: &JobWork,
        document: QueueId,
        not_before_ms: i64,
        settle: impl FnOnce(FinishContext<'_>, &mut Batch) -> ResultClass,
    ) -> ResultClass {
        let ids = &*self.deps.ids;
        let (known, gate) = (self.links.known(), self.limits.gate());
        let (allowance, now_ms) = (self.limits.allowance(job.id), clock::now_ms());
        let fresh = || OpenChunk::new(job, ids);
        self.places.settle(job.place(part), document, fresh, |chunk, batch| {
            let at =
                FinishContext { ids, known, part, chunk, now_ms, not_before_ms, allowance, gate };
            settle(at, batch)
        })
    }

    /// A document that is settled without a request.
    pub(crate) fn skip(
        &mut self,
        host: HostKey,
        job: &JobWork,
        claimed: ClaimedDocument,
        settle: impl FnOnce(FinishContext<'_>, &mut Batch, ClaimedDocument) -> ResultClass,
    ) {
        self.frontier.skipped(job.spot(host));
        let not_before_ms = self.hosts.next_ms(host);
        let (id, docid) = (claimed.entry.id, claimed.entry.docid.clone());
        let class =
            self.settle(host.part, job, id, not_before_ms, |at, batch| settle(at, batch, claimed));
        self.on_finished(job, &class, &docid);
    }

    /// A document that a rule forbids.
    pub(crate) fn exclude(
        &mut self,
        host: HostKey,
        job: &JobWork,
        claimed: ClaimedDocument,
        why: Exclusion<'_>,
    ) {
        self.skip(host, job, claimed, |at, batch, claimed| {
            finish::forbidden(at, batch, job, claimed, why)
        });
    }

    /// A document has been fetched, or not.
    pub(crate) fn on_document(&mut self, mut done: DocumentDone) -> Result<()> {
        let (host, job) = (done.task.host, done.task.job.clone());
        let (id, url) = (done.task.claimed.entry.id, done.task.claimed.entry.docid.clone());
        let bytes = match &done.outcome {
            Outcome::Body(body) => i64::try_from(body.wire_bytes).unwrap_or(i64::MAX),
            _ => 0,
        };
        let request = HostRequest::new(&done.outcome, done.began_ms, done.ended_ms);
        let busy_ms = request.busy_ms.unsigned_abs();
        let blocked_ms = self.book_request(host, &job, request, bytes);
        if !self.parts.holds(done.task.claimed.lease(host.part)) {
            // The part is somebody else's: what came of this is not ours to tell.
            self.frontier.committed(1);
            return Ok(());
        }
        if self.places.is_isolated(job.place(host.part)) {
            self.give_back(host.part, FrontierItem::new(job.id, done.task.claimed));
            return Ok(());
        }
        if done.asks_login {
            return self.on_login_asked(done);
        }
        self.prove_session(&done);
        if let Outcome::Retry { reason, .. } = &done.outcome {
            self.deps.progress.troubled(job.run_key(), &reason.code(), &url);
        }
        if let Some(reading) = &mut done.reading {
            let parent = done.task.claimed.entry.parent_part;
            let is_named_elsewhere = parent.is_some_and(|part| !self.parts.has(part));
            self.links.weigh(&done.task, reading, is_named_elsewhere);
        }
        if !done.outcome.is_unasked() {
            let bytes = bytes.unsigned_abs();
            self.deps.progress.requested(job.run_key(), host_of(&url), bytes, busy_ms);
        }
        let class = self
            .settle(host.part, &job, id, blocked_ms, |at, batch| finish::document(at, batch, done));
        self.on_finished(&job, &class, &url);
        Ok(())
    }

    /// A connector has looked at a document.
    pub(crate) fn on_looked(&mut self, done: LookedDone) {
        let (host, job) = (done.task.host, done.task.job.clone());
        let (id, docid) = (done.task.claimed.entry.id, done.task.claimed.entry.docid.clone());
        let pause = Pause { ended_ms: done.ended_ms, delay_ms: 0, not_before_ms: 0 };
        self.frontier.finished(job.spot(host), pause);
        if !self.parts.holds(done.task.claimed.lease(host.part)) {
            self.frontier.committed(1);
            return;
        }
        if self.places.is_isolated(job.place(host.part)) {
            self.give_back(host.part, FrontierItem::new(job.id, done.task.claimed));
            return;
        }
        let busy_ms = u64::try_from(done.ended_ms - done.began_ms).unwrap_or(0);
        self.deps.progress.requested(job.run_key(), job.address(&docid).host, 0, busy_ms);
        let class =
            self.settle(host.part, &job, id, 0, |at, batch| finish::finish_look(at, batch, done));
        self.on_finished(&job, &class, &docid);
    }

    /// A document is finished. One that has failed for good ends its job, if the job says
    /// so.
    pub(crate) fn on_finished(&mut self, job: &JobWork, class: &ResultClass, docid: &str) {
        self.deps.progress.finished(job.run_key(), class, docid);
        let ResultClass::Failed(reason) = class else { return };
        if job.definition.on_failure != OnFailure::Abort {
            return;
        }
        let (id, now_ms) = (job.id, clock::now_ms());
        let fails = JobEvent::Fail(format!("{docid} has failed for good ({})", reason.code()));
        // If this cannot be written now, the next failure, or the next run, writes it.
        let _ = self.deps.db.write(move |tx| conduct::try_to(tx, id, &fails, now_ms));
        self.schedule.want();
        self.threads.wake_conductor();
    }

    /// Documents that leave their job, or are given up: nobody is asked for them.
    pub(crate) fn finish_swept(
        &mut self,
        part: Part,
        job: &JobWork,
        sweep: Sweep,
        swept: Vec<SweptDocument>,
    ) {
        for SweptDocument { claimed, shared, released } in swept {
            let (id, docid) = (claimed.entry.id, claimed.entry.docid.clone());
            let why = match sweep {
                Sweep::Left { .. } => {
                    let host = HostKey { part, bin: claimed.entry.bin };
                    self.hosts.left_alone(job, host, &docid)
                }
                _ => LeftAlone::Unknown,
            };
            let class = self.settle(part, job, id, 0, |at, batch| match (sweep, released) {
                (Sweep::Delete, _) => {
                    let reason = RemoveReason::JobDeleted;
                    finish::swept(at, batch, job, claimed, reason, shared)
                }
                (Sweep::Left { .. }, _) => finish::given_up(at, batch, job, claimed, why),
                (_, Some(mark)) => finish::leave(at, batch, job, claimed, mark, shared),
                (_, None) if claimed.entry.unlinked && claimed.entry.seen_run >= job.run => {
                    finish::unlinked(at, batch, job, claimed, shared)
                }
                (_, None) => {
                    let reason = RemoveReason::Unreachable;
                    finish::swept(at, batch, job, claimed, reason, shared)
                }
            });
            self.deps.progress.finished(job.run_key(), &class, &docid);
        }
    }
}
