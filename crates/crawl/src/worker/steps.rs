//! What the worker does with one document, one lease.
//!
//! Invariant: an item that the frontier gave out ends in its batch, whatever happens:
//! finished, forbidden, or back as it was.

use super::batch::Batch;
use super::finish::{self, Class, Finishing};
use super::holdings::Holding;
use super::hosts::Request;
use super::job::{JobWork, Source};
use super::logins::Access;
use super::looking::FIRST;
use super::tasks::{Claimed, DocumentDone, DocumentTask, RobotsTask, Task};
use super::turn::OpenChunk;
use super::{Item, PartWork, PlaceWork, Worker};
use crate::definitions::RobotsFor;
use crate::fetch::Outcome;
use crate::frontier::{HostKey, Next, Pause};
use crate::hops;
use crate::login::session::Session;
use crate::robots::{Question, Verdict};
use page::url::origin_of;
use std::sync::Arc;
use store::Result;
use store::chunkfile::document::RemoveReason;
use store::clock::Moment;
use store::ids::{ChunkId, IdMaker, JobId, ObjectId, Part};
use store::tables::bins::Visit;
use store::tables::job_states::RunKind;
use store::tables::queue::Reason;
use store::tables::robots;

/// A host that is left alone for longer than this gives its documents back.
const BLOCKED_MS_MAX: i64 = 5_000;

impl Worker {
    /// Asks for all that may be asked for now.
    pub(super) fn ask(&mut self) -> Result<()> {
        if !self.control.may_claim() {
            return Ok(());
        }
        while self.sure.is_any(self.now.ms())
            && let now_ms = self.follow_clock(Moment::now())
            && let Next::Fetch(host, item) = self.frontier.next(now_ms)
        {
            self.ask_for(host, item)?;
        }
        Ok(())
    }

    fn ask_for(&mut self, host: HostKey, item: Item) -> Result<()> {
        let Item { job, claimed } = item;
        let Some(work) = self.jobs.get(job).cloned() else {
            self.frontier.skipped(self.frontier.spot(host, job));
            self.give_back(host.part, Item::new(job, claimed));
            return Ok(());
        };
        if let Some(message) = self.isolation.take_condemned(claimed.entry.id) {
            let docid = claimed.entry.docid.clone();
            self.skip_named(host, (&work, &docid), |at, batch| {
                finish::internal_error(at, batch, (&work, claimed), &message)
            });
            return Ok(());
        }
        let entry = &claimed.entry;
        if entry.seen_run < work.run && work.kind == RunKind::Full {
            self.skip(host, &work, |at, batch| finish::stale(at, batch, (&work, entry)));
            return Ok(());
        }
        if let Some(detail) = &claimed.too_far {
            let why = (hops::CODE, detail.clone(), RemoveReason::HopLimit);
            let why = (why.0, why.1.as_str(), why.2);
            self.skip(host, &work, |at, batch| finish::forbidden(at, batch, (&work, claimed), why));
            return Ok(());
        }
        if work.ends(entry) {
            self.skip(host, &work, |at, batch| finish::expired(at, batch, (&work, claimed)));
            return Ok(());
        }
        match work.source {
            Source::Web(_) => self.ask_web(host, work, claimed),
            Source::Other(_) => {
                self.look_at_other(host, work, claimed);
                Ok(())
            }
        }
    }

    fn ask_web(&mut self, host: HostKey, work: Arc<JobWork>, claimed: Claimed) -> Result<()> {
        let Some(web) = work.web() else { return Ok(()) };
        let (job, entry) = (work.id, &claimed.entry);
        // A link was judged when it was found; what is rechecked may not belong any more.
        if entry.done_run.is_some()
            && let Err(cut) = web.scope.judge(&entry.docid, entry.hops)
        {
            let detail = web.scope.explain(cut);
            let why = (cut.code(), detail.as_str(), RemoveReason::OutOfScope);
            self.skip(host, &work, |at, batch| finish::forbidden(at, batch, (&work, claimed), why));
            return Ok(());
        }
        if let Some(closed) = self.closed(&work, &claimed) {
            let entry = &claimed.entry;
            self.skip(host, &work, |at, batch| {
                finish::unwanted(at, batch, (&work, entry), &closed)
            });
            return Ok(());
        }
        let entry = &claimed.entry;
        if web.spec.robots == RobotsFor::None {
            return self.fetch(host, work.clone(), claimed);
        }
        let origin = origin_of(&entry.docid).to_owned();
        if !self.robots.has(&origin) {
            let (part, wanted) = (host.part, origin.clone());
            match self.db.read(move |tx| robots::find(tx, part, &wanted)) {
                Ok(Some(stored)) => self.robots.restore(stored),
                Ok(None) => {}
                // While the database is away nothing is known, so nothing is asked.
                Err(error) if error.passes() => {
                    self.frontier.skipped(work.spot(host));
                    self.give_back(part, Item::new(job, claimed));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.tell_sitemaps(host.part, &work, &origin);
        let question = Question {
            url: &entry.docid,
            product: web.spec.product(),
            guard: &web.guard,
            again_before_ms: self.asks_again_before_ms(&work),
        };
        match self.robots.verdict(&origin, question, self.now.ms()) {
            Verdict::Allowed => return self.fetch(host, work.clone(), claimed),
            Verdict::Unknown => {
                let (token, bandwidth) = (claimed.token, self.bandwidth(host, &work));
                self.frontier.hold(work.spot(host), Item { job, claimed });
                self.fetching.send(Task::Robots(RobotsTask {
                    host,
                    origin,
                    job: work.clone(),
                    token,
                    bandwidth,
                }));
            }
            verdict => self.closed_by_robots(host, (&work, claimed), verdict),
        }
        Ok(())
    }

    fn fetch(&mut self, host: HostKey, job: Arc<JobWork>, claimed: Claimed) -> Result<()> {
        let session = match self.access(&job, &claimed.entry.docid) {
            Ok(Access::Open) => None,
            Ok(Access::In(session)) => Some(session),
            Ok(Access::Waits(event)) => {
                self.frontier.skipped(job.spot(host));
                self.waits(host, (&job, claimed), event);
                return Ok(());
            }
            Ok(Access::Failed(until_ms, why)) => {
                let reason = Reason::new("login", Some(&why));
                let docid = claimed.entry.docid.clone();
                self.skip_named(host, (&job, &docid), |at, batch| {
                    finish::later(at, batch, (&job, claimed), (reason, until_ms))
                });
                return Ok(());
            }
            Err(error) if error.passes() => {
                self.frontier.skipped(job.spot(host));
                self.give_back(host.part, Item::new(job.id, claimed));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.send(host, job, claimed, session);
        Ok(())
    }

    /// Sends a document to be had.
    pub(super) fn send(
        &mut self,
        host: HostKey,
        job: Arc<JobWork>,
        claimed: Claimed,
        session: Option<Arc<Session>>,
    ) {
        let bandwidth = self.bandwidth(host, &job);
        let task = DocumentTask { host, claimed, job, bandwidth, session };
        self.fetching.send(Task::Document(Box::new(task)));
    }

    /// Runs `settle` on the batch of a job in a part.
    pub(super) fn finish(
        &mut self,
        (part, job): (Part, &JobWork),
        not_before_ms: i64,
        settle: impl FnOnce(Finishing<'_>, &mut Batch) -> Class,
    ) -> Class {
        let place = self.places.entry((part, job.id)).or_default();
        let chunk = place.chunk(job, &self.ids).id;
        let at = Finishing {
            ids: &self.ids,
            known: &self.known,
            part,
            chunk,
            now_ms: self.now.ms(),
            not_before_ms,
            allowance: self.allowances.of(job.id),
            gate: &self.gate,
        };
        let class = settle(at, &mut place.batch);
        if let Some(settled) = place.batch.settled.last() {
            place.active.remove(&settled.id);
        }
        class
    }

    /// A document has been fetched, or not.
    pub(super) fn document(&mut self, mut done: DocumentDone) -> Result<()> {
        let (host, job) = (done.task.host, done.task.job.clone());
        let url = done.task.claimed.entry.docid.clone();
        let bytes = match &done.outcome {
            Outcome::Body(body) => i64::try_from(body.wire_bytes).unwrap_or(i64::MAX),
            _ => 0,
        };
        let (began_ms, ended_ms) = (done.began_ms, done.ended_ms);
        let request = Request { outcome: &done.outcome, began_ms, ended_ms };
        let blocked_ms = self.visited(host, &job, request, bytes);
        if !self.holds(host.part, done.task.claimed.token) {
            // The part is somebody else's: what came of this is not ours to tell.
            self.frontier.committed(1);
            return Ok(());
        }
        if self.is_isolated((host.part, job.id)) {
            self.give_back(host.part, Item::new(job.id, done.task.claimed));
            return Ok(());
        }
        if done.asks_login {
            return self.asks_login(done);
        }
        self.proves(&done);
        if let Outcome::Retry { reason, .. } = &done.outcome {
            self.progress.troubled(job.run_key(), &reason.code(), &url);
        }
        if let Some(reading) = &mut done.reading {
            self.weigh(&done.task, reading);
        }
        let name = page::url::host_of(&url);
        let busy_ms = u64::try_from(ended_ms - began_ms).unwrap_or(0);
        if !done.outcome.is_unasked() {
            let bytes = u64::try_from(bytes).unwrap_or(0);
            self.progress.requested(job.run_key(), name, bytes, busy_ms);
        }
        let class = self
            .finish((host.part, &job), blocked_ms, |at, batch| finish::document(at, batch, done));
        self.finished(&job, &class, &url);
        Ok(())
    }

    /// Something was not asked for after all: it is as it was.
    pub(super) fn not_asked(&mut self, task: Task) {
        match task {
            Task::Document(task) => {
                self.frontier.skipped(task.job.spot(task.host));
                self.give_back(task.host.part, Item::new(task.job.id, task.claimed));
            }
            Task::Login(task) => self.not_logged_in(&task),
            Task::Robots(RobotsTask { host, job, .. }) => {
                let delays = (job.manners.delay_ms, job.manners.crawl_delay_max_ms);
                let delay_ms = self.hosts.get(host).delay_ms(delays.0, delays.1);
                let pause = Pause { ended_ms: self.now.ms(), delay_ms, not_before_ms: 0 };
                self.frontier.finished(job.spot(host), pause);
            }
        }
    }

    /// The address of something is asked enough: it waits where it was, or, if it is for long,
    /// goes back with all that waits at its host.
    pub(super) fn not_yet(&mut self, task: Task, until_ms: i64) {
        let host = match task {
            Task::Document(task) => {
                let (spot, item) = (task.job.spot(task.host), Item::new(task.job.id, task.claimed));
                let homeless = self.frontier.put_off(spot, Some(item), until_ms);
                homeless.into_iter().for_each(|item| self.give_back(task.host.part, item));
                task.host
            }
            Task::Robots(task) => {
                let _ = self.frontier.put_off(task.job.spot(task.host), None, until_ms);
                task.host
            }
            Task::Login(task) => return self.not_logged_in(&task),
        };
        if until_ms > self.now.ms() + BLOCKED_MS_MAX {
            for item in self.frontier.give_back(host) {
                self.give_back(host.part, item);
            }
        }
    }

    /// Books a request to a host. Returns until when the host is left alone.
    pub(super) fn visited(
        &mut self,
        host: HostKey,
        job: &JobWork,
        request: Request<'_>,
        bytes: i64,
    ) -> i64 {
        let now_ms = self.now.ms();
        let busy_ms = (request.ended_ms - request.began_ms).max(0);
        let ended_ms = self.schedule.ended_ms(request.ended_ms, now_ms);
        let request = Request { ended_ms, ..request };
        let known = self.hosts.get(host);
        let blocked_ms = known.ended(request);
        let delay_ms = known.delay_ms(job.manners.delay_ms, job.manners.crawl_delay_max_ms);
        known.next_ms = known.next_ms.max(request.ended_ms + delay_ms);
        let pause = Pause { ended_ms: request.ended_ms, delay_ms, not_before_ms: blocked_ms };
        self.frontier.finished(job.spot(host), pause);
        if self.parts.contains_key(&host.part) {
            let place = self.places.entry((host.part, job.id)).or_default();
            let failed = request.outcome.is_failure();
            let before = place.batch.visits.remove(&host.bin);
            let sum = |count: fn(&Visit) -> i64| before.as_ref().map_or(0, count);
            let visit = Visit {
                fetches: sum(|it| it.fetches) + i64::from(!request.outcome.is_unasked()),
                errors: sum(|it| it.errors) + i64::from(failed),
                bytes: sum(|it| it.bytes) + bytes,
                busy_ms: sum(|it| it.busy_ms) + busy_ms,
                ..known.visit(host.bin)
            };
            place.batch.visits.insert(host.bin, visit);
        }
        if blocked_ms > now_ms + BLOCKED_MS_MAX {
            for item in self.frontier.give_back(host) {
                self.give_back(host.part, item);
            }
        }
        blocked_ms
    }

    /// An item that will not be asked for now: ready again with the next commit.
    pub(super) fn give_back(&mut self, part: Part, item: Item) {
        if !self.holds(part, item.claimed.token) {
            self.frontier.committed(1);
            return;
        }
        let place = self.places.entry((part, item.job)).or_default();
        place.active.remove(&item.claimed.entry.id);
        place.batch.first_ms.get_or_insert(self.now.ms());
        finish::back(&mut place.batch, &item.claimed.entry);
    }

    /// Whether a part is still held under the lease that something was claimed under.
    pub(super) fn holds(&self, part: Part, token: i64) -> bool {
        self.parts.get(&part).is_some_and(|held| held.lease.token == token)
    }

    /// A lease came, went, or is wanted back.
    pub(super) fn holding(&mut self, holding: Holding) {
        match holding {
            Holding::Held { lease, clean } => {
                let since_ms = if clean { 0 } else { self.now.ms() };
                let part = lease.part;
                let held = PartWork {
                    lease,
                    since_ms,
                    busy: false,
                    leaving: false,
                    lags: false,
                    is_far_behind: false,
                    is_late: false,
                    weighed: false,
                    marked_after: FIRST,
                };
                self.parts.insert(part, held);
                self.repace_all();
                self.schedule.want();
                self.lags.look_now();
            }
            Holding::Lost(part) => self.lose(part),
            Holding::Leave(part) => {
                if let Some(held) = self.parts.get_mut(&part) {
                    held.leaving = true;
                }
                for item in self.frontier.forget(part, None) {
                    self.give_back(part, item);
                }
            }
            Holding::Replaced => self.control.on_replaced(),
        }
    }

    /// Forgets everything of a part that is somebody else's now.
    pub(super) fn lose(&mut self, part: Part) {
        if self.parts.remove(&part).is_none() {
            return;
        }
        let waiting = self.frontier.forget(part, None).len();
        let places: Vec<(Part, JobId)> =
            self.places.keys().copied().filter(|key| key.0 == part).collect();
        let mut given_up = waiting;
        for key in places {
            if let Some(place) = self.places.remove(&key) {
                given_up += place.batch.claimed();
            }
        }
        self.frontier.committed(given_up);
        self.repace_all();
        self.hosts.forget(part);
        self.budgets.forget(part);
        // Links of lost batches were never queued.
        self.known.clear();
    }

    /// When stopping: gives back what waits; true once nothing is under way, or it has
    /// taken too long.
    pub(super) fn drained(&mut self) -> bool {
        let now_ms = self.now.ms();
        self.control.begin_drain(now_ms);
        let parts: Vec<Part> = self.parts.keys().copied().collect();
        for part in parts {
            for item in self.frontier.forget(part, None) {
                self.give_back(part, item);
            }
        }
        self.frontier.in_flight() == 0 || self.control.is_overdue(self.now.ms())
    }
}

impl PlaceWork {
    /// The chunk that the batch belongs to.
    pub(super) fn chunk(&mut self, job: &JobWork, ids: &IdMaker) -> OpenChunk {
        *self.chunk.get_or_insert_with(|| fresh_chunk(job, ids))
    }
}

/// A chunk that nobody knows of yet, and that goes on with nothing.
pub(super) fn fresh_chunk(job: &JobWork, ids: &IdMaker) -> OpenChunk {
    let id = ChunkId(ids.next());
    OpenChunk {
        id,
        claim: id,
        facts: ObjectId(ids.next()),
        bodies: job.manners.bodies.then(|| ObjectId(ids.next())),
        announces: true,
    }
}
