//! robots.txt of the origins a crawl visits: asked for once a day, remembered in
//! memory and in the database.
//!
//! Pure decisions over what came back; the worker fetches. Relies on
//! `page::robots::answer` for what each answer means. Invariants: an origin whose
//! robots.txt is not known is never asked for anything else, and trouble with it never
//! opens an origin; a refusal of our own says nothing of robots.txt, so it is not stored,
//! and counts only for jobs that may reach the same.

use crate::fetch::{FollowedChain, Guard, Outcome, Reason};
use page::robots::Robots;
use page::robots::answer::{RobotsDecision, RobotsFetch, good_for_ms, on_status};
use std::collections::{HashMap, VecDeque};
use store::tables::robots::StoredRobots;

/// Origins whose robots.txt is kept parsed; older ones are read again from the
/// database when they are needed.
const ORIGINS_MAX: usize = 10_000;
/// Bytes of robots.txt that are kept parsed, over all origins.
const BYTES_MAX: usize = 64 << 20;

/// How the words begin that a document waits with while robots.txt cannot be had; why
/// follows.
pub const CANNOT_BE_HAD: &str = "the robots.txt of its host could not be fetched: ";

/// What robots.txt says of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobotsPermission {
    /// It may be fetched.
    Allowed,
    /// A line forbids it.
    Forbidden {
        /// The line's number and text.
        rule: String,
    },
    /// robots.txt cannot be had, so nothing may be fetched until then.
    Closed {
        /// When it is asked for again.
        until_ms: i64,
        /// Why it cannot be had.
        why: String,
    },
    /// The origin itself may not be asked: its address, its port, its certificate.
    Refused(Reason),
    /// It must be asked for first.
    Unknown,
}

struct Origin {
    robots: Robots,
    stored: StoredRobots,
    /// Why the last request brought nothing, if this process made it.
    trouble: Option<Reason>,
    bytes: usize,
}

/// An origin that was not asked, because we refuse to.
struct RefusedOrigin {
    guard: Guard,
    reason: Reason,
    until_ms: i64,
}

/// What is asked of robots.txt.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct RobotsQuery<'a> {
    pub url: &'a str,
    pub product: &'a str,
    /// What the job may reach.
    pub guard: &'a Guard,
    /// When nobody answered before this time, it is asked again.
    pub again_before_ms: i64,
}

/// What the robots.txt of the origins visited lately say.
#[derive(Default)]
pub struct RobotsCache {
    origins: HashMap<String, Origin>,
    order: VecDeque<String>,
    refusals: HashMap<String, RefusedOrigin>,
    bytes: usize,
}

impl RobotsCache {
    /// Whether an origin is in memory, fresh or not.
    pub fn has(&self, origin: &str) -> bool {
        self.origins.contains_key(origin)
    }

    /// What is known of an origin says this of a URL in it.
    pub fn verdict(
        &self,
        origin: &str,
        question: RobotsQuery<'_>,
        now_ms: i64,
    ) -> RobotsPermission {
        let refusal = self.refusals.get(origin);
        let counts = |it: &&RefusedOrigin| it.until_ms > now_ms && it.guard == *question.guard;
        if let Some(refusal) = refusal.filter(counts) {
            return RobotsPermission::Refused(refusal.reason);
        }
        let Some(known) = self.origins.get(origin) else { return RobotsPermission::Unknown };
        let stored = &known.stored;
        if stored.expires_ms <= now_ms {
            return RobotsPermission::Unknown;
        }
        if stored.body.is_none() && stored.closed {
            let is_unanswered = stored.status.is_none();
            if is_unanswered && stored.asked_ms < question.again_before_ms {
                return RobotsPermission::Unknown;
            }
            return RobotsPermission::Closed { until_ms: stored.expires_ms, why: known.why() };
        }
        let verdict = known.robots.verdict(question.product, question.url);
        match verdict.rule {
            _ if verdict.allowed => RobotsPermission::Allowed,
            Some(rule) => {
                RobotsPermission::Forbidden { rule: format!("line {}: {}", rule.line, rule.text) }
            }
            None => RobotsPermission::Forbidden { rule: "the whole file".to_owned() },
        }
    }

    /// Why nothing of an origin may be asked for now, if its robots.txt cannot be had.
    pub fn trouble(&self, origin: &str) -> Option<String> {
        let known = self.origins.get(origin)?;
        (known.stored.body.is_none() && known.stored.closed).then(|| known.why())
    }

    /// The delay that an origin asks of a product.
    pub fn crawl_delay_ms(&self, origin: &str, product: &str) -> Option<i64> {
        let asked = self.origins.get(origin)?.robots.crawl_delay_ms(product)?;
        Some(i64::try_from(asked).unwrap_or(i64::MAX))
    }

    /// Sitemaps that an origin's robots.txt names; `None` where it is not known, or cannot
    /// be had just now.
    pub fn sitemaps(&self, origin: &str) -> Option<impl Iterator<Item = &str>> {
        let known = self.origins.get(origin)?;
        let is_had = known.stored.body.is_some() || !known.stored.closed;
        is_had.then(|| known.robots.sitemaps())
    }

    /// Takes over what the database remembers.
    pub fn restore(&mut self, stored: StoredRobots) {
        let robots = match (&stored.body, stored.closed) {
            (Some(body), _) => Robots::parse(body),
            (None, true) => Robots::disallow_all(),
            (None, false) => Robots::allow_all(),
        };
        let bytes = stored.body.as_ref().map_or(0, Vec::len) + 1_024;
        let origin = stored.origin.clone();
        self.drop_origin(&origin);
        self.bytes += bytes;
        self.order.push_back(origin.clone());
        self.origins.insert(origin, Origin { robots, stored, trouble: None, bytes });
        while self.origins.len() > ORIGINS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.origins.remove(&oldest).map_or(0, |dropped| dropped.bytes);
        }
    }

    fn drop_origin(&mut self, origin: &str) {
        if let Some(dropped) = self.origins.remove(origin) {
            self.bytes -= dropped.bytes;
            self.order.retain(|known| known != origin);
        }
    }

    /// A job's request for robots.txt was refused by ourselves.
    pub fn refused(&mut self, origin: &str, guard: &Guard, reason: Reason, now_ms: i64) {
        if self.refusals.len() >= ORIGINS_MAX {
            self.refusals.clear();
        }
        let until_ms = now_ms + good_for_ms(RobotsFetch::default(), None);
        let refusal = RefusedOrigin { guard: guard.clone(), reason, until_ms };
        self.refusals.insert(origin.to_owned(), refusal);
    }

    /// robots.txt was asked for. Returns what to remember in the database.
    pub fn answered(
        &mut self,
        origin: &str,
        followed: &FollowedChain,
        now_ms: i64,
    ) -> StoredRobots {
        self.refusals.remove(origin);
        let before = self.origins.get(origin).map(|known| &known.stored);
        let failing_ms = before.and_then(|it| it.failing_ms);
        let good_ms = before.and_then(|it| it.good_ms);
        let asked = RobotsFetch {
            status: followed.status(),
            redirects: u8::try_from(followed.hops.len()).unwrap_or(u8::MAX),
            last_good_age_ms: good_ms.map(|good_ms| now_ms - good_ms),
            unreachable_for_ms: failing_ms.map_or(0, |since_ms| now_ms - since_ms),
        };
        let kept = before.and_then(|it| it.body.clone());
        // A redirect that is still one was not followed to an end: as good as no file.
        let decision = match on_status(asked) {
            RobotsDecision::Follow => RobotsDecision::AllowAll,
            decided => decided,
        };
        let (body, closed) = match (decision, &followed.outcome) {
            (RobotsDecision::Parse, Outcome::Body(fetched)) => (Some(fetched.body.to_vec()), false),
            (RobotsDecision::KeepLast, _) => (kept, true),
            (RobotsDecision::DisallowAll, _) => (None, true),
            _ => (None, false),
        };
        let is_good = decision == RobotsDecision::Parse && body.is_some();
        let in_trouble = matches!(decision, RobotsDecision::KeepLast | RobotsDecision::DisallowAll);
        let stored = StoredRobots {
            origin: origin.to_owned(),
            status: asked.status.map(i64::from),
            body,
            closed,
            asked_ms: now_ms,
            good_ms: if is_good { Some(now_ms) } else { good_ms },
            failing_ms: in_trouble.then(|| failing_ms.unwrap_or(now_ms)),
            expires_ms: now_ms + good_for_ms(asked, max_age_ms(&followed.outcome)),
        };
        self.restore(stored.clone());
        if let Some(known) = self.origins.get_mut(origin) {
            known.trouble = followed.outcome.reason();
        }
        stored
    }
}

impl Origin {
    /// Why robots.txt cannot be had, in words.
    fn why(&self) -> String {
        match (self.trouble, self.stored.status) {
            (Some(reason), _) => reason.to_string(),
            (None, Some(status)) => format!("the server answered with status {status}"),
            (None, None) => "nobody answered".to_owned(),
        }
    }
}

/// The reason for which robots.txt was not asked for at all, if it is one of our own. Where
/// it leads elsewhere first, it is about that place, and robots.txt cannot be had.
pub fn refusal(followed: &FollowedChain) -> Option<Reason> {
    match followed.outcome {
        Outcome::Refused { reason } if followed.hops.is_empty() => Some(reason),
        _ => None,
    }
}

/// `max-age` of the answer's Cache-Control.
fn max_age_ms(outcome: &Outcome) -> Option<i64> {
    let Outcome::Body(fetched) = outcome else { return None };
    let value = fetched.header("cache-control")?.to_ascii_lowercase();
    let seconds: i64 =
        value.split(',').find_map(|part| part.trim().strip_prefix("max-age="))?.parse().ok()?;
    seconds.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::{Fetched, HeaderMap, Hop, Reason};

    const ORIGIN: &str = "http://a.example";
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

    fn body(text: &'static str) -> FollowedChain {
        let fetched = Fetched {
            status: 200,
            headers: HeaderMap::new(),
            body: text.into(),
            truncated: false,
            peer: ([127, 0, 0, 1], 80).into(),
            wire_bytes: 0,
        };
        ended(Outcome::Body(Box::new(fetched)))
    }

    fn ended(outcome: Outcome) -> FollowedChain {
        FollowedChain { outcome, url: format!("{ORIGIN}/robots.txt"), hops: Vec::new() }
    }

    fn verdict(cache: &RobotsCache, path: &str, now_ms: i64) -> RobotsPermission {
        judged(cache, path, &Guard::default(), 0, now_ms)
    }

    fn judged(
        cache: &RobotsCache,
        path: &str,
        guard: &Guard,
        again_before_ms: i64,
        now_ms: i64,
    ) -> RobotsPermission {
        let url = &format!("{ORIGIN}{path}");
        let question = RobotsQuery { url, product: "driftline", guard, again_before_ms };
        cache.verdict(ORIGIN, question, now_ms)
    }

    #[test]
    fn a_file_decides_for_a_day_and_is_then_asked_for_again() {
        let mut cache = RobotsCache::default();
        assert_eq!(verdict(&cache, "/", 0), RobotsPermission::Unknown);
        let text = "User-agent: *\nDisallow: /x\nCrawl-delay: 2\nSitemap: http://a.example/s.xml";
        let stored = cache.answered(ORIGIN, &body(text), 0);
        assert_eq!(verdict(&cache, "/", 1), RobotsPermission::Allowed);
        let rule = "line 2: Disallow: /x".to_owned();
        assert_eq!(verdict(&cache, "/x/y", 1), RobotsPermission::Forbidden { rule });
        assert_eq!(cache.crawl_delay_ms(ORIGIN, "driftline"), Some(2_000));
        assert!(cache.sitemaps(ORIGIN).unwrap().eq(["http://a.example/s.xml"]));
        assert_eq!(verdict(&cache, "/", DAY_MS), RobotsPermission::Unknown);
        let mut restarted = RobotsCache::default();
        restarted.restore(stored);
        assert_eq!(verdict(&restarted, "/", 1), RobotsPermission::Allowed);
    }

    #[test]
    fn no_file_opens_and_trouble_closes_unless_there_is_a_copy() {
        let mut cache = RobotsCache::default();
        cache.answered(ORIGIN, &ended(Outcome::Gone { status: 404 }), 0);
        assert_eq!(verdict(&cache, "/x", 1), RobotsPermission::Allowed);

        let mut cache = RobotsCache::default();
        let stored = cache.answered(ORIGIN, &ended(Reason::ConnectRefused.outcome()), 0);
        assert!(
            matches!(verdict(&cache, "/x", 1), RobotsPermission::Closed { until_ms, .. } if until_ms > 1)
        );
        assert_eq!(stored.failing_ms, Some(0));

        cache.answered(ORIGIN, &body("User-agent: *\nDisallow: /x"), DAY_MS);
        cache.answered(ORIGIN, &ended(Reason::Status(503).outcome()), 2 * DAY_MS);
        let now_ms = 2 * DAY_MS + 1;
        assert!(matches!(verdict(&cache, "/x", now_ms), RobotsPermission::Forbidden { .. }));
        assert_eq!(
            verdict(&cache, "/y", now_ms),
            RobotsPermission::Allowed,
            "the last copy stays in force"
        );
    }

    #[test]
    fn what_nobody_answered_is_asked_again_by_a_run_that_began_later() {
        let mut cache = RobotsCache::default();
        let guard = Guard::default();
        let stored = cache.answered(ORIGIN, &ended(Reason::ConnectRefused.outcome()), 10);
        let closed = judged(&cache, "/", &guard, 10, 11);
        assert!(
            matches!(&closed, RobotsPermission::Closed { why, .. } if why.contains("refused the connection")),
            "{closed:?}"
        );
        assert_eq!(judged(&cache, "/", &guard, 11, 12), RobotsPermission::Unknown);
        let mut restarted = RobotsCache::default();
        restarted.restore(stored);
        assert_eq!(judged(&restarted, "/", &guard, 11, 12), RobotsPermission::Unknown);

        cache.answered(ORIGIN, &ended(Reason::Status(503).outcome()), 20);
        let answered = judged(&cache, "/", &guard, 21, 22);
        assert!(
            matches!(answered, RobotsPermission::Closed { .. }),
            "somebody did answer: {answered:?}"
        );
    }

    #[test]
    fn a_refusal_of_our_own_holds_only_for_who_may_reach_no_more() {
        let mut cache = RobotsCache::default();
        let (public, private) =
            (Guard::default(), Guard { allow_private: true, ..Guard::default() });
        let reason = Reason::Address("loopback");
        let followed = ended(reason.outcome());
        assert_eq!(refusal(&followed), Some(reason));
        cache.refused(ORIGIN, &public, reason, 0);
        assert_eq!(judged(&cache, "/", &public, 0, 1), RobotsPermission::Refused(reason));
        assert_eq!(judged(&cache, "/", &private, 0, 1), RobotsPermission::Unknown);
        assert_eq!(
            judged(&cache, "/", &public, 0, DAY_MS),
            RobotsPermission::Unknown,
            "not for ever"
        );
        let (from, to) = (format!("{ORIGIN}/robots.txt"), "http://10.0.0.1/".to_owned());
        let elsewhere = FollowedChain { hops: vec![Hop { from, status: 302, to }], ..followed };
        assert_eq!(refusal(&elsewhere), None, "robots.txt leads there, the origin is another");
    }

    #[test]
    fn only_so_many_origins_are_kept() {
        let mut cache = RobotsCache::default();
        for number in 0..=ORIGINS_MAX {
            cache.answered(&format!("http://h{number}.example"), &body(""), 0);
        }
        assert_eq!(cache.origins.len(), ORIGINS_MAX);
        assert!(!cache.has("http://h0.example") && cache.has("http://h1.example"));
    }
}
