//! What the worker knows of the hosts it visits: their delays, and the breaker that
//! leaves a host in trouble alone.
//!
//! Pure. Relies on `fetch::backoff` for how long. Invariants: a host is left alone at
//! least as long as it asks for; failures that overlap in time are one failure; an
//! answer of any kind closes the breaker.

use crate::fetch::{Outcome, Reason, backoff};
use crate::frontier::{HostKey, Politeness};
use crate::job::Delays;
use crate::stored_times;
use crate::worker::ask::admissions::Admissions;
use std::collections::HashMap;
use store::tables::bins::{Bin, Visit};

/// Failures in a row after which the breaker opens; the first few may be bad luck.
const FAILURES_FORGIVEN: i64 = 2;
/// Hosts remembered beyond those with work.
const IDLE_HOSTS_MAX: usize = 10_000;

#[derive(Debug, Clone, Default)]
pub struct HostRecord {
    pub name: String,
    /// What robots.txt asks for, or what was asked for before.
    pub crawl_delay_ms: Option<i64>,
    /// Not before this time.
    pub next_ms: i64,
    /// Failures in a row.
    pub failures: i64,
    /// The breaker is open until then.
    pub blocked_ms: Option<i64>,
    /// Why it is open. Without a time: why we refuse to ask the host at all.
    pub blocked_by: Option<String>,
    /// When the last failure was counted.
    failed_ms: i64,
}

/// One request, as a host's record sees it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct HostRequest<'a> {
    pub outcome: &'a Outcome,
    pub began_ms: i64,
    pub ended_ms: i64,
    /// How long it took, whatever was done to the clock meanwhile.
    pub busy_ms: i64,
}

impl HostRequest<'_> {
    pub fn new(outcome: &Outcome, began_ms: i64, ended_ms: i64) -> HostRequest<'_> {
        HostRequest { outcome, began_ms, ended_ms, busy_ms: (ended_ms - began_ms).max(0) }
    }
}

impl HostRecord {
    /// A host as the tables know it, to a job with these delays. Times that cannot be right
    /// are not believed.
    pub fn from_bin(bin: &Bin, delays: Delays, now_ms: i64) -> HostRecord {
        let mut host = HostRecord {
            name: bin.name.clone(),
            crawl_delay_ms: bin.delay_ms,
            next_ms: 0,
            failures: bin.failures,
            blocked_ms: bin.blocked_ms.map(|ms| stored_times::blocked_until_ms(ms, now_ms)),
            blocked_by: bin.blocked_by.clone(),
            failed_ms: 0,
        };
        let delay_ms = host.delay_ms(delays);
        let next_ms = stored_times::next_request_ms(bin.next_ms, delay_ms, now_ms);
        host.next_ms = next_ms.max(host.blocked_ms.unwrap_or(0));
        host
    }

    /// The clock was set: what was to come in some seconds comes in as many.
    fn shift(&mut self, jump_ms: i64) {
        self.next_ms = self.next_ms.saturating_add(jump_ms);
        self.failed_ms = self.failed_ms.saturating_add(jump_ms);
        self.blocked_ms = self.blocked_ms.map(|ms| ms.saturating_add(jump_ms));
    }

    /// The delay between requests of a job to this host.
    pub fn delay_ms(&self, delays: Delays) -> i64 {
        let asked_ms = self.crawl_delay_ms.unwrap_or(0).min(delays.crawl_delay_max_ms);
        delays.job_ms.max(asked_ms)
    }

    /// A request has ended. Returns until when the host is left alone, beyond its delay.
    pub fn ended(&mut self, request: HostRequest<'_>) -> i64 {
        let Some((reason, asked_ms)) = host_trouble(request.outcome) else {
            self.failures = 0;
            let refusal = request.outcome.reason().filter(|_| request.outcome.is_unasked());
            (self.blocked_ms, self.blocked_by) = (None, refusal.map(|it| it.code().into_owned()));
            return 0;
        };
        // Requests that were under way together failed together.
        if request.began_ms >= self.failed_ms {
            self.failures += 1;
            self.failed_ms = request.ended_ms;
        }
        let counted = u32::try_from(self.failures - FAILURES_FORGIVEN).unwrap_or(0);
        let wait_ms = match backoff::wait_ms(counted, asked_ms) {
            0 => return 0,
            wait_ms => i64::try_from(wait_ms).unwrap_or(i64::MAX),
        };
        let until_ms = request.ended_ms.saturating_add(wait_ms);
        let until_ms = self.blocked_ms.map_or(until_ms, |blocked_ms| blocked_ms.max(until_ms));
        self.blocked_ms = Some(until_ms);
        self.blocked_by = Some(reason.code().into_owned());
        self.next_ms = self.next_ms.max(until_ms);
        until_ms
    }

    /// What the host's row is told.
    pub fn visit(&self, bin: store::ids::BinId) -> Visit {
        Visit {
            bin,
            next_ms: self.next_ms,
            delay_ms: self.crawl_delay_ms,
            failures: self.failures,
            blocked_ms: self.blocked_ms,
            blocked_by: self.blocked_by.clone(),
            fetches: 0,
            errors: 0,
            bytes: 0,
            busy_ms: 0,
        }
    }
}

/// Trouble that is about the host and not about one document, with what the host
/// asked for.
fn host_trouble(outcome: &Outcome) -> Option<(Reason, Option<u64>)> {
    let Outcome::Retry { after_ms, reason } = outcome else { return None };
    let of_host = match reason {
        Reason::Status(429 | 503) => true,
        Reason::Status(_) => after_ms.is_some(),
        _ => true,
    };
    of_host.then_some((*reason, *after_ms))
}

/// The hosts with work, and some that had it lately.
#[derive(Default)]
pub struct Hosts {
    hosts: HashMap<HostKey, HostRecord>,
    admissions: Admissions,
}

impl Hosts {
    /// When a host of a domain that was never asked may be asked.
    pub fn admitted_ms(&mut self, domain: &str, key: HostKey, now_ms: i64) -> i64 {
        self.admissions.not_before_ms(domain, key, now_ms)
    }

    /// Takes over what the tables know, unless more is known here.
    pub fn learn(
        &mut self,
        key: HostKey,
        bin: &Bin,
        delays: Delays,
        now_ms: i64,
    ) -> &mut HostRecord {
        let told = HostRecord::from_bin(bin, delays, now_ms);
        let next_ms = told.next_ms;
        let host = self.hosts.entry(key).or_insert(told);
        // Another process may have asked it since this one did.
        host.next_ms = host.next_ms.max(next_ms);
        host
    }

    pub fn get(&mut self, key: HostKey) -> &mut HostRecord {
        self.hosts.entry(key).or_default()
    }

    /// How a host wants to be treated by a job, whose part is held since a time.
    pub fn politeness(&mut self, key: HostKey, delays: Delays, since_ms: i64) -> Politeness {
        let host = self.get(key);
        let delay_ms = host.delay_ms(delays);
        // Whoever held the part before may have asked a moment ago.
        let next_ms =
            if delay_ms > 0 { host.next_ms.max(since_ms + delay_ms) } else { host.next_ms };
        Politeness { delay_ms, next_ms }
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        self.hosts.values_mut().for_each(|host| host.shift(jump_ms));
        self.admissions.shift(jump_ms);
    }

    /// Forgets hosts without work when there are many.
    pub fn tidy(&mut self, has_work: impl Fn(HostKey) -> bool) {
        if self.hosts.len() > IDLE_HOSTS_MAX {
            self.hosts.retain(|key, _| has_work(*key));
        }
    }

    /// Forgets hosts whose breaker is open, as far as the tables know all there is of them:
    /// somebody may have closed it there.
    pub fn forget_blocked(&mut self, is_stored: impl Fn(HostKey) -> bool) {
        self.hosts.retain(|key, host| host.blocked_ms.is_none() || !is_stored(*key));
    }

    /// Forgets the hosts of a part that somebody else holds now.
    pub fn forget(&mut self, part: store::ids::Part) {
        self.hosts.retain(|key, _| key.part != part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;
    const DELAYS: Delays = Delays { job_ms: 1_000, crawl_delay_max_ms: 30_000 };

    fn failed(began_ms: i64, outcome: &Outcome) -> HostRequest<'_> {
        HostRequest { outcome, began_ms, ended_ms: began_ms + 10, busy_ms: 10 }
    }

    #[test]
    fn the_breaker_opens_after_a_few_failures_and_an_answer_closes_it() {
        let down = Reason::ConnectRefused.outcome();
        let mut host = HostRecord::default();
        let waits: Vec<i64> = (0..5)
            .map(|number| {
                let began_ms = number * 1_000_000;
                host.ended(failed(began_ms, &down)).max(began_ms + 10) - began_ms - 10
            })
            .collect();
        assert_eq!(waits, [0, 0, MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS]);
        assert_eq!(host.blocked_by.as_deref(), Some("connect-refused"));
        assert_eq!(host.ended(failed(9_000_000, &Outcome::Gone { status: 404 })), 0);
        assert_eq!((host.failures, host.blocked_ms), (0, None));
    }

    #[test]
    fn why_a_host_is_not_asked_at_all_is_remembered_without_a_time() {
        let refused = Reason::Address("loopback").outcome();
        let mut host = HostRecord::default();
        assert_eq!(host.ended(failed(0, &refused)), 0);
        assert_eq!((host.blocked_ms, host.blocked_by.as_deref()), (None, Some("address")));
        assert_eq!(host.ended(failed(9, &Outcome::Gone { status: 404 })), 0);
        assert_eq!(host.blocked_by, None);
        assert_eq!(host.ended(failed(9, &Reason::MediaType.outcome())), 0);
        assert_eq!(host.blocked_by, None, "that is about one document");
    }

    #[test]
    fn failures_at_the_same_time_are_one() {
        let down = Reason::FirstByteTimeout.outcome();
        let mut host = HostRecord::default();
        for _ in 0..32 {
            host.ended(failed(1_000, &down));
        }
        assert_eq!(host.failures, 1);
    }

    #[test]
    fn a_host_that_asks_for_time_gets_it_at_once() {
        let busy = Outcome::Retry { after_ms: Some(120_000), reason: Reason::Status(503) };
        assert_eq!(HostRecord::default().ended(failed(0, &busy)), 10 + 120_000);
    }

    #[test]
    fn one_broken_page_is_no_broken_host() {
        let broken = Reason::Status(500).outcome();
        let mut host = HostRecord::default();
        for number in 0..10 {
            assert_eq!(host.ended(failed(number * 1_000, &broken)), 0);
        }
        assert_eq!(host.failures, 0);
    }

    #[test]
    fn what_another_process_asked_since_counts() {
        let key = HostKey { part: store::ids::Part(1), bin: store::ids::BinId(2) };
        let bin = |next_ms| Bin {
            bin: key.bin,
            name: "a.example".into(),
            delay_ms: None,
            next_ms,
            failures: 0,
            blocked_ms: None,
            blocked_by: None,
            documents: 0,
            fetches: 0,
            errors: 0,
            bytes: 0,
            busy_ms: 0,
        };
        let mut hosts = Hosts::default();
        let mut next_ms = |stored_ms| hosts.learn(key, &bin(stored_ms), DELAYS, 100).next_ms;
        assert_eq!(next_ms(500), 500);
        assert_eq!(next_ms(900), 900);
        assert_eq!(next_ms(700), 900, "it never moves back");
    }

    #[test]
    fn a_crawl_delay_counts_up_to_a_cap() {
        let host = |asked| HostRecord { crawl_delay_ms: asked, ..HostRecord::default() };
        assert_eq!(host(Some(5_000)).delay_ms(DELAYS), 5_000);
        assert_eq!(host(Some(90_000)).delay_ms(DELAYS), 30_000);
        assert_eq!(host(Some(500)).delay_ms(DELAYS), 1_000);
        assert_eq!(host(None).delay_ms(Delays { job_ms: 0, ..DELAYS }), 0);
    }
}
