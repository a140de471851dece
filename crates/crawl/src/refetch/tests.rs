//! The policies, rule by rule, and what they must keep to whatever a row says.

use super::simulation::{self, SimulatedWeb};
use super::*;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

fn policy(refetch: Refetch, min_ms: Option<i64>, max_ms: Option<i64>) -> Policy {
    Policy { refetch, min_ms, max_ms, expiration_ms: None }
}

fn all_policies() -> impl Iterator<Item = Refetch> {
    [Refetch::Estimate, Refetch::Formula, Refetch::Fixed].into_iter()
}

/// A document that was first seen at 0 and looked at until `now_ms`.
fn watched_until(now_ms: i64, changes: i64, restless_ms: i64) -> ChangeHistory {
    ChangeHistory {
        checked_ms: now_ms,
        checks: changes + 2,
        changes,
        quiet_ms: now_ms - restless_ms,
        restless_ms,
        ..ChangeHistory::default()
    }
}

#[test]
fn a_blank_interval_is_never_and_a_blank_life_has_no_end() {
    for refetch in all_policies() {
        let never = next_look(&policy(refetch, None, Some(5)), &ChangeHistory::default(), 10, None);
        assert_eq!(never, Next { at_ms: None, action: Action::Fetch });
    }
}

#[test]
fn a_document_expires_unless_it_is_looked_at_before_or_then() {
    let at = |min_ms, life_ms, known: &ChangeHistory| {
        let policy =
            Policy { expiration_ms: Some(life_ms), ..policy(Refetch::Fixed, min_ms, None) };
        next_look(&policy, known, 100, None)
    };
    let known = ChangeHistory::default();
    let expires = |at_ms| Next { at_ms: Some(at_ms), action: Action::Expire };
    let looks = |at_ms| Next { at_ms: Some(at_ms), action: Action::Fetch };
    assert_eq!(at(None, 50, &known), expires(150));
    assert_eq!(at(Some(60), 50, &known), expires(150));
    assert_eq!(at(Some(50), 50, &known), looks(150), "at the same time it is looked at");
    assert_eq!(at(Some(40), 50, &known), looks(140));
    let old = ChangeHistory { origin_ms: Some(20), ..known };
    assert_eq!(at(None, 90, &old), expires(110), "its connector knows how old it is");
    assert_eq!(at(None, 50, &old), expires(100), "never before now");
}

#[test]
fn a_connector_says_when_at_the_earliest_and_the_latest() {
    let at = |min_ms, earliest_ms, latest_ms| {
        let known =
            ChangeHistory { look: Bounds { earliest_ms, latest_ms }, ..ChangeHistory::default() };
        next_look(&policy(Refetch::Fixed, min_ms, None), &known, 100, None).at_ms
    };
    assert_eq!(at(Some(10), None, None), Some(110));
    assert_eq!(at(Some(10), Some(200), None), Some(200));
    assert_eq!(at(Some(10), None, Some(105)), Some(105));
    assert_eq!(at(None, None, Some(500)), Some(500), "also for what would never be");
    assert_eq!(at(None, Some(500), None), None);
    assert_eq!(at(Some(10), Some(300), Some(200)), Some(200), "the latest goes before");
}

#[test]
fn the_formula_doubles_the_wait_of_what_does_not_change() {
    let formula = policy(Refetch::Formula, Some(HOUR), Some(10 * HOUR));
    let wait = |known: &ChangeHistory, now_ms| {
        next_look(&formula, known, now_ms, None).at_ms.unwrap() - now_ms
    };
    assert_eq!(wait(&ChangeHistory::default(), 0), HOUR);
    assert_eq!(wait(&watched_until(HOUR, 0, 0), HOUR), 2 * HOUR);
    assert_eq!(wait(&watched_until(3 * HOUR, 0, 0), 3 * HOUR), 4 * HOUR);
    assert_eq!(wait(&watched_until(30 * HOUR, 0, 0), 30 * HOUR), 10 * HOUR, "the most");
    // Two changes and the first sight: the mean time between them.
    assert_eq!(wait(&watched_until(6 * HOUR, 2, 4 * HOUR), 6 * HOUR), 3 * HOUR);
}

#[test]
fn the_estimate_waits_longer_for_what_is_quiet_than_for_what_changes() {
    let estimate = policy(Refetch::Estimate, Some(HOUR), None);
    let wait = |known: &ChangeHistory| next_look(&estimate, known, 0, None).at_ms.unwrap();
    assert_eq!(wait(&ChangeHistory::default()), HOUR, "nothing is known: the least");
    let quiet = wait(&watched_until(100 * DAY, 0, 0));
    let seldom = wait(&watched_until(100 * DAY, 5, 25 * DAY));
    let often = wait(&watched_until(100 * DAY, 50, 60 * DAY));
    assert!(often < seldom && seldom < quiet, "{often} {seldom} {quiet}");
    // About half of the mean time between changes, which is two days and twenty days.
    assert!((DAY / 2..2 * DAY).contains(&often), "{often}");
    assert!((8 * DAY..25 * DAY).contains(&seldom), "{seldom}");
}

#[test]
fn time_is_watched_from_look_to_look_and_a_clock_set_back_takes_nothing_away() {
    let known = ChangeHistory {
        checks: 1,
        checked_ms: 100,
        quiet_ms: 7,
        restless_ms: 3,
        ..ChangeHistory::default()
    };
    assert_eq!(watched(&known, 150, false), (57, 3));
    assert_eq!(watched(&known, 150, true), (7, 53));
    assert_eq!(watched(&known, 50, true), (7, 3));
    assert_eq!(watched(&ChangeHistory { checks: 0, ..known }, 150, true), (7, 3), "the first look");
}

#[test]
fn an_allowance_that_was_saved_goes_on_where_it_was() {
    let mut allowance = Allowance::new(100, 1_000);
    let next = Next { at_ms: Some(3 * DAY), action: Action::Fetch };
    for number in 0..500 {
        let known = watched_until(number * HOUR, number % 3 / 2, number % 3 / 2 * HOUR);
        allowance.spend(&ChangeHistory { checks: 2, ..known }, &next, number * HOUR);
    }
    assert_eq!(Allowance::restore(&allowance.save(), 100, 1_000), allowance);
    assert_ne!(allowance, Allowance::new(100, 1_000));
    for text in ["", "1", "2 0 0 - 8 2 9", "1 NaN 0 - 8 2 9", "1 0 inf - 8 2 9", "1 0 0 - 8 9 9"] {
        let restored = Allowance::restore(text, 100, 1_000);
        assert_eq!(restored, Allowance::new(100, 1_000), "{text:?} was not saved by it");
    }
}

#[test]
fn what_is_spent_too_fast_makes_looks_dearer_and_what_is_saved_cheaper() {
    let fresh = Allowance::new(100, 1_000);
    let (mut hurried, mut lazy) = (fresh.clone(), fresh.clone());
    let known = ChangeHistory { checks: 3, ..ChangeHistory::default() };
    for number in 0..1_000 {
        let soon = Next { at_ms: Some(number + DAY), action: Action::Fetch };
        hurried.spend(&known, &soon, number);
        let now_ms = number * HOUR;
        let late = Next { at_ms: Some(now_ms + 30 * DAY), action: Action::Fetch };
        lazy.spend(&known, &late, now_ms);
    }
    assert!(hurried.price_ms() > fresh.price_ms());
    assert!(lazy.price_ms() < fresh.price_ms());
}

/// The claim of `docs/guide/refetch.md`, at a size that a test can afford; `bench/refetch`
/// has the full one.
#[test]
fn the_estimate_keeps_copies_fresher_with_the_same_fetches_than_any_other_rule() {
    let (documents, looks) = (300, 24);
    let looks_max = looks * documents as u64;
    let web = SimulatedWeb::new(documents, 1);
    let plan = i64::try_from(looks).unwrap();
    let estimate = web.watch(&simulation::estimate(plan, documents));
    assert!(estimate.looks <= looks_max + looks_max / 50, "it keeps to its fetches: {estimate:?}");
    let mut others = vec![web.watch(&simulation::fixed(plan))];
    for times in [Some(2), None] {
        others.push(web.watch_tuned(simulation::formula(plan, times), looks_max));
    }
    let hits = |it: &simulation::SimulationResult| it.found as f64 / it.looks as f64;
    assert!(hits(&estimate) > hits(&others[0]), "it looks where changes are");
    for other in others {
        assert!(other.looks >= looks_max * 95 / 100, "it may spend as much: {other:?}");
        let better = estimate.freshness > other.freshness && estimate.age_days < other.age_days;
        assert!(better, "{estimate:?} is to be better than {other:?}");
    }
}

fn known() -> impl Strategy<Value = ChangeHistory> {
    let time = || prop_oneof![-10..1_000i64, 0..400 * DAY, Just(i64::MAX), Just(i64::MIN)];
    let count = || prop_oneof![0..5i64, 0..10_000i64, Just(i64::MAX), Just(-1)];
    ((time(), time(), time(), time()), (count(), count())).prop_map(|(times, counts)| {
        ChangeHistory {
            first_ms: times.0,
            checked_ms: times.1,
            quiet_ms: times.2,
            restless_ms: times.3,
            checks: counts.0,
            changes: counts.1,
            ..ChangeHistory::default()
        }
    })
}

proptest! {
    #[test]
    fn whatever_a_row_says_a_look_keeps_to_its_bounds(
        known in known(),
        min_ms in 1..10 * DAY,
        more_ms in prop::option::of(0..400 * DAY),
        now_ms in 0..10_000 * DAY,
        fetches in prop::option::of(1..1_000_000i64),
    ) {
        let max_ms = more_ms.map(|more_ms| min_ms + more_ms);
        let mut allowance = fetches.map(|fetches| Allowance::new(fetches, 1_000));
        for refetch in all_policies() {
            let policy = policy(refetch, Some(min_ms), max_ms);
            let next = next_look(&policy, &known, now_ms, allowance.as_ref());
            let wait_ms = next.at_ms.unwrap() - now_ms;
            prop_assert!(wait_ms >= min_ms);
            prop_assert!(refetch == Refetch::Fixed || max_ms.is_none_or(|max_ms| wait_ms <= max_ms));
            if let Some(allowance) = &mut allowance {
                allowance.spend(&known, &next, now_ms);
                let price_ms = allowance.price_ms();
                prop_assert!(price_ms.is_finite() && price_ms > 0.0);
                prop_assert_eq!(&Allowance::restore(&allowance.save(), 1, 1_000).save(), &allowance.save());
            }
        }
    }

    #[test]
    fn more_quiet_time_never_brings_a_look_forward(
        changes in 0..1_000i64,
        restless_ms in 0..100 * DAY,
        quiet_ms in 0..100 * DAY,
        more_ms in 0..100 * DAY,
    ) {
        let policy = policy(Refetch::Estimate, Some(1_000), None);
        let restless_ms = if changes == 0 { 0 } else { restless_ms.max(1) };
        let at = |quiet_ms: i64| {
            let until_ms = quiet_ms + restless_ms;
            let known = watched_until(until_ms, changes, restless_ms);
            let estimated = Belief::of(&known, Prior::of_interval(1_000));
            (next_look(&policy, &known, 0, None).at_ms.unwrap(), estimated.shape / estimated.time_ms)
        };
        let (sooner, later) = (at(quiet_ms.max(1)), at(quiet_ms.max(1) + more_ms));
        prop_assert!(later.1 <= sooner.1 * 1.000_001, "the rate believed in");
        prop_assert!(later.0 as f64 >= sooner.0 as f64 * 0.999, "{sooner:?} {later:?}");
    }
}
