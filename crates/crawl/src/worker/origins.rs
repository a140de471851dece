//! What the worker does with robots.txt of an origin: takes it in, and names its sitemaps.
//!
//! Invariant: a job hears of an origin's sitemaps at least once in a run, and again when
//! robots.txt has been asked for again.

use super::Worker;
use super::hosts::Request;
use super::job::JobWork;
use super::tasks::{RobotsDone, RobotsTask};
use crate::fetch::{Followed, Outcome, Reason};
use store::ids::Part;
use store::panics::caught;

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
        // What it names now may be news.
        self.told.remove(&(job.id, origin.clone()));
        self.tell_sitemaps(host.part, &job, &origin);
        let place = self.places.entry((host.part, job.id)).or_default();
        place.batch.robots.push(stored);
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
