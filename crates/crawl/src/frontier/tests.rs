//! The frontier in a simulated crawl: polite, fair, bounded, and never stuck.

use super::*;
use page::ids::DocHash;
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::ids::{JobId, Part, QueueId};

fn key(bin: i64) -> BinKey {
    BinKey { place: Place { part: Part(0), job: JobId(1) }, bin: BinId(bin) }
}

fn entry(id: i64, bin: i64) -> Entry {
    Entry {
        id: QueueId(id),
        bin: BinId(bin),
        dochash: DocHash::of(&id.to_string()),
        docid: format!("http://host{bin}/{id}"),
        action: "fetch".into(),
        hops: 0,
        redirects: 0,
        done_run: None,
        generation: 0,
        failcount: None,
        failtime: None,
    }
}

/// A crawl of bins with so many documents each, on a clock of its own.
struct Crawl {
    frontier: Frontier,
    limits: Limits,
    now_ms: i64,
    delays: BTreeMap<i64, i64>,
    queued: BTreeMap<i64, i64>,
    under_way: Vec<(i64, BinKey)>,
    ends: BTreeMap<i64, i64>,
    order: Vec<i64>,
    next_id: i64,
}

impl Crawl {
    fn new(limits: Limits, bins: &[(i64, i64)]) -> Crawl {
        let mut frontier = Frontier::new(limits);
        let mut crawl_bins = (BTreeMap::new(), BTreeMap::new());
        for (bin, (documents, delay_ms)) in (0..).zip(bins) {
            crawl_bins.0.insert(bin, *delay_ms);
            crawl_bins.1.insert(bin, *documents);
            frontier.has_work(key(bin), Politeness { delay_ms: *delay_ms, next_ms: 0 });
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
        for want in self.frontier.wants(self.now_ms) {
            let left = self.queued.get_mut(&want.key.bin.0).unwrap();
            let taken = (*left).min(want.documents as i64);
            *left -= taken;
            let ids = self.next_id..self.next_id + taken;
            self.next_id += taken;
            let entries = ids.map(|id| entry(id, want.key.bin.0)).collect();
            self.frontier.claimed(want.key, entries, taken < want.documents as i64);
        }
        assert!(self.frontier.claimed_count() <= self.limits.claimed_max);
    }

    /// Starts what may start, then lets the earliest request end.
    fn step(&mut self, took_ms: i64) -> bool {
        self.claim();
        loop {
            match self.frontier.next(self.now_ms) {
                Next::Fetch(key, entry) => self.start(key, &entry, took_ms),
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
        self.frontier.finished(key, self.now_ms, self.delays[&key.bin.0], 0);
        true
    }

    fn start(&mut self, key: BinKey, entry: &Entry, took_ms: i64) {
        let (bin, delay_ms) = (key.bin.0, self.delays[&key.bin.0]);
        assert_eq!(entry.bin, key.bin);
        if delay_ms > 0 {
            assert!(self.under_way.iter().all(|(_, other)| *other != key), "two at once");
            let gap = self.now_ms - self.ends.get(&bin).copied().unwrap_or(i64::MIN / 2);
            assert!(gap >= delay_ms, "bin {bin} was asked {gap} ms after the last answer");
        }
        self.order.push(bin);
        // Answers take different times, so that ends overtake each other.
        self.under_way.push((self.now_ms + took_ms + entry.id.0 % 7, key));
        assert!(self.under_way.len() <= self.limits.in_flight_max);
    }
}

const LIMITS: Limits = Limits { in_flight_max: 4, claimed_max: 20, ahead_ms: 500 };

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

#[test]
fn a_breaker_holds_a_bin_back() {
    let mut frontier = Frontier::new(LIMITS);
    frontier.has_work(key(1), Politeness { delay_ms: 10, next_ms: 0 });
    frontier.claimed(key(1), vec![entry(1, 1), entry(2, 1)], true);
    assert!(matches!(frontier.next(0), Next::Fetch(..)));
    frontier.finished(key(1), 5, 10, 60_000);
    assert_eq!(frontier.next(15), Next::WaitUntil(60_000));
}
