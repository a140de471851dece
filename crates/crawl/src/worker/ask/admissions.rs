//! When new hosts of a registered domain are asked for the first time.
//!
//! Names under a domain cost its owner nothing, and each new host is one more that is asked at
//! its own pace: so new ones are let in one after the other, some at once and the rest at a
//! bounded rate. Invariants: a host is let in once, and is told the same moment whenever it is
//! asked about; what is remembered is bounded, and what is forgotten is let in later, not sooner.

use crate::frontier::HostKey;
use std::collections::HashMap;

/// Hosts of a domain that are let in at once: more than most domains have.
const AT_ONCE: i64 = 20;
/// From one of the others to the next.
const INTERVAL_MS: i64 = 500;
/// Domains remembered; above that, those without a host that waits are forgotten.
const DOMAINS_MAX: usize = 20_000;
/// Hosts of all domains that wait and are remembered.
const WAITING_MAX: usize = 50_000;

/// When hosts are let in.
#[derive(Debug, Default)]
pub struct Admissions {
    /// When the next host of a domain would be let in, if they came without a break.
    domains: HashMap<Box<str>, i64>,
    waiting: HashMap<HostKey, i64>,
}

impl Admissions {
    /// When a host that was never asked may be asked: now, or later.
    pub fn not_before_ms(&mut self, domain: &str, host: HostKey, now_ms: i64) -> i64 {
        if let Some(at_ms) = self.waiting.get(&host) {
            return *at_ms;
        }
        if self.domains.len() >= DOMAINS_MAX {
            self.domains.retain(|_, next_ms| *next_ms > now_ms);
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.retain(|_, at_ms| *at_ms > now_ms);
        }
        let next_ms = self.domains.entry(domain.into()).or_insert(now_ms);
        *next_ms = (*next_ms).max(now_ms) + INTERVAL_MS;
        let at_ms = (*next_ms - AT_ONCE * INTERVAL_MS).max(now_ms);
        if self.waiting.len() < WAITING_MAX {
            self.waiting.insert(host, at_ms);
        }
        at_ms
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        let moments = self.domains.values_mut().chain(self.waiting.values_mut());
        moments.for_each(|ms| *ms = ms.saturating_add(jump_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::{BinId, Part};

    fn host(number: i64) -> HostKey {
        HostKey { part: Part(0), bin: BinId(number) }
    }

    #[test]
    fn the_first_hosts_of_a_domain_are_let_in_at_once_and_the_others_one_by_one() {
        let mut admissions = Admissions::default();
        let at: Vec<i64> =
            (0..25).map(|number| admissions.not_before_ms("a.example", host(number), 0)).collect();
        assert!(at[..20].iter().all(|ms| *ms == 0), "{at:?}");
        assert_eq!(at[20..], [500, 1_000, 1_500, 2_000, 2_500]);
        assert_eq!(admissions.not_before_ms("a.example", host(23), 900), 2_000, "as it was told");
        assert_eq!(admissions.not_before_ms("b.example", host(99), 0), 0, "another domain");
    }

    #[test]
    fn a_domain_that_has_been_quiet_may_have_some_at_once_again() {
        let mut admissions = Admissions::default();
        for number in 0..40 {
            admissions.not_before_ms("a.example", host(number), 0);
        }
        assert_eq!(admissions.not_before_ms("a.example", host(100), 60_000), 60_000);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut admissions = Admissions::default();
        for number in 0..100_000 {
            admissions.not_before_ms(&format!("{number}.example"), host(number), number * 100);
        }
        assert!(admissions.domains.len() <= DOMAINS_MAX && admissions.waiting.len() <= WAITING_MAX);
    }
}
