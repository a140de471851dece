//! Whether and when hosts may be asked: what is known of them, the throttles of connections,
//! robots.txt and sessions.
//!
//! What is known of a host stands in `hosts`, which has the breaker and, of new hosts of one
//! domain, `admissions`; `throttling` has the paces of connections. How much one IP address is
//! asked for, whatever hosts lead there, is not counted here but by the threads that fetch
//! (`fetch::addresses`); who comes too soon comes back as `FetchReport::NotYet`.
//!
//! Pure: rows are read and written by whoever calls. Invariant: a host is asked only when its
//! delay and its breaker, the throttles of the connection, its robots.txt and its login allow it.

use crate::fetch::{Bandwidth, sentences};
use crate::frontier::{HostKey, Pace, Pause, Politeness};
use crate::job::{Delays, JobWork};
use crate::robots::RobotsCache;
use crate::worker::ask::hosts::{HostRequest, Hosts};
use crate::worker::ask::sessions::Sessions;
use crate::worker::ask::throttling::{PartShare, ThrottledConnections};
use crate::worker::finish::LeftAlone;
use page::url::origin_of;
use std::sync::Arc;
use store::ids::Part;
use store::tables::bins::{Bin, Visit};

#[derive(Default)]
pub struct HostAccess {
    hosts: Hosts,
    throttling: ThrottledConnections,
    robots: RobotsCache,
    sessions: Sessions,
}

/// How the part of a host is held.
#[derive(Debug, Clone, Copy)]
pub struct PartTerms {
    /// Since when hosts wait a full delay; 0 if they need not.
    pub since_ms: i64,
    /// How many parts this process holds.
    pub held: usize,
}

/// How a host may be asked for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostTerms {
    pub politeness: Politeness,
    pub pace: Pace,
}

/// What follows from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookedRequest {
    pub pause: Pause,
    /// What the host's row is told of it.
    pub visit: Visit,
}

impl HostAccess {
    pub fn throttling(&self) -> &ThrottledConnections {
        &self.throttling
    }

    pub fn throttling_mut(&mut self) -> &mut ThrottledConnections {
        &mut self.throttling
    }

    pub fn robots(&self) -> &RobotsCache {
        &self.robots
    }

    pub fn robots_mut(&mut self) -> &mut RobotsCache {
        &mut self.robots
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub fn sessions_mut(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    /// How a host that has work may be asked for a job, as far as the tables and this process
    /// know it; `None` if a throttle stops it.
    pub fn admit(
        &mut self,
        work: &JobWork,
        host: HostKey,
        bin: &Bin,
        part: PartTerms,
        now_ms: i64,
    ) -> Option<HostTerms> {
        let delays = work.settings.delays();
        self.hosts.learn(host, bin, delays, now_ms);
        let pace = self.pace(work, host, part)?;
        let mut politeness = self.hosts.politeness(host, delays, part.since_ms);
        if bin.fetches == 0 && delays.job_ms > 0 {
            let domain = work.shared.suffixes.grouping_domain(&bin.name);
            let not_before_ms = self.hosts.admitted_ms(domain, host, now_ms);
            politeness.next_ms = politeness.next_ms.max(not_before_ms);
        }
        Some(HostTerms { politeness, pace })
    }

    /// What throttles allow of a host for a job; `None` if one stops it.
    pub fn pace(&mut self, work: &JobWork, host: HostKey, part: PartTerms) -> Option<Pace> {
        let known = self.hosts.get(host);
        let limits = self.throttling.limits(work.connection, host.bin, &known.name);
        // Not before a delay after the last request, which whoever sent it has written.
        let last_ms = known.next_ms.max(part.since_ms);
        let share = PartShare::of(work, part.held);
        limits.stopped_by.is_none().then(|| share.pace(&limits, last_ms))
    }

    /// What all who read from a host for a job share, if it is bounded.
    pub fn bandwidth(&mut self, host: HostKey, job: &JobWork) -> Option<Arc<Bandwidth>> {
        let name = &self.hosts.get(host).name;
        self.throttling.bandwidth(job.connection, host.bin, name)
    }

    /// The delay between requests of a job to a host.
    pub fn delay_ms(&mut self, host: HostKey, delays: Delays) -> i64 {
        self.hosts.get(host).delay_ms(delays)
    }

    /// When a host may be asked next.
    pub fn next_ms(&mut self, host: HostKey) -> i64 {
        self.hosts.get(host).next_ms
    }

    /// What robots.txt asks a host's crawlers for, if it does.
    pub fn set_crawl_delay(&mut self, host: HostKey, crawl_delay_ms: Option<i64>) {
        self.hosts.get(host).crawl_delay_ms = crawl_delay_ms;
    }

    /// A request to a host has ended, with so many bytes.
    pub fn on_request(
        &mut self,
        host: HostKey,
        delays: Delays,
        request: HostRequest<'_>,
        bytes: i64,
    ) -> BookedRequest {
        let known = self.hosts.get(host);
        let not_before_ms = known.ended(request);
        let delay_ms = known.delay_ms(delays);
        known.next_ms = known.next_ms.max(request.ended_ms + delay_ms);
        let visit = Visit {
            fetches: i64::from(!request.outcome.is_unasked()),
            errors: i64::from(request.outcome.is_failure()),
            bytes,
            busy_ms: request.busy_ms,
            ..known.visit(host.bin)
        };
        let pause = Pause { ended_ms: request.ended_ms, delay_ms, not_before_ms };
        BookedRequest { pause, visit }
    }

    /// That a host is not asked now, and why, in a sentence.
    pub fn describe_wait(&mut self, host: HostKey, is_throttled: bool) -> String {
        let host = self.hosts.get(host);
        let why = match is_throttled {
            true => "a throttle of its connection",
            false => host.blocked_by.as_deref().unwrap_or("its delay"),
        };
        format!("waiting for {} ({why})", host.name)
    }

    /// What keeps a document's host from being asked now.
    pub fn left_alone(&mut self, work: &JobWork, host: HostKey, docid: &str) -> LeftAlone {
        let name = work.address(docid).host;
        let limits = self.throttling.limits(work.connection, host.bin, name);
        if let Some(throttle) = &limits.stopped_by {
            return LeftAlone::Throttle(throttle.clone());
        }
        let known = self.hosts.get(host);
        if let (Some(_), Some(code)) = (known.blocked_ms, known.blocked_by.as_deref()) {
            let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
            return LeftAlone::Because(format!("{name} is blocked after errors: {words}"));
        }
        match self.robots.trouble(origin_of(docid)) {
            Some(why) => {
                LeftAlone::Because(format!("the robots.txt of {name} could not be fetched: {why}"))
            }
            None => LeftAlone::Unknown,
        }
    }

    /// Forgets hosts without work when there are many.
    pub fn tidy(&mut self, has_work: impl Fn(HostKey) -> bool) {
        self.hosts.tidy(has_work);
    }

    /// Forgets hosts whose breaker is open, as far as the tables know all there is of them:
    /// somebody may have closed it there.
    pub fn forget_blocked(&mut self, is_stored: impl Fn(HostKey) -> bool) {
        self.hosts.forget_blocked(is_stored);
    }

    /// Forgets the hosts of a part that somebody else holds now.
    pub fn forget(&mut self, part: Part) {
        self.hosts.forget(part);
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        self.hosts.shift(jump_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::{Outcome, Reason};
    use crate::job::fixture::work;
    use store::ids::BinId;
    use store::tables::throttles::Throttle;

    const HOST: HostKey = HostKey { part: Part(1), bin: BinId(2) };
    const HELD: PartTerms = PartTerms { since_ms: 0, held: 1 };
    const URL: &str = "http://a.example/1";

    fn bin(fetches: i64) -> Bin {
        Bin {
            bin: HOST.bin,
            name: "a.example".into(),
            delay_ms: None,
            next_ms: 0,
            failures: 0,
            blocked_ms: None,
            blocked_by: None,
            documents: 1,
            fetches,
            errors: 0,
            bytes: 0,
            busy_ms: 0,
        }
    }

    fn stop(access: &mut HostAccess, work: &JobWork, matches: &str) {
        let throttle = Throttle {
            matches: matches.to_owned(),
            description: None,
            per_ms: Some(0.0),
            connections_max: None,
            bytes_per_s_max: None,
        };
        access.throttling_mut().set(work.connection, 1, &[throttle]);
    }

    #[test]
    fn a_host_that_a_throttle_stops_is_not_admitted() {
        let (mut access, work) = (HostAccess::default(), work(1));
        let terms = access.admit(&work, HOST, &bin(9), HELD, 50_000).expect("nothing stops it");
        assert_eq!(terms.politeness.delay_ms, work.settings.delay_ms);
        stop(&mut access, &work, "a\\.example");
        assert_eq!(access.admit(&work, HOST, &bin(9), HELD, 50_000), None);
        let why = access.left_alone(&work, HOST, URL);
        assert!(matches!(why, LeftAlone::Throttle(it) if it == "a\\.example"));
    }

    #[test]
    fn whoever_held_the_part_before_may_have_asked_a_moment_ago() {
        let (mut access, work) = (HostAccess::default(), work(1));
        let since = PartTerms { since_ms: 49_900, ..HELD };
        let terms = access.admit(&work, HOST, &bin(9), since, 50_000).expect("nothing stops it");
        assert_eq!(terms.politeness.next_ms, 49_900 + work.settings.delay_ms);
    }

    #[test]
    fn a_request_is_booked_and_its_host_waits() {
        let (mut access, work) = (HostAccess::default(), work(1));
        let delays = work.settings.delays();
        let outcome = Outcome::Gone { status: 404 };
        let request =
            HostRequest { outcome: &outcome, began_ms: 900, ended_ms: 1_000, busy_ms: 100 };
        let BookedRequest { pause, visit } = access.on_request(HOST, delays, request, 7);
        assert_eq!((pause.ended_ms, pause.not_before_ms), (1_000, 0));
        assert_eq!(pause.delay_ms, access.delay_ms(HOST, delays));
        assert_eq!((visit.fetches, visit.errors, visit.bytes, visit.busy_ms), (1, 0, 7, 100));
        assert_eq!(access.next_ms(HOST), 1_000 + pause.delay_ms);
        assert!(access.describe_wait(HOST, false).ends_with("(its delay)"));
        assert!(access.describe_wait(HOST, true).ends_with("(a throttle of its connection)"));
    }

    #[test]
    fn why_a_host_is_left_alone_is_known_while_its_breaker_is_open() {
        let (mut access, work) = (HostAccess::default(), work(1));
        assert!(matches!(access.left_alone(&work, HOST, URL), LeftAlone::Unknown));
        let down = Reason::ConnectRefused.outcome();
        for number in 0..5 {
            let began_ms = number * 1_000_000;
            let ended_ms = began_ms + 10;
            let request = HostRequest { outcome: &down, began_ms, ended_ms, busy_ms: 10 };
            access.on_request(HOST, work.settings.delays(), request, 0);
        }
        assert!(access.describe_wait(HOST, false).ends_with("(connect-refused)"));
        let LeftAlone::Because(why) = access.left_alone(&work, HOST, URL) else { panic!() };
        assert!(why.starts_with("a.example is blocked after errors"), "{why}");
    }
}
