//! What the worker does with robots.txt of an origin: takes it in, and names its sitemaps.
//!
//! Invariant: a job hears of an origin's sitemaps at least once in a run, and again when
//! robots.txt has been asked for again.

use crate::batch::LinkContext;
use crate::fetch::{FollowedChain, Outcome, Reason};
use crate::frontier::HostKey;
use crate::job::JobWork;
use crate::robots::{self, CANNOT_BE_HAD, RobotsPermission, RobotsQuery};
use crate::worker::ask::hosts::HostRequest;
use crate::worker::ask::tasks::{ClaimedDocument, RobotsDone, RobotsTask, Task};
use crate::worker::finish::{self, Exclusion, LeftForLater};
use crate::worker::{FrontierItem, Worker};
use page::url::origin_of;
use std::sync::Arc;
use store::chunkfile::document::RemoveReason;
use store::ids::Part;
use store::panics::caught;
use store::tables::history::Activity;
use store::tables::queue;
use store::tables::queue::ReasonCode;
use store::tables::robots::{self as stored_robots, StoredRobots};
use store::{Result, clock};

/// Sitemaps taken from one robots.txt.
const SITEMAPS_MAX: usize = 100;

impl Worker {
    /// Asks for a document if robots.txt of its origin allows it; that is asked for first if it
    /// is not known.
    pub(crate) fn ask_by_robots(
        &mut self,
        host: HostKey,
        work: Arc<JobWork>,
        claimed: ClaimedDocument,
    ) -> Result<()> {
        let Some(web) = work.web() else { return Ok(()) };
        let origin = origin_of(&claimed.entry.docid).to_owned();
        if !self.hosts.robots().has(&origin) {
            let (part, wanted) = (host.part, origin.clone());
            match self.deps.db.read(move |tx| stored_robots::find(tx, part, &wanted)) {
                Ok(Some(stored)) => self.hosts.robots_mut().restore(stored),
                Ok(None) => {}
                // While the database is away nothing is known, so nothing is asked.
                Err(error) if error.passes() => {
                    self.frontier.skipped(work.spot(host));
                    self.give_back(part, FrontierItem::new(work.id, claimed));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.name_sitemaps(host.part, &work, &origin);
        let question = RobotsQuery {
            url: &claimed.entry.docid,
            product: web.spec.product(),
            guard: &web.guard,
            again_before_ms: self.jobs.asks_again_before_ms(&work),
        };
        match self.hosts.robots().verdict(&origin, question, clock::now_ms()) {
            RobotsPermission::Allowed => return self.ask_in_session(host, work.clone(), claimed),
            RobotsPermission::Unknown => {
                let (token, bandwidth) = (claimed.token, self.hosts.bandwidth(host, &work));
                self.frontier.hold(work.spot(host), FrontierItem::new(work.id, claimed));
                let job = work.clone();
                let task = RobotsTask { host, origin, job, token, bandwidth };
                self.threads.fetch(Task::Robots(task));
            }
            verdict => self.close_by_robots(host, &work, claimed, verdict),
        }
        Ok(())
    }

    /// robots.txt has been fetched, or not.
    pub(crate) fn on_robots_txt(&mut self, done: RobotsDone) {
        let RobotsDone { task, followed, began_ms, ended_ms } = done;
        let RobotsTask { host, origin, job, .. } = task;
        if let Some((web, reason)) = job.web().zip(robots::refusal(&followed)) {
            // Nobody was asked, so nothing is known of its robots.txt.
            self.hosts.robots_mut().refused(&origin, &web.guard, reason, ended_ms);
            let request = HostRequest::new(&followed.outcome, began_ms, ended_ms);
            self.book_request(host, &job, request, 0);
            return;
        }
        if let Outcome::Retry { reason, .. } = &followed.outcome {
            let url = format!("{origin}/robots.txt");
            self.deps.progress.troubled(job.run_key(), &reason.code(), &url);
        }
        let stored = self.parse_robots(&origin, &followed, ended_ms);
        let product = job.web().map_or("", |web| web.spec.product());
        let crawl_delay_ms = self.hosts.robots().crawl_delay_ms(&origin, product);
        self.hosts.set_crawl_delay(host, crawl_delay_ms);
        let outcome = match &followed.outcome {
            // A robots.txt that is not there is a good answer.
            Outcome::Failed { .. } | Outcome::Gone { .. } => &Outcome::Gone { status: 404 },
            other => other,
        };
        self.book_request(host, &job, HostRequest::new(outcome, began_ms, ended_ms), 0);
        if !self.parts.has(host.part) {
            return;
        }
        let failure = followed.outcome.reason().filter(|_| stored.failing_ms.is_some());
        let failure = failure.map(|reason| Activity {
            start_ms: began_ms,
            end_ms: ended_ms,
            ..failure_activity(self.deps.ids.next(), &job, &stored, reason)
        });
        // What it names now may be news.
        self.links.forget_sitemaps(job.id, &origin);
        self.name_sitemaps(host.part, &job, &origin);
        let place = job.place(host.part);
        self.places.note_history(place, failure);
        self.places.note_robots(place, stored);
    }

    /// One that cannot be read because of a bug of ours closes its origin, as trouble does.
    fn parse_robots(
        &mut self,
        origin: &str,
        followed: &FollowedChain,
        ended_ms: i64,
    ) -> StoredRobots {
        let robots = self.hosts.robots_mut();
        let parsed = caught(|| robots.answered(origin, followed, ended_ms));
        parsed.unwrap_or_else(|_| {
            let outcome = Outcome::Retry { after_ms: None, reason: Reason::Internal };
            let unread = FollowedChain { outcome, ..followed.clone() };
            robots.answered(origin, &unread, ended_ms)
        })
    }

    /// A document that robots.txt, or the lack of one, keeps from being asked for.
    fn close_by_robots(
        &mut self,
        host: HostKey,
        work: &JobWork,
        claimed: ClaimedDocument,
        verdict: RobotsPermission,
    ) {
        self.skip(host, work, claimed, |at, batch, claimed| match verdict {
            RobotsPermission::Refused(reason) => finish::refused(at, batch, work, claimed, reason),
            RobotsPermission::Closed { until_ms, why } => {
                let words = format!("{CANNOT_BE_HAD}{why}");
                let reason = queue::Reason::known(ReasonCode::RobotsUnreachable, Some(&words));
                finish::later(at, batch, work, claimed, LeftForLater { reason, until_ms })
            }
            RobotsPermission::Forbidden { rule } => {
                let reason = RemoveReason::Robots;
                let why = Exclusion { code: ReasonCode::Robots, detail: &rule, reason };
                finish::forbidden(at, batch, work, claimed, why)
            }
            // Nobody comes here with these; it would wait for the next look.
            RobotsPermission::Allowed | RobotsPermission::Unknown => {
                let reason = queue::Reason::known(ReasonCode::RobotsUnreachable, None);
                finish::later(at, batch, work, claimed, LeftForLater { reason, until_ms: 0 })
            }
        });
    }

    /// Names the sitemaps of an origin to a job, once in a run.
    fn name_sitemaps(&mut self, part: Part, job: &JobWork, origin: &str) {
        let Some(web) = job.web() else { return };
        let Some(sitemaps) = self.hosts.robots().sitemaps(origin) else { return };
        if !self.links.take_sitemaps(job.id, origin) {
            return;
        }
        let sitemaps: Vec<String> = sitemaps
            .take(SITEMAPS_MAX)
            .filter_map(|url| page::url::canonical(url, &web.spec.policy).ok())
            .filter(|url| web.scope.judge(url, 1).is_ok())
            .collect();
        let at = LinkContext { job, ids: &self.deps.ids, known: self.links.known() };
        self.places.note_links(job.place(part), |batch| batch.list(at, origin, sitemaps));
    }
}

/// That robots.txt could not be had, for the history: nothing of its origin is asked for
/// because of it.
fn failure_activity(id: i64, job: &JobWork, stored: &StoredRobots, reason: Reason) -> Activity {
    let code = || reason.code().into_owned();
    Activity {
        id,
        connection: job.connection,
        job: Some(job.id),
        kind: "robots".to_owned(),
        entity: format!("{}/robots.txt", stored.origin),
        bytes: None,
        result: Some(stored.status.map_or_else(code, |status| status.to_string())),
        description: Some(reason.to_string()),
        start_ms: 0,
        end_ms: 0,
    }
}
