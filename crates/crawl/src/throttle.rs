//! The throttles of a connection, compiled: what a bin is allowed by its name.
//!
//! Pure. An expression applies to every bin whose name it matches anywhere; of several
//! that apply the smallest limit of each kind counts, and a bin that none applies to is
//! free. Invariants: an expression that is too large is refused, not run; no bin
//! costs more than linear time in its name for each expression.

use regex::{Regex, RegexBuilder};
use store::tables::throttles::Throttle;

/// Bytes that a compiled expression may take.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;
/// The slowest rate that is told from a stop: a document in a hundred years.
const INTERVAL_US_MAX: f64 = 3.2e15;

/// A throttle that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("throttle {expression:?} is not a valid regular expression: {reason}")]
#[allow(missing_docs)]
pub struct BadThrottle {
    pub expression: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Compiles the expression of a throttle.
pub fn expression(text: &str) -> Result<Regex, BadThrottle> {
    let (size, dfa) = (EXPRESSION_BYTES_MAX, EXPRESSION_BYTES_MAX);
    let built = RegexBuilder::new(text).size_limit(size).dfa_size_limit(dfa).build();
    built.map_err(|error| BadThrottle { expression: text.to_owned(), reason: error.to_string() })
}

/// The throttles of a connection.
#[derive(Debug, Default)]
pub struct Throttles {
    rules: Vec<(Regex, Throttle)>,
}

/// What a bin is allowed. What is `None` is not limited.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BinLimits {
    /// From one start to the next.
    pub interval_us: Option<i64>,
    /// Nothing of it may start: the expression that says so.
    pub stopped_by: Option<String>,
    /// Requests at once.
    pub requests_max: Option<usize>,
    /// Bytes a second.
    pub bytes_per_s_max: Option<u64>,
}

impl Throttles {
    /// Compiles the throttles of a connection.
    pub fn new(throttles: &[Throttle]) -> Result<Throttles, BadThrottle> {
        let compiled = throttles.iter().map(|it| Ok((expression(&it.matches)?, it.clone())));
        Ok(Throttles { rules: compiled.collect::<Result<_, _>>()? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What a bin is allowed.
    pub fn limits(&self, bin: &str) -> BinLimits {
        let mut limits = BinLimits::default();
        let mut slowest: Option<&Throttle> = None;
        for (_, rule) in self.rules.iter().filter(|(expression, _)| expression.is_match(bin)) {
            let rate = |it: &Throttle| it.per_ms.unwrap_or(f64::INFINITY);
            if rule.per_ms.is_some() && slowest.is_none_or(|known| rate(rule) < rate(known)) {
                slowest = Some(rule);
            }
            let requests = rule.connections_max.and_then(|most| usize::try_from(most).ok());
            limits.requests_max = least(limits.requests_max, requests);
            let bytes = rule.bytes_per_s_max.and_then(|most| u64::try_from(most).ok());
            limits.bytes_per_s_max = least(limits.bytes_per_s_max, bytes);
        }
        match slowest.and_then(|rule| Some((rule, interval_us(rule.per_ms?)))) {
            Some((rule, None)) => limits.stopped_by = Some(rule.matches.clone()),
            Some((_, interval)) => limits.interval_us = interval,
            None => {}
        }
        limits
    }
}

/// From one start to the next; `None` if there is never to be another.
fn interval_us(per_ms: f64) -> Option<i64> {
    let interval = 1_000.0 / per_ms;
    // What is out of range would take longer than anybody waits.
    (interval < INTERVAL_US_MAX).then(|| interval.round() as i64)
}

fn least<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttle(matches: &str, per_minute: Option<f64>) -> Throttle {
        Throttle {
            matches: matches.to_owned(),
            description: None,
            per_ms: per_minute.map(|rate| rate / 60_000.0),
            connections_max: None,
            bytes_per_s_max: None,
        }
    }

    fn limits(throttles: &[Throttle], bin: &str) -> BinLimits {
        Throttles::new(throttles).unwrap().limits(bin)
    }

    #[test]
    fn of_several_that_match_the_least_of_each_limit_counts() {
        let throttles = [
            Throttle { connections_max: Some(2), ..throttle("example", Some(60.0)) },
            Throttle { connections_max: Some(5), ..throttle(r"^www\.", Some(12.0)) },
            Throttle { bytes_per_s_max: Some(9), ..throttle("", None) },
        ];
        let www = limits(&throttles, "www.example.com");
        assert_eq!((www.interval_us, www.requests_max), (Some(5_000_000), Some(2)));
        assert_eq!(www.bytes_per_s_max, Some(9));
        assert_eq!(limits(&throttles, "example.com").interval_us, Some(1_000_000));
        let other = limits(&throttles, "a.test");
        assert_eq!((other.interval_us, other.requests_max), (None, None), "none matches: free");
        assert_eq!(limits(&[], "a.test"), BinLimits::default());
    }

    #[test]
    fn a_rate_of_nothing_stops_a_bin_and_names_who_says_so() {
        let throttles = [throttle("a", Some(12.0)), throttle("^a$", Some(0.0))];
        let stopped = limits(&throttles, "a");
        assert_eq!((stopped.stopped_by.as_deref(), stopped.interval_us), (Some("^a$"), None));
        assert_eq!(limits(&throttles, "ab").stopped_by, None);
        let hardly = [throttle("a", Some(f64::MIN_POSITIVE))];
        assert_eq!(limits(&hardly, "a").stopped_by.as_deref(), Some("a"));
    }

    #[test]
    fn a_rate_above_one_in_a_millisecond_is_kept() {
        let fast = [throttle("", Some(300_000.0))];
        assert_eq!(limits(&fast, "a").interval_us, Some(200));
        let without_end = [throttle("", Some(f64::MAX))];
        assert_eq!(limits(&without_end, "a").interval_us, Some(0));
    }

    #[test]
    fn an_expression_that_cannot_be_used_is_named() {
        for bad in ["(", r"(\w{500}){500}"] {
            let refused = Throttles::new(&[throttle(bad, None)]).unwrap_err();
            assert_eq!(refused.expression, bad);
        }
    }

    #[test]
    fn an_expression_that_takes_others_for_ever_is_matched() {
        // An engine that goes back on its steps has two to the power of 3,000 of them to take.
        let nested = [throttle("^(a+)+$", Some(60.0))];
        assert_eq!(limits(&nested, &format!("{}b", "a".repeat(3_000))), BinLimits::default());
        assert!(limits(&nested, &"a".repeat(3_000)).interval_us.is_some());
    }
}
