//! Sitemaps without end: their number, their depth and their bytes are bounded, pages are not
//! affected, and a restart remembers.

use super::verdicts::{SMALL, budgets};
use super::*;

fn index(url: &str, list_depth: u8) -> ListIndex<'_> {
    ListIndex { part: PART, job: JOB, bin: bin(url), url, look: LookKind::First, list_depth }
}

/// A document of the queue that is about to be fetched.
fn queued(url: &str, list_depth: u8) -> CandidateLink<'_> {
    let (job, bin, dochash, host_pages) = (JOB, bin(url), DocHash::of(url), NO_LIMIT);
    CandidateLink { job, bin, url, dochash, hops: 3, from: None, host_pages, list_depth }
}

fn read(budgets: &mut Budgets, url: &str, (bytes, look): (i64, LookKind)) {
    budgets.read_list(ReadList { part: PART, job: JOB, bin: bin(url), url, look, bytes });
}

fn rule(closed: Option<ClosedPattern>) -> Option<BudgetRule> {
    closed.map(|closed| closed.rule)
}

/// What another process knows.
fn restarted(budgets: &mut Budgets) -> Budgets {
    let rows = budgets.take_changed(PART);
    let mut again = super::verdicts::budgets(SMALL);
    again.restore(PART, &rows);
    again
}

#[test]
fn indexes_of_sitemaps_that_go_on_and_on_are_not_followed_and_a_restart_remembers() {
    let url = "http://endless.example/index.xml";
    let index = index(url, 1);
    let mut it = budgets(SMALL);
    for _ in 0..3 * SMALL.lists_max {
        let again = ListIndex { look: LookKind::Changed, ..index };
        assert_eq!(it.judge_list(again), None, "what a known index names every day is not more");
    }
    for number in 0..SMALL.lists_max {
        assert_eq!(it.judge_list(index), None, "{number}");
    }
    let closed = it.judge_list(index).expect("there are enough");
    assert_eq!((closed.rule, closed.documents), (BudgetRule::Lists, SMALL.lists_max));
    assert!(closed.explain().contains("endless.example/<sitemaps>"), "{}", closed.explain());
    let other = "http://other.example/index.xml";
    assert_eq!(it.judge_list(ListIndex { bin: bin(other), url: other, ..index }), None);
    assert_eq!(it.judge(&queued("http://endless.example/page", 0)), None, "pages are not lists");

    let rows = it.take_changed(PART);
    let mut again = budgets(SMALL);
    again.restore(PART, &rows);
    assert_eq!(again.judge_list(index).map(|it| it.rule), Some(BudgetRule::Lists));
}

#[test]
fn an_index_behind_more_than_three_indexes_is_not_followed_and_people_are_told() {
    let url = "http://deep.example/index.xml";
    let mut it = budgets(SMALL);
    let mut depth = 1;
    for number in 1..=INDEX_DEPTH_MAX {
        assert_eq!(it.judge_list(index(url, depth)), None, "index {number}");
        depth = index(url, depth).depth_below();
        assert_eq!(it.judge(&queued("http://deep.example/list.xml", depth)), None);
    }
    let closed = it.judge_list(index(url, depth)).expect("it is too deep");
    assert_eq!((closed.rule, closed.documents), (BudgetRule::ListDepth, 1));
    let words = closed.explain();
    assert!(words.contains("more than 3 deep") && words.contains("deep.example"), "{words}");
    let again = it.judge_list(ListIndex { look: LookKind::Same, ..index(url, depth) });
    assert_eq!(again, Some(closed), "what it names every day is not more");

    let below = index(url, depth).depth_below();
    let mut again = restarted(&mut it);
    for it in [&mut it, &mut again] {
        assert_eq!(rule(it.judge_list(index(url, depth))), Some(BudgetRule::ListDepth));
        let revived = it.judge(&queued("http://deep.example/list.xml", below));
        assert_eq!(rule(revived), Some(BudgetRule::ListDepth), "in the queue again");
        assert_eq!(it.judge_list(index(url, 1)), None, "others are followed");
        assert_eq!(it.judge(&queued("http://deep.example/page", 0)), None, "so are pages");
    }
}

#[test]
fn an_index_that_a_page_links_to_begins_anew() {
    let url = "http://a.example/index.xml";
    assert_eq!([0, 1, 2].map(|depth| index(url, depth).depth_below()), [2, 2, 3]);
}

#[test]
fn a_host_with_too_many_bytes_of_sitemaps_has_no_more_of_them_fetched_and_a_restart_remembers() {
    let url = "http://large.example/index.xml";
    let list = queued("http://large.example/sitemap-9.xml", 2);
    let mut it = budgets(SMALL);
    read(&mut it, url, (999, LookKind::First));
    read(&mut it, url, (500, LookKind::Changed));
    assert_eq!((it.judge_list(index(url, 1)), it.judge(&list)), (None, None));
    read(&mut it, "http://large.example/sitemap-1.xml", (1, LookKind::First));
    let closed = it.judge(&list).expect("there are enough bytes");
    assert_eq!((closed.rule, closed.bytes, closed.documents), (BudgetRule::ListBytes, 1_000, 2));
    assert!(closed.explain().contains("large.example/<sitemaps read>"), "{}", closed.explain());
    let mut again = restarted(&mut it);
    for it in [&mut it, &mut again] {
        assert_eq!(rule(it.judge_list(index(url, 1))), Some(BudgetRule::ListBytes));
        assert_eq!(
            rule(it.judge(&list)),
            Some(BudgetRule::ListBytes),
            "it waits, and is not fetched"
        );
        assert_eq!(it.judge(&queued("http://large.example/page", 0)), None, "pages go on");
        let seed = CandidateLink { hops: 0, ..list };
        assert_eq!(it.judge(&seed), None, "a seed is never closed");
        let other = "http://other.example/index.xml";
        assert_eq!((it.judge_list(index(other, 1)), it.judge(&queued(other, 1))), (None, None));
    }
}

#[test]
fn small_sitemaps_are_fetched_up_to_their_number_whoever_names_them() {
    let mut it = budgets(SMALL);
    let list = |number: i64| format!("http://many.example/sitemap-{number}.xml");
    for number in 0..SMALL.lists_max {
        assert_eq!(it.judge(&queued(&list(number), 1)), None, "{number}");
        read(&mut it, &list(number), (10, LookKind::First));
    }
    assert_eq!(rule(it.judge(&queued(&list(99), 1))), Some(BudgetRule::Lists));
    assert_eq!(rule(restarted(&mut it).judge(&queued(&list(99), 1))), Some(BudgetRule::Lists));
}
