//! When a tally closes and when it opens again, at the limits; and that a row keeps
//! all that decides it.

use super::*;
use proptest::prelude::*;

fn limits() -> BudgetLimits {
    BudgetLimits { suspects_max: 10, ..BudgetLimits::default() }
}

fn tally(name: &str) -> Tally {
    let place = TallyPlace { part: Part(1), job: JobId(1), bin: BinId(1) };
    Tally::new(place, Level::of(name), name)
}

fn feed(tally: &mut Tally, count: usize, novelty: Novelty, is_deep: bool) {
    for _ in 0..count {
        tally.count(novelty, is_deep);
        tally.weigh(novelty);
        tally.settle(&limits());
    }
}

#[test]
fn a_pattern_closes_with_its_five_hundredth_stale_document() {
    let mut it = tally("a.example/#");
    feed(&mut it, 499, Novelty::Stale, false);
    assert_eq!(it.closed, None);
    feed(&mut it, 1, Novelty::Stale, false);
    assert_eq!(it.closed, Some(BudgetRule::Stale));
    assert_eq!((it.documents, it.stale, it.deep), (500, 500, 0));
}

#[test]
fn documents_with_news_keep_a_pattern_open_and_open_it_again() {
    let mut it = tally("a.example/#");
    for _ in 0..1_000 {
        feed(&mut it, 9, Novelty::Stale, false);
        feed(&mut it, 1, Novelty::Fresh, false);
        assert!(!matches!(it.closed, Some(BudgetRule::Stale)), "nine of ten are not nearly all");
    }
    let mut it = tally("a.example/#");
    feed(&mut it, 1_000, Novelty::Stale, false);
    feed(&mut it, 40, Novelty::Fresh, false);
    assert_eq!(it.closed, Some(BudgetRule::Stale), "a few are not enough");
    feed(&mut it, 60, Novelty::Fresh, false);
    assert_eq!(it.closed, None);
}

#[test]
fn documents_that_are_alike_close_later_and_sooner_when_deep() {
    let mut it = tally("a.example/#");
    feed(&mut it, 999, Novelty::Alike, false);
    assert_eq!(it.closed, None);
    feed(&mut it, 1, Novelty::Alike, false);
    assert_eq!(it.closed, Some(BudgetRule::Alike));
    let mut it = tally("a.example/#");
    feed(&mut it, 100, Novelty::Alike, false);
    feed(&mut it, 499, Novelty::Alike, true);
    assert_eq!(it.closed, None);
    feed(&mut it, 1, Novelty::Alike, true);
    assert_eq!(it.closed, Some(BudgetRule::Deep));
}

#[test]
fn deep_documents_with_news_close_nothing() {
    let mut it = tally("a.example/list?page");
    feed(&mut it, 20_000, Novelty::Fresh, true);
    assert_eq!((it.closed, it.deep), (None, 20_000));
}

#[test]
fn a_pattern_is_proven_by_twenty_documents_with_news() {
    let mut it = tally("a.example/#");
    feed(&mut it, 19, Novelty::Fresh, false);
    assert!(!it.is_proven());
    feed(&mut it, 1, Novelty::Fresh, false);
    assert!(it.is_proven());
    feed(&mut it, 50, Novelty::Stale, false);
    assert!(!it.is_proven());
}

#[test]
fn trust_grows_with_what_is_good() {
    let mut it = tally("a.example/*");
    it.suspects = 10;
    assert!(it.is_out_of_trust(&limits()));
    feed(&mut it, 10, Novelty::Fresh, false);
    assert_eq!((it.closed, it.is_out_of_trust(&limits())), (None, false));
    it.suspects += 1;
    it.settle(&limits());
    assert_eq!(it.closed, Some(BudgetRule::Suspects));
}

#[test]
fn texts_are_compared_with_the_last_few() {
    let mut texts = Texts::default();
    assert_eq!(texts.distance(0), None, "there is nothing to compare with");
    texts.push(0);
    texts.push(u64::MAX);
    for (simhash, bits) in [(0, 0), (0b111, 3), (u64::MAX - 1, 1)] {
        assert_eq!(texts.distance(simhash), Some(bits), "{simhash:b}");
    }
    (0..TEXTS).for_each(|_| texts.push(u64::MAX));
    assert_eq!(texts.distance(0), Some(64), "the first is forgotten");
}

#[test]
fn words_decide_once_there_are_some_documents() {
    let mut it = tally("a.example/#");
    let mut see = |simhash: u64, text: &str| {
        let novelty = it.novelty(simhash, text);
        it.texts.push(simhash);
        it.count(Novelty::Fresh, false);
        novelty
    };
    let menu = "home about us contact press jobs terms of use";
    assert_eq!(see(0, menu), None, "the first");
    for number in 1..VOCABULARY_DOCUMENTS {
        let far = number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert_eq!(see(far, menu), Some(Novelty::Fresh), "{number}: far from the last ones");
    }
    assert_eq!(see(0, menu), Some(Novelty::Fresh), "the menu is learnt");
    (0..9).for_each(|_| {
        see(0, menu);
    });
    assert_eq!(see(0, menu), Some(Novelty::Stale), "nearly the one before");
    assert_eq!(see(u64::MAX, menu), Some(Novelty::Alike), "not near, and nothing new");
    let text = format!("{menu} a lamp of green glass and brass");
    assert_eq!(see(0, &text), Some(Novelty::Fresh), "near, and something new");
    let long = menu.repeat(20);
    (0..9).for_each(|_| {
        see(0, &long);
    });
    assert_eq!(see(0xfff << 20, &long), Some(Novelty::Alike), "not far, and nothing new");
    assert_eq!(see(u64::MAX >> 20, &long), Some(Novelty::Fresh), "so far that nobody looks");
}

fn novelty() -> impl Strategy<Value = Novelty> {
    prop_oneof![Just(Novelty::Fresh), Just(Novelty::Alike), Just(Novelty::Stale)]
}

proptest! {
    #[test]
    fn a_row_keeps_what_decides(
        name in prop_oneof![
            Just("a.example/#"), Just("a.example/x?*"), Just("a.example/*"), Just("*.a.example"),
            Just("a.example/<sitemaps>"), Just("a.example/<sitemaps read>")
        ],
        runs in proptest::collection::vec((novelty(), 0..700usize, any::<bool>()), 1..8),
        suspects in 0..200i64,
        (outside, host_pages) in (0..20i64, proptest::option::of(0..2_000i64)),
        bytes in 0..3_000_000_000i64,
    ) {
        let mut it = tally(name);
        (it.suspects, it.bytes) = (suspects, bytes);
        (it.outside, it.host_pages) = (outside, host_pages);
        for (novelty, count, is_deep) in runs {
            feed(&mut it, count, novelty, is_deep);
        }
        let row = it.to_row();
        let mut back = Tally::from_row(it.part, &row);
        prop_assert_eq!(&back.to_row(), &row);
        back.settle(&limits());
        prop_assert_eq!(&back.to_row(), &row, "deciding again decides the same");
        prop_assert!((0..=ALL).contains(&it.recent_stale), "a share is a share");
    }
}
