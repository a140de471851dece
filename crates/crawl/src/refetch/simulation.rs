//! A simulated web of documents that change in different ways, and what becomes of a copy
//! of it under a policy.
//!
//! Used by the crate's tests, and at full size by `bench/refetch`, which includes this file.
//! Everything follows from a seed: the same documents change at the same times whatever the
//! policy. Invariant: what is measured covers each document from its first look to the
//! end, so a policy pays for what it has yet to learn.

use super::{Allowance, ChangeHistory, Policy, Refetch, next_look, watched};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub const DAY_MS: i64 = 86_400_000;
/// How long the web is watched.
pub const DAYS: i64 = 360;
const END_MS: i64 = DAYS * DAY_MS;
/// The first look at everything takes this long.
const FIRST_MS: i64 = DAY_MS;
/// The least time between two looks, for the estimate.
pub const MIN_MS: i64 = DAY_MS / 24;
pub const MAX_MS: i64 = 180 * DAY_MS;
/// Trials in which a policy is brought to a number of looks.
const TUNINGS: u32 = 14;
/// The share of looks at which it is near enough.
const CLOSE: f64 = 0.998;
/// No document changes faster than this, in changes a day.
const RATE_MAX: f64 = 48.0;

/// When each document changes.
pub struct SimulatedWeb {
    documents: Vec<Vec<i64>>,
}

/// A way to look at documents again.
#[derive(Clone, Copy)]
pub struct SimulationPlan {
    pub policy: Policy,
    /// Fetches a day, for the estimate.
    pub fetches_per_day: Option<i64>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimulationResult {
    /// Looks after the first.
    pub looks: u64,
    /// Those that found a change.
    pub found: u64,
    /// The share of time for which copies were current.
    pub freshness: f64,
    /// For how many days, on the average over documents and time, they were not.
    pub age_days: f64,
}

impl SimulatedWeb {
    /// A web: of ten documents six change at random, with rates that are spread widely
    /// (half of them faster than once in twenty days), two never, one in bursts, one
    /// regularly.
    pub fn new(documents: usize, seed: u64) -> SimulatedWeb {
        let documents = (0..documents)
            .map(|number| {
                let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
                random.next();
                match number % 10 {
                    0..=5 => random.steady(),
                    6 | 7 => Vec::new(),
                    8 => random.bursts(),
                    _ => random.regular(),
                }
            })
            .collect();
        SimulatedWeb { documents }
    }

    /// Looks at the web as planned.
    pub fn watch(&self, plan: &SimulationPlan) -> SimulationResult {
        let count = self.documents.len() as i64;
        let mut allowance = plan.fetches_per_day.map(|fetches| Allowance::new(fetches, count));
        let mut copies: Vec<SimulatedDocument> = Vec::with_capacity(self.documents.len());
        let mut due = BinaryHeap::new();
        for number in 0..self.documents.len() {
            let at_ms = number as i64 * FIRST_MS / count;
            let known =
                ChangeHistory { first_ms: at_ms, checked_ms: at_ms, ..ChangeHistory::default() };
            copies.push(SimulatedDocument { known, next_change: 0 });
            due.push(Reverse((at_ms, number)));
        }
        let mut sums = Sums::default();
        while let Some(Reverse((at_ms, number))) = due.pop() {
            let (copy, changes) = (&mut copies[number], &self.documents[number]);
            if at_ms >= END_MS {
                copy.pass(changes, END_MS, &mut sums);
                continue;
            }
            copy.look(changes, at_ms, &mut sums);
            let next = next_look(&plan.policy, &copy.known, at_ms, allowance.as_ref());
            if let Some(allowance) = &mut allowance {
                allowance.spend(&copy.known, &next, at_ms);
            }
            due.push(Reverse((next.at_ms.unwrap_or(END_MS), number)));
        }
        sums.outcome()
    }

    /// Brings a policy to a number of looks: the shortest interval, or the most fetches a
    /// day, with which it makes no more. A job's owner cannot know that beforehand; here it
    /// makes policies comparable.
    pub fn watch_tuned(&self, plan: SimulationPlan, looks_max: u64) -> SimulationResult {
        let mut best = SimulationResult::default();
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..TUNINGS {
            let share = f64::midpoint(low, high);
            let outcome = self.watch(&plan.at(share));
            if outcome.looks > looks_max {
                high = share;
                continue;
            }
            low = share;
            if outcome.looks > best.looks {
                best = outcome;
            }
            if best.looks as f64 > looks_max as f64 * CLOSE {
                break;
            }
        }
        best
    }
}

impl SimulationPlan {
    /// The plan with its one free number between what makes too few looks (0) and what
    /// makes too many (1).
    fn at(mut self, share: f64) -> SimulationPlan {
        match self.fetches_per_day {
            Some(fetches) => {
                self.fetches_per_day = Some((fetches as f64 * (0.5 + share)) as i64);
            }
            None => {
                let (longest_ms, shortest_ms) = (END_MS as f64, MIN_MS as f64 / 6.0);
                let interval_ms = longest_ms * (shortest_ms / longest_ms).powf(share);
                self.policy.min_ms = Some(interval_ms as i64);
            }
        }
        self
    }
}

/// The fixed interval with which each document is looked at so many times until the end.
pub fn fixed(looks: i64) -> SimulationPlan {
    let min_ms = END_MS / (looks + 1) + 1;
    SimulationPlan { policy: policy(Refetch::Fixed, min_ms, None), fetches_per_day: None }
}

/// ManifoldCF's formula, with so many times the fixed interval as the most, or none.
pub fn formula(looks: i64, times: Option<i64>) -> SimulationPlan {
    let max_ms = times.map(|times| END_MS / (looks + 1) * times);
    SimulationPlan { policy: policy(Refetch::Formula, MIN_MS, max_ms), fetches_per_day: None }
}

/// The estimate, with the fetches that so many looks at each of the documents take.
pub fn estimate(looks: i64, documents: usize) -> SimulationPlan {
    let fetches_per_day = Some(looks * documents as i64 / DAYS);
    SimulationPlan { policy: policy(Refetch::Estimate, MIN_MS, Some(MAX_MS)), fetches_per_day }
}

fn policy(refetch: Refetch, min_ms: i64, max_ms: Option<i64>) -> Policy {
    Policy { refetch, min_ms: Some(min_ms), max_ms, expiration_ms: None }
}

struct SimulatedDocument {
    known: ChangeHistory,
    /// The first change that the copy does not have.
    next_change: usize,
}

#[derive(Default)]
struct Sums {
    looks: u64,
    found: u64,
    fresh_days: f64,
    /// Days that each copy was behind, summed over time: days times days.
    behind: f64,
    days: f64,
}

impl SimulatedDocument {
    /// Time passes without a look.
    fn pass(&self, changes: &[i64], now_ms: i64, sums: &mut Sums) -> bool {
        let since_ms = self.known.checked_ms;
        let change_ms = changes.get(self.next_change).copied().filter(|at_ms| *at_ms <= now_ms);
        let until_ms = change_ms.unwrap_or(now_ms);
        let behind_days = days(now_ms - until_ms);
        sums.fresh_days += days(until_ms - since_ms);
        sums.behind += behind_days * behind_days / 2.0;
        sums.days += days(now_ms - since_ms);
        change_ms.is_some()
    }

    fn look(&mut self, changes: &[i64], now_ms: i64, sums: &mut Sums) {
        let changed = self.known.checks > 0 && self.pass(changes, now_ms, sums);
        sums.looks += u64::from(self.known.checks > 0);
        sums.found += u64::from(changed);
        (self.known.quiet_ms, self.known.restless_ms) = watched(&self.known, now_ms, changed);
        self.known.checked_ms = now_ms;
        self.known.checks += 1;
        if changed {
            self.known.changes += 1;
            self.known.changed_ms = Some(now_ms);
        }
        let left = &changes[self.next_change..];
        self.next_change += left.partition_point(|at_ms| *at_ms <= now_ms);
    }
}

impl Sums {
    fn outcome(&self) -> SimulationResult {
        SimulationResult {
            looks: self.looks,
            found: self.found,
            freshness: self.fresh_days / self.days,
            age_days: self.behind / self.days,
        }
    }
}

fn days(ms: i64) -> f64 {
    ms as f64 / DAY_MS as f64
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// The time to the next of events that come at random, in ms.
    fn wait_ms(&mut self, per_day: f64) -> f64 {
        -self.share().ln() / per_day * DAY_MS as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    fn steady(&mut self) -> Vec<i64> {
        let rate = (2.0 * self.normal()).exp() / 20.0;
        self.between(0.0, END_MS as f64, rate.min(RATE_MAX))
    }

    /// Changes at random between two times.
    fn between(&mut self, from_ms: f64, to_ms: f64, per_day: f64) -> Vec<i64> {
        let mut changes = Vec::new();
        let mut at_ms = from_ms + self.wait_ms(per_day);
        while at_ms < to_ms {
            changes.push(at_ms as i64);
            at_ms += self.wait_ms(per_day);
        }
        changes
    }

    /// A month of silence on the average, then two days with a change every two hours.
    fn bursts(&mut self) -> Vec<i64> {
        let mut changes = Vec::new();
        let mut at_ms = self.wait_ms(1.0 / 30.0);
        while at_ms < END_MS as f64 {
            let to_ms = at_ms + self.wait_ms(0.5);
            changes.extend(self.between(at_ms, to_ms.min(END_MS as f64), 12.0));
            at_ms = to_ms + self.wait_ms(1.0 / 30.0);
        }
        changes
    }

    /// A period between six hours and a month, kept to a tenth.
    fn regular(&mut self) -> Vec<i64> {
        let period_ms = DAY_MS as f64 / 4.0 * 120f64.powf(self.share());
        let mut at_ms = period_ms * self.share();
        let mut changes = Vec::new();
        while at_ms < END_MS as f64 {
            changes.push(at_ms as i64);
            at_ms += period_ms * (0.95 + 0.1 * self.share());
        }
        changes
    }
}
