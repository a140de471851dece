//! What the worker does with robots.txt of an origin: takes it in, and names its sitemaps.
//!
//! Invariant: a job hears of an origin's sitemaps at least once in a run, and again when
//! robots.txt has been asked for again.

use super::Worker;
use super::finish;
use super::hosts::Request;
use super::job::JobWork;
use super::tasks::{Claimed, RobotsDone, RobotsTask};
use crate::ask_again::ROBOTS_UNREACHABLE;
use crate::conduct::Attends;
use crate::fetch::{Followed, Outcome, Reason};
use crate::frontier::HostKey;
use crate::robots::{self, CANNOT_BE_HAD, Verdict};
use store::chunkfile::document::RemoveReason;
use store::ids::Part;
use store::panics::caught;
use store::tables::history::Activity;
use store::tables::queue;
use store::tables::robots::Stored;

/// Origins that are remembered for having told their sitemaps; to tell them twice is
/// only work.
const TOLD_MAX: usize = 100_000;
/// Sitemaps taken from one robots.txt.
const SITEMAPS_MAX: usize = 100;

impl Worker {
    /// robots.txt has been fetched, or not.
    pub(super) fn robots_txt(&mut self, done: RobotsDone) {
        let RobotsDone { task, followed, began_ms, ended_ms } = done;
        let RobotsTask { host, origin, job, .. } = task;
        if let Some((web, reason)) = job.web().zip(robots::refusal(&followed)) {
            // Nobody was asked, so nothing is known of its robots.txt.
            self.robots.refused(&origin, (&web.guard, reason), ended_ms);
            let request = Request { outcome: &followed.outcome, began_ms, ended_ms };
            self.visited(host, &job, request, 0);
            return;
        }
        if let Outcome::Retry { reason, .. } = &followed.outcome {
            self.progress.troubled(job.run_key(), &reason.code(), &format!("{origin}/robots.txt"));
        }
        let parsed = caught(|| self.robots.answered(&origin, &followed, ended_ms));
        // One that cannot be read because of a bug of ours closes its origin, as trouble does.
        let stored = parsed.unwrap_or_else(|_| {
            let outcome = Outcome::Retry { after_ms: None, reason: Reason::Internal };
            let unread = Followed { outcome, ..followed.clone() };
            self.robots.answered(&origin, &unread, ended_ms)
        });
        let product = job.web().map_or("", |web| web.spec.product());
        self.hosts.get(host).crawl_delay_ms = self.robots.crawl_delay_ms(&origin, product);
        let outcome = match &followed.outcome {
            // A robots.txt that is not there is a good answer.
            Outcome::Failed { .. } | Outcome::Gone { .. } => &Outcome::Gone { status: 404 },
            other => other,
        };
        self.visited(host, &job, Request { outcome, began_ms, ended_ms }, 0);
        if !self.parts.contains_key(&host.part) {
            return;
        }
        let failure = followed.outcome.reason().filter(|_| stored.failing_ms.is_some());
        let failure = failure.map(|reason| (&stored, reason));
        let failure = failure.map(|it| self.robots_activity(&job, it, (began_ms, ended_ms)));
        // What it names now may be news.
        self.told.remove(&(job.id, origin.clone()));
        self.tell_sitemaps(host.part, &job, &origin);
        let place = self.places.entry((host.part, job.id)).or_default();
        place.batch.history.extend(failure);
        place.batch.robots.push(stored);
    }

    /// That robots.txt could not be had, for the history: nothing of its origin is asked for
    /// because of it.
    fn robots_activity(
        &self,
        job: &JobWork,
        (stored, reason): (&Stored, Reason),
        (start_ms, end_ms): (i64, i64),
    ) -> Activity {
        let code = || reason.code().into_owned();
        Activity {
            id: self.ids.next(),
            connection: job.connection,
            job: Some(job.id),
            kind: "robots".to_owned(),
            entity: format!("{}/robots.txt", stored.origin),
            bytes: None,
            result: Some(stored.status.map_or_else(code, |status| status.to_string())),
            description: Some(reason.to_string()),
            start_ms,
            end_ms,
        }
    }

    /// What nobody answered before this time is asked again: a run begins by itself, and
    /// one that somebody goes on with begins with that.
    pub(super) fn asks_again_before_ms(&self, job: &JobWork) -> i64 {
        match self.attends {
            Attends::One(one) if one == job.id => job.began_ms.max(self.began_ms),
            _ => job.began_ms,
        }
    }

    /// A document that robots.txt, or the lack of one, keeps from being asked for.
    pub(super) fn closed_by_robots(
        &mut self,
        host: HostKey,
        (work, claimed): (&JobWork, Claimed),
        verdict: Verdict,
    ) {
        let docid = claimed.entry.docid.clone();
        self.skip_named(host, (work, &docid), |at, batch| match verdict {
            Verdict::Refused(reason) => finish::refused(at, batch, (work, claimed), reason),
            Verdict::Closed { until_ms, why } => {
                let words = format!("{CANNOT_BE_HAD}{why}");
                let reason = queue::Reason::new(ROBOTS_UNREACHABLE, Some(&words));
                finish::later(at, batch, (work, claimed), (reason, until_ms))
            }
            Verdict::Forbidden { rule } => {
                let why = ("robots", rule.as_str(), RemoveReason::Robots);
                finish::forbidden(at, batch, (work, claimed), why)
            }
            // Nobody comes here with these; it would wait for the next look.
            Verdict::Allowed | Verdict::Unknown => {
                let reason = queue::Reason::new(ROBOTS_UNREACHABLE, None);
                finish::later(at, batch, (work, claimed), (reason, 0))
            }
        });
    }

    /// Names the sitemaps of an origin to a job, once in a run.
    pub(super) fn tell_sitemaps(&mut self, part: Part, job: &JobWork, origin: &str) {
        let key = (job.id, origin.to_owned());
        let Some(web) = job.web() else { return };
        let Some(sitemaps) = self.robots.sitemaps(origin) else { return };
        if self.told.contains(&key) {
            return;
        }
        let sitemaps: Vec<String> = sitemaps
            .take(SITEMAPS_MAX)
            .filter_map(|url| page::url::canonical(url, &web.spec.policy).ok())
            .filter(|url| web.scope.judge(url, 1).is_ok())
            .collect();
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        self.told.insert(key);
        let place = self.places.entry((part, job.id)).or_default();
        place.batch.list((job, &self.ids, &self.known), origin, sitemaps);
    }
}
