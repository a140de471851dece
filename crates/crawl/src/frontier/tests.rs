//! The frontier in a simulated crawl: polite, fair, bounded, and never stuck.

mod sharing;
mod throttled;

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn key(bin: i64) -> HostKey {
    HostKey { part: Part(0), bin: BinId(bin) }
}

const JOB: JobId = JobId(1);
const FREE: Politeness = Politeness { delay_ms: 0, next_ms: 0 };

fn spot(host: HostKey, job: JobId) -> Spot {
    Spot { host, job, connection: ConnectionId(0) }
}

fn pause(ended_ms: i64, delay_ms: i64, not_before_ms: i64) -> Pause {
    Pause { ended_ms, delay_ms, not_before_ms }
}

/// A document is its number and its bin.
type Document = (i64, i64);

/// A crawl of bins with so many documents each, on a clock of its own.
struct Crawl {
    frontier: Frontier<Document>,
    limits: FrontierLimits,
    now_ms: i64,
    delays: BTreeMap<i64, i64>,
    queued: BTreeMap<i64, i64>,
    under_way: Vec<(i64, HostKey)>,
    ends: BTreeMap<i64, i64>,
    order: Vec<i64>,
    next_id: i64,
}

impl Crawl {
    fn new(limits: FrontierLimits, bins: &[(i64, i64)]) -> Crawl {
        let mut frontier = Frontier::new(limits);
        let mut crawl_bins = (BTreeMap::new(), BTreeMap::new());
        for (bin, (documents, delay_ms)) in (0..).zip(bins) {
            crawl_bins.0.insert(bin, *delay_ms);
            crawl_bins.1.insert(bin, *documents);
            let politeness = Politeness { delay_ms: *delay_ms, next_ms: 0 };
            frontier.add_work(key(bin), JOB, politeness, Pace::default());
        }
        Crawl {
            frontier,
            limits,
            now_ms: 0,
            delays: crawl_bins.0,
            queued: crawl_bins.1,
            under_way: Vec::new(),
            ends: BTreeMap::new(),
            order: Vec::new(),
            next_id: 0,
        }
    }

    fn claim(&mut self) {
        for want in self.frontier.wants(self.now_ms, true, |_| true) {
            let left = self.queued.get_mut(&want.host.bin.0).unwrap();
            let taken = (*left).min(want.documents as i64);
            *left -= taken;
            let ids = self.next_id..self.next_id + taken;
            self.next_id += taken;
            let documents = ids.map(|id| (id, want.host.bin.0)).collect();
            self.frontier.claimed(want, documents, taken < want.documents as i64);
        }
        assert!(self.frontier.claimed_count() <= self.limits.claimed_max);
    }

    /// Starts what may start, then lets the earliest request end.
    fn step(&mut self, took_ms: i64) -> bool {
        self.claim();
        loop {
            match self.frontier.next(self.now_ms) {
                Next::Fetch(key, document) => self.start(key, document, took_ms),
                // More can be claimed now, or nothing else will ever end.
                Next::WaitUntil(ms) if ms <= self.now_ms || self.under_way.is_empty() => {
                    self.now_ms = self.now_ms.max(ms);
                    self.claim();
                }
                Next::WaitUntil(_) | Next::Wait => break,
            }
        }
        self.under_way.sort_by_key(|(end_ms, key)| (*end_ms, key.bin));
        if self.under_way.is_empty() {
            return false;
        }
        let (end_ms, key) = self.under_way.remove(0);
        self.now_ms = self.now_ms.max(end_ms);
        self.ends.insert(key.bin.0, self.now_ms);
        self.frontier.finished(spot(key, JOB), pause(self.now_ms, self.delays[&key.bin.0], 0));
        self.frontier.committed(1);
        true
    }

    fn start(&mut self, key: HostKey, document: Document, took_ms: i64) {
        let (bin, delay_ms) = (key.bin.0, self.delays[&key.bin.0]);
        assert_eq!(document.1, bin);
        if delay_ms > 0 {
            assert!(self.under_way.iter().all(|(_, other)| *other != key), "two at once");
            let gap = self.now_ms - self.ends.get(&bin).copied().unwrap_or(i64::MIN / 2);
            assert!(gap >= delay_ms, "bin {bin} was asked {gap} ms after the last answer");
        }
        self.order.push(bin);
        // Answers take different times, so that ends overtake each other.
        self.under_way.push((self.now_ms + took_ms + document.0 % 7, key));
        assert!(self.under_way.len() <= self.limits.in_flight_max);
    }
}

const LIMITS: FrontierLimits = FrontierLimits {
    in_flight_max: 4,
    slow_max: 0,
    uncommitted_max: 12,
    claimed_max: 20,
    ahead_ms: 500,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_document_is_asked_for_once_politely_and_in_bounds(
        bins in proptest::collection::vec((0..30i64, prop_oneof![Just(0), 1..2_000i64]), 1..12),
        took_ms in 0..300i64,
    ) {
        let mut crawl = Crawl::new(LIMITS, &bins);
        while crawl.step(took_ms) {}
        let expected: i64 = bins.iter().map(|(documents, _)| documents).sum();
        prop_assert_eq!(crawl.order.len() as i64, expected);
        prop_assert!(crawl.frontier.is_idle(), "bins without work are forgotten");
        prop_assert_eq!(crawl.frontier.claimed_count(), 0);
    }
}

#[test]
fn bins_take_turns() {
    let mut crawl = Crawl::new(LIMITS, &[(30, 0), (30, 0), (30, 0)]);
    while crawl.step(10) {}
    for (index, _) in crawl.order.iter().enumerate().skip(3) {
        let count = |bin| crawl.order[..index].iter().filter(|it| **it == bin).count();
        let counts = [count(0), count(1), count(2)];
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 2, "after {index}: {counts:?}");
    }
}

#[test]
fn a_slow_bin_does_not_hold_up_the_others() {
    let mut crawl = Crawl::new(LIMITS, &[(100, 60_000), (100, 0)]);
    for _ in 0..101 {
        crawl.step(1);
    }
    let fast = crawl.order.iter().filter(|bin| **bin == 1).count();
    assert!(fast >= 99, "{fast} documents of the fast bin while the slow one waited");
}

fn with_two(delay_ms: i64) -> Frontier<Document> {
    let mut frontier = Frontier::new(LIMITS);
    frontier.add_work(key(1), JOB, Politeness { delay_ms, next_ms: 0 }, Pace::default());
    let wants = frontier.wants(0, true, |_| true);
    frontier.claimed(wants[0], vec![(1, 1), (2, 1)], true);
    frontier
}

#[test]
fn a_breaker_holds_a_host_back() {
    let mut frontier = with_two(300);
    assert!(matches!(frontier.next(0), Next::Fetch(..)));
    frontier.finished(spot(key(1), JOB), pause(5, 300, 60_000));
    assert_eq!(frontier.next(305), Next::WaitUntil(60_000));
}

#[test]
fn while_robots_txt_is_asked_for_nothing_else_of_the_host_starts() {
    let mut frontier = with_two(0);
    let Next::Fetch(host, document) = frontier.next(0) else { panic!("there are two") };
    frontier.hold(spot(host, JOB), document);
    assert_eq!(frontier.next(0), Next::Wait);
    assert_eq!((frontier.in_flight(), frontier.claimed_count()), (1, 2));
    frontier.finished(spot(host, JOB), pause(5, 0, 0));
    assert_eq!(frontier.next(5), Next::Fetch(host, (1, 1)), "it comes first again");
    assert_eq!(frontier.next(5), Next::Fetch(host, (2, 1)));
}

#[test]
fn jobs_share_the_clock_of_a_host_and_take_turns() {
    let mut frontier = Frontier::new(LIMITS);
    for job in [1, 2] {
        let politeness = Politeness { delay_ms: 100, next_ms: 0 };
        frontier.add_work(key(1), JobId(job), politeness, Pace::default());
    }
    for want in frontier.wants(0, true, |_| true) {
        let documents = (0..2).map(|number| (number, want.job.0)).collect();
        frontier.claimed(want, documents, true);
    }
    let mut order = Vec::new();
    for now_ms in [0, 100, 200, 300] {
        let Next::Fetch(host, document) = frontier.next(now_ms) else { panic!("one is due") };
        assert!(!matches!(frontier.next(now_ms), Next::Fetch(..)), "one at a time");
        frontier.finished(spot(host, JobId(document.1)), pause(now_ms, 100, 0));
        order.push(document.1);
    }
    assert_eq!(order, [1, 2, 1, 2]);
}

#[test]
fn what_is_wanted_counts_as_claimed_until_it_comes() {
    let mut frontier: Frontier<Document> = Frontier::new(LIMITS);
    for bin in [1, 2] {
        frontier.add_work(key(bin), JOB, FREE, Pace::default());
    }
    let wants = frontier.wants(0, true, |_| true);
    assert_eq!(wants.iter().map(|want| want.documents).sum::<usize>(), LIMITS.claimed_max);
    assert_eq!(frontier.claimed_count(), LIMITS.claimed_max);
    assert_eq!(frontier.wants(0, true, |_| true), [], "they are being asked");
    for want in wants {
        frontier.claimed(want, Vec::new(), true);
    }
    assert_eq!(frontier.claimed_count(), 0);
    assert!(frontier.is_idle());
}

#[test]
fn what_a_crash_would_repeat_is_bounded_however_much_waits() {
    let limits = FrontierLimits { uncommitted_max: 3, ..LIMITS };
    let mut frontier: Frontier<Document> = Frontier::new(limits);
    frontier.add_work(key(1), JOB, FREE, Pace::default());
    let wants = frontier.wants(0, true, |_| true);
    frontier.claimed(wants[0], (0..10).map(|number| (number, 1)).collect(), false);
    let started = |frontier: &mut Frontier<Document>| {
        std::iter::from_fn(|| matches!(frontier.next(0), Next::Fetch(..)).then_some(())).count()
    };
    assert_eq!(started(&mut frontier), 3);
    for _ in 0..3 {
        frontier.finished(spot(key(1), JOB), pause(0, 0, 0));
    }
    assert_eq!(frontier.next(0), Next::Wait, "they are had, but not committed");
    frontier.committed(2);
    assert_eq!(started(&mut frontier), 2);
}

#[test]
fn a_crawl_that_waits_for_its_host_is_busy_until_then_and_one_that_waits_for_a_commit_is_not() {
    let mut frontier = with_two(100);
    assert!(matches!(frontier.next(0), Next::Fetch(..)));
    assert!(frontier.is_busy(0), "a request is under way");
    frontier.finished(spot(key(1), JOB), pause(10, 100, 0));
    assert_eq!(frontier.next(10), Next::WaitUntil(110));
    assert!(frontier.is_busy(110) && !frontier.is_busy(109));
    assert!(matches!(frontier.next(110), Next::Fetch(..)));
    frontier.finished(spot(key(1), JOB), pause(120, 100, 0));
    assert!(!frontier.is_busy(i64::MAX), "all that was claimed has been asked for");
}

#[test]
fn what_is_put_off_comes_first_again_and_is_returned_if_its_host_was_forgotten() {
    let mut frontier = with_two(0);
    let Next::Fetch(host, document) = frontier.next(0) else { panic!("there are two") };
    assert_eq!(frontier.put_off(spot(host, JOB), Some(document), 70), None);
    assert_eq!((frontier.next(0), frontier.in_flight()), (Next::WaitUntil(70), 0));
    let Next::Fetch(host, document) = frontier.next(70) else { panic!("it is time") };
    assert_eq!((host, document), (key(1), (1, 1)));
    let homeless = frontier.put_off(spot(key(9), JOB), Some(document), 99);
    assert_eq!(homeless, Some((1, 1)), "nothing is known of that host any more");
}

#[test]
fn a_part_that_is_lost_is_forgotten() {
    let mut frontier = with_two(0);
    let Next::Fetch(host, _) = frontier.next(0) else { panic!("there are two") };
    assert_eq!(frontier.forget(Part(0), None), [(2, 1)]);
    frontier.finished(spot(host, JOB), pause(1, 0, 0));
    frontier.committed(2);
    assert!(frontier.is_idle());
    assert_eq!((frontier.claimed_count(), frontier.in_flight()), (0, 0));
}

#[test]
fn a_clock_that_is_set_neither_rushes_a_host_nor_leaves_it_alone_for_hours() {
    for jump_ms in [7_200_000, -7_200_000] {
        let limits = FrontierLimits {
            in_flight_max: 4,
            slow_max: 0,
            uncommitted_max: 10,
            claimed_max: 10,
            ahead_ms: 5_000,
        };
        let mut frontier: Frontier<Document> = Frontier::new(limits);
        let start_ms = 100_000_000;
        let politeness = Politeness { delay_ms: 1_000, next_ms: start_ms + 600 };
        let pace = Pace { interval_us: 500_000, ..Pace::default() };
        frontier.add_work(key(1), JOB, politeness, pace);
        let want = frontier.wants(start_ms, true, |_| true)[0];
        frontier.claimed(want, vec![(1, 1), (2, 1)], true);
        assert!(matches!(frontier.next(start_ms), Next::WaitUntil(ms) if ms == start_ms + 600));
        frontier.shift(jump_ms);
        let now_ms = start_ms + jump_ms;
        assert!(matches!(frontier.next(now_ms + 599), Next::WaitUntil(ms) if ms == now_ms + 600));
        assert!(matches!(frontier.next(now_ms + 600), Next::Fetch(_, (1, 1))));
        // A request that is under way when the clock is set is paused for by the new one.
        frontier.shift(-jump_ms);
        frontier.finished(spot(key(1), JOB), pause(start_ms + 700, 1_000, 0));
        assert!(matches!(frontier.next(start_ms + 1_699), Next::WaitUntil(_)));
        assert!(matches!(frontier.next(start_ms + 1_700), Next::Fetch(_, (2, 1))));
    }
}

/// A frontier with hosts that have one document each, without delay.
fn with_hosts(limits: FrontierLimits, hosts: std::ops::RangeInclusive<i64>) -> Frontier<Document> {
    let mut frontier: Frontier<Document> = Frontier::new(limits);
    for bin in hosts {
        frontier.add_work(key(bin), JOB, FREE, Pace::default());
    }
    for want in frontier.wants(0, true, |_| true) {
        let number = want.host.bin.0;
        frontier.claimed(want, vec![(number, number)], true);
    }
    frontier
}

/// Starts what may be started.
fn start_all(frontier: &mut Frontier<Document>, now_ms: i64) -> Vec<HostKey> {
    let started = std::iter::from_fn(|| match frontier.next(now_ms) {
        Next::Fetch(host, _) => Some(host),
        Next::WaitUntil(_) | Next::Wait => None,
    });
    started.collect()
}

#[test]
fn hosts_that_do_not_answer_keep_the_others_waiting_for_half_a_second_only() {
    let limits = FrontierLimits { in_flight_max: 2, slow_max: 3, ..LIMITS };
    let mut frontier = with_hosts(limits, 1..=6);
    assert_eq!(start_all(&mut frontier, 0).len(), 2);
    assert_eq!(frontier.next(499), Next::WaitUntil(500));
    assert_eq!(start_all(&mut frontier, 500).len(), 2, "those that are slow gave slots up");
    assert_eq!(start_all(&mut frontier, 1_000).len(), 1, "one more may be slow, and no further");
    assert_eq!(start_all(&mut frontier, 60_000).len(), 0);
    assert_eq!((frontier.in_flight(), frontier.next_start()), (5, None));
    frontier.finished(spot(key(1), JOB), pause(60_000, 0, 0));
    assert_eq!(start_all(&mut frontier, 60_000).len(), 1, "an answer makes room");
}

#[test]
fn hosts_that_answered_promptly_have_slots_beside_any_number_of_silent_ones() {
    let limits = FrontierLimits { in_flight_max: 4, slow_max: 1, ..LIMITS };
    let mut frontier = with_hosts(limits, 1..=9);
    let first = start_all(&mut frontier, 0);
    assert_eq!(first.len(), 3, "one slot is for hosts that have answered");
    let good = first[0];
    frontier.add_work(good, JOB, FREE, Pace::default());
    frontier.finished(spot(good, JOB), pause(20, 0, 0));
    for want in frontier.wants(20, true, |_| true) {
        frontier.claimed(want, (0..5).map(|at| (100 + at, good.bin.0)).collect(), true);
    }
    assert_eq!(start_all(&mut frontier, 20).len(), 2, "a silent one and a good one");
    for now_ms in [30, 500, 1_400] {
        frontier.finished(spot(good, JOB), pause(now_ms, 0, 0));
        let started = start_all(&mut frontier, now_ms);
        assert!(started.contains(&good), "at {now_ms}: {started:?}");
    }
}

#[test]
fn a_slot_that_will_be_given_up_is_waited_for_by_a_clock_that_is_set_too() {
    let limits = FrontierLimits { in_flight_max: 1, slow_max: 1, ..LIMITS };
    let mut frontier = with_hosts(limits, 1..=2);
    assert_eq!(start_all(&mut frontier, 5).len(), 1);
    assert_eq!(frontier.next(6), Next::WaitUntil(505));
    assert_eq!(frontier.next_start(), Some(505));
    frontier.shift(1_000);
    assert_eq!(frontier.next(1_007), Next::WaitUntil(1_505));
}
