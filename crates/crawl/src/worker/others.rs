//! Documents that no host is asked for: those of other connectors than the web, those that are
//! settled without a request, and those that leave their job.
//!
//! Invariant: they wait for nobody, but they are claimed, finished and committed like
//! every other document.

use super::batch::Batch;
use super::finish::{self, Class, Finishing, LeftAlone};
use super::job::{JobWork, Source};
use super::tasks::{Claimed, LookedDone};
use super::turn::Swept;
use super::{Item, Worker};
use crate::conduct;
use crate::fetch::sentences;
use crate::frontier::{HostKey, Pause};
use crate::lifecycle::Event;
use page::url::origin_of;
use std::sync::Arc;
use store::chunkfile::document::RemoveReason;
use store::ids::Part;
use store::tables::jobs::OnFailure;
use store::tables::queue::Entry;
use store::tables::queue::sweep::Sweep;

impl Worker {
    /// A document that is not on the web: nobody has to be spared, nobody forbids it.
    pub(super) fn look_at_other(&mut self, host: HostKey, work: Arc<JobWork>, claimed: Claimed) {
        let Source::Other(repository) = &work.source else { return };
        match repository.unwanted(&claimed.entry.docid) {
            Some((code, detail)) => {
                let why = (code, detail.as_str(), RemoveReason::OutOfScope);
                self.skip(host, &work, |at, batch| {
                    finish::forbidden(at, batch, (&work, claimed), why)
                });
            }
            None => self.send(host, work, claimed, None),
        }
    }

    /// A document that is settled without a request, and does not fail.
    pub(super) fn skip(
        &mut self,
        host: HostKey,
        job: &JobWork,
        settle: impl FnOnce(Finishing<'_>, &mut Batch) -> Class,
    ) {
        self.skip_named(host, (job, ""), settle);
    }

    /// The same for one that may fail, and is told of by its name.
    pub(super) fn skip_named(
        &mut self,
        host: HostKey,
        (job, docid): (&JobWork, &str),
        settle: impl FnOnce(Finishing<'_>, &mut Batch) -> Class,
    ) {
        self.frontier.skipped(job.spot(host));
        let not_before_ms = self.hosts.get(host).next_ms;
        let class = self.finish((host.part, job), not_before_ms, settle);
        self.finished(job, &class, docid);
    }

    /// A connector has looked at a document.
    pub(super) fn looked(&mut self, done: LookedDone) {
        let (host, job) = (done.task.host, done.task.job.clone());
        let docid = done.task.claimed.entry.docid.clone();
        let pause = Pause { ended_ms: done.ended_ms, delay_ms: 0, not_before_ms: 0 };
        self.frontier.finished(job.spot(host), pause);
        if !self.holds(host.part, done.task.claimed.token) {
            self.frontier.committed(1);
            return;
        }
        if self.is_isolated((host.part, job.id)) {
            self.give_back(host.part, Item::new(job.id, done.task.claimed));
            return;
        }
        let busy_ms = u64::try_from(done.ended_ms - done.began_ms).unwrap_or(0);
        self.progress.requested(job.run_key(), job.address(&docid).host, 0, busy_ms);
        let class = self.finish((host.part, &job), 0, |at, batch| finish::looked(at, batch, done));
        self.finished(&job, &class, &docid);
    }

    /// A document is finished. One that has failed for good ends its job, if the job says
    /// so.
    pub(super) fn finished(&mut self, job: &JobWork, class: &Class, docid: &str) {
        self.progress.finished(job.run_key(), class, docid);
        let Class::Failed(reason) = class else { return };
        if job.definition.on_failure != OnFailure::Abort {
            return;
        }
        let (id, now_ms) = (job.id, self.now.ms());
        let fails = Event::Fail(format!("{docid} has failed for good ({})", reason.code()));
        // If this cannot be written now, the next failure, or the next run, writes it.
        let _ = self.db.write(move |tx| conduct::try_to(tx, id, &fails, now_ms));
        self.schedule.want();
        self.conductor.wake();
    }

    /// Documents that leave their job, or are given up: nobody is asked for them.
    pub(super) fn sweep(&mut self, part: Part, (job, sweep): (&JobWork, Sweep), swept: Vec<Swept>) {
        for Swept { claimed, is_shared, released } in swept {
            let docid = claimed.entry.docid.clone();
            let why = match sweep {
                Sweep::Left { .. } => self.why_left(part, job, &claimed.entry),
                _ => LeftAlone::Unknown,
            };
            let class = self.finish((part, job), 0, |at, batch| {
                let of = (job, claimed);
                match (sweep, released) {
                    (Sweep::Delete, _) => {
                        finish::swept(at, batch, of, (RemoveReason::JobDeleted, is_shared))
                    }
                    (Sweep::Left { .. }, _) => finish::given_up(at, batch, of, why),
                    (_, Some(mark)) => finish::leave(at, batch, of, (mark, is_shared)),
                    (_, None) => {
                        finish::swept(at, batch, of, (RemoveReason::Unreachable, is_shared))
                    }
                }
            });
            self.progress.finished(job.run_key(), &class, &docid);
        }
    }

    /// What keeps a document's host from being asked now.
    fn why_left(&mut self, part: Part, job: &JobWork, entry: &Entry) -> LeftAlone {
        let name = job.address(&entry.docid).host;
        let limits = self.throttling.limits(job.connection, entry.bin, name);
        if let Some(throttle) = &limits.stopped_by {
            return LeftAlone::Throttle(throttle.clone());
        }
        let host = self.hosts.get(HostKey { part, bin: entry.bin });
        if let (Some(_), Some(code)) = (host.blocked_ms, host.blocked_by.as_deref()) {
            let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
            return LeftAlone::Because(format!("{name} is left alone after trouble: {words}"));
        }
        match self.robots.trouble(origin_of(&entry.docid)) {
            Some(why) => {
                LeftAlone::Because(format!("the robots.txt of {name} cannot be had: {why}"))
            }
            None => LeftAlone::Unknown,
        }
    }
}
