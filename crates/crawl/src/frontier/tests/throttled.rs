//! Throttles in the frontier: starts are spaced, requests are few, and those who are
//! held back hold up nobody else.

use super::*;

/// A crawl of bins with so many documents each and a pace each, one part each.
struct Throttled {
    frontier: Frontier<Document>,
    paces: Vec<Pace>,
    left: Vec<i64>,
    now_ms: i64,
    under_way: Vec<(i64, HostKey)>,
    starts: Vec<(i64, i64)>,
}

impl Throttled {
    fn new(in_flight_max: usize, bins: &[(i64, Pace)]) -> Throttled {
        let limits = FrontierLimits {
            in_flight_max,
            slow_max: 0,
            uncommitted_max: 20,
            claimed_max: 20,
            ahead_ms: 500,
        };
        let mut frontier = Frontier::new(limits);
        for (bin, (_, pace)) in (0..).zip(bins) {
            frontier.add_work(key(bin), JOB, FREE, *pace);
        }
        Throttled {
            frontier,
            paces: bins.iter().map(|(_, pace)| *pace).collect(),
            left: bins.iter().map(|(documents, _)| *documents).collect(),
            now_ms: 0,
            under_way: Vec::new(),
            starts: Vec::new(),
        }
    }

    fn claim(&mut self) {
        for want in self.frontier.wants(self.now_ms, true, |_| true) {
            let left = &mut self.left[want.host.bin.0 as usize];
            let taken = (*left).min(want.documents as i64);
            *left -= taken;
            let documents = (0..taken).map(|number| (number, want.host.bin.0)).collect();
            self.frontier.claimed(want, documents, *left == 0);
        }
    }

    fn start(&mut self, host: HostKey, took_ms: i64) {
        let bin = host.bin.0;
        let pace = self.paces[bin as usize];
        let before = self.starts.iter().rev().find(|(_, other)| *other == bin);
        let gap_us = before.map_or(i64::MAX, |(ms, _)| (self.now_ms - ms) * 1_000);
        assert!(gap_us >= pace.interval_us - 1_000, "bin {bin} after {gap_us} us");
        self.starts.push((self.now_ms, bin));
        self.under_way.push((self.now_ms + took_ms, host));
        let requests = self.under_way.iter().filter(|(_, other)| *other == host).count();
        assert!(pace.requests_max.is_none_or(|most| requests <= most), "{requests} at {bin}");
    }

    /// Goes on until the next end, or the next time that something can start.
    fn step(&mut self, took_ms: i64) -> bool {
        self.claim();
        let until_ms = loop {
            match self.frontier.next(self.now_ms) {
                Next::Fetch(host, _) => self.start(host, took_ms),
                Next::WaitUntil(ms) if ms <= self.now_ms => self.claim(),
                Next::WaitUntil(ms) => break ms,
                Next::Wait => break i64::MAX,
            }
        };
        let end = (0..self.under_way.len()).min_by_key(|at| self.under_way[*at].0);
        match end.filter(|at| self.under_way[*at].0 <= until_ms) {
            Some(at) => {
                let (end_ms, host) = self.under_way.remove(at);
                self.now_ms = self.now_ms.max(end_ms);
                self.frontier.finished(spot(host, JOB), pause(self.now_ms, 0, 0));
                self.frontier.committed(1);
            }
            None if until_ms == i64::MAX => return false,
            None => self.now_ms = until_ms,
        }
        true
    }

    fn count(&self, bin: i64) -> usize {
        self.starts.iter().filter(|(_, other)| *other == bin).count()
    }
}

fn every(interval_ms: i64) -> Pace {
    Pace { interval_us: interval_ms * 1_000, ..Pace::default() }
}

fn any_pace() -> impl Strategy<Value = Pace> {
    let interval = prop_oneof![Just(0), 100..200_000i64];
    (interval, proptest::option::of(1..4usize)).prop_map(|(interval_us, requests_max)| Pace {
        interval_us,
        requests_max,
        not_before_ms: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn throttled_bins_are_spaced_and_narrow_and_all_is_served(
        bins in proptest::collection::vec((0..30i64, any_pace()), 1..8),
        took_ms in 0..300i64,
    ) {
        let mut crawl = Throttled::new(4, &bins);
        while crawl.step(took_ms) {}
        let expected: i64 = bins.iter().map(|(documents, _)| documents).sum();
        prop_assert_eq!(crawl.starts.len() as i64, expected);
        prop_assert!(crawl.frontier.is_idle());
        prop_assert_eq!((crawl.frontier.claimed_count(), crawl.frontier.in_flight()), (0, 0));
    }
}

#[test]
fn the_kth_document_of_every_bin_is_equal_and_throttled_bins_come_in_proportion() {
    // One request at a time, of 50 ms each: what a bin gets is a question of order.
    let bins = [(400, every(0)), (400, every(0)), (400, every(400)), (400, every(1_000))];
    let mut crawl = Throttled::new(1, &bins);
    while crawl.now_ms < 20_000 {
        assert!(crawl.step(50));
        let (first, second) = (crawl.count(0), crawl.count(1));
        assert!(first.abs_diff(second) <= 1, "{first} and {second}");
        for (bin, interval_ms) in [(2, 400), (3, 1_000)] {
            // Where it should be, but for the turn that it may have to wait for.
            let place = (crawl.now_ms / interval_ms) as usize;
            let late = place.saturating_sub(crawl.count(bin));
            assert!(late <= 1 + place / 5, "bin {bin} is {late} behind {place}");
        }
    }
    assert!(crawl.count(0) + crawl.count(1) > 300, "the others have all the rest");
}

#[test]
fn a_rate_above_one_in_a_millisecond_is_met_on_the_average() {
    let mut crawl = Throttled::new(1, &[(1_000, Pace { interval_us: 250, ..Pace::default() })]);
    while crawl.step(0) {}
    assert!((249..=251).contains(&crawl.now_ms), "1,000 documents took {} ms", crawl.now_ms);
}

#[test]
fn an_interval_outlives_the_host_that_is_forgotten() {
    let mut frontier = Frontier::new(LIMITS);
    for (now_ms, expected) in [(0, 0), (10, 1_000)] {
        frontier.add_work(key(1), JOB, FREE, every(1_000));
        let want = frontier.wants(2_000, true, |_| true).remove(0);
        frontier.claimed(want, vec![(1, 1)], true);
        let started_ms = match frontier.next(now_ms) {
            Next::Fetch(..) => now_ms,
            Next::WaitUntil(ms) => ms,
            Next::Wait => panic!("something will be due"),
        };
        assert_eq!(started_ms, expected);
        if expected == 0 {
            frontier.finished(spot(key(1), JOB), pause(5, 0, 0));
            frontier.committed(1);
            assert!(!frontier.knows(key(1)));
        }
    }
}

#[test]
fn what_was_asked_before_there_was_a_pace_counts() {
    let mut frontier = Frontier::new(LIMITS);
    let pace = Pace { not_before_ms: 700, ..every(1_000) };
    frontier.add_work(key(1), JOB, FREE, pace);
    let want = frontier.wants(700, true, |_| true).remove(0);
    frontier.claimed(want, vec![(1, 1)], true);
    assert_eq!(frontier.next(0), Next::WaitUntil(700));
    // It is known now, and knows better than whoever tells it again.
    frontier.add_work(key(1), JOB, FREE, Pace { not_before_ms: 9_000, ..pace });
    assert!(matches!(frontier.next(700), Next::Fetch(..)));
}

#[test]
fn robots_txt_is_no_document_of_a_rate() {
    let mut frontier = Frontier::new(LIMITS);
    frontier.add_work(key(1), JOB, FREE, every(60_000));
    let want = frontier.wants(0, true, |_| true).remove(0);
    frontier.claimed(want, vec![(1, 1), (2, 1)], true);
    let Next::Fetch(host, document) = frontier.next(0) else { panic!("there are two") };
    frontier.hold(spot(host, JOB), document);
    frontier.finished(spot(host, JOB), pause(5, 0, 0));
    assert_eq!(frontier.next(5), Next::Fetch(host, (1, 1)));
    assert_eq!(frontier.next(5), Next::WaitUntil(60_005));
    // One that needs no request leaves its start to the next.
    frontier.skipped(spot(host, JOB));
    assert_eq!(frontier.next(5), Next::Fetch(host, (2, 1)));
}

#[test]
fn a_bin_that_lies_in_several_parts_has_one_pace() {
    let mut frontier = Frontier::new(LIMITS);
    let at = |part: i64| HostKey { part: Part(part), bin: BinId(1) };
    let pace = Pace { requests_max: Some(2), ..every(100) };
    for part in 0..4 {
        frontier.add_work(at(part), JOB, FREE, pace);
    }
    for want in frontier.wants(0, true, |_| true) {
        frontier.claimed(want, vec![(want.host.part.0, 1)], true);
    }
    let Next::Fetch(first, _) = frontier.next(0) else { panic!("one may start") };
    assert_eq!(frontier.next(0), Next::WaitUntil(100), "wherever it lies");
    assert!(matches!(frontier.next(100), Next::Fetch(..)));
    assert_eq!(frontier.next(500), Next::Wait, "two are under way");
    frontier.finished(spot(first, JOB), pause(500, 0, 0));
    assert!(matches!(frontier.next(500), Next::Fetch(..)));
}

#[test]
fn other_throttles_count_at_once() {
    let mut frontier = Frontier::new(LIMITS);
    frontier.add_work(key(1), JOB, FREE, every(60_000));
    let want = frontier.wants(0, true, |_| true).remove(0);
    frontier.claimed(want, vec![(1, 1), (2, 1), (3, 1), (4, 1)], true);
    assert!(matches!(frontier.next(0), Next::Fetch(..)));
    assert_eq!(frontier.next(0), Next::WaitUntil(60_000));
    let none = frontier.repace(ConnectionId(0), |_| Some(every(1_000)));
    assert_eq!((none, frontier.next(0)), (vec![], Next::WaitUntil(1_000)));
    let other = frontier.repace(ConnectionId(7), |_| None);
    assert_eq!((other, frontier.next(0)), (vec![], Next::WaitUntil(1_000)), "not its own");
    frontier.repace(ConnectionId(0), |_| Some(Pace::default()));
    assert!(matches!(frontier.next(0), Next::Fetch(..)));
    let stopped = frontier.repace(ConnectionId(0), |_| None);
    assert_eq!(stopped, [(key(1), (3, 1)), (key(1), (4, 1))]);
    assert_eq!(frontier.next(0), Next::Wait);
    for _ in 0..2 {
        frontier.finished(spot(key(1), JOB), pause(5, 0, 0));
    }
    frontier.committed(want.documents);
    assert!(frontier.is_idle() && frontier.claimed_count() == 0);
}

#[test]
fn a_connection_has_no_more_under_way_than_it_may_whatever_its_jobs() {
    let mut frontier = Frontier::new(FrontierLimits { in_flight_max: 9, ..LIMITS });
    let connections = [(1, 1), (2, 1), (3, 2)];
    for (job, connection) in connections {
        frontier.set_job(JobId(job), ConnectionId(connection), 5);
        frontier.add_work(key(job), JobId(job), FREE, Pace::default());
    }
    frontier.set_connection(ConnectionId(1), 2);
    for want in frontier.wants(0, true, |_| true) {
        frontier.claimed(want, vec![(0, want.job.0); 3], true);
    }
    let mut jobs = Vec::new();
    while let Next::Fetch(_, document) = frontier.next(0) {
        jobs.push(document.1);
    }
    let of = |connection: i64| {
        let is_of = |job: &&i64| connections.contains(&(**job, connection));
        jobs.iter().filter(is_of).count()
    };
    assert_eq!((of(1), of(2)), (2, 3), "the other connection is not limited: {jobs:?}");
    let first = Spot { host: key(1), job: JobId(1), connection: ConnectionId(1) };
    frontier.finished(first, pause(1, 0, 0));
    assert!(matches!(frontier.next(1), Next::Fetch(..)), "there is room again");
    assert_eq!(frontier.next(1), Next::Wait);
    frontier.set_connection(ConnectionId(1), 3);
    assert!(matches!(frontier.next(1), Next::Fetch(..)), "more may be, from now on");
}
