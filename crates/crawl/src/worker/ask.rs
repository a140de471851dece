//! Asks for documents as their hosts allow: over the web, or by their connector.
//!
//! Invariant: a document that the frontier gave out ends in its batch, whatever happens:
//! finished, forbidden, or back as it was.

pub mod admissions;
pub mod fetch_threads;
pub mod host_access;
pub mod hosts;
pub mod logins;
pub mod robots_txt;
pub mod sessions;
pub mod tasks;
pub mod throttling;

use crate::definitions::RobotsFor;
use crate::frontier::{HostKey, Next, Pause};
use crate::job::{JobSource, JobWork};
use crate::login::session::Session;
use crate::repository::Repository;
use crate::worker::ask::host_access::BookedRequest;
use crate::worker::ask::hosts::HostRequest;
use crate::worker::ask::sessions::SessionAccess;
use crate::worker::ask::tasks::{ClaimedDocument, DocumentTask, RobotsTask, Task};
use crate::worker::finish::{self, Exclusion, LeftForLater};
use crate::worker::{FrontierItem, Worker};
use std::sync::Arc;
use store::chunkfile::document::RemoveReason;
use store::clock::Moment;
use store::ids::Part;
use store::tables::job_states::RunKind;
use store::tables::queue::{Reason, ReasonCode};
use store::{Result, clock};

/// A host that is left alone for longer than this gives its documents back.
const BLOCKED_MS_MAX: i64 = 5_000;

impl Worker {
    /// Asks for all that may be asked for now.
    pub(super) fn ask(&mut self) -> Result<()> {
        if !self.control.may_claim() {
            return Ok(());
        }
        while self.threads.may_ask(clock::now_ms())
            && let now_ms = self.follow_clock(Moment::now())
            && let Next::Fetch(host, item) = self.frontier.next(now_ms)
        {
            self.ask_for(host, item)?;
        }
        Ok(())
    }

    fn ask_for(&mut self, host: HostKey, item: FrontierItem) -> Result<()> {
        let FrontierItem { job, claimed } = item;
        let Some(work) = self.jobs.get(job).cloned() else {
            self.frontier.skipped(self.frontier.spot(host, job));
            self.give_back(host.part, FrontierItem::new(job, claimed));
            return Ok(());
        };
        let entry = &claimed.entry;
        if let Some(message) = self.places.take_condemned(entry.id) {
            self.skip(host, &work, claimed, |at, batch, claimed| {
                finish::internal_error(at, batch, &work, claimed, &message)
            });
        } else if entry.seen_run < work.run && work.kind == RunKind::Full {
            self.skip(host, &work, claimed, |at, batch, claimed| {
                finish::stale(at, batch, &work, &claimed.entry)
            });
        } else if let Some(detail) = claimed.too_far.clone() {
            let (code, reason) = (ReasonCode::Hops, RemoveReason::HopLimit);
            self.exclude(host, &work, claimed, Exclusion { code, detail: &detail, reason });
        } else if work.ends(entry) {
            self.skip(host, &work, claimed, |at, batch, claimed| {
                finish::expired(at, batch, &work, claimed)
            });
        } else {
            match &work.source {
                JobSource::Web(_) => return self.ask_web(host, work, claimed),
                JobSource::Other(repository) => {
                    let repository = repository.clone();
                    self.ask_repository(host, work, claimed, &*repository);
                }
            }
        }
        Ok(())
    }

    fn ask_web(
        &mut self,
        host: HostKey,
        work: Arc<JobWork>,
        claimed: ClaimedDocument,
    ) -> Result<()> {
        let Some(web) = work.web() else { return Ok(()) };
        let entry = &claimed.entry;
        if entry.role.is_requisite() && !web.requisites {
            let detail = "the job does not take what its pages need any more";
            let (code, reason) = (ReasonCode::Scope, RemoveReason::OutOfScope);
            self.exclude(host, &work, claimed, Exclusion { code, detail, reason });
            return Ok(());
        }
        // A link was judged when it was found; what is rechecked may not belong any more.
        if entry.done_run.is_some()
            && let Err(cut) = web.scope.judge_as(entry.looked_at_as(), &entry.docid, entry.hops)
        {
            let (code, reason) = (cut.code(), RemoveReason::OutOfScope);
            let detail = web.scope.explain(cut);
            self.exclude(host, &work, claimed, Exclusion { code, detail: &detail, reason });
            return Ok(());
        }
        if let Some(closed) = self.links.closed(&work, &claimed) {
            self.skip(host, &work, claimed, |at, batch, claimed| {
                finish::unwanted(at, batch, &work, &claimed.entry, &closed)
            });
            return Ok(());
        }
        match web.spec.robots {
            RobotsFor::None => self.ask_in_session(host, work.clone(), claimed),
            _ => self.ask_by_robots(host, work.clone(), claimed),
        }
    }

    /// Asks for a document that may be asked for, in a session if its site wants one.
    fn ask_in_session(
        &mut self,
        host: HostKey,
        job: Arc<JobWork>,
        claimed: ClaimedDocument,
    ) -> Result<()> {
        let session = match self.access(&job, &claimed.entry.docid) {
            Ok(SessionAccess::Open) => None,
            Ok(SessionAccess::In(session)) => Some(session),
            Ok(SessionAccess::Waits) => {
                self.frontier.skipped(job.spot(host));
                let event = job.login_event(&claimed.entry.docid).unwrap_or_default();
                self.wait_for(host, &job, claimed, event);
                return Ok(());
            }
            Ok(SessionAccess::Failed(failure)) => {
                let reason = Reason::known(ReasonCode::Login, Some(&failure.why));
                let why = LeftForLater { reason, until_ms: failure.until_ms };
                self.skip(host, &job, claimed, |at, batch, claimed| {
                    finish::later(at, batch, &job, claimed, why)
                });
                return Ok(());
            }
            Err(error) if error.passes() => {
                self.frontier.skipped(job.spot(host));
                self.give_back(host.part, FrontierItem::new(job.id, claimed));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.fetch(host, job, claimed, session);
        Ok(())
    }

    /// Asks for a document that is not on the web: nobody has to be spared, nobody forbids it.
    fn ask_repository(
        &mut self,
        host: HostKey,
        work: Arc<JobWork>,
        claimed: ClaimedDocument,
        repository: &dyn Repository,
    ) {
        match repository.unwanted(&claimed.entry.docid) {
            Some((code, detail)) => {
                let reason = RemoveReason::OutOfScope;
                self.exclude(host, &work, claimed, Exclusion { code, detail: &detail, reason });
            }
            None => self.fetch(host, work, claimed, None),
        }
    }

    /// Sends a document to be had.
    fn fetch(
        &mut self,
        host: HostKey,
        job: Arc<JobWork>,
        claimed: ClaimedDocument,
        session: Option<Arc<Session>>,
    ) {
        let bandwidth = self.hosts.bandwidth(host, &job);
        let task = DocumentTask { host, claimed, job, bandwidth, session };
        self.threads.fetch(Task::Document(Box::new(task)));
    }

    /// Something was not asked for after all: it is as it was.
    pub(super) fn on_not_asked(&mut self, task: Task) {
        match task {
            Task::Document(task) => {
                self.frontier.skipped(task.job.spot(task.host));
                self.give_back(task.host.part, FrontierItem::new(task.job.id, task.claimed));
            }
            Task::Login(task) => self.end_login(&task, None),
            Task::Robots(RobotsTask { host, job, .. }) => {
                let delay_ms = self.hosts.delay_ms(host, job.settings.delays());
                let pause = Pause { ended_ms: clock::now_ms(), delay_ms, not_before_ms: 0 };
                self.frontier.finished(job.spot(host), pause);
            }
        }
    }

    /// The address of something is asked enough: it waits where it was, or, if it is for long,
    /// goes back with all that waits at its host.
    pub(super) fn on_not_yet(&mut self, task: Task, until_ms: i64) {
        let host = match task {
            Task::Document(task) => {
                let (spot, item) =
                    (task.job.spot(task.host), FrontierItem::new(task.job.id, task.claimed));
                let homeless = self.frontier.put_off(spot, Some(item), until_ms);
                homeless.into_iter().for_each(|item| self.give_back(task.host.part, item));
                task.host
            }
            Task::Robots(task) => {
                let _ = self.frontier.put_off(task.job.spot(task.host), None, until_ms);
                task.host
            }
            Task::Login(task) => return self.end_login(&task, None),
        };
        if until_ms > clock::now_ms() + BLOCKED_MS_MAX {
            for item in self.frontier.give_back(host) {
                self.give_back(host.part, item);
            }
        }
    }

    /// Books a request to a host. Returns until when the host is left alone.
    pub(super) fn book_request(
        &mut self,
        host: HostKey,
        job: &JobWork,
        request: HostRequest<'_>,
        bytes: i64,
    ) -> i64 {
        let now_ms = clock::now_ms();
        let ended_ms = self.schedule.ended_ms(request.ended_ms, now_ms);
        let request = HostRequest { ended_ms, ..request };
        let booked = self.hosts.on_request(host, job.settings.delays(), request, bytes);
        let BookedRequest { pause, visit } = booked;
        self.frontier.finished(job.spot(host), pause);
        if self.parts.has(host.part) {
            self.places.book_visit(job.place(host.part), visit);
        }
        if pause.not_before_ms > now_ms + BLOCKED_MS_MAX {
            for item in self.frontier.give_back(host) {
                self.give_back(host.part, item);
            }
        }
        pause.not_before_ms
    }

    /// A document that will not be asked for now: ready again with the next commit.
    pub(super) fn give_back(&mut self, part: Part, item: FrontierItem) {
        if !self.parts.holds(item.claimed.lease(part)) {
            self.frontier.committed(1);
            return;
        }
        let place = store::tables::queue::Place { part, job: item.job };
        self.places.put_back(place, &item.claimed.entry, clock::now_ms());
    }
}
